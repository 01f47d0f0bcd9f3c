"""Email addresses: an @ with a domain after it, and what an address can have before it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agentunit.privacy.detection.engine import Candidate, Recogniser, Span
from agentunit.privacy.findings import CATALOG_CONFIDENCE

_LOCAL = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.!#$%&'*+/=?^_`{|}~-" + bytes(
    range(0x80, 0xF5)
)
_MOST_LOCAL_BYTES = 64
_APOSTROPHE_IN_NAME = re.compile(rb"[A-Za-z0-9._%+\x80-\xf4-]*[A-Za-z\x80-\xf4]'[A-Za-z\x80-\xf4][^']*")
_LETTER = r"[A-Za-z0-9\x80-\xf4]"


def check_email(candidate: Candidate) -> Sequence[Span]:
    """The domain of a match, with the local part before its @."""
    window = candidate.before(_MOST_LOCAL_BYTES + 2)
    if window.endswith(b'"'):
        quoted = _quoted_local(window)
        return [Span(candidate.start - len(quoted), candidate.end, candidate.confidence)] if quoted else ()
    local = window[len(window.rstrip(_LOCAL)) :]
    if len(local) > _MOST_LOCAL_BYTES:
        return ()
    # Quotes, brackets and paths around an address are allowed in it by the letter of RFC 5322, and never meant.
    kept = local.lstrip(b".!#$%&'*+/=?^`{|}~-")
    for mark in (b"=", b"/", b"|", b"`", b"{", b"}", b"&", b"?", b"!", b"#"):
        kept = kept.rpartition(mark)[2]
    if candidate.after(1) == b"'" or not _APOSTROPHE_IN_NAME.fullmatch(kept):
        kept = kept.rpartition(b"'")[2]
    kept = kept.lstrip(b".")
    if not kept or kept.endswith(b".") or b".." in kept:
        return ()
    start = candidate.start - len(kept)
    if _password_of_url(candidate, start):
        return ()
    return [Span(start, candidate.end, candidate.confidence)]


def _quoted_local(window: bytes) -> bytes:
    """The local part in quotes at the end of a window, as in ``"john doe"@example.com``; empty where it is none."""
    is_escaped = window[-2:-1] == b"\\"  # in JSON text the quotes themselves are escaped
    opening = window.rfind(b'"', 0, -1)
    while not is_escaped and opening > 0 and window[opening - 1 : opening] == b"\\":
        opening = window.rfind(b'"', 0, opening)
    content = window[opening + 1 : -2 if is_escaped else -1]
    if opening < 0 or not content.strip() or b"\n" in content or b"\r" in content:
        return b""
    return window[opening:]


def _password_of_url(candidate: Candidate, start: int) -> bool:
    before = candidate._replace(start=start).before(80)
    return before.endswith(b":") and re.search(rb"://[!-~]{0,64}:\Z", before) is not None


_LABEL = rf"{_LETTER}(?:[A-Za-z0-9\x80-\xf4-]{{0,61}}{_LETTER})?"

EMAILS = (
    Recogniser(
        "email",
        "email",
        r"@(?:\[(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}|(?i:IPv6):[0-9A-Fa-f:.]{2,45})\]|"
        rf"(?:{_LABEL}\.){{1,8}}(?:[A-Za-z]{{2,24}}|xn--[A-Za-z0-9-]{{2,59}}|[A-Za-z]{{0,4}}(?:[\xc3-\xf4][\x80-\xbf]{{1,3}}){{2,20}}))",
        CATALOG_CONFIDENCE["email"],
        check_email,
    ),
)
