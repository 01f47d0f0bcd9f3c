"""What an agent prints, kept with its case and away from the terminal.

In one process many cases run at once, so ``sys.stdout`` and ``sys.stderr`` become proxies that look up, for every
write, whose code is running: a context variable follows tasks, ``asyncio.to_thread`` and our own threads. Prints from
threads that an agent starts by itself, and from C code or child processes, carry no such mark and pass through; in a
forked worker the file descriptors are captured, and nothing escapes.
"""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

KEPT_CHARACTERS = 64 * 1024


class BoundedText:
    """Text of any length, of which the beginning and the end are kept.

    >>> text = BoundedText(limit=8)
    >>> text.write("one two three four"), text.text()
    (18, 'one \\n… [10 characters cut] …\\nfour')
    """

    __slots__ = ("_head", "_room", "_tail", "_tail_limit", "length")

    def __init__(self, limit: int = KEPT_CHARACTERS) -> None:
        self._room = limit // 2
        self._tail_limit = limit - self._room
        self._head: list[str] = []
        self._tail = ""
        self.length = 0

    def write(self, text: str) -> int:
        """Take in more text."""
        self.length += len(text)
        if self._room:
            self._head.append(text[: self._room])
            rest = text[self._room :]
            self._room -= len(self._head[-1])
        else:
            rest = text
        if rest:
            self._tail += rest[-self._tail_limit :]
            # Twice the limit before cutting: not every write copies the tail.
            if len(self._tail) > 2 * self._tail_limit:
                self._tail = self._tail[-self._tail_limit :]
        return len(text)

    def text(self) -> str:
        """What was kept, with a mark where something is missing."""
        head, tail = "".join(self._head), self._tail[-self._tail_limit :]
        cut = self.length - len(head) - len(tail)
        return f"{head}\n… [{cut} characters cut] …\n{tail}" if cut > 0 else head + tail


class Prints:
    """The two streams of one case."""

    __slots__ = ("stderr", "stdout")

    def __init__(self) -> None:
        self.stdout = BoundedText()
        self.stderr = BoundedText()

    def add_to(self, metadata: dict[str, Any]) -> None:
        """Put what was printed into a trace's metadata."""
        for name, stream in (("stdout", self.stdout), ("stderr", self.stderr)):
            if stream.length:
                metadata[name] = stream.text().encode("utf-8", "replace").decode()


_prints: ContextVar[Prints | None] = ContextVar("agentunit_prints", default=None)


class _OutputProxy:
    """A stream that writes to the case whose code is running, or else to the real stream."""

    def __init__(self, real: Any, name: str) -> None:
        self._real = real
        self._name = name

    def _case_stream(self) -> BoundedText | None:
        prints = _prints.get()
        return None if prints is None else getattr(prints, self._name)

    def write(self, text: str) -> int:
        stream = self._case_stream()
        if stream is not None:
            if not isinstance(text, str):
                raise TypeError(f"write() argument must be str, not {type(text).__name__}")
            return stream.write(text)
        return 0 if self._real is None else self._real.write(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        if self._case_stream() is None and self._real is not None:
            self._real.flush()

    def close(self) -> None:
        if self._case_stream() is None and self._real is not None:
            self._real.close()

    def isatty(self) -> bool:
        return self._case_stream() is None and self._real is not None and self._real.isatty()

    @property
    def buffer(self) -> Any:
        stream = self._case_stream()
        return self._real.buffer if stream is None else _BinaryView(stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class _BinaryView(io.RawIOBase):
    """The bytes side of a captured stream."""

    def __init__(self, stream: BoundedText) -> None:
        self._stream = stream

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._stream.write(bytes(data).decode("utf-8", "replace"))
        return len(data)


class _InputProxy:
    """Standard input that is at its end for an agent: one that asks the terminal would wait for ever."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(io.StringIO() if _prints.get() is not None else self._real, name)

    def __iter__(self) -> Iterator[str]:
        return iter(io.StringIO() if _prints.get() is not None else self._real)


_STREAMS = ("stdout", "stderr", "stdin")


class _Installation:
    """Our proxies in ``sys``, for as long as any case runs."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.depth = 0
        self.real: dict[str, Any] = {}
        self.proxies: dict[str, Any] = {}

    def enter(self) -> None:
        with self.lock:
            self.depth += 1
            if self.depth > 1:
                return
            for name in _STREAMS:
                real = getattr(sys, name)
                self.real[name] = real
                self.proxies[name] = _InputProxy(real) if name == "stdin" else _OutputProxy(real, name)
                setattr(sys, name, self.proxies[name])

    def leave(self, *, late: bool) -> None:
        with self.lock:
            self.depth -= 1
            if self.depth:
                return
            for name in _STREAMS:
                # An agent may have put a stream of its own into sys and left it there. But after a case that was
                # given up long ago, somebody else may have, and rightly.
                if not late or getattr(sys, name) is self.proxies[name]:
                    setattr(sys, name, self.real[name])


_installation = _Installation()


class Capture:
    """Keeps the prints of one case from ``begin`` to ``end``; the code between runs in the context of ``begin``."""

    __slots__ = ("_ended", "given_up", "prints")

    def __init__(self) -> None:
        self.prints = Prints()
        self.given_up = False
        self._ended = False

    def begin(self) -> None:
        """Capture what this context and all that are copied from it print."""
        _installation.enter()
        _prints.set(self.prints)

    def end(self) -> None:
        """The case's code has come to its end."""
        if not self._ended:
            self._ended = True
            _installation.leave(late=self.given_up)


def forget_captures() -> None:
    """In a forked worker: the parent's cases are not ours, and their threads do not exist here."""
    global _installation
    _installation = _Installation()
    _prints.set(None)
