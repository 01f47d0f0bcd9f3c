"""One process that makes inputs and has them read, each within its own limits.

``python -m benchmarks.torture.fuzz.worker TARGET SEED N`` prints one line of JSON for each crash, then one with how
many inputs were read. Where the process itself dies, the file ``current`` in its folder holds the input.
"""

from __future__ import annotations

import base64
import json
import os
import random
import resource
import signal
import sys
import traceback
import warnings
from pathlib import Path

from benchmarks.torture.fuzz.targets import prepare_folder, target_named

# Processor time, not the clock's: another process that is busy must not make a reader look slow.
INPUT_CPU_S = 10.0
MOST_MEMORY_BYTES = 3 << 30
_MOST_KEPT = 400
_MOST_CRASHES = 20


class TooSlow(BaseException):
    """An input took more processor time than one may."""


def _on_limit(number: int, frame: object) -> None:
    raise TooSlow


def main() -> None:
    """All inputs of a shard."""
    name, seed, n_inputs = sys.argv[1], sys.argv[2], int(sys.argv[3])
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
    signal.signal(signal.SIGPROF, _on_limit)
    target = target_named(name)
    prepare_folder()
    chance = random.Random(f"{seed}/{name}")
    seeds = target.seeds()
    known: set[str] = set()
    crashes: set[str] = set()
    current = os.open("current", os.O_RDWR | os.O_CREAT, 0o600)
    n_read = 0
    for _ in range(n_inputs):
        data = target.make(chance, seeds)
        os.pwrite(current, len(data).to_bytes(8, "little") + data, 0)
        signal.setitimer(signal.ITIMER_PROF, INPUT_CPU_S)
        try:
            seen = target.read(data)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever a reader raises that it does not declare is a crash
            signal.setitimer(signal.ITIMER_PROF, 0)
            place = _place(error)
            if place not in crashes:
                crashes.add(place)
                what = f"{type(error).__name__}: {str(error)[:300]}"
                print(json.dumps({"crash": what, "place": place, "input": base64.b64encode(data).decode()}), flush=True)
            if len(crashes) >= _MOST_CRASHES:
                break
            seen = ""
        signal.setitimer(signal.ITIMER_PROF, 0)
        n_read += 1
        if seen and seen not in known and len(seeds) < _MOST_KEPT:
            known.add(seen)
            seeds.append(data)
    print(json.dumps({"inputs": n_read, "kinds": len(known)}), flush=True)
    for left in Path("/dev/shm").glob(f"agentunit-fuzz-{os.getpid()}-*"):
        left.unlink(missing_ok=True)


def _place(error: BaseException) -> str:
    """The last lines of AgentUnit's own in a traceback: crashes at one place are one crash."""
    lines = [each for each in traceback.extract_tb(error.__traceback__) if "agentunit" in each.filename]
    return f"{type(error).__name__} " + " < ".join(
        f"{each.filename.rpartition('agentunit/')[2]}:{each.lineno}" for each in reversed(lines[-3:])
    )


if __name__ == "__main__":
    main()
