"""Classifiers that are trained on private rows by noisy gradients, and their explanations."""
