"""Live capture: spans of any OpenTelemetry instrumentation become a trace while the agent works.

Nothing of OpenTelemetry is imported before a capture is asked for. Every capture opens a span ``agentunit.case``, the
root of a trace of its own, so that whatever starts within it carries its trace id. A span with another id belongs to
the capture whose context it started in, else to the only one that is open; else it is counted as unattributed.
"""

from __future__ import annotations

import contextlib
import os
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from agentunit.core.trace import TraceLog
from agentunit.installation import install_command

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import Span as CurrentSpan
    from opentelemetry.trace import TracerProvider

    from agentunit.traces.spans import Span

INSTALL_HINT = install_command("otel")
CASE_SPAN = "agentunit.case"
CASE_SCOPE = "agentunit"
_REMEMBERED = 10_000


class CaptureError(Exception):
    """Spans cannot be captured here; the message is one sentence with the way out."""


class SpanCapture:
    """The spans of one stretch of work, from ``begin`` to ``end``, which are called in the same context.

    ``send`` gets every span when it starts and when it ends, for somebody who may outlive this process.
    """

    def __init__(self, tracer_provider: TracerProvider | None = None, send: Callable[[Span], None] | None = None):
        self._tracer_provider = tracer_provider
        self.send = send
        self.case_ids: set[int] = set()
        self.trace_ids: set[int] = set()
        self.n_unattributed = 0
        self.is_recording = True
        self.outer: SpanCapture | None = None
        self._spans: list[ReadableSpan] = []
        self._case: CurrentSpan | None = None
        self._tokens: tuple[Any, Any] | None = None
        self._is_collected = False

    def begin(self) -> None:
        """Open the span that all others of this capture stand under."""
        provider = _listening_provider(self._tracer_provider)
        from opentelemetry import context, trace

        around = trace.get_current_span().get_span_context()
        links = [trace.Link(around)] if around.is_valid else []
        tracer = provider.get_tracer(CASE_SCOPE)
        case = self._case = tracer.start_span(CASE_SPAN, context=context.Context(), links=links)
        self.is_recording = case.is_recording()
        self.outer = _current.get()
        ids = case.get_span_context()
        for capture in self.and_outer():
            capture.case_ids.add(ids.span_id)
        _open.append(self)
        _adopt(ids.trace_id, self)
        self._tokens = context.attach(trace.set_span_in_context(case)), _current.set(self)

    def end(self) -> None:
        """Close it; spans that have not ended by now count as not ended."""
        self.stop()
        if self._tokens is not None:
            from opentelemetry import context

            context.detach(self._tokens[0])
            try:
                _current.reset(self._tokens[1])
            except ValueError:
                # Ended in another context than it began in, as an asynchronous generator may.
                _current.set(None)
            self._tokens = None

    def stop(self) -> None:
        """Take in no more spans; unlike ``end``, from any thread."""
        case, self._case = self._case, None
        if case is None:
            return
        case.end()
        _open.remove(self)
        for trace_id in self.trace_ids:
            if _by_trace.pop(trace_id, None) is not None:
                _closed.append(trace_id)

    def and_outer(self) -> Iterator[SpanCapture]:
        """This capture and those that it stands in."""
        capture: SpanCapture | None = self
        while capture is not None:
            yield capture
            capture = capture.outer

    def add(self, span: ReadableSpan) -> None:
        """Keep a span that has started."""
        for capture in self.and_outer():
            capture._spans.append(span)

    def collect_into(self, trace: TraceLog) -> None:
        """Write what was captured into a trace, once; events that are there already keep their place in time."""
        from agentunit.traces.live.captured import Captured, plain_span, write_into

        self.stop()
        if self._is_collected:
            return
        self._is_collected = True
        captured = Captured(n_unattributed=self.n_unattributed, is_recording=self.is_recording)
        for span in list(self._spans):
            captured.spans.append(plain_span(span, self.case_ids, captured.notes))
        write_into(trace, captured)


_open: list[SpanCapture] = []
_by_trace: dict[int, SpanCapture] = {}
# Traces of captures that are over: their late spans are nobody else's.
_closed: deque[int] = deque(maxlen=_REMEMBERED)
_current: ContextVar[SpanCapture | None] = ContextVar("agentunit_span_capture", default=None)
_for_every_case = False


