"""A run: recorded, scored, decided, labeled, in one process or many."""
