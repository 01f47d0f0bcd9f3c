"""Where a judge's requests go: the address of its server, as sent and as shown, and its secrets."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from agentunit.addons.judge._profiles import Profile, profile_named, recognized, sent_path

_SENSITIVE = re.compile(r"auth|key|token|secret|passw|credential|cookie|sig|code", re.IGNORECASE)
_PORTS = {"http": 80, "https": 443}
# A shorter "secret" is a placeholder such as "none" or "EMPTY", which may be a word of a reply.
_SHORTEST_SECRET = 8


@dataclass(frozen=True)
class Address:
    """Where requests go. ``target`` is path and query as sent; ``shown`` fits any message.

    ``base`` and ``query`` are those below which the files and batches of the server are.

    ``headers`` are those of the profile and of the login; ``authorization`` is one of them.
    """

    host: str
    port: int
    is_tls: bool
    target: str = field(repr=False)
    shown: str
    profile: str = "compatible"
    base: str = field(default="", repr=False)
    query: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @property
    def authorization(self) -> str | None:
        """The header of this name."""
        return self.headers.get("Authorization")

    def beside(self, path: str) -> str:
        """The target of another endpoint of the same server, below the base path."""
        return sent_path(self.base + path) + (f"?{self.query}" if self.query else "")

    def hidden(self, body: bytes) -> bytes:
        """What a server sent, without the secrets of this address."""
        for secret in self.secrets:
            body = body.replace(secret.encode(), b"***")
        return body


def address_of(
    url: str,
    api_key: str | None = None,
    *,
    profile: str | None = None,
    model: str = "",
    headers: Mapping[str, str] | None = None,
    secrets: Iterable[str] = (),
) -> Address:
    """The address that a base URL stands for; ``ValueError`` with one sentence when it is none.

    ``headers`` go before those of the profile; their values, and ``secrets``, are hidden in all that a server says.

    >>> address_of("http://127.0.0.1:8000/v1").target
    '/v1/chat/completions'
    >>> address_of("https://me:hush@judge.example/v1?api-version=2&api-key=abc").shown
    'https://judge.example/v1?api-version=2&api-key=***'
    """
    parts = _split(url)
    host = _plain_host(parts.hostname or "")
    port = parts.port or _PORTS[parts.scheme]
    kind = profile_named(profile or recognized(parts))
    path = kind.base_path(parts.path)
    query = parse_qsl(parts.query, keep_blank_values=True)
    sent, sent_query = kind.target(path, query, model)
    base, base_query = kind.beside(path, query)
    in_url = f"[{host}]" if ":" in host else host
    place = f"{parts.scheme}://{in_url}" + (f":{port}" if port != _PORTS[parts.scheme] else "") + path
    shown_query = "&".join(f"{name}={'***' if _SENSITIVE.search(name) else value}" for name, value in query)
    own = dict(headers or {})
    return Address(
        host=host,
        port=port,
        is_tls=parts.scheme == "https",
        target=sent_path(sent) + (f"?{urlencode(sent_query)}" if sent_query else ""),
        shown=place + (f"?{shown_query}" if query else ""),
        profile=kind.name,
        base=base,
        query=urlencode(base_query),
        headers=_headers(kind, parts, api_key, own),
        secrets=_secrets(parts, query, [api_key or "", *_hidden_values(own), *secrets]),
    )


def _headers(kind: Profile, parts: SplitResult, api_key: str | None, own: Mapping[str, str]) -> dict[str, str]:
    found = kind.headers(api_key or None)
    login = None if api_key else _login(parts)
    if login is not None:
        found["Authorization"] = login
    named = {name.lower() for name in own}
    return {name: value for name, value in found.items() if name.lower() not in named} | dict(own)


def _hidden_values(headers: Mapping[str, str]) -> list[str]:
    """Values of headers that are secrets by their names; "Bearer" and the like are no part of them."""
    values = [value for name, value in headers.items() if _SENSITIVE.search(name)]
    return values + [value.rpartition(" ")[2] for value in values]


def _split(url: str) -> SplitResult:
    rule = "JudgeSettings: url must be an http:// or https:// address such as 'http://127.0.0.1:8000/v1'"
    try:
        parts = urlsplit(url.strip())
        usable = parts.scheme in _PORTS and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except (AttributeError, ValueError):
        raise ValueError(f"{rule}; received something that is not an address") from None
    if not usable or any(character.isspace() or not character.isprintable() for character in parts.geturl()):
        received = f"{parts.scheme or 'no'} scheme, {'a' if parts.hostname else 'no'} host"
        raise ValueError(f"{rule}; received one with {received} ({len(url)} characters)")
    return parts


def _plain_host(host: str) -> str:
    """A name in letters of its own as the name system writes it."""
    try:
        return host if host.isascii() else host.encode("idna").decode()
    except UnicodeError:
        raise ValueError(
            "JudgeSettings: url must have a host name that can be looked up; received one of other "
            "letters that cannot be"
        ) from None


def _login(parts: SplitResult) -> str | None:
    # Settings are read in every run, and the client is not loaded where no judge is named.
    from agentunit.backends.http_client import basic_authorization

    return basic_authorization(parts)


def _secrets(parts: SplitResult, query: list[tuple[str, str]], known: Iterable[str]) -> tuple[str, ...]:
    # A name without a password is a key.
    hidden_part = parts.password or parts.username or ""
    found = {*known, hidden_part, unquote(hidden_part)}
    found.update(value for name, value in query if _SENSITIVE.search(name))
    found |= {quote(secret, safe="") for secret in found}
    login = _login(parts)
    found.add(login.removeprefix("Basic ") if login else "")
    found |= {json.dumps(secret, ensure_ascii=is_ascii)[1:-1] for secret in found for is_ascii in (True, False)}
    found |= {secret.replace("/", "\\/") for secret in found}
    return tuple(sorted((secret for secret in found if len(secret) >= _SHORTEST_SECRET), key=len, reverse=True))
