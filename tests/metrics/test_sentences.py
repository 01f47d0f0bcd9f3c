"""Why a score is what it is, in one sentence: checked by hand for each kind of metric, and for each kind of fact."""

from __future__ import annotations

from typing import Any

import pytest

import agentunit
from agentunit.backends.quality import Verdict
from agentunit.core.codec import decode_record
from agentunit.core.results import MetricResult, encode_json
from agentunit.metrics.base import CompositeMetric
from agentunit.metrics.functions import FunctionMetric
from agentunit.metrics.registry import MetricRegistry
from agentunit.metrics.sentences import LONGEST, amount, listed, quoted, sentence, shown_value
from agentunit.metrics.verdict_sentences import why_of_scores, why_of_verdict
from agentunit.reports.case_view import view_case
from agentunit.reports.reported_run import ReportedCase

pytestmark = pytest.mark.usefixtures("no_backends_installed")
REGISTRY = MetricRegistry(entry_point_group=None)
MANY_WORDS = "word " * 200_000


def record(
    answer: Any = "Paris",
    events: Any = (),
    metadata: Any = (),
    success: Any = None,
    state: Any = None,
    trace: Any = (),
    **case: Any,
) -> dict[str, Any]:
    """A record with an answer; what of its case is not named is metadata."""
    fields = {name: case.pop(name) for name in ("expected_output", "context", "query", "tools") if name in case}
    return {
        "case": {"id": "q1", **fields, "metadata": case},
        "trace": {"events": list(events), "metadata": dict(metadata), **dict(trace)},
        "outcome": {"output": answer, "success": success, "state": state},
    }


def call(name: Any = "search", arguments: Any = None, **facts: Any) -> dict[str, Any]:
    return {"type": "tool_call", "payload": {"name": name, "arguments": arguments, **facts}}


def says(agent: str, text: str) -> dict[str, Any]:
    return {"type": "message", "payload": {"role": "assistant", "agent": agent, "content": text}}


def why(name: str, record: dict[str, Any], **parameters: Any) -> tuple[Any, Any]:
    result = REGISTRY.create(name, parameters).evaluate(record["case"], record["trace"], record["outcome"])
    value = result.value if result.value is None else round(result.value, 3)
    return value, result.detail.get("why")


REFUND = {"name": "create_refund", "arguments": {"amount": 30.5, "to": {"iban": "x"}, "items": [1, 2]}}
AGENTS = [says("lead", "Please write it."), says("coder", "I wrote it."), says("lead", "Thank you for it.")]
TOOLS = [{"name": "book", "input_schema": {"type": "object", "required": ["day"]}}]
TALKS = [{"from_agent": one, "to_agent": other} for one, other in ("ab", "ac", "ad")]
PASSAGES = ["Paris is in France.", "Bread is baked."]

