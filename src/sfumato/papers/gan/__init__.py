"""Adversarial baselines."""
