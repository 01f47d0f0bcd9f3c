"""What only lists runs or shows a case reads no scores of all cases."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from agentunit.engine.deciding import stored
from agentunit.engine.deciding.stored import headline_means
from agentunit.engine.scoring.scored_run import StoredRows, run_from_store
from agentunit.store._score_table import ScoreTable
from agentunit.store.sqlite import Store

SUITE = """
dataset: cases.jsonl
agent: agent:answer
metrics: [exact_match, response_time]
gates: ["exact_match >= 0.5"]
"""


@pytest.fixture
def suite(tmp_path, invoke):
    (tmp_path / "agent.py").write_text("def answer(query): return query\n")
    cases = [{"id": case_id, "query": case_id, "expected_output": case_id} for case_id in "abc"]
    (tmp_path / "cases.jsonl").write_text("\n".join(map(json.dumps, cases)))
    (tmp_path / "suite.yaml").write_text(SUITE)
    result = invoke("run", "suite.yaml")
    assert result.exit_code == 0, result.output
    return ".agentunit/runs.db"


def listed(invoke):
    return json.loads(invoke("runs", "--json").stdout)[0]["metrics"]


def test_the_list_of_runs_shows_the_means_that_were_kept(suite, invoke, monkeypatch):
    with Store(suite) as store:
        means = headline_means(run_from_store(store, "last"))
    assert set(means) == {"exact_match", "response_time"}
    monkeypatch.setattr(stored, "run_from_store", None)
    assert listed(invoke) == means
    assert "exact_match" in invoke("runs", env={"COLUMNS": "200"}).output


@pytest.mark.parametrize("change", ["goes on", "was imported", "was scored again", "of an earlier version"])
def test_means_that_may_not_be_those_of_the_scores_are_made_now(suite, invoke, monkeypatch, change):
    with Store(suite) as store:
        header = store.find_run("last")
        means = headline_means(run_from_store(store, "last"))
        (own,) = store.decisions(header.id)
        told = json.loads(bytes(own.decision))
        told["made_with"]["means"] = {"exact_match": 0.123}
        if change == "goes on":
            store.set_status(header.id, "stopped")
        elif change == "was imported":
            store.update_run(header.id, {**header.settings, "foreign": True}, n_planned=header.n_planned)
        elif change == "was scored again":
            assert invoke("score", "last", "--metrics", "exact_match").exit_code == 0
        else:
            del told["made_with"]["means"]
        own.decision = type(own.decision)(json.dumps(told).encode())
        store.add_decision(header.id, own)
    assert listed(invoke) == means


def test_a_case_is_shown_without_the_scores_of_the_others(suite, invoke, monkeypatch):
    def all_scores(*_, **__):
        pytest.fail("the scores of all cases are read")

    monkeypatch.setattr(ScoreTable, "metric_rows", all_scores)
    monkeypatch.setattr(StoredRows, "blocks", all_scores)
    shown = invoke("show", "last", "b")
    assert shown.exit_code == 0, shown.output
    assert "exact_match" in shown.output


def modules_after(*arguments):
    """The modules that a command has loaded when it ends, of a process of its own."""
    program = (
        "import sys; from agentunit.cli.main import cli\n"
        f"try: cli({list(map(str, arguments))!r})\n"
        "except SystemExit as ended: assert not ended.code\n"
        "print(*sorted(sys.modules), sep=chr(10), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


# What a Python of another version loads by itself differs by some.
@pytest.mark.parametrize(
    ("arguments", "most_own", "most", "not_needed"),
    [
        (
            ["run", "--help"],
            45,
            240,
            {"agentunit.engine.recording.runner", "agentunit.reports.terminal", "asyncio", "urllib.request", "yaml"},
        ),
        (
            ["show", "--help"],
            45,
            240,
            {"agentunit.engine.scoring.scored_run", "agentunit.reports.terminal", "asyncio", "urllib.request", "yaml"},
        ),
        (
            ["show", "last"],
            128,
            330,
            {
                "agentunit.backends.quality",
                "agentunit.engine.recording.suite",
                "agentunit.engine.scoring.slices",
                "agentunit.formulas.similarity",
                "agentunit.multiagent.team",
                "agentunit.reports.case_console",
            },
        ),
        (
            ["show", "last", "b"],
            132,
            330,
            {"agentunit.traces.reading", "agentunit.addons.review.suspects", "asyncio", "yaml"},
        ),
        (["runs"], 104, 300, {"agentunit.traces.reading", "agentunit.privacy.detectors", "asyncio", "yaml"}),
    ],
)
def test_a_command_loads_what_it_needs(suite, invoke, arguments, most_own, most, not_needed):
    loaded = modules_after(*arguments)
    assert not loaded & not_needed
    own = [name for name in loaded if name.startswith("agentunit")]
    assert len(own) <= most_own
    assert len(loaded) <= most
