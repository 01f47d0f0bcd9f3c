"""The package of examples/plugin, used as its readers would: each part through the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


def use_each_part(invoke: Callable[..., Any], tickets: Path) -> None:
    """Score, and export, with the metric, the backend, the trace format and the reporter of the example.

    ``invoke`` runs the command line in an empty folder: what it returns has ``stdout`` and ``stderr``.
    """
    findings = {each["part"]: each for each in json.loads(invoke("doctor", "--json").stdout)}
    for part in ("metric politeness", "backend shared_words", "trace format tickets", "reporter text"):
        assert findings[part]["state"] == "ok"
        assert "from agentunit-example 0.1.0" in findings[part]["note"]
    for named in ((), ("--from", "tickets")):
        scored = json.loads(invoke("score", tickets, *named, "-m", "politeness", "--json").stdout)
        (row,) = scored["summary"]["metrics"]
        assert (row["metric"], row["mean"], row["n_scored"]) == ("politeness", 0.5, 2), scored

    Path("suite.yaml").write_text(
        "name: desk\nagent: desk_agent:answer\nmetrics: [answer_correctness, politeness]\n"
        "dataset: [{id: q1, query: Where is it, expected_output: It is on its way}]\n"
    )
    Path("desk_agent.py").write_text("def answer(query):\n    return 'It is on Monday thank'\n")
    invoke("run", "suite.yaml", "--backend", "shared_words")
    said = invoke("export", "last", "--to", "run.txt")
    assert "run.txt: 2 lines" in said.stdout, said.stderr
    lines = Path("run.txt").read_text().splitlines()
    assert lines == [
        "answer_correctness [shared_words]: 0.600, 1 of 1 cases",
        "politeness [custom]: 1.000, 1 of 1 cases",
    ]
    assert invoke("export", "last", "--to", "-", "--format", "text").stdout.splitlines() == lines
