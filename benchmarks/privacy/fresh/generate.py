"""The fresh measurement text: sentences with personal data and text without any, drawn from the files of this folder.

Written before its author had read a rule of the detectors, and with names that the recognizer was not trained on.
Nothing may be tuned on it. ``rows(seed)`` gives the same rows on every machine.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.privacy.fresh.values import PERSONAL, TECHNICAL

HERE = Path(__file__).parent
SENTENCES_PER_ORIGIN = 40
NATIVE_PER_LANGUAGE = 40
TECHNICAL_LINES = 40
TOGETHER = frozenset(("zh", "ja", "ko"))
_SLOT = re.compile(r"\{([a-zA-Z]+)\}")
TYPES = {
    "name": "name", "given": "name", "surname": "name", "address": "address", "phone": "phone", "email": "email",
    "ssn": "ssn",
    "card": "credit_card", "iban": "iban", "ip": "ip_address", "mac": "mac_address", "passport": "passport",
    "license": "driver_license", "birth": "date_of_birth", "key": "api_key", "password": "password",
}  # fmt: skip


class Row(NamedTuple):
    """A text and its personal data as ``(start, end, type)``; ``group`` and ``language`` say what it measures."""

    group: str
    language: str
    text: str
    spans: tuple[tuple[int, int, str], ...]


def rows(seed: int = 20261116) -> Iterator[Row]:
    """Every row: by origin of the name, by script, and texts without personal data."""
    drawn = random.Random(seed)
    people = _people()
    sentences = [text for _, text in _lines("sentences.txt")]
    for origin in [origin for origin in people if len(origin) > 2 or origin in ("US", "UK")]:
        for text in drawn.sample(sentences, min(SENTENCES_PER_ORIGIN, len(sentences))):
            yield _filled(f"origin:{origin}", "en", text, people[origin], drawn, " ")
    native = _lines("native.txt")
    for language in sorted({language for language, _ in native}):
        texts = [text for each, text in native if each == language]
        for number in range(NATIVE_PER_LANGUAGE):
            joint = "" if language in TOGETHER else " "
            yield _filled(f"script:{language}", language, texts[number % len(texts)], people[language], drawn, joint)
    for language, text in _lines("prose.txt"):
        yield Row(f"prose:{language}", language, text, ())
    for kind, text in _lines("technical.txt"):
        for _ in range(TECHNICAL_LINES):
            yield Row(f"technical:{kind}", "en", _technical(text, drawn), ())


def _lines(name: str) -> list[tuple[str, str]]:
    found = []
    for line in (HERE / name).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            kind, _, text = line.partition("|")
            found.append((kind.strip(), text.strip().replace("\\n", "\n")))
    return found


def _people() -> dict[str, tuple[list[str], list[str]]]:
    found = {}
    for origin, rest in _lines("people.txt"):
        given, _, family = rest.partition("|")
        found[origin] = ([name.strip() for name in given.split(",")], [name.strip() for name in family.split(",")])
    return found


def _filled(
    group: str, language: str, text: str, people: tuple[list[str], list[str]], drawn: random.Random, joint: str
) -> Row:
    origin = group.partition(":")[2]
    pieces: list[str] = []
    spans: list[tuple[int, int, str]] = []
    length = at = 0
    for match in _SLOT.finditer(text):
        slot = match.group(1)
        pieces.append(text[at : match.start()])
        length += len(pieces[-1])
        value = (
            _name(slot, origin, people, drawn, joint) if slot in ("name", "given", "surname") else PERSONAL[slot](drawn)
        )
        if slot in TYPES:
            spans.append((length, length + len(value), TYPES[slot]))
        pieces.append(value)
        length += len(value)
        at = match.end()
    return Row(group, language, "".join((*pieces, text[at:])), tuple(spans))


def _name(slot: str, origin: str, people: tuple[list[str], list[str]], drawn: random.Random, joint: str) -> str:
    given, family = drawn.choice(people[0]), drawn.choice(people[1])
    if slot == "given":
        return given
    if slot == "surname":
        return family
    first = (
        joint == ""
        or (origin in ("Vietnamese", "Chinese", "Korean") and drawn.random() < 0.5)
        or origin == "Vietnamese"
    )
    return f"{family}{joint}{given}" if first else f"{given}{joint}{family}"


def _technical(text: str, drawn: random.Random) -> str:
    """A technical line with its slots filled; braces that are no slot stay."""

    def fill(match: re.Match[str]) -> str:
        made = TECHNICAL.get(match.group(1))
        return made(drawn) if made is not None else match.group()

    return _SLOT.sub(fill, text)
