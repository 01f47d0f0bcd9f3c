"""Scoring: records in, scores out."""
