"""How a followed source stands, in the text format of Prometheus, and a small server for it.

Labels are metrics, backends, statuses and slices: nothing that names a case, whose number would have no bound.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET, AF_INET6
from typing import Any

from agentunit.addons.watch.following.series import WHOLE
from agentunit.addons.watch.following.state import SeriesRow, Snapshot
from agentunit.reports.reported_run import Mask

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_RESULTS = ("scored", "not_sampled", "repeated", "without_agent")
_READ_WITHIN_S = 10.0

FAMILIES: Mapping[str, tuple[str, str]] = {
    "agentunit_traces_total": ("counter", "Traces that arrived, by what became of them."),
    "agentunit_failed_traces_total": ("counter", "Traces in which the agent failed."),
    "agentunit_unreadable_total": ("counter", "Parts of the source that could not be read."),
    "agentunit_late_spans_total": ("counter", "Spans that came after their trace had been scored."),
    "agentunit_scores_total": ("counter", "Scores by metric, backend and status."),
    "agentunit_score": ("histogram", "Values of the scores in the sample."),
    "agentunit_score_mean": (
        "gauge",
        "The mean since the full hour (window 1h), or of it and the 23 before (24h), by slice.",
    ),
    "agentunit_score_baseline": ("gauge", "The mean of the baseline, by slice."),
    "agentunit_drift_evidence": ("gauge", "How near an alert is, from 0 to 1, by slice."),
    "agentunit_drift_alerts_total": ("counter", "Changes that were noticed, by slice."),
    "agentunit_judge_cost_usd_total": ("counter", "What the judge has cost, in US dollars."),
    "agentunit_alert_deliveries_total": ("counter", "Attempts to deliver an alert, by how they ended."),
    "agentunit_open_traces": ("gauge", "Traces that wait for more of their spans."),
    "agentunit_unread_bytes": ("gauge", "What is left to read in files that grow."),
    "agentunit_last_scored_timestamp_seconds": ("gauge", "When a trace was scored last."),
}
"""Every metric that is exported, with its type and help."""

FamilySample = tuple[str, dict[str, str], float]


def prometheus_text(snapshot: Snapshot, mask: Mask, deliveries: Mapping[str, int] | None = None) -> str:
    """A snapshot in the text format of Prometheus."""
    by_family: dict[str, list[FamilySample]] = {name: [] for name in FAMILIES}
    for name, labels, value in _samples(snapshot, mask, deliveries or {}):
        family = name if name in FAMILIES else name.rpartition("_")[0]
        by_family[family].append((name, labels, value))
    lines: list[str] = []
    for family, samples in by_family.items():
        if samples:
            kind, text = FAMILIES[family]
            lines += [f"# HELP {family} {text}", f"# TYPE {family} {kind}"]
            lines += [f"{name}{_labels(labels)} {_number(value)}" for name, labels, value in samples]
    return "\n".join(lines) + "\n"


def _samples(snapshot: Snapshot, mask: Mask, deliveries: Mapping[str, int]) -> Iterator[FamilySample]:
    counts = snapshot.counts
    for result in _RESULTS:
        yield "agentunit_traces_total", {"result": result}, counts.get(result, 0)
    yield "agentunit_failed_traces_total", {}, counts.get("failed", 0)
    yield "agentunit_unreadable_total", {}, counts.get("unreadable", 0)
    yield "agentunit_late_spans_total", {}, counts.get("late_spans", 0)
    yield "agentunit_judge_cost_usd_total", {}, snapshot.spent_usd_total
    yield "agentunit_open_traces", {}, snapshot.n_open
    yield "agentunit_unread_bytes", {}, snapshot.n_unread_bytes
    if snapshot.last_scored_at is not None:
        yield "agentunit_last_scored_timestamp_seconds", {}, snapshot.last_scored_at
    for result, count in sorted(deliveries.items()):
        yield "agentunit_alert_deliveries_total", {"result": result}, count
    for row in snapshot.rows:
        yield from _of_series(row, mask)


def _of_series(row: SeriesRow, mask: Mask) -> Iterator[FamilySample]:
    key, state = row.key, row.state
    own = {"metric": key.metric, "backend": key.backend}
    sliced = {**own, "kind": key.kind, "slice": mask.name(key.slice) if key.slice else ""}
    for status, count in sorted(state.statuses.items()):
        yield "agentunit_scores_total", {**own, "status": status}, count
    if key.slice == WHOLE and key.kind == "value" and state.n:
        running = 0
        for edge, count in zip((*state.edges, None), state.histogram, strict=True):
            running += count
            yield "agentunit_score_bucket", {**own, "le": "+Inf" if edge is None else _number(edge)}, running
        yield "agentunit_score_sum", own, state.total
        yield "agentunit_score_count", own, state.n
    if not state.n:
        return
    for window, mean in (("1h", row.hour_mean), ("24h", row.day_mean)):
        if mean is not None:
            yield "agentunit_score_mean", {**sliced, "window": window}, mean
    if state.detector.baseline_mean is not None:
        yield "agentunit_score_baseline", sliced, state.detector.baseline_mean
    yield "agentunit_drift_evidence", sliced, row.evidence
    yield "agentunit_drift_alerts_total", sliced, state.n_alerts


def _labels(labels: Mapping[str, str]) -> str:
    """Labels as they are written: a value may hold anything.

    >>> _labels({"slice": 'a "b"\\n\\\\'})
    '{slice="a \\\\"b\\\\"\\\\n\\\\\\\\"}'
    """
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    # Control characters are allowed there, and break what reads lines. No two slices may get one name: of an answer
    # with a sample twice nothing is taken.
    text = "".join(each if each.isprintable() or each == "\n" else f"<{ord(each):x}>" for each in value)
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.12g}"


class MetricsServer:
    """Serves ``/metrics`` at an address. ``text`` is asked for each answer, from any thread."""

    def __init__(self, host: str, port: int, text: Callable[[], str]) -> None:
        class QuietServer(ThreadingHTTPServer):
            address_family = AF_INET6 if ":" in host else AF_INET
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                """A client that went away is nobody's concern."""

        class Handler(BaseHTTPRequestHandler):
            timeout = _READ_WITHIN_S
            server_version = "agentunit"
            sys_version = ""

            def do_GET(self) -> None:
                if self.path.partition("?")[0] not in ("/metrics", "/"):
                    self.send_error(404)
                    return
                body = text().encode()
                self.send_response(200)
                self.send_header("Content-Type", CONTENT_TYPE)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Requests are not logged."""

        self._server = QuietServer((host, port), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, name="agentunit-metrics", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """Where it listens."""
        host, port, *_ = self._server.server_address
        shown = f"[{host!s}]" if ":" in str(host) else host
        return f"http://{shown!s}:{port}/metrics"

    def stop(self) -> None:
        """Let go of the port."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
