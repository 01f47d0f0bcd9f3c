"""Labels that people gave: read, asked for, and held against the scores of metrics."""
