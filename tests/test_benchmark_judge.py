"""The benchmark of the judge's client runs and fills its tables; how fast anything is is not judged here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_every_way_is_measured_and_a_second_run_makes_no_call() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.judge", "--rounds", "1", "--shrink", "100"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines() if line[:1] == "|"]
    throughput = {row[0]: row for row in rows if len(row) == 9}
    assert throughput["agentunit, the client alone"][1:3] == ["20", "0.08"]
    assert throughput["agentunit.score, faithfulness"][1:3] == ["40", "0.16"]
    second = [row for row in rows if len(row) == 5 and row[0].startswith("agentunit")]
    assert [(row[1], row[2], row[4]) for row in second] == [("20", "0", "met (no call)"), ("40", "0", "met (no call)")]
    assert [row[1] for row in rows if len(row) == 3 and row[0].startswith("agentunit")] == ["20", "80", "20", "80"]
