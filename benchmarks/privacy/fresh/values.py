"""Made-up values that fill the slots of the fresh text. All are drawn; none is anybody's."""

from __future__ import annotations

import random
from collections.abc import Callable

_ADDRESSES = (
    "{n} {w} {s}, {t}, {z}",
    "{n} {w} {s}, Apt {m}, {t} {z}",
    "{n} {w} {s}",
    "{w}weg {m}, {g} {t}",
    "{m} rue de la {w}, {g} {t}",
    "Calle {w} {m}, {g} {t}",
    "Rua {w}, {m}, {t}",
    "Flat {m}, {n} {w} {s}, {t} {p}",
)
_STREETS = (
    "Juniper", "Larkspur", "Saddleback", "Quarry", "Tanner", "Wharf", "Abbey", "Harbour", "Falcon", "Orchard", "Copper",
    "Lantern", "Thornfield", "Millbrook",
)  # fmt: skip
_KINDS = (
    "Alley", "Row", "Mews", "Loop", "Bend", "Walk", "Passage", "Crossing", "Grove", "Ridge", "Street", "Avenue",
    "Road", "Lane",
)  # fmt: skip
_TOWNS = (
    "Tillamook", "Gdynia", "Esslingen", "Aveiro", "Kisumu", "Penzance", "Rovaniemi", "Zadar", "Quimper", "Toowoomba",
    "Linköping", "Matsue", "Pereira", "Jinja",
)  # fmt: skip
_THINGS = ("ladder", "kettle", "router", "bicycle", "invoice", "tent", "saddle", "carpet", "printer", "oven")
_WORDS = (
    "ledger", "payload", "widget", "cluster", "queue", "sensor", "router", "planner", "batch", "render", "vector",
    "signal", "ticket", "cache",
)  # fmt: skip
_WHENS = ("last Monday", "on 12 June", "tomorrow at nine", "this afternoon", "in early March", "two weeks ago")
_HOSTS = ("posteo.net", "fastmail.example", "uni-nord.de")
_HEX = "0123456789abcdef"
_KEY_LETTERS = "abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"


def _digits(drawn: random.Random, count: int) -> str:
    return str(drawn.randint(1, 9)) + "".join(str(drawn.randint(0, 9)) for _ in range(count - 1))


def _address(drawn: random.Random) -> str:
    postcode = f"{drawn.choice(('TR', 'LE', 'YO'))}{drawn.randint(1, 19)} {drawn.randint(1, 9)}{drawn.choice('ABDEF')}G"
    return drawn.choice(_ADDRESSES).format(
        n=drawn.randint(2, 4800),
        m=drawn.randint(1, 96),
        w=drawn.choice(_STREETS),
        s=drawn.choice(_KINDS),
        t=drawn.choice(_TOWNS),
        z=f"{drawn.choice(('OR', 'VT', 'NM', 'GA', 'WI'))} {_digits(drawn, 5)}",
        g=_digits(drawn, 5),
        p=postcode,
    )


def _phone(drawn: random.Random) -> str:
    area, exchange, line = drawn.randint(201, 989), drawn.randint(220, 989), _digits(drawn, 4)
    pairs = " ".join(_digits(drawn, 2) for _ in range(4))
    return drawn.choice(
        (
            f"({area}) {exchange}-{line}",
            f"{area}-{exchange}-{line}",
            f"+1 {area} {exchange} {line}",
            f"{area}.{exchange}.{line}",
            f"+49 {drawn.randint(151, 179)} {_digits(drawn, 8)}",
            f"+44 7{_digits(drawn, 3)} {_digits(drawn, 6)}",
            f"+33 6 {pairs}",
        )
    )


def _card(drawn: random.Random) -> str:
    body = (drawn.choice(("4", "51", "54")) + _digits(drawn, 14))[:15]
    total = 0
    for place, digit in enumerate(reversed(body)):
        value = int(digit) * 2 if place % 2 == 0 else int(digit)
        total += value - 9 if value > 9 else value
    number = body + str(-total % 10)
    return drawn.choice((number, " ".join(number[at : at + 4] for at in range(0, 16, 4))))


def _iban(drawn: random.Random) -> str:
    account = _digits(drawn, 18)
    number = f"DE{98 - int(account + '131400') % 97:02}{account}"
    return drawn.choice((number, " ".join(number[at : at + 4] for at in range(0, 22, 4))))


def _email(drawn: random.Random) -> str:
    return f"{drawn.choice(_WORDS)}.{drawn.choice(_THINGS)}{drawn.randint(1, 99)}@{drawn.choice(_HOSTS)}"


def _ip(drawn: random.Random) -> str:
    return ".".join(map(str, (drawn.choice((81, 93, 146, 203)), *(drawn.randint(1, 254) for _ in range(3)))))


def _birth(drawn: random.Random) -> str:
    form = drawn.choice(("{:02}/{:02}/{}", "{}-{}-{}"))
    return form.format(drawn.randint(1, 12), drawn.randint(1, 28), drawn.randint(1948, 2004))


def _stamp(drawn: random.Random) -> str:
    day = f"2026-{drawn.randint(1, 12):02}-{drawn.randint(1, 28):02}"
    return f"{day}T{drawn.randint(0, 23):02}:{drawn.randint(0, 59):02}:07.{_digits(drawn, 3)}Z"


def _uuid(drawn: random.Random) -> str:
    return "-".join("".join(drawn.choice(_HEX) for _ in range(size)) for size in (8, 4, 4, 4, 12))


Maker = Callable[[random.Random], str]
PERSONAL: dict[str, Maker] = {
    "address": _address,
    "phone": _phone,
    "card": _card,
    "iban": _iban,
    "email": _email,
    "ssn": lambda drawn: f"{drawn.randint(101, 665)}-{drawn.randint(11, 98)}-{_digits(drawn, 4)}",
    "ip": _ip,
    "mac": lambda drawn: ":".join(f"{drawn.randint(0, 255):02x}" for _ in range(6)),
    "passport": lambda drawn: f"{drawn.choice('CFGK')}{_digits(drawn, 8)}",
    "license": lambda drawn: f"{drawn.choice('ABDFM')}{_digits(drawn, 7)}",
    "birth": _birth,
    "key": lambda drawn: "sk-" + "".join(drawn.choice(_KEY_LETTERS) for _ in range(40)),
    "password": lambda drawn: drawn.choice(_WORDS).title() + drawn.choice("!#%&") + _digits(drawn, 4),
    "amount": lambda drawn: str(drawn.randint(10, 900)),
    "code": lambda drawn: str(drawn.randint(100, 999)),
    "when": lambda drawn: drawn.choice(_WHENS),
    "thing": lambda drawn: drawn.choice(_THINGS),
}
"""What fills a slot of a sentence; the last four are no personal data."""

TECHNICAL: dict[str, Maker] = {
    "n": lambda drawn: str(drawn.randint(2, 9 * 10 ** drawn.randint(0, 4))),
    "hex": lambda drawn: "".join(drawn.choice(_HEX) for _ in range(8)),
    "semver": lambda drawn: ".".join(str(drawn.randint(0, 40)) for _ in range(drawn.choice((3, 3, 4)))),
    "stamp": _stamp,
    "word": lambda drawn: drawn.choice(_WORDS),
    "Word": lambda drawn: drawn.choice(_WORDS).title(),
    "uuid": _uuid,
    "ean": lambda drawn: _digits(drawn, 13),
}
"""What fills a slot of code, logs and JSON."""
