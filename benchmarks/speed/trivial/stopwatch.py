"""How each script beside this one is timed. It runs in the peer's environment: the standard library only."""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable

_WARM_UP_CASES = 20

Scoring = Callable[[], tuple[int, float]]


def time_scoring(prepare: Callable[[int], Scoring]) -> None:
    """Time one scoring of as many cases as the command line says, and print the seconds as the last line.

    ``prepare`` builds the cases, which is not timed, and returns what scores them all and tells how many were scored
    and their mean. A first small scoring pays for imports and caches.
    """
    n_cases = int(sys.argv[1])
    prepare(min(n_cases, _WARM_UP_CASES))()
    score_all = prepare(n_cases)
    gc.collect()
    start = time.perf_counter()
    n_scored, mean = score_all()
    elapsed_s = time.perf_counter() - start
    if n_scored != n_cases or mean != 1.0:
        raise SystemExit(f"the scoring must give 1.0 for each of {n_cases} cases; it gave {mean} over {n_scored}")
    print("\n" + json.dumps({"elapsed_s": elapsed_s, "n_cases": n_cases}))
