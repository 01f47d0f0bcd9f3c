"""One request and its response over HTTP: bounded, and cut off from outside at any moment.

Secrets of the request are kept out of errors and records, even when a server sends them back.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import http.client
import re
import socket
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

import msgspec

from agentunit.adapters.failures import clipped

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
        if not value.isprintable() or not _fits_latin_1(value):
            raise ValueError(f"HttpAgent: headers must be printable Latin-1 text; received something else for {name!r}")
        checked[name] = value.strip()
    return checked


def basic_authorization(address: SplitResult) -> str | None:
    """The header for a user and password in an address."""
    if address.username is None and address.password is None:
        return None
    login = f"{unquote(address.username or '')}:{unquote(address.password or '')}"
    return "Basic " + base64.b64encode(login.encode()).decode()


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


def _fits_latin_1(value: str) -> bool:
    try:
        value.encode("latin-1")
    except UnicodeEncodeError:
        return False
    return True


_READ_BYTES = 1 << 16
_MOST_REDIRECTS = 5
_BODY_CHARACTERS = 300
# What a socket can be told.
_LONGEST_WAIT_S = 1e6
_PORTS = {"http": 80, "https": 443}


class HttpFailure(Exception):
    """A response that is no answer; the message says why."""


class Line:
    """The connection of one request. Another thread may cut it, and whoever reads from it wakes up."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._is_cut = False
        self._lock = threading.Lock()

    def hold(self, connected: socket.socket | None) -> None:
        """The connection is this one now; ``None``: it is free for other requests."""
        with self._lock:
            if self._is_cut:
                raise ConnectionAbortedError("cut off")
            self._socket = connected

    def cut(self) -> None:
        """End the request."""
        with self._lock:
            self._is_cut = True
            if self._socket is not None:
                # Not the TLS socket's own method, which would first wait for the lock of the thread that reads.
                with contextlib.suppress(OSError):
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


@dataclass
class Response:
    """A response with a status of success."""

    body: bytes
    content_type: str
    charset: str

    @property
    def text(self) -> str:
        """The body as text."""
        try:
            return self.body.decode(self.charset, "replace")
        except LookupError:
            return self.body.decode("utf-8", "replace")


class Endpoint:
    """An address, and connections to it that are kept open between requests."""

    def __init__(self, address: SplitResult, *, trust_env: bool) -> None:
        self._address = address
        self._host = address.hostname or ""
        self._port = address.port or _PORTS[address.scheme]
        self._tls = ssl.create_default_context() if address.scheme == "https" else None
        self._proxy = _proxy_for(address) if trust_env else None
        self._idle: list[http.client.HTTPConnection] = []

    def ask(
        self, line: Line, method: str, headers: Mapping[str, str], body: bytes, *, timeout_s: float | None, limit: int
    ) -> Response:
        """Send a request and read its response, following redirects on the same host."""
        timeout_s = None if timeout_s is None else min(timeout_s, _LONGEST_WAIT_S)
        address = self._address
        for _ in range(_MOST_REDIRECTS + 1):
            response = self._exchange(line, address, method, headers, body, timeout_s, limit)
            if isinstance(response, Response):
                return response
            address = response
        raise HttpFailure(f"the server redirects more than {_MOST_REDIRECTS} times")

    def close(self) -> None:
        """Close idle connections."""
        while self._idle:
            self._idle.pop().close()

    def _exchange(
        self,
        line: Line,
        address: SplitResult,
        method: str,
        headers: Mapping[str, str],
        body: bytes,
        timeout_s: float | None,
        limit: int,
    ) -> Response | SplitResult:
        connection = self._connection(line, timeout_s)
        reusable = False
        try:
            connection.request(method, self._target(address), body, {**headers, **self._proxy_headers()})
            with connection.getresponse() as response:
                content = _read(response, limit)
            line.hold(None)
            reusable = not response.will_close
        finally:
            if reusable:
                self._idle.append(connection)
            else:
                connection.close()
        return _judged(response, content, address)

    def _connection(self, line: Line, timeout_s: float | None) -> http.client.HTTPConnection:
        while self._idle:
            connection = self._idle.pop()
            if _is_open(connection):
                connection.sock.settimeout(timeout_s)
                line.hold(connection.sock)
                return connection
            connection.close()
        connection = self._new_connection(timeout_s)
        connection.connect()
        line.hold(connection.sock)
        return connection

    def _new_connection(self, timeout_s: float | None) -> http.client.HTTPConnection:
        host, port = self._host, self._port
        if self._proxy is not None:
            host, port = self._proxy.hostname or "", self._proxy.port or _PORTS["http"]
        if self._tls is None:
            return http.client.HTTPConnection(host, port, timeout=timeout_s)
        connection = http.client.HTTPSConnection(host, port, timeout=timeout_s, context=self._tls)
        if self._proxy is not None:
            connection.set_tunnel(self._host, self._port, self._proxy_login())
        return connection

    def _target(self, address: SplitResult) -> str:
        target = quote(address.path or "/", safe="/%:=&~+!$,;'@()*[]")
        target += "?" + quote(address.query, safe="/%:=&~+!$,;'@()*[]?") if address.query else ""
        through_proxy = self._proxy is not None and self._tls is None
        return f"http://{address.netloc.rpartition('@')[2]}{target}" if through_proxy else target

    def _proxy_headers(self) -> dict[str, str]:
        return self._proxy_login() if self._tls is None else {}

    def _proxy_login(self) -> dict[str, str]:
        login = None if self._proxy is None else basic_authorization(self._proxy)
        return {} if login is None else {"Proxy-Authorization": login}


