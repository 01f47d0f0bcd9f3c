"""The one JSON codec: records to lines and back, and plain dicts to the types of the data model.

The fast path is a compiled decoder that accepts exactly the fields of this version. A record that it refuses is read
again as plain data, its unknown fields are put aside into ``extra`` and common spellings are normalized (ISO times,
numeric ids, a single context string); only then is it judged. So known files are fast and nothing is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from agentunit.core.case import DatasetCase
from agentunit.core.records import RECORD_VERSION, LooseRecord, Outcome, Record, as_mapping
from agentunit.core.results import decode_json, encode_json, json_fallback
from agentunit.core.trace import (
    AgentInteraction,
    AgentRole,
    ConflictEvent,
    HandoffEvent,
    TraceEvent,
    TraceLog,
    epoch_seconds,
)

_EXTRA_KEY = "__extra__"
_StructT = TypeVar("_StructT", bound=Struct)

_decoder = msgspec.json.Decoder(Record)

_ONE: dict[type[Struct], dict[str, type[Struct]]] = {
    Record: {"case": DatasetCase, "trace": TraceLog, "outcome": Outcome},
}
_MANY: dict[type[Struct], dict[str, type[Struct]]] = {
    TraceLog: {
        "events": TraceEvent,
        "interactions": AgentInteraction,
        "handoffs": HandoffEvent,
        "conflicts": ConflictEvent,
        "agent_roles": AgentRole,
    }
}
_KNOWN: dict[type[Struct], frozenset[str]] = {
    kind: frozenset(kind.__struct_encode_fields__) - {_EXTRA_KEY}
    for kind in (
        Record, DatasetCase, TraceLog, TraceEvent, Outcome, AgentInteraction, HandoffEvent, ConflictEvent, AgentRole
    )
}  # fmt: skip


# What metrics read of an event's payload: flat events have these beside their type.
_OF_THE_PAYLOAD = frozenset(
    (
        "name", "arguments", "status", "result", "error", "cost", "model", "usage", "documents", "query", "role",
        "content", "agent", "to_agent", "energy_kwh", "prompt_tokens", "completion_tokens", "input_tokens",
        "output_tokens", "total_tokens", "is_error", "exit_code", "server", "server_version", "tool_version",
    )
)  # fmt: skip


class RecordError(ValueError):
    """A record that cannot be read; the message is the reason, fit for an errors section."""


def decode_record(line: bytes | str) -> Record:
    """Read one line of a records file.

    >>> record = decode_record('{"v": 1, "case": {"id": "q1", "query": "?", "mood": "curious"}, "outcome": "Paris"}')
    >>> record.outcome, record.case.extra
    ('Paris', {'mood': 'curious'})
    """
    try:
        record = _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        record = _decode_leniently(line)
    if record.v != RECORD_VERSION:
        _check_version(record.v)
    return record


def encode_record(record: Record) -> bytes:
    """Write a record as one line, without the newline. Unknown fields return to where they were read.

    >>> encode_record(decode_record('{"case": {"id": "q1", "mood": "curious"}, "v": 1}'))
    b'{"v":1,"case":{"id":"q1","mood":"curious"},"trace":{},"outcome":null}'
    """
    if isinstance(record.case, dict) or isinstance(record.trace, dict) or isinstance(record.outcome, dict):
        record = Record(
            as_case(record.case), as_trace(record.trace), as_outcome(record.outcome), record.v, record.extra
        )
    if not {event.__class__ for event in getattr(record.trace, "events", ())} <= {TraceEvent}:
        trace = msgspec.structs.replace(record.trace, events=[as_event(each) for each in record.trace.events])
        record = Record(record.case, trace, record.outcome, record.v, record.extra)
    parts = {"v": record.v, "case": record.case, "trace": record.trace, "outcome": record.outcome}
    if _has_extra(record):
        plain = msgspec.to_builtins(parts, enc_hook=json_fallback)
        return encode_json(_merge_extra({**plain, _EXTRA_KEY: record.extra}))
    return encode_json(parts)


def as_case(value: Any) -> Any:
    """A DatasetCase of a plain dict; any other object is used as it is."""
    return _from_plain(value, DatasetCase)


def as_trace(value: Any) -> Any:
    """A TraceLog of a plain dict, of a list of events, or of nothing at all; any other object is used as it is."""
    if value is None:
        return TraceLog()
    if isinstance(value, (list, tuple)):
        value = {"events": list(value)}
    return _from_plain(value, TraceLog)


def as_event(value: Any) -> Any:
    """A TraceEvent of a plain dict, or of an object with a type and fields of its own but no payload.

    Any other object is used as it is. Fields beside the payload that belong into it are put there.

    >>> as_event({"type": "tool_call", "status": "success", "cost": 0.1, "span": "a1"})
    TraceEvent(type='tool_call', payload={'status': 'success', 'cost': 0.1}, timestamp=None, extra={'span': 'a1'})
    """
    if isinstance(value, TraceEvent) or hasattr(value, "payload") or not isinstance(getattr(value, "type", None), str):
        return _from_plain(value, TraceEvent)
    names = ("type", "timestamp", *_OF_THE_PAYLOAD)
    fields = {name: getattr(value, name) for name in names if getattr(value, name, None) is not None}
    return _convert(fields, TraceEvent)


def as_outcome(value: Any) -> Any:
    """An Outcome of a plain dict; a string or any other object is used as it is."""
    return _from_plain(value, Outcome)


_RECORD_NAMES = ("case", "trace", "outcome", "v")


def as_record(value: Any) -> Record | LooseRecord:
    """A record of whatever a user hands over: a Record, a dict in the shape of one, or (case, trace, outcome).

    >>> as_record({"case": {"id": "q1"}, "outcome": "Paris"}).outcome
    'Paris'
    """
    if isinstance(value, (Record, LooseRecord)):
        return value
    extra: dict[str, Any] = {}
    plain = as_mapping(value)
    if plain is not None:
        if "case" not in plain:
            raise RecordError(f"a record needs 'case'; received the fields {_listed(plain)}")
        _check_version(plain.get("v", RECORD_VERSION))
        parts = (plain["case"], plain.get("trace"), plain.get("outcome"))
        extra = {name: each for name, each in plain.items() if name not in _RECORD_NAMES}
    elif isinstance(value, (tuple, list)) and len(value) == 3:
        parts = (value[0], value[1], value[2])
    elif hasattr(value, "case"):
        parts = (value.case, getattr(value, "trace", None), getattr(value, "outcome", None))
    else:
        raise RecordError(
            "a record must be a Record, a dict with 'case', 'trace' and 'outcome', or a tuple of the three; "
            f"received {type(value).__name__}"
        )
    return LooseRecord(as_case(parts[0]), as_trace(parts[1]), as_outcome(parts[2]), extra)


def _from_plain(value: Any, kind: type[_StructT]) -> Any:
    plain = as_mapping(value)
    return value if plain is None else _convert(plain, kind)


def _convert(plain: dict[str, Any], kind: type[_StructT]) -> _StructT:
    try:
        return msgspec.convert(_set_extra_aside(plain, kind), kind)
    except (msgspec.ValidationError, ValueError, RecursionError) as error:
        raise RecordError(_spoken_mismatch(str(error), _SPOKEN_NAME.get(kind, kind.__name__))) from None


_SPOKEN_NAME: dict[type[Struct], str] = {
    Record: "wrong shape", DatasetCase: "case", TraceLog: "trace", TraceEvent: "event", Outcome: "outcome"
}  # fmt: skip


_MISMATCH = re.compile(r"^Expected `(?P<wanted>.+?)`, got `(?P<got>.+?)`(?: - at `\$?\.?(?P<place>.*?)`)?$")


def _spoken_mismatch(message: str, kind: str) -> str:
    """The decoder's complaint in the words of the record's own fields."""
    found = _MISMATCH.match(message)
    if found is None:
        return f"{kind}: {message}"
    place = found["place"] or ("the record" if kind == "wrong shape" else "")
    owner = "" if kind == "wrong shape" else kind
    name = ".".join(part for part in (owner, place) if part)
    return f"{name} must be {found['wanted'].replace(' | ', ' or ')}; received {found['got']}"


def _decode_leniently(line: bytes | str) -> Record:
    try:
        plain = decode_json(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise RecordError(_malformed(line, error)) from None
    if isinstance(plain, list):
        raise RecordError("a JSON array where a record is expected; write one record a line (jq -c '.[]' does it)")
    if not isinstance(plain, dict):
        raise RecordError(f"a record must be a JSON object; received {_json_type(plain)}")
    _check_version(plain.get("v", RECORD_VERSION))
    if "case" not in plain:
        raise RecordError(f"a record needs 'case'; received the fields {_listed(plain)}")
    return _convert(plain, Record)


def _set_extra_aside(plain: Mapping[str, Any], kind: type[Struct]) -> dict[str, Any]:
    known = _KNOWN[kind]
    tidy, unknown = dict(plain), {}
    # Most records have no other fields, and one look tells.
    if not plain.keys() <= known:
        unknown = {key: tidy.pop(key) for key in plain if key not in known}
    if kind is TraceEvent and not _OF_THE_PAYLOAD.isdisjoint(unknown):
        _lift_into_payload(tidy, unknown)
    if unknown:
        tidy[_EXTRA_KEY] = unknown
    for name, child in _ONE.get(kind, {}).items():
        if isinstance(tidy.get(name), Mapping):
            tidy[name] = _set_extra_aside(tidy[name], child)
    for name, child in _MANY.get(kind, {}).items():
        tidy[name] = _each(tidy[name], child) if name in tidy else None
        if tidy[name] is None:
            del tidy[name]
    return _normalise_spellings(tidy, kind)


def _lift_into_payload(event: dict[str, Any], unknown: dict[str, Any]) -> None:
    """Put the fields of a flat event where metrics read them; what the payload says itself counts."""
    payload = event.get("payload")
    if payload is not None and not isinstance(payload, Mapping):
        return
    held = payload or {}
    names = [name for name in unknown if name in _OF_THE_PAYLOAD and name not in held]
    event["payload"] = {**{name: unknown.pop(name) for name in names}, **held}


def _each(values: Any, kind: type[Struct]) -> Any:
    if isinstance(values, Mapping):
        return {str(key): _entry(value, kind) for key, value in values.items()}
    if isinstance(values, (list, tuple)):
        return [_entry(value, kind) for value in values]
    return values


def _entry(value: Any, kind: type[Struct]) -> Any:
    if isinstance(value, Mapping):
        return _set_extra_aside(value, kind)
    if kind is TraceEvent:
        return as_event(value)
    if kind is AgentRole and isinstance(value, str):
        return AgentRole(value)
    return value


def _normalise_spellings(tidy: dict[str, Any], kind: type[Struct]) -> dict[str, Any]:
    if kind is DatasetCase:
        if isinstance(tidy.get("id"), int) and not isinstance(tidy["id"], bool):
            tidy["id"] = str(tidy["id"])
        if isinstance(tidy.get("context"), str):
            tidy["context"] = [tidy["context"]]
    elif tidy.get("timestamp") is not None:
        try:
            tidy["timestamp"] = epoch_seconds(tidy["timestamp"])
        except ValueError as error:
            raise RecordError(str(error)) from None
    for name in ("metadata", "trace"):
        if name in tidy and tidy[name] is None:
            del tidy[name]
    return tidy


def _has_extra(record: Record) -> bool:
    trace = record.trace
    return bool(
        record.extra
        or record.case.extra
        or trace.extra
        or (isinstance(record.outcome, Outcome) and record.outcome.extra)
        or any(
            # Entries that a user put in as plain dicts have no place to keep anything aside.
            getattr(entry, "extra", None)
            for entries in (trace.events, trace.interactions, trace.handoffs, trace.conflicts)
            for entry in entries
        )
        or any(getattr(role, "extra", None) for role in trace.agent_roles.values())
    )


def _merge_extra(plain: dict[str, Any], kind: type[Struct] = Record) -> dict[str, Any]:
    merged = {name: value for name, value in plain.items() if name != _EXTRA_KEY}
    unknown = plain.get(_EXTRA_KEY) or {}
    # What is kept aside must not write over a field of ours. Those of conversations may be aside: 'user' may be a name.
    aside = {name: value for name, value in unknown.items() if name not in _KNOWN[kind]}
    if kind is DatasetCase:
        aside |= {name: unknown[name] for name in ("turns", "user") if name in unknown and name not in merged}
    merged.update(aside)
    for name, child in _ONE.get(kind, {}).items():
        if isinstance(merged.get(name), dict):
            merged[name] = _merge_extra(merged[name], child)
    for name, child in _MANY.get(kind, {}).items():
        values = merged.get(name)
        if isinstance(values, dict):
            merged[name] = {key: _merge_extra(value, child) for key, value in values.items()}
        elif isinstance(values, list):
            merged[name] = [_merge_extra(value, child) for value in values]
    return merged


def _malformed(line: bytes | str, error: Exception) -> str:
    text = line if isinstance(line, bytes) else line.encode("utf-8", "replace")
    if isinstance(error, UnicodeDecodeError):
        return f"not valid UTF-8 ({error.reason}, byte 0x{error.object[error.start]:02x})"
    if isinstance(error, UnicodeError):
        return f"not valid UTF-8 ({error})"
    if isinstance(error, RecursionError):
        return "not readable: nested too deeply"
    for word in (b"NaN", b"Infinity"):
        if word in text and "invalid character" in str(error):
            return f"{word.decode()} is not JSON (write null for an unknown number); {_lower_first(str(error))}"
    return f"not JSON: {_lower_first(str(error))}"


def _check_version(version: object) -> None:
    if version == RECORD_VERSION and not isinstance(version, bool):
        return
    raise RecordError(
        f"record version must be {RECORD_VERSION}; received {version!r}"
        + ("; a newer AgentUnit wrote it: upgrade" if isinstance(version, int) and version > RECORD_VERSION else "")
    )


def _lower_first(text: str) -> str:
    return text.replace("JSON is malformed: ", "").replace("Input data was", "the line is")


def _listed(plain: Mapping[str, Any]) -> str:
    names = [str(key) for key in plain]
    return ", ".join(names[:8]) + (", …" if len(names) > 8 else "") if names else "(none)"


def _json_type(value: object) -> str:
    names = {str: "a string", bool: "a boolean", int: "a number", float: "a number", type(None): "null"}
    return names.get(type(value), type(value).__name__)
