from __future__ import annotations

from math import isfinite
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentunit.core.records import Outcome
from agentunit.core.trace import TraceEvent, TraceLog
from agentunit.metrics.timing import ResponseTimeMetric


def trace_at(*timestamps: Any, **metadata: Any) -> TraceLog:
    return TraceLog([TraceEvent("message", {}, timestamp) for timestamp in timestamps], metadata)


TABLE = [
    # trace, outcome, seconds, where they stand
    (trace_at(10.0, 20.0, duration_s=3.5), Outcome(elapsed_s=7.0), 3.5, "trace.metadata['duration_s']"),
    (trace_at(10.0, 20.0), Outcome(elapsed_s=7.0), 7.0, "outcome.elapsed_s"),
    (trace_at(10.0, 12.5, 20.0), Outcome(), 10.0, "event timestamps"),
    (trace_at(20.0, 10.0, 12.5), None, 10.0, "event timestamps"),  # the span, whatever the order of the events
    (trace_at(10.0, None, 12.5), "done", 2.5, "event timestamps"),
    (trace_at(10.0, 10.0), None, 0.0, "event timestamps"),
    (trace_at(duration_s=0), None, 0.0, "trace.metadata['duration_s']"),
    (trace_at(10.0, 20.0, duration_s=None), Outcome(elapsed_s=0.0), 0.0, "outcome.elapsed_s"),
    (trace_at("1970-01-01T00:00:10Z", "1970-01-01T00:00:12.500Z"), None, 2.5, "event timestamps"),
]


@pytest.mark.parametrize(("trace", "outcome", "seconds", "source"), TABLE)
def test_response_time(trace: TraceLog, outcome: Any, seconds: float, source: str) -> None:
    result = ResponseTimeMetric().evaluate(None, trace, outcome)
    assert result.value == seconds
    assert result.detail["source"] == source
    assert result.detail["backend"] == "recorded"


@pytest.mark.parametrize("trace", [TraceLog(), trace_at(10.0), trace_at(None, None), trace_at(10.0, None)])
def test_unknown_times_are_none_with_a_reason(trace: TraceLog) -> None:
    result = ResponseTimeMetric().evaluate(None, trace, None)
    assert result.value is None
    assert "timestamp" in result.detail["reason"]
    assert result.detail["source"] is None


@pytest.mark.parametrize("bad", ["fast", -1, True, float("nan"), float("inf"), [3]])
@pytest.mark.parametrize("place", ["trace.metadata['duration_s']", "outcome.elapsed_s"])
def test_a_duration_that_is_none_names_its_place(bad: Any, place: str) -> None:
    in_trace = place.startswith("trace")
    trace = trace_at(1.0, 2.0, duration_s=bad) if in_trace else trace_at(1.0, 2.0)
    result = ResponseTimeMetric().evaluate(None, trace, Outcome(elapsed_s=None if in_trace else bad))
    assert result.value is None
    assert place in result.detail["reason"]
    assert result.detail["error"]["type"] == "InputProblem"


@pytest.mark.parametrize(("latest", "usable"), [(1e10, True), (9.9e10, True), (1.7e12, False), (1.7e18, False)])
def test_timestamps_in_milliseconds_or_finer_are_refused(latest: float, usable: bool) -> None:
    result = ResponseTimeMetric().evaluate(None, trace_at(latest - 512.0, latest), None)
    assert (result.value == 512.0) is usable
    assert ("looks like milliseconds" in result.detail.get("reason", "")) is not usable


def test_the_catalogs_name_stays_free_for_the_users_own() -> None:
    assert ResponseTimeMetric.name == "response_time"


@given(st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False), max_size=6))
def test_the_span_is_finite_and_never_negative(timestamps: list[float | None]) -> None:
    value = ResponseTimeMetric().evaluate(None, trace_at(*timestamps), None).value
    known = [timestamp for timestamp in timestamps if timestamp is not None]
    if len(known) < 2:
        assert value is None
    else:
        assert value is None or (isfinite(value) and value == max(known) - min(known) >= 0)
