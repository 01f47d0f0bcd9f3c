"""Pairs of claims about a text, one true and one with a single thing changed, made from sentences of our own."""
