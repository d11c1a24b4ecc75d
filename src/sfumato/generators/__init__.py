"""Generators: what is trained against releases, for free."""
