"""A judge that bills, and a run with a spend cap that is killed again and again: it never costs more than its cap."""

from __future__ import annotations

import json
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.torture.children import Child, agentunit, wait_for
from benchmarks.torture.ledger import Trial

N_KILLS = 8
_SUPPORT = Path(__file__).parents[2] / "tests" / "support"
_USD_INPUT, _USD_OUTPUT = 2.0, 10.0
_CAP_USD = 1.5
_SUITE = """
from agentunit import DatasetCase, Suite


def answer(question):
    return f"{{question}} The capital of France is Paris."


suite = Suite(
    [DatasetCase(f"q{{n}}", f"Which one, {{n}}?", context=[f"Paris is the capital. {{n}}"]) for n in range(800)],
    agent=answer,
    metrics=[{{"faithfulness": {{"backend": "judge"}}}}],
    judge={{
        "url": {url!r}, "model": "judge-1", "cache": None, "concurrency": 8, "max_spend_usd": {cap_usd},
        "usd_per_million_input": {usd_input}, "usd_per_million_output": {usd_output},
    }},
)
"""


class PricedJudge:
    """A judge on this machine that bills every call as it comes, whether or not anybody waits for the reply."""

    def __init__(self) -> None:
        if str(_SUPPORT) not in sys.path:
            sys.path.append(str(_SUPPORT))
        self._decide = import_module("judge_decisions").decide
        self._n_tokens = import_module("judge_numbers").n_tokens
        self.server: Any = import_module("judge_server").JudgeServer(self._reply, latency_s=0.02, keep_requests=False)
        self.billed_usd = 0.0

    def _reply(self, body: dict[str, Any]) -> str:
        reply = json.dumps(self._decide(body))
        n_sent = self._n_tokens("".join(message["content"] for message in body["messages"]))
        self.billed_usd += (n_sent * _USD_INPUT + self._n_tokens(reply) * _USD_OUTPUT) / 1e6
        return reply


def cap_over_kills(trial: Trial, n_runs: int) -> None:
    """A run that a judge scores, killed at any moment and resumed: what was billed stays under the cap, and is told."""
    for number in range(n_runs):
        folder = trial.place(f"run{number}")
        judge = PricedJudge()
        with judge.server:
            prices = {"usd_input": _USD_INPUT, "usd_output": _USD_OUTPUT}
            (folder / "suite.py").write_text(_SUITE.format(url=judge.server.url, cap_usd=_CAP_USD, **prices))
            for _ in range(N_KILLS):
                _killed(trial, folder, judge)
                trial.times += 1
                trial.require(judge.billed_usd <= _CAP_USD, f"${judge.billed_usd:.4f} were billed of ${_CAP_USD}")
            child = _started(folder)
            child.end()
        trial.require(judge.billed_usd <= _CAP_USD, f"${judge.billed_usd:.4f} were billed of ${_CAP_USD}")
        trial.require("the spend cap is reached" in child.out, f"the cap was not reached: {child.out[-500:]}")
        told = re.search(r"with earlier commands \$(\d\.\d{4}) of the cap", child.out)
        trial.require(told, f"the report does not say what was spent: {child.out[-500:]}")
        assert told is not None
        trial.require(
            judge.billed_usd <= float(told[1]) <= _CAP_USD,
            f"${told[1]} are told where ${judge.billed_usd:.4f} were billed",
        )


def _started(folder: Path) -> Child:
    resume = ["--resume", "last"] if (folder / ".agentunit").exists() else []
    return Child(agentunit("run", "suite.py", "--yes", *resume), folder)


def _killed(trial: Trial, folder: Path, judge: PricedJudge) -> None:
    child = _started(folder)
    n_calls = judge.server.n_calls + trial.chance.randint(1, 40)
    wait_for(lambda: child.is_over or judge.server.n_calls >= n_calls, "the judge is not asked")
    child.kill(group=True)
    child.end()
