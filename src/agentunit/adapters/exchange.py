"""One case between the parent and a worker process: what has come back so far, and how it ended."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
from typing import Literal, Protocol

import msgspec

from agentunit.adapters.call import Call
from agentunit.adapters.capture import Prints
from agentunit.adapters.frames import EVENT, RESULT, SPAN, STDOUT
from agentunit.adapters.processes import Child
from agentunit.adapters.sealing import MAX_REPLY_BYTES
from agentunit.core.codec import RecordError, as_trace
from agentunit.traces.live.captured import Captured, write_into
from agentunit.traces.spans import Span

Ending = Literal["answered", "timeout", "died", "too_much"]


class Exchange:
    """What one case has sent back so far."""

    __slots__ = ("_decoders", "_size", "done", "events", "prints", "reply", "spans")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.done: asyncio.Future[Ending] = loop.create_future()
        self.events: list[bytes] = []
        self.spans: list[bytes] = []
        self.reply: bytes | None = None
        self.prints = Prints()
        self._size = 0
        self._decoders: dict[int, codecs.IncrementalDecoder] = {}

    def settle(self, ending: Ending) -> None:
        """The exchange is over, if it was not before."""
        if not self.done.done():
            self.done.set_result(ending)

    def on_frame(self, kind: int, body: bytes) -> None:
        """Take in a frame."""
        if kind == RESULT:
            self.reply = body
            self.settle("answered")
        elif kind == EVENT:
            self.events.append(body)
            self.on_size(len(body))
        elif kind == SPAN:
            self.spans.append(body)
        else:
            self.on_print(kind, body)

    def on_size(self, size: int) -> None:
        """More bytes are here or announced."""
        self._size += size
        if self._size > MAX_REPLY_BYTES:
            self.settle("too_much")

    def on_print(self, kind: int, data: bytes) -> None:
        """Take in what was printed: ``STDOUT`` or ``STDERR``."""
        decoder = self._decoders.get(kind)
        if decoder is None:
            decoder = self._decoders[kind] = codecs.getincrementaldecoder("utf-8")("replace")
        stream = self.prints.stdout if kind == STDOUT else self.prints.stderr
        stream.write(decoder.decode(data))

    def recorded(self) -> Call:
        """A call with the trace as far as it was sent."""
        call = Call()
        for body in self.events:
            with contextlib.suppress(RecordError):
                call.trace.events.extend(as_trace([msgspec.json.decode(body)]).events)
        if self.spans:
            # A span that ended was sent twice: the second says more.
            spans = {span.span_id: span for span in (msgspec.json.decode(body, type=Span) for body in self.spans)}
            write_into(call.trace, Captured(list(spans.values())))
        return call


class Worker(Protocol):
    """A process that answers one case after the other. ``home`` is the loop that listens to it, if one does."""

    child: Child
    home: asyncio.AbstractEventLoop | None

    def is_alive(self) -> bool:
        """Whether it can be given a case."""

    def start(self, exchange: Exchange, request: bytes) -> None:
        """Give it a case; what comes back goes to the exchange."""

    def stop(self) -> None:
        """The case is over."""

    def ask_for_last_words(self) -> None:
        """Its time is up: ask for the trace it has."""

    def kill(self) -> None:
        """End it and all that it started."""
