"""The fresh measurement text: sentences with personal data and text without any, drawn from the files of this folder.

Written before its author had read a rule of the detectors, and with names that the recognizer was not trained on.
Nothing may be tuned on it. ``rows(seed)`` gives the same rows on every machine.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
SENTENCES_PER_ORIGIN = 40
NATIVE_PER_LANGUAGE = 40
TECHNICAL_LINES = 40
TOGETHER = frozenset(("zh", "ja", "ko"))
_SLOT = re.compile(r"\{([a-zA-Z]+)\}")
TYPES = {
    "name": "name", "given": "name", "surname": "name", "address": "address", "phone": "phone", "email": "email", "ssn": "ssn",
    "card": "credit_card", "iban": "iban", "ip": "ip_address", "mac": "mac_address", "passport": "passport",
    "license": "driver_license", "birth": "date_of_birth", "key": "api_key", "password": "password",
}  # fmt: skip
ADDRESSES = (
    "{n} {w} {s}, {t}, {z}", "{n} {w} {s}, Apt {m}, {t} {z}", "{n} {w} {s}", "{w}weg {m}, {g} {t}", "{m} rue de la {w}, {g} {t}",
    "Calle {w} {m}, {g} {t}", "Rua {w}, {m}, {t}", "Flat {m}, {n} {w} {s}, {t} {p}",
)  # fmt: skip
STREETS = ["Juniper", "Larkspur", "Saddleback", "Quarry", "Tanner", "Wharf", "Abbey", "Harbour", "Falcon", "Orchard", "Copper", "Lantern", "Thornfield", "Millbrook"]
KINDS = ["Alley", "Row", "Mews", "Loop", "Bend", "Walk", "Passage", "Crossing", "Grove", "Ridge", "Street", "Avenue", "Road", "Lane"]
TOWNS = ["Tillamook", "Gdynia", "Esslingen", "Aveiro", "Kisumu", "Penzance", "Rovaniemi", "Zadar", "Quimper", "Toowoomba", "Linköping", "Matsue", "Pereira", "Jinja"]
THINGS = ["ladder", "kettle", "router", "bicycle", "invoice", "tent", "saddle", "carpet", "printer", "oven"]
WORDS = ["ledger", "payload", "widget", "cluster", "queue", "sensor", "router", "planner", "batch", "render", "vector", "signal", "ticket", "cache"]
WHENS = ("last Monday", "on 12 June", "tomorrow at nine", "this afternoon", "in early March", "two weeks ago")


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
            _name(slot, origin, people, drawn, joint) if slot in ("name", "given", "surname") else _value(slot, drawn)
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


def _value(slot: str, drawn: random.Random) -> str:
    return _MADE[slot](drawn)


def _digits(drawn: random.Random, count: int) -> str:
    return str(drawn.randint(1, 9)) + "".join(str(drawn.randint(0, 9)) for _ in range(count - 1))


def _address(drawn: random.Random) -> str:
    return drawn.choice(ADDRESSES).format(
        n=drawn.randint(2, 4800), m=drawn.randint(1, 96), w=drawn.choice(STREETS), s=drawn.choice(KINDS), t=drawn.choice(TOWNS),
        z=f"{drawn.choice(('OR', 'VT', 'NM', 'GA', 'WI'))} {_digits(drawn, 5)}", g=_digits(drawn, 5),
        p=f"{drawn.choice(('TR', 'LE', 'YO'))}{drawn.randint(1, 19)} {drawn.randint(1, 9)}{drawn.choice('ABDEF')}{drawn.choice('GHJLN')}",
    )  # fmt: skip


def _phone(drawn: random.Random) -> str:
    area, exchange, line = drawn.randint(201, 989), drawn.randint(220, 989), _digits(drawn, 4)
    return drawn.choice((
        f"({area}) {exchange}-{line}", f"{area}-{exchange}-{line}", f"+1 {area} {exchange} {line}", f"{area}.{exchange}.{line}",
        f"+49 {drawn.randint(151, 179)} {_digits(drawn, 8)}", f"+44 7{_digits(drawn, 3)} {_digits(drawn, 6)}",
        f"+33 6 {_digits(drawn, 2)} {_digits(drawn, 2)} {_digits(drawn, 2)} {_digits(drawn, 2)}",
    ))  # fmt: skip


def _card(drawn: random.Random) -> str:
    body = drawn.choice(("4", "51", "54")) + _digits(drawn, 14)
    body = body[:15]
    total = 0
    for place, digit in enumerate(reversed(body)):
        value = int(digit) * 2 if place % 2 == 0 else int(digit)
        total += value - 9 if value > 9 else value
    number = body + str(-total % 10)
    return drawn.choice((number, " ".join(number[at : at + 4] for at in range(0, 16, 4))))


def _iban(drawn: random.Random) -> str:
    account = _digits(drawn, 18)
    check = 98 - int(account + "131400") % 97
    number = f"DE{check:02}{account}"
    return drawn.choice((number, " ".join(number[at : at + 4] for at in range(0, 22, 4))))


def _technical(text: str, drawn: random.Random) -> str:
    def fill(match: re.Match[str]) -> str:
        made = _TECHNICAL.get(match.group(1))
        return made(drawn) if made is not None else match.group()

    return _SLOT.sub(fill, text)


_HEX = "0123456789abcdef"
_MADE: dict[str, Callable[[random.Random], str]] = {
    "address": _address, "phone": _phone, "card": _card, "iban": _iban,
    "email": lambda drawn: f"{drawn.choice(WORDS)}.{drawn.choice(THINGS)}{drawn.randint(1, 99)}@{drawn.choice(('posteo.net', 'fastmail.example', 'uni-nord.de'))}",
    "ssn": lambda drawn: f"{drawn.randint(101, 665)}-{drawn.randint(11, 98)}-{_digits(drawn, 4)}",
    "ip": lambda drawn: f"{drawn.choice((81, 93, 146, 203))}.{drawn.randint(0, 255)}.{drawn.randint(0, 255)}.{drawn.randint(1, 254)}",
    "mac": lambda drawn: ":".join(f"{drawn.randint(0, 255):02x}" for _ in range(6)),
    "passport": lambda drawn: f"{drawn.choice('CFGK')}{_digits(drawn, 8)}",
    "license": lambda drawn: f"{drawn.choice('ABDFM')}{_digits(drawn, 7)}",
    "birth": lambda drawn: drawn.choice(("{:02}/{:02}/{}", "{}-{}-{}")).format(drawn.randint(1, 12), drawn.randint(1, 28), drawn.randint(1948, 2004)),
    "key": lambda drawn: "sk-" + "".join(drawn.choice("abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789") for _ in range(40)),
    "password": lambda drawn: drawn.choice(WORDS).title() + drawn.choice("!#%&") + _digits(drawn, 4),
    "amount": lambda drawn: str(drawn.randint(10, 900)), "code": lambda drawn: str(drawn.randint(100, 999)),
    "when": lambda drawn: drawn.choice(WHENS), "thing": lambda drawn: drawn.choice(THINGS),
}  # fmt: skip
_TECHNICAL: dict[str, Callable[[random.Random], str]] = {
    "n": lambda drawn: str(drawn.randint(2, 9 * 10 ** drawn.randint(0, 4))),
    "hex": lambda drawn: "".join(drawn.choice(_HEX) for _ in range(8)),
    "semver": lambda drawn: ".".join(str(drawn.randint(0, 40)) for _ in range(drawn.choice((3, 3, 4)))),
    "stamp": lambda drawn: f"2026-{drawn.randint(1, 12):02}-{drawn.randint(1, 28):02}T{drawn.randint(0, 23):02}:{drawn.randint(0, 59):02}:07.{_digits(drawn, 3)}Z",
    "word": lambda drawn: drawn.choice(WORDS), "Word": lambda drawn: drawn.choice(WORDS).title(),
    "uuid": lambda drawn: "-".join("".join(drawn.choice(_HEX) for _ in range(size)) for size in (8, 4, 4, 4, 12)),
    "ean": lambda drawn: _digits(drawn, 13),
}  # fmt: skip
