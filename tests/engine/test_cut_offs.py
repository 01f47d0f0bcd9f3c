"""A score that names its own threshold is cut there, and nowhere else at another place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentunit.addons.review.labeling.scorer_agreement import LabeledScores, ScoredRow, measure_agreement
from agentunit.addons.review.labeling.scorer_validity import scorer_validity
from agentunit.addons.scale.parallel.work import Collector
from agentunit.addons.scale.table_run import ScoreTableWriter
from agentunit.core.case import DatasetCase
from agentunit.core.codec import encode_record
from agentunit.core.records import Outcome, Record
from agentunit.core.results import CaseScores, MetricResult, MetricSummary, Score
from agentunit.core.trace import TraceLog
from agentunit.engine.deciding.cut_offs import claim_threshold, is_low, leveled, number_keys, own_threshold
from agentunit.engine.scoring.aggregate import MetricAggregate
from agentunit.engine.scoring.scored_run import infos_as_data, run_from_file, run_from_store
from agentunit.metrics.base import MetricInfo, describe
from agentunit.metrics.inputs import Item
from agentunit.metrics.registry import resolve_metrics
from agentunit.multimodal.clip_metric import CrossModalGroundingMetric
from agentunit.reports.figures import describe_value, n_to_look_at
from agentunit.reports.reported_run import ReportedRun
from agentunit.store import open_store
from agentunit.store.labels import StoredLabel, subject_of
from agentunit.store.run_store import RunStore
from agentunit.store.score_blocks import ScoreBuffer

NAMES = ("faithfulness", "hallucination_rate")
METRICS = resolve_metrics(NAMES)
FAITHFULNESS, HALLUCINATION = (describe(metric) for metric in METRICS)
INFOS = dict(zip(NAMES, (FAITHFULNESS, HALLUCINATION), strict=True))
# Support with the threshold of its kind: by 0.5 four of five are low, by their own thresholds two. The lowest is fine.
SUPPORT = [(0.31, 0.3), (0.4, 0.47), (0.45, 0.3), (0.46, 0.44), (0.43, 0.44), (0.8, 0.3)]
LOW = ["q1", "q4"]


def scored(value: float, threshold: float | None) -> dict[str, Score]:
    """The scores that a local backend gives both metrics."""
    details: list[dict[str, Any]] = [{}, {}]
    if threshold is not None:
        details = [{"threshold": threshold}, {"threshold": round(1.0 - threshold, 6)}]
    values = (value, 1.0 - value)
    return {
        name: Score(MetricResult(name, each, detail), "ok", "local", "6")
        for name, each, detail in zip(NAMES, values, details, strict=True)
    }


CASES = [(f"q{number}", scored(*each)) for number, each in enumerate(SUPPORT)]


def check(row: MetricSummary) -> None:
    """A row of CASES: cut at own thresholds, the low ones before all others."""
    span = {"faithfulness": (0.3, 0.47), "hallucination_rate": (0.53, 0.7)}[row.metric]
    assert row.share_low == pytest.approx(2 / 6)
    assert row.cut == pytest.approx(span)
    assert sorted(row.worst_cases[:2]) == LOW
    assert row.n_below_best == 6


@given(value=st.floats(0, 1), threshold=st.one_of(st.none(), st.floats(0.01, 0.99).map(lambda each: round(each, 3))))
def test_both_metrics_of_groundedness_agree_on_every_case(value: float, threshold: float | None) -> None:
    support, lack = scored(value, threshold).values()
    said = [
        is_low(info, each.value, own_threshold(info, each.result.detail))
        for info, each in ((FAITHFULNESS, support), (HALLUCINATION, lack))
    ]
    near = abs(value - (0.5 if threshold is None else threshold)) < 1e-8
    assert said[0] == said[1] or near
    assert 0.0 <= leveled(value, threshold) <= 1.0
    if threshold is not None:
        assert claim_threshold("lower", lack.result.detail) == pytest.approx(threshold)


@pytest.mark.parametrize("threshold", [0.3, 0.36, 0.44, 0.45, 0.47])
def test_a_score_at_its_threshold_is_good_whichever_way_is_better(threshold: float) -> None:
    for info, score in zip(INFOS.values(), scored(threshold, threshold).values(), strict=True):
        assert not is_low(info, score.value or 0.0, own_threshold(info, score.result.detail))


def test_a_threshold_that_is_a_parameter_is_no_line() -> None:
    info = describe(CrossModalGroundingMetric())
    assert own_threshold(info, {"threshold": 0.25}) is None
    assert is_low(info, 0.4)
    assert [own_threshold(FAITHFULNESS, {"threshold": each}) for each in (True, "0.3", 0.0, 1.0, None)] == [None] * 5


def test_a_run_is_cut_alike_as_it_is_scored_here_and_elsewhere() -> None:
    collector = Collector(INFOS, 0, by=None, with_lines=False)
    for number, (case_id, scores) in enumerate(CASES):
        collector.add(CaseScores(number, case_id, scores), Item(DatasetCase(case_id), TraceLog(), None))
    block, _ = collector.block([], 0, 0)
    for made, (name, info) in zip(block.scores, INFOS.items(), strict=True):
        made.positions, made.repeats = range(len(CASES)), [0] * len(CASES)
        here, elsewhere = (MetricAggregate(name, info) for _ in range(2))
        for case_id, scores in CASES:
            here.add(case_id, scores[name])
        elsewhere.add_block(made, lambda position, repeat: CASES[position][0])
        check(here.rows()[0])
        assert elsewhere.rows() == here.rows()


def test_every_repeat_of_a_case_is_cut_at_its_own_threshold(tmp_path: Path) -> None:
    store = stored(tmp_path, [(0, 0, scored(0.35, 0.3)), (0, 1, scored(0.35, 0.44)), (1, 0, scored(0.9, None))])
    rows = run_from_store(store, "last").summary().metrics
    assert [(row.share_low, row.n_low_cases, row.cut) for row in rows] == [
        (pytest.approx(1 / 3), 1, pytest.approx((0.3, 0.5))),
        (pytest.approx(1 / 3), 1, pytest.approx((0.5, 0.7))),
    ]


def test_the_share_beside_n_scored_is_of_the_scores_and_not_of_means_of_cases(tmp_path: Path) -> None:
    """48 cases, three repeats: 17 of 144 scores are low, and no case's mean is."""
    scores = []
    for case in range(48):
        for repeat in range(3):
            is_low_one = repeat == 0 and case < 17
            scores.append((case, repeat, scored(0.2 if is_low_one else 0.9, None)))
    row, _ = run_from_store(stored(tmp_path, scores), "last").summary().metrics
    assert (row.n_scored, row.share_low, row.n_low_cases) == (144, pytest.approx(17 / 144), 17)
    assert row.share_from_half == pytest.approx(127 / 144)
    assert "88% ≥ 0.5" in describe_value(row, "score")
    assert n_to_look_at(row) == 17
    assert row.worst_cases == ["q0", "q1", "q2", "q3", "q4"]


