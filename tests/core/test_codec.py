"""Records to lines and back: nothing is lost, and what cannot be read says why."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from types import MappingProxyType, SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentunit.core.case import DatasetCase
from agentunit.core.codec import RecordError, as_case, as_outcome, as_record, as_trace, decode_record, encode_record
from agentunit.core.records import Outcome, Record
from agentunit.core.trace import AgentInteraction, AgentRole, ConflictEvent, HandoffEvent, TraceEvent, TraceLog
from agentunit.engine.scoring.records import score


def line(**fields: Any) -> bytes:
    return json.dumps({"v": 1, **fields}).encode()


def record_with(**trace: Any) -> Record:
    return decode_record(line(case={"id": "q1"}, trace=trace))


# Round trips

# JSON as it lies in files: numbers within 64 bits, text that is valid Unicode.
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
OBJECTS = st.dictionaries(st.text(max_size=5), JSON, max_size=3)
TEXTS = st.text(max_size=8)
SECONDS = st.none() | st.floats(-1e14, 1e14)
FLAGS = st.none() | st.booleans()
# Names of a later version, or of another tool; none of them is known today.
UNKNOWN = st.none() | st.dictionaries(st.text(max_size=4).map("x-{}".format), JSON, min_size=1, max_size=2)

CASES = st.builds(
    DatasetCase,
    id=TEXTS,
    query=st.none() | TEXTS,
    expected_output=JSON,
    tools=st.none() | st.lists(JSON, max_size=2),
    context=st.none() | st.lists(TEXTS, max_size=2),
    metadata=OBJECTS,
    extra=UNKNOWN,
)
EVENTS = st.builds(TraceEvent, type=TEXTS, payload=OBJECTS, timestamp=SECONDS, extra=UNKNOWN)
INTERACTIONS = st.builds(
    AgentInteraction,
    from_agent=TEXTS,
    to_agent=TEXTS | st.lists(TEXTS, max_size=2),
    content=JSON,
    timestamp=SECONDS,
    success=FLAGS,
    metadata=OBJECTS,
    extra=UNKNOWN,
)
HANDOFFS = st.builds(HandoffEvent, from_agent=TEXTS, to_agent=TEXTS, success=FLAGS, timestamp=SECONDS, extra=UNKNOWN)
CONFLICTS = st.builds(
    ConflictEvent, agents_involved=st.lists(TEXTS, max_size=2), resolved=FLAGS, timestamp=SECONDS, extra=UNKNOWN
)
ROLES = st.builds(AgentRole, name=TEXTS, capabilities=st.none() | st.lists(TEXTS, max_size=2), extra=UNKNOWN)
TRACES = st.builds(
    TraceLog,
    events=st.lists(EVENTS, max_size=3),
    metadata=OBJECTS,
    interactions=st.lists(INTERACTIONS, max_size=2),
    handoffs=st.lists(HANDOFFS, max_size=2),
    conflicts=st.lists(CONFLICTS, max_size=2),
    agent_roles=st.dictionaries(TEXTS, ROLES, max_size=2),
    extra=UNKNOWN,
)
OUTCOMES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    TEXTS,
    st.lists(JSON, max_size=3),
    st.builds(
        Outcome,
        success=FLAGS,
        output=JSON,
        cost=SECONDS,
        usage=st.none() | OBJECTS,
        error=st.none() | TEXTS,
        state=st.none() | OBJECTS,
        elapsed_s=SECONDS,
        metadata=OBJECTS,
        extra=UNKNOWN,
    ),
)
RECORDS = st.builds(Record, case=CASES, trace=TRACES, outcome=OUTCOMES, extra=UNKNOWN)


@given(RECORDS)
@settings(deadline=None, max_examples=150)
def test_what_is_written_is_read_back(record: Record) -> None:
    written = encode_record(record)
    assert b"\n" not in written
    assert decode_record(written) == record
    assert encode_record(decode_record(written)) == written
    assert decode_record(written.decode()) == record


@given(RECORDS)
@settings(deadline=None, max_examples=50)
def test_a_plain_dict_reads_like_its_line(record: Record) -> None:
    written = encode_record(record)
    loose = as_record(json.loads(written))
    read = decode_record(written)
    assert (loose.case, loose.trace, loose.outcome) == (read.case, read.trace, read.outcome)


EVERYWHERE: dict[str, Any] = {
    "v": 1,
    "case": {"id": "q1", "mood": {"deep": [1, None, 2.5, "é"]}},
    "trace": {
        "events": [{"type": "tool_call", "payload": {"name": "x"}, "span_id": "abc"}],
        "interactions": [{"from_agent": "a", "to_agent": ["b", "c"], "tone": "polite"}],
        "handoffs": [{"from_agent": "a", "to_agent": "b", "urgency": 2}],
        "conflicts": [{"agents_involved": ["a", "b"], "heat": 0.5}],
        "agent_roles": {"a": {"name": "planner", "rank": [1]}},
        "trace_id": "t1",
    },
    "outcome": {"output": "Paris", "latency": None},
    "run": {"id": 7},
}


def test_unknown_fields_survive_at_every_level() -> None:
    record = decode_record(json.dumps(EVERYWHERE))
    assert json.loads(encode_record(record)) == EVERYWHERE
    assert record.extra == {"run": {"id": 7}}
    assert record.case.extra == {"mood": {"deep": [1, None, 2.5, "é"]}}
    assert record.trace.events[0].extra == {"span_id": "abc"}
    assert record.trace.agent_roles["a"].extra == {"rank": [1]}
    assert isinstance(record.outcome, Outcome)
    assert record.outcome.extra == {"latency": None}


@pytest.mark.parametrize("unknown_key", ["extra", "value", "V", "Case", "", "__class__"])
def test_a_field_that_only_looks_known_survives(unknown_key: str) -> None:
    given_line = {"v": 1, "case": {"id": "q1", unknown_key: 1}, "trace": {}, "outcome": None}
    assert json.loads(encode_record(decode_record(json.dumps(given_line)))) == given_line


@pytest.mark.parametrize("value", [5, {"id": "other"}, {"mood": 1}, None, [], "x"])
@pytest.mark.parametrize("beside", [{}, {"mood": "curious"}])
def test_the_name_under_which_unknown_fields_are_kept_is_no_back_door(value: Any, beside: dict[str, Any]) -> None:
    fields = {"id": "q1", "__extra__": value, **beside}
    try:
        record = decode_record(line(case=fields))
    except RecordError:
        return  # refusing it is as good
    assert record.case.id == "q1"
    assert json.loads(encode_record(record))["case"]["id"] == "q1"


def test_big_numbers_and_all_of_unicode_survive() -> None:
    fields = {"id": "é\u0000\U0001f642\u2028", "metadata": {"n": 10**30, "f": 5e-324, "z": -0.0}}
    record = decode_record(line(case=fields))
    assert json.loads(encode_record(record))["case"] == fields
    assert b"\n" not in encode_record(record)


def test_the_shortest_record_and_its_line() -> None:
    record = decode_record(b'{"case": {}}')
    assert record == Record(DatasetCase())
    assert json.loads(encode_record(record)) == {"v": 1, "case": {}, "trace": {}, "outcome": None}


def test_what_json_does_not_know_is_written_as_text_or_numbers() -> None:
    class Odd:
        def __str__(self) -> str:
            return "odd"

    record = Record(DatasetCase("q1", metadata={"when": datetime(2024, 1, 2, tzinfo=timezone.utc), "odd": Odd()}))
    metadata = json.loads(encode_record(record))["case"]["metadata"]
    assert metadata["odd"] == "odd"
    assert metadata["when"].startswith("2024-01-02T00:00:00")


def test_multi_agent_data_may_be_plain_dicts() -> None:
    trace = TraceLog(
        interactions=[{"from_agent": "a", "to_agent": "b"}],
        handoffs=[{"from_agent": "a", "to_agent": "b"}],
        conflicts=[{"agents_involved": ["a", "b"]}],
        agent_roles={"a": {"name": "planner"}},
    )
    read = decode_record(encode_record(Record(DatasetCase("q1"), trace)))
    assert read.trace.interactions == [AgentInteraction("a", "b")]
    assert read.trace.handoffs == [HandoffEvent("a", "b")]
    assert read.trace.conflicts == [ConflictEvent(["a", "b"])]
    assert read.trace.agent_roles == {"a": AgentRole("planner")}


# Spellings that mean the same


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        (12, 12.0),
        (12.5, 12.5),
        (-1, -1.0),
        (None, None),
        ("1970-01-01T00:01:00Z", 60.0),
        ("1970-01-01T00:01:00z", 60.0),
        ("1970-01-01T00:01:00+00:00", 60.0),
        ("1970-01-01T01:01:00+01:00", 60.0),
        ("1970-01-01T00:01:00", 60.0),  # no zone: read as UTC
        ("1970-01-01 00:01:00", 60.0),
        ("1970-01-01", 0.0),
        ("1970-01-01T00:00:00.250Z", 0.25),
        ("1970-01-01T00:00:00.250000Z", 0.25),
        ("1970-01-01T00:00:00.5Z", 0.5),
        ("1970-01-01T00:00:00.250000000Z", 0.25),  # nanoseconds, as OpenTelemetry tools write them
    ],
)
@pytest.mark.parametrize("unknown", [{}, {"span": 1}], ids=["known fields", "unknown field"])
def test_times_become_seconds(written: Any, seconds: float | None, unknown: dict[str, Any]) -> None:
    trace = record_with(
        events=[{"type": "x", "timestamp": written, **unknown}],
        interactions=[{"from_agent": "a", "to_agent": "b", "timestamp": written}],
        handoffs=[{"from_agent": "a", "to_agent": "b", "timestamp": written}],
        conflicts=[{"timestamp": written}],
    ).trace
    assert [each.timestamp for each in (*trace.events, *trace.interactions, *trace.handoffs, *trace.conflicts)] == [
        seconds
    ] * 4


@pytest.mark.parametrize("timestamp", [1e14, 1e15, 1.7e18, -1.7e18, 1e300])
def test_a_time_is_judged_alike_whatever_stands_beside_it(timestamp: float) -> None:
    # 1.7e18 are the nanoseconds that OpenTelemetry writes: refused or read, but not now this and now that.
    verdicts = set()
    for beside in ({}, {"span": 1}):
        event = {"type": "x", "timestamp": timestamp, **beside}
        for read in (lambda event: record_with(events=[event]), lambda event: as_trace([event])):
            try:
                read(event)
                verdicts.add("read")
            except RecordError:
                verdicts.add("refused")
    try:
        TraceEvent("x", {}, timestamp)
        verdicts.add("read")
    except ValueError:
        verdicts.add("refused")
    assert len(verdicts) == 1


def test_datetimes_in_plain_dicts() -> None:
    paris = timezone(timedelta(hours=1))
    for moment in (datetime(1970, 1, 1, 0, 1), datetime(1970, 1, 1, 1, 1, tzinfo=paris)):
        trace = as_trace([{"type": "x", "timestamp": moment}])
        assert trace.events[0].timestamp == 60.0


@pytest.mark.parametrize(("written", "read"), [(7, "7"), (0, "0"), (-3, "-3"), ("7", "7"), ("", "")])
def test_whole_numbers_are_ids(written: Any, read: str) -> None:
    assert decode_record(line(case={"id": written})).case.id == read
    assert as_case({"id": written}).id == read


def test_one_context_string_is_a_list_of_one() -> None:
    assert decode_record(line(case={"id": "q1", "context": "Paris"})).case.context == ["Paris"]


def test_a_role_may_be_its_name() -> None:
    assert record_with(agent_roles={"a": "planner"}).trace.agent_roles == {"a": AgentRole("planner")}


@pytest.mark.parametrize(
    "fields",
    [
        {"case": {"id": "q1", "metadata": None}},
        {"case": {"id": "q1"}, "trace": None},
        {"case": {"id": "q1"}, "trace": {"events": None, "metadata": None}},
        {"case": {"id": "q1"}, "trace": {"interactions": None, "agent_roles": None}},
        {"case": {"id": "q1", "query": None, "context": None, "tools": None}, "outcome": None},
    ],
)
def test_null_is_as_good_as_absent(fields: dict[str, Any]) -> None:
    assert decode_record(line(**fields)) == Record(DatasetCase("q1"))


def test_null_metadata_of_outcomes_and_events() -> None:
    record = decode_record(line(case={"id": "q1"}, outcome={"output": "x", "metadata": None}))
    assert record.outcome == Outcome(output="x")


# What cannot be read, and the reason it gives

UNREADABLE = [
    (b"", "not JSON"),
    (b"{", "not JSON"),
    (b"Paris", "not JSON"),
    (b'{"case": {"id": "q1"}', "not JSON"),
    (b'{"case": {"id": "q1"}} {"case": {}}', "not JSON: trailing characters"),
    (b'{"case": {"id": "q1"}, "outcome": {"cost": NaN}}', "NaN is not JSON (write null for an unknown number)"),
    (b'{"case": {"id": "q1"}, "outcome": Infinity}', "Infinity is not JSON (write null"),
    (b'{"case": {"id": "q1"}, "outcome": -Infinity}', "Infinity is not JSON (write null"),
    (b'{"case": {"id": "\xff"}}', "not valid UTF-8"),
    (b'{"case": {"id": "q1"}, "mood": "\xff"}', "not valid UTF-8"),
    (b'{"case": {"id": "q1", "mood": "\xc3"}}', "not valid UTF-8"),
    (b'[{"case": {"id": "q1"}}]', "a JSON array where a record is expected"),
    (b'"Paris"', "a record must be a JSON object; received a string"),
    (b"5", "a record must be a JSON object; received a number"),
    (b"true", "a record must be a JSON object; received a boolean"),
    (b"null", "a record must be a JSON object; received null"),
    (b"{}", "a record needs 'case'; received the fields (none)"),
    (b'{"query": "?", "answer": "!"}', "a record needs 'case'; received the fields query, answer"),
    (b'{"v": 2, "case": {}}', "record version must be 1; received 2; a newer AgentUnit wrote it: upgrade"),
    (b'{"v": 2, "case": {}, "mood": 1}', "record version must be 1; received 2; a newer AgentUnit wrote it: upgrade"),
    (b'{"v": 0, "case": {}}', "record version must be 1; received 0"),
    (b'{"v": true, "case": {}}', "record version must be 1; received True"),
    (b'{"v": "1", "case": {}}', "record version must be 1; received '1'"),
    (b'{"v": null, "case": {}}', "record version must be 1; received None"),
    (b'{"case": null}', "case must be"),
    (b'{"case": "q1"}', "case must be"),
    (b'{"case": {"id": true}}', "case.id must be"),
    (b'{"case": {"id": 1.5}}', "case.id must be"),
    (b'{"case": {"query": 5}}', "case.query must be"),
    (b'{"case": {"context": [5]}}', "case.context[0] must be"),
    (b'{"case": {"metadata": []}}', "case.metadata must be"),
    (b'{"case": {}, "trace": 5}', "trace must be"),
    (b'{"case": {}, "trace": {"events": 5}}', "trace.events must be"),
    (b'{"case": {}, "trace": {"events": ["tool_call"]}}', "trace.events[0] must be"),
    (b'{"case": {}, "trace": {"events": [{"payload": {}}]}}', "required field `type`"),
    (b'{"case": {}, "trace": {"events": [{"type": "x", "payload": 5}]}}', "trace.events[0].payload must be"),
    (b'{"case": {}, "trace": {"events": [{"type": "x", "timestamp": "soon"}]}}', "timestamp must be seconds or an ISO"),
    (b'{"case": {}, "trace": {"events": [{"type": "x", "timestamp": true}]}}', "timestamp must be"),
    (b'{"case": {}, "trace": {"events": [{"type": "x", "timestamp": [1]}]}}', "timestamp must be"),
    (b'{"case": {}, "trace": {"events": [{"type": "x", "timestamp": 1' + b"0" * 400 + b"}]}}", "timestamp must be"),
    (b'{"case": {}, "trace": {"interactions": [{"to_agent": "b"}]}}', "from_agent"),
    (b'{"case": {}, "trace": {"agent_roles": ["planner"]}}', "trace.agent_roles must be"),
    (b'{"case": {}, "outcome": {"success": "yes"}}', "outcome.success must be"),
    (b'{"case": {}, "outcome": {"cost": "cheap"}}', "outcome.cost must be"),
    (b'{"case": {"expected_output": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}", "nested too deeply"),
    (b'{"mood": 1, "case": {"expected_output": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}", "nested too deeply"),
]


@pytest.mark.parametrize(("written", "reason"), UNREADABLE, ids=lambda value: str(value)[:60])
def test_what_cannot_be_read_says_why(written: bytes, reason: str) -> None:
    with pytest.raises(RecordError) as caught:
        decode_record(written)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_lone_surrogate_is_read_as_a_question_mark_and_written_as_one() -> None:
    # Python's json writes "\\ud800" for text that holds one; the line is whole.
    record = decode_record(json.dumps({"case": {"id": "a\ud800", "query": "more text after it"}, "outcome": "x\udfff"}))
    assert (record.case.id, record.case.query, record.outcome) == ("a?", "more text after it", "x?")
    assert decode_record(encode_record(Record(DatasetCase("a\ud800")))).case.id == "a?"


@pytest.mark.parametrize("line", ['{"case": {"id": "\\ud800"}', '{"case": {"id": "\\ud800", "metadata": {"x": NaN}}}'])
def test_a_lone_surrogate_does_not_excuse_other_faults(line: str) -> None:
    with pytest.raises(RecordError):
        decode_record(line)


@given(st.binary(max_size=40) | JSON.map(msgspec.json.encode) | OBJECTS.map(msgspec.json.encode))
@settings(deadline=None)
def test_no_line_does_worse_than_a_record_error(written: bytes) -> None:
    with suppress(RecordError):  # anything but a record or this is the finding
        assert isinstance(decode_record(written), Record)


# A record's parts, however one damages them: refused with a reason or read, never anything else.
PLACES: list[tuple[Any, ...]] = [
    ("case",), ("case", "id"), ("case", "context"), ("case", "metadata"), ("case", "__extra__"), ("trace",),
    ("trace", "events"), ("trace", "events", 0), ("trace", "events", 0, "payload"), ("trace", "events", 0, "timestamp"),
    ("trace", "events", 0, "__extra__"), ("trace", "interactions"), ("trace", "interactions", 0),
    ("trace", "interactions", 0, "to_agent"), ("trace", "agent_roles"), ("trace", "agent_roles", "a"),
    ("trace", "__extra__"), ("outcome",), ("outcome", "usage"), ("outcome", "__extra__"), ("__extra__",), ("v",),
]  # fmt: skip


@given(place=st.sampled_from(PLACES), value=JSON | st.just(10**400))
@settings(deadline=None, max_examples=300)
def test_a_damaged_part_is_refused_or_read(place: tuple[Any, ...], value: Any) -> None:
    damaged = json.loads(json.dumps(EVERYWHERE))
    holder = damaged
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    try:
        decode_record(msgspec.json.encode(damaged))
        line_is_readable = True
    except RecordError:
        line_is_readable = False
    try:
        as_record(damaged)
    except RecordError:
        assert not line_is_readable, "what a file may hold, a dict may hold"


# Whatever a user hands over


def test_records_of_every_shape() -> None:
    case, trace, outcome = DatasetCase("q1"), TraceLog(), Outcome(output="Paris")
    record = Record(case, trace, outcome)
    assert as_record(record) is record
    for shape in (
        (case, trace, outcome),
        [case, trace, outcome],
        {"case": case, "trace": trace, "outcome": outcome},
        MappingProxyType({"case": case, "trace": trace, "outcome": outcome}),
        SimpleNamespace(case=case, trace=trace, outcome=outcome),
    ):
        loose = as_record(shape)
        assert (loose.case, loose.trace, loose.outcome) == (case, trace, outcome)
        assert as_record(loose) is loose


def test_parts_of_a_record_may_be_plain_or_absent() -> None:
    loose = as_record({"case": {"id": 7, "mood": 1}, "outcome": {"output": "x"}})
    assert loose.case == DatasetCase("7", extra={"mood": 1})
    assert loose.trace == TraceLog()
    assert loose.outcome == Outcome(output="x")
    assert as_record(SimpleNamespace(case={"id": "q1"})).outcome is None


def test_parts_of_other_types_are_used_as_they_are() -> None:
    mine = SimpleNamespace(id="q1")
    loose = as_record((mine, mine, mine))
    assert loose.case is mine
    assert loose.trace is mine
    assert loose.outcome is mine
    assert as_outcome("Paris") == "Paris"
    assert as_case(None) is None
    assert as_trace(None) == TraceLog()


def test_a_list_of_events_is_a_trace() -> None:
    typed = TraceEvent("b", {})
    assert as_trace([{"type": "a", "span": 1}, typed]) == TraceLog([TraceEvent("a", {}, None, {"span": 1}), typed])


def test_reading_plain_dicts_changes_none_of_them() -> None:
    plain = json.loads(json.dumps(EVERYWHERE))
    as_record(plain)
    assert plain == EVERYWHERE


@pytest.mark.parametrize(
    ("given_value", "reason"),
    [
        (
            5,
            "must be a Record, a dict with 'case', 'trace' and 'outcome', or a tuple of the three; received int",
        ),
        ("q1", "received str"),
        (None, "received NoneType"),
        ((1, 2), "received tuple"),
        ({}, "a record needs 'case'; received the fields (none)"),
        ({"query": "?"}, "a record needs 'case'; received the fields query"),
        ({"case": {}, "v": 2}, "record version must be 1; received 2"),
        ({"case": {}, "v": True}, "record version must be 1; received True"),
        ({"case": {"id": 1.5}}, "case"),
        ({"case": {5: 1}}, "case"),
        ({"case": {}, "trace": {"events": 5}}, "trace"),
        ({"case": {}, "trace": [{"type": 5}]}, "trace"),
        ({"case": {}, "trace": [{"type": "x", "timestamp": 10**400}]}, "timestamp"),
        ({"case": {}, "outcome": {"cost": "cheap"}}, "outcome"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_no_record_says_why(given_value: Any, reason: str) -> None:
    with pytest.raises(RecordError) as caught:
        as_record(given_value)
    assert reason in str(caught.value)


# Flat events


FLAT = {"type": "tool_call", "status": "success", "cost": 0.1, "span_id": "a"}


@dataclass
class FlatEvent:
    type: str = "tool_call"
    status: str = "success"
    cost: float = 0.1
    name: str | None = None


@pytest.mark.parametrize("event", [FLAT, FlatEvent(), SimpleNamespace(type="tool_call", status="success", cost=0.1)])
@pytest.mark.parametrize("whole", [lambda each: TraceLog([each]), lambda each: {"events": [each]}, lambda each: [each]])
def test_the_fields_of_a_flat_event_reach_the_payload(event: Any, whole: Any) -> None:
    record = as_record((DatasetCase("q1"), whole(event), "done"))
    scores = next(iter(score([record], ["tool_success", "cost"]))).scores
    assert (scores["tool_success"].value, scores["cost"].value) == (1.0, 0.1)
    written = encode_record(Record(DatasetCase("q1"), as_trace(whole(event))))
    assert decode_record(written).trace.events[0].payload == {"status": "success", "cost": 0.1}


def test_what_the_payload_says_itself_counts_and_unknown_fields_stay_where_they_are() -> None:
    event = {"type": "tool_call", "payload": {"status": "error"}, "status": "success", "name": "search", "mood": 1}
    read = decode_record(json.dumps({"case": {}, "trace": {"events": [event]}}))
    assert read.trace.events[0].payload == {"status": "error", "name": "search"}
    assert read.trace.events[0].extra == {"status": "success", "mood": 1}
    assert json.loads(encode_record(read))["trace"]["events"][0] == {
        "type": "tool_call", "payload": {"status": "error", "name": "search"}, "status": "success", "mood": 1
    }  # fmt: skip


def test_record_takes_names_or_a_payload() -> None:
    trace = TraceLog()
    trace.record("tool_call", name="a", status="success")
    trace.record("tool_call", payload={"name": "a"}, status="success")
    assert [event.payload for event in trace.events] == [{"name": "a", "status": "success"}] * 2
