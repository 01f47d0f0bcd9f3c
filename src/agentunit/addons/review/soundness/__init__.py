"""Is the test itself sound? What a suite, or the runs of one, say about its own cases and checks."""
