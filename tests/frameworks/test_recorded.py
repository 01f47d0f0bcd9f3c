"""What real frameworks wrote becomes the record it should be, and broken versions of it do no harm.

Each file of ``recorded`` was written by a scenario of the same name, whose run is known: ``<scenario>.expected.json``.
"""

from __future__ import annotations

import copy
import gzip
import json
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import agentunit
from agentunit.core.codec import decode_record, encode_record
from agentunit.core.results import InputError
from agentunit.traces.reading import TraceFiles

RECORDED = Path(__file__).parent / "recorded"
FILES = sorted(path.name for path in RECORDED.iterdir() if ".expected." not in path.name and ".logs." not in path.name)

# What a variant cannot tell, by the name of its file. Everything else must be right.
CONTENTS = {"question", "answer", "arguments", "results"}
CANNOT_TELL = {
    "adk.nocontent": CONTENTS,
    "agent_framework.nocontent": CONTENTS,
    "agent_framework.v1_36": CONTENTS | {"cached_tokens"},  # contents stand in log records
    "ag2_classic": {"cached_tokens"},
    "ag2_classic.openinference": {"usage", "models"},
    "autogen": {"models", "cached_tokens"},
    "autogen.openinference": {"cached_tokens"},
    "autogen.openinference_only": {"cached_tokens"},
    "crewai": {"models"},
    "langgraph.hidden": CONTENTS | {"documents"},
    "llamaindex.streaming": {"usage"},
    "openai_agents.chat": {"cached_tokens"},
    "openai_agents.hidden": CONTENTS,
    "openai_agents.traceloop_chat": {"answer", "usage"},
    "openai_client": {"question", "answer", "tool_calls", "cached_tokens"},
    "openai_client.genai_openai_events": {"question", "answer", "tool_calls"},
    "openai_client.openai_v2": {"cached_tokens"},
    "openai_client.openai_v2_events": {"question", "answer", "tool_calls", "cached_tokens"},
    "pydantic_ai.hidden": CONTENTS,
    "pydantic_ai.v1": {"cached_tokens"},
    "smolagents": {"cached_tokens"},
    "smolagents.code": {"cached_tokens"},
    "smolagents.genai": {"cached_tokens"},
}
# Where the spans themselves say something else than what happened.
SPANS_SAY_OTHERWISE = {
    # OpenInference overwrites the spans of three of five model calls.
    "adk.mixed": {"usage": {"prompt_tokens": 676, "completion_tokens": 78, "cached_tokens": 272}},
}
# The tool caught its own error and told of it in the contents, which are hidden; its span says OK.
SAID_TO_HAVE = {("langgraph.hidden", "email_receipt"): "success"}
UNKNOWN = {
    "usage": None,
    "models": [],
    "tool_calls": [],
    "question": None,
    "answer": None,
    "agents": [],
    "handoffs": [],
}
# One run in 22 traces: only a span around the run holds them together.
SCATTERED = "autogen.unrooted"
# All that OpenInference writes of Haystack's agents are Python's texts of messages.
UNTOLD = "haystack.openinference"
LOGS = {
    "openai_client.genai_openai_events": set(),
    "openai_client.openai_v2_events": {"cached_tokens"},
}


def variant_of(file):
    return file.removesuffix(".gz").removesuffix(".json")


def records_of(*paths):
    found = list(agentunit.read_records(*paths))
    assert not [each for each in found if isinstance(each, InputError)]
    return found


def without_the_unknown(expected, unknown):
    """The expected facts as a variant can tell them that does not know these."""
    expected = copy.deepcopy(expected)
    expected |= {name: value for name, value in UNKNOWN.items() if name in unknown}
    if "cached_tokens" in unknown:
        expected["usage"]["cached_tokens"] = None
    if "documents" in unknown:
        expected["documents"] = [None for _ in expected["documents"]]
    for call in expected["tool_calls"]:
        if "arguments" in unknown:
            call["arguments"] = None
        if "results" in unknown:
            call["result"] = None
        if unknown & {"arguments", "results"}:
            call["error"] = None
    return expected