SENTENCES: list[tuple[str, dict[str, Any], dict[str, Any], float, str]] = [
    # What stands in the answer.
    ("contains", record(contains="Paris"), {}, 1.0, "the expected text was found"),
    ("contains", record(contains=["Par", "is", "P"]), {}, 1.0, "all 3 expected texts found"),
    ("contains", record("2 years", contains="24 months"), {}, 0.0, 'missing: "24 months"'),
    ("contains", record(contains=["Par", "a", "b"]), {}, 0.0, 'missing: "b"'),
    ("contains", record("-", contains=list("abcde")), {}, 0.0, 'missing: "a", "b", "c", …'),
    ("contains", record("-", contains=["a", "b"]), {"mode": "any"}, 0.0, 'none of: "a", "b"'),
    ("contains", record("b", contains=["a", "b"]), {"mode": "any"}, 1.0, 'found: "b"'),
    ("regex", record("Order A-1042.", regex="[A-Z]-[0-9]+"), {}, 1.0, 'matched: "A-1042"'),
    ("regex", record("No order.", regex="[A-Z]-[0-9]+"), {}, 0.0, "no match of /[A-Z]-[0-9]+/"),
    ("json_schema", record('{"a": 1}', json_schema={"required": ["a"]}), {}, 1.0, "the answer has the given shape"),
    ("json_schema", record("{}", json_schema={"required": ["a"]}), {}, 0.0, "$: 'a' is a required property"),
    ("exact_match", record(expected_output="Paris"), {}, 1.0, "equals the expected answer"),
    ("exact_match", record("Rome\nnow", expected_output="Paris"), {}, 0.0, '"Rome now", expected "Paris"'),
    ("exact_match", record("5", expected_output=["4", "four"]), {}, 0.0, '"5", expected "4" or "four"'),
    ("exact_match", record("5", expected_output=4), {}, 0.0, '"5", expected "4"'),
    ("exact_match", record("", expected_output="Paris"), {}, 0.0, '"", expected "Paris"'),
    ("assertions", record(assertions=[{"type": "contains", "value": "Par"}]), {}, 1.0, "the assertion holds"),
    (
        "assertions",
        record(assertions=[{"type": "contains", "value": "Par"}, {"type": "not-contains", "value": "x"}]),
        {},
        1.0,
        "all 2 assertions hold",
    ),
    (
        "assertions",
        record(assertions=[{"type": "contains", "value": "Rome"}, {"type": "is-json"}]),
        {},
        0.0,
        "failed: contains 'Rome'; received \"Paris\"",
    ),
    (
        "assertions",
        record(events=[call("find")], assertions=[{"type": "tool-used", "value": "book"}]),
        {},
        0.0,
        "failed: tool-used 'book'; received calls of \"find\"",
    ),
    (
        "assertions",
        record(assertions=[{"type": "tool-used", "value": "book"}]),
        {},
        0.0,
        "failed: tool-used 'book'; received no tool calls",
    ),
    (
        "assertions",
        record(metadata={"cost": 0.25}, assertions=[{"type": "cost", "threshold": 0.1}]),
        {},
        0.0,
        "failed: cost 0.1; received 0.25",
    ),
    (
        "assertions",
        record(metadata={"duration_s": 4.0}, assertions=[{"type": "latency", "threshold": 3}]),
        {},
        0.0,
        "failed: latency 3; received 4",
    ),
    (
        "assertions",
        record("two words", assertions=[{"type": "word-count", "value": 3}]),
        {},
        0.0,
        "failed: word-count 3; received 2 words",
    ),
    (
        "answer_language",
        record("Es tut mir leid, ich kann Ihnen nicht helfen.", query="When is it going to be here?"),
        {},
        0.0,
        "the question is in English, the answer in German",
    ),
    # Words against words, without a model.
    ("answer_correctness", record(expected_output=" Paris "), {}, 1.0, "equals the expected answer"),
    ("answer_correctness", record("Rome", expected_output="Paris"), {}, 0.0, '"Rome", expected "Paris"'),
    ("faithfulness", record("Paris is in France.", context=PASSAGES[:1]), {}, 1.0, "the context is in the answer"),
    ("faithfulness", record("a b", context=["a", "b"]), {}, 1.0, "all 2 context texts are in the answer"),
    (
        "faithfulness",
        record("Paris is in France.", context=PASSAGES),
        {},
        0.5,
        '1 of 2 context texts are in the answer, word for word; not "Bread is baked."',
    ),
    (
        "hallucination_rate",
        record("Rome", context=PASSAGES[:1]),
        {},
        1.0,
        'not in the answer, word for word: "Paris is in France."',
    ),
    (
        "retrieval_quality",
        record("Bread is baked.", context=PASSAGES),
        {},
        0.5,
        '1 of 2 context texts are in the answer, word for word; not "Paris is in France."',
    ),
    # What was done.
    ("tool_success", record(events=[call(status="success")]), {}, 1.0, "the tool call succeeded"),
    ("tool_success", record(events=[call(status="success")] * 2), {}, 1.0, "all 2 tool calls succeeded"),
    (
        "tool_success",
        record(events=[call(status="success"), call("book", status="error", error="no such day")]),
        {},
        0.5,
        "1 of 2 tool calls failed: book (no such day)",
    ),
    (
        "tool_success",
        record(events=[call("book"), call(status="success")]),
        {},
        0.5,
        "1 of 2 tool calls ended without a status: book",
    ),
    ("tool_success", record(success=False), {}, 0.0, "no tool calls, and the agent says that it failed"),
    ("task_success", record(success=True), {}, 1.0, "the agent says that it succeeded"),
    (
        "task_success",
        record(state={"order": "open"}, expected_state={"order": "sent"}),
        {},
        0.0,
        "order is 'open', expected 'sent'",
    ),
    (
        "task_success",
        record(state={"order": "open"}, expected_state={}),
        {},
        1.0,
        "the final state is the expected one",
    ),
    (
        "tool_trajectory",
        record(events=[call("a")], expected_tool_calls=["a"]),
        {},
        1.0,
        "the expected call was made",
    ),
    ("tool_trajectory", record(expected_tool_calls=[]), {}, 1.0, "no calls, as expected"),
    ("tool_trajectory", record(expected_tool_calls=["a", "b"]), {}, 0.0, "missing: a (step 1 of 2)"),
    (
        "tool_trajectory",
        record(events=[call("b")], expected_tool_calls=["b", "a"]),
        {},
        0.667,
        "missing: a (step 2 of 2)",
    ),
    (
        "tool_trajectory",
        record(events=[call("a"), call("b")], expected_tool_calls=["a"]),
        {},
        0.667,
        "not expected: b (call 2 of 2)",
    ),
    (
        "tool_trajectory",
        record(events=[call(None)], expected_tool_calls=[]),
        {},
        0.0,
        "not expected: a call without a name (call 1 of 1)",
    ),
    (
        "tool_trajectory",
        record(events=[call("b"), call("a")], expected_tool_calls=["a", "b"]),
        {},
        0.5,
        "out of order: b (call 1) came before a (call 2)",
    ),
    (
        "tool_trajectory",
        record(events=[call("b"), call("a")], expected_tool_calls=["a", "b"]),
        {"mode": "strict"},
        0.0,
        "out of order: b (call 1) came before a (call 2)",
    ),
    (
        "tool_trajectory",
        record(
            events=[call("create_refund", {**REFUND["arguments"], "amount": 24.5})],  # type: ignore[dict-item]
            expected_tool_calls=[REFUND],
        ),
        {},
        0.0,
        "create_refund.amount 24.5, expected 30.5",
    ),
    (
        "tool_trajectory",
        record(
            events=[call("create_refund", {"amount": 30.5, "to": {"iban": "y"}, "items": [1, 2]})],
            expected_tool_calls=[REFUND],
        ),
        {},
        0.0,
        'create_refund.to.iban "y", expected "x"',
    ),
    (
        "tool_trajectory",
        record(
            events=[call("create_refund", {"amount": 30.5, "to": {"iban": "x"}, "items": [1, 3]})],
            expected_tool_calls=[REFUND],
        ),
        {},
        0.0,
        "create_refund.items[1] 3, expected 2",
    ),
    (
        "tool_trajectory",
        record(events=[call("create_refund", {"amount": 30.5, "to": []})], expected_tool_calls=[REFUND]),
        {},
        0.0,
        "create_refund.to a list of 0 entries, expected an object of 1 field",
    ),
    (
        "tool_trajectory",
        record(events=[call("find", {})], expected_tool_calls=[{"name": "find", "arguments": {"id": "A-1"}}]),
        {},
        0.0,
        'find.id is missing, expected "A-1"',
    ),
    (
        "tool_trajectory",
        record(
            events=[call("find", {"id": 1, "limit": 5})], expected_tool_calls=[{"name": "find", "arguments": {"id": 1}}]
        ),
        {},
        0.0,
        "find.limit 5, not expected",
    ),
    (
        "tool_trajectory",
        record(
            events=[call("find", {"id": 2, "limit": 5})], expected_tool_calls=[{"name": "find", "arguments": {"id": 1}}]
        ),
        {"arguments": "subset"},
        0.0,
        "find.id 2, expected 1",
    ),
    (
        "tool_argument_validity",
        record(events=[call("book", {"day": 1})], tools=TOOLS),
        {},
        1.0,
        "the arguments are valid",
    ),
    (
        "tool_argument_validity",
        record(events=[call("book", {"day": 1}), call("book", {})], tools=TOOLS),
        {},
        0.5,
        "book, call 2 (1 of 2 calls invalid): $: 'day' is a required property",
    ),
    # What it took.
    ("cost", record(metadata={"cost": 0.0032}), {}, 0.003, "0.0032 USD, recorded in trace.metadata['cost']"),
    (
        "cost",
        record(events=[call(cost=0.5), {"type": "llm_call", "payload": {"cost": 0.25}}]),
        {},
        0.75,
        "0.75 USD: tools 0.5, models 0.25",
    ),
    (
        "cost",
        record(events=[call(cost=0.5), {"type": "llm_call", "payload": {}}]),
        {},
        0.5,
        "0.5 USD: tools 0.5, models 0; not all calls have a price",
    ),
    (
        "token_usage",
        record(metadata={"usage": {"prompt_tokens": 1500, "completion_tokens": 75}}),
        {},
        1575.0,
        "1,575 tokens: 1,500 prompt, 75 completion",
    ),
    (
        "token_usage",
        record(metadata={"usage": {"total_tokens": 225}}),
        {},
        225.0,
        "225 tokens, recorded in trace.metadata['usage']",
    ),
    (
        "response_time",
        record(metadata={"duration_s": 3.5}),
        {},
        3.5,
        "3.5 s, recorded in trace.metadata['duration_s']",
    ),
    (
        "response_time",
        record(events=[{**says("a", "x"), "timestamp": 10.0}, {**says("a", "y"), "timestamp": 12.5}]),
        {},
        2.5,
        "2.5 s from the first to the last of 2 events",
    ),
    ("energy_consumption", record(metadata={"energy_kwh": 0.4}), {}, 0.25, "400 Wh recorded, threshold 100 Wh"),
    ("carbon_emissions", record(metadata={"carbon_kg": 0.02}), {}, 1.0, "20 g of CO2 recorded, threshold 50 g"),
    (
        "resource_utilization",
        record(metadata={"cpu_percent": 20.0, "memory_gb": 4.0}),
        {},
        0.75,
        "CPU 20 %, target 80 % (50 to 120 % of it is fine)",
    ),
    # Agents.
    (
        "step_repetition",
        record(events=[says("a", "Let me look."), says("a", "Nothing there."), says("a", "Let me look.")]),
        {},
        0.5,
        "1 of 3 steps repeat an earlier one: step 3 repeats step 1",
    ),
    ("step_repetition", record(events=AGENTS), {}, 0.0, "none of 3 steps repeats an earlier one"),
    (
        "ping_pong",
        record(events=[says(agent, f"I am {agent}.") for agent in ("lead", "coder", "tester", "coder", "tester")]),
        {},
        0.8,
        "coder and tester alternate for 4 of 5 turns, from step 2 on",
    ),
    ("agent_dominance", record(events=AGENTS), {}, 0.333, "lead takes 2 of 3 steps; 2 agents"),
    (
        "unanswered_requests",
        record(
            trace={
                "interactions": [
                    {"from_agent": "lead", "to_agent": "searcher"},
                    {"from_agent": "lead", "to_agent": "writer"},
                    {"from_agent": "writer", "to_agent": "lead", "interaction_type": "response"},
                ]
            }
        ),
        {},
        0.5,
        "searcher did not answer lead (1 of 2 requests)",
    ),
    (
        "coordination_efficiency",
        record(
            trace={"handoffs": [{"from_agent": "a", "to_agent": "b", "success": done} for done in (True, False, True)]}
        ),
        {},
        0.667,
        "1 of 3 handoffs failed: a to b",
    ),
    (
        "coordination_efficiency",
        record(trace={"conflicts": [{"agents_involved": ["a", "b"], "resolved": False}]}),
        {},
        0.0,
        "the conflict stayed unresolved: a and b",
    ),
    (
        "coordination_efficiency",
        record(
            trace={
                "interactions": [
                    {"from_agent": one, "to_agent": other, "success": done, "response_time": 2.0}
                    for one, other in ("ab", "ba")
                    for done in (True, False)
                ]
            }
        ),
        {},
        0.844,
        "2 of 4 messages failed; answers take 2 s on average",
    ),
    (
        "coordination_efficiency",
        record(
            trace={
                "interactions": [{**TALKS[0], "interaction_type": "delegation"}, {"from_agent": "b", "to_agent": "a"}],
                "agent_roles": {"a": {"name": "a", "can_delegate": False}},
            }
        ),
        {},
        0.727,
        "a did what its role does not allow: delegation, message 1",
    ),
    (
        "coordination_efficiency",
        record(trace={"interactions": TALKS}),
        {},
        0.625,
        "uneven work: a sent 3 of 3 messages that did not fail; 4 agents",
    ),
    (
        "swarm_intelligence",
        record(trace={"interactions": [{**TALKS[0], "interaction_type": kind} for kind in ("negotiation", "request")]}),
        {},
        0.25,
        "weakest part: agents do not specialize in types of messages",
    ),
    (
        "network_fault_tolerance",
        record(trace={"interactions": TALKS}),
        {},
        0.45,
        "without a, 33% of the other agents stay connected",
    ),
    (
        "network_fault_tolerance",
        record(trace={"interactions": [{"from_agent": one, "to_agent": other} for one, other in ("ab", "bc", "ca")]}),
        {},
        0.7,
        "3 agents: when any one of them is lost, the others stay connected",
    ),
    # Pictures, recordings and captions.
    ("audio_transcription_quality", record(expected_output="Paris"), {}, 1.0, "every word is right"),
    (
        "audio_transcription_quality",
        record("for queen of clubs", expected_output="four queen of clubs"),
        {},
        0.75,
        'word errors are 25% of the words of "four queen of clubs"',
    ),
    (
        "image_caption_accuracy",
        record("A dog runs fast.", expected_output="A dog runs."),
        {"use_semantic": False},
        0.857,
        'has 100% of the reference\'s words, 75% of its own words are in the reference: "A dog runs."',
    ),
    (
        "multimodal_coherence",
        record("The image shows a cat, while the question asks why.", query="What?", image_path="cat.jpg"),
        {},
        1.0,
        'refers to image, text; a linking word ("while")',
    ),
    (
        "multimodal_coherence",
        record("A cat.", query="What?", image_path="cat.jpg"),
        {},
        0.0,
        'no word about image, text; no linking word, such as "while"',
    ),
    # Personal data, masked.
    ("pii_leakage", record("All is well."), {}, 1.0, "no personal data"),
    (
        "pii_leakage",
        record("Write to jane.doe@example.com."),
        {},
        0.525,
        "email j***@***.com in output",
    ),
    (
        "pii_leakage",
        record("Write to jane.doe@example.com or bob.roe@example.org."),
        {},
        0.276,
        "email j***@***.com in output and 1 more value",
    ),
    (
        "pii_leakage",
        record("Done.", events=[call("mail", {"to": "jane.doe@example.com"})]),
        {},
        1.0,
        "only personal data that is not scored: email j***@***.com in tool call 1 (mail) argument to",
    ),
    ("privacy_budget", record(epsilon=2.5), {}, 0.75, "7.5 of 10 ε left; this case spends 2.5"),
    (
        "privacy_budget",
        record(epsilon=12),
        {},
        0.0,
        "the budget of 10 ε is exceeded: 12 spent; this case spends 12",
    ),
    (
        "data_minimization",
        record("We will call 555 0100 77.", email="jane@example.com", phone="555-0100-77"),
        {},
        0.5,
        "passed on 1 of 2 sensitive values: output repeats phone from case.metadata, re-spelled",
    ),
    (
        "data_minimization",
        record("Done.", email="jane@example.com"),
        {},
        1.0,
        "no sensitive value was passed on",
    ),
    (
        "consent_compliance",
        record("In Oslo it rains.", consent={"location": False}, user_data={"location": "Oslo"}),
        {},
        0.0,
        "used without consent: output repeats location from case.metadata",
    ),
    (
        "consent_compliance",
        record("It rains.", consent={"location": False}, user_data={"location": "Oslo"}),
        {},
        1.0,
        "no denied field was used",
    ),
    ("consent_compliance", record("It rains.", consent={"location": True}), {}, 1.0, "no field is denied"),
]


