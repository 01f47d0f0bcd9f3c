"""Following a source: traces are scored as they arrive, and changes of their scores are noticed."""
