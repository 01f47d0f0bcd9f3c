"""How the weights that the project ships were made: scripts with fixed seeds."""