@pytest.mark.parametrize(
    ("name", "asked", "parameters", "value", "expected"),
    SENTENCES,
    ids=[f"{name} {expected:.40}" for name, *_, expected in SENTENCES],
)
def test_the_sentence_names_what_decided(
    name: str, asked: dict[str, Any], parameters: dict[str, Any], value: float, expected: str
) -> None:
    assert why(name, asked, **parameters) == (value, expected)


LISTED_FACTS: list[tuple[Verdict, str]] = [
    (Verdict(1.0, {"claims": [{"claim": "A.", "verdict": "supported"}]}), "its one claim is supported"),
    (Verdict(1.0, {"claims": [{"claim": "A.", "verdict": "supported"}] * 3}), "all 3 claims are supported"),
    (Verdict(0.0, {"claims": [{"claim": "A.", "verdict": "contradicted"}]}), 'contradicted: "A."'),
    (
        Verdict(
            0.5, {"claims": [{"claim": "A.", "verdict": "supported"}, {"claim": "B.", "verdict": "not_supported"}]}
        ),
        '1 of 2 claims not supported: "B."',
    ),
    (
        Verdict(0.2, {"claims": [{"text": "A.", "probability": 0.9}, {"text": "B.", "probability": 0.123}]}),
        'not supported (0.12): "B."',
    ),
    (
        Verdict(0.9, {"claims": [{"text": "A.", "probability": 0.95}, {"text": "B.", "probability": 0.9}]}),
        'least supported of 2 claims (0.90): "B."',
    ),
    (Verdict(0.6, {"claims": [{"text": "A.", "probability": 0.6}], "threshold": 0.7}), 'not supported (0.60): "A."'),
    (Verdict(1.0, {"claims": [{"text": "A.", "probability": 1.0}]}), 'supported (1.00): "A."'),
    (Verdict(1.0, {"passages": [{"passage": 1, "useful": True}] * 2}), "all 2 contexts help"),
    (
        Verdict(1.0, {"passages": [{"useful": True}, {"useful": False, "reason": "It is about bread."}]}),
        '1 of 2 contexts help; not "Bread is baked.": It is about bread.',
    ),
    (
        Verdict(0.0, {"passages": [{"useful": False, "reason": None}, {"useful": False}]}),
        'no context helps; not "Paris is in France."',
    ),
    (
        Verdict(0.4, {"passages": [{"passage": 0, "relevance": 0.7}, {"passage": 1, "relevance": 0.1}]}),
        'least relevant of 2 contexts (0.10): "Bread is baked."',
    ),
    (Verdict(0.2, {"rule": "the answer names another amount"}), "the answer names another amount"),
    (Verdict(1.0, {"basis": "equal text", "reference": "A"}), "equals the expected answer"),
    (Verdict(0.0, {"basis": "blank answer"}), "the answer is blank"),
    (
        Verdict(0.5, {"reference_facts": [{"claim": "It is free.", "verdict": "not_in_passages"}], "counts": {}}),
        'missing: "It is free."',
    ),
    (
        Verdict(0.5, {"reference_facts": [], "answer_facts": [{"claim": "It is 5.", "verdict": "contradicted"}]}),
        'contradicts the expected answer: "It is 5."',
    ),
    (
        Verdict(0.5, {"statements": {"tp": [], "fp": [{"statement": "It is 5."}], "fn": []}}),
        'not in the expected answer: "It is 5."',
    ),
    (Verdict(1.0, {"counts": {"tp": 2, "fp": 0, "fn": 0}}), "all facts agree with the expected answer"),
    (Verdict(0.25, {"why": "  ", "claims": 3}), 'backend "mine" says 0.25'),
    (Verdict(0.25, {"why": "half of it\nis right"}), "half of it is right"),
    (Verdict(0.5, {"why": "it is short", "judges_disagree": True}), "the judges disagree; one says: it is short"),
]


