"""The package of examples/plugin, used as its readers would: each part through the command line."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch


def use_each_part(invoke: Callable[..., Any], tickets: Path) -> None:
    """Use each part of the example, and look for it in the doctor's list.

    ``invoke`` runs the command line in an empty folder: what it returns has ``stdout`` and ``stderr``.
    """
    findings = {each["part"]: each for each in json.loads(invoke("doctor", "--json").stdout)}
    for part in (
        "metric politeness",
        "backend shared_words",
        "trace format tickets",
        "reporter text",
        "command longest",
        "detector customer_numbers",
        "store team",
    ):
        assert findings[part]["state"] == "ok"
        assert "from agentunit-example 0.1.0" in findings[part]["note"]
    for named in ((), ("--from", "tickets")):
        scored = json.loads(invoke("score", tickets, *named, "-m", "politeness", "--json").stdout)
        (row,) = scored["summary"]["metrics"]
        assert (row["metric"], row["mean"], row["n_scored"]) == ("politeness", 0.5, 2), scored

    Path("suite.yaml").write_text(
        "name: desk\nagent: desk_agent:answer\n"
        "metrics: [answer_correctness, politeness, {pii_leakage: {backend: customer_numbers}}]\n"
        "dataset: [{id: q1, query: Where is it, expected_output: It is on its way}]\n"
    )
    Path("desk_agent.py").write_text("def answer(query):\n    return 'It is on Monday thank'\n")
    invoke("run", "suite.yaml", "--backend", "shared_words")
    said = invoke("export", "last", "--to", "run.txt")
    assert "run.txt: 3 lines" in said.stdout, said.stderr
    lines = Path("run.txt").read_text().splitlines()
    assert lines == [
        "answer_correctness [shared_words]: 0.600, 1 of 1 cases",
        "politeness [custom]: 1.000, 1 of 1 cases",
        "pii_leakage [customer_numbers]: 1.000, 1 of 1 cases",
    ]
    assert invoke("export", "last", "--to", "-", "--format", "text").stdout.splitlines() == lines

    shown = invoke("longest", tickets, "--count", "1").stdout
    assert shown == "44 characters, T-1: It arrives on Monday. Thank you for waiting.\n"
    assert "longest" in invoke("--help").stdout

    Path("asked.jsonl").write_text('{"case": {"id": "q1"}, "outcome": "I wrote to ada@example.org about CN-204518."}\n')
    invoke("convert", "--mask", "asked.jsonl", "--backend", "customer_numbers", "--out", "masked.jsonl")
    assert "I wrote to <EMAIL_1> about <ACCOUNT_1>." in Path("masked.jsonl").read_text()

    with patch.dict(os.environ, {"TEAM_RUNS": os.getcwd()}):
        invoke("run", "suite.yaml", "--backend", "shared_words", "--store", "team://desk")
        listed = json.loads(invoke("runs", "--store", "team://desk", "--json").stdout)
    assert [each["name"] for each in listed] == ["desk"]
    assert Path("desk.db").exists()
