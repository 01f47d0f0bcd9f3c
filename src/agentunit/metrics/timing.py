"""How long a run took."""

from __future__ import annotations

from dataclasses import dataclass

from agentunit.core.results import MetricResult
from agentunit.metrics.base import ItemMetric, MetricInfo
from agentunit.metrics.inputs import InputProblem, Item, number_at
from agentunit.metrics.sentences import amount

# The year 5138: a timestamp beyond it is in milliseconds or finer.
_LATEST_S = 1e11


@dataclass(frozen=True)
class ResponseTimeMetric(ItemMetric):
    """Seconds from question to answer: the recorded duration, or the span of the trace's timestamps.

    Reads ``trace.metadata["duration_s"]``, then ``outcome.elapsed_s``, then first to last event.

    >>> events = [{"type": "message", "timestamp": 10.0}, {"type": "message", "timestamp": 12.5}]
    >>> ResponseTimeMetric().evaluate({"id": "q1"}, {"events": events}, "done").value
    2.5
    """

    info = MetricInfo(
        name="response_time",
        family="operational",
        summary="Seconds from question to answer.",
        direction="lower",
        range=(0.0, None),
        unit="s",
        inputs=("trace.metadata.duration_s or outcome.elapsed_s or trace timestamps",),
        detail_keys=("source",),
        backend="recorded",
        trust={"recorded": "recorded"},
    )
    name = info.name

    def score_item(self, item: Item) -> MetricResult:
        """Take the recorded duration, else the time between the first and the last event."""
        for place, value in (
            ("trace.metadata['duration_s']", item.trace_metadata.get("duration_s")),
            ("outcome.elapsed_s", item.outcome.elapsed_s),
        ):
            recorded = number_at(place, value)
            if recorded is not None:
                detail = {"source": place, "backend": "recorded", "why": f"{amount(recorded)} s, recorded in {place}"}
                return MetricResult(self.name, recorded, detail)
        times = [event.timestamp for event in item.events if event.timestamp is not None]
        if len(times) < 2:
            return self.unscored("no duration recorded, and fewer than two events carry a timestamp")
        if max(times) > _LATEST_S:
            raise InputProblem(
                f"event timestamps must be in seconds since 1970; received {max(times):.0f}, "
                "which looks like milliseconds"
            )
        elapsed = max(times) - min(times)
        why = f"{amount(elapsed)} s from the first to the last of {len(times):,} events"
        return MetricResult(self.name, elapsed, {"source": "event timestamps", "backend": "recorded", "why": why})
