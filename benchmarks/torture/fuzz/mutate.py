"""Inputs made of other inputs: JSON by its structure, text by its words, bytes by bytes."""

from __future__ import annotations

import json
import random
from typing import Any

_VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2**31,
    2**63,
    10**25,
    -(10**400),
    0.1,
    1e308,
    -1e-308,
    float("nan"),
    float("inf"),
    "",
    " ",
    "0",
    "null",
    "nan",
    "a" * 5000,
    "\ud800",
    "\x00",
    "\x1b[2J\u202e\u2066",
    "::error::x\n::error::y",
    "=1+1",
    "<script>alert(1)</script>",
    "2024-13-45T99:99:99Z",
    "9999999999999999999",
    "true",
    "{}",
    "[[[[",
    [],
    {},
    [None],
    [[]],
    {"": ""},
    {"role": "user", "content": None},
    {"type": "text", "text": 7},
    [{"id": 1}, {"id": 1}],
)
_BYTES = (
    b"",
    b"\0",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\n",
    b"\r\n",
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b"\\",
    b"\\u",
    b",",
    b":",
    b"null",
    b"1e999",
    b"-",
    b"\x80" * 9,
    b"\xed\xa0\x80",
    b"---\n",
    b"&a *a",
    b"!!python/object:os.system",
    b"PK\x03\x04",
    b"\x1f\x8b\x08",
    b"(\xb5/\xfd",
    b"[" * 2000,
    b'{"a":' * 500,
)
_MOST_BYTES = 1 << 16


def mutated(chance: random.Random, seeds: list[bytes]) -> bytes:
    """An input that no seed is, and that is near to one or two of them."""
    data = chance.choice(seeds)
    for _ in range(1 + int(chance.expovariate(0.8))):
        roll = chance.random()
        if roll < 0.6:
            data = _by_structure(chance, data, seeds)
        elif roll < 0.9:
            data = _by_bytes(chance, data)
        else:
            data = _spliced(chance, data, chance.choice(seeds))
    return data[:_MOST_BYTES]


def _by_structure(chance: random.Random, data: bytes, seeds: list[bytes]) -> bytes:
    """Change one value of a JSON document, or of one line of it; what is no JSON is changed as bytes."""
    try:
        return _dumped(_changed(chance, json.loads(data), seeds))
    except (ValueError, RecursionError, TypeError):
        pass
    lines = data.split(b"\n")
    at = chance.randrange(len(lines))
    try:
        lines[at] = _dumped(_changed(chance, json.loads(lines[at]), seeds))
    except (ValueError, RecursionError, TypeError):
        return _by_bytes(chance, data)
    return b"\n".join(lines)


def _dumped(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8", "surrogatepass")


def _changed(chance: random.Random, document: Any, seeds: list[bytes]) -> Any:
    places = _places(document)
    holder, key = chance.choice(places)
    if holder is None:
        return _value(chance, seeds)
    roll = chance.random()
    if roll < 0.5:
        holder[key] = _value(chance, seeds)
    elif roll < 0.65:
        del holder[key]
    elif roll < 0.75 and isinstance(holder, dict):
        holder[chance.choice([str(key) + "s", str(key).upper(), "", "type", "id"])] = holder.pop(key)
    elif roll < 0.85:
        other, from_key = chance.choice(places)
        holder[key] = document if other is None else other.get(from_key) if isinstance(other, dict) else other[:1]
    elif roll < 0.95:
        holder[key] = [holder[key]] * chance.choice((1, 2, 40))
    else:
        holder[key] = str(holder[key])[:2000]
    return document


def _value(chance: random.Random, seeds: list[bytes]) -> Any:
    if chance.random() < 0.1:
        try:
            return json.loads(chance.choice(seeds).split(b"\n")[0])
        except (ValueError, RecursionError):
            return None
    return chance.choice(_VALUES)


def _places(document: Any, most: int = 400) -> list[tuple[Any, Any]]:
    """Where values stand; a holder of None is the whole document."""
    found: list[tuple[Any, Any]] = [(None, None)]
    waiting = [document]
    while waiting and len(found) < most:
        holder = waiting.pop()
        pairs = holder.items() if isinstance(holder, dict) else enumerate(holder) if isinstance(holder, list) else ()
        for key, value in pairs:
            found.append((holder, key))
            if isinstance(value, dict | list):
                waiting.append(value)
    return found


def _by_bytes(chance: random.Random, data: bytes) -> bytes:
    at = chance.randrange(len(data) + 1)
    roll = chance.random()
    if roll < 0.2 and data:
        at = min(at, len(data) - 1)
        return data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]
    until = min(len(data), at + int(chance.expovariate(1 / 20)) + 1)
    if roll < 0.4:
        return data[:at] + data[until:]
    if roll < 0.5:
        return data[:at]
    if roll < 0.65:
        return data[:until] + data[at:until] * chance.choice((1, 3, 50)) + data[until:]
    if roll < 0.75:
        return data[:at] + chance.randbytes(chance.randrange(1, 20)) + data[until:]
    return data[:at] + chance.choice(_BYTES) + data[at if chance.random() < 0.5 else until :]


def _spliced(chance: random.Random, first: bytes, second: bytes) -> bytes:
    return first[: chance.randrange(len(first) + 1)] + second[chance.randrange(len(second) + 1) :]


def shuffled_words(chance: random.Random, words: list[str], most: int = 12) -> str:
    """A text of words of a language, in any order and with any spacing."""
    chosen = [chance.choice(words) for _ in range(chance.randrange(most))]
    return chance.choice(("", " ", "  ")).join(chosen) if chance.random() < 0.3 else " ".join(chosen)
