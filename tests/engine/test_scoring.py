"""The engine: a stream in, a stream out, whatever the metrics do."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentunit import DatasetCase, MetricInfo, MetricResult, Outcome, Record, Run, TraceLog, read_records, score
from agentunit.core.codec import RecordError
from agentunit.core.results import InputError, RunSummary, decode_case_scores, encode_json
from agentunit.engine.scoring import records as scoring
from agentunit.metrics import base
from agentunit.metrics.builtin import FaithfulnessMetric

LEXICAL = FaithfulnessMetric(backend="lexical")


class Metric:
    """A user's metric: the number in the case's metadata, or whatever a test puts in place of that."""

    name = "mine"

    def __init__(self) -> None:
        self.seen: list[str] = []

    def evaluate(self, case: Any, trace: Any, outcome: Any) -> MetricResult:
        self.seen.append(case.id)
        return MetricResult(self.name, case.metadata.get("value"), dict(case.metadata.get("detail", {})))


class Batched(Metric):
    name = "batched"

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[list[str]] = []

    def evaluate_batch(self, items: Any) -> Any:
        self.batches.append([item.case.id for item in items])
        return [MetricResult(self.name, item.case.metadata.get("value")) for item in items]


def records(values: Any) -> Iterator[Record]:
    for position, value in enumerate(values):
        yield Record(DatasetCase(f"q{position}", metadata={"value": value}))


def scored_with(metric: Any, values: Any, **options: Any) -> list[Any]:
    return [case.scores[metric.name] for case in score(records(values), [metric], **options)]


def returning(result: Any) -> Any:
    class Returning:
        name = "returning"

        def evaluate(self, case: Any, trace: Any, outcome: Any) -> Any:
            return result() if callable(result) else result

    return Returning()


def raising(error: BaseException) -> Any:
    class Raising:
        name = "raising"

        def evaluate(self, case: Any, trace: Any, outcome: Any) -> Any:
            raise error

    return Raising()


# Streaming


def test_nothing_is_read_before_it_is_asked_for() -> None:
    def explode() -> Iterator[Record]:
        raise AssertionError("read too early")
        yield

    run = score(explode(), [Metric()])
    assert (run.n_cases, run.n_input_errors) == (0, 0)


@pytest.mark.parametrize("metric_class", [Metric, Batched])
@pytest.mark.parametrize("batch_size", [1, 3, 64])
def test_no_more_is_read_ahead_than_a_batch(metric_class: Any, batch_size: int) -> None:
    taken = 0

    def counted() -> Iterator[Record]:
        nonlocal taken
        for record in records(range(200)):
            taken += 1
            yield record

    for given_out, case in enumerate(score(counted(), [metric_class()], batch_size=batch_size), start=1):
        assert case.index == given_out - 1
        assert given_out <= taken <= given_out + batch_size - 1


def test_an_endless_stream_can_be_scored_in_part() -> None:
    def endless() -> Iterator[Record]:
        while True:
            yield from records([1.0])

    stream = iter(score(endless(), [Metric(), Batched()]))
    assert [next(stream).index for _ in range(100)] == list(range(100))


def test_order_indices_and_ids() -> None:
    for metric in (Metric(), Batched()):
        cases = list(score(records([0.1, 0.2, 0.3, 0.4, 0.5]), [metric], batch_size=2))
        assert [case.index for case in cases] == [0, 1, 2, 3, 4]
        assert [case.case_id for case in cases] == ["q0", "q1", "q2", "q3", "q4"]
        assert [case.scores[metric.name].value for case in cases] == [0.1, 0.2, 0.3, 0.4, 0.5]


def test_a_run_is_iterated_once() -> None:
    run = score(records([1.0, 0.0]), [Metric()])
    assert len(list(run)) == 2
    assert list(run) == []


def test_memory_stays_flat_over_a_long_run() -> None:
    def many(n: int) -> Iterator[Any]:
        for k in range(n):
            if k % 10 == 9:
                yield {"query": "no record"}
            events = [{"type": "tool_call", "payload": {"name": "x", "status": "success", "cost": k}}]
            answer = "Paris" if k % 3 else None
            yield {"case": {"id": k, "context": ["Paris"]}, "trace": {"events": events}, "outcome": answer}

    run = score(many(20_000), [LEXICAL, "tool_success", "cost"])
    used: dict[int, int] = {}
    tracemalloc.start()
    try:
        for case in run:
            if case.index in (12_000, 19_000):  # by the first, every sample and list that is kept is full
                gc.collect()
                used[case.index] = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert used[19_000] - used[12_000] < 50_000
    assert used[19_000] < 3_000_000
    assert run.summary().n_cases == 20_000


def test_summary_after_partial_iteration_covers_everything_once() -> None:
    metric = Metric()
    run = score(records([1.0, 0.0, 1.0, 0.0]), [metric], batch_size=3)
    for _ in run:
        break
    assert run.n_cases == 1
    summary = run.summary()
    assert (summary.n_cases, summary.metrics[0].n_scored, summary.metrics[0].mean) == (4, 4, 0.5)
    assert metric.seen == ["q0", "q1", "q2", "q3"]
    assert run.summary().metrics == summary.metrics


MISSPELLED = [
    {"case": {"id": "q1", "expected_ouput": "4"}, "outcome": {"output": "4"}},
    {"case": {"id": "q2", "expected_ouput": "5"}, "outcom": {"output": "5"}},
    {"case": {"id": "q3", "mine": 1, "tool": "x", "tools": ["y"]}, "outcome": {"output": "4", "extras": 3}},
    ({"id": "q4", "querry": "?"}, None, "4"),
]


def test_a_misspelled_field_is_warned_of_once() -> None:
    with pytest.warns(UserWarning, match="^score: field ") as warned:
        assert len(list(score(MISSPELLED, ["exact_match"]))) == 4
    assert [str(each.message) for each in warned] == [
        "score: field case.expected_ouput is not read; did you mean 'expected_output'?",
        "score: field outcom is not read; did you mean 'outcome'?",
        "score: field case.querry is not read; did you mean 'query'?",
    ]


def test_objects_of_a_users_own_may_have_any_fields() -> None:
    case = SimpleNamespace(id="q1", query="?", extra={"expected_ouput": 4})
    assert len(list(score([(case, None, "4")], ["exact_match"]))) == 1


def test_a_warning_that_is_an_error_ends_the_run() -> None:
    # Warnings are errors in these tests; what is wrong with a record is not that it cannot be read.
    run = score(MISSPELLED, ["exact_match"])
    with pytest.raises(UserWarning, match="expected_ouput"):
        run.summary()
    assert run.n_input_errors == 0


def test_an_empty_input() -> None:
    run = score([], ["cost", Metric()])
    assert list(run) == []
    summary = run.summary()
    assert (summary.n_cases, summary.n_input_errors, summary.n_score_errors) == (0, 0, 0)
    assert [(row.metric, row.n_cases, row.n_scored, row.mean) for row in summary.metrics] == [
        ("cost", 0, 0, None),
        ("mine", 0, 0, None),
    ]


def test_an_error_of_the_source_itself_comes_through() -> None:
    def broken() -> Iterator[Record]:
        yield from records([1.0])
        raise OSError("disk gone")

    run = score(broken(), [Metric()])
    stream = iter(run)
    assert next(stream).case_id == "q0"
    with pytest.raises(OSError, match="disk gone"):
        next(stream)


# Metrics that keep state


class Counting(Metric):
    """Gives each case its number; a case met twice or out of order would show."""

    name = "counting"
    stateful = True

    def evaluate(self, case: Any, trace: Any, outcome: Any) -> MetricResult:
        super().evaluate(case, trace, outcome)
        if case.metadata.get("value") == "bad":
            raise ValueError("bad case")
        return MetricResult(self.name, float(len(self.seen)))


class CountingInBatches(Counting):
    def evaluate_batch(self, items: Any) -> Any:
        return [self.evaluate(item.case, item.trace, item.outcome) for item in items]


class CountingWithInfo(CountingInBatches):
    stateful = False
    info = MetricInfo("counting", "custom", "Counts.", stateful=True)


@pytest.mark.parametrize("metric_class", [Counting, CountingInBatches, CountingWithInfo])
@pytest.mark.parametrize("beside", [[], [Batched()]], ids=["alone", "beside a batched one"])
def test_a_stateful_metric_meets_each_case_once_in_order_whatever_fails(metric_class: Any, beside: Any) -> None:
    metric = metric_class()
    values = [1, "bad", 1, 1, "bad", 1, 1]
    cases = list(score(records(values), [metric, *beside], batch_size=3))
    assert metric.seen == [f"q{k}" for k in range(7)]
    assert [case.scores["counting"].value for case in cases] == [1.0, None, 3.0, 4.0, None, 6.0, 7.0]


# Batches


def test_batches_are_of_the_given_size() -> None:
    metric = Batched()
    scored_with(metric, range(7), batch_size=3)
    assert [len(batch) for batch in metric.batches] == [3, 3, 1]
    assert metric.seen == []


def test_a_batch_that_fails_is_scored_one_by_one() -> None:
    class Fragile(Batched):
        def evaluate_batch(self, items: Any) -> Any:
            super().evaluate_batch(items)
            if any(item.case.metadata["value"] == "bad" for item in items):
                raise SystemExit(3)
            return super().evaluate_batch(items)

        def evaluate(self, case: Any, trace: Any, outcome: Any) -> MetricResult:
            self.seen.append(case.id)
            if case.metadata["value"] == "bad":
                raise KeyError("bad")
            return MetricResult(self.name, case.metadata["value"])

    metric = Fragile()
    scores = scored_with(metric, [1.0, "bad", 0.5, 1.0, 0.25], batch_size=3)
    assert [each.value for each in scores] == [1.0, None, 0.5, 1.0, 0.25]
    assert [each.status for each in scores] == ["ok", "error", "ok", "ok", "ok"]
    assert metric.seen == ["q0", "q1", "q2"]  # the second batch was whole


@pytest.mark.parametrize(
    "make",
    [
        lambda results: results[:-1],
        lambda results: [*results, results[0]],
        lambda results: [],
        lambda results: None,
        lambda results: 5,
    ],
    ids=["one too few", "one too many", "none at all", "None", "a number"],
)
def test_a_wrong_number_of_results_is_not_shifted_onto_the_cases(make: Any) -> None:
    class Miscounting(Batched):
        def evaluate_batch(self, items: Any) -> Any:
            return make([MetricResult(self.name, 0.0) for _ in items])

    scores = scored_with(Miscounting(), [0.1, 0.2, 0.3])
    assert [each.value for each in scores] == [0.1, 0.2, 0.3]  # by evaluate, one by one


def test_a_batch_may_be_any_iterable_that_fails_late() -> None:
    class Lazy(Batched):
        def evaluate_batch(self, items: Any) -> Any:
            for item in items:
                yield MetricResult(self.name, 1 / item.case.metadata["value"])

        def evaluate(self, case: Any, trace: Any, outcome: Any) -> MetricResult:
            return MetricResult(self.name, 1 / case.metadata["value"])

    scores = scored_with(Lazy(), [1, 0, 4])
    assert [each.value for each in scores] == [1.0, None, 0.25]
    assert scores[1].result.detail["error"]["type"] == "ZeroDivisionError"


def test_a_bad_result_in_a_batch_harms_only_its_case() -> None:
    class Mixed(Batched):
        def evaluate_batch(self, items: Any) -> Any:
            return [MetricResult(self.name, 1.0), "not a result", MetricResult(self.name, float("nan"))]

    scores = scored_with(Mixed(), [1, 2, 3])
    assert [each.status for each in scores] == ["ok", "error", "error"]


def test_no_batch_is_asked_about_nothing() -> None:
    metric = Batched()
    run = score([{}, {}], [metric])
    assert list(run) == []
    assert metric.batches == []


# Metrics that fail


@pytest.mark.parametrize(
    "error",
    [ValueError("oh no"), KeyError("missing"), RecursionError("deep"), MemoryError(), SystemExit(2), StopIteration(5)],
    ids=lambda error: type(error).__name__,
)
def test_an_exception_becomes_an_error_score_with_type_message_and_place(error: BaseException) -> None:
    run = score(records([1.0, 2.0]), [raising(error), Metric()])
    cases = list(run)
    assert len(cases) == 2
    for case in cases:
        failed = case.scores["raising"]
        assert (failed.value, failed.status) == (None, "error")
        told = failed.result.detail["error"]
        assert told["type"] == type(error).__name__
        assert told["message"] == str(error)
        assert "test_scoring.py" in told["place"]
        assert "evaluate" in told["place"]
        assert type(error).__name__ in failed.result.detail["reason"]
        assert case.scores["mine"].status == "ok"
    summary = run.summary()
    assert summary.n_score_errors == run.n_score_errors == 2
    [row] = [row for row in summary.metrics if row.metric == "raising"]
    assert (row.status, row.n_scored, row.mean) == ("error", 0, None)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), GeneratorExit()], ids=lambda error: type(error).__name__)
def test_what_must_stop_a_run_stops_it(error: BaseException) -> None:
    with pytest.raises(type(error)):
        list(score(records([1.0]), [raising(error)]))


def test_an_exception_that_cannot_even_be_printed() -> None:
    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    [case] = score(records([1.0]), [raising(Unspeakable())])
    assert case.scores["raising"].status == "error"
    assert "Unspeakable" in case.scores["raising"].result.detail["reason"]


class Unhelpful:
    def __repr__(self) -> str:
        raise RuntimeError("no words")

    def __lt__(self, other: Any) -> bool:
        raise RuntimeError("no order")

    __gt__ = __lt__


@pytest.mark.parametrize(
    "result",
    [
        None,
        0.5,
        "0.5",
        {"value": 0.5},
        SimpleNamespace(name="x", value=0.5, detail={}),
        MetricResult("x", "0.5"),
        MetricResult("x", float("nan")),
        MetricResult("x", float("inf")),
        MetricResult("x", -float("inf")),
        MetricResult("x", 1e200),
        MetricResult("x", 10**400),
        MetricResult("x", [0.5]),
        MetricResult("x", 1j),
        MetricResult("x", Decimal("NaN")),
        MetricResult("x", Decimal("sNaN")),
        MetricResult("x", Unhelpful()),
        MetricResult("x", 0.5, None),
        MetricResult("x", 0.5, ["detail"]),
        Unhelpful(),
    ],
    ids=[
        "None", "a number", "a string", "a dict", "a lookalike", "a string value", "NaN", "infinity", "-infinity",
        "beyond what can be summed", "a huge integer", "a list value", "a complex value", "a decimal NaN",
        "a signalling NaN", "an unhelpful value", "no detail", "a list detail", "an unhelpful result",
    ],
)  # fmt: skip
def test_a_result_of_the_wrong_kind_becomes_an_error_score(result: Any) -> None:
    run = score(records([1.0, 1.0]), [returning(result), Metric()])
    cases = list(run)
    assert [case.scores["returning"].status for case in cases] == ["error", "error"]
    assert [case.scores["returning"].value for case in cases] == [None, None]
    assert [case.scores["mine"].value for case in cases] == [1.0, 1.0]
    assert cases[0].scores["returning"].result.detail["error"]["message"]
    assert run.summary().n_score_errors == 2


def test_arrays_in_place_of_a_value() -> None:
    numpy = pytest.importorskip("numpy")
    [case] = score(records([1.0]), [returning(MetricResult("x", numpy.array([0.5, 0.25])))])
    assert case.scores["returning"].status == "error"


@pytest.mark.parametrize(
    ("value", "number"), [(True, 1.0), (0, 0.0), (Fraction(1, 4), 0.25), (Decimal("0.5"), 0.5), (-3, -3.0)]
)
def test_numbers_of_any_kind_become_floats(value: Any, number: float) -> None:
    [case] = score(records([1.0]), [returning(lambda: MetricResult("x", value))])
    each = case.scores["returning"]
    assert (each.value, each.status) == (number, "ok")
    assert type(each.value) is float


def test_numpy_numbers_become_floats() -> None:
    numpy = pytest.importorskip("numpy")
    [case] = score(records([1.0]), [returning(lambda: MetricResult("x", numpy.float32(0.5)))])
    assert type(case.scores["returning"].value) is float


@pytest.mark.parametrize("backend", [["gpu"], {"name": "gpu"}, 5, None])
def test_a_backend_that_is_no_name_does_not_stop_the_run(backend: Any) -> None:
    [case] = score(records([1.0]), [returning(lambda: MetricResult("x", 0.5, {"backend": backend}))])
    assert isinstance(case.scores["returning"].backend, str)


# Statuses


@pytest.mark.parametrize(
    ("metric", "record", "status"),
    [
        ("exact_match", ({"id": "q", "expected_output": "4"}, None, "4"), "ok"),
        (LEXICAL, ({"id": "q", "context": ["a"]}, None, "a"), "informational"),
        (LEXICAL, ({"id": "q"}, None, "a"), "not_applicable"),
        ("cost", ({"id": "q"}, {"metadata": {"cost": "cheap"}}, "a"), "error"),
        (returning(MetricResult("x", None)), ({"id": "q"}, None, None), "not_applicable"),
        (returning(MetricResult("x", None, {"error": "timeout"})), ({"id": "q"}, None, None), "error"),
        (returning(MetricResult("x", 0.5, {"error": "retried"})), ({"id": "q"}, None, None), "ok"),
    ],
)
def test_statuses(metric: Any, record: Any, status: str) -> None:
    [case] = score([record], [metric])
    [each] = case.scores.values()
    assert each.status == status
    assert (each.value is None) is (status in ("not_applicable", "error"))
    assert each.elapsed >= 0


def test_what_was_not_scored_is_told_with_its_cases() -> None:
    values = [1.0, *[None] * 7]
    metric = Metric()
    summary = score(records(values), [metric, "cost"]).summary()
    mine, cost = summary.unscored
    assert (mine.metric, mine.status, mine.n_cases, mine.first_cases) == (
        "mine",
        "not_applicable",
        7,
        ["q1", "q2", "q3", "q4", "q5"],
    )
    assert mine.reason
    assert (cost.metric, cost.n_cases, cost.first_cases) == ("cost", 8, ["q0", "q1", "q2", "q3", "q4"])


def test_reasons_are_counted_apart_and_the_frequent_come_first() -> None:
    class Reasoned(Metric):
        def evaluate(self, case: Any, trace: Any, outcome: Any) -> MetricResult:
            return MetricResult(self.name, None, {"reason": case.metadata["value"]})

    summary = score(records(["rare", "often", "often", "often"]), [Reasoned()]).summary()
    assert [(entry.reason, entry.n_cases) for entry in summary.unscored] == [("often", 3), ("rare", 1)]
    many = score(records([f"reason {k}" for k in range(5000)]), [Reasoned()]).summary()
    assert len(many.unscored) < 200
    assert sum(entry.n_cases for entry in many.unscored) == 5000


def test_case_ids_in_a_summary_are_texts_whatever_the_case_has() -> None:
    numbered = [(SimpleNamespace(id=position, metadata={}), None, None) for position in (7, 8)]
    run = score(numbered, [Metric()])
    assert [case.case_id for case in run] == ["7", "8"]
    summary = run.summary()
    assert summary.unscored[0].first_cases == ["7", "8"]
    assert msgspec.json.decode(encode_json(summary), type=RunSummary) == summary


def test_worst_cases_are_texts_too() -> None:
    class Better(Metric):
        info = MetricInfo("mine", "custom", "Better is higher.", direction="higher", range=(0.0, 1.0))

    numbered = [(SimpleNamespace(id=k, metadata={"value": k / 10}), None, None) for k in (9, 1, 5)]
    [row] = score(numbered, [Better()]).summary().metrics
    assert row.worst_cases == ["1", "5", "9"]


def test_cases_without_an_id_are_numbered() -> None:
    cases = [{"case": {}}, {"case": {"id": ""}}, (None, None, None), {"case": {"id": 0}}]
    assert [case.case_id for case in score(cases, ["cost"])] == ["case-1", "case-2", "case-3", "0"]


# Backends apart


def test_scores_of_two_backends_are_two_rows_and_never_averaged() -> None:
    details = [{"backend": "judge"}, {"backend": "local"}, {"backend": "judge"}]
    cases = [
        Record(DatasetCase(f"q{k}", metadata={"value": value, "detail": detail}))
        for k, (value, detail) in enumerate(zip([1.0, 0.0, 0.5], details, strict=True))
    ]
    summary = score(cases, [Metric()]).summary()
    assert [(row.metric, row.backend, row.n_scored, row.n_cases, row.mean) for row in summary.metrics] == [
        ("mine", "judge", 2, 3, 0.75),
        ("mine", "local", 1, 3, 0.0),
    ]


def test_task_success_by_check_state_and_flag_are_three_rows() -> None:
    cases = [
        ({"id": "a", "metadata": {"expected_state": {}}}, None, {"state": {}}),
        ({"id": "b"}, None, {"success": False}),
        ({"id": "c", "metadata": {"check": lambda output: True}}, None, "x"),
    ]
    rows = score(cases, ["task_success"]).summary().metrics
    assert {(row.backend, row.mean) for row in rows} == {("state", 1.0), ("outcome", 0.0), ("check", 1.0)}


def test_backend_and_version_stand_on_each_score() -> None:
    class Versioned(Metric):
        version = "2.1"

    [case] = score(records([1.0]), [Versioned(), LEXICAL])
    assert (case.scores["mine"].backend, case.scores["mine"].version) == ("custom", "2.1")
    assert case.scores["faithfulness"].backend == "lexical"


# The aggregate, by hand


def test_the_summary_of_a_metric() -> None:
    [row] = score(records([0.0, 1.0, 1.0, 2.0]), [Metric()]).summary().metrics
    assert (row.n_scored, row.mean, row.minimum, row.maximum, row.total, row.p50) == (4, 1.0, 0.0, 2.0, 4.0, 1.0)
    assert row.exact_quantiles is True
    assert row.low is not None
    assert row.high is not None
    assert row.low <= 1.0 <= row.high


@given(st.lists(st.none() | st.floats(-1e6, 1e6), max_size=30), st.integers(1, 40))
@settings(deadline=None, max_examples=50)
def test_no_case_is_lost_or_counted_twice(values: list[float | None], batch_size: int) -> None:
    known = [value for value in values if value is not None]
    for metric in (Metric(), Batched()):
        run = score(records(values), [metric], batch_size=batch_size)
        assert [case.scores[metric.name].value for case in run] == values
        summary = run.summary()
        assert summary.n_cases == len(values)
        assert sum(entry.n_cases for entry in summary.unscored) == len(values) - len(known)
        [row] = summary.metrics
        assert row.n_scored == len(known)
        assert row.mean == (pytest.approx(sum(known) / len(known)) if known else None)


# What comes in


def test_records_of_every_shape_score_alike() -> None:
    case = DatasetCase("q1", context=["Paris"])
    plain = {"case": {"id": "q1", "context": ["Paris"]}, "trace": {}, "outcome": {"output": "Paris"}}
    shapes: list[Any] = [
        Record(case, TraceLog(), Outcome(output="Paris")),
        plain,
        (case, TraceLog(), "Paris"),
        [case, None, "Paris"],
        ({"id": "q1", "context": ["Paris"]}, [], {"output": "Paris"}),
        SimpleNamespace(case=SimpleNamespace(id="q1", context=["Paris"]), trace=None, outcome="Paris"),
    ]
    cases = list(score(shapes, [LEXICAL]))
    assert len(cases) == len(shapes)
    assert {(case.case_id, case.scores["faithfulness"].value) for case in cases} == {("q1", 1.0)}


@pytest.mark.parametrize(
    ("bad", "received"), [("records.jsonl", "str"), (b"x", "bytes"), ({"case": {}}, "dict"), (5, "int"), (None, "None")]
)
def test_what_is_no_collection_of_records(bad: Any, received: str) -> None:
    with pytest.raises(TypeError, match=f"score: records must be an iterable of records; received {received}"):
        score(bad, ["cost"])


@pytest.mark.parametrize("bad", [0, -1, True, 2.0, "8", None])
def test_batch_size_is_checked(bad: Any) -> None:
    with pytest.raises(ValueError, match="score: batch_size must be a whole number of at least 1; received"):
        score([], ["cost"], batch_size=bad)


def test_metrics_default_to_the_standard_set_and_may_be_one_name() -> None:
    assert len(score([]).metrics) == 5
    assert [metric.name for metric in score([], "cost").metrics] == ["cost"]
    assert isinstance(score([], "cost"), Run)


# Input that cannot be read

GOOD = {"case": {"id": "good"}}
BAD = {"case": {"id": 1.5}}


@pytest.mark.parametrize("metric_class", [Metric, Batched])
def test_what_cannot_be_read_is_collected_with_its_place(metric_class: Any) -> None:
    run = score([GOOD, GOOD, BAD, GOOD, 5, GOOD], [metric_class()], batch_size=4)
    assert [case.index for case in run] == [0, 1, 2, 3]
    assert run.n_input_errors == 2
    assert [(error.source, error.line) for error in run.input_errors] == [("records", 3), ("records", 5)]
    assert "case" in run.input_errors[0].reason
    assert "received int" in run.input_errors[1].reason
    summary = run.summary()
    assert (summary.n_cases, summary.n_input_errors) == (4, 2)
    assert summary.input_errors == run.input_errors


def test_errors_of_a_reader_pass_through_as_they_are() -> None:
    given_error = InputError("a.jsonl", 7, "not JSON")
    run = score([GOOD, given_error, GOOD], [Metric()])
    assert len(list(run)) == 2
    assert run.input_errors == [given_error]


def test_a_missing_file_is_an_input_error(tmp_path: Any) -> None:
    run = score(read_records(tmp_path / "nowhere.jsonl"), ["cost"])
    assert run.summary().n_input_errors == 1
    assert run.input_errors[0].reason == "no such file"


def test_input_errors_are_all_counted_but_not_all_kept() -> None:
    run = score([BAD] * 2500, [Metric()])
    summary = run.summary()
    assert summary.n_input_errors == 2500
    assert len(summary.input_errors) == len(run.input_errors) == scoring._INPUT_ERRORS_KEPT < 2500


@pytest.mark.parametrize("bad", [BAD, 5, {}, InputError("a.jsonl", 7, "not JSON")])
@pytest.mark.parametrize("metric_class", [Metric, Batched])
def test_strict_raises_on_what_cannot_be_read_after_what_could(bad: Any, metric_class: Any) -> None:
    run = score([GOOD, GOOD, bad, GOOD], [metric_class()], strict=True, batch_size=64)
    read: list[int] = []
    with pytest.raises(RecordError):
        read.extend(case.index for case in run)
    assert read == [0, 1]


def test_strict_is_no_different_where_all_can_be_read() -> None:
    assert score([GOOD, GOOD], [Metric()], strict=True).summary().n_cases == 2


class Treacherous:
    @property
    def case(self) -> Any:
        raise RuntimeError("no case today")


@pytest.mark.parametrize(
    "bad",
    [{"case": {"id": "q"}, "trace": [{"type": "x", "timestamp": 10**400}]}, Treacherous()],
    ids=["a time beyond any clock", "an object that fails"],
)
def test_no_record_however_odd_stops_the_run(bad: Any) -> None:
    run = score([GOOD, bad, GOOD], [Metric()])
    assert len(list(run)) == 2
    assert run.n_input_errors == 1


# On disk


def test_scores_of_every_kind_survive_the_scores_file() -> None:
    metrics = [LEXICAL, "cost", raising(ValueError("oh no")), returning(MetricResult("x", float("nan")))]
    for case in score([({"id": "q1", "context": ["a"]}, {"metadata": {"cost": -1}}, "a")], metrics):
        assert decode_case_scores(encode_json(case)) == case


def test_a_summary_survives_its_file() -> None:
    run = score([*records([1.0, None, float("nan")]), BAD], [Metric(), LEXICAL])
    summary = run.summary()
    assert msgspec.json.decode(encode_json(summary), type=RunSummary) == summary


@pytest.mark.parametrize("engine", ["spark", "ray://", 3])
def test_an_engine_that_is_none_is_refused(engine):
    with pytest.raises(ValueError, match="score: engine must be ray, or ray://HOST:PORT; received"):
        score([], ["cost"], engine=engine)


def test_a_metric_without_info_is_not_described_for_every_case(monkeypatch: pytest.MonkeyPatch) -> None:
    class Always:
        name = "always"

        def evaluate(self, case, trace, outcome):
            return MetricResult(self.name, 1.0)

    n_described = 0
    described = base.describe

    def counted(metric):
        nonlocal n_described
        n_described += 1
        return described(metric)

    monkeypatch.setattr(base, "describe", counted)
    records = [Record(DatasetCase(f"c{n}", "?"), TraceLog(), Outcome(output="yes")) for n in range(50)]
    assert len(list(score(records, [Always()]))) == 50
    assert n_described < 50
