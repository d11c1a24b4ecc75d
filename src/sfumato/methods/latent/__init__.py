"""Methods that learn the distribution of images in a public feature space."""
