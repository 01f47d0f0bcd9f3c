"""What every metric of the registry promises, whatever it measures. A metric registered tomorrow is covered too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import fields, is_dataclass
from functools import cache
from importlib.util import find_spec
from itertools import chain
from math import isfinite
from pathlib import Path
from traceback import extract_tb
from types import SimpleNamespace
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agentunit
from agentunit.core.case import DatasetCase
from agentunit.core.codec import RecordError, as_record, decode_record, encode_record
from agentunit.core.records import Outcome
from agentunit.core.results import CaseScores, MetricResult, Score, decode_case_scores, encode_json
from agentunit.core.trace import TraceEvent, TraceLog
from agentunit.metrics.base import MetricInfo, describe
from agentunit.metrics.inputs import Item
from agentunit.metrics.registry import DEFAULT_METRICS, MetricRegistry
from agentunit.metrics.sentences import sentence

pytestmark = pytest.mark.usefixtures(
    "no_backends_installed", "a_judge_for_rubrics", "a_small_clip", "a_judge_that_remembers"
)

REGISTRY = MetricRegistry(entry_point_group=None)
NAMES = REGISTRY.names()
# Ready rubrics differ in their words: "rubric" and "request_met" read every part of a record that the others read.
WORDED_ALIKE = {"helpfulness", "refusal", "tone", "instruction_following", "plan_quality", "tool_choice", "goal_kept"}
READ_DIFFERENTLY = [name for name in NAMES if name not in WORDED_ALIKE]
MEDIA = Path(__file__).resolve().parents[1] / "data" / "media"

# Every input that a metric declares must stand in here, so that taking it away shows something.
RICH: dict[str, Any] = {
    "case": {
        "id": "rich",
        "query": "When does my parcel arrive?",
        "expected_output": '{"city": "Paris"}',
        "context": ["Paris", "Parcels take two days."],
        "tools": ["find_order", {"name": "track", "inputSchema": {"properties": {"fast": {"type": "boolean"}}}}],
        "metadata": {
            "expected_tool_calls": [{"name": "find_order", "arguments": {"id": "A-1"}}, "track"],
            "contains": ["Paris"],
            "regex": "[A-Z]aris",
            "json_schema": {"type": "object", "required": ["city"]},
            "assertions": [{"type": "icontains", "value": "paris"}],
            "rubric": ["The answer is short.", "The answer is polite."],
            "expected_state": {"order": {"status": "sent"}},
            "email": "jane@example.com",
            "user_data": {"phone": "212-555-0187"},
            "sensitive": ["Jane waits for a kidney transplant", "Project Heron"],
            "consent": {"email": False, "location": True},
            "epsilon": 0.5,
            "audio_path": "parcel.wav",
            "transcript": "It is in Paris.",
            "references": ["A parcel in Paris.", "A box."],
            "captions": "A parcel.",
            "image_path": str(MEDIA / "red_circle.png"),
            "image_paths": [str(MEDIA / "red_circle.png")],
            "images": [str(MEDIA / "red_circle.png")],
            "text": "Parcels leave at noon.",
            "video_path": str(MEDIA / "blue_square.mp4"),
        },
    },
    "trace": {
        "events": [
            {"type": "message", "payload": {"role": "user", "content": "Where is it?"}, "timestamp": 100.0},
            *(
                {
                    "type": "message",
                    "payload": {"role": "assistant", "agent": sender, "to_agent": receiver, "content": words},
                    "timestamp": at,
                }
                for sender, receiver, words, at in (
                    ("planner", "searcher", "Please find the order.", 100.1),
                    ("searcher", "checker", "Please check the order.", 100.2),
                    ("checker", "searcher", "It is right.", 100.3),
                    ("searcher", "planner", "It is in Paris.", 100.4),
                )
            ),
            {"type": "retrieval", "payload": {"documents": ["Paris", {"text": "Bread"}]}, "timestamp": 100.5},
            {
                "type": "llm_call",
                "payload": {
                    "model": "gpt-4o",
                    "cost": 0.002,
                    "usage": {"prompt_tokens": 90, "completion_tokens": 10, "total_tokens": 100},
                },
                "timestamp": 101.0,
            },
            {
                "type": "tool_call",
                "payload": {
                    "name": "find_order",
                    "arguments": {"id": "A-1"},
                    "status": "success",
                    "cost": 0.001,
                    "result": {"status": "sent", "email": "jane@example.com"},
                },
                "timestamp": 102.0,
            },
            {
                "type": "tool_call",
                "payload": {"name": "track", "arguments": '{"fast": true}', "status": "error", "cost": 0.001},
                "timestamp": 103.5,
            },
            {"type": "message", "payload": {"role": "assistant", "content": "Two days, Jane."}, "timestamp": 103.5},
        ],
        "metadata": {
            "tools": [{"name": "find_order", "parameters": {"type": "object", "required": ["id"]}}],
            "cost": 0.01,
            "usage": {"input_tokens": 10, "output_tokens": 5},
            "duration_s": 3.5,
            "energy_kwh": 0.2,
            "carbon_kg": 0.04,
            "cpu_percent": 60.0,
            "memory_gb": 1.0,
            "gpu_percent": 90.0,
            "resource_use": {
                "started_at": 100.0,
                "cpu_percent": 61.0,
                "memory_peak_gb": 1.5,
                "gpu_percent": 91.0,
                "energy_kwh": 0.3,
                "energy_min_kwh": 0.2,
                "energy_max_kwh": 0.5,
                "cpu_method": "cpu model",
                "gpu_method": "nvml",
                "shared": True,
            },
        },
        "interactions": [
            {
                "from_agent": sender,
                "to_agent": receiver,
                "interaction_type": kind,
                "message_type": "order",
                "timestamp": 100.0 + at,
                "success": True,
                "response_time": took_s,
                "metadata": {"capability": "search"},
            }
            for sender, receiver, kind, at, took_s in (
                ("planner", "searcher", "delegation", 0.1, 8.0),
                ("searcher", ["planner", "checker"], "request", 0.2, 6.0),
                ("checker", "searcher", "response", 0.3, 2.0),
                ("searcher", "checker", "negotiation", 0.4, 1.0),
            )
        ],
        "handoffs": [
            {"from_agent": "planner", "to_agent": "searcher", "success": True, "handoff_time": 0.2, "timestamp": 100.1},
        ],
        "conflicts": [
            {"agents_involved": ["searcher", "checker"], "resolved": True, "resolution_time": 1.0, "timestamp": 100.3},
        ],
        "agent_roles": {
            "planner": {"name": "lead", "can_delegate": True, "message_types": ["order"], "capabilities": ["search"]},
            "checker": {"name": "checker", "can_delegate": False, "can_escalate": False},
            "writer": "writer",
        },
    },
    "outcome": {
        "success": True,
        "output": '{"city": "Paris"}',
        "cost": 0.02,
        "usage": {"input_tokens": 10, "cache_read_input_tokens": 4, "output_tokens": 5},
        "error": None,
        "state": {"order": {"status": "sent", "days": 2}},
        "elapsed_s": 3.5,
        "metadata": {},
    },
}

# The answer that is data says nothing to a metric of prose.
RICH_PROSE = {**RICH, "outcome": {**RICH["outcome"], "output": "It is in Paris, and it will be there in two days."}}


def rich_for(name: str) -> dict[str, Any]:
    return RICH_PROSE if name == "answer_language" else RICH


ITEMS: dict[str, dict[str, Any]] = {
    "rich": RICH,
    "rich in prose": RICH_PROSE,
    "empty": {"case": {"id": "empty"}, "trace": {}, "outcome": None},
    "answer that is a string": {**RICH, "outcome": "Parcels take two days. Paris!"},
    "answer that is data": {**RICH, "outcome": {"output": {"city": "Paris", "days": [1, 2.5, None]}}},
    "blank answer": {**RICH, "outcome": ""},
    "nothing went right": {
        "case": {
            "id": "wrong",
            "expected_output": ["Paris", "PARIS"],
            "context": ["Zoë’s café — 東京 🙂"],
            "metadata": {
                "expected_tool_calls": [],
                "contains": "Paris",
                "regex": "^Paris$",
                "json_schema": {"type": "array"},
                "assertions": [{"type": "not-is-json"}],
                "expected_state": {"order": None},
            },
        },
        "trace": {"events": [{"type": "tool_call", "payload": {}}, {"type": "llm_call", "payload": {"cost": 0}}]},
        "outcome": {"success": False, "output": "東京", "error": "no answer", "state": {"order": {}}, "usage": {}},
    },
    "unusable inputs": {
        "case": {
            "id": "unusable",
            "expected_output": {},
            "metadata": {
                "expected_tool_calls": "find_order",
                "contains": 5,
                "regex": "(",
                "json_schema": {"type": "colour"},
                "assertions": [{"type": "javascript", "value": "1"}],
                "rubric": ["", 5],
                "check": "unheard_of",
                "sensitive": 5,
                "necessary": {"email": True},
                "consent": "yes",
                "epsilon": -1,
                "image_path": 5,
                "video_path": ["a.mp4", "b.mp4"],
            },
        },
        "trace": {
            "metadata": {
                "cost": "cheap",
                "usage": "a lot",
                "duration_s": -1,
                "energy_kwh": -1,
                "carbon_kg": "some",
                "cpu_percent": "full",
                "resource_use": "many",
            }
        },
        "outcome": {"output": "x"},
    },
}

ODD_VALUES: list[Any] = [
    None, True, False, 0, -1, 10**30, 10**400, 1.5, -0.0, 1.7e308, -1.7e308, "", " ", "é🙂\u0000", "\ud800",
    "9" * 500, "NaN", [], [None], [[]], ["", 5], {}, {"": None}, {"text": 5}, {"name": 5}, [{"name": None}],
    [1.7e308, 1.7e308],
]  # fmt: skip


# How to take an input away. ``or`` parts an input into alternatives; each is one of the shapes below.


class UnknownInput(Exception):
    pass


EVENT_TYPES = ("tool_call", "llm_call", "retrieval", "message")
# Input words that are not a place of the record but a parameter of the metric, absent unless it is given.
PARAMETER_WORDS = {"a check": "check"}


def without(record: dict[str, Any], place: str, metric: Any) -> dict[str, Any]:
    """The record without what stands at a place that a metric declares; the same record when nothing stood there."""
    record = deepcopy(record)
    if dotted := re.fullmatch(r"(case|trace|outcome)\.(?:(metadata)\.)?(\w+)", place):
        part, metadata, key = dotted.groups()
        holder = record.get(part)
        holder = holder.get("metadata") if metadata and isinstance(holder, dict) else holder
        if isinstance(holder, dict):
            holder.pop(key, None)
        return record
    events = record["trace"].get("events", [])
    if place == "trace timestamps":
        for event in events:
            event.pop("timestamp", None)
        return record
    in_trace = re.fullmatch(r"trace (\w+)(?: (\w+))?", place)
    if in_trace and in_trace[1] in EVENT_TYPES:
        if in_trace[2] is None:
            record["trace"]["events"] = [event for event in events if event["type"] != in_trace[1]]
        for event in events:
            if event["type"] == in_trace[1] and in_trace[2]:
                event["payload"].pop(in_trace[2], None)
        return record
    if parameter_of(metric, place):
        return record
    raise UnknownInput(
        f"metric {metric.name!r} declares the input {place!r}, which this contract does not know how to take away: "
        "use one of case.X, case.metadata.X, outcome.X, trace.X, trace.metadata.X, 'trace EVENT_TYPE [KEY]', "
        "'trace timestamps' or a parameter of the metric, or teach `without` the new shape"
    )


def parameter_of(metric: Any, place: str) -> bool:
    parameter = PARAMETER_WORDS.get(place, place)
    return is_dataclass(metric) and any(field.name == parameter for field in fields(metric))


def alternatives_of(declared: str) -> list[str]:
    return declared.split(" or ")


def without_all(record: dict[str, Any], places: list[str], metric: Any) -> dict[str, Any]:
    for place in places:
        record = without(record, place, metric)
    return record


DECLARED_INPUTS = [(name, declared) for name in NAMES for declared in describe(REGISTRY.create(name)).inputs]
LONE_ALTERNATIVES = [
    (name, declared, place)
    for name, declared in DECLARED_INPUTS
    for place in alternatives_of(declared)
    if not parameter_of(REGISTRY.create(name), place)
]


def only(record: dict[str, Any], declared: str, kept: str, metric: Any) -> dict[str, Any]:
    return without_all(record, [place for place in alternatives_of(declared) if place != kept], metric)


# Asking, and what must hold of every answer.


def evaluate(metric: Any, record: dict[str, Any]) -> MetricResult:
    result = metric.evaluate(record["case"], record["trace"], record["outcome"])
    assert isinstance(result, MetricResult)
    return result


def typed(record: dict[str, Any]) -> Any:
    return decode_record(msgspec.json.encode({"v": 1, **record}))


def problems_of(result: MetricResult, info: MetricInfo) -> Iterator[str]:
    low, high = info.range
    if result.value is not None:
        if isinstance(result.value, bool) or not isinstance(result.value, float) or not isfinite(result.value):
            yield f"value {result.value!r} is not a finite float"
        elif (low is not None and result.value < low) or (high is not None and result.value > high):
            yield f"value {result.value!r} is outside {info.range}"
        why = result.detail.get("why")
        # A detail that declares it may say more than the sentence, which is made of it.
        yield from problems_of_sentence(sentence(why) if isinstance(why, str) and "why" in info.detail_keys else why)
    else:
        reason = result.detail.get("reason")
        if not isinstance(reason, str) or not reason.strip():
            yield f"no value and no reason in {result.detail!r:.200}"
    missing = [key for key in info.detail_keys if key not in result.detail]
    if missing:
        yield f"detail lacks {missing}"
    if not isinstance(result.detail.get("backend"), str) or not result.detail["backend"]:
        yield "detail['backend'] is not a name"
    if result.name != info.name:
        yield f"result is named {result.name!r}"


def problems_of_sentence(why: Any) -> Iterator[str]:
    """What is wrong with the sentence that says why a score is what it is."""
    if not isinstance(why, str) or not why.strip():
        yield f"a value and no sentence that says why: {why!r:.80}"
    elif len(why) > 120 or len(why.splitlines()) > 1:
        yield f"the sentence is not one line of at most 120 characters: {why!r}"


def assert_keeps_contract(result: MetricResult, info: MetricInfo) -> None:
    assert list(problems_of(result, info)) == []


@pytest.mark.parametrize("item", ITEMS)
@pytest.mark.parametrize("name", NAMES)
def test_range_detail_keys_backend_and_reason(name: str, item: str) -> None:
    metric = REGISTRY.create(name)
    assert_keeps_contract(evaluate(metric, ITEMS[item]), describe(metric))


@pytest.mark.parametrize("name", NAMES)
def test_the_rich_item_is_scored(name: str) -> None:
    result = evaluate(REGISTRY.create(name), rich_for(name))
    assert result.value is not None, f"RICH lacks what {name} needs: {result.detail['reason']}"


@pytest.mark.parametrize("name", NAMES)
def test_facts_are_complete_and_consistent(name: str) -> None:
    metric = REGISTRY.create(name)
    info = getattr(metric, "info", None)
    assert isinstance(info, MetricInfo)
    assert metric.name == info.name == name
    assert info.summary.endswith(".")
    assert "\n" not in info.summary
    assert info.family
    assert info.direction in ("higher", "lower", "none")
    assert info.version
    assert info.unit
    assert len(set(info.detail_keys)) == len(info.detail_keys)
    assert all("None" not in str(words) and words for words in info.trust.values())
    low, high = info.range
    assert low is None or high is None or low < high


@pytest.mark.parametrize(("name", "declared"), DECLARED_INPUTS)
def test_each_input_removed_gives_none_with_a_reason(name: str, declared: str) -> None:
    metric = REGISTRY.create(name)
    places = alternatives_of(declared)
    in_record = [place for place in places if not parameter_of(metric, place)]
    rich = rich_for(name)
    for place in in_record:
        assert without(rich, place, metric) != rich, f"RICH has nothing at {place!r}, which {name} declares: add it"
    result = evaluate(metric, without_all(rich, places, metric))
    assert result.value is None, (
        f"{name} scored {result.value} without {declared!r}: it read something that its info does not declare "
        f"({result.detail!r:.300})"
    )
    assert_keeps_contract(result, describe(metric))


@pytest.mark.parametrize(("name", "declared", "kept"), LONE_ALTERNATIVES)
def test_each_alternative_of_an_input_is_enough(name: str, declared: str, kept: str) -> None:
    metric = REGISTRY.create(name)
    if kept == "trace llm_call usage" and name == "cost" and find_spec("genai_prices") is None:
        pytest.skip("pricing LLM usage needs the extra prices")
    if kept == "trace llm_call" and "energy" in describe(metric).probes and find_spec("ecologits") is None:
        pytest.skip("estimating the energy of LLM calls needs the extra sustainability")
    result = evaluate(metric, only(rich_for(name), declared, kept, metric))
    assert result.value is not None, result.detail["reason"]


def test_an_input_unknown_to_the_table_is_named() -> None:
    class Hungry:
        name = "hungry"

    with pytest.raises(UnknownInput, match="'hungry' declares the input 'the weather'"):
        without(RICH, "the weather", Hungry())


@pytest.mark.parametrize("item", ITEMS)
@pytest.mark.parametrize("name", NAMES)
def test_inputs_are_left_as_they_were(name: str, item: str) -> None:
    plain = deepcopy(ITEMS[item])
    record = typed(ITEMS[item])
    evaluate(REGISTRY.create(name), plain)
    assert plain == ITEMS[item]
    REGISTRY.create(name).evaluate(record.case, record.trace, record.outcome)
    assert record == typed(ITEMS[item])


@pytest.mark.parametrize("item", ITEMS)
@pytest.mark.parametrize("name", NAMES)
def test_the_same_again(name: str, item: str) -> None:
    metric = REGISTRY.create(name)
    first = evaluate(metric, ITEMS[item])
    assert evaluate(REGISTRY.create(name), ITEMS[item]) == first
    if not describe(metric).stateful:
        assert evaluate(metric, ITEMS[item]) == first


@pytest.mark.parametrize("item", ITEMS)
@pytest.mark.parametrize("name", NAMES)
def test_plain_dicts_and_typed_objects_score_alike(name: str, item: str) -> None:
    record = typed(ITEMS[item])
    from_typed = REGISTRY.create(name).evaluate(record.case, record.trace, record.outcome)
    assert from_typed == evaluate(REGISTRY.create(name), ITEMS[item])


@pytest.mark.parametrize("item", ITEMS)
@pytest.mark.parametrize("name", NAMES)
def test_results_survive_the_scores_file(name: str, item: str) -> None:
    metric = REGISTRY.create(name)
    result = evaluate(metric, ITEMS[item])
    written = CaseScores(3, "q1", {name: Score(result, "ok", "x", describe(metric).version, 0.25)})
    assert decode_case_scores(encode_json(written)) == written


@pytest.mark.parametrize(
    "name", [name for name in NAMES if callable(getattr(REGISTRY.create(name), "evaluate_batch", None))]
)
def test_a_batch_equals_one_by_one(name: str) -> None:
    def items() -> list[Item]:
        return [Item(record["case"], record["trace"], record["outcome"]) for record in ITEMS.values()]

    metric: Any = REGISTRY.create(name)
    one_by_one: Any = REGISTRY.create(name)
    assert metric.evaluate_batch(items()) == [one_by_one.measure(item) for item in items()]
    assert metric.evaluate_batch([]) == []


def test_the_standard_set_is_registered() -> None:
    assert set(DEFAULT_METRICS) <= set(NAMES)


# Odd inputs: what a log may hold although nobody meant it to.


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from paths_of(child, (*path, key))


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    changed = dict(value) if isinstance(value, dict) else list(value)
    changed[path[0]] = replaced(value[path[0]], path[1:], new)
    return changed


def read_or_none(record: dict[str, Any]) -> Any:
    """The record as scoring reads it; ``None`` when it is refused at the border, as unreadable records are."""
    try:
        return as_record(record)
    except Exception:  # noqa: BLE001  # how the border refuses is a test of its own
        return None


def complaints(metric: Any, record: Any) -> list[str]:
    try:
        result = metric.evaluate(record.case, record.trace, record.outcome)
    except Exception as error:  # noqa: BLE001  # which exception, and from where, is the finding
        return [f"{type(error).__name__} in {extract_tb(error.__traceback__)[-1].name}: {error!s:.120}"]
    return list(problems_of(result, describe(metric)))


def with_one_odd_value(base: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The record with each of its values replaced by each odd one, and what was replaced."""
    for path in paths_of(base):
        for odd in ODD_VALUES:
            record = read_or_none(replaced(base, path, odd))
            if record is not None:
                yield f"{'.'.join(map(str, path))} = {odd!r:.40}", record