def checked_address(url: str) -> SplitResult:
    """An address that can be asked."""
    try:
        address = urlsplit(url)
        usable = address.scheme in _PORTS and bool(address.hostname) and address.port != 0 and url.isprintable()
    except ValueError:
        usable = False
    if not usable:
        raise ValueError("HttpAgent: url must be an http:// or https:// address with a host; received another one")
    return address


def shown(address: SplitResult) -> str:
    """An address as it may be shown: without user, password and query, where secrets are.

    >>> shown(urlsplit("https://me:secret@example.org:8080/ask?key=secret"))
    'https://example.org:8080/ask'
    """
    return f"{address.scheme}://{address.netloc.rpartition('@')[2]}{address.path}"


def _is_open(connection: http.client.HTTPConnection) -> bool:
    """Whether a kept connection is still good: a server that closed it has left an end to read."""
    kept: socket.socket | None = connection.sock
    if kept is None:
        return False
    try:
        kept.setblocking(False)
        socket.socket.recv(kept, 1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _read(response: http.client.HTTPResponse, limit: int) -> bytes:
    content = bytearray()
    while data := response.read(_READ_BYTES):
        content += data
        if len(content) > limit:
            raise HttpFailure(f"the response passed {limit // 2**20} MiB, the most that is read")
    if response.length:
        raise HttpFailure(f"the response broke off after {len(content)} bytes; {response.length} were still to come")
    return bytes(content)


def _judged(response: http.client.HTTPResponse, content: bytes, address: SplitResult) -> Response | SplitResult:
    """The response if it is an answer, the next address if it is a redirect, or else the failure it stands for."""
    status = response.status
    location = response.getheader("Location")
    if status in (301, 302, 303, 307, 308) and location is not None:
        target = urlsplit(urljoin(address.geturl(), location))
        if _origin(target) != _origin(address):
            raise HttpFailure(f"HTTP {status}: the server redirects to another host, {shown(target)}; not followed")
        if status not in (307, 308):
            raise HttpFailure(f"HTTP {status}: the server redirects to {shown(target)}; name that address instead")
        return target
    # The library takes a response without a type for text.
    kind = response.headers.get_content_type() if "Content-Type" in response.headers else "not given"
    text = Response(content, kind, response.headers.get_content_charset("utf-8"))
    if not 200 <= status < 300:
        said = clipped(text.text, _BODY_CHARACTERS)
        raise HttpFailure(f"HTTP {status} {response.reason}" + (f": {said}" if said else ""))
    encoding = response.getheader("Content-Encoding", "identity")
    if encoding.lower() != "identity":
        raise HttpFailure(f"the response is encoded as {clipped(encoding, 40)}, which was not asked for")
    return text


def _origin(address: SplitResult) -> tuple[str, str | None, int | None]:
    try:
        return address.scheme, address.hostname, address.port or _PORTS.get(address.scheme)
    except ValueError:
        return "", None, None


def _proxy_for(address: SplitResult) -> SplitResult | None:
    if proxy_bypass(address.hostname or ""):
        return None
    proxy = getproxies().get(address.scheme)
    if not proxy:
        return None
    return urlsplit(proxy if "://" in proxy else f"http://{proxy}")
