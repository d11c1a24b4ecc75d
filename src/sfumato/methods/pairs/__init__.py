"""`pairs`: tables by all pairs of their columns, the default for tables."""