@pytest.mark.parametrize(("verdict", "expected"), LISTED_FACTS)
def test_the_sentence_on_a_verdict_names_one_of_the_facts_that_it_lists(verdict: Verdict, expected: str) -> None:
    assert why_of_verdict(verdict, PASSAGES, "mine") == expected


@pytest.mark.parametrize(
    ("detail", "expected"),
    [
        (
            {"scores": [{"criterion": "It is short.", "score": 2, "value": 0.25, "reason": "It rambles."}]},
            "It rambles.",
        ),
        (
            {
                "scores": [
                    {"criterion": "It is short.", "score": 5, "value": 1.0, "reason": "One line."},
                    {"criterion": "It is polite.", "score": 2, "value": 0.25, "reason": "It mocks."},
                ]
            },
            '"It is polite.": It mocks.',
        ),
        (
            {"scores": [{"criterion": "It is short.", "score": 2, "value": 0.25, "reason": None}]},
            'scored 2, without a reason: "It is short."',
        ),
        ({"score": 3.0}, "the judge says 0.50"),
    ],
)
def test_the_sentence_on_a_rubric_is_the_judges_own_reason(detail: dict[str, Any], expected: str) -> None:
    assert why_of_scores(0.5, detail) == expected


# Own functions.


def scored_by(function: Any) -> MetricResult:
    metric: Any = FunctionMetric(function, "mine")
    result: MetricResult = metric.evaluate({"id": "q"}, None, "Hi")
    return result


