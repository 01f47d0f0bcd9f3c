"""Written by ``../autogen/make.py``, together with the result of the same run."""