@pytest.mark.parametrize("file", [file for file in FILES if variant_of(file) not in (SCATTERED, UNTOLD)])
def test_a_recorded_run_is_read_as_it_was(file, expected_of, facts_of, assert_agrees):
    variant = variant_of(file)
    (record,) = records_of(RECORDED / file)
    expected = without_the_unknown(expected_of(variant.split(".")[0]), CANNOT_TELL.get(variant, set()))
    expected |= SPANS_SAY_OTHERWISE.get(variant, {})
    for call in expected["tool_calls"]:
        call["status"] = SAID_TO_HAVE.get((variant, call["name"]), call["status"])
    assert_agrees(facts_of(record), expected)
    assert decode_record(encode_record(record)) == record


@pytest.mark.parametrize("variant", LOGS)
def test_contents_in_log_records_join_their_spans(variant, expected_of, facts_of, assert_agrees):
    files = [RECORDED / f"{variant}.json", RECORDED / f"{variant}.logs.json"]
    for paths in (files, files[::-1]):
        (record,) = records_of(*paths)
        assert_agrees(facts_of(record), without_the_unknown(expected_of("openai_client"), LOGS[variant]))


def test_log_records_without_contents_name_the_tools_and_no_more(expected_of, facts_of):
    (record,) = records_of(RECORDED / "openai_client.json", RECORDED / "openai_client.logs.json")
    facts = facts_of(record)
    assert (facts["question"], facts["answer"]) == (None, None)
    assert [call["name"] for call in facts["tool_calls"]] == [
        call["name"] for call in expected_of("openai_client")["tool_calls"]
    ]
    for call in facts["tool_calls"]:
        assert (call["arguments"], call["status"], call["result"]) == (None, None, None)


def test_a_run_of_which_nothing_can_be_told_is_counted_and_nothing_made_up():
    reading = TraceFiles([RECORDED / f"{UNTOLD}.json"])
    assert list(reading) == []
    assert reading.notes.problems["traces without question, answer, tool call and model call make no case"] == 1


def test_a_scattered_run_loses_nothing(expected_of, facts_of):
    found = [facts_of(record) for record in records_of(RECORDED / f"{SCATTERED}.json")]
    expected = expected_of("autogen")
    assert expected["question"] in [facts["question"] for facts in found]
    assert expected["answer"] in [facts["answer"] for facts in found]
    for call in expected["tool_calls"]:
        assert (call["name"], call["arguments"]) in [
            (each["name"], each["arguments"]) for facts in found for each in facts["tool_calls"]
        ]


def test_calls_whose_spans_have_other_ids_than_their_messages_are_counted_once(
    tmp_path, expected_of, facts_of, assert_agrees
):
    # So with Gemini, which gives its calls no ids: ADK makes one up for the span and another for the messages.
    document = document_of("adk.json")
    for number, span in enumerate(spans_in(document)):
        for attribute in span["attributes"]:
            if attribute["key"] == "gen_ai.tool.call.id":
                attribute["value"] = {"stringValue": f"adk-{number}"}
    (tmp_path / "adk.json").write_text(json.dumps(document))
    (record,) = records_of(tmp_path / "adk.json")
    assert_agrees(facts_of(record), expected_of("adk"))


def test_the_session_is_known():
    (record,) = records_of(RECORDED / "langgraph.json")
    assert record.trace.metadata["session_id"] == "customer-7"


# --- broken versions ------------------------------------------------------------------------------------------------

MAIN = [file for file in FILES if file.count(".") == 1]


def spans_in(document):
    return [
        span for resource in document["resourceSpans"] for scope in resource["scopeSpans"] for span in scope["spans"]
    ]


