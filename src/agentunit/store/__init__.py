"""Runs on disk: what an agent did, and what metrics said about it."""
