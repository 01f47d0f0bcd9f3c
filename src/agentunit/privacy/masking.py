"""Personal data as it may be shown: enough to find it again in the text, never enough to know it."""

from __future__ import annotations

HIDDEN = "***"
_LAST_TWO = frozenset({"phone", "ssn", "credit_card", "iban", "passport", "driver_license", "medical_record"})
_LONGEST_SHOWN_ENDING = 3


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
        return f"{_initial(local)}@{HIDDEN}{shown}"
    if type == "name":
        return " ".join(_initial(word) for word in value.split()[:4]) or HIDDEN
    if type in _LAST_TWO:
        plain = [letter for letter in value if letter.isalnum()]
        return HIDDEN + "".join(plain[-2:]) if len(plain) >= 8 else HIDDEN
    return HIDDEN


def _initial(word: str) -> str:
    """The first letter of a word that is longer than what is shown of it."""
    return f"{word[0]}{HIDDEN}" if len(word) > 2 and word[0].isalpha() else HIDDEN