def keep_spans(document, keep):
    for resource in document["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            scope["spans"] = [span for span in scope["spans"] if keep(span)]


def drop_some(document, chance):
    keep_spans(document, lambda span: chance.random() < 0.7)


def drop_roots(document, chance):
    keep_spans(document, lambda span: span.get("parentSpanId"))


def repeat_some(document, chance):
    for resource in document["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            again = chance.choices(scope["spans"], k=chance.randint(1, len(scope["spans"])))
            scope["spans"] += copy.deepcopy(again)


def change_repeats(document, chance):
    repeat_some(document, chance)
    for span in spans_in(document):
        if chance.random() < 0.3:
            span["name"] += "!"


def shuffle(document, chance):
    for resource in document["resourceSpans"]:
        chance.shuffle(resource["scopeSpans"])
        for scope in resource["scopeSpans"]:
            chance.shuffle(scope["spans"])


def break_parents(document, chance):
    spans = spans_in(document)
    chance.choice(spans)["parentSpanId"] = "ffffffffffffffff"
    for span in spans[1:]:
        if chance.random() < 0.5 and span.get("parentSpanId") != "ffffffffffffffff":
            span["parentSpanId"] = chance.choice(["ffffffffffffffff", "", "not hex", None, 7])


def make_circles(document, chance):
    spans = spans_in(document)
    for span in spans:
        if chance.random() < 0.5:
            span["parentSpanId"] = chance.choice(spans)["spanId"]
    # Within one trace: spans of two traces do not hold each other.
    one = chance.choice(spans)
    others = [span for span in spans if span["traceId"] == one["traceId"] and span is not one]
    other = chance.choice(others or [one])
    one["parentSpanId"], other["parentSpanId"] = other["spanId"], one["spanId"]


def shift_clocks(document, chance):
    for span in spans_in(document):
        if chance.random() < 0.5:
            for name in ("startTimeUnixNano", "endTimeUnixNano"):
                span[name] = str(int(span[name]) + chance.randint(-(10**12), 10**12))
        elif chance.random() < 0.2:
            span["endTimeUnixNano"] = chance.choice(["0", "", None, "soon", "-1", "9" * 30])


def mistype_attributes(document, chance):
    odd = [{}, {"intValue": "7"}, {"boolValue": True}, {"arrayValue": {}}, {"kvlistValue": {"values": []}}]
    odd += [{"stringValue": "{"}, {"stringValue": "[[]]"}, {"doubleValue": "NaN"}, {"stringValue": 3}, None, 5]
    for span in spans_in(document):
        for attribute in span["attributes"]:
            if chance.random() < 0.3:
                attribute["value"] = chance.choice(odd)
        if chance.random() < 0.1:
            span["attributes"] = chance.choice([None, {}, "none", [7]])
        if chance.random() < 0.1:
            span["status"] = chance.choice([None, 2, {"code": "ERROR"}, {"code": 99}])


MUTATIONS = [
    drop_some,
    drop_roots,
    repeat_some,
    change_repeats,
    shuffle,
    break_parents,
    make_circles,
    shift_clocks,
    mistype_attributes,
]
# What a reading must say of a file to which this was done.
SAID = {
    repeat_some: "spans came twice",
    make_circles: "spans are their own ancestors",
    break_parents: "spans name a parent that is not in the file",
}


def document_of(file):
    raw = (RECORDED / file).read_bytes()
    return json.loads(gzip.decompress(raw) if file.endswith(".gz") else raw)


def read_both(broken, file):
    """The records of a broken file and of a whole one beside it, which must be as ever."""
    witness = RECORDED / ("pydantic_ai.json" if not file.startswith("pydantic_ai") else "smolagents.json")
    reading = TraceFiles([broken, witness])
    found = list(reading)
    (whole,) = records_of(witness)
    assert whole in found
    refused = [each.reason for each in found if isinstance(each, InputError)]
    assert not [reason for reason in refused if not reason or "cannot be put together" in reason]
    for each in found:
        if not isinstance(each, InputError):
            encode_record(each)
    return reading.notes, [each for each in found if each != whole]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(file=st.sampled_from(MAIN), seed=st.integers(0, 2**32 - 1))
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_broken_files_do_no_harm(mutation, file, seed, tmp_path):
    document, chance = document_of(file), random.Random(seed)
    mutation(document, chance)
    broken = tmp_path / "broken.json"
    broken.write_text(json.dumps(document))
    notes, _ = read_both(broken, file)
    if mutation in SAID:
        assert any(problem.startswith(SAID[mutation]) for problem in notes.problems), notes.problems


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(file=st.sampled_from(MAIN), seed=st.integers(0, 2**32 - 1))
def test_order_and_repetition_change_nothing(file, seed, tmp_path):
    document, chance = document_of(file), random.Random(seed)
    repeat_some(document, chance)
    shuffle(document, chance)
    broken = tmp_path / "broken.json"
    broken.write_text(json.dumps(document))
    assert list(agentunit.read_records(broken)) == records_of(RECORDED / file)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(file=st.sampled_from(MAIN), share=st.floats(0, 1))
def test_a_file_that_is_cut_off_says_so(file, share, tmp_path):
    data = json.dumps(document_of(file)).encode()
    cut = data[: int(share * (len(data) - 1))]
    broken = tmp_path / "broken.json"
    broken.write_bytes(cut)
    _, found = read_both(broken, file)
    assert not cut or any(isinstance(each, InputError) for each in found)
