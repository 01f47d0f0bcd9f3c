"""ONNX files of a few hundred bytes, written field by field: tests of the runtime need no ONNX package."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

_FLOAT, _INT64 = 1, 7


def write_lookup_model(path: Path, table: Sequence[Sequence[float]], *, inputs: Sequence[str] = ("input_ids",)) -> Path:
    """A model that looks each token up in a table: output ``last_hidden_state``, one row a token."""
    width = len(table[0])
    node = _text(1, "table") + _text(1, "input_ids") + _text(2, "last_hidden_state") + _text(4, "Gather")
    values = b"".join(struct.pack("<f", number) for row in table for number in row)
    tensor = _whole(1, len(table)) + _whole(1, width) + _whole(2, _FLOAT) + _text(8, "table") + _message(9, values)
    graph = _message(1, node) + _text(2, "lookup") + _message(5, tensor)
    graph += b"".join(_message(11, _value(name, _INT64, ("batch", "length"))) for name in inputs)
    graph += _message(12, _value("last_hidden_state", _FLOAT, ("batch", "length", width)))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_whole(1, 8) + _message(7, graph) + _message(8, _text(1, "") + _whole(2, 17)))
    return path


def _value(name: str, kind: int, shape: Sequence[str | int]) -> bytes:
    sizes = b"".join(_message(1, _text(2, size) if isinstance(size, str) else _whole(1, size)) for size in shape)
    return _text(1, name) + _message(2, _message(1, _whole(1, kind) + _message(2, sizes)))


def _text(field: int, text: str) -> bytes:
    return _message(field, text.encode())


def _message(field: int, content: bytes) -> bytes:
    return _number(field << 3 | 2) + _number(len(content)) + content


def _whole(field: int, number: int) -> bytes:
    return _number(field << 3) + _number(number)


def _number(number: int) -> bytes:
    groups = []
    while number > 127:
        groups.append(number & 127 | 128)
        number >>= 7
    return bytes([*groups, number])
