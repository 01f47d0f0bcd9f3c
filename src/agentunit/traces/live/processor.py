"""Our ear in OpenTelemetry's SDK. Imported only when spans are to be captured."""

from __future__ import annotations

import weakref
from typing import Any

from agentunit.traces.live import capture as live

try:
    from opentelemetry import context, trace
    from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
except ImportError as error:  # pragma: no cover - tested in a process of its own
    raise live.CaptureError(f"capturing spans needs the extra otel: {live.INSTALL_HINT}") from error


class _CaptureProcessor(SpanProcessor):
    """Tells of spans. It raises nothing, since that would be raised in the agent's code."""

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        try:
            live.on_start(span)
        except Exception:  # noqa: BLE001 - a capture that cannot keep a span must not stop the agent
            live.count_unattributed()

    def on_end(self, span: ReadableSpan) -> None:
        live.on_end(span)


__all__ = ["context", "listening_provider", "trace"]

_processor = _CaptureProcessor()
# By identity: Logfire's provider cannot be hashed.
_listened_to: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def listening_provider(provider: trace.TracerProvider | None) -> trace.TracerProvider:
    """The given provider, else the global one, with our ear in it; where there is none, one is made and set."""
    found: Any = provider if provider is not None else trace.get_tracer_provider()
    if isinstance(found, trace.ProxyTracerProvider) and provider is None:
        trace.set_tracer_provider(TracerProvider())
        found = trace.get_tracer_provider()
    is_listened_to = _listened_to.get(id(found)) is found
    if is_listened_to:
        return found  # type: ignore[no-any-return]
    if not hasattr(found, "add_span_processor"):
        raise live.CaptureError(
            "spans can be captured from a TracerProvider of the OpenTelemetry SDK; "
            f"received {type(found).__module__}.{type(found).__qualname__}"
        )
    found.add_span_processor(_processor)
    _listened_to[id(found)] = found
    return found  # type: ignore[no-any-return]
