"""One measurement in this process: ``python stage.py WHAT WORK SECONDS``.

Runs in CodeCarbon's environment, which has AgentUnit as well.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

_BURN = "import time\nend = time.process_time() + {cpu_s}\nwhile time.process_time() < end: pass"


def busy(seconds: float) -> None:
    """One processor, all the time."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def children(seconds: float) -> None:
    """Two processes below this one."""
    started = [subprocess.Popen([sys.executable, "-c", _BURN.format(cpu_s=seconds / 2)]) for _ in range(2)]
    for each in started:
        each.wait()


def detached(seconds: float) -> None:
    """A process that has left its starter, as a daemon has; it closes the pipe when it ends."""
    reading, writing = os.pipe()
    code = f"import os\nif os.fork(): os._exit(0)\nos.setsid()\n{_BURN.format(cpu_s=seconds / 2)}"
    subprocess.run([sys.executable, "-c", code], pass_fds=[writing], check=True)
    os.close(writing)
    os.read(reading, 1)
    os.close(reading)


def mostly_waiting(seconds: float) -> None:
    """As an agent that waits for its model: a tenth of the time at work."""
    for _ in range(10):
        busy(seconds / 100)
        time.sleep(9 * seconds / 100)


WORK = {
    "busy": busy,
    "children": children,
    "detached": detached,
    "waiting": mostly_waiting,
    "idle": time.sleep,
}


@contextmanager
def ours(found: dict[str, Any]) -> Iterator[None]:
    from agentunit.core.trace import TraceLog
    from agentunit.probes import measure

    trace = TraceLog()
    with measure(trace, sample_interval=1.0):
        yield
    use = trace.metadata["resource_use"]
    found["ours"] = {
        key: use[key] for key in ("energy_kwh", "energy_min_kwh", "energy_max_kwh", "cpu_kwh", "cpu_s", "cpu_method")
    }


@contextmanager
def theirs(found: dict[str, Any]) -> Iterator[None]:
    from codecarbon import OfflineEmissionsTracker

    logging.getLogger("codecarbon").setLevel(logging.CRITICAL)
    tracker = OfflineEmissionsTracker(
        country_iso_code="FRA",
        measure_power_secs=1,
        tracking_mode="process",
        save_to_file=False,
        log_level="critical",
        allow_multiple_runs=True,
    )
    tracker.start()
    yield
    tracker.stop()
    data = tracker.final_emissions_data
    found["theirs"] = {"energy_kwh": data.energy_consumed, "cpu_kwh": data.cpu_energy, "memory_kwh": data.ram_energy}


def main() -> None:
    """Measure one thing and print what was found."""
    what, work, seconds = sys.argv[1], WORK[sys.argv[2]], float(sys.argv[3])
    found: dict[str, Any] = {}
    if what == "both":
        with theirs(found), ours(found):
            work(seconds)
    else:
        measuring = {"ours": ours(found), "theirs": theirs(found), "nobody": nullcontext()}[what]
        imported = time.perf_counter()
        with measuring:
            found["start_s"] = time.perf_counter() - imported
            # The first second is that of starting up.
            time.sleep(1.0)
            before, wall = time.process_time(), time.perf_counter()
            work(seconds)
            found["cpu_percent"] = 100 * (time.process_time() - before) / (time.perf_counter() - wall)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
