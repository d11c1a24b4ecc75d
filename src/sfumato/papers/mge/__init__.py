"""DP-MGE: Gaussians in the feature space of public networks."""
