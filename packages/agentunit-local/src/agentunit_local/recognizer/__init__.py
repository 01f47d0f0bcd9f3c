"""Finds people, places and postal addresses in texts of any script with a small learned model."""
