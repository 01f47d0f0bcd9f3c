"""What a detector of personal data finds: a type, a place in the text, and how sure it is. Never the value itself."""

from __future__ import annotations

from typing import NamedTuple, Protocol

PII_TYPES = (
    "email",
    "phone",
    "ssn",
    "credit_card",
    "name",
    "address",
    "iban",
    "ip_address",
    "mac_address",
    "passport",
    "driver_license",
    "date_of_birth",
    "api_key",
    "private_key",
    "jwt",
    "password",
    "crypto_address",
    "medical_record",
    "account",
)
"""The types of AgentUnit; the first six are the catalog's. An account has no form: only its field gives it away."""


CATALOG_CONFIDENCE = {"email": 0.95, "phone": 0.90, "ssn": 0.98, "credit_card": 0.85, "name": 0.60}
"""How sure a finding of the catalog's table is, whichever rule found it."""


class Finding(NamedTuple):
    """Personal data in a text, by its position there; ``rule`` names the recogniser that found it."""

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
