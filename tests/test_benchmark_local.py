"""The benchmark of the local model runs and fills its table; how fast anything is is not judged here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_every_row_is_measured() -> None:
    command = [sys.executable, "-m", "benchmarks.local", "--cases", "20", "--rounds", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines() if line[:1] == "|"]
    assert [row[0] for row in rows[2:]] == [
        "import and open, s",
        "pairs of about 256 tokens a second, one core",
        "short cases a second, 20 cases",
        "peak memory, 2 cases, MiB",
        "peak memory, 20 cases, MiB",
        "sentences a second of CPU, a bare loop of ONNX Runtime",
        "the same from texts",
    ]
    assert all(float(row[1]) > 0 for row in rows[2:])
