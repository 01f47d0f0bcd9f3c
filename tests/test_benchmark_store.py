"""The benchmark of stores runs and fills its table; how fast anything is is not judged here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_writing_and_the_summary_are_measured() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.store", "--records", "300", "--records", "20"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    _, *rows = [line.split() for line in done.stdout.splitlines()]
    assert [(int(row[0]), len(row)) for row in rows] == [(300, 5), (20, 5)]
    assert all(float(figure) > 0 for row in rows for figure in row[1:3])
