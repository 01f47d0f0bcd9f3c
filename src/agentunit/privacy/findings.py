"""What a detector of personal data finds: a type, a place in the text, and how sure it is; and its value, masked."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

PII_TYPES = (
    "email", "phone", "ssn", "credit_card", "name", "address", "iban", "ip_address", "mac_address", "passport",
    "driver_license", "national_id", "date_of_birth", "api_key", "private_key", "jwt", "password", "crypto_address",
    "medical_record", "account",
)  # fmt: skip
"""The types of AgentUnit; the first six are the catalog's. An account has no form: only its field gives it away."""

NUMBER_TYPES = frozenset(
    ("phone", "ssn", "credit_card", "iban", "passport", "driver_license", "medical_record", "national_id")
)
"""Types whose values are numbers, which separators do not change."""

CATALOG_CONFIDENCE = {"email": 0.95, "phone": 0.90, "ssn": 0.98, "credit_card": 0.85, "name": 0.60}
"""How sure a finding of the catalog's table is, whichever rule found it."""

_HIDDEN = "***"
_LONGEST_SHOWN_ENDING = 3


class Finding(NamedTuple):
    """Personal data in a text, by its position there; ``rule`` names the recognizer that found it."""

    type: str
    start: int
    end: int
    confidence: float
    rule: str = ""


class Detector(Protocol):
    """Anything that finds personal data. ``find`` gives, for each text, its findings in order, none overlapping."""

    name: str

    def find(self, texts: list[str]) -> list[list[Finding]]:
        """The findings of each text."""
        ...


def check_detector(value: Any, owner: str) -> None:
    """Refuse what cannot be asked for findings; a text has a ``find`` too, but of another kind."""
    if isinstance(value, (str, bytes, type)) or not callable(getattr(value, "find", None)):
        raise ValueError(f"{owner}: detector must be an object with a 'find' method; received {value!r:.80}")


def masked(type: str, value: str) -> str:
    """A value of a type with almost all of it hidden.

    >>> masked("email", "jane.doe@example.com"), masked("credit_card", "4111 1111 1111 1111")
    ('j***@***.com', '***11')
    >>> masked("name", "Jane van Doe"), masked("api_key", "sk-abcdef0123456789")
    ('J*** v*** D***', '***')
    """
    if type == "email":
        local, _, domain = value.partition("@")
        ending = domain.rpartition(".")[2]
        is_short = 0 < len(ending) <= _LONGEST_SHOWN_ENDING and ending.isalpha() and ending != domain
        shown = f".{ending}" if is_short else ""
        return f"{_initial(local)}@{_HIDDEN}{shown}"
    if type == "name":
        return " ".join(_initial(word) for word in value.split()[:4]) or _HIDDEN
    if type in NUMBER_TYPES:
        plain = [letter for letter in value if letter.isalnum()]
        return _HIDDEN + "".join(plain[-2:]) if len(plain) >= 8 else _HIDDEN
    return _HIDDEN


def _initial(word: str) -> str:
    """The first letter of a word that is longer than what is shown of it."""
    return f"{word[0]}{_HIDDEN}" if len(word) > 2 and word[0].isalpha() else _HIDDEN
