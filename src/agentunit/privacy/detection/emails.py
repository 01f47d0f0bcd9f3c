"""Email addresses: an @ with a domain after it, and what an address can have before it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agentunit.privacy.detection.engine import Candidate, Recogniser, Span

_LOCAL = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.!#$%&'*+/=?^_`{|}~-" + bytes(
    range(0x80, 0xF5)
)
_MOST_LOCAL_BYTES = 64
_LETTER = r"[A-Za-z0-9\x80-\xf4]"


def check_email(candidate: Candidate) -> Sequence[Span]:
    """The domain of a match, with the local part before its @."""
    window = candidate.before(_MOST_LOCAL_BYTES + 1)
    start = candidate.start - (len(window) - len(window.rstrip(_LOCAL)))
    local = candidate.buffer[start : candidate.start]
    if len(local) > _MOST_LOCAL_BYTES:
        return ()
    # Quotes, brackets and paths around an address are allowed in it by the letter of RFC 5322, and never meant.
    kept = local.lstrip(b".!#$%&'*+/=?^`{|}~-")
    for mark in (b"=", b"/", b"|", b"'", b"`", b"{", b"}", b"&", b"?", b"!", b"#"):
        kept = kept.rpartition(mark)[2]
    kept = kept.lstrip(b".")
    if not kept or kept.endswith(b".") or b".." in kept:
        return ()
    start = candidate.start - len(kept)
    if _password_of_url(candidate, start):
        return ()
    return [Span(start, candidate.end, candidate.confidence)]


def _password_of_url(candidate: Candidate, start: int) -> bool:
    before = candidate._replace(start=start).before(80)
    return before.endswith(b":") and re.search(rb"://[!-~]{0,64}:\Z", before) is not None


_LABEL = rf"{_LETTER}(?:[A-Za-z0-9\x80-\xf4-]{{0,61}}{_LETTER})?"

EMAILS = (
    Recogniser(
        "email",
        "email",
        rf"@(?:{_LABEL}\.){{1,8}}(?:[A-Za-z]{{2,24}}|xn--[A-Za-z0-9-]{{2,59}}|[A-Za-z]{{0,4}}(?:[\xc3-\xf4][\x80-\xbf]{{1,3}}){{2,20}})",
        0.95,
        check_email,
    ),
)
