"""What was decided once is on every screen: random runs, as the commands print them."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

SUITE = """
import json
from pathlib import Path
from agentunit import Suite

ANSWERS = json.loads(Path("answers.json").read_text())
asked = {}

def agent(query):
    n = asked[query] = asked.get(query, -1) + 1
    answers = ANSWERS[query]
    answer = answers[min(n, len(answers) - 1)]
    if answer is None:
        raise ValueError("down")
    return answer

cases = [{"id": name, "query": name, "expected_output": "yes", "metadata": {"contains": "e"}} for name in ANSWERS]
suite = Suite(cases, agent, metrics=["exact_match", "contains"], gates=GATES, agent_version="1")
"""
GATES = ([], ["exact_match >= 0.5"], ["contains all >= 1"], ["exact_match >= 0.2", "contains >= 0.9"])


def write_answers(source: random.Random, n_cases: int, share_failing: float) -> None:
    answers = {}
    for n in range(n_cases):
        fails = source.random() < share_failing
        answers[f"c{n}"] = source.choices(["yes", "never", "no", None], k=3) if fails else [f"e{n}", "yes"][n % 2 :]
    Path("answers.json").write_text(json.dumps(answers))


@pytest.mark.parametrize("seed", range(8))
def test_run_show_runs_and_export_say_the_same(seed, invoke):
    source = random.Random(seed)
    Path("suite.py").write_text(SUITE.replace("GATES", repr(source.choice(GATES))))

    def printed(*arguments: str) -> str:
        return " ".join(invoke(*arguments).stdout.split())

    n_cases = source.randint(1, 12)
    write_answers(source, n_cases, 0.2)
    printed("run", "suite.py", "--name", "old")
    write_answers(source, n_cases, source.choice([0.1, 0.5, 1.0]))
    options = ["--tries", source.choice(["1", "3", "20"])] if seed % 2 else ["--limit", "3"]
    run = printed("run", "suite.py", "--name", "new", "--baseline", "old", *options)
    headline = next(each["headline"] for each in json.loads(printed("runs", "--json")) if each["name"] == "new")
    assert headline in run
    assert headline in printed("show", "new")
    listed = {run["name"]: run["verdict"] for run in json.loads(printed("runs", "--json"))}
    assert (listed["new"] or "").upper() == re.match("[A-Z ]*", headline)[0].strip()
    printed("export", "new", "--to", "new.json")
    assert json.dumps(headline, ensure_ascii=False) in Path("new.json").read_text()
    assert headline in printed("show", "new.json")
    assert headline in printed("show", "new")
