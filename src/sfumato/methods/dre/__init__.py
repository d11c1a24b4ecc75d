"""DP-DRE: ratios of densities in the feature space of public networks."""
