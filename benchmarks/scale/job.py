"""The process that is measured: ``python -m benchmarks.scale.job OUT JOBS METRICS FILE…`` scores files as users do.

``JOBS`` 0 is one process without ``--jobs``, and ``ray:2`` two tasks of Ray at once. ``OUT`` may be ``none``.
Prints its figures as one JSON object.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from agentunit.cli.main import cli
from benchmarks.speed.peak_memory import peak_bytes
from benchmarks.speed.recordings import write_recordings

_WARM_UP_RECORDS = 20
_TIMES = ("elapsed_s", "created_at", "sources")


def score(files: list[str], out: str, jobs: str, metrics: str, printed: str) -> None:
    """Score files to a file of lines, with the summary as JSON on the standard output, which goes to ``printed``."""
    arguments = ["score", *files, "-m", metrics, "--json", *(["--out", out] if out != "none" else []), *_way(jobs)]
    kept = os.dup(1)
    with open(printed, "wb") as file:
        os.dup2(file.fileno(), 1)
        try:
            cli(arguments, standalone_mode=False)
        finally:
            sys.stdout.flush()
            os.dup2(kept, 1)
            os.close(kept)


def _way(jobs: str) -> list[str]:
    engine, _, n_jobs = jobs.rpartition(":")
    return [*(["--engine", engine] if engine else []), *(["--jobs", n_jobs] if n_jobs != "0" else [])]


def main(out: str, jobs: str, metrics: str, *files: str) -> None:
    """Warm up, score, and print the figures."""
    with tempfile.TemporaryDirectory() as folder:
        few = Path(folder) / "few.jsonl"
        write_recordings(few, _WARM_UP_RECORDS)
        score([str(few)], str(Path(folder) / "scores.jsonl"), "0", metrics, str(Path(folder) / "printed"))
        by_ray = _watch_ray() if jobs.startswith("ray") else None
        start_s, start_cpu_s = time.perf_counter(), _cpu_s(by_ray)
        score(list(files), out, jobs, metrics, str(Path(folder) / "printed"))
        wall_s, cpu_s = time.perf_counter() - start_s, _cpu_s(by_ray) - start_cpu_s
        summary = json.loads((Path(folder) / "printed").read_bytes())["summary"]
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    figures = {
        "wall_s": wall_s,
        "cpu_s": cpu_s,
        "n_records": summary["n_cases"],
        "peak_bytes": peak_bytes(),
        "worker_peak_bytes": children if jobs != "0" else None,
        "n_score_bytes": os.path.getsize(out) if out != "none" else None,
        "digest": _digest(out, summary),
    }
    print(json.dumps(figures))


def _cpu_s(by_ray: list[float] | None) -> float:
    """The processor time of this process, and of those it has waited for or that Ray has started."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    others = children.ru_utime + children.ru_stime if by_ray is None else sum(by_ray)
    return time.process_time() + others


def _watch_ray() -> list[float]:
    """The processor times of Ray's processes, filled in when Ray is left: not all of them are waited for."""
    import psutil

    from agentunit.addons.scale.ray_pool import RayPool

    found: list[float] = []
    leave = RayPool.__exit__

    def look_and_leave(pool: Any, *error: Any) -> None:
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                spent = process.cpu_times()
                found.append(spent.user + spent.system)
        leave(pool, *error)

    RayPool.__exit__ = look_and_leave  # type: ignore[method-assign]
    return found


def _digest(out: str, summary: dict[str, object]) -> str:
    """A digest of every line and figure but the times: equal where the results are."""
    digest = hashlib.sha256(json.dumps(_timeless(summary), sort_keys=True).encode())
    with open(out if out != "none" else os.devnull, "rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def _timeless(value: object) -> object:
    if isinstance(value, dict):
        return {key: _timeless(each) for key, each in value.items() if key not in _TIMES}
    return [_timeless(each) for each in value] if isinstance(value, list) else value


if __name__ == "__main__":
    main(*sys.argv[1:])
