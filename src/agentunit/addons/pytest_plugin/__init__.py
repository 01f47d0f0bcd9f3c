"""What the pytest plugin imports when a test uses it, and not before."""
