"""Question 8: how much processor time does a whole run take, from the command to its summary?"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.speed.answers import Answer, Column, decimals, times
from benchmarks.speed.environments import OURS, ROOT
from benchmarks.speed.processes import ProcessFailed

BEFORE = "before"
_FILES = {
    "agent.py": "def agent(query):\n    return query.upper()\n",
    "suite.yaml": "agent: agent:agent\ndataset: cases.jsonl\nmetrics: [exact_match, response_time]\n"
    "gates: ['exact_match >= 0.5']\n",
}


def measure_whole_run(rounds: int, n_cases: int, before: Path | None = None) -> Answer:
    """Record, score and decide about trivial cases, with this working tree and with another one in turn."""
    answer = Answer(
        "whole_run",
        "A whole run of a trivial agent: processor time from the command to its summary",
        (
            Column("name", "package"),
            Column("n_cases", "cases", decimals(0)),
            Column("median", "median, s", decimals(2)),
            Column("worst", "worst, s", decimals(2)),
            Column("ratio", "to ours", times),
        ),
    )
    trees = {OURS: ROOT} | ({} if before is None else {BEFORE: before})
    with tempfile.TemporaryDirectory() as folder:
        # The first run of each compiles its modules, and is not counted.
        for tree in trees.values():
            _cpu_s(tree, 1, folder)
        timings: dict[str, list[float]] = {name: [] for name in trees}
        for _ in range(rounds):
            for name, tree in trees.items():
                timings[name].append(_cpu_s(tree, n_cases, folder))
    for name, taken in timings.items():
        answer.add(name=name, n_cases=n_cases, median=statistics.median(taken), worst=max(taken))
    answer.compare("median", OURS)
    answer.remarks.append(
        f"User and system time of {rounds} fresh processes each, in turn, importing included. The row '{BEFORE}' is "
        "the checkout that --before names."
    )
    return answer


def _cpu_s(tree: Path, n_cases: int, compiled: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        for name, text in _FILES.items():
            Path(folder, name).write_text(text, encoding="utf-8")
        cases = ({"id": f"c{n}", "query": f"hello {n}", "expected_output": f"HELLO {n}"} for n in range(n_cases))
        Path(folder, "cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases), encoding="utf-8")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        environment |= {"PYTHONPATH": os.pathsep.join([str(tree / "src"), folder]), "PYTHONPYCACHEPREFIX": compiled}
        earlier = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "agentunit", "run", "suite.yaml"]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise ProcessFailed((done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1][:200])
    return used.ru_utime + used.ru_stime - earlier.ru_utime - earlier.ru_stime