@pytest.mark.parametrize(
    ("returned", "value", "why", "check"),
    [
        ((0.5, "half of it is right"), 0.5, "half of it is right", False),
        ((True, "it says please"), 1.0, "it says please", True),
        ((False, "it never\nsays please"), 0.0, "it never says please", True),
        ((False, None), 0.0, "returned False", True),
        ((0.25, " "), 0.25, "returned 0.25", False),
        (True, 1.0, "returned True", True),
        (1, 1.0, "returned 1", False),
        (0.123456789, 0.123456789, "returned 0.123457", False),
    ],
)
def test_a_function_may_say_why(returned: Any, value: float, why: str, check: bool) -> None:
    def polite(answer: str) -> Any:
        return returned

    run = agentunit.score([record()], [polite])
    [case] = run
    assert (case.scores["polite"].value, case.scores["polite"].why) == (value, why)
    assert run.infos["polite"].check is check


def test_a_function_that_does_not_apply_may_say_why_not() -> None:
    result = scored_by(lambda answer: (None, "no greeting is needed"))
    assert (result.value, result.detail["reason"]) == (None, "no greeting is needed")
    assert "why" not in result.detail


def test_a_function_that_declares_a_bool_and_a_sentence_is_a_check() -> None:
    def polite(answer: str) -> tuple[bool, str]:
        return True, "it says please"

    assert FunctionMetric(polite).info.check


