"""Written by ``../inspect/make.py``, together with the same log as JSON."""
