"""Metrics whose service answers while the engine goes on: results in order, and nothing asked twice."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentunit import CompositeMetric, DatasetCase, MetricResult, Record, score
from agentunit.engine.scoring.judging import cases_under_way, judge_run
from agentunit.metrics.started import StartedBatch

MOST = 512
Answer = Callable[[str], Any]


class Service:
    """Answers when it is told to, by default at once. It keeps what it was asked, and what nobody waits for."""

    def __init__(self, answer: Answer = lambda case_id: float(case_id[1:])) -> None:
        self.asked: list[list[str]] = []
        self.waiting: list[tuple[Future[Any], list[str]]] = []
        self.answer = answer
        self.at_once = True

    def start(self, case_ids: list[str]) -> Future[Any]:
        self.asked.append(case_ids)
        future: Future[Any] = Future()
        if self.at_once:
            self.settle(future, case_ids)
        else:
            self.waiting.append((future, case_ids))
        return future

    def settle(self, future: Future[Any], case_ids: list[str]) -> None:
        try:
            future.set_result([self.answer(each) for each in case_ids])
        except Exception as error:  # noqa: BLE001  # what the service raises comes out of the future
            future.set_exception(error)

    @property
    def n_asked(self) -> int:
        return sum(map(len, self.asked))


class Served:
    """A metric that a service answers."""

    def __init__(self, service: Service, name: str = "served") -> None:
        self.service = service
        self.name = name

    def evaluate(self, case: Any, trace: Any, outcome: Any) -> MetricResult:
        raise AssertionError("asked one by one")

    def start_batch(self, items: Sequence[Any]) -> StartedBatch:
        answers = self.service.start([item.case.id for item in items])
        return StartedBatch(answers, lambda values: [MetricResult(self.name, value) for value in values])


class Batched:
    name = "batched"

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def evaluate(self, case: Any, trace: Any, outcome: Any) -> MetricResult:
        raise AssertionError("scored one by one")

    def evaluate_batch(self, items: Sequence[Any]) -> list[MetricResult]:
        self.sizes.append(len(items))
        return [MetricResult(self.name, 1.0) for _ in items]


def until(condition: Callable[[], bool]) -> None:
    """Wait until it holds; a minute is forever here."""
    deadline_s = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline_s, "it did not come to hold"
        time.sleep(0.005)


def records(n: int) -> Iterator[Record]:
    for position in range(n):
        yield Record(DatasetCase(f"q{position}"))


@given(st.integers(0, 40), st.integers(1, 9))
def test_every_case_is_asked_about_once_and_comes_out_in_order(n: int, batch_size: int) -> None:
    for beside in ([], [Batched()]):
        service = Service()
        cases = list(score(records(n), [Served(service), *beside], batch_size=batch_size))
        assert [case.case_id for case in cases] == [f"q{k}" for k in range(n)]
        assert [case.scores["served"].value for case in cases] == [float(k) for k in range(n)]
        assert [each for batch in service.asked for each in batch] == [f"q{k}" for k in range(n)]


def test_many_cases_are_under_way_before_the_first_answer_and_no_more_than_that() -> None:
    service = Service()
    service.at_once = False
    n_read = 0

    def counted() -> Iterator[Record]:
        nonlocal n_read
        for record in records(3 * MOST):
            n_read += 1
            yield record

    first: list[Any] = []
    stream = iter(score(counted(), [Served(service)]))
    thread = threading.Thread(target=lambda: first.append(next(stream)))
    thread.start()
    until(lambda: service.n_asked >= MOST)
    # Answered from the last to the first: results still come in the order of the dataset.
    for future, case_ids in reversed(list(service.waiting)):
        service.settle(future, case_ids)
    thread.join(60)
    assert first[0].case_id == "q0"
    assert n_read == service.n_asked == MOST
    service.at_once = True
    assert next(stream).case_id == "q1"
    assert n_read == MOST + 1


def test_while_answers_are_there_no_more_is_read_than_is_needed() -> None:
    taken = []

    def counted() -> Iterator[Record]:
        for record in records(20):
            taken.append(record.case.id)
            yield record

    for given_out, case in enumerate(score(counted(), [Served(Service())]), start=1):
        assert case.index == given_out - 1
        assert len(taken) <= given_out + 1


def test_several_served_metrics_overlap() -> None:
    one, other = Service(), Service()
    one.at_once = False
    other.at_once = False
    done: list[Any] = []
    run = score(records(5), [Served(one, "one"), Served(other, "other")])
    thread = threading.Thread(target=lambda: done.extend(run))
    thread.start()
    until(lambda: one.n_asked == other.n_asked == 5)
    for service in (other, one):
        for future, case_ids in service.waiting:
            service.settle(future, case_ids)
    thread.join(60)
    assert [set(case.scores) for case in done] == [{"one", "other"}] * 5


def test_a_metric_that_wants_batches_still_gets_them_beside_a_served_one() -> None:
    batched, service = Batched(), Service()
    list(score(records(10), [batched, Served(service)], batch_size=4))
    assert batched.sizes == [4, 4, 2]
    assert [len(batch) for batch in service.asked] == [4, 4, 2]


def failing_on(bad: str) -> Answer:
    def answer(case_id: str) -> float:
        if case_id == bad:
            raise ConnectionError("the service is gone")
        return 1.0

    return answer


def test_a_failure_is_not_asked_about_again() -> None:
    service = Service(failing_on("q1"))
    cases = list(score(records(3), [Served(service)]))
    assert service.asked == [["q0"], ["q1"], ["q2"]]
    assert [case.scores["served"].status for case in cases] == ["ok", "error", "ok"]
    assert cases[1].scores["served"].result.detail["error"] == {
        "type": "ConnectionError",
        "message": "the service is gone",
        "place": cases[1].scores["served"].result.detail["error"]["place"],
    }


def test_a_failed_batch_fails_its_cases_and_is_not_asked_about_again() -> None:
    service = Service(failing_on("q1"))
    cases = list(score(records(4), [Served(service), Batched()], batch_size=2))
    assert service.asked == [["q0", "q1"], ["q2", "q3"]]
    assert [case.scores["served"].status for case in cases] == ["error", "error", "ok", "ok"]


class Unstartable(Served):
    def start_batch(self, items: Sequence[Any]) -> StartedBatch:
        raise RuntimeError("no service was configured")


@pytest.mark.parametrize("batch_size", [1, 64])
def test_what_cannot_be_started_fails_with_its_reason(batch_size: int) -> None:
    run = score(records(3), [Unstartable(Service())], batch_size=batch_size)
    assert [case.scores["served"].status for case in run] == ["error"] * 3
    assert "no service was configured" in run.summary().unscored[0].reason


def test_too_few_answers_are_an_error() -> None:
    service = Service()
    service.start = lambda case_ids: _future([])  # type: ignore[method-assign]
    (case,) = score(records(1), [Served(service)])
    assert "start_batch returned 0 results for 1 items" in case.scores["served"].result.detail["reason"]


def _future(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return future


def test_a_run_that_is_given_up_cancels_what_is_under_way() -> None:
    service = Service()
    service.at_once = False
    stream = iter(score(records(40), [Served(service)]))
    thread = threading.Thread(target=lambda: next(stream))
    thread.start()
    until(lambda: service.n_asked == 40)
    service.settle(*service.waiting[0])
    thread.join(60)
    stream.close()  # type: ignore[attr-defined]
    assert [future.cancelled() for future, _ in service.waiting] == [False] + [True] * 39


def test_an_interrupt_while_waiting_comes_through_and_cancels_the_rest() -> None:
    service = Service()
    service.at_once = False

    class Interrupted(Served):
        def start_batch(self, items: Sequence[Any]) -> Any:
            started = super().start_batch(items)

            def interrupt() -> Any:
                raise KeyboardInterrupt

            started.result = interrupt  # type: ignore[method-assign]
            return started

    with pytest.raises(KeyboardInterrupt):
        list(score(records(3), [Interrupted(service)]))
    assert all(future.cancelled() for future, _ in service.waiting)


def test_a_source_that_fails_while_read_ahead_does_not_take_scores_along_silently() -> None:
    def broken() -> Iterator[Record]:
        yield from records(2)
        raise OSError("disk gone")

    service = Service()
    service.at_once = False
    with pytest.raises(OSError, match="disk gone"):
        list(score(broken(), [Served(service)]))
    assert all(future.cancelled() for future, _ in service.waiting)


def test_a_composite_of_served_metrics_is_under_way_too() -> None:
    service = Service(lambda case_id: 0.5)
    service.at_once = False
    half, done = Served(service, "half"), []

    class Whole(Batched):
        name = "whole"

        def evaluate(self, case: Any, trace: Any, outcome: Any) -> MetricResult:
            if case.id == "q1":
                raise ValueError("not this one")
            return MetricResult(self.name, 1.0)

    run = score(records(4), [CompositeMetric([half, Whole()])])
    thread = threading.Thread(target=lambda: done.extend(run))
    thread.start()
    until(lambda: service.n_asked == 4)
    for future, case_ids in service.waiting:
        service.settle(future, case_ids)
    thread.join(60)
    scores = [case.scores["composite"] for case in done]
    assert [(each.value, each.status) for each in scores] == [(0.75, "ok"), (None, "error"), (0.75, "ok"), (0.75, "ok")]
    assert "not this one" in scores[1].result.detail["reason"]


def test_without_a_judge_the_bound_is_the_usual_one() -> None:
    assert cases_under_way([Served(Service())]) == MOST


def test_runs_within_a_run_are_part_of_it() -> None:
    with judge_run(), judge_run([Served(Service())]):
        assert len(list(score(records(2), [Served(Service())]))) == 2
