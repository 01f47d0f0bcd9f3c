"""Recording: an agent on the cases of a suite, and the run from its first case to its decision."""
