"""Secrets that a user gave for a request, kept out of errors and records even when a server sends them back."""

from __future__ import annotations

import base64
import binascii
import contextlib
import re
from collections.abc import Mapping
from urllib.parse import SplitResult, parse_qsl, unquote

import msgspec

_SENSITIVE = re.compile(r"auth|cookie|key|token|secret|passw|credential|session|signature", re.IGNORECASE)
_HARMLESS = {"accept", "accept-language", "content-type", "user-agent"}
_SHORTEST = 5
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


def checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers that can be sent as they are. The library's own check would print a bad value, so it comes first."""
    checked: dict[str, str] = {}
    for name, value in headers.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValueError(f"HttpAgent: headers must have names of letters, digits and dashes; received {name!r}")
        if not isinstance(value, str):
            raise ValueError(f"HttpAgent: headers must be text; received {type(value).__name__} for {name!r}")
        if not value.isprintable() or any(letter > "\xff" for letter in value):
            raise ValueError(f"HttpAgent: headers must be printable Latin-1 text; received something else for {name!r}")
        checked[name] = value.strip()
    return checked


class Secrets:
    """What must not be shown: every header value in our own sentences, the sensitive ones also in answers.

    >>> secrets = Secrets({"Authorization": "Bearer abc123", "X-Stage": "production"}, SplitResult("", "", "", "", ""))
    >>> secrets.hidden("token abc123 in production"), secrets.hidden_in_answer("token abc123 in production")
    ('token *** in ***', 'token *** in production')
    """

    def __init__(self, headers: Mapping[str, str], address: SplitResult) -> None:
        sensitive: set[str] = set()
        others: set[str] = set()
        query = dict(parse_qsl(address.query))
        for name, value in (*headers.items(), *query.items()):
            if name.lower() not in _HARMLESS:
                (sensitive if _SENSITIVE.search(name) else others).update(_forms(value))
        if address.password:
            sensitive.update((address.password, unquote(address.password)))
        self._sensitive = _longest_first(sensitive)
        self._all = _longest_first(sensitive | others)

    def hidden(self, text: str) -> str:
        """A sentence of ours without any of them."""
        return _replaced(text, self._all)

    def hidden_in_answer(self, text: str) -> str:
        """A server's answer without the sensitive ones; a header such as ``X-Stage`` may be a word of the answer."""
        return _replaced(text, self._sensitive)


def _forms(value: str) -> set[str]:
    """A value, its parts (the token without ``Bearer``, the cookie without its name) and how JSON writes them."""
    parts = {value, *re.split(r"[\s;,]+", value)}
    parts |= {part.partition("=")[2] for part in parts if "=" in part.rstrip("=")}
    if value.startswith("Basic "):
        # What cannot be decoded is no login that a server could have taken apart.
        with contextlib.suppress(binascii.Error, UnicodeDecodeError):
            parts.add(base64.b64decode(value[6:], validate=True).decode().partition(":")[2])
    return parts | {msgspec.json.encode(part).decode()[1:-1] for part in parts}


def _longest_first(values: set[str]) -> list[str]:
    return sorted((value for value in values if len(value) >= _SHORTEST), key=len, reverse=True)


def _replaced(text: str, values: list[str]) -> str:
    for value in values:
        text = text.replace(value, "***")
    return text
