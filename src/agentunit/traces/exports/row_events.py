"""What happened within a span, as rows spell it: events, logs and annotations."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

from agentunit.traces.exports.spellings import Spelling, at, first_at
from agentunit.traces.span_values import as_mapping, decoded_json, flat_attributes, seconds_since_1970
from agentunit.traces.spans import ReadingNotes, SpanEvent

_NAME = ("name", "Name", "event_name")
_TIME = ("time_unix_nano", "timeUnixNano", "timestamp", "Timestamp", "time")
_ATTRIBUTES = ("attributes", "Attributes", "log_attributes", "fields")
# What a log record says beside its attributes.
_OF_A_LOG = ("body", "severity_text", "evaluations", "annotations")
_COLUMNS = ("Name", "Timestamp", "Attributes")


def events_of(row: Mapping[str, Any], spelling: Spelling, notes: ReadingNotes) -> list[SpanEvent]:
    """The events of a row, from every place where its spelling has some."""
    events = []
    for found in _written_events(row, spelling, notes):
        if isinstance(found, dict):
            events.append(_event(found, spelling, notes))
        else:
            notes.problems["an event that is no object was left out"] += 1
    return events


def _written_events(row: Mapping[str, Any], spelling: Spelling, notes: ReadingNotes) -> list[Any]:
    written: list[Any] = []
    for path in spelling.events:
        value = at(row, path)
        if value.__class__ is str and value:
            try:
                value = decoded_json(value)
            except ValueError:
                value = [value]
        if isinstance(value, list):
            written.extend(value)
        elif value is not None and not (spelling.event_columns and isinstance(value, dict)):
            written.append(value)
    for prefix in spelling.event_columns:
        columns = [at(row, prefix + name) for name in _COLUMNS]
        lists = [column if isinstance(column, list) else [] for column in columns]
        written.extend(dict(zip(_COLUMNS, each, strict=True)) for each in zip_longest(*lists))
    return written


def _event(found: dict[str, Any], spelling: Spelling, notes: ReadingNotes) -> SpanEvent:
    mapping = as_mapping(first_at(found, _ATTRIBUTES) or {})
    if mapping is None:
        notes.problems["attributes of an event that are no object were left out"] += 1
    attributes = flat_attributes(mapping or {}, notes, nested=spelling.nested)
    attributes.update((name, found[name]) for name in _OF_A_LOG if found.get(name))
    return SpanEvent(
        _event_name(found, attributes),
        seconds_since_1970(first_at(found, _TIME), spelling.time_unit_s),
        attributes,
    )


def _event_name(found: Mapping[str, Any], attributes: dict[str, Any]) -> str:
    """The name of an event. Jaeger has it among the fields, a note of Zipkin is nothing but its text."""
    name = first_at(found, _NAME)
    if name is None and isinstance(attributes.get("event"), str):
        name = attributes.pop("event")
    if name is None:
        name = found.get("value", "log" if "body" in found else "")
    return name if isinstance(name, str) else ""
