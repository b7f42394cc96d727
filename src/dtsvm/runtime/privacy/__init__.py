"""Differential privacy for a row: sensitivity, noise, accounting, and a budget on disk."""
