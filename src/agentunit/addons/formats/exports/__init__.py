"""Spans as other tools export them."""
