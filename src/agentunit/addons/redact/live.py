"""Personal data masked inside an OpenTelemetry SDK, before a span leaves the process."""

from __future__ import annotations

import logging
import secrets
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentunit.addons.redact.rules import RuledDetector, Rules, read_rules
from agentunit.backends.quality import BackendUnavailable
from agentunit.installation import install_command
from agentunit.privacy.detectors import detector_named
from agentunit.privacy.findings import PII_TYPES
from agentunit.privacy.masked_spans import masked_texts
from agentunit.privacy.pseudonyms import Pseudonyms
from agentunit.privacy.redaction import Redactor
from agentunit.privacy.spellings import KnownValues

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

_MOST_TRACES = 1_000
_log = logging.getLogger(__name__)


def redacting_processor(
    processor: Any,
    *,
    backend: str = "patterns",
    types: Iterable[str] = PII_TYPES,
    rules: str | None = None,
    salt: str | None = None,
) -> Any:
    """A span processor that masks personal data and hands the masked spans to ``processor``, which exports them.

    ``processor`` is a span processor of the OpenTelemetry SDK, or an exporter, which then gets a batch processor. Ids,
    times, kinds and names of attributes stay, and so do numbers, unless their attribute says that they are personal. A
    value has the same pseudonym in the whole process and, with a ``salt``, in every process that has it.

    ``provider.add_span_processor(agentunit.redacting_processor(BatchSpanProcessor(exporter)))``
    """
    try:
        from opentelemetry.sdk.trace import SpanProcessor
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        hint = f"the OpenTelemetry SDK is not installed; {install_command('otel')} adds it"
        raise BackendUnavailable(f"redacting_processor: {hint}") from None
    if not isinstance(processor, SpanProcessor):
        if not callable(getattr(processor, "export", None)):
            raise TypeError(
                f"redacting_processor: processor must be a span processor or an exporter; received {processor!r:.80}"
            )
        processor = BatchSpanProcessor(processor)
    if isinstance(types, str):
        raise TypeError(f"redacting_processor: types must be a list of types; received {types!r:.80}")
    ruled = read_rules(rules) if rules is not None else Rules()
    wanted = {*types, *ruled.own_types}
    unknown = sorted(wanted - {*PII_TYPES, *ruled.own_types})
    if unknown:
        raise ValueError(f"redacting_processor: types must be among {', '.join(PII_TYPES)}; received {unknown[0]!r}")
    detector = RuledDetector(detector_named(backend, "redacting_processor"), ruled)
    # Numbers would begin anew in every process, and then stand for somebody else.
    pseudonyms = Pseudonyms(salt or secrets.token_hex())
    return _processor_class()(processor, Redactor(detector, wanted, pseudonyms, audits=False))


def _processor_class() -> Any:
    from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor

    class RedactingSpanProcessor(SpanProcessor):
        """Masks each span that ends, and passes it on. What could not be masked is not passed on."""

        def __init__(self, processor: SpanProcessor, redactor: Redactor) -> None:
            self._processor = processor
            self._redactor = redactor
            self._known: OrderedDict[int, dict[tuple[str, str], None]] = OrderedDict()
            self._one_at_a_time = threading.Lock()

        def on_start(self, span: Span, parent_context: Context | None = None) -> None:
            self._processor.on_start(span, parent_context)

        def on_end(self, span: ReadableSpan) -> None:
            try:
                with self._one_at_a_time:
                    masked = self._masked(span)
            except Exception:  # noqa: BLE001  # an unmasked span must not leave, and the agent must go on
                _log.exception("a span was not exported: its personal data could not be masked")
                return
            self._processor.on_end(masked)

        def shutdown(self) -> None:
            self._processor.shutdown()

        def force_flush(self, timeout_millis: int = 30_000) -> bool:
            return self._processor.force_flush(timeout_millis)

        def _masked(self, span: ReadableSpan) -> ReadableSpan:
            texts = _Texts(span)
            context = span.get_span_context()
            told = self._told(context.trace_id if context is not None else 0)
            new = masked_texts(self._redactor)(texts.pairs)
            if told:
                pairs = [(key, text) for (key, _), text in zip(texts.pairs, new, strict=True)]
                new = masked_texts(self._redactor, KnownValues(told))(pairs)
            told.update(((type, value), None) for _, type, value in self._redactor.pseudonyms.found())
            # A process may live for years: only the values of the last traces are kept.
            self._redactor.pseudonyms.forget()
            return texts.span_with(new, ReadableSpan)

        def _told(self, trace_id: int) -> dict[tuple[str, str], None]:
            """What the spans of a trace told so far."""
            told = self._known.setdefault(trace_id, {})
            self._known.move_to_end(trace_id)
            if len(self._known) > _MOST_TRACES:
                self._known.popitem(last=False)
            return told

    return RedactingSpanProcessor


class _Texts:
    """The texts of a span with the names of their attributes, and the span with others in their places."""

    def __init__(self, span: ReadableSpan) -> None:
        self._span = span
        self.pairs: list[tuple[str, str | float]] = [("", span.name), ("", span.status.description or "")]
        self._read(span.attributes)
        for event in span.events:
            self.pairs.append(("", event.name))
            self._read(event.attributes)
        for link in span.links:
            self._read(link.attributes)

    def _read(self, attributes: Mapping[str, Any] | None) -> None:
        for key, value in (attributes or {}).items():
            texts = value if isinstance(value, (tuple, list)) else [value]
            self.pairs += [(key, text) for text in texts if _is_masked(text)]

    def span_with(self, texts: Sequence[str | float], made: type[ReadableSpan]) -> ReadableSpan:
        """The span with these texts in the places of its own."""
        from opentelemetry.sdk.trace import Event
        from opentelemetry.trace import Link, Status

        span, new = self._span, iter(texts)
        name, description = str(next(new)), next(new)
        attributes = _replaced(span.attributes, new)
        events = [Event(str(next(new)), _replaced(event.attributes, new), event.timestamp) for event in span.events]
        links = [Link(link.context, _replaced(link.attributes, new)) for link in span.links]
        return made(
            name=name,
            context=span.get_span_context(),
            parent=span.parent,
            resource=span.resource,
            attributes=attributes,
            events=events,
            links=links,
            kind=span.kind,
            status=Status(span.status.status_code, str(description)) if description else span.status,
            start_time=span.start_time,
            end_time=span.end_time,
            instrumentation_scope=span.instrumentation_scope,
        )


def _replaced(attributes: Mapping[str, Any] | None, new: Any) -> dict[str, Any]:
    replaced: dict[str, Any] = {}
    for key, value in (attributes or {}).items():
        if isinstance(value, (tuple, list)):
            replaced[key] = tuple(next(new) if _is_masked(each) else _kept(each) for each in value)
        else:
            replaced[key] = next(new) if _is_masked(value) else _kept(value)
    return replaced


def _is_masked(value: Any) -> bool:
    """Whether a value is a text, or a number that may be personal in its attribute."""
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)


def _kept(value: Any) -> Any:
    """True or false as it is; of anything else, such as bytes, nothing: it cannot be masked."""
    return value if value is None or isinstance(value, bool) else b""
