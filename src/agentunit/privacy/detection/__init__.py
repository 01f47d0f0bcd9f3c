"""What the pattern detector is made of: tables of patterns with checks, names, and postal addresses."""
