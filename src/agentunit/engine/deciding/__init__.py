"""Deciding: which cases are broken, flaky or fine, and what that makes of a run (docs/statistics.md)."""
