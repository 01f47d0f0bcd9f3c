"""What a value looks like that only a field's name calls a secret: drawn by lot, or written by somebody to be read."""

from __future__ import annotations

import re

from agentunit.privacy.detection.gazetteer import kinds_of

_SCHEME = re.compile(
    r"(?i)(?:bearer|basic|token|digest|apikey|api-key|negotiate|key|jwt|oauth|hmac|aws4-hmac-sha256)[ :]\s*"
)
_PLACEHOLDER = re.compile(
    r"(?i)x{4,}|[*•.]{3,}|your|example|placeholder|changeme|dummy|<[^>]*>|\{.*\}|\[.*\]|\$|%\(|%s|\.\.\.|[.](?:com|org|net|py)\b"
)
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_INNER_CAPITAL = re.compile("[a-z][A-Z]")
_VOWEL = re.compile("[aeiouyAEIOUY]")
_SHORTEST, _SHORTEST_UNKNOWN, _SHORTEST_SURE, _SHORTEST_DIGITS = 8, 10, 16, 10
_SHORTEST_WORD = 3
_MOST_OF_IT = 0.6


def in_words(value: str) -> bool:
    """Whether letters are plain words run together, as in the name of a class or a variable.

    >>> in_words("AccessTokenResponse"), in_words("qWmZrTlKpXvBnHsD")
    (True, False)
    """
    parts = _PART.findall(value)
    known = sum(len(part) for part in parts if len(part) >= _SHORTEST_WORD and kinds_of(part))
    return known >= _MOST_OF_IT * len(value)


def is_secret(value: str) -> bool:
    """Whether the value of a field such as ``token`` or ``authorization`` is one: no word, status or piece of a text.

    >>> [is_secret(value) for value in ("Bearer abcdefgh", "qwrtplkj", "approved", " the", "sekretlymadeup", "50256")]
    [True, True, False, False, True, False]
    """
    scheme = _SCHEME.match(value)
    kept = value[scheme.end() :] if scheme else value
    if kept != kept.strip() or " " in kept or "\n" in kept or _PLACEHOLDER.search(kept):
        return False
    if scheme:
        return len(kept) >= _SHORTEST and (not kept.isalpha() or not kinds_of(kept))
    if len(kept) < _SHORTEST or not any(letter.isalnum() for letter in kept):
        return False
    letters = sum(letter.isalpha() for letter in kept)
    if not letters:
        return len(kept) >= _SHORTEST_DIGITS
    if any(letter.isdigit() for letter in kept):
        return True
    if not kept.isascii() or not kept.replace("-", "").replace("_", "").replace(".", "").isalpha():
        return len(kept) >= _SHORTEST_SURE
    if kinds_of(kept) or (in_words(kept) and len(kept) < 2 * _SHORTEST_SURE):
        return False
    if len(kept) >= _SHORTEST_SURE or _INNER_CAPITAL.search(kept):
        return True
    is_unspoken = 5 * len(_VOWEL.findall(kept)) < letters
    return is_unspoken or (len(kept) >= _SHORTEST_UNKNOWN and kept.islower())