@cache
def rich_with_one_odd_value() -> list[tuple[str, Any]]:
    """Read once for all metrics: reading takes longer than most of them."""
    return list(with_one_odd_value(RICH))


@pytest.mark.parametrize("name", READ_DIFFERENTLY)
def test_one_odd_value_anywhere_never_breaks_a_metric(name: str) -> None:
    metric = REGISTRY.create(name)
    bases = [only(RICH, declared, kept, metric) for who, declared, kept in LONE_ALTERNATIVES if who == name]
    found: dict[str, str] = {}
    for where, record in chain(rich_with_one_odd_value(), *map(with_one_odd_value, bases)):
        for complaint in complaints(metric, record):
            found.setdefault(complaint, f"{where}: {complaint}")
    assert list(found.values()) == []


def test_an_odd_value_is_refused_at_the_border_or_read_but_never_crashes_it() -> None:
    found: dict[str, str] = {}
    for path in paths_of(RICH):
        for odd in ODD_VALUES:
            try:
                as_record(replaced(RICH, path, odd))
            except RecordError:
                continue
            except Exception as error:  # noqa: BLE001  # anything else is the finding
                found.setdefault(repr(error), f"{'.'.join(map(str, path))} = {odd!r:.40}: {error!r}")
    assert list(found.values()) == []


