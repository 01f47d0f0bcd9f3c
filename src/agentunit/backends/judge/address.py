"""The address of a judge: checked, taken apart, and shown without what must stay secret."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from agentunit.backends.http_client import PORTS, HttpClient, ascii_host, basic_authorization

_SENSITIVE = re.compile(r"auth|key|token|secret|passw|credential|sig|code", re.IGNORECASE)
_MAX_REPLY_BYTES = 4 << 20
_ENDPOINT = "/chat/completions"
# A shorter "secret" is a placeholder such as "none" or "EMPTY", which may be a word of a reply.
_SHORTEST_SECRET = 8


@dataclass(frozen=True)
class Address:
    """Where requests go. ``target`` is path and query as sent, ``shown`` is fit for any message."""

    host: str
    port: int
    is_tls: bool
    target: str = field(repr=False)
    shown: str
    authorization: str | None = field(default=None, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def client(self) -> HttpClient:
        """A client for this address."""
        headers = {
            "User-Agent": "agentunit",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
        }
        if self.authorization is not None:
            headers["Authorization"] = self.authorization
        return HttpClient(self.host, self.port, is_tls=self.is_tls, headers=headers, max_bytes=_MAX_REPLY_BYTES)

    def hidden(self, body: bytes) -> bytes:
        """What a server sent, without the secrets of this address."""
        for secret in self.secrets:
            body = body.replace(secret.encode(), b"***")
        return body


def address_of(url: str, api_key: str | None = None) -> Address:
    """The address that a base URL stands for; ``ValueError`` with one sentence when it is none.

    >>> address_of("http://127.0.0.1:8000/v1").target
    '/v1/chat/completions'
    >>> address_of("https://me:hush@judge.example/v1?api-version=2&api-key=abc").shown
    'https://judge.example/v1?api-version=2&api-key=***'
    """
    parts = _split(url)
    host = _plain_host(parts.hostname or "")
    is_tls = parts.scheme == "https"
    port = parts.port or PORTS[parts.scheme]
    path = parts.path.rstrip("/").removesuffix(_ENDPOINT)
    query = parse_qsl(parts.query, keep_blank_values=True)
    target = quote(path + _ENDPOINT, safe="/%:@!$&'()*+,;=~") + (f"?{urlencode(query)}" if query else "")
    place = f"{parts.scheme}://{_in_url(host)}" + (f":{port}" if port != PORTS[parts.scheme] else "") + path
    shown_query = "&".join(f"{name}={'***' if _SENSITIVE.search(name) else value}" for name, value in query)
    return Address(
        host=host,
        port=port,
        is_tls=is_tls,
        target=target,
        shown=place + (f"?{shown_query}" if query else ""),
        authorization=_authorization(parts, api_key),
        secrets=_secrets(parts, query, api_key),
    )


def _split(url: str) -> SplitResult:
    rule = "JudgeSettings: url must be an http:// or https:// address such as 'http://127.0.0.1:8000/v1'"
    try:
        parts = urlsplit(url.strip())
        usable = parts.scheme in PORTS and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except (AttributeError, ValueError):
        raise ValueError(f"{rule}; received something that is no address") from None
    if not usable or any(character.isspace() or not character.isprintable() for character in parts.geturl()):
        received = f"{parts.scheme or 'no'} scheme, {'a' if parts.hostname else 'no'} host"
        raise ValueError(f"{rule}; received one with {received} ({len(url)} characters)")
    return parts


def _plain_host(host: str) -> str:
    """A name in letters of its own as the name system writes it."""
    try:
        return ascii_host(host)
    except UnicodeError:
        raise ValueError(
            "JudgeSettings: url must have a host name that can be looked up; received one of other "
            "letters that cannot be"
        ) from None


def _authorization(parts: SplitResult, api_key: str | None) -> str | None:
    return f"Bearer {api_key}" if api_key else basic_authorization(parts)


def _secrets(parts: SplitResult, query: list[tuple[str, str]], api_key: str | None) -> tuple[str, ...]:
    # A name without a password is a key.
    hidden_part = parts.password or parts.username or ""
    found = {api_key or "", hidden_part, unquote(hidden_part)}
    found.update(value for name, value in query if _SENSITIVE.search(name))
    found |= {quote(secret, safe="") for secret in found}
    login = basic_authorization(parts)
    found.add(login.removeprefix("Basic ") if login else "")
    found |= {json.dumps(secret, ensure_ascii=is_ascii)[1:-1] for secret in found for is_ascii in (True, False)}
    found |= {secret.replace("/", "\\/") for secret in found}
    return tuple(sorted((secret for secret in found if len(secret) >= _SHORTEST_SECRET), key=len, reverse=True))


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
