"""Whether the labeled rate's interval holds what it says: coverage and width, on labeled sets and by simulation."""
