"""Recognizers of secrets: keys and tokens with a known form, and what is assigned to a password or a key."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Sequence

from agentunit.formulas.identifiers import bits_per_character
from agentunit.privacy.detection.engine import BETWEEN, Candidate, Recognizer, Span

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
    Recognizer(
        "api_key",
        "bearer",
        r"\b(?i:bearer|basic)[ \t]{1,2}(?P<value>[A-Za-z0-9._~+/-]{16,}=*)",
        0.85,
        check_random,
        longest_bytes=8_192,
    ),
    Recognizer(
        "api_key",
        "assigned_key",
        rf"(?:\b|_){_SECRET}{_SET_TO}{_QUOTE}(?P<value>[A-Za-z0-9._~+/-]{{16,}}=*)",
        0.8,
        check_random,
        longest_bytes=8_192,
    ),
    Recognizer(
        "password",
        "password_in_url",
        rf"\b[a-z][a-z0-9+.-]{{1,20}}://[A-Za-z0-9._%+-]{{0,64}}:(?P<value>{_IN_URL}{{1,100}})@[A-Za-z0-9\[]",
        0.9,
        check_password,
    ),
    Recognizer(
        "password",
        "password_in_quotes",
        rf"(?:\b|_){_PASSWORD}{_SET_TO}\\?[\"'\x60](?P<value>(?:{_QUOTED}| ){{4,100}})\\?[\"'\x60]",
        0.9,
        check_password,
    ),
    Recognizer(
        "password",
        "password_assigned",
        rf"(?:\b|_){_PASSWORD}[*]{{0,2}}(?:[ \t]{{0,2}}=[ \t]{{0,2}}|:[*]{{0,2}}[ \t]{{0,2}})"
        rf"(?P<value>{_NO_WORD})",
        0.8,
        check_password,
    ),
    Recognizer(
        "password",
        "password_said",
        rf"\b{_PASSWORD} (?i:is|was|to)(?: now)?:?[ \t]{{1,2}}{_QUOTE}(?P<value>{_NO_WORD})",
        0.8,
        check_password,
    ),
)


# A PEM file with a key of 16,384 bits has about 13,000 characters.
_MOST_KEY_BYTES = 16_384
_MOST_HEADER_CHARACTERS = 2_048
_KEY_BODY = re.compile(rb"(?:[A-Za-z0-9+/=]{16,}|\\[nr]|[ \t\r\n])*")
_KEY_PLACEHOLDER = re.compile(rb"(?i)x{6}|your|example|abcdefghijklmnop")
_END_MARK = re.compile(rb"-----END [A-Z ]{0,40}-----")


def check_jwt(candidate: Candidate) -> Sequence[Span]:
    """A token whose first part is the Base64 of a JSON object."""
    header = candidate.written.partition(b".")[0]
    if len(header) > _MOST_HEADER_CHARACTERS:
        return ()
    try:
        decoded = json.loads(base64.urlsafe_b64decode(header + b"=" * (-len(header) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        return ()
    return candidate.whole() if isinstance(decoded, dict) else ()


def check_private_key(candidate: Candidate) -> Sequence[Span]:
    """The key from its first mark to its last, or as far as it goes where the last is cut off."""
    buffer, end = candidate.buffer, candidate.end
    next_mark = buffer.find(b"-----", end, end + _MOST_KEY_BYTES)
    closing = _END_MARK.match(buffer, next_mark) if next_mark >= 0 else None
    if closing is not None and BETWEEN not in buffer[end:next_mark]:
        return [Span(candidate.start, closing.end(), candidate.confidence)]
    body = _KEY_BODY.match(buffer, end, end + _MOST_KEY_BYTES)
    cut = body.end() if body is not None else end
    return [Span(candidate.start, end + len(buffer[end:cut].rstrip()), candidate.confidence)]


def check_known(candidate: Candidate) -> Sequence[Span]:
    """A key with a known beginning, unless it is written out as a placeholder."""
    return () if _KEY_PLACEHOLDER.search(candidate.written[:256]) else candidate.whole()


def _key(rule: str, pattern: str, confidence: float = 0.95) -> Recognizer:
    return Recognizer("api_key", rule, pattern, confidence, check_known)


_W = "[A-Za-z0-9_-]"

CREDENTIALS = (
    Recognizer(
        "private_key",
        "pem",
        r"-----BEGIN (?:[A-Z0-9]{2,10} ){0,3}PRIVATE KEY(?: BLOCK)?-----",
        0.99,
        check_private_key,
    ),
    Recognizer("jwt", "jwt", rf"\beyJ{_W}{{8,}}\.{_W}{{8,}}(?:\.{_W}*)?", 0.98, check_jwt, _MOST_KEY_BYTES),
    Recognizer("api_key", "aws", r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b", 0.95),
    _key("google", rf"\bAIza{_W}{{35}}|\bya29\.{_W}{{20,}}|\bGOCSPX-{_W}{{20,}}"),
    _key("github", r"\bgh[pousr]_[A-Za-z0-9]{36,}|\bgithub_pat_[A-Za-z0-9_]{22,}"),
    _key("gitlab", rf"\bgl(?:pat|dt|rt|ptt|cbt|soat|ft|imt|agent|oas)-{_W}{{20,}}"),
    _key("slack", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\bxapp-[A-Za-z0-9-]{10,}"),
    _key("slack_webhook", r"https://hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9_/-]{20,}"),
    _key("stripe", r"\b(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}|\bwhsec_[A-Za-z0-9+/=]{24,}"),
    # OpenAI, Anthropic, OpenRouter, DeepSeek and others share the beginning.
    Recognizer("api_key", "language_model", rf"\bsk-{_W}{{20,}}", 0.95, check_random),
    _key(
        "model_host",
        r"\bhf_[A-Za-z0-9]{30,}|\bgsk_[A-Za-z0-9]{40,}|\bxai-[A-Za-z0-9]{60,}|\br8_[A-Za-z0-9]{37}"
        r"|\bpplx-[A-Za-z0-9]{40,}|\blsv2_[a-z]{2}_[A-Za-z0-9_]{30,}|\bnvapi-[A-Za-z0-9_-]{40,}",
    ),
    _key(
        "package_registry",
        rf"\bnpm_[A-Za-z0-9]{{36}}\b|\bpypi-{_W}{{50,}}|\brubygems_[0-9a-f]{{48}}\b|\bdckr_pat_{_W}{{20,}}",
    ),
    _key(
        "mail_and_messages",
        rf"\bSG\.{_W}{{16,32}}\.{_W}{{16,64}}|\b(?:AC|SK)[0-9a-f]{{32}}\b|\bkey-[0-9a-f]{{32}}\b"
        rf"|\b[0-9]{{8,10}}:AA{_W}{{33}}\b|\b[0-9a-f]{{32}}-us[0-9]{{1,2}}\b",
        0.9,
    ),
    _key(
        "cloud",
        rf"\bdop_v1_[0-9a-f]{{64}}\b|\bdapi[0-9a-f]{{32}}\b|\bhvs\.{_W}{{24,}}|\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{{32}}\b"
        rf"|\bAGE-SECRET-KEY-1[A-Z0-9]{{58}}\b|\blin_api_[A-Za-z0-9]{{40}}\b|\bntn_[A-Za-z0-9]{{40,}}"
        r"|\b[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}",
    ),
    Recognizer("api_key", "azure_account", r"\bAccountKey=(?P<value>[A-Za-z0-9+/]{86}==)", 0.98),
)
