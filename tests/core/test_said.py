"""Texts that may quote a record: every one of them is masked in what reports show, and nothing else is."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, get_type_hints

import pytest
from msgspec import Struct

from agentunit.core.results import InputError, LabeledSummary, MetricSummary, RunSummary, Unscored
from agentunit.core.said import Said, _parts, with_texts
from agentunit.engine.deciding.case_findings import CaseFinding
from agentunit.engine.deciding.comparison import CaseAnswer, CaseDifference, Comparison
from agentunit.engine.deciding.decision import Decision, Reason
from agentunit.engine.scoring.slices import SliceRow, SliceTable
from agentunit.reports.reported_run import Mask

MAIL = "ada@example.org"
# Sentences about figures alone: they name metrics, runs and numbers.
ABOUT_FIGURES = {("MetricComparison", "reason"), ("MetricComparison", "note"), ("LabeledSummary", "reason")}
NAMES_OF_TEXTS = {"reason", "note", "why", "text", "error", "sentence", "headline", "line", "informational"}


def classes_in(kind: Any, seen: set[Any]) -> Iterator[type]:
    """A class and all classes that its fields hold."""
    if kind in seen or not isinstance(kind, type) or not (dataclasses.is_dataclass(kind) or issubclass(kind, Struct)):
        return
    seen.add(kind)
    yield kind
    for hint in get_type_hints(kind, include_extras=True).values():
        for part in _parts(hint):
            yield from classes_in(part, seen)


@pytest.mark.parametrize("kind", [Decision, RunSummary, SliceTable])
def test_every_sentence_of_what_reports_show_is_marked(kind: type) -> None:
    unmarked = {
        (holder.__name__, name)
        for holder in classes_in(kind, set())
        for name, hint in get_type_hints(holder, include_extras=True).items()
        if name in NAMES_OF_TEXTS and str in _parts(hint) and Said not in _parts(hint)
    }
    assert unmarked <= ABOUT_FIGURES


def test_a_decision_is_masked_everywhere_and_keeps_the_ids_of_its_cases() -> None:
    case_id = "ada.lovelace@example.org"
    difference = CaseDifference(case_id, "newly failing", baseline=CaseAnswer(MAIL), candidate=CaseAnswer(None, MAIL))
    comparison = Comparison("a", "b", 1, 0, 0, 0.05, (), differences=(difference,), sentence=MAIL, candidate_label=MAIL)
    decision = Decision(
        1,
        "fail",
        f"FAIL: 1 broken ({case_id}: wrote to {MAIL})",
        reasons=(Reason("comparison", 1, "contains", MAIL, cases=(case_id,)),),
        comparison=comparison,
        findings=(CaseFinding(case_id, "wrong", "broken", why=MAIL),),
    )
    masked = Mask().decision(decision)
    assert MAIL not in repr(dataclasses.asdict(masked))
    assert masked.headline == f"FAIL: 1 broken ({case_id}: wrote to <EMAIL_1>)"
    assert (masked.findings[0].case_id, masked.findings[0].why) == (case_id, "<EMAIL_1>")
    assert Mask(show_all=True).decision(decision) == decision


def test_a_summary_and_slices_are_masked() -> None:
    labeled = LabeledSummary(0.5, 0.4, 0.6, 10, 20, raters=[MAIL])
    rows = [MetricSummary("m", "b", "1", "ok", 1, 1, labeled=labeled, informational=MAIL)]
    errors = [InputError("a.jsonl", 1, MAIL)]
    summary = RunSummary(1, rows, [Unscored("m", "error", MAIL, 1, [])], 1, errors, 0, 0.0)
    masked = Mask().view(summary)
    assert MAIL not in repr((masked.metrics, masked.unscored, masked.input_errors))
    table = SliceTable("metadata.user", [SliceRow("m", "b", "ok", MAIL, 1, 1)] * 2)
    assert {row.slice for row in Mask().view(table).rows} == {"<EMAIL_1>"}


def test_a_value_in_which_nothing_is_said_is_the_same_object() -> None:
    assert with_texts([1, "text", None], lambda texts: []) == [1, "text", None]
    answer = CaseAnswer(None, None)
    assert with_texts(answer, lambda texts: [""]) is answer