# By identity: Logfire's provider cannot be hashed.
_listened_to: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def _listening_provider(wanted: TracerProvider | None) -> TracerProvider:
    """The wanted provider, else the global one, with our ear in it; where there is none, one is made and set."""
    try:
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
    except ImportError as error:  # pragma: no cover - tested in a process of its own
        raise CaptureError(f"capturing spans needs the extra otel: {INSTALL_HINT}") from error
    provider: Any = trace.get_tracer_provider() if wanted is None else wanted
    if isinstance(provider, trace.ProxyTracerProvider) and wanted is None:
        trace.set_tracer_provider(TracerProvider())
        provider = trace.get_tracer_provider()
    is_listened_to = _listened_to.get(id(provider)) is provider
    if not is_listened_to:
        if not hasattr(provider, "add_span_processor"):
            raise CaptureError(
                "spans can be captured from a TracerProvider of the OpenTelemetry SDK; "
                f"received {type(provider).__module__}.{type(provider).__qualname__}"
            )
        provider.add_span_processor(_capture_processor())
        _listened_to[id(provider)] = provider
    return provider  # type: ignore[no-any-return]


@lru_cache(maxsize=1)
def _capture_processor() -> Any:
    """Our ear in the SDK, whose base class is imported only when spans are to be captured."""
    from opentelemetry.sdk.trace import SpanProcessor

    class CaptureProcessor(SpanProcessor):
        """Tells of spans. It raises nothing, since that would be raised in the agent's code."""

        def on_start(self, span: Any, parent_context: Any = None) -> None:
            try:
                on_start(span)
            except Exception:  # noqa: BLE001 - a capture that cannot keep a span must not stop the agent
                count_unattributed()

        def on_end(self, span: ReadableSpan) -> None:
            on_end(span)

    return CaptureProcessor()


def on_start(span: Any) -> None:
    """A span has started somewhere in this process."""
    if not _open or span.instrumentation_scope.name == CASE_SCOPE:
        return
    capture = _capture_of(span.get_span_context().trace_id)
    if capture is not None:
        capture.add(span)
        _send(capture, span)


def on_end(span: ReadableSpan) -> None:
    """A span has ended; whoever keeps it sees that by itself."""
    if _open and span.context is not None:
        capture = _by_trace.get(span.context.trace_id)
        if capture is not None:
            _send(capture, span)


def _send(capture: SpanCapture, span: ReadableSpan) -> None:
    if capture.send is not None:
        from agentunit.traces.live.captured import plain_span
        from agentunit.traces.spans import ReadingNotes

        # A line that is broken, or a value that cannot be written: what stays here is complete all the same.
        with contextlib.suppress(Exception):
            capture.send(plain_span(span, capture.case_ids, ReadingNotes()))


def _capture_of(trace_id: int) -> SpanCapture | None:
    capture = _by_trace.get(trace_id)
    if capture is not None:
        return capture
    capture = _current.get()
    if capture is None and trace_id not in _closed:
        capture = _only_open()
        if capture is None:
            count_unattributed()
    if capture is None or capture not in _open:
        return None
    # The rest of that trace belongs to the same capture.
    _adopt(trace_id, capture)
    return capture


def _only_open() -> SpanCapture | None:
    """The capture that is open, or the innermost of several that stand in each other."""
    innermost = _open[-1]
    return innermost if len(list(innermost.and_outer())) == len(_open) else None


def count_unattributed() -> None:
    """A span could belong to any of the captures that are open: each of them says so."""
    for capture in _open:
        capture.n_unattributed += 1


def _adopt(trace_id: int, capture: SpanCapture) -> None:
    _by_trace[trace_id] = capture
    capture.trace_ids.add(trace_id)


def _forget_all() -> None:
    """In a forked process: the captures are its parent's."""
    _open.clear()
    _by_trace.clear()
    _current.set(None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


@contextlib.contextmanager
def capture_spans(*, tracer_provider: TracerProvider | None = None) -> Iterator[TraceLog]:
    """Capture the spans of a ``with`` block; the trace that it gives is complete when the block has ended.

    Plain ``with`` also in asynchronous code: captures that run at the same time do not mix. Listens to the given
    provider of the OpenTelemetry SDK, else to the global one, which is made if there is none; exporters that are there
    go on working. Own ``trace.record(...)`` events are kept, in order of time. What was noticed on the way stands in
    ``trace.metadata["spans"]``.
    """
    trace, capture, began = TraceLog(), SpanCapture(tracer_provider), time.perf_counter()
    capture.begin()
    try:
        yield trace
    finally:
        capture.end()
        trace.metadata.setdefault("duration_s", time.perf_counter() - began)
        capture.collect_into(trace)


def capture_every_case() -> TracerProvider:
    """From now on, every call of an agent by AgentUnit captures its spans; the provider that is listened to."""
    global _for_every_case
    provider = _listening_provider(None)
    _for_every_case = True
    return provider


def case_capture(send: Callable[[Span], None] | None = None) -> SpanCapture | None:
    """A capture that has begun, for one call of an agent; ``None`` unless ``capture_every_case`` was called."""
    if not _for_every_case:
        return None
    capture = SpanCapture(send=send)
    capture.begin()
    return capture
