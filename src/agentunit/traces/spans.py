"""A span as every span format is read into it, and what a reading noticed on its way."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from math import isfinite
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct, field

from agentunit.core.results import decode_json, without_lone_surrogates
from agentunit.core.trace import epoch_seconds

SpanStatus = Literal["unset", "ok", "error"]

# An attribute beyond this is no text that a metric could use, and would be carried through every step after.
LONGEST_ATTRIBUTE = 16 << 20


class SpanEvent(Struct, omit_defaults=True):
    """Something that happened within a span: an exception, or a message of an older GenAI instrumentation."""

    name: str
    timestamp: float | None = None
    attributes: dict[str, Any] = field(default_factory=dict)


class Span(Struct, omit_defaults=True):
    """One span of OpenTelemetry, or of a tool that thinks like it. Times are seconds since 1970.

    Ids are as the source writes them, in lower case where they are hexadecimal; ``parent_id`` is ``None`` at a root.
    ``attributes`` are flat, with dots in their names; values are plain data, JSON in texts is left as text.
    ``scope`` is the name of the instrumentation that made the span, ``resource`` the attributes of its process.
    """

    trace_id: str
    span_id: str
    parent_id: str | None = None
    name: str = ""
    start_s: float | None = None
    end_s: float | None = None
    status: SpanStatus = "unset"
    status_message: str = ""
    attributes: dict[str, Any] = field(default_factory=dict)
    events: list[SpanEvent] = field(default_factory=list)
    scope: str = ""
    resource: dict[str, Any] = field(default_factory=dict)


class LogEvent(NamedTuple):
    """A log record that belongs to a span: the message contents of some instrumentations travel like this."""

    trace_id: str
    span_id: str
    event: SpanEvent


class PackedSpan(NamedTuple):
    """A span that is not decoded yet: a reader keeps it small until its whole trace is there.

    ``unpack(data, notes)`` gives the span, or a log record of it; it is one shared object for all spans of a resource
    or file. Call it after the file was read: what its spans share may stand behind them.
    """

    trace_id: str
    data: bytes
    unpack: Callable[[bytes, ReadingNotes], Span | LogEvent]


# Data that is named by ids has a name for each; who reads a list of them learns nothing more from the next.
_MOST_FIELDS, _OTHER_FIELDS = 1000, "other fields"


class ReadingNotes(Struct):
    """What was noticed while traces were read, for the user to see: nothing is dropped silently.

    ``unplaced`` counts spans, by name, that no known vocabulary describes; they stay in the trace as plain events.
    ``problems`` counts oddities that were worked around, by one sentence each. ``not_understood`` counts fields with
    content that no reader uses, by name; each record lists its own under ``trace.metadata["not_understood"]``.
    """

    n_files: int = 0
    n_spans: int = 0
    n_traces: int = 0
    formats: Counter[str] = field(default_factory=Counter)
    scopes: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    unplaced: Counter[str] = field(default_factory=Counter)
    problems: Counter[str] = field(default_factory=Counter)
    not_understood: Counter[str] = field(default_factory=Counter)

    def count_fields(self, names: Iterable[str]) -> None:
        """Count fields that no reader uses; beyond so many different names they are counted together."""
        for name in names:
            known = name in self.not_understood or len(self.not_understood) < _MOST_FIELDS
            self.not_understood[name if known else _OTHER_FIELDS] += 1

    def add(self, later: ReadingNotes) -> None:
        """Take in what was noticed after this, in another part of the same input."""
        self.n_files += later.n_files
        self.n_spans += later.n_spans
        self.n_traces += later.n_traces
        for name in ("formats", "scopes", "kinds", "unplaced", "problems"):
            getattr(self, name).update(getattr(later, name))
        for name, n in later.not_understood.items():
            known = name in self.not_understood or len(self.not_understood) < _MOST_FIELDS
            self.not_understood[name if known else _OTHER_FIELDS] += n


# OpenInference defines these as JSON in a text; Phoenix decodes them, and a mapping in them is no nesting of names.
_JSON_TEXTS = ("metadata", "document.metadata", "llm.prompt_template.variables", "tool.parameters")
_JSON_TEXT_ENDINGS = tuple(f".{name}" for name in _JSON_TEXTS)

_HEXADECIMAL = re.compile(r"(?:0[xX])?([0-9a-fA-F]+)\Z")
_BASE64_LENGTHS = {24: 16, 12: 8}

_STATUSES: dict[str, SpanStatus] = {
    "error": "error", "2": "error", "ok": "ok", "1": "ok",
    "unset": "unset", "unspecified": "unset", "0": "unset", "": "unset",
}  # fmt: skip
_STATUS_PREFIX = re.compile(r"(?:status_?code[_.])")

# The names of OTLP's typed values, which some tools carry over into rows of their own.
_TYPED_VALUES = ("stringValue", "intValue", "doubleValue", "boolValue", "arrayValue", "kvlistValue", "bytesValue")
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,30}\Z")
_DECIMAL_NUMBER = re.compile(r"-?[0-9]{1,30}(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,3})?\Z")
_LARGEST_NUMBER = 10**30


def decoded_json(data: bytes | str) -> Any:
    """JSON as data. ``NaN`` and ``Infinity``, which Python writes and JSON does not know, are ``None``.

    Anything else that is not JSON raises a ``ValueError`` with one sentence.
    """
    try:
        return decode_json(data)
    except (msgspec.DecodeError, UnicodeError) as error:
        reason = str(error)
    except RecursionError:
        raise ValueError("JSON is nested too deeply") from None
    try:
        return without_lone_surrogates(json.loads(data, parse_constant=lambda _: None))
    except (ValueError, RecursionError):
        raise ValueError(reason) from None


def identifier(value: Any) -> str | None:
    """An id as text: hexadecimal in lower case without ``0x``, others as they are.

    Base64 of 16 or 8 bytes becomes hexadecimal. Nothing, and an id of zeros, which stands for none, is ``None``.

    >>> identifier("0xDE51"), identifier("b3qsJqmE0+Y="), identifier(12203920175536650289), identifier("0000")
    ('de51', '6f7aac26a984d3e6', '12203920175536650289', None)
    """
    if value.__class__ is int:
        return str(value) if value else None
    if value.__class__ is not str:
        return None
    text = value.strip()
    found = _HEXADECIMAL.match(text)
    if found:
        digits = found[1].lower()
        return digits if digits.strip("0") else None
    if text.endswith("=") and len(text) in _BASE64_LENGTHS:
        try:
            raw = b64decode(text.replace("-", "+").replace("_", "/"), validate=True)
        except NotBase64:
            return text
        if len(raw) == _BASE64_LENGTHS[len(text)]:
            return raw.hex()
    return text or None


def seconds_since_1970(value: Any, unit_s: float | None = None) -> float | None:
    """A time of ISO 8601, or a number of ``unit_s`` since 1970, in seconds; ``None`` when it is neither.

    Without a unit the number's size tells it: seconds, milliseconds, microseconds and nanoseconds of the same moment
    lie so far apart that none is taken for another between 1973 and 5138.

    >>> seconds_since_1970("1970-01-01T00:01:00Z"), seconds_since_1970(1753097483699), seconds_since_1970("soon")
    (60.0, 1753097483.699, None)
    """
    number = _number(value)
    if number is None:
        if value.__class__ is not str:
            return None
        try:
            return epoch_seconds(value.strip())
        except (ValueError, OverflowError):
            return None
    if number <= 0:
        return None
    if unit_s is None:
        size = abs(number)
        unit_s = 1 if size < 1e11 else 1e-3 if size < 1e14 else 1e-6 if size < 1e17 else 1e-9
    # Dividing by a whole number keeps digits that multiplying by a fraction would lose.
    seconds = number / round(1 / unit_s)
    return seconds if isfinite(seconds) else None


def duration_s(value: Any, unit_s: float | None) -> float | None:
    """A duration of ISO 8601 (``PT1M11.35S``), or a number of ``unit_s``, in seconds; ``None`` when it is neither."""
    number = _number(value)
    if number is not None:
        return number / round(1 / unit_s) if unit_s is not None and number >= 0 else None
    if value.__class__ is not str:
        return None
    try:
        duration = msgspec.convert(value.strip(), timedelta)
    except (msgspec.ValidationError, OverflowError, UnicodeError):
        return None
    return duration.total_seconds() if duration >= timedelta() else None


def span_status(value: Any) -> SpanStatus | None:
    """A status by its name or number, whatever stands before it; ``None`` when it is none of OpenTelemetry's three.

    >>> span_status("STATUS_CODE_ERROR"), span_status("Ok"), span_status(2), span_status("StatusCode.UNSET")
    ('error', 'ok', 'error', 'unset')
    """
    if value.__class__ is bool or not isinstance(value, (str, int)):
        return None
    return _STATUSES.get(_STATUS_PREFIX.sub("", str(value).strip().lower(), count=1))


def as_mapping(value: Any) -> dict[str, Any] | None:
    """A mapping given as such, as JSON in a text, or as a list of ``{"key": …, "value": …}``; ``None`` otherwise."""
    if value.__class__ is str and value[:1] in "{[" and value:
        try:
            value = decoded_json(value)
        except ValueError:
            return None
    if isinstance(value, dict):
        return value
    if isinstance(value, list) and all(isinstance(pair, dict) and isinstance(pair.get("key"), str) for pair in value):
        return {pair["key"]: _typed(pair.get("value"), pair.get("type")) for pair in value}
    return None


def flat_attributes(mapping: Mapping[str, Any], notes: ReadingNotes, *, nested: bool = True) -> dict[str, Any]:
    """Attributes with dots in their names; what is ``None`` is no attribute, and what is too long is left out.

    With ``nested``, mappings and lists of mappings become names with dots and numbers, as instrumentations write them.

    >>> flat_attributes({"llm": {"input_messages": [{"message.role": "user"}]}, "tags": ["a"]}, ReadingNotes())
    {'llm.input_messages.0.message.role': 'user', 'tags': ['a']}
    """
    flat: dict[str, Any] = {}
    for own_name, own_value in mapping.items():
        if own_value.__class__ is str and len(own_value) <= LONGEST_ATTRIBUTE and own_name not in flat:
            flat[own_name] = own_value
        else:
            _flatten(own_name, own_value, flat, notes, nested)
    return flat


def _flatten(own_name: str, own_value: Any, flat: dict[str, Any], notes: ReadingNotes, nested: bool) -> None:
    waiting = [(own_name, own_value)]
    while waiting:
        name, value = waiting.pop()
        if value is None or (value.__class__ is float and not isfinite(value)):
            continue
        if nested and isinstance(value, dict) and value:
            if name in _JSON_TEXTS or name.endswith(_JSON_TEXT_ENDINGS):
                flat[name] = msgspec.json.encode(value).decode()
            else:
                waiting.extend((f"{name}.{inner}", each) for inner, each in reversed(value.items()))
        elif nested and isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
            waiting.extend((f"{name}.{at}", value[at]) for at in range(len(value) - 1, -1, -1))
        elif value.__class__ is str and len(value) > LONGEST_ATTRIBUTE:
            notes.problems[f"an attribute longer than {LONGEST_ATTRIBUTE >> 20} MiB was left out"] += 1
        else:
            if name in flat:
                notes.problems["two attributes of a span have the same name; the last one counts"] += 1
            flat[name] = value


def _number(value: Any) -> float | None:
    """A number, also one in a text, as exports with 64-bit integers write it."""
    if value.__class__ is str and _DECIMAL_NUMBER.match(value):
        value = float(value) if "." in value or "e" in value.lower() else int(value)
    if value.__class__ in (int, float) and abs(value) < _LARGEST_NUMBER:
        return value  # an int stays one: as a float, nanoseconds lose digits
    return None


def _typed(value: Any, kind: Any) -> Any:
    """A value by the type beside it (Jaeger), or around it (OTLP)."""
    if value.__class__ is str and kind in ("int64", "INT64") and _WHOLE_NUMBER.match(value):
        return int(value)
    if isinstance(value, dict) and len(value) == 1:
        (name,) = value
        if name in _TYPED_VALUES:
            return _typed_value(name, value[name])
    return value


def _typed_value(name: str, value: Any) -> Any:
    if name == "intValue":
        return _typed(value, "int64")
    if name == "arrayValue" and isinstance(value, dict):
        values = value.get("values")
        return [_typed(each, None) for each in values] if isinstance(values, list) else []
    if name == "kvlistValue" and isinstance(value, dict):
        return as_mapping(value.get("values", [])) or {}
    return value
