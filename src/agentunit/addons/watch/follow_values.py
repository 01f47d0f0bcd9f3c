"""What the options of following say: how their texts are read. A text that says nothing is a ``ValueError``."""

from __future__ import annotations

from agentunit.addons.watch.collector.forward import parse_backend
from agentunit.addons.watch.following.state import Retention
from agentunit.store.erasure import Whom


def read_keep(text: str) -> Retention:
    """What is kept of scored traces: ``text`` or ``masked``, with an age.

    >>> read_keep("masked,30d")
    Retention(is_masked=True, seconds=2592000.0)
    """
    what, _, age = (part.strip() for part in text.partition(","))
    if what not in ("text", "masked"):
        raise ValueError(f"what is kept is text or masked, with an age: masked,30d; received {text!r:.40}")
    return Retention(what == "masked", Whom("older", age).seconds if age else None)


def read_address(text: str) -> tuple[str, int]:
    """Where metrics are served.

    >>> read_address("9464"), read_address("0.0.0.0:9464")
    (('127.0.0.1', 9464), ('0.0.0.0', 9464))
    """
    host, colon, port = text.rpartition(":")
    if not port.isdecimal() or not 0 <= int(port) <= 65535 or (colon and not host):
        raise ValueError(f"must be a port, or HOST:PORT; received {text!r:.60}")
    return host.strip("[]") or "127.0.0.1", int(port)


def read_budget(text: str) -> int:
    """The most cases a day.

    >>> read_budget("200")
    200
    """
    if not text.isdecimal() or not int(text):
        raise ValueError(f"must be a number above 0; received {text!r:.40}")
    return int(text)


def read_endpoint(text: str) -> str:
    """The address of an OTLP endpoint, as it was written."""
    parse_backend(text)
    return text
