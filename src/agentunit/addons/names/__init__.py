"""People and places in texts, beyond what patterns find."""
