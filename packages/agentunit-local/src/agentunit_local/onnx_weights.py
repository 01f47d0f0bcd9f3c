"""The weights of an ONNX file as numpy arrays, 8-bit ones as the numbers that they stand for.

ONNX Runtime keeps weights to itself, so the file is read here: of its protocol buffers only the few fields that hold
weights and the constants beside them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentunit_local.text_model import ModelFilesError

Weights = dict[str, NDArray[Any]]

_VARINT, _EIGHT_BYTES, _COUNTED, _FOUR_BYTES = 0, 1, 2, 5
_GRAPH_OF_MODEL, _INITIALIZER_OF_GRAPH = 7, 5
_DIMS, _TYPE, _FLOATS, _INTEGERS, _NAME, _RAW = 1, 2, 4, 5, 8, 9
_TYPES: dict[int, Any] = {1: np.float32, 2: np.uint8, 3: np.int8, 6: np.int32, 7: np.int64, 10: np.float16}
# Per form of file: how the name of a matrix of integers ends, that of its scales, and that of its zero points.
_QUANTIZED = (("_quantized", "_scale", "_zero_point"), (".integers", ".scales", None))


def read_weights(path: Path) -> Weights:
    """The initializers of a model by name; ``NAME_quantized`` and what belongs to it become ``NAME``."""
    try:
        content = memoryview(path.read_bytes())
        graph = next(value for number, value in _fields(content) if number == _GRAPH_OF_MODEL)
        found = dict(_tensor(value) for number, value in _fields(graph) if number == _INITIALIZER_OF_GRAPH)
    except OSError as error:
        raise ModelFilesError(f"{path}: cannot be read: {error.strerror}") from None
    except (IndexError, KeyError, StopIteration, TypeError, UnicodeDecodeError, ValueError) as error:
        raise ModelFilesError(f"{path}: no ONNX model whose weights can be read: {error!r:.100}") from None
    return _dequantized(found)


def _fields(content: memoryview) -> Iterator[tuple[int, Any]]:
    """The fields of a message: number, and a whole number or the bytes."""
    at = 0
    while at < len(content):
        key, at = _varint(content, at)
        kind = key & 7
        if kind == _VARINT:
            value, at = _varint(content, at)
            yield key >> 3, value
            continue
        if kind == _COUNTED:
            size, at = _varint(content, at)
        elif kind in (_EIGHT_BYTES, _FOUR_BYTES):
            size = 8 if kind == _EIGHT_BYTES else 4
        else:
            raise ValueError(f"field of kind {kind}")
        if at + size > len(content):
            raise ValueError("the file ends within a field")
        yield key >> 3, content[at : at + size]
        at += size


def _varint(content: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _tensor(content: memoryview) -> tuple[str, NDArray[Any]]:
    shape: list[int] = []
    integers: list[int] = []
    name, kind, raw = "", 0, memoryview(b"")
    for number, value in _fields(content):
        if number == _DIMS:
            shape += _whole_numbers(value)
        elif number == _INTEGERS:
            integers += _whole_numbers(value)
        elif number == _TYPE:
            kind = value
        elif number == _NAME:
            name = bytes(value).decode()
        elif number in (_RAW, _FLOATS):
            raw = value
    if kind not in _TYPES:
        # Of a type that weights never have: who needs it misses its values.
        return name, np.zeros(0)
    if integers:
        return name, np.array(integers, np.uint64).astype(np.int64).astype(_TYPES[kind]).reshape(shape)
    return name, np.frombuffer(raw, _TYPES[kind]).reshape(shape)


def _whole_numbers(value: Any) -> list[int]:
    """A field of whole numbers: one, or many in a row."""
    if isinstance(value, int):
        return [value]
    values, at = [], 0
    while at < len(value):
        each, at = _varint(value, at)
        values.append(each)
    return values


def _dequantized(found: Weights) -> Weights:
    weights: Weights = {}
    used: set[str] = set()
    for whole, scale, zero in _QUANTIZED:
        for name in [name for name in found if name.endswith(whole)]:
            plain = name.removesuffix(whole)
            belonging = [name, plain + scale, *([plain + zero] if zero else [])]
            if any(each not in found for each in belonging):
                continue
            integers = found[name].astype(np.float32)
            if zero:
                integers -= found[plain + zero].astype(np.float32)
            weights[plain] = integers * found[plain + scale]
            used.update(belonging)
    return {**{name: array for name, array in found.items() if name not in used}, **weights}
