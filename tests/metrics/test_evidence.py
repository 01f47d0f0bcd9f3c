"""What counts as evidence for groundedness, in which order and how much, and what the detail says about it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentunit.backends import quality
from agentunit.backends.quality import QualityQuestion, Verdict
from agentunit.core.case import DatasetCase
from agentunit.core.trace import TraceLog
from agentunit.engine.scoring.judging import plan_sending
from agentunit.engine.scoring.records import score
from agentunit.metrics.builtin import FaithfulnessMetric, HallucinationRateMetric, RetrievalQualityMetric
from agentunit.metrics.evidence import MOST_CHARACTERS, NOT_MEASURED, PART_CHARACTERS, evidence_of, readable_text
from agentunit.metrics.inputs import Item
from agentunit.metrics.trust import TrustFigure


class Backend:
    """Says of the first claim that a given passage decides, and keeps what it was asked."""

    name = "fake"
    measures = frozenset({"faithfulness"})

    def __init__(self, claims: list[dict[str, Any]], first: int = 0) -> None:
        self.first_passage = first
        self.claims = claims
        self.asked: list[QualityQuestion] = []

    def unready(self) -> str | None:
        return None

    def judge(self, measure: str, questions: list[QualityQuestion]) -> list[Verdict]:
        self.asked += questions
        return [Verdict(0.75, {"claims": self.claims}) for _ in questions]


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch) -> Any:
    def install(*claims: dict[str, Any], first: int = 0) -> Backend:
        backend = Backend(list(claims), first)
        monkeypatch.setattr("agentunit.metrics.builtin.resolve_backend", lambda *_: backend)
        return backend

    return install


def trace_of(*events: tuple[str, dict[str, Any]]) -> TraceLog:
    trace = TraceLog()
    for kind, payload in events:
        trace.record(kind, **payload)
    return trace


SEEN = trace_of(
    ("retrieval", {"query": "opening  hours", "documents": ["It opens at nine.", {"text": "Tickets are 12 euros."}]}),
    ("tool_call", {"name": "clock", "status": "success", "result": {"now": "08:30"}}),
    ("tool_call", {"name": "weather", "status": "error", "error": "timeout after 8 s"}),
)
CASE = DatasetCase("q1", "When?", context=["The museum is in Bern.", " ", "It is closed on Mondays."])


def test_all_that_the_agent_saw_counts_once_and_says_where_it_came_from() -> None:
    found = evidence_of(Item(CASE, SEEN, "Closed on Mondays."))
    assert dict(zip(found.sources, found.texts, strict=True)) == {
        "context[0]": "The museum is in Bern.",
        "context[2]": "It is closed on Mondays.",
        'retrieval "opening hours" document 1': "It opens at nine.",
        'retrieval "opening hours" document 2': "Tickets are 12 euros.",
        'tool "clock" call 1': "now: 08:30",
        'tool "weather" call 2 (failed)': "timeout after 8 s",
    }
    twice = trace_of(("tool_call", {"name": "ask", "result": "It is  closed on MONDAYS."}))
    assert evidence_of(Item(CASE, twice, "x")).sources == ["context[0]", "context[2]"]


@pytest.mark.parametrize("metric_class", [FaithfulnessMetric, HallucinationRateMetric])
@pytest.mark.parametrize(
    ("evidence", "kinds"),
    [
        ("all", ["context[0]", "context[2]", "retrieval", "retrieval", "tool", "tool"]),
        ("context", ["context[0]", "context[2]"]),
        ("tools", ["tool", "tool"]),
        (["tools", "retrieved"], ["retrieval", "retrieval", "tool", "tool"]),
    ],
)
def test_a_backend_is_asked_about_the_named_evidence(
    metric_class: Any, evidence: Any, kinds: list[str], offer: Any
) -> None:
    backend = offer()
    result = metric_class(backend="fake", evidence=evidence).evaluate(CASE, SEEN, "It opens.")
    [asked] = backend.asked
    assert sorted(source.split(" ")[0] for source in asked.sources) == sorted(kinds)
    assert (result.detail["references"], result.detail["sources"]) == (asked.context, asked.sources)
    assert ("evidence_note" in result.detail) == ("tool" in kinds)
    assert result.detail.get("evidence_note", NOT_MEASURED) == NOT_MEASURED


@pytest.mark.parametrize("evidence", ["memory", [], ["context", "memory"], None, 3])
def test_unknown_evidence_is_refused(evidence: Any) -> None:
    with pytest.raises(ValueError, match="FaithfulnessMetric: evidence must be 'all', one of 'context', 'retrieved'"):
        FaithfulnessMetric(evidence=evidence)


@pytest.mark.parametrize("first", [0, 1])
def test_each_claim_says_which_piece_decides_and_where_that_came_from(first: int, offer: Any) -> None:
    offer(
        {"text": "a", "passage": first + 1},
        {"text": "b", "passage": None},
        {"text": "c", "passage": 99},
        {"claim": "It is half past 08:30 now"},
        first=first,
    )
    result = FaithfulnessMetric(backend="fake").evaluate(CASE, SEEN, "x")
    claims = result.detail["claims"]
    assert [claim.get("source") for claim in claims] == ["context[2]", None, None, None]
    # A backend that does not say which text decides: the nearest by its words.
    assert claims[3]["nearest_source"] == 'tool "clock" call 1'


def test_the_most_relevant_parts_come_first_and_the_rest_is_counted() -> None:
    rows = [{"flight": f"HAT{n:03}", "note": "x" * 300} for n in range(400)]
    trace = trace_of(
        ("tool_call", {"name": "search", "result": json.dumps(rows)}),
        ("tool_call", {"name": "price", "result": "Flight HAT333 costs 120 euros."}),
    )
    found = evidence_of(Item(DatasetCase("q"), trace, "HAT333 costs 120 euros."))
    assert found.sources[0] == 'tool "price" call 2'
    assert found.sources[1].startswith('tool "search" call 1, part ')
    assert "HAT333" in found.texts[1]
    assert sum(map(len, found.texts)) <= MOST_CHARACTERS
    assert max(map(len, found.texts)) <= PART_CHARACTERS
    assert found.n_left_out > 0


def test_the_context_is_never_cut() -> None:
    long = "word " * MOST_CHARACTERS
    case = DatasetCase("q", context=[long, long])
    found = evidence_of(Item(case, trace_of(("tool_call", {"name": "a", "result": "b"})), "x"))
    assert found.texts == [long, long, "b"]


@pytest.mark.parametrize(
    ("arguments", "result", "counts"),
    [
        (
            {"answer": "The museum opens at nine every day but Monday."},
            "The museum opens at nine every day but Monday.",
            0,
        ),
        ({"query": "museum"}, "The museum opens at nine every day but Monday.", 1),
        ({"n": 7}, 7, 1),  # a number is no thought
        (None, None, 0),
        ({}, "", 0),
    ],
)
def test_what_a_tool_only_repeats_is_no_evidence(arguments: Any, result: Any, counts: int) -> None:
    trace = trace_of(("tool_call", {"name": "final_answer", "arguments": arguments, "result": result}))
    assert len(evidence_of(Item(DatasetCase("q"), trace, "x")).pieces) == counts


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        ("plain  text", "plain  text"),
        ("{not json", "{not json"),
        ([1, None, True], "1, none, true"),
        ([{"type": "text", "text": "from MCP"}], "from MCP"),
        ({"content": [{"type": "text", "text": '{"unit_price": 3}'}]}, "unit price: 3"),
        ({"a": {"b_c": {"d": 1}}}, "a b c: d: 1"),
        ({}, ""),
    ],
)
def test_data_is_written_out_as_lines(value: Any, text: str) -> None:
    assert readable_text(value) == text


def test_data_nested_without_end_is_bounded() -> None:
    nested: Any = []
    nested.append(nested)
    assert readable_text(nested)


@pytest.mark.parametrize("answered", [True, False])
def test_what_is_sent_to_a_judge_names_tool_results_before_anything_is_sent(
    answered: bool, offer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer().name = "judge"
    monkeypatch.setenv("AGENTUNIT_JUDGE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("AGENTUNIT_JUDGE_MODEL", "small")
    events = [{"type": "tool_call", "payload": {"name": "clock", "result": "08:30"}}] if answered else []
    record = {"case": {"id": "q", "query": "When?"}, "trace": {"events": events}, "outcome": {"output": "At 08:30."}}

    def planned(evidence: str) -> Any:
        metric = FaithfulnessMetric(backend="judge", evidence=evidence)
        return plan_sending([metric], [record], n_cases=1, exact=True, answered=answered)

    assert planned("all").fields == ("question", "answer", "tool results")
    assert planned("context") is None


@pytest.mark.parametrize(
    ("statistic", "value", "low", "word"),
    [
        ("AUROC", 0.8, None, "strong"),
        ("AUROC", 0.83, 0.79, "useful"),  # not surely strong
        ("agreement", 0.65, None, "useful"),
        ("F1", 0.64, None, "weak"),
        ("Spearman", 0.6, None, "strong"),
        ("Spearman", 0.4, None, "useful"),
        ("Spearman", 0.39, None, "weak"),
    ],
)
def test_the_word_of_trust(statistic: str, value: float, low: float | None, word: str) -> None:
    figure = TrustFigure("m", "b", statistic, value, low=low, high=None if low is None else 1.0)
    assert str(figure) == f"{word}, {statistic} {value:.2f}"


def test_without_any_evidence_the_reason_names_what_was_looked_for(offer: Any) -> None:
    offer()
    result = FaithfulnessMetric(backend="fake", evidence=["context", "tools"]).evaluate(DatasetCase("q"), SEEN_NOT, "x")
    assert result.value is None
    assert result.detail["reason"].endswith("no case.context, no results of tool calls")


@pytest.mark.parametrize(
    ("context", "said"), [(["", "  "], "2 passages, all blank"), ([" "], "1 blank passage"), ("  ", "1 blank passage")]
)
def test_passages_that_say_nothing_are_counted_in_the_reason(offer: Any, context: Any, said: str) -> None:
    case = {"id": "q", "query": "When?", "context": context}
    lexical = FaithfulnessMetric(backend=quality.LEXICAL).evaluate(case, None, "At nine.")
    assert f"case.context holds {said}" in lexical.detail["reason"]
    offer()
    for metric in (FaithfulnessMetric(backend="fake"), RetrievalQualityMetric(backend="fake")):
        assert f"case.context holds {said}" in metric.evaluate(case, None, "At nine.").detail["reason"]


@pytest.mark.parametrize("answer", [None, ""])
def test_passages_are_judged_by_the_question_where_a_backend_needs_no_answer(offer: Any, answer: str | None) -> None:
    backend = offer()
    case = {"id": "q", "query": "When?", "context": ["It opens at nine."]}
    records = [
        {"case": case, "outcome": {"output": answer}},
        {"case": {**case, "query": None}, "outcome": {"output": None}},
        {"case": {**case, "context": [" "]}, "outcome": {"output": None}},
        {"case": {**case, "context": [7]}, "outcome": {"output": None}},
    ]

    def scored() -> list[Any]:
        metrics = [RetrievalQualityMetric(backend="fake"), FaithfulnessMetric(backend="fake")]
        return [each.scores for each in score(records, metrics)]

    assert (scored()[0]["retrieval_quality"].value is None) is (answer is None)
    backend.without_answer = frozenset({"retrieval_quality"})
    judged, *others = scored()
    assert judged["retrieval_quality"].value is not None
    assert all(each["retrieval_quality"].value is None for each in others)
    assert judged["faithfulness"].value is None or answer is not None


SEEN_NOT = trace_of(("tool_call", {"name": "clock", "status": "success"}))


def test_the_lexical_fallback_reads_the_context_only() -> None:
    metric = FaithfulnessMetric(backend=quality.LEXICAL)
    assert metric.evaluate(CASE, SEEN, "The museum is in Bern.").detail["references"] == CASE.context[::2]
    assert "no context" in metric.evaluate(DatasetCase("q"), SEEN_TOOLS, "08:30").detail["reason"]
    narrowed = FaithfulnessMetric(backend=quality.LEXICAL, evidence="tools").evaluate(CASE, SEEN, "x")
    assert "reads the context only" in narrowed.detail["reason"]
    assert FaithfulnessMetric.info.version == HallucinationRateMetric.info.version == "6"


SEEN_TOOLS = trace_of(("tool_call", {"name": "clock", "status": "success", "result": "08:30"}))
