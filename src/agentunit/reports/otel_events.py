"""Scores as OpenTelemetry events (extra ``otel``): one ``gen_ai.evaluation.result`` a score, and one for the decision.

The names are those of the GenAI semantic conventions, which are still in development; what they have no name for is
under ``agentunit.``. Nothing is sent anywhere unless the caller hands over a provider or an exporter that does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import agentunit
from agentunit.core.records import Outcome, Record
from agentunit.core.results import Score, explained
from agentunit.core.score_block import ScoreRow
from agentunit.installation import install_command
from agentunit.reports.figures import describe_reason
from agentunit.reports.reported_run import ReportedCase, ReportedRun
from agentunit.reports.reporters import ReportError
from agentunit.store.runs import is_again

if TYPE_CHECKING:
    from opentelemetry._logs import LoggerProvider
    from opentelemetry.context import Context

INSTALL_HINT = install_command("otel")
EVENT_NAME = "gen_ai.evaluation.result"
DECISION_EVENT_NAME = "agentunit.run.decision"
_FLUSH_EVERY = 500
_EXPLANATION_LENGTH = 4_000
_HEXADECIMAL = re.compile("[0-9a-f]+")


def emit_scores(
    reported: ReportedRun,
    provider: LoggerProvider,
    *,
    metrics: Iterable[str] | None = None,
) -> int:
    """Emit every score of a run as an event through a logger provider, then the decision; returns how many events.

    The provider is the caller's: its processors and exporters say where events go, and shutting it down is up to the
    caller. ``metrics`` chooses some of the run's metrics. The label of a check is ``pass`` or ``fail``; other
    scores have none. An event carries the
    trace and span of what it judges when the trace recorded them (``trace_id`` and ``span_id`` in its metadata, as
    hexadecimal).
    """
    try:
        from opentelemetry._logs import LogRecord, SeverityNumber
    except ImportError:
        raise ReportError(f"OpenTelemetry events need its SDK: {INSTALL_HINT}") from None
    wanted = None if metrics is None else set(metrics)
    timestamp = int((reported.run.header.finished_at or reported.run.header.created_at) * 1e9)
    logger = provider.get_logger("agentunit", agentunit.__version__)
    flush = getattr(provider, "force_flush", None)
    n_events = 0
    for case in reported.cases():
        if is_again(case.repeat):
            # Whoever averages the events would count it.
            continue
        context = context_of(case.record)
        for metric, score in case.scores.items():
            if wanted is not None and metric not in wanted:
                continue
            logger.emit(
                LogRecord(
                    timestamp=timestamp,
                    context=context,
                    severity_number=SeverityNumber.WARN if score.status == "error" else SeverityNumber.INFO,
                    attributes=score_attributes(reported, case, metric, score),
                    event_name=EVENT_NAME,
                )
            )
            n_events += 1
            # Batching processors drop what their queue has no room for: a run must not outrun them.
            if n_events % _FLUSH_EVERY == 0 and flush is not None:
                flush()
    decision = reported.decision
    logger.emit(
        LogRecord(
            timestamp=timestamp,
            severity_number=SeverityNumber.WARN if decision.exit_code else SeverityNumber.INFO,
            attributes=decision_attributes(reported),
            event_name=DECISION_EVENT_NAME,
        )
    )
    return n_events + 1


def export_scores(reported: ReportedRun, exporter: Any, *, metrics: Iterable[str] | None = None) -> int:
    """Emit every score of a run through one exporter of log records, and wait until it has them all."""
    try:
        from opentelemetry.sdk._logs import LoggerProvider as SdkProvider
        from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
        from opentelemetry.sdk.resources import Resource
    except ImportError:
        raise ReportError(f"OpenTelemetry events need its SDK: {INSTALL_HINT}") from None
    provider = SdkProvider(resource=Resource.create({"service.name": "agentunit"}), shutdown_on_exit=False)
    provider.add_log_record_processor(BatchLogRecordProcessor(exporter))
    try:
        return emit_scores(reported, provider, metrics=metrics)
    finally:
        provider.shutdown()


def send_scores(reported: ReportedRun, endpoint: str) -> int:
    """Send every score of a run to an OTLP/HTTP endpoint for logs that the user named, and to no other place."""
    try:
        from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    except ImportError:
        raise ReportError(f"sending OpenTelemetry events needs its exporter: {INSTALL_HINT}") from None
    exporter = _CountingExporter(OTLPLogExporter(endpoint=endpoint, timeout=10))
    n_events = export_scores(reported, exporter)
    if exporter.n_failed:
        raise ReportError(
            f"{endpoint} did not take {exporter.n_failed} batches of events: is a collector listening there?"
        )
    return n_events


class _CountingExporter:
    """An exporter that remembers what was not taken: the SDK only logs it."""

    def __init__(self, exporter: Any) -> None:
        self._exporter = exporter
        self.n_failed = 0

    def export(self, batch: Any) -> Any:
        result = self._exporter.export(batch)
        self.n_failed += result.name != "SUCCESS"
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 10_000) -> bool:
        return bool(self._exporter.force_flush(timeout_millis))


def decision_attributes(reported: ReportedRun) -> dict[str, Any]:
    """The attributes of the event that says what was decided about the run."""
    decision, header = reported.decision, reported.run.header
    attributes: dict[str, Any] = {
        "agentunit.run.id": header.id,
        "agentunit.run.name": header.name,
        "agentunit.run.verdict": decision.verdict,
        "agentunit.run.exit_code": decision.exit_code,
        "agentunit.run.headline": decision.headline,
        "agentunit.run.statistics": decision.line or None,
        "agentunit.run.reasons": [describe_reason(reason) for reason in decision.reasons],
        "agentunit.run.failing_cases": list(decision.failing_cases),
    }
    return {name: value for name, value in attributes.items() if value is not None}


def score_attributes(reported: ReportedRun, case: ReportedCase, metric: str, score: Score) -> dict[str, Any]:
    """The attributes of one event; what is unknown is left out."""
    header = reported.run.header
    attributes: dict[str, Any] = {
        "gen_ai.evaluation.name": metric,
        "gen_ai.evaluation.score.value": score.result.value,
        "gen_ai.evaluation.score.label": _label(reported, case, metric, score),
        "gen_ai.evaluation.explanation": _short(explained(score)),
        "gen_ai.response.id": _response_id(case),
        "error.type": error_type(score),
        "agentunit.run.id": header.id,
        "agentunit.run.name": header.name,
        "agentunit.case.id": case.case_id,
        "agentunit.case.repeat": case.repeat + 1,
        "agentunit.case.failed": case.failed,
        "agentunit.metric.backend": score.backend,
        "agentunit.metric.version": score.version,
        "agentunit.metric.unit": reported.infos[metric].unit if metric in reported.infos else None,
        "agentunit.score.status": score.status,
    }
    return {name: value for name, value in attributes.items() if value is not None}


def _label(reported: ReportedRun, case: ReportedCase, metric: str, score: Score) -> str | None:
    """Whether a check passes; absent for what is no check, and where the agent gave nothing to check."""
    rule = reported.rules.get(metric)
    if rule is None or case.failed:
        return None
    place = (case.position, case.repeat, case.case_id)
    passed = rule.result(ScoreRow(*place, score.result.value, score.status, score.backend, score.version))
    return None if passed is None else "pass" if passed else "fail"


def error_type(score: Score) -> str | None:
    """The kind of error that a score failed with."""
    if score.status != "error":
        return None
    error = score.result.detail.get("error")
    kind = error.get("type") if isinstance(error, dict) else None
    return str(kind) if kind else "_OTHER"


def _short(text: str | None) -> str | None:
    return None if text is None else text[:_EXPLANATION_LENGTH]


def _response_id(case: ReportedCase) -> str | None:
    outcome = case.record.outcome
    places = [case.record.trace.metadata, outcome.metadata if isinstance(outcome, Outcome) else {}]
    for place in places:
        for key in ("gen_ai.response.id", "response_id"):
            if isinstance(place.get(key), str):
                return str(place[key])
    return None


def context_of(record: Record, *, trace_alone: bool = False) -> Context | None:
    """The span a record's trace says it was recorded under; ``trace_alone``: also a trace that tells no span."""
    from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

    trace_id = _identifier(record.trace.metadata.get("trace_id"), 32)
    span_id = _identifier(record.trace.metadata.get("span_id"), 16)
    if trace_id is None or (span_id is None and not trace_alone):
        return None
    span = NonRecordingSpan(
        SpanContext(trace_id, span_id or 0, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    )
    return set_span_in_context(span)


def _identifier(value: Any, n_digits: int) -> int | None:
    if not isinstance(value, str):
        return None
    digits = value.lower().removeprefix("0x")
    if len(digits) != n_digits or not _HEXADECIMAL.fullmatch(digits):
        return None
    return int(digits, 16) or None
