"""Differentially private synthetic tables and images."""
