"""The texts of an OTLP request, and the same request with other texts in their places."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from agentunit.core.results import encode_json
from agentunit.traces.collector.request import JSON, PACKAGES
from agentunit.traces.collector.spool import Outgoing

MaskTexts = Callable[[Sequence[tuple[str, str]]], Sequence[str]]
"""Takes pairs of a field's name and its text, and returns the texts with personal data replaced."""

_JSON_TEXTS = frozenset(("stringValue", "name", "message", "description"))
_PROTOBUF_TEXTS = frozenset(("string_value", "name", "message", "description"))


class _Place(NamedTuple):
    """Where a text stands: in a field of a JSON object or of a message, ``key`` is the attribute it belongs to."""

    holder: Any
    field: str
    key: str
    text: str


def mask_request(request: Outgoing, mask: MaskTexts) -> bytes:
    """The body of a request with its texts masked: values of attributes, bodies of log records, names and messages."""
    if request.media_type == JSON:
        content = json.loads(request.body)
        _replace(list(_json_places(content)), mask, lambda place, text: place.holder.__setitem__(place.field, text))
        return encode_json(content)
    message = _message_of(request.signal).FromString(request.body)
    _replace(list(_message_places(message)), mask, lambda place, text: setattr(place.holder, place.field, text))
    return bytes(message.SerializeToString())


def _replace(places: list[_Place], mask: MaskTexts, put: Callable[[_Place, str], None]) -> None:
    for place, text in zip(places, mask([(place.key, place.text) for place in places]), strict=True):
        if text != place.text:
            put(place, text)


def _json_places(content: Any) -> Iterator[_Place]:
    pending: list[tuple[Any, str]] = [(content, "")]
    while pending:
        value, key = pending.pop()
        if isinstance(value, dict):
            if isinstance(named := value.get("key"), str):
                key = named
            for field, inner in value.items():
                if isinstance(inner, str):
                    if field in _JSON_TEXTS:
                        yield _Place(value, field, key, inner)
                else:
                    pending.append((inner, key))
        elif isinstance(value, list):
            pending += [(inner, key) for inner in value]


def _message_places(message: Any) -> Iterator[_Place]:
    pending: list[tuple[Any, str]] = [(message, "")]
    while pending:
        holder, key = pending.pop()
        key = getattr(holder, "key", key)
        for descriptor, value in holder.ListFields():
            if descriptor.type == descriptor.TYPE_MESSAGE:
                pending += [(inner, key) for inner in ([value] if hasattr(value, "ListFields") else value)]
            elif descriptor.name in _PROTOBUF_TEXTS and isinstance(value, str):
                yield _Place(holder, descriptor.name, key, value)


def _message_of(signal: str) -> Any:
    package = PACKAGES[signal]
    module = import_module(f"opentelemetry.proto.collector.{package}.v1.{package}_service_pb2")
    return getattr(module, f"Export{package.title()}ServiceRequest")
