"""Trust beside scores that the shipped figures say nothing about: evidence of tool results, or informational ones."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner
from kept_records import add_record

from agentunit import DatasetCase, Outcome, Record, TraceLog
from agentunit.addons.scale.parallel.work import Collector
from agentunit.addons.scale.table_output import write_parquet
from agentunit.cli.main import cli
from agentunit.core.results import CaseScores, MetricResult, MetricSummary, Score
from agentunit.engine.deciding.gates import evaluate_gates
from agentunit.engine.scoring.aggregate import MetricAggregate
from agentunit.engine.scoring.scored_run import run_from_file, run_from_store
from agentunit.metrics.builtin import FaithfulnessMetric
from agentunit.metrics.evidence import NOT_MEASURED
from agentunit.metrics.inputs import Item
from agentunit.reports.reported_run import open_run
from agentunit.store.portable import export_run
from agentunit.store.sqlite import Store

ALL = "unmeasured (evidence: tool results)"
INFO = FaithfulnessMetric.info


def score_of(on_tools: bool, backend: str = "local") -> Score:
    detail: dict[str, Any] = {"answer": "x", "references": ["x"]}
    result = MetricResult("faithfulness", 0.5, {**detail, "evidence_note": NOT_MEASURED} if on_tools else detail)
    return Score(result, "ok", backend, INFO.version, 0.0)


def streamed(scores: list[Score]) -> MetricSummary:
    return streamed_rows(scores)[0]


def streamed_rows(scores: list[Score]) -> list[MetricSummary]:
    aggregate = MetricAggregate("faithfulness", INFO)
    for number, score in enumerate(scores):
        aggregate.add(f"q{number}", score)
    return aggregate.rows()


def by_workers(scores: list[Score]) -> MetricSummary:
    return worker_rows(scores)[0]


def worker_rows(scores: list[Score]) -> list[MetricSummary]:
    collector = Collector({INFO.name: INFO}, 0, by=None, with_lines=False)
    for number, score in enumerate(scores):
        collector.add(
            CaseScores(f"q{number}", number, {"faithfulness": score}), Item(DatasetCase(f"q{number}"), TraceLog(), None)
        )
    block = collector.block([], 0, 0)[0]
    aggregate = MetricAggregate("faithfulness", INFO)
    (made,) = block.scores
    made.positions, made.repeats = range(len(scores)), [0] * len(scores)
    aggregate.add_block(made, lambda position, repeat: block.case_ids[position])
    return aggregate.rows()


def stored(store: Store, scores: list[Score], repeats: int = 1) -> str:
    run_id = store.create_run("run", agentunit_version="1", settings={}).id
    for number, score in enumerate(scores):
        for repeat in range(repeats):
            record = Record(DatasetCase(f"q{number}"), TraceLog(), Outcome(output="x"))
            add_record(store, run_id, number, repeat, record, failed=False, elapsed_s=0.0)
            store.add_scores(run_id, number, repeat, {"faithfulness": score})
    store.set_status(run_id, "finished")
    return run_id


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    with Store(".agentunit/runs.db") as opened:
        yield opened


def every_path(store: Store, scores: list[Score], tmp_path: Any) -> dict[str, str | None]:
    run_id = stored(store, scores)
    export_run(store, run_id, tmp_path / "run.json")
    write_parquet(open_run(run_id, store), tmp_path / "run.parquet")
    runs = {
        "store": run_from_store(store, run_id),
        "file": run_from_file(tmp_path / "run.json"),
        "table": run_from_file(tmp_path / "run.parquet"),
        "repeats": run_from_store(store, stored(store, scores, repeats=2)),
    }
    found = {name: run.summary().metrics[0].trust for name, run in runs.items()}
    return {**found, "streamed": streamed(scores).trust, "workers": by_workers(scores).trust}


def test_scores_on_tool_results_alone_are_unmeasured_wherever_they_are_added_up(store, tmp_path):
    assert set(every_path(store, [score_of(True)] * 4, tmp_path).values()) == {ALL}


def test_a_mixed_run_says_for_how_many_scores(store, tmp_path):
    found = every_path(store, [score_of(True), *[score_of(False)] * 3], tmp_path)
    assert found.pop("repeats", "").endswith("on given context; mean off by up to 0.4; 2 of 8 " + ALL)
    assert {each.partition("; mean off by up to 0.4; ")[2] for each in found.values()} == {f"1 of 4 {ALL}"}


def test_context_keeps_the_figure_and_other_backends_what_they_say(store, tmp_path):
    assert all("unmeasured" not in each for each in every_path(store, [score_of(False)] * 4, tmp_path).values())
    assert streamed([score_of(True, "judge")]).trust == "unmeasured"


WHY = "the text is in 'de'"


def german() -> Score:
    # With evidence that was not measured either: the first reason is enough.
    detail = {"informational": WHY, "evidence_note": NOT_MEASURED}
    return Score(MetricResult("faithfulness", 0.25, detail), "informational", "local", INFO.version, 0.0)


def test_a_row_of_informational_scores_says_why_wherever_they_are_added_up(store, tmp_path):
    scores = [score_of(False)] * 3 + [german()]
    run_id = stored(store, scores)
    export_run(store, run_id, tmp_path / "run.json")
    write_parquet(open_run(run_id, store), tmp_path / "run.parquet")
    runs = [
        run_from_store(store, run_id),
        run_from_file(tmp_path / "run.json"),
        run_from_file(tmp_path / "run.parquet"),
        run_from_store(store, stored(store, scores, repeats=2)),
    ]
    found = [run.summary().metrics for run in runs] + [streamed_rows(scores), worker_rows(scores)]
    for ordinary, informational in found:
        assert (ordinary.status, ordinary.informational) == ("ok", None)
        assert (informational.status, informational.informational) == ("informational", WHY)
        assert (informational.trust, informational.n_unmeasured) == ("unmeasured", 0)


def test_a_gate_and_every_report_show_one_number_and_why_a_score_is_left_out(store, tmp_path):
    run_id = stored(store, [score_of(False)] * 9 + [german()])
    said = f"1 of 10 scores is informational and left out: {WHY}"
    # As bad as can be, the score that is left out would make the mean 0.45.
    gate = ["-g", "faithfulness >= 0.45"]
    shown = CliRunner().invoke(cli, ["gate", run_id, *gate], catch_exceptions=False)
    assert shown.exit_code == 0
    assert said in " ".join(shown.output.split())
    CliRunner().invoke(cli, ["export", run_id, "--to", "run.md", *gate], catch_exceptions=False)
    rows = [line for line in (tmp_path / "run.md").read_text().splitlines() if line.startswith("| `faithfulness`")]
    assert ["met" in row for row in rows] == [True, False]
    assert ["0.50 [0.50, 0.50]" in row for row in rows] == [True, False]
    legend = f"1 of 10 scores of faithfulness by local is informational: {WHY}; gates leave it out"
    assert legend in (tmp_path / "run.md").read_text()
    named = ["-g", "faithfulness[local] >= 0.4"]
    CliRunner().invoke(cli, ["export", run_id, "--to", "named.md", *named], catch_exceptions=False)
    [row, _] = [
        line for line in (tmp_path / "named.md").read_text().splitlines() if line.startswith("| `faithfulness`")
    ]
    assert "met (0.47 of 10 scores)" in row


def test_gates_and_reports_say_it(store, tmp_path):
    run_id = stored(store, [score_of(True)] * 4)
    [verdict] = evaluate_gates(run_from_store(store, run_id), ["faithfulness >= 0.4"])
    assert (verdict.verdict, verdict.note) == ("pass", ALL)
    for name in ("run.md", "run.html"):
        CliRunner().invoke(cli, ["export", run_id, "--to", name], catch_exceptions=False)
        assert ALL in (tmp_path / name).read_text(), name
    for command in (["show", run_id, "--all"], ["gate", run_id, "--json", "-g", "faithfulness >= 0.4"]):
        assert ALL in CliRunner().invoke(cli, command, catch_exceptions=False).output, command
