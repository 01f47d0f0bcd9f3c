"""Scoring: records through metrics, and what the scores of a run add up to."""
