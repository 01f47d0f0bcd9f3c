"""An HTTP endpoint as an agent: the question as JSON in the request, the answer in the response.

Only the address that the user named is contacted: no proxy of the environment (unless asked for), no redirect to
another host. A request is cut off when the time is up, however slowly the server goes on sending.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import re
from collections.abc import Mapping
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

import msgspec

from agentunit.adapters._call import MAX_ANSWER_BYTES, AgentCall, WrongType, request_json, take_reply
from agentunit.adapters.base import AgentResult, FailureKind
from agentunit.adapters.failures import clipped, describe_error
from agentunit.backends.http_client import PORTS, HttpClient, HttpFailure, Response, ascii_host, basic_authorization
from agentunit.core.case import DatasetCase

_MAX_REDIRECTS = 5
_BODY_CHARACTERS = 300
_CHARSET = re.compile(r";\s*charset\s*=\s*\"?([^\s;\"]+)", re.IGNORECASE)


class HttpAgent:
    """An agent behind an ``http://`` or ``https://`` address.

    The request carries the same JSON as a command gets on its standard input; the response is an outcome as JSON (with
    ``trace`` if it likes), or plain text with a ``text/…`` content type other than HTML. Values of headers, and a user
    and password in the address, appear in no error and no record. ``trust_env`` uses the proxies of the environment.
    """

    concurrency_hint: int | None = None

    def __init__(
        self, url: str, *, headers: Mapping[str, str] | None = None, method: str = "POST", trust_env: bool = False
    ) -> None:
        if method not in ("POST", "PUT", "PATCH"):
            raise ValueError(f"HttpAgent: method must be POST, PUT or PATCH; received {method!r}")
        self._address, host = _checked_address(url)
        received = checked_headers(headers or {})
        names = {name.lower() for name in received}
        login = basic_authorization(self._address)
        if login is not None and "authorization" not in names:
            received["Authorization"] = login
        defaults = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/plain;q=0.5",
            "Accept-Encoding": "identity",
            "User-Agent": "agentunit",
        }
        self.settable: tuple[str, ...] = ()
        self._method = method
        self._shown = _shown(self._address)
        self._secrets = Secrets(received, self._address)
        self._client = HttpClient(
            host,
            self._address.port or PORTS[self._address.scheme],
            is_tls=self._address.scheme == "https",
            headers={name: value for name, value in defaults.items() if name.lower() not in names} | received,
            max_bytes=MAX_ANSWER_BYTES,
            proxy=_proxy_for(self._address) if trust_env else None,
        )

    def __repr__(self) -> str:
        return f"HttpAgent({self._shown!r})"

    async def run(self, case: DatasetCase, *, timeout_s: float | None = None, seed: int | None = None) -> AgentResult:
        """Send one case, and close the connection when the time is up."""
        call = AgentCall()
        try:
            question = request_json(case, seed)
        except Exception as error:  # noqa: BLE001 - a case that cannot be written as JSON: the case says so
            self._fail(call, "raised", f"the request cannot be sent: {describe_error(error)}")
            return call.result()
        try:
            response = await asyncio.wait_for(self._ask(question), timeout_s)
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            is_text = kind.startswith("text/") and kind != "text/html"
            try:
                take_reply(call, self._secrets.hidden_in_answer(_text(response)), may_be_text=is_text)
            except WrongType as error:
                self._fail(call, "wrong_type", f"{error}; the content type is {kind or 'not given'}")
        except asyncio.TimeoutError:
            call.timed_out(timeout_s or 0.0, why=f"; {self._shown} did not finish its response")
        except HttpFailure as error:
            self._fail(call, "raised", str(error))
        return call.result()

    async def close(self) -> None:
        """Close connections."""
        self._client.close()

    async def _ask(self, question: bytes) -> Response:
        """The answer to a question, following redirects on the same host; ``HttpFailure`` when there is none."""
        address = self._address
        for _ in range(_MAX_REDIRECTS + 1):
            response = await self._client.send(_target(address), question, method=self._method)
            if 200 <= response.status < 300:
                return response
            address = _redirected(response, address)
        raise HttpFailure(f"the server redirects more than {_MAX_REDIRECTS} times")

    def _fail(self, call: AgentCall, failure: FailureKind, sentence: str) -> None:
        call.fail(failure, self._secrets.hidden(f"{sentence} ({self._shown})"))


def _checked_address(url: str) -> tuple[SplitResult, str]:
    """An address that can be asked, and its host."""
    try:
        address = urlsplit(url)
        host = ascii_host(address.hostname or "")
        usable = address.scheme in PORTS and bool(host) and address.port != 0 and url.isprintable()
    except ValueError:
        usable = False
    if not usable:
        raise ValueError("HttpAgent: url must be an http:// or https:// address with a host; received another one")
    return address, host


def _shown(address: SplitResult) -> str:
    """An address as it may be shown: without user, password and query, where secrets are.

    >>> _shown(urlsplit("https://me:secret@example.org:8080/ask?key=secret"))
    'https://example.org:8080/ask'
    """
    return f"{address.scheme}://{address.netloc.rpartition('@')[2]}{address.path}"


def _target(address: SplitResult) -> str:
    target = quote(address.path or "/", safe="/%:=&~+!$,;'@()*[]")
    return target + ("?" + quote(address.query, safe="/%:=&~+!$,;'@()*[]?") if address.query else "")


def _redirected(response: Response, address: SplitResult) -> SplitResult:
    """The address to ask next; ``HttpFailure`` where the response is no redirect, or one that is not followed."""
    status, location = response.status, response.headers.get("location")
    if status not in (301, 302, 303, 307, 308) or location is None:
        text = clipped(_text(response), _BODY_CHARACTERS)
        raise HttpFailure(f"HTTP {status} {response.reason}".rstrip() + (f": {text}" if text else ""))
    try:
        target = urlsplit(urljoin(address.geturl(), location))
        is_same_host = _origin(target) == _origin(address)
    except ValueError:
        raise HttpFailure(f"HTTP {status}: the server redirects to something that is not an address") from None
    if not is_same_host:
        raise HttpFailure(f"HTTP {status}: the server redirects to another host, {_shown(target)}; not followed")
    if status not in (307, 308):
        raise HttpFailure(f"HTTP {status}: the server redirects to {_shown(target)}; name that address instead")
    return target


def _origin(address: SplitResult) -> tuple[str, str | None, int | None]:
    return address.scheme, address.hostname, address.port or PORTS.get(address.scheme)


def _text(response: Response) -> str:
    charset = _CHARSET.search(response.headers.get("content-type", ""))
    try:
        return response.body.decode(charset[1] if charset else "utf-8", "replace")
    except (LookupError, ValueError):  # no such character set
        return response.body.decode("utf-8", "replace")


def _proxy_for(address: SplitResult) -> SplitResult | None:
    if proxy_bypass(address.hostname or ""):
        return None
    proxy = getproxies().get(address.scheme)
    if not proxy:
        return None
    return urlsplit(proxy if "://" in proxy else f"http://{proxy}")


# Secrets that a user gave for a request are kept out of errors and records even when a server sends them back.

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
