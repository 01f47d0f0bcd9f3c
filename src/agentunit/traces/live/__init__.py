"""Spans captured while an agent works."""
