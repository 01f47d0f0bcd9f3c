"""The benchmark of the multi-agent measures runs and fills its tables; how fast anything is is not judged here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_every_size_is_measured_and_agrees_with_networkx() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.multiagent", "--rounds", "1", "--shrink", "25"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines() if line[:1] == "|"]
    targets = [row for row in rows if len(row) == 5 and "≤" in row[4]]
    assert [row[0] for row in targets] == [
        "4,000 interactions among 50 agents",
        "full mesh of 16 agents, a message on each connection",
        "200 agents, ten connections each",
    ]
    growth = [row for row in rows if len(row) == 6 and row[0] in ("mesh", "sparse", "chain")]
    assert len(growth) == 10
    assert {row[5] for row in growth} == {"yes"}