ODD = st.recursive(
    st.one_of(
        st.sampled_from([odd for odd in ODD_VALUES if odd != 10**400]),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=20),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
PATHS = list(paths_of(RICH))


@st.composite
def odd_records(draw: st.DrawFn) -> Any:
    record = RICH
    for path in draw(st.lists(st.sampled_from(PATHS), min_size=1, max_size=6)):
        try:
            record = replaced(record, path, draw(ODD))
        except (KeyError, IndexError, TypeError, ValueError):
            continue  # an earlier change took this place away
    return read_or_none(record)


@pytest.mark.parametrize("name", READ_DIFFERENTLY)
@given(record=odd_records())
@settings(deadline=None, max_examples=60)
def test_records_odd_in_several_places(name: str, record: Any) -> None:
    if record is not None:
        assert complaints(REGISTRY.create(name), record) == []


class Built(NamedTuple):
    case: DatasetCase
    trace: TraceLog
    outcome: Outcome


@st.composite
def odd_objects(draw: st.DrawFn) -> Built:
    """The typed objects built by hand: nothing checks their fields."""

    metadata = st.sampled_from([{}, None, RICH["case"]["metadata"]])
    payloads = st.sampled_from([RICH["trace"]["events"][3]["payload"]])
    case = DatasetCase(
        "q1",
        draw(ODD),
        expected_output=draw(ODD),
        context=draw(st.sampled_from([None, ["Paris"]]) | ODD),
        metadata=draw(metadata | ODD),
    )
    events = [
        TraceEvent(kind, draw(payloads | ODD), None)
        for kind in draw(st.lists(st.sampled_from(EVENT_TYPES), max_size=3))
    ]
    outcome = draw(st.builds(Outcome, success=ODD, output=ODD, cost=ODD, usage=ODD, state=ODD, elapsed_s=ODD))
    return Built(case, TraceLog(events, draw(st.just({}) | ODD)), outcome)


@pytest.mark.parametrize("name", READ_DIFFERENTLY)
@given(built=odd_objects())
@settings(deadline=None, max_examples=60)
def test_objects_built_by_hand_with_odd_fields(name: str, built: Built) -> None:
    assert complaints(REGISTRY.create(name), built) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_trace_built_by_hand_of_what_are_no_events(name: str) -> None:
    case, outcomes = typed(RICH).case, (Outcome(), typed(RICH).outcome)
    whole = {"type": "tool_call", "payload": {"name": "x"}}
    found = [
        f"{event!r}: {complaint}"
        for event in (None, 5, "tool_call", {}, whole, SimpleNamespace())
        for outcome in outcomes
        for complaint in complaints(REGISTRY.create(name), Built(case, TraceLog(events=[event]), outcome))
    ]
    assert found == []


def test_the_rich_item_is_a_record_that_round_trips() -> None:
    record = typed(RICH)
    assert decode_record(encode_record(record)) == record


QUESTION = {"type": "message", "payload": {"role": "user", "content": "Where is it?"}, "timestamp": 100.0}
NOTHING_DONE: dict[str, dict[str, Any]] = {
    "nothing": {"case": {"id": "blank"}},
    "a question": {"case": {"id": "blank", "query": "Where is it?"}},
    "all that graders know": {"case": RICH["case"]},
    "empty parts": {"case": RICH["case"], "trace": {"events": []}, "outcome": {}},
    "the question as a message": {"case": RICH["case"], "trace": {"events": [QUESTION]}},
    "instructions and the question": {
        "case": RICH["case"],
        "trace": {"events": [{"type": "message", "payload": {"role": "system", "content": "Be short."}}, QUESTION]},
    },
    "names of agents and tools": {
        "case": RICH["case"],
        "trace": {"agent_roles": {"planner": "planner"}, "metadata": {"session_id": "s1", "tools": ["track"]}},
    },
}


@pytest.mark.parametrize("kind", NOTHING_DONE)
@pytest.mark.parametrize("name", NAMES)
def test_a_record_in_which_no_agent_did_anything_has_no_score(name: str, kind: str) -> None:
    record = deepcopy(NOTHING_DONE[kind])
    if name == "privacy_budget" and "metadata" in record["case"]:
        # What a case says that it spends is spent, whatever the agent does: it is a balance and no average.
        del record["case"]["metadata"]["epsilon"]
    run = agentunit.score([record], [REGISTRY.create(name)])
    (case,) = run
    result = case.scores[name].result
    assert (result.value, case.scores[name].status) == (None, "not_applicable")
    assert_keeps_contract(result, describe(REGISTRY.create(name)))
    assert run.summary().n_without_content == 1
    assert [row.mean for row in run.summary().metrics] in ([], [None])


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"privacy_budget"}))
def test_nor_has_it_one_when_the_metric_is_called_directly(name: str) -> None:
    for kind, record in NOTHING_DONE.items():
        result = evaluate(REGISTRY.create(name), {"trace": None, "outcome": None, **deepcopy(record)})
        assert result.value is None, f"{name} gave {result.value} for {kind}"
        assert "error" not in result.detail
