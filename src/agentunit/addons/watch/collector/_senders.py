"""Who may send: programs of this machine, by one of its names, and beyond it whoever knows the token."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from urllib.parse import urlsplit

from agentunit.addons.watch.collector.request_limits import RefusedRequest

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
TOKEN_HEADER = "authorization"


class Senders:
    """Checks the heads of requests. Without a ``token`` only names of this machine may be in the Host header.

    A page in a browser that makes a name of its own point here (DNS rebinding) sends that name, and is refused.
    """

    def __init__(self, host: str, token: str | None = None) -> None:
        self._names = frozenset((*_LOOPBACK, host.lower()))
        self._token = token

    def check(self, host: str | None, origin: str | None) -> None:
        """Refuse a request over HTTP that a page of another site makes. What is no browser may leave both out."""
        if self._token is None and host is not None and _name_of(host) not in self._names:
            raise RefusedRequest(
                403, f"this collector answers to {', '.join(sorted(self._names))}; received another Host"
            )
        if origin is not None and origin.partition("://")[2] != host:
            raise RefusedRequest(403, "no page in a browser may send here; received the Origin of another site")

    def check_token(self, received: Iterable[str | bytes]) -> None:
        """Refuse a request without the token, where one is needed."""
        if self._token is None:
            return
        expected = f"Bearer {self._token}".encode()
        for each in received:
            if hmac.compare_digest(each if isinstance(each, bytes) else each.encode(), expected):
                return
        raise RefusedRequest(
            401, "it has no token: set OTEL_EXPORTER_OTLP_HEADERS as 'agentunit collect' printed it at its start"
        )


def _name_of(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""
