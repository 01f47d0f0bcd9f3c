"""Formats that hold whole conversations: each file or row becomes records without a detour through spans."""
