"""The benchmark of reading traces runs and fills its tables; how fast anything is is not judged here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_every_step_of_every_file_is_measured() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.traces", "--megabytes", "1", "--rounds", "1", "--memory-megabytes", "1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines() if line[:1] == "|"]
    timed = {(row[0], row[1]) for row in rows if len(row) == 7}
    steps = ("elements", "packed", "spans", "records")
    assert timed >= {(kind, step) for kind in ("openinference", "genai", "dense") for step in steps}
    read = {row[0]: int(row[2]) for row in rows if len(row) == 5 and row[0] in ("openinference", "genai")}
    assert min(read.values()) > 20


def test_public_files_are_skipped_with_a_sentence_where_there_are_none(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.traces_public"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "AGENTUNIT_DATA": str(tmp_path)},
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"skipped: no traces.tar.xz in {tmp_path}; AGENTUNIT_DATA names the folder")
