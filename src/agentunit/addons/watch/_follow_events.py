"""A followed source in OpenTelemetry (extra ``otel``): metrics, and one event a score, to the endpoint named."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import agentunit
from agentunit.addons.watch.following.series import WHOLE, Alert
from agentunit.addons.watch.following.state import Snapshot
from agentunit.core.records import Record
from agentunit.core.results import Score
from agentunit.installation import install_command
from agentunit.reports.otel_events import EVENT_NAME, context_of, error_type
from agentunit.reports.reported_run import Mask
from agentunit.reports.reporters import ReportError

ALERT_EVENT_NAME = "agentunit.drift"
_EXPORT_EVERY_MS = 15_000
_TIMEOUT_S = 10
_END_WITHIN_S = 4.0
_FLUSH_EVERY, _FLUSH_WITHIN_MS, _LEFT_BEHIND_S = 500, 2_000, 60.0


class OtelExport:
    """Sends metrics and events to an OTLP/HTTP endpoint and to no other place, in threads of its own.

    What the endpoint does not take in time is dropped: scoring never waits for it. ``snapshot`` is asked for the sums.
    """

    def __init__(self, endpoint: str, snapshot: Callable[[], Snapshot], mask: Mask) -> None:
        try:
            from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
            from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
            from opentelemetry.sdk._logs import LoggerProvider
            from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
            from opentelemetry.sdk.metrics import MeterProvider
            from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
            from opentelemetry.sdk.resources import Resource
        except ImportError:
            raise ReportError(f"OpenTelemetry needs its SDK and exporter: {install_command('otel')}") from None
        base = endpoint.rstrip("/")
        resource = Resource.create({"service.name": "agentunit"})
        self._mask = mask
        self._n_emitted, self._flush_again_at = 0, 0.0
        self._logs = LoggerProvider(resource=resource, shutdown_on_exit=False)
        self._logs.add_log_record_processor(
            BatchLogRecordProcessor(
                OTLPLogExporter(endpoint=f"{base}/v1/logs", timeout=_TIMEOUT_S, session=_direct_session())
            )
        )
        self._logger = self._logs.get_logger("agentunit", agentunit.__version__)
        reader = PeriodicExportingMetricReader(
            OTLPMetricExporter(endpoint=f"{base}/v1/metrics", timeout=_TIMEOUT_S, session=_direct_session()),
            export_interval_millis=_EXPORT_EVERY_MS,
        )
        self._metrics = MeterProvider([reader], resource=resource, shutdown_on_exit=False)
        meter = self._metrics.get_meter("agentunit", agentunit.__version__)
        self._values = meter.create_histogram(
            "agentunit.score", "1", "Values of the scores.", explicit_bucket_boundaries_advisory=_EDGES
        )
        self._observe(meter, snapshot)

    def _observe(self, meter: Any, snapshot: Callable[[], Snapshot]) -> None:
        from opentelemetry.metrics import Observation

        def traces(_: Any) -> Any:
            now = snapshot()
            for result in ("scored", "not_sampled", "repeated", "without_agent"):
                yield Observation(now.counts.get(result, 0), {"result": result})

        def scores(_: Any) -> Any:
            for row in snapshot().rows:
                for status, count in row.state.statuses.items():
                    names = {"gen_ai.evaluation.name": row.key.metric, "agentunit.metric.backend": row.key.backend}
                    yield Observation(count, {**names, "agentunit.score.status": status})

        def of_series(value: Callable[[Any], float | None]) -> Callable[[Any], Any]:
            def observe(_: Any) -> Any:
                for row in snapshot().rows:
                    key, found = row.key, value(row)
                    if found is not None and row.state.n:
                        yield Observation(
                            found,
                            {
                                "gen_ai.evaluation.name": key.metric,
                                "agentunit.metric.backend": key.backend,
                                "agentunit.slice": self._mask.name(key.slice) if key.slice != WHOLE else "",
                                "agentunit.kind": key.kind,
                            },
                        )

            return observe

        meter.create_observable_counter("agentunit.traces", [traces], "{trace}", "Traces that arrived.")
        meter.create_observable_counter("agentunit.scores", [scores], "{score}", "Scores by status.")
        meter.create_observable_gauge("agentunit.score.mean", [of_series(lambda row: row.hour_mean)], "1")
        meter.create_observable_gauge("agentunit.drift.evidence", [of_series(lambda row: row.evidence)], "1")
        alerts = of_series(lambda row: row.state.n_alerts)
        meter.create_observable_counter("agentunit.drift.alerts", [alerts], "{alert}")

    def on_scored(self, record: Record, scores: dict[str, Score]) -> None:
        """Emit the scores of one case."""
        from opentelemetry._logs import LogRecord, SeverityNumber

        context = context_of(record, trace_alone=True)
        now_ns = time.time_ns()
        for metric, score in scores.items():
            named = {"gen_ai.evaluation.name": metric, "agentunit.metric.backend": score.backend}
            if score.value is not None:
                self._values.record(score.value, named)
            reason = score.result.detail.get("reason")
            attributes = {
                **named,
                "gen_ai.evaluation.score.value": score.value,
                "gen_ai.evaluation.explanation": self._mask.text(reason) if isinstance(reason, str) else None,
                "error.type": error_type(score),
                "agentunit.case.id": record.case.id or None,
                "agentunit.metric.version": score.version,
                "agentunit.score.status": score.status,
            }
            self._logger.emit(
                LogRecord(
                    timestamp=now_ns,
                    context=context,
                    severity_number=SeverityNumber.WARN if score.status == "error" else SeverityNumber.INFO,
                    attributes={name: value for name, value in attributes.items() if value is not None},
                    event_name=EVENT_NAME,
                )
            )

            self._n_emitted += 1
            if self._n_emitted % _FLUSH_EVERY == 0:
                self._flush()

    def _flush(self) -> None:
        """Keep a backlog from outrunning the queue, which drops what has no room; a slow endpoint is left behind."""
        began = time.monotonic()
        if began < self._flush_again_at:
            return
        self._logs.force_flush(_FLUSH_WITHIN_MS)
        if time.monotonic() - began > _FLUSH_WITHIN_MS / 2_000:
            self._flush_again_at = time.monotonic() + _LEFT_BEHIND_S

    def on_alert(self, alert: Alert) -> None:
        """Emit an alert."""
        from opentelemetry._logs import LogRecord, SeverityNumber

        data = self._mask.data(alert.as_data())
        attributes = {f"agentunit.drift.{name}": value for name, value in data.items() if value is not None}
        self._logger.emit(
            LogRecord(
                timestamp=time.time_ns(),
                severity_number=SeverityNumber.WARN,
                attributes=attributes,
                event_name=ALERT_EVENT_NAME,
            )
        )

    def stop(self) -> None:
        """Send what is left, and end; an endpoint that takes long does not get it."""
        ending = [threading.Thread(target=each.shutdown, daemon=True) for each in (self._logs, self._metrics)]
        for each in ending:
            each.start()
        ends_at = time.monotonic() + _END_WITHIN_S
        for each in ending:
            each.join(max(0.0, ends_at - time.monotonic()))


def _direct_session() -> Any:
    """A session that sends to the address it is given and to no other: by no proxy, and not where an answer leads."""
    from requests import Session

    class DirectSession(Session):
        def request(self, *args: Any, **kwargs: Any) -> Any:
            return super().request(*args, **{**kwargs, "allow_redirects": False})

    session = DirectSession()
    session.trust_env = False
    return session


_EDGES = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1000.0, 10000.0]
