"""A batch that a service answers: its results come through, whenever they land."""

from __future__ import annotations

import threading
from concurrent.futures import CancelledError, Future
from typing import Any

import pytest

from agentunit.core.results import MetricResult
from agentunit.metrics import started
from agentunit.metrics.started import StartedBatch


@pytest.fixture(autouse=True)
def _short_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(started, "_TICK_S", 0.001)


def results_of(values: list[float]) -> list[MetricResult]:
    return [MetricResult("mine", value) for value in values]


class LandsWhenLookedAt(Future[list[float]]):
    """Its result is there as soon as somebody has looked so many times whether it is."""

    def __init__(self, n_looks: int) -> None:
        super().__init__()
        self._n_left = n_looks

    def done(self) -> bool:
        self._n_left -= 1
        if self._n_left < 0 and not super().done():
            self.set_result([0.5])
        return super().done()


@pytest.mark.parametrize("n_looks", [0, 1, 2, 5])
def test_a_result_that_lands_at_the_end_of_a_wait_is_not_lost(n_looks: int) -> None:
    assert [each.value for each in StartedBatch(LandsWhenLookedAt(n_looks), results_of).result()] == [0.5]


def test_waiting_goes_on_for_as_many_ticks_as_it_takes() -> None:
    answers: Future[list[float]] = Future()
    waited = threading.Event()

    def land() -> None:
        waited.wait(10)
        answers.set_result([0.25])

    threading.Thread(target=land, daemon=True).start()
    ticks = 0

    def counting(futures: Any, timeout: float) -> Any:
        nonlocal ticks
        ticks += 1
        if ticks == 3:
            waited.set()
        return real_wait(futures, timeout=10 if ticks >= 3 else timeout)

    real_wait = started.wait
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(started, "wait", counting)
        assert [each.value for each in StartedBatch(answers, results_of).result()] == [0.25]
    assert ticks == 3


@pytest.mark.parametrize("error", [TimeoutError("the service timed out"), ValueError("no")])
def test_what_the_service_raised_is_raised_and_is_no_reason_to_wait_on(error: Exception) -> None:
    answers: Future[Any] = Future()
    answers.set_exception(error)
    with pytest.raises(type(error), match=str(error)):
        StartedBatch(answers, results_of).result()


def test_a_timeout_while_results_are_made_is_raised_once() -> None:
    answers: Future[Any] = Future()
    answers.set_result([0.5])
    n_calls = 0

    def finish(values: list[float]) -> list[MetricResult]:
        nonlocal n_calls
        n_calls += 1
        raise TimeoutError("slow")

    with pytest.raises(TimeoutError, match="slow"):
        StartedBatch(answers, finish).result()
    assert n_calls == 1


def test_a_cancelled_batch_ends_the_wait() -> None:
    answers: Future[Any] = Future()
    batch = StartedBatch(answers, results_of)
    batch.cancel()
    with pytest.raises(CancelledError):
        batch.result()
