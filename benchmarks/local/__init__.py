"""How fast the local model opens and judges: ``python -m benchmarks.local``."""
