"""Low-scored cases by cause: from the trace and the details of scores, never from a language model."""

from __future__ import annotations

import pytest

from agentunit.core.case import DatasetCase
from agentunit.core.outcome import Outcome
from agentunit.core.records import Record
from agentunit.core.results import MetricResult, Score
from agentunit.core.trace import TraceEvent, TraceLog
from agentunit.metrics.base import describe
from agentunit.metrics.registry import resolve_metrics
from agentunit.reports.case_causes import cause_of, low_metrics
from agentunit.reports.failure_groups import Cause, cause_groups, describe_groups
from agentunit.reports.reported_run import ReportedCase


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
