"""Datasets: where cases come from."""