@pytest.mark.parametrize(
    "returned", [(0.5, {"words": 3}), (0.5, 3), ("0.5", "half"), (0.5, "a", "b"), (0.5,)], ids=repr
)
def test_another_pair_is_none_with_a_sentence(returned: Any) -> None:
    with pytest.raises(TypeError, match=r"must return a number, .*, or \(value, why\) with a sentence that says why"):
        scored_by(lambda answer: returned)


class Graded:
    """A metric of a user, which hands over the same object for each case."""

    name = "graded"

    def __init__(self, why: Any) -> None:
        self.result = MetricResult("graded", 1, {"why": why, "of": "a user"})

    def evaluate(self, case: Any, trace: Any, outcome: Any) -> MetricResult:
        return self.result


LONG = "the answer names another month than the expected one " * 4


@pytest.mark.parametrize(
    ("handed_over", "why", "kept"),
    [
        ("half\nright", "half right", {}),
        (LONG, sentence(LONG), {"why": LONG}),
        (["no", "sentence"], None, {"why": ["no", "sentence"]}),
        (0.5, None, {"why": 0.5}),
    ],
    ids=["a sentence", "a long text", "a list", "a number"],
)
def test_what_a_metric_hands_over_is_kept_and_its_own_object_stays_as_it_was(
    handed_over: Any, why: str | None, kept: dict[str, Any]
) -> None:
    metric = Graded(handed_over)

    def function(answer: str) -> MetricResult:
        return metric.result

    for case in agentunit.score([record(), record(), record()], [metric, function]):
        for score in case.scores.values():
            assert (score.value, score.why, score.result.detail) == (1.0, why, {"of": "a user", **kept})
    assert metric.result == MetricResult("graded", 1, {"why": handed_over, "of": "a user"})
    assert isinstance(metric.result.value, int)


