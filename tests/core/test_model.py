from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import agentunit
from agentunit.core.case import DatasetCase
from agentunit.core.records import Outcome, outcome_text
from agentunit.core.results import (
    CaseScores,
    InputError,
    MetricResult,
    Score,
    decode_case_scores,
    encode_json,
    json_fallback,
)
from agentunit.core.trace import (
    AgentInteraction,
    ConflictEvent,
    HandoffEvent,
    InteractionType,
    TraceEvent,
    TraceLog,
    epoch_seconds,
)

# The text of an outcome


@dataclass
class City:
    name: str


class Unprintable:
    def __repr__(self) -> str:
        return "<Unprintable at 0x7f>"


def loop() -> list[Any]:
    endless: list[Any] = []
    endless.append(endless)
    return endless


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ("Paris", "Paris"),
        ("", ""),
        (None, None),
        (5, "5"),
        (2.5, "2.5"),
        (True, "true"),
        (["a", 1, None], '["a",1,null]'),
        ({"city": "Paris"}, '{"city":"Paris"}'),
        (("a", "b"), '["a","b"]'),
        (City("Paris"), '{"name":"Paris"}'),
        (10**30, "1" + "0" * 30),
        ({"b": 1, "a": 2}, '{"a":2,"b":1}'),  # an object has no order
        ({2: "b", 1: "a"}, '{"1":"a","2":"b"}'),
    ],
)
def test_text_of_an_output(output: Any, text: str | None) -> None:
    assert outcome_text(Outcome(output=output)) == text
    assert outcome_text(SimpleNamespace(output=output)) == text


@pytest.mark.parametrize(
    ("outcome", "text"), [("Paris", "Paris"), (None, None), (5, "5"), (False, "false"), ([1], "[1]")]
)
def test_an_outcome_may_be_the_answer_itself(outcome: Any, text: str | None) -> None:
    assert outcome_text(outcome) == text


@pytest.mark.parametrize(
    "outcome",
    [
        object(),
        Unprintable(),
        Outcome(output=object()),
        Outcome(output=Unprintable()),
        Outcome(output=[Unprintable()]),
        Outcome(output={"key": {Unprintable()}}),
        Outcome(output=lambda: 5),
        Outcome(output=Unprintable),
        Outcome(output=loop()),
        Outcome(output=float("nan")),  # "null" would be an answer nobody gave
        Outcome(output=float("inf")),
        float("nan"),
        Exception("no answer"),
    ],
)
def test_what_has_no_text_is_none_never_a_repr(outcome: Any) -> None:
    assert outcome_text(outcome) is None


@pytest.mark.parametrize("output", [{1: "a", "b": 2}, {1, "a", None}], ids=["object", "set"])
def test_names_that_cannot_be_put_in_order_have_a_text_all_the_same(output: Any) -> None:
    assert outcome_text(Outcome(output=output)) is not None


def test_a_set_has_the_same_text_in_every_process() -> None:
    code = (
        "from agentunit import Outcome; from agentunit.core.records import outcome_text; "
        "print(outcome_text(Outcome(output={str(n) for n in range(30)})))"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=5))
def test_any_data_has_a_text_or_none(output: Any) -> None:
    text = outcome_text(Outcome(output=output))
    assert text is None or isinstance(text, str)
    assert (text is None) or output is not None


# Times


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (0, 0.0),
        (1.5, 1.5),
        (datetime(1970, 1, 1, 0, 0, 1), 1.0),
        (datetime(1970, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))), 0.0),
        ("1969-12-31T23:59:59Z", -1.0),
        ("2024-02-29T12:00:00Z", 1709208000.0),
    ],
)
def test_epoch_seconds(value: Any, seconds: float) -> None:
    assert epoch_seconds(value) == seconds
    assert type(epoch_seconds(value)) is float


@pytest.mark.parametrize(
    "value",
    [None, True, "soon", "", "2024-13-01", "12", float("nan"), float("inf"), [], object(), 10**400],
    ids=lambda value: repr(value)[:20],
)
def test_what_is_no_time_is_refused_in_a_sentence(value: Any) -> None:
    with pytest.raises(ValueError, match=r"timestamp must be .*; received"):
        epoch_seconds(value)


@given(st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(2200, 1, 1)))
def test_a_datetime_and_its_iso_text_are_one_time(moment: datetime) -> None:
    assert epoch_seconds(moment) == epoch_seconds(moment.isoformat()) == epoch_seconds(moment.isoformat() + "Z")


# Events and traces


def test_recording_appends_and_stamps() -> None:
    trace = TraceLog()
    first = trace.record("tool_call", name="search", type="web", self="me")
    second = trace.record("message")
    assert trace.events == [first, second]
    assert first.payload == {"name": "search", "type": "web", "self": "me"}
    assert second.payload == {}
    assert first.timestamp is not None
    assert second.timestamp is not None
    assert 1.6e9 < first.timestamp <= second.timestamp


