"""Recognizers of secrets: keys and tokens with a known form, and what is assigned to a password or a key."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Sequence

from agentunit.formulas.checksums import bits_per_character
from agentunit.privacy.detection.engine import BETWEEN, Accepted, Candidate, Recognizer
from agentunit.privacy.detection.secret_forms import in_words

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


def check_random(candidate: Candidate) -> Sequence[Accepted]:
    """A value that looks drawn by lot: many different letters and digits, or letters that make no words."""
    written = candidate.written[-256:]
    if not _LETTER.search(written) or len(set(written)) < 8:
        return ()
    if not _DIGIT.search(written) and (not written.isalpha() or in_words(written.decode("ascii"))):
        return ()
    if bits_per_character(written.decode("ascii")) < _RANDOM_BITS or _PLACEHOLDER.search(written):
        return ()
    return candidate.whole()


def check_password(candidate: Candidate) -> Sequence[Accepted]:
    """An assigned value that is not a type, a placeholder, a variable or a call."""
    kept = candidate.written.rstrip(_CLOSING)
    if len(kept) < 4 or _NOT_SECRET.fullmatch(kept):
        return ()
    return (Accepted(candidate.start, candidate.start + len(kept), candidate.confidence),)


def check_password_word(candidate: Candidate) -> Sequence[Accepted]:
    """A plain word as a password, unless it says something about the password: "is wrong", "was changed"."""
    written, after = candidate.written.lower(), candidate.after(5)
    if after and after[:1] not in b".!,;\n\"'`" and after != b" and ":
        return ()
    if written in _SAID_OF_PASSWORDS or written.endswith((b"ed", b"ing", b"ly", b"able", b"ible", b"ive", b"ful")):
        return ()
    return check_password(candidate)


def check_password_beside(candidate: Candidate) -> Sequence[Accepted]:
    """What stands right beside the word: letters with digits or signs, as no sentence goes on."""
    written = candidate.written.rstrip(_CLOSING)
    if not _LETTER.search(written) or not (_DIGIT.search(written) or _SIGN.search(written)) or len(written) < 6:
        return ()
    return check_password(candidate)


def check_pin(candidate: Candidate) -> Sequence[Accepted]:
    """Four to eight digits that are no year of a date, and no postal code."""
    after = candidate.after(2)
    return () if after[:1] in (b"-", b"/", b".") and after[1:].isdigit() else candidate.whole()


_SIGN = re.compile(rb"[!#$%&*+=?@^|~]")
_SAID_OF_PASSWORDS = frozenset(
    b"""
    wrong incorrect correct right invalid valid required optional missing empty weak strong secure safe unsafe stored
    hidden visible encrypted hashed plain short longer shorter least never always still already there where what which
    being either neither their yours theirs something anything nothing unknown known different the same case your
    mandatory needed sensitive unique random default blank null none true false here below above ready private public
    secret shared about after before between only just also again because when until while since enough better worse
    continue access log login proceed avoid protect ensure prevent comply match allow important
    necessary possible impossible available unavailable wrongly outdated stale fine good great okay okay
    """.split()
)

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
_PASSWORD = (
    "(?i:pass(?:word|wd|phrase|code)?|pwd|passwort|kennwort|contrase\xc3\xb1a|mot de passe|senha|wachtwoord|parola)"
)
# What joins a word for a password to other words in the name of a field: userPassword, PGPASSWORD, db_password.
_PASSWORD_FIELD = rf"(?:(?:\b|_|\b[A-Z]{{2,12}}){_PASSWORD}|[a-z](?:Password|Passwd|Passphrase|Passcode|Pwd))"
_FOR_WHAT = r"(?: (?i:for|to|of|on|at) (?:[A-Za-z0-9'.@_-]{1,24} ){1,5}?| )"
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
        rf"{_PASSWORD_FIELD}{_SET_TO}\\?[\"'\x60](?P<value>(?:{_QUOTED}| ){{4,100}})\\?[\"'\x60]",
        0.9,
        check_password,
    ),
    Recognizer(
        "password",
        "password_assigned",
        rf"{_PASSWORD_FIELD}[*]{{0,2}}(?:[ \t]{{0,2}}=[ \t]{{0,2}}|:[*]{{0,2}}[ \t]{{0,2}}| - )"
        rf"(?P<value>{_NO_WORD})",
        0.8,
        check_password,
    ),
    Recognizer(
        "password",
        "password_said",
        rf"\b{_PASSWORD}{_FOR_WHAT}(?i:is|was|to|as|will be|should be"
        rf"|ist|lautet|est|es|\xc3\xa9)(?i: now| set to| still)?:?"
        rf"[ \t]{{1,2}}{_QUOTE}(?P<value>{_NO_WORD})",
        0.8,
        check_password,
    ),
    Recognizer(
        "password",
        "password_word",
        rf"\b{_PASSWORD}{_FOR_WHAT}(?i:is|was|changed to|set to|reset to)(?i: now)?:?[ \t]{{1,2}}{_QUOTE}"
        r"(?P<value>[a-zA-Z]{5,32})",
        0.6,
        check_password_word,
    ),
    Recognizer(
        "password",
        "password_changed",
        rf"\b(?i:changed|updated|set|reset) (?i:my|the|his|her|their|your|its) {_PASSWORD} to {_QUOTE}"
        r"(?P<value>[a-zA-Z]{5,32})",
        0.6,
        check_password_word,
    ),
    Recognizer(
        "password",
        "password_beside",
        rf"\b(?i:password|passwd|passphrase|passcode|pwd)[ \t]{{1,2}}{_QUOTE}(?P<value>{_NO_WORD})",
        0.7,
        check_password_beside,
    ),
    Recognizer(
        "password",
        "password_used",
        rf"\b(?i:use|using|try|enter|type|with)[ \t]{_QUOTE}"
        rf"(?P<value>{_NO_WORD}){_QUOTE} (?i:as|for) (?i:the|your|my|a|its)"
        rf"(?: (?i:temporary|new|initial|default|admin|wifi|login))? {_PASSWORD}",
        0.75,
        check_password,
    ),
    Recognizer(
        "password",
        "pin_said",
        r"\b(?i:pin)(?: (?i:code|number))?(?: (?i:for|of) (?:[A-Za-z']{1,16} ){1,4}?| |:|=)(?i:is|was)?[ :\t]{0,2}"
        r"(?P<value>[0-9]{4,8})\b",
        0.8,
        check_pin,
    ),
)


# A PEM file with a key of 16,384 bits has about 13,000 characters.
_MOST_KEY_BYTES = 16_384
_MOST_HEADER_CHARACTERS = 2_048
_KEY_BODY = re.compile(rb"(?:[A-Za-z0-9+/=]{16,}|\\[nr]|[ \t\r\n])*")
_KEY_PLACEHOLDER = re.compile(rb"(?i)x{6}|your|example|abcdefghijklmnop")
_END_MARK = re.compile(rb"-----END [A-Z ]{0,40}-----")


def check_jwt(candidate: Candidate) -> Sequence[Accepted]:
    """A token whose first part is the Base64 of a JSON object."""
    header = candidate.written.partition(b".")[0]
    if len(header) > _MOST_HEADER_CHARACTERS:
        return ()
    try:
        decoded = json.loads(base64.urlsafe_b64decode(header + b"=" * (-len(header) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        return ()
    return candidate.whole() if isinstance(decoded, dict) else ()


def check_private_key(candidate: Candidate) -> Sequence[Accepted]:
    """The key from its first mark to its last, or as far as it goes where the last is cut off."""
    buffer, end = candidate.buffer, candidate.end
    next_mark = buffer.find(b"-----", end, end + _MOST_KEY_BYTES)
    closing = _END_MARK.match(buffer, next_mark) if next_mark >= 0 else None
    if closing is not None and BETWEEN not in buffer[end:next_mark]:
        return [Accepted(candidate.start, closing.end(), candidate.confidence)]
    body = _KEY_BODY.match(buffer, end, end + _MOST_KEY_BYTES)
    cut = body.end() if body is not None else end
    return [Accepted(candidate.start, end + len(buffer[end:cut].rstrip()), candidate.confidence)]


def check_known(candidate: Candidate) -> Sequence[Accepted]:
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
    _key(
        "work_tools",
        rf"\bATATT3x{_W}{{40,}}=?|\bATCTT3x{_W}{{40,}}|\bATBB[A-Za-z0-9]{{20,}}|\bfig[dou]_{_W}{{20,}}"
        rf"|\bsecret_[A-Za-z0-9]{{40,}}|\bPMAK-[0-9a-f]{{24}}-[0-9a-f]{{34}}|\bpat[A-Za-z0-9]{{14}}\.[0-9a-f]{{64}}"
        rf"|\bpat-(?:na|eu)[0-9]-[0-9a-f-]{{36}}|\bCFPAT-{_W}{{40,}}|\btfp_{_W}{{20,}}|\bxkeysib-[0-9a-f]{{60,}}-[A-Za-z0-9]{{16}}"
        rf"|\bdp\.(?:pt|st|sa|ct|scim|audit)\.{_W}{{16,}}(?:\.{_W}{{16,}})?|\bops_eyJ{_W}{{40,}}",
    ),
    _key(
        "observability",
        rf"\bglsa_[A-Za-z0-9]{{20,}}_[0-9a-f]{{8}}\b|\bglc_[A-Za-z0-9+/=]{{32,}}|\bNRAK-[A-Z0-9]{{20,}}|\bNRII-{_W}{{20,}}"
        rf"|\bNRJS-[0-9a-f]{{19}}\b|\bNRRA-[0-9a-f]{{42}}\b|\bsntry[su]_[A-Za-z0-9_=+/-]{{40,}}|\bphc_[A-Za-z0-9]{{32,}}"
        rf"|\bphx_[A-Za-z0-9]{{32,}}|\bddp_[A-Za-z0-9]{{30,}}|\bdt0c01\.[A-Z0-9]{{24}}\.[A-Z0-9]{{64}}",
    ),
    _key(
        "databases",
        rf"\bpcsk_{_W}{{30,}}|\bsb[pr]_[0-9a-f]{{40}}\b|\bsb_(?:secret|publishable)_{_W}{{20,}}|\bpscale_(?:tkn|pw|oauth)_{_W}{{30,}}"
        rf"|\bnapi_[A-Za-z0-9]{{40,}}|\bHRKU-{_W}{{30,}}|\bnfp_[A-Za-z0-9]{{36,}}|\btskey-[a-z]+-{_W}{{20,}}|\bpul-[0-9a-f]{{40}}\b"
        rf"|\bvercel_[A-Za-z0-9_]{{20,}}|\bfo1_{_W}{{40,}}|\bCCIPAT_[A-Za-z0-9_]{{40,}}|\bbkua_[0-9a-f]{{40}}\b"
        rf"|\bLTAI[A-Za-z0-9]{{16,24}}\b|\bAKID[A-Za-z0-9]{{32}}\b|\batlasv1\.{_W}{{40,}}|\b[A-Za-z0-9]{{14}}\.atlasv1\.{_W}{{40,}}",
    ),
    _key(
        "payments",
        rf"\bsq0(?:atp|csp|idp)-{_W}{{22,}}|\bEAAA[A-Za-z0-9+/=_-]{{56,}}|\bEZ[AT]K[A-Za-z0-9]{{54}}\b|\bshippo_(?:live|test)_[0-9a-f]{{40}}\b"
        rf"|\baccess-(?:sandbox|development|production)-[0-9a-f-]{{36}}\b|\baccess_token\$(?:production|sandbox)\$[0-9a-z]{{16}}\$[0-9a-f]{{32}}"
        rf"|\brzp_(?:live|test)_[A-Za-z0-9]{{14}}\b|\bFLWSECK(?:_TEST)?-[0-9a-f]{{32}}-X\b|\bduffel_(?:live|test)_{_W}{{40,}}",
    ),
    _key(
        "chat",
        rf"\b[MNO][A-Za-z0-9_-]{{23,27}}\.[A-Za-z0-9_-]{{6}}\.[A-Za-z0-9_-]{{27,45}}|\bmfa\.{_W}{{80,}}"
        r"|https://(?:canary\.|ptb\.)?discord(?:app)?\.com/api/webhooks/[0-9]{15,20}/[A-Za-z0-9_-]{50,}"
        r"|https://[a-z0-9.-]{1,60}\.webhook\.office\.com/webhookb2/[A-Za-z0-9@/-]{60,}"
        rf"|\bsl\.[A-Za-z0-9_-]{{100,}}|\bEAA[A-Z][A-Za-z0-9]{{90,}}|\b[ps]k\.eyJ{_W}{{40,}}\.{_W}{{20,}}|\b1//0{_W}{{30,}}",
    ),
    Recognizer("api_key", "azure_account", r"\bAccountKey=(?P<value>[A-Za-z0-9+/]{86}==)", 0.98),
)
