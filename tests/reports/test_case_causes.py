"""Low-scored cases by cause: from the trace and the details of scores, never from a language model."""

from __future__ import annotations

import pytest

from agentunit.core.case import DatasetCase
from agentunit.core.codec import encode_record
from agentunit.core.records import Outcome, Record
from agentunit.core.results import MetricResult, Score
from agentunit.core.trace import TraceEvent, TraceLog
from agentunit.metrics.base import describe
from agentunit.metrics.registry import resolve_metrics
from agentunit.reports.case_causes import cause_of, low_metrics
from agentunit.reports.failure_groups import Cause, cause_groups, describe_groups
from agentunit.reports.reported_run import ReportedCase, open_run, open_run_file
from agentunit.store import open_store
from agentunit.store.portable import export_run
from agentunit.store.score_blocks import ScoreBuffer


def scored(name, value, status="ok", **detail):
    return Score(MetricResult(name, value, detail), status, "trace", "1", 0.0)


def case(*calls, answer="Done.", scores=(), **metadata):
    events = [TraceEvent("tool_call", each) for each in calls]
    record = Record(DatasetCase("c1", "?", metadata=metadata), TraceLog(events), Outcome(output=answer))
    return ReportedCase(0, 0, "c1", False, 0.0, record, {each.result.name: each for each in scores})


LOCKED = {"name": "cancel", "status": "error", "error": "order 7 is locked"}
CLAIMS = [{"text": "Have a nice day!", "probability": 0.1}, {"text": "You get $45 back.", "probability": 0.2}]


@pytest.mark.parametrize(
    ("one", "low", "kind", "words"),
    [
        (case(LOCKED), ["tool_success"], "failed call", "cancel: order 7 is locked"),
        (case(LOCKED, {"name": "cancel", "status": "success"}, answer=None), [], "no answer", ""),
        (
            case(scores=[scored("tool_trajectory", 0.0, expected=["find", "cancel"], actual=["find"])]),
            ["tool_trajectory"],
            "missing call",
            "cancel",
        ),
        (
            case(scores=[scored("faithfulness", 0.1, claims=CLAIMS)]),
            ["faithfulness"],
            "not supported",
            "an amount of money",
        ),
        (case(scores=[scored("contains", 0.0, missing=["Paris"])]), ["contains"], "low score", "contains"),
    ],
)
def test_what_made_a_case_score_low(one, low, kind, words):
    found = cause_of(one, low)
    assert (found.kind, found.words) == (kind, words)


def test_only_scores_that_are_low_and_sure_count():
    metrics = resolve_metrics(["tool_success", "hallucination_rate", "cost", "faithfulness"])
    infos = {metric.name: describe(metric) for metric in metrics}
    scores = [
        scored("tool_success", 0.5),
        scored("hallucination_rate", 0.9),
        scored("cost", 0.0),
        scored("faithfulness", 0.0, status="informational"),
    ]
    assert low_metrics({each.result.name: each for each in scores}, infos) == ["tool_success", "hallucination_rate"]


def test_causes_that_differ_in_numbers_only_are_one_group_with_its_slice():
    causes = [Cause(f"c{n}", 0, "failed call", f"cancel: order {n} is locked", "…", ("tier=gold",)) for n in range(4)]
    causes.append(Cause("d", 2, "missing call", "refund", "expected, and not called: refund"))
    groups = cause_groups(causes, "last", list, slice_counts={"tier=gold": 5}, n_records=20)
    assert [(each.name, each.n_records, each.slice) for each in groups] == [
        ("cancel: order # is locked", 4, "tier=gold (4 of 4; 25% of all)"),
        ("did not call refund", 1, None),
    ]
    assert groups[1].next == "agentunit show last d --repeat 3"
    assert describe_groups(groups)[:4] == [
        "4 × cancel: order # is locked",
        "    such as …",
        "    in c0, c1, c2, c3",
        "    mostly tier=gold (4 of 4; 25% of all)",
    ]


def test_a_slice_that_is_as_frequent_elsewhere_is_none():
    causes = [Cause(f"c{n}", 0, "no answer", "", "gave no final answer", ("tier=gold",)) for n in range(4)]
    (group,) = cause_groups(causes, "last", list, slice_counts={"tier=gold": 18}, n_records=20)
    assert (group.name, group.slice) == ("no final answer", None)


def test_names_and_examples_are_masked():
    causes = [Cause("c1", 0, "failed call", "mail: no such user ada@example.org", "ada@example.org failed")]
    (group,) = cause_groups(
        causes, "last", lambda texts: [each.replace("ada@example.org", "<EMAIL>") for each in texts]
    )
    assert "ada" not in group.name + group.error


N_LONG, EVERY, N_LOW = 2_181, 3, 727


def long_run(folder, n_repeats=1):
    """A run in which every third case has no room, half of them by a failed call; the agent failed on one more."""
    store = open_store(folder / "runs.db")
    run = store.create_run("long", agentunit_version="0", settings={})
    lines, waiting = [], ScoreBuffer()
    for at in range(N_LONG):
        for repeat in range(n_repeats):
            is_low = at % EVERY == 0
            one = case(LOCKED, answer="?") if is_low and at % 2 else case(answer="Room 7")
            has_failed = at == N_LONG - 1
            lines.append((run.id, at, repeat, f"q{at}", int(has_failed), 0.1, encode_record(one.record)))
            scores = {"contains": scored("contains", float(not (is_low or has_failed)), missing=["Room"])}
            waiting.add(at, repeat, scores)
    store.add_lines(lines)
    store.add_blocks(run.id, waiting.take())
    store.set_status(run.id, "finished", finished_at=1.0)
    return store


def test_every_low_score_of_a_long_run_counts_in_its_cause(tmp_path):
    with long_run(tmp_path) as store, open_run("last", store) as reported:
        groups = reported.causes
        export_run(store, reported.header.id, tmp_path / "long.jsonl")
    assert [(each.name, each.n_records, each.n_cases) for each in groups] == [
        ("scored low in contains", 364, 364),
        ("cancel: order # is locked", 363, 363),
    ]
    assert sum(each.n_records for each in groups) == N_LOW
    assert describe_groups(groups)[2] == "    in q0, q6, q12, q18, q24 and 359 more"
    with open_run_file(tmp_path / "long.jsonl") as reported:
        assert [each.n_records for each in reported.causes] == [364, 363]


def test_repeats_of_low_cases_count_as_records(tmp_path):
    with long_run(tmp_path, n_repeats=2) as store, open_run("last", store) as reported:
        groups = reported.causes
    assert [(each.n_records, each.n_cases) for each in groups] == [(728, 364), (726, 363)]
    assert groups[0].next.endswith(" q0 --repeat 1")


@pytest.mark.parametrize("most_held", [20_000, 100])
def test_too_many_low_scores_are_counted_by_metric_and_the_name_says_so(tmp_path, monkeypatch, most_held):
    monkeypatch.setattr("agentunit.reports.reported_run._MOST_LOW_READ", 500)
    monkeypatch.setattr("agentunit.engine.scoring.scored_run.MOST_HELD", most_held)
    with long_run(tmp_path, n_repeats=2) as store, open_run("last", store) as reported:
        (group,) = reported.causes
    assert group.name == "scored low in contains (by metric only: too many low scores to read)"
    assert (group.n_records, group.n_cases, len(group.cases)) == (2 * N_LOW, N_LOW, 200)
    assert group.cases[:3] == ("q0", "q3", "q6")
    assert describe_groups([group])[2] == f"    in q0, q3, q6, q9, q12 and {N_LOW - 5} more"
