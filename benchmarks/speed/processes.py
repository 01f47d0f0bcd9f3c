"""Running what is measured: each in a process of its own, with nothing of the caller's environment but the path."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.speed.environments import ROOT

_TIMEOUT_S = 600
_KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT", "LD_LIBRARY_PATH")
# Peers report home unless told not to; none of them is given a key or an address either.
_STAY_HOME = {
    "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
    "DEEPEVAL_NO_INSPECT_PROMPT": "1",
    "RAGAS_DO_NOT_TRACK": "true",
    "LOGFIRE_SEND_TO_LOGFIRE": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "HF_HUB_OFFLINE": "1",
    "DO_NOT_TRACK": "1",
}

OUR_PYTHON = Path(sys.executable)


class ProcessFailed(RuntimeError):
    """A measured process ended badly; the message is its last line."""


@dataclass(frozen=True)
class Spread:
    """Several timings of one thing. The best is the figure; the worst says how noisy the machine was."""

    best: float
    worst: float
    rounds: int

    @classmethod
    def of(cls, timings: list[float]) -> Spread:
        """The best and the worst of some timings."""
        return cls(min(timings), max(timings), len(timings))


def wall_s(python: Path, *arguments: str) -> float:
    """How long a process takes from start to end."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        _run(python, arguments, Path(folder))
        return time.perf_counter() - start


def figures_of(python: Path, *arguments: str) -> dict[str, Any]:
    """What a process says about itself: the JSON object on the last line it prints."""
    with tempfile.TemporaryDirectory() as folder:
        printed = _run(python, arguments, Path(folder))
    figures: dict[str, Any] = json.loads(printed.strip().splitlines()[-1])
    return figures


def _run(python: Path, arguments: tuple[str, ...], folder: Path) -> str:
    environment = {key: os.environ[key] for key in _KEPT if key in os.environ}
    environment.update(_STAY_HOME, HOME=str(folder), PYTHONPATH="")
    if python == OUR_PYTHON:
        # The working tree is what is measured, whatever version happens to be installed.
        environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    try:
        done = subprocess.run(
            [str(python), *arguments],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ProcessFailed(f"not done after {_TIMEOUT_S} s") from None
    if done.returncode != 0:
        lines = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()
        raise ProcessFailed(lines[-1][:200])
    return done.stdout
