"""Statistics of private rows, each with the bound that it obeys."""
