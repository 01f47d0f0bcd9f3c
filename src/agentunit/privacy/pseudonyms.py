"""Names that stand for values: the same value always gets the same one, and it tells nothing but the type."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections import Counter

PLACEHOLDER = re.compile(r"<[A-Z][A-Z_]*_(?:[0-9]+|[a-p]{12})>")
"""What a pseudonym looks like, numbered or made with a salt."""

TITLES = frozenset(("mr", "mrs", "ms", "miss", "mx", "dr", "prof", "sir", "madam"))
"""Words before a name that are no part of it."""

_NUMBERS = frozenset(("phone", "ssn", "credit_card", "iban", "passport", "driver_license", "medical_record"))
_LETTERS = str.maketrans("0123456789abcdef", "abcdefghijklmnop")
_SALTED_LENGTH = 12


class Pseudonyms:
    """Hands out pseudonyms: numbered in the order of first use or, with a ``salt``, the same in every file.

    Who knows the salt can try values out until one fits, so it is a secret. ``values`` keeps each pseudonym's value as
    it was first written, and ``uses`` how often each type was replaced.

    >>> given = Pseudonyms()
    >>> given.of("name", "Mia Li"), given.of("name", "mia  LI"), given.of("email", "mia@example.com")
    ('<NAME_1>', '<NAME_1>', '<EMAIL_1>')
    """

    def __init__(self, salt: str | None = None) -> None:
        self._salt = None if salt is None else salt.encode()
        self._by_value: dict[tuple[str, str], str] = {}
        self._n_distinct: Counter[str] = Counter()
        self.uses: Counter[str] = Counter()
        self.values: dict[str, str] = {}

    def of(self, type: str, value: str) -> str:
        """The pseudonym of a value, which counts as one use of its type."""
        self.uses[type] += 1
        key = (type, same_value(type, value))
        known = self._by_value.get(key)
        if known is None:
            self._n_distinct[type] += 1
            known = f"<{type.upper()}_{self._mark(key)}>"
            self._by_value[key] = known
            self.values[known] = value
        return known

    def n_distinct(self, type: str) -> int:
        """How many different values of a type were replaced."""
        return self._n_distinct[type]

    def _mark(self, key: tuple[str, str]) -> str:
        if self._salt is None:
            return str(self._n_distinct[key[0]])
        digest = hmac.new(self._salt, "\0".join(key).encode("utf-8", "replace"), hashlib.sha256).hexdigest()
        # Letters only: digits could look like a number of somebody's.
        return digest[:_SALTED_LENGTH].translate(_LETTERS)


def same_value(type: str, value: str) -> str:
    """A value without what may differ between two ways of writing it: case, spacing, separators, titles.

    >>> same_value("phone", "+1 (555) 010-4477") == same_value("phone", "555.010.4477")
    True
    >>> same_value("name", "Dr. Mia Li"), same_value("address", "12 High St.,\\n Leeds")
    ('mia li', '12 high st leeds')
    """
    if type in _NUMBERS:
        plain = "".join(letter for letter in value if letter.isalnum()).casefold()
        # A US number with and without its country code.
        return plain[1:] if type == "phone" and len(plain) == 11 and plain.startswith("1") else plain
    if type in ("name", "address"):
        words = re.findall(r"[^\W_]+", value.casefold())
        named = [word for word in words if word not in TITLES] if type == "name" else words
        return " ".join(named or words) or value
    return value.strip().casefold() if type == "email" else value.strip()
