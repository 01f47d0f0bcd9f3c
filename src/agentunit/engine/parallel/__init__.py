"""Scoring on every core: the input is cut into units of work, and their results are added up in its order."""

from __future__ import annotations

import os


def usable_processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