def test_a_long_sentence_of_a_function_or_a_check_stays_whole_in_the_detail() -> None:
    def wordy(answer: str) -> Any:
        return 0.5, LONG

    def check(output: Any) -> Any:
        return False, LONG

    [case] = agentunit.score([record()], [wordy, REGISTRY.create("task_success", {"check": check})])
    function, by_check = case.scores["wordy"], case.scores["task_success"]
    assert (function.why, function.result.detail["why"]) == (sentence(LONG.strip()), LONG.strip())
    assert by_check.why == sentence(f"check check failed: {LONG}")
    assert by_check.result.detail["why"] == f"check check failed: {LONG}"


def test_tables_and_pages_have_the_sentence_and_not_the_flag_of_a_check() -> None:
    def polite(answer: str) -> bool:
        return False

    def old(answer: str) -> MetricResult:
        return MetricResult("old", 0.5, {"explanation": LONG})

    case_record = record()
    run = agentunit.score([case_record], [polite, old])
    assert [(row["metric"], row["why"]) for row in run.to_rows()] == [("polite", "returned False"), ("old", None)]
    [case] = agentunit.score([case_record], [polite])
    reported = ReportedCase(0, 0, "q1", False, 0.0, decode_record(encode_json({"v": 1, **case_record})), case.scores)
    [shown] = view_case(reported).scores
    assert (shown.why, shown.reason, shown.detail) == ("returned False", "returned False", {})


def test_a_result_of_a_function_keeps_the_sentence_that_it_has() -> None:
    assert scored_by(lambda answer: MetricResult("x", 0.5, {"why": "half"})).detail == {"why": "half"}


# Parts, and turns.


def test_a_composite_has_no_sentence_of_its_own_and_its_parts_keep_theirs() -> None:
    both = CompositeMetric([REGISTRY.create("exact_match"), REGISTRY.create("tool_success")])
    asked = record("Rome", success=True, expected_output="Paris")
    detail = both.evaluate(asked["case"], asked["trace"], asked["outcome"]).detail
    assert detail["exact_match"]["why"] == '"Rome", expected "Paris"'
    assert "why" not in detail


