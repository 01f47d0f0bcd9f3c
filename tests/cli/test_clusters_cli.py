from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from viewer_client import report_text

SUITE = """
dataset: cases.jsonl
agent: clustered_agent:answer
metrics: [exact_match]
gates: ["exact_match >= 0.5"]
cluster: metadata.customer
"""


@pytest.fixture
def suite(invoke, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    cases = [
        {"id": str(n), "query": str(n), "expected_output": "yes", "metadata": {"customer": n // 5, "kind": n % 2}}
        for n in range(40)
    ]
    Path("cases.jsonl").write_text("\n".join(map(json.dumps, cases)))
    Path("clustered_agent.py").write_text("def answer(query):\n    return 'no' if int(query) < 10 else 'yes'\n")
    Path("suite.yaml").write_text(SUITE)
    return invoke


def test_tables_say_that_intervals_are_over_clusters(suite):
    line = "intervals are over 8 clusters of metadata.customer, not over cases"
    assert line in suite("run", "suite.yaml").stdout
    assert line in suite("show", "last").stdout
    assert suite("export", "last", "--to", "run.json").exit_code == 0
    assert line in suite("show", "run.json").stdout
    assert suite("export", "last", "--to", "run.md").exit_code == 0
    assert line in Path("run.md").read_text()
    assert suite("export", "last", "--to", "run.html").exit_code == 0
    assert line in report_text("run.html")
    rows = json.loads(suite("show", "last", "--by", "metadata.kind", "--json").stdout)["slices"]["rows"]
    assert {row["interval"] for row in rows} == {"cluster t"}


def test_running_until_decided_takes_a_cluster_for_one_piece_of_evidence(suite):
    result = suite("run", "suite.yaml", "--repeats", "auto", "--seed", "1", "--json")
    data = json.loads(result.stdout)
    # 30 of 40 cases pass, but they are 6 of 8 customers: not enough to speak for other customers.
    assert data["run"]["n_done"] > 40
    assert (result.exit_code, "for these cases" in data["gates"][0]["reason"]) == (0, True)
    Path("suite.yaml").write_text(SUITE.replace("cluster: metadata.customer", ""))
    result = suite("run", "suite.yaml", "--resume", "last")
    assert (result.exit_code, "begun with other clusters" in result.stderr) == (3, True)
