"""One case between the parent and a worker process: what has come back so far, and how it ended."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
from typing import Literal

import msgspec

from agentunit.adapters.call import Call
from agentunit.adapters.capture import BoundedText, Prints
from agentunit.adapters.frames import EVENT, LAST_RESULT, RESULT, SPAN
from agentunit.adapters.sealing import MAX_REPLY_BYTES
from agentunit.core.codec import RecordError, as_trace
from agentunit.traces.live.captured import Captured, write_into
from agentunit.traces.spans import Span

Ending = Literal["answered", "timeout", "died", "too_much"]


class Exchange:
    """What one case has sent back so far."""

    __slots__ = ("_decoders", "_size", "done", "events", "prints", "reply", "reusable", "spans")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.done: asyncio.Future[Ending] = loop.create_future()
        self.events: list[bytes] = []
        self.spans: list[bytes] = []
        self.reply: bytes | None = None
        self.reusable = True
        self.prints = Prints()
        self._size = 0
        self._decoders: dict[BoundedText, codecs.IncrementalDecoder] = {}

    def settle(self, ending: Ending) -> None:
        """The exchange is over, if it was not before."""
        if not self.done.done():
            self.done.set_result(ending)

    def on_frame(self, kind: int, body: bytes) -> None:
        """Take in a frame."""
        if kind in (RESULT, LAST_RESULT):
            self.reply = body
            self.reusable = kind == RESULT
            self.settle("answered")
        elif kind == EVENT:
            self.events.append(body)
            self.on_size(len(body))
        elif kind == SPAN:
            self.spans.append(body)

    def on_size(self, size: int) -> None:
        """More bytes are here or announced."""
        self._size += size
        if self._size > MAX_REPLY_BYTES:
            self.settle("too_much")

    def on_print(self, stream: BoundedText, data: bytes) -> None:
        """Take in what was printed to ``prints.stdout`` or ``prints.stderr``."""
        decoder = self._decoders.get(stream)
        if decoder is None:
            decoder = self._decoders[stream] = codecs.getincrementaldecoder("utf-8")("replace")
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
