"""The tests of other tools as datasets and metrics."""
