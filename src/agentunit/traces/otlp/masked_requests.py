"""The texts of an OTLP request, and the same request with other texts in their places."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from agentunit.core.results import encode_json
from agentunit.traces.otlp.stored_requests import JSON, PACKAGES

MaskTexts = Callable[[Sequence[tuple[str, str | float]]], Sequence[str | float]]
"""Takes pairs of a field's name and its text or number, and returns them with personal data replaced by texts."""

# Fields that are known by their names in camel case; senders also write them with underscores.
_BYTES = "bytesValue"
_TRACE_STATE = "traceState"
_OF_ATTRIBUTES = frozenset(("intValue", "doubleValue"))
# Texts that say nothing about a person: names of attributes, and ids, numbers and constants that look like such.
_KEYS = frozenset(("key", "idKeys", "descriptionKeys"))
_IDENTIFIERS = frozenset(("traceId", "spanId", "parentSpanId"))
_NO_TEXT = re.compile(r"-?[0-9]{1,20}(?:\.[0-9]+)?|[A-Z]+(?:_[A-Z]+)+|true|false")
_NUMBERS = re.compile(
    r"(?:int|double|bool)Value|as(?:Int|Double)|sum|min|max|count|zeroCount|zeroThreshold|bucketCounts|explicitBounds"
    r"|[a-zA-Z]+UnixNano|dropped[a-zA-Z]+Count|kind|code|flags|severityNumber|aggregationTemporality|isMonotonic"
)
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,20}")
_FIELD_NAME = re.compile(r"[A-Za-z$][A-Za-z0-9_]*")


class _Place(NamedTuple):
    """Where a text or number is: in a field (or at an index) of its holder; ``key`` is the attribute it belongs to."""

    holder: Any
    field: str | int
    key: str
    text: str | float
    is_kept_whole: bool = False

    def put(self, text: str | float) -> None:
        """A text in its place; one that has a form of its own is dropped instead."""
        if self.is_kept_whole:
            text = ""
        if not isinstance(self.text, str):
            # The value of an attribute has one kind only.
            if isinstance(self.holder, dict):
                del self.holder[self.field]
                self.holder["stringValue"] = text
            else:
                self.holder.string_value = text
        elif isinstance(self.field, int) or isinstance(self.holder, dict):
            self.holder[self.field] = text
        else:
            setattr(self.holder, self.field, text)


def mask_request(signal: str, media_type: str, body: bytes, mask: MaskTexts) -> bytes:
    """The body of a request with all of its texts masked, and without what cannot be: bytes and unknown fields.

    Ids and the names of attributes stay, and so do numbers, unless their attribute says that they are personal. A
    ``ValueError`` comes from a body whose texts cannot all be masked.
    """
    if media_type == JSON:
        content = json.loads(body)
        if not isinstance(content, dict):
            raise ValueError("it is not an object")
        _replace(list(_json_places(content)), mask)
        return encode_json(content)
    message = _message_of(signal).FromString(body)
    message.DiscardUnknownFields()
    _replace(list(_message_places(message)), mask)
    return bytes(message.SerializeToString())


def plain_request(signal: str, media_type: str, body: bytes) -> Any:
    """A request as plain data, with the names that it has in JSON."""
    if media_type == JSON:
        return json.loads(body)
    as_data = import_module("google.protobuf.json_format").MessageToDict
    return as_data(_message_of(signal).FromString(body))


def _replace(places: list[_Place], mask: MaskTexts) -> None:
    for place, text in zip(places, mask([(place.key, place.text) for place in places]), strict=True):
        if text != place.text:
            place.put(text)


def _json_places(content: dict[str, Any]) -> Iterator[_Place]:
    pending: list[tuple[Any, str, str]] = [(content, "", "")]
    while pending:
        value, key, name = pending.pop()
        if isinstance(value, dict):
            key = named if isinstance(named := value.get("key"), str) else key
            inner = [(field, _camel_case(field)) for field in value]
        else:
            inner = [(place, name) for place in range(len(value))]
        for field, name in inner:
            found = value[field]
            if isinstance(found, (dict, list)):
                pending.append((found, key, name))
            elif name in _OF_ATTRIBUTES and (number := _number(found)) is not None:
                yield _Place(value, field, key, number)
            elif isinstance(found, str):
                if name == _BYTES:
                    value[field] = ""
                elif not _stays(name, found):
                    yield _Place(value, field, key, found, name == _TRACE_STATE)


def _number(value: Any) -> float | None:
    """A number of JSON, which writes whole ones of 64 bits as texts."""
    if isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value):
        return int(value)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _camel_case(field: str) -> str:
    if not _FIELD_NAME.fullmatch(field):
        raise ValueError("the name of a field is none of OTLP")
    first, *others = field.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in others)


def _stays(name: str, text: str) -> bool:
    return name in _KEYS or name in _IDENTIFIERS or bool(_NUMBERS.fullmatch(name) and _NO_TEXT.fullmatch(text))


def _message_places(message: Any) -> Iterator[_Place]:
    pending: list[tuple[Any, str]] = [(message, "")]
    while pending:
        holder, key = pending.pop()
        key = getattr(holder, "key", key)
        for descriptor, value in holder.ListFields():
            name = descriptor.json_name
            if descriptor.type == descriptor.TYPE_MESSAGE:
                pending += [(inner, key) for inner in ([value] if hasattr(value, "ListFields") else value)]
            elif name == _BYTES:
                setattr(holder, descriptor.name, b"")
            elif name in _OF_ATTRIBUTES:
                yield _Place(holder, descriptor.name, key, value)
            elif descriptor.type == descriptor.TYPE_STRING and name not in _KEYS:
                if isinstance(value, str):
                    yield _Place(holder, descriptor.name, key, value, name == _TRACE_STATE)
                else:
                    yield from (_Place(value, place, key, text) for place, text in enumerate(value))


def _message_of(signal: str) -> Any:
    package = PACKAGES[signal]
    module = import_module(f"opentelemetry.proto.collector.{package}.v1.{package}_service_pb2")
    return getattr(module, f"Export{package.title()}ServiceRequest")