@pytest.mark.parametrize("is_old", [False, True])
def test_stored_runs_are_cut_by_what_their_details_say(tmp_path: Path, is_old: bool) -> None:
    """Also those of versions that kept thresholds in the details alone."""
    store = stored(
        tmp_path, [(at, 0, scores) for at, (_, scores) in enumerate(CASES)], {} if is_old else number_keys(INFOS)
    )
    reported = ReportedRun(run_from_store(store, "last"), store=store)
    for row in reported.summary.metrics:
        check(row)
    assert sorted(reported.worst_cases()) == LOW
    assert sorted(case for group in reported.causes for case in group.cases) == LOW


@pytest.mark.parametrize("says_so", [True, False])
def test_a_score_table_is_cut_by_its_details(tmp_path: Path, says_so: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    store = stored(tmp_path, [])
    header = store.find_run("last")
    path = tmp_path / "scores.parquet"
    if not says_so:
        monkeypatch.setattr("agentunit.addons.scale.table_run.TableFacts", older_facts)
    with path.open("wb") as stream, ScoreTableWriter(stream, header) as writer:
        for number, (case_id, scores) in enumerate(CASES):
            writer.add_case(CaseScores(number, case_id, scores))
        writer.finish()
    for row in run_from_file(path).summary().metrics:
        check(row)


def older_facts(*facts: Any) -> Any:
    from agentunit.addons.scale._parquet_table import TableFacts

    return TableFacts(*facts[:5])


def test_scores_without_a_threshold_keep_one_half() -> None:
    aggregate = MetricAggregate("faithfulness", FAITHFULNESS)
    for number, value in enumerate((0.4, 0.5, 0.6)):
        aggregate.add(f"q{number}", scored(value, None)["faithfulness"])
    [row] = aggregate.rows()
    assert (row.share_low, row.cut, row.worst_cases) == (pytest.approx(1 / 3), (0.5, 0.5), ["q0", "q1", "q2"])


def test_agreement_with_people_is_measured_where_scores_are_cut() -> None:
    rows = [ScoredRow(float(value >= threshold), value, None, threshold) for value, threshold in SUPPORT] * 3
    found = measure_agreement(rows, metric="faithfulness", backend="local")
    assert (found.agreement, found.threshold, found.cut) == (1.0, None, (0.3, 0.47))
    every = LabeledScores({("faithfulness", "local"): rows}, {"faithfulness": FAITHFULNESS}, None)  # type: ignore[arg-type]
    assert every.agreements()[0].agreement == 1.0
    asked = every.agreements(0.5)[0]
    assert (asked.agreement, asked.threshold) == (pytest.approx(3 / 6), 0.5)


@pytest.mark.parametrize("name", NAMES)
def test_labels_of_a_run_are_held_against_own_thresholds(tmp_path: Path, name: str) -> None:
    store = stored(tmp_path, [(at, 0, scored(*SUPPORT[at % 6])) for at in range(12)])
    run = run_from_store(store, "last")
    turned = name == "hallucination_rate"
    for at in range(12):
        is_good = f"q{at % 6}" not in LOW
        label = StoredLabel(subject_of(record(at)), name, f"q{at}", float(is_good != turned), "ana")
        label.position = at
        run.labels.append(label)
    found = scorer_validity(run, name, "local")
    assert found is not None
    assert (found.agreement.agreement, found.kappa) == (1.0, 1.0)
    assert found.agreement.cut == ((0.53, 0.7) if turned else (0.3, 0.47))


def record(position: int) -> Record:
    return Record(DatasetCase(f"q{position}", query="?"), TraceLog(), Outcome(output=f"It is {position}."))


def stored(
    folder: Path, scores: list[tuple[int, int, dict[str, Score]]], numbers: dict[str, str] | None = None
) -> RunStore:
    store = open_store(folder / "runs.db")
    run = store.create_run("r", agentunit_version="0", settings={"metric_infos": infos_as_data(METRICS)})
    store.add_lines([(run.id, at, repeat, f"q{at}", 0, 0.0, encode_record(record(at))) for at, repeat, _ in scores])
    waiting = ScoreBuffer(numbers)
    for at, repeat, of_case in scores:
        waiting.add(at, repeat, of_case)
    store.add_blocks(run.id, waiting.take())
    store.set_status(run.id, "finished", finished_at=1.0)
    return store


def test_the_middle_of_another_scale_is_its_middle() -> None:
    grades = MetricInfo("grade", "quality", "", "higher", (1.0, 5.0))
    assert [is_low(grades, value) for value in (2.0, 3.0, 4.0)] == [True, True, False]
