"""What traces lack, and the settings that would add it."""
