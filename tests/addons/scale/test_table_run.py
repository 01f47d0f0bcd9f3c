from __future__ import annotations

import sys
from dataclasses import replace

import msgspec
import pytest
from kept_records import add_record

import agentunit
from agentunit import DatasetCase, MetricResult, Outcome, Record, Score, TraceLog
from agentunit.addons.scale._parquet_table import new_header
from agentunit.addons.scale.table_output import write_parquet
from agentunit.addons.scale.table_run import ScoreTableWriter
from agentunit.core.results import CaseScores, InputError
from agentunit.datasets.demo import demo_records
from agentunit.engine.deciding.compare import compare_runs
from agentunit.engine.deciding.decision import decide_run
from agentunit.engine.scoring.score_rows import COLUMNS
from agentunit.engine.scoring.scored_run import infos_as_data, run_from_file, run_from_store
from agentunit.metrics.base import MetricInfo
from agentunit.reports.reported_run import open_run, open_run_file
from agentunit.store.portable import export_run
from agentunit.store.sqlite import Store

METRICS = ["task_success", "answer_correctness", "cost", "carbon_emissions"]
GATES = ["task_success[outcome] >= 0.9", "cost p95 <= 0.01", "answer_correctness all >= 0.5"]


def kept(store, name, repeats, *, change=lambda record: record):
    """The bundled recording as a run, with a failed case, one without scores, and the amounts of its metrics."""
    metrics = agentunit.resolve_metrics(METRICS)
    settings = {"gates": GATES, "metric_infos": infos_as_data(metrics), "metrics": METRICS, "max_errors": 3}
    settings["cluster"] = {"field": "customer", "by_position": [place // 3 for place in range(25)]}
    header = store.create_run(name, agentunit_version="1", settings=settings, run_id=name)
    records = [change(each) for each in demo_records() if isinstance(each, Record)][:20]
    for repeat in range(repeats):
        for case in agentunit.score(records, metrics):
            add_record(store, name, case.index, repeat, records[case.index], failed=False, elapsed_s=1.5)
            store.add_scores(name, case.index, repeat, case.scores)
    failed = Record(DatasetCase("hung"), TraceLog(), Outcome(error="no answer"))
    add_record(store, name, 20, 0, failed, failed=True, elapsed_s=5.0)
    store.add_scores(name, 20, 0, next(iter(agentunit.score([failed], metrics))).scores)
    add_record(store, name, 21, 0, Record(DatasetCase("not-scored")), failed=False, elapsed_s=0.1)
    store.set_status(header.id, "finished", finished_at=2e9)


def worse(record):
    if record.case.id in ("desk-001", "desk-002", "desk-003") and isinstance(record.outcome, Outcome):
        return msgspec.structs.replace(record, outcome=msgspec.structs.replace(record.outcome, success=False))
    return record


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs, each of a store, of a portable file and of a score table."""
    folder = tmp_path_factory.mktemp("runs")
    with Store(folder / "runs.db") as store:
        kept(store, "old", 1)
        kept(store, "new", 2, change=worse)
        for name in ("old", "new"):
            write_parquet(open_run(name, store, show_personal_data=True), folder / f"{name}.parquet")
            export_run(store, name, folder / f"{name}.json")
        return {
            name: (
                run_from_store(store, name),
                *(run_from_file(folder / f"{name}.{kind}") for kind in ("json", "parquet")),
            )
            for name in ("old", "new")
        }, folder


@pytest.mark.parametrize("name", ["old", "new"])
def test_a_table_is_the_run_of_the_store(runs, name):
    of_store, _, of_table = runs[0][name]
    assert of_table.metrics == of_store.metrics
    assert list(of_table.metrics) == list(of_store.metrics)
    assert of_table.records == of_store.records
    assert (of_table.n_cases, of_table.n_records, of_table.n_failed) == (22, 22 if name == "old" else 42, 1)
    assert of_table.n_repeats == of_store.n_repeats
    assert of_table.infos == of_store.infos
    assert of_table.summary() == of_store.summary()
    assert of_table.read_records is None


def test_and_its_verdicts_are_the_same(runs):
    decided = [decide_run(each) for each in runs[0]["new"]]
    # Why a check fails is read from records, and a table has none.
    assert replace(decided[2], findings=()) == replace(decided[0], findings=())
    said = [[replace(finding, why="") for finding in each.findings] for each in decided]
    assert said[0] == said[1] == said[2]
    assert all(finding.why for finding in decided[2].findings)
    assert decided[0].exit_code == 1
    compared = [compare_runs(new, old) for new, old in zip(runs[0]["new"], runs[0]["old"], strict=True)]
    # The answers of the cases that changed are in no table.
    assert compared[2].metrics == compared[0].metrics
    assert {each.case_id for each in compared[2].differences} == {each.case_id for each in compared[0].differences}


def test_rows_are_the_same_wherever_a_run_is_kept(runs):
    of_store, of_file, of_table = (each.to_rows() for each in runs[0]["new"])
    assert of_store == of_file == of_table
    assert tuple(of_store[0]) == COLUMNS
    by_case = {(row["case_id"], row["metric"]): row for row in of_store}
    assert by_case["not-scored", None]["agent_failed"] is False
    assert (by_case["hung", "cost"]["agent_failed"], by_case["hung", "cost"]["agent_elapsed_s"]) == (True, 5.0)
    assert by_case["hung", "cost"]["reason"]
    scored = by_case["desk-001", "cost"]
    assert (scored["run"], scored["position"], scored["repeat"]) == ("new", 0, 2)
    assert msgspec.json.decode(scored["detail"])["cost"] == scored["value"]


def test_a_table_of_a_table_is_the_same(runs):
    _, folder = runs
    write_parquet(open_run_file(folder / "new.parquet", show_personal_data=True), folder / "again.parquet")
    again, first = run_from_file(folder / "again.parquet"), runs[0]["new"][2]
    assert again.to_rows() == first.to_rows()
    assert again.header == first.header


def test_what_a_judge_took_is_read_from_the_details(tmp_path):
    judged = {"judge": {"model": "m", "calls": 2, "cached": 1, "cost_usd": 0.25}, "judge_values": [1.0, 0.5]}
    details = {"rubric": judged, "whole": {"rubric": judged}, "cost": {"judge": "nobody"}}
    scores = {
        name: Score(MetricResult(name, 0.75, detail), "ok", "judge", "1", 0.0) for name, detail in details.items()
    }
    with open(tmp_path / "a.parquet", "wb") as stream:
        writer = ScoreTableWriter(stream, new_header("a", {}))
        writer.add_case(CaseScores(0, "q1", scores))
        writer.finish()
    run = run_from_file(tmp_path / "a.parquet")
    assert [row.judged and row.judged.values for name in details for row in run.metrics[name]] == [(1.0, 0.5), (), None]
    assert run.summary().judge.cost_usd == 0.5


def test_unreadable_input_counts_against_the_allowance(tmp_path):
    with open(tmp_path / "a.parquet", "wb") as stream:
        writer = ScoreTableWriter(stream, new_header("a", {}))
        score = Score(MetricResult("cost", 0.1), "ok", "recorded", "1", 0.0)
        writer.add_case(CaseScores(0, "q1", {"cost": score}))
        writer.finish(n_input_errors=2, input_errors=[InputError("a.jsonl", 3, "not JSON")])
    run = run_from_file(tmp_path / "a.parquet")
    decision = decide_run(run, ["cost p95 <= 1"])
    assert (decision.exit_code, decision.n_errors) == (3, 2)
    assert decision.reasons[0].text == "2 parts of the input could not be read; first: a.jsonl, line 3: not JSON"
    assert decide_run(run, ["cost p95 <= 1"], max_errors=2).exit_code == 0
    assert run.summary().n_input_errors == 2


class Odd:
    def __str__(self):
        raise OSError("no")


def test_a_detail_that_cannot_be_written_is_named(tmp_path):
    class Metric:
        name = "odd"
        info = MetricInfo("odd", "custom", "")

        def evaluate(self, case, trace, outcome):
            return MetricResult("odd", 1.0, {"thing": Odd()})

    (row,) = agentunit.score([{"case": {"id": "q1"}, "outcome": "a"}], [Metric()]).to_rows()
    assert (row["value"], row["detail"]) == (1.0, '{"reason":null,"unwritable":"OSError"}')


def test_rows_of_what_was_just_scored():
    records = [{"case": {"id": "q1"}, "trace": {"metadata": {"cost": 0.5}}}, {"case": {"id": "q2"}, "outcome": "a"}]
    run = agentunit.score(records, ["cost"])
    rows = run.to_rows()
    assert [(row["case_id"], row["value"], row["status"]) for row in rows] == [
        ("q1", 0.5, "ok"),
        ("q2", None, "not_applicable"),
    ]
    assert rows[1]["reason"].startswith("no ")
    assert {row["run"] for row in rows} == {row["agent_failed"] for row in rows} == {None}
    assert run.to_rows() == rows
    assert run.summary().n_cases == 2


def test_scores_that_were_iterated_are_not_kept():
    run = agentunit.score([{"case": {"id": "q1"}}], ["cost"])
    run.summary()
    with pytest.raises(RuntimeError, match="ask for the table before, or score again"):
        run.to_rows()


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_without_the_package_of_a_data_frame(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    run = agentunit.score([{"case": {"id": "q1"}}], ["cost"])
    with pytest.raises(ModuleNotFoundError, match=f"Run.to_{package}: .* pip install {package}"):
        getattr(run, f"to_{package}")()
