"""`moments`: images by their moments, the default for image sets."""
