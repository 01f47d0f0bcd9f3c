"""What stands before the server: only its own page may ask, by its own name, and beyond this machine with the token."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

from agentunit.core.results import encode_json

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK = ("127.0.0.1", "localhost", "::1")
WRITE_HEADER = "x-agentunit"
_COOKIE = "agentunit-token"
_HOST = re.compile(r"(?:\[(?P<six>[0-9a-fA-F:.]+)\]|(?P<name>[A-Za-z0-9._-]+))(?::\d{1,5})?")
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
_CLOSED_POLICY = b"default-src 'none'; frame-ancestors 'none'; sandbox"


class Guard:
    """Wraps an application. Without a ``token`` only names of this machine may be in the Host header.

    A page of another site that makes a name of its own point here (DNS rebinding) sends that name, and is refused.
    """

    def __init__(self, app: App, *, token: str | None = None, hosts: tuple[str, ...] = LOOPBACK) -> None:
        self._app = app
        self._token = token
        # Cookies are shared by all ports of a machine: two viewers on it must not take each other's.
        self._cookie = f"{_COOKIE}-{hashlib.sha256((token or '').encode()).hexdigest()[:8]}"
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or say why not."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        send = _with_headers(send)
        refused = self._refused(scope, headers)
        if refused is not None:
            await _answer(send, *refused)
            return
        if self._token is not None and not self._is_known(headers):
            await self._ask_for_token(scope, headers, send)
            return
        await self._app(scope, receive, send)

    def _refused(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        host = _HOST.fullmatch(headers.get("host", ""))
        name = "" if host is None else (host["six"] or host["name"]).lower().rstrip(".")
        if host is None or (self._token is None and name not in self._hosts):
            return 403, f"this server answers to {', '.join(sorted(self._hosts))}; received another Host"
        site = headers.get("sec-fetch-site", "none")
        is_page = scope["path"] == "/" and headers.get("sec-fetch-mode", "navigate") == "navigate"
        if site not in ("none", "same-origin") and not is_page:
            return 403, "only the viewer's own page may ask"
        if scope["method"] in ("GET", "HEAD"):
            return None
        if scope["method"] != "POST":
            return 405, "only GET and POST are answered"
        origin = headers.get("origin")
        if origin is not None and origin.split("://", 1)[-1] != headers["host"]:
            return 403, "a label must come from the viewer's own page"
        kind = headers.get("content-type", "").split(";", 1)[0].strip().lower()
        if WRITE_HEADER not in headers or kind != "application/json":
            return 403, f"a write needs the header {WRITE_HEADER} and Content-Type application/json"
        return None

    def _is_known(self, headers: dict[str, str]) -> bool:
        given = [headers.get("authorization", "").removeprefix("Bearer ")]
        # Other servers of the machine set cookies of any form beside ours.
        cookies = (each.strip().partition("=") for each in headers.get("cookie", "").split(";"))
        given += [value for name, _, value in cookies if name == self._cookie]
        return any(self._matches(each) for each in given)

    def _matches(self, given: str) -> bool:
        return self._token is not None and hmac.compare_digest(given.encode(), self._token.encode())

    async def _ask_for_token(self, scope: Scope, headers: dict[str, str], send: Send) -> None:
        """The token may come once in the address of the page; from then on a cookie has it."""
        given = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [""])[0]
        if scope["path"] != "/" or not self._matches(given):
            await _answer(send, 401, "open the address that 'agentunit view' printed: it holds the token")
            return
        cookie = f"{self._cookie}={self._token}; Path=/; HttpOnly; SameSite=Strict".encode()
        moved = [(b"location", b"/"), (b"set-cookie", cookie), (b"cache-control", b"no-store")]
        await send({"type": "http.response.start", "status": 303, "headers": moved})
        await send({"type": "http.response.body", "body": b""})


def _with_headers(send: Send) -> Send:
    async def sent(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", []))
            named = {name.lower() for name, _ in headers}
            headers += [each for each in _HEADERS if each[0] not in named]
            if b"content-security-policy" not in named:
                headers.append((b"content-security-policy", _CLOSED_POLICY))
            if b"cache-control" not in named:
                headers.append((b"cache-control", b"no-store"))
            message = {**message, "headers": headers}
        await send(message)

    return sent


async def _answer(send: Send, status: int, error: str) -> None:
    body = encode_json({"error": error})
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
