"""Requests to end: Ctrl-C, SIGTERM and, from a terminal that is closed, SIGHUP."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

Handler = Callable[[int, Any], None]

# Windows has no SIGHUP.
END_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
_handlers: list[Handler] = []


@contextmanager
def heard_by(handler: Handler, numbers: Iterable[int] | None = None) -> Iterator[None]:
    """Let a handler hear the requests, or some of them, in this process; what it forks hears them as ever.

    A SIGHUP that ``nohup`` ignores stays ignored. Only the main thread can hear: for others nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    if numbers is None:
        hangup = getattr(signal, "SIGHUP", None)
        numbers = [each for each in END_SIGNALS if each != hangup or signal.getsignal(each) != signal.SIG_IGN]
    earlier = {number: signal.getsignal(number) for number in numbers}
    _handlers.append(handler)
    for number in earlier:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, before in earlier.items():
            signal.signal(number, before)
        _handlers.remove(handler)


def _as_ever() -> None:
    """In a fork, of an agent's own pool for example: ``terminate`` must end it, and it has nothing to say."""
    for number in END_SIGNALS:
        if signal.getsignal(number) in _handlers:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_as_ever)
