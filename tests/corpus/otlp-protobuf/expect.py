"""Count what the spans of the protobuf message state, decoded by hand after opentelemetry-proto, without AgentUnit."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any


def fields(message: bytes) -> list[tuple[int, Any]]:
    """The numbers and values of a message's fields."""
    found, place = [], 0
    while place < len(message):
        tag, place = varint(message, place)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            value, place = varint(message, place)
        else:
            length, place = varint(message, place) if kind == 2 else ({1: 8, 5: 4}[kind], place)
            value, place = message[place : place + length], place + length
        found.append((number, value))
    return found


def varint(message: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[place]
        value, shift, place = value | (byte & 127) << shift, shift + 7, place + 1
        if byte < 128:
            return value, place


def every(message: bytes, number: int) -> list[Any]:
    return [value for each, value in fields(message) if each == number]


def attribute(message: bytes) -> tuple[str, Any]:
    (key,), (value,) = every(message, 1), every(message, 2)
    ((kind, content),) = fields(value) or [(1, b"")]
    return key.decode(), content.decode() if kind == 1 else content


def count(path: Path) -> list[dict[str, Any]]:
    spans = []
    for resource in every(path.read_bytes(), 1):
        for span in (span for scope in every(resource, 2) for span in every(scope, 2)):
            (trace_id,), (start,) = every(span, 1), every(span, 7)
            failed = any(2 in every(status, 3) for status in every(span, 15))
            attributes = dict(attribute(each) for each in every(span, 9))
            spans.append(SpanFacts(trace_id.hex(), int.from_bytes(start, "little"), attributes, failed))
    return cases_of(spans)


if __name__ == "__main__":
    folder = Path(__file__).resolve().parent
    sys.path.append(str(folder.parent))
    from count_spans import SpanFacts, cases_of
    from files import write_expectations

    write_expectations(folder, count)
