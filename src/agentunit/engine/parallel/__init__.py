"""Scoring on every core: the input is cut into units of work, and their results are added up in its order."""

from __future__ import annotations

import os
from importlib.util import find_spec

from agentunit.installation import install_command


def engine_problem(engine: object) -> str | None:
    """What is wrong with the name of an engine, or lacks here to use it; ``None`` when nothing is.

    >>> engine_problem("spark")
    "must be ray, or ray://HOST:PORT; received 'spark'"
    """
    if engine != "ray" and not (isinstance(engine, str) and engine.startswith("ray://") and engine != "ray://"):
        return f"must be ray, or ray://HOST:PORT; received {engine!r}"
    return f"needs the extra ray: {install_command('ray')}" if find_spec("ray") is None else None


def usable_processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
