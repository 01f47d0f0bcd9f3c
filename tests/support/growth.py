"""How the CPU time of something grows with its input, on a machine that does other things as well."""

from __future__ import annotations

import time
from collections.abc import Callable


def growth(action: Callable[[int], object], size: int, times: int = 4) -> float:
    """How many times as long an input takes that is ``times`` as large: about ``times`` where that is linear."""
    action(size)
    return _cpu_s(action, size * times) / max(_cpu_s(action, size), 1e-4)


def _cpu_s(action: Callable[[int], object], size: int) -> float:
    taken = []
    for _ in range(3):
        started_s = time.process_time()
        action(size)
        taken.append(time.process_time() - started_s)
    return min(taken)
