"""Texts to measure with, made up by seeded code: ordinary ones, and ones that look like personal data all over."""

from __future__ import annotations

import random
import string
from collections.abc import Callable

SEED = 5
_FIRST = ("Maria", "James", "Aisha", "Liam", "Sofia", "Noah", "Yuki", "Omar", "Elena", "Lucas", "Priya", "Hannah")
_LAST = ("Garcia", "Smith", "Khan", "Murphy", "Rossi", "Tanaka", "Haddad", "Novak", "Silva", "Patel", "Fischer")
_PLACES = ("New York", "Leeds", "the warehouse", "Hamburg", "our Dublin office", "the second floor", "San Diego")
_THINGS = ("refund", "delivery", "invoice", "blue jacket", "coffee machine", "reservation", "headphones", "order")
_OPENINGS = ("I checked the", "We will send the", "Thank you for asking about the", "According to our system, the")
_VERBS = ("was shipped to", "is waiting in", "has been returned from", "will arrive in", "was cancelled by")
_TAILS = (
    "before Monday morning, and nothing else has to be done",
    "because the payment of $1,249.00 went through on 2024-05-12",
    "so please allow 3 to 5 working days",
    "after version 2.4.1 of the app was released",
    "although the customer had asked for order 48213 instead",
    "while the team in the office looked at the reports of last year",
)


def sentence(rng: random.Random) -> str:
    """A sentence of about twenty words, with a person in one of four."""
    who = f" for {rng.choice(_FIRST)} {rng.choice(_LAST)}" if rng.random() < 0.25 else ""
    parts = (rng.choice(_OPENINGS), rng.choice(_THINGS) + who, rng.choice(_VERBS), rng.choice(_PLACES))
    return " ".join(parts) + ", " + rng.choice(_TAILS) + "."


def prose(n_bytes: int, seed: int = SEED) -> str:
    """Ordinary prose of an assistant: no numbers of persons, some names."""
    rng = random.Random(seed)
    pieces: list[str] = []
    n_written = 0
    while n_written < n_bytes:
        pieces.append(sentence(rng))
        n_written += len(pieces[-1]) + 1
    return " ".join(pieces)[:n_bytes]


def mails(n_bytes: int, seed: int = SEED) -> list[str]:
    """Documents of about a kilobyte, each with an address, a phone number, a card and the like at its end."""
    rng = random.Random(seed)
    documents: list[str] = []
    n_written = 0
    while n_written < n_bytes:
        first, last = rng.choice(_FIRST), rng.choice(_LAST)
        body = " ".join(sentence(rng) for _ in range(7))
        number = f"{rng.randrange(200, 999)}-{rng.randrange(200, 999)}-{rng.randrange(1000, 9999)}"
        closing = (
            f"Regards,\n{first} {last}\n{rng.randrange(1, 999)} Cedar Avenue\nPhone: {number}\n"
            f"{first.lower()}.{last.lower()}@example.com\n"
            f"Paid with 4111 1111 1111 1111 from 93.184.216.{rng.randrange(256)}"
        )
        documents.append(f"{body}\n\n{closing}")
        n_written += len(documents[-1])
    return documents


def _filled(unit: str, n_bytes: int) -> str:
    return (unit * (n_bytes // len(unit.encode()) + 1))[:n_bytes]


def _drawn(alphabet: str, seed: int = SEED) -> Callable[[int], str]:
    def text(n_bytes: int) -> str:
        return _filled("".join(random.Random(seed).choices(alphabet, k=100_000)), n_bytes)

    return text


def _repeated(unit: str) -> Callable[[int], str]:
    return lambda n_bytes: _filled(unit, n_bytes)


def _groups(n_digits: int, between: str) -> Callable[[int], str]:
    def text(n_bytes: int) -> str:
        digits = "".join(random.Random(SEED).choices(string.digits, k=100_000 - 100_000 % n_digits))
        return _filled(
            between.join(digits[at : at + n_digits] for at in range(0, len(digits), n_digits)) + between, n_bytes
        )

    return text


def _capitalised(n_bytes: int) -> str:
    rng = random.Random(SEED)
    words = ("Alpha", "Monday", "Morning", "New", "York", "Gamma", "Street", "Product", "Launch", "Global", "Update")
    return _filled(" ".join(rng.choices(words, k=10_000)) + " ", n_bytes)


ODD_TEXTS: dict[str, Callable[[int], str]] = {
    "digits": _drawn(string.digits),
    "dots": _repeated("."),
    "@": _repeated("@"),
    "a@a@…": _repeated("a@"),
    "a@a.a@a.…": _repeated("a@a."),
    "1.1.1.…": _repeated("1."),
    "1-1-1-…": _repeated("1-"),
    "+1+1…": _repeated("+1"),
    "(1)(1)…": _repeated("(1)"),
    "phone 12-12-…": _repeated("phone 12-12-12-"),
    "token=aaaa…": _repeated("token=aaaaaaaaaaaaaaaa "),
    "sk-abc…": _repeated("sk-abcabcabcabcabcabcabcabc "),
    "almost crypto addresses": _repeated("1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN3 "),
    "GB12 GB12 …": _repeated("GB12 "),
    "nested brackets": _repeated("([{<" * 50 + ">}])" * 50),
    "nested separators": _repeated("[({<\"'|;,:-_=+.*/\\>})]"),
    "digits and spaces": _drawn(string.digits * 4 + " -"),
    "digits and separators": _drawn(string.digits + " -.()/"),
    "groups of 4 digits": _groups(4, " "),
    "groups of 3 digits with dashes": _groups(3, "-"),
    "numbers of 16 digits": _groups(16, " "),
    "01 01 01 …": _repeated("01 "),
    "almost social security numbers": _repeated("666 12 3456 "),
    "almost accounts": _repeated("GB12ABCD12345678901234 "),
    "password: password: …": _repeated("password: "),
    "hexadecimal": _drawn("0123456789abcdef"),
    "hexadecimal and colons": _drawn("0123456789abcdef:"),
    "aa:aa:…": _repeated("aa:"),
    "base64": _drawn(string.ascii_letters + string.digits + "+/"),
    "base64 in lines": _repeated("".join(random.Random(SEED).choices(string.ascii_letters, k=76)) + "\n"),
    "capitalised pairs": _capitalised,
    "one word in capitals": _repeated("A" * 30 + " "),
    "phone phone …": _repeated("phone "),
    "eyJeyJ…": _repeated("eyJ"),
    "dashes": _repeated("-"),
    "é": _repeated("é"),
    "line ends": _repeated("\n"),
}
"""Ways to make a text of so many bytes in which a careless pattern starts over at every character."""
