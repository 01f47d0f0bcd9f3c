"""Recognisers of secrets by what they are assigned to: passwords, and keys and tokens of any make."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agentunit.formulas.identifiers import bits_per_character
from agentunit.privacy.detection.engine import Candidate, Recogniser, Span

_RANDOM_BITS = 3.0
_NOT_SECRET = re.compile(
    rb"(?i)none|null|nil|true|false|undefined|string|str|text|bytes|int|required|optional|hidden|redacted|masked|secret"
    rb"|password|passwd|changeme|example|placeholder|your[-_ ].*|my[-_]?password|x{3,}|[*]+|[.]+|\xe2\x80.*|<.*|[$].*"
    rb"|[{].*|%.*%|\[.*|os[.]environ.*|process[.]env.*|getenv.*|(?:self|args?|config|settings|env|request)[.].*|.*[(].*"
)
_PLACEHOLDER = re.compile(rb"(?i)x{5}|your[-_]|example|placeholder|[.](?:com|org|net|py|js|json|html?|md)\b")
_LETTER = re.compile(rb"[A-Za-z]")
_DIGIT = re.compile(rb"[0-9]")
_CLOSING = b".,;:)]}>*\\\"'`"


def check_random(candidate: Candidate) -> Sequence[Span]:
    """A value that looks drawn by lot: letters and digits, many different ones, no placeholder."""
    written = candidate.written[-256:]
    if not _DIGIT.search(written) or not _LETTER.search(written) or len(set(written)) < 8:
        return ()
    if bits_per_character(written.decode("ascii")) < _RANDOM_BITS or _PLACEHOLDER.search(written):
        return ()
    return candidate.whole()


def check_password(candidate: Candidate) -> Sequence[Span]:
    """An assigned value that is not a type, a placeholder, a variable or a call."""
    kept = candidate.written.rstrip(_CLOSING)
    if len(kept) < 4 or _NOT_SECRET.fullmatch(kept):
        return ()
    return (Span(candidate.start, candidate.start + len(kept), candidate.confidence),)


_QUOTE = r"(?:\\?[\"'\x60])?"
_SET_TO = rf"{_QUOTE}[ \t]{{0,2}}(?::=?|=>?)[ \t]{{0,2}}"
# Visible characters without quotes and backslash; then also without comma and semicolon; then without / and @.
_QUOTED = r"[\x21\x23-\x26\x28-\x5b\x5d-\x5f\x61-\x7e\x80-\xf4]"
_UNQUOTED = r"[\x21\x23-\x26\x28-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x5f\x61-\x7e\x80-\xf4]"
_IN_URL = r"[\x21\x23-\x26\x28-\x2b\x2d\x2e\x30-\x3a\x3c-\x3f\x41-\x5b\x5d-\x5f\x61-\x7e\x80-\xf4]"
# Without quotes, a plain word is none: "the password is wrong" gives nothing away.
_NO_WORD = (
    r"[A-Za-z.()\[\]{}<>\x80-\xf4-]{0,40}(?:[0-9]|[a-z][A-Z]|[!#$%&*+/:=?@^_|~]"
    rf"{_UNQUOTED}){_UNQUOTED}{{0,100}}"
)
_PASSWORD = "(?i:pass(?:word|wd|phrase|code)?|pwd)"
_SECRET = (
    "(?i:api[_ -]?key|access[_-]?key(?:[_-]?id)?|secret(?:[_-]?(?:access[_-]?)?key)?|client[_-]?secret"
    "|(?:access|auth|refresh|bearer|session|id|api)[_-]?token|token|authorization|account[_-]?key"
    "|(?:encryption|signing)[_-]?key)"
)

ASSIGNMENTS = (
    Recogniser(
        "api_key",
        "bearer",
        r"\b(?i:bearer|basic)[ \t]{1,2}(?P<value>[A-Za-z0-9._~+/-]{16,}=*)",
        0.85,
        check_random,
        longest_bytes=8_192,
    ),
    Recogniser(
        "api_key",
        "assigned_key",
        rf"(?:\b|_){_SECRET}{_SET_TO}{_QUOTE}(?P<value>[A-Za-z0-9._~+/-]{{16,}}=*)",
        0.8,
        check_random,
        longest_bytes=8_192,
    ),
    Recogniser(
        "password",
        "password_in_url",
        rf"\b[a-z][a-z0-9+.-]{{1,20}}://[A-Za-z0-9._%+-]{{0,64}}:(?P<value>{_IN_URL}{{1,100}})@[A-Za-z0-9\[]",
        0.9,
        check_password,
    ),
    Recogniser(
        "password",
        "password_in_quotes",
        rf"(?:\b|_){_PASSWORD}{_SET_TO}\\?[\"'\x60](?P<value>(?:{_QUOTED}| ){{4,100}})\\?[\"'\x60]",
        0.9,
        check_password,
    ),
    Recogniser(
        "password",
        "password_assigned",
        rf"(?:\b|_){_PASSWORD}[*]{{0,2}}(?:[ \t]{{0,2}}=[ \t]{{0,2}}|:[*]{{0,2}}[ \t]{{0,2}})"
        rf"(?P<value>{_NO_WORD})",
        0.8,
        check_password,
    ),
    Recogniser(
        "password",
        "password_said",
        rf"\b{_PASSWORD} (?i:is|was|to)(?: now)?:?[ \t]{{1,2}}{_QUOTE}(?P<value>{_NO_WORD})",
        0.8,
        check_password,
    ),
)
