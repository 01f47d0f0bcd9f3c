"""The judge of the benchmark: a loopback server in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from benchmarks.speed.environments import ROOT

_SERVER = ROOT / "tests" / "support" / "judge_server.py"


def short_reply(_: dict[str, Any]) -> str:
    """What a judge says that does not read."""
    return '{"verdicts": [{"claim": 1, "verdict": "supported", "passage": 1, "quote": "agreed on the plan"}]}'


class JudgeProcess:
    """Answers after ``latency_s``; ``url`` is where. With ``reads`` it decides from what our prompts hold."""

    def __init__(self, latency_s: float, *, reads: bool = False) -> None:
        decide = "judge_decisions:decide" if reads else "benchmarks.judge.judge_process:short_reply"
        self._command = [sys.executable, str(_SERVER), "--decide", decide, "--latency-s", str(latency_s)]
        self.url = ""

    def __enter__(self) -> JudgeProcess:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.url = self._line().strip()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(60)

    def counts(self) -> dict[str, Any]:
        """How many calls there were so far (``n_calls``), and how many at once at most (``most_at_once``)."""
        assert self._process.stdin is not None
        self._process.stdin.write("counts\n")
        self._process.stdin.flush()
        found: dict[str, Any] = json.loads(self._line())
        return found

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the judge's process ended with status {self._process.wait(60)}")
        return line
