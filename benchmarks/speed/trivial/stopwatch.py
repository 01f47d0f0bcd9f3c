"""How each script beside this one is timed. It runs in the peer's environment: the standard library only."""

from __future__ import annotations

import gc
import json
import resource
import sys
import time
from collections.abc import Callable

_WARM_UP_CASES = 20

Scoring = Callable[[], tuple[int, float]]
Recording = Callable[[], tuple[int, float | None]]


def time_scoring(prepare: Callable[[int], Scoring]) -> None:
    """Time one scoring of as many cases as the command line says, and print the processor time as the last line.

    ``prepare`` builds the cases, which is not timed, and returns what scores them all and tells how many were scored
    and their mean. A first small scoring pays for imports and caches.
    """
    _time(prepare, 1.0)


def time_recording(prepare: Callable[[int, bool], Recording]) -> None:
    """Time an agent on as many cases as the command line says, with scoring if it also says ``scored``.

    ``prepare`` builds the cases and returns what records them all on disk and tells how many cases were answered and,
    if they were scored, their mean.
    """
    scored = "scored" in sys.argv[2:]
    _time(lambda n_cases: prepare(n_cases, scored), 1.0 if scored else None)


def _time(prepare: Callable[[int], Recording], expected_mean: float | None) -> None:
    n_cases = int(sys.argv[1])
    prepare(min(n_cases, _WARM_UP_CASES))()
    do_all = prepare(n_cases)
    gc.collect()
    start_s = _cpu_s()
    n_done, mean = do_all()
    cpu_s = _cpu_s() - start_s
    if n_done != n_cases or mean != expected_mean:
        raise SystemExit(f"{n_cases} cases must be done with a mean of {expected_mean}; {n_done} were, with {mean}")
    print("\n" + json.dumps({"cpu_s": cpu_s, "n_cases": n_cases}))


def _cpu_s() -> float:
    """What this process took of the processor, with its threads and the processes that it started and that ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime
