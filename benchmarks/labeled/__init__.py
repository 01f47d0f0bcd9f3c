"""Whether the labeled rate's interval holds what it says: coverage and width, on labelled sets and by simulation."""