def talk(*answers: str) -> dict[str, Any]:
    said = [pair for answer in answers for pair in (("user", "?"), ("assistant", answer))]
    events = [{"type": "message", "payload": {"role": role, "content": text}} for role, text in said]
    return {"events": events}


@pytest.mark.parametrize(
    ("answers", "value", "expected"),
    [
        (("4", "6"), 1.0, "all 2 scored turns: equals the expected answer"),
        (("4", "5"), 0.5, 'turn 2: "5", expected "6"'),
        (("5", "6"), 0.5, 'turn 1: "5", expected "4"'),
    ],
)
@pytest.mark.parametrize("name", ["exact_match", "answer_correctness"])
def test_of_a_conversation_the_worst_turn_decides(
    name: str, answers: tuple[str, ...], value: float, expected: str
) -> None:
    turns = [{"query": "?", "expected_output": "4"}, {"query": "?", "expected_output": "6"}]
    result = REGISTRY.create(name).evaluate({"id": "q", "turns": turns}, talk(*answers), answers[-1])  # type: ignore[arg-type]
    assert (result.value, result.detail["why"]) == (value, expected)
    assert all(isinstance(turn["why"], str) for turn in result.detail["turns"])


def test_where_less_is_better_the_worst_turn_is_the_highest() -> None:
    case = {"id": "q", "context": ["Paris"], "turns": ["?", "?"]}
    metric = REGISTRY.create("hallucination_rate", {"backend": "lexical"})
    result = metric.evaluate(case, talk("Paris", "Rome"), "Rome")  # type: ignore[arg-type]
    assert (result.value, result.detail["why"]) == (0.5, 'turn 2: not in the answer, word for word: "Paris"')


def test_a_turn_without_an_answer_leaves_no_sentence() -> None:
    case = {"id": "q", "turns": [{"query": "?", "expected_output": "4"}, "?"]}
    events = [*talk("4")["events"], {"type": "message", "payload": {"role": "user", "content": "?"}}]
    result = REGISTRY.create("exact_match").evaluate(case, {"events": events}, None)  # type: ignore[arg-type]
    assert (result.value, "why" in result.detail) == (None, False)


# The words themselves.


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", '""'),
        ("two\nlines\u2028here", '"two lines here"'),
        ("a" * 48, f'"{"a" * 48}"'),
        ("a" * 49, "a text of 49 characters"),
        ("The parcel with the order number arrives on Monday.", '"The parcel with the order number arrives on …"'),
        (
            "Pay by card 4111 1111 1111 1111 today, it is the last day.",
            '"Pay by card 4111 1111 1111 1111 today, it is …"',
        ),
        ("Pay today, by card, the sum of it: 4111 1111 1111 1111", '"Pay today, by card, the sum of it: …"'),
        ("write to a.friend.of.mine@some.example.organization.org", '"write to …"'),
        ("  \n", '""'),
    ],
)
def test_texts_are_quoted_on_one_line_without_half_a_word(text: str, shown: str) -> None:
    assert quoted(text) == shown


@pytest.mark.parametrize(
    "text", ["short", "x" * 500, MANY_WORDS, "a\nb" * 100, "1 " * 200, "\u2029" * 300, "日本語" * 90]
)
def test_a_sentence_is_one_line_of_at_most_120_characters(text: str) -> None:
    made = sentence(text)
    assert len(made) <= LONGEST
    assert len(made.splitlines()) <= 1


def test_only_the_beginning_of_a_long_text_is_read() -> None:
    class Watched(str):
        longest = 0

        def __getitem__(self, key: Any) -> str:
            part = super().__getitem__(key)
            Watched.longest = max(Watched.longest, len(part))
            return part

        def split(self, *_: Any) -> Any:
            raise AssertionError("the whole text is split")

    text = Watched("\n" + MANY_WORDS)
    assert len(quoted(text)) < 60
    assert sentence(text).startswith("word word")
    assert Watched.longest <= 4_000


def test_lists_values_and_amounts() -> None:
    assert listed([]) == ""
    assert [shown_value(value) for value in (True, None, "a\nb", 10**400, 10**5000, {1})] == [
        "true",
        "null",
        '"a b"',
        "a number of 401 digits",
        "a number of thousands of digits",
        "a set",
    ]
    assert [amount(value) for value in (0, 0.00012345, 9999.4, 1e6, 1e99)] == [
        "0",
        "0.0001234",
        "9,999",
        "1,000,000",
        "1e+99",
    ]