def test_times_given_in_any_form_become_seconds() -> None:
    moment = datetime(1970, 1, 1, 0, 0, 5, tzinfo=timezone.utc)
    for given_time in (5, 5.0, moment, "1970-01-01T00:00:05Z"):
        events: list[Any] = [
            TraceEvent("x", {}, given_time),
            AgentInteraction("a", "b", timestamp=given_time),
            HandoffEvent("a", "b", timestamp=given_time),
            ConflictEvent(["a"], timestamp=given_time),
        ]
        assert [event.timestamp for event in events] == [5.0] * 4
    with pytest.raises(ValueError, match="timestamp must be"):
        TraceEvent("x", {}, "soon")


def test_interactions_take_enums_and_any_group_of_receivers() -> None:
    interaction = AgentInteraction("a", ("b", "c"), InteractionType.NEGOTIATION)
    assert interaction.interaction_type == "negotiation"
    assert type(interaction.interaction_type) is str
    assert interaction.to_agent == ["b", "c"]
    assert AgentInteraction("a", {"c", "b"}).to_agent == ["b", "c"]


def test_no_two_objects_share_their_defaults() -> None:
    for make in (lambda: DatasetCase("q"), TraceLog, Outcome, lambda: AgentInteraction("a", "b")):
        one, other = make(), make()
        assert one.metadata is not other.metadata
    assert TraceLog().events is not TraceLog().events


def test_positional_arguments_stand_as_the_house_plan_lists_them() -> None:
    case = DatasetCase("q1", "query", "expected", ["tool"], ["context"], {"key": 1})
    assert (case.id, case.query, case.expected_output) == ("q1", "query", "expected")
    assert (case.tools, case.context, case.metadata) == (["tool"], ["context"], {"key": 1})
    event = TraceEvent("tool_call", {"name": "x"}, 1.0)
    assert (event.type, event.payload, event.timestamp) == ("tool_call", {"name": "x"}, 1.0)
    outcome = Outcome(True, "out", 0.5, {"total_tokens": 1}, "error")
    assert (outcome.success, outcome.output, outcome.cost, outcome.usage, outcome.error) == (
        True,
        "out",
        0.5,
        {"total_tokens": 1},
        "error",
    )


# Results on disk


def test_case_scores_round_trip() -> None:
    scores = CaseScores(
        3,
        "q1",
        {
            "a": Score(MetricResult("a", 0.5, {"list": [1, None], "text": "é"}), "ok", "lexical", "1", 0.25),
            "b": Score(MetricResult("b", None, {"reason": "unknown"}), "not_applicable", "x", "2", 0.0),
        },
    )
    assert decode_case_scores(encode_json(scores)) == scores
    assert scores.scores["a"].value == 0.5


class WithToList:
    def tolist(self) -> list[int]:
        return [1, 2]


class TextOnly:
    def __str__(self) -> str:
        return "text only"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (float("nan"), b"null"),
        (float("inf"), b"null"),
        (WithToList(), b"[1,2]"),
        (TextOnly(), b'"text only"'),
        (len, b'"len"'),
        (TextOnly, b'"TextOnly"'),
        (WithToList, b'"WithToList"'),  # a class is named, whatever its instances can do
        ({("a", 1): 2}, b"{\"('a', 1)\":2}"),
        (1 + 2j, b'"(1+2j)"'),
        ("\ud800", None),
        ({"deep": ["\udfff"]}, None),
    ],
    ids=["nan", "inf", "tolist", "object", "function", "class", "class with tolist", "keys", "complex", "lone", "deep"],
)
def test_any_detail_can_be_written(value: Any, written: bytes | None) -> None:
    encoded = encode_json(MetricResult("m", None, {"x": value}))
    if written is not None:
        assert encoded == b'{"name":"m","value":null,"detail":{"x":' + written + b"}}"
    encoded.decode()


def test_numbers_of_numpy_are_written_as_numbers() -> None:
    numpy = pytest.importorskip("numpy")
    assert json_fallback(numpy.float64(0.5)) == 0.5
    assert encode_json([numpy.int64(3), numpy.array([1.5])]) == b"[3,[1.5]]"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (InputError("a.jsonl", 3, "not JSON"), "a.jsonl, line 3: not JSON"),
        (InputError("a.jsonl", None, "no such file"), "a.jsonl: no such file"),
    ],
)
def test_input_errors_read_well(error: InputError, text: str) -> None:
    assert str(error) == text


# The front door


def test_every_public_name_loads() -> None:
    assert [name for name in agentunit.__all__ if not hasattr(agentunit, name)] == []
    assert set(agentunit.__all__) < set(dir(agentunit))
    with pytest.raises(AttributeError, match="no attribute 'unheard_of'"):
        agentunit.unheard_of  # noqa: B018


def test_importing_the_package_loads_next_to_nothing() -> None:
    code = "import sys, agentunit; print(*sorted(m for m in sys.modules if m.startswith(('agentunit', 'msgspec'))))"
    loaded = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    ).stdout.split()
    assert loaded == ["agentunit", "agentunit.moved", "agentunit.public"]
