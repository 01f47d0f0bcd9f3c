"""Pictures of a team as vector drawings that need nothing but the file they are in."""
