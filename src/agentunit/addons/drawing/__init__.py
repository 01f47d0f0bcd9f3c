"""Pictures of a team, for notebooks and files."""
