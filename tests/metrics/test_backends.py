"""Quality backends as installed packages bring them, through the entry-point group ``agentunit.backends``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

import agentunit
from agentunit import plugins
from agentunit.backends import quality
from agentunit.backends.quality import BackendUnavailable, QualityQuestion, Verdict, resolve_backend
from agentunit.core.case import DatasetCase
from agentunit.core.records import Outcome
from agentunit.core.trace import TraceLog
from agentunit.metrics.builtin import (
    AnswerCorrectnessMetric,
    FaithfulnessMetric,
    HallucinationRateMetric,
    RetrievalQualityMetric,
)
from agentunit.metrics.inputs import Item

GROUP = "agentunit.backends"

# A backend that keeps what it was asked. It scores an answer by the number it holds: "0.25" scores 0.25.
BACKEND_SOURCE = """
from agentunit.backends.quality import Verdict

asked = []
made = 0


class Backend:
    name = {name!r}
    measures = frozenset({measures!r})

    def __init__(self):
        global made
        made += 1

    def unready(self):
        return {unready}

    def judge(self, measure, questions):
        asked.append((measure, list(questions)))
        return {verdicts}
"""
NUMBER_IN_THE_ANSWER = "[Verdict(float(q.answer), {'measure': measure}) for q in questions]"
ALL_MEASURES = ("faithfulness", "answer_correctness", "retrieval_quality")
METRICS = [FaithfulnessMetric, AnswerCorrectnessMetric, HallucinationRateMetric, RetrievalQualityMetric]

Offer = Callable[..., str]


@pytest.fixture
def offer(install_package: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Offer:
    """Install a package with one backend; gives the name of its module, which remembers what it was asked."""
    monkeypatch.delenv(quality.BACKEND_VARIABLE)
    find = plugins.installed
    # Backends that happen to be installed where the tests run must not take part, nor AgentUnit's own.
    monkeypatch.setattr(quality, "_OWN_BACKENDS", {})
    monkeypatch.setattr(
        plugins, "installed", lambda *group: [each for each in find(*group) if each.target.startswith("backend_")]
    )

    def install(
        name: str,
        *,
        measures: tuple[str, ...] = ALL_MEASURES,
        unready: str = "None",
        verdicts: str = NUMBER_IN_THE_ANSWER,
        source: str | None = None,
        target: str = "Backend",
    ) -> str:
        module = f"backend_{name.replace('-', '_')}"
        code = (
            source
            if source is not None
            else BACKEND_SOURCE.format(name=name, measures=measures, unready=unready, verdicts=verdicts)
        )
        install_package(f"{name}-backend", modules={module: code}, entry_points={GROUP: {name: f"{module}:{target}"}})
        return module

    return install


def item(answer: Any = "0.25", context: Any = ("Paris",), expected: Any = "Paris", query: str = "?") -> Item:
    return Item(DatasetCase("q1", query, expected_output=expected, context=list(context)), TraceLog(), answer)


def evaluate(metric: Any, given: Item | None = None) -> Any:
    given = given or item()
    return metric.evaluate(given.case, given.trace, given.outcome)


# Which backend


@pytest.mark.parametrize("backend", ["auto", "local"])
def test_auto_and_the_name_both_find_an_installed_backend(offer: Offer, backend: str) -> None:
    module = offer("local")
    values = {metric(backend=backend).name: evaluate(metric(backend=backend)).value for metric in METRICS}
    assert values == {
        "faithfulness": 0.25,
        "answer_correctness": 0.25,
        "retrieval_quality": 0.25,
        "hallucination_rate": 0.75,  # what faithfulness leaves
    }
    measures = [measure for measure, _ in sys.modules[module].asked]
    assert measures == ["faithfulness", "answer_correctness", "faithfulness", "retrieval_quality"]
    assert sys.modules[module].made == 1


@pytest.mark.usefixtures("offer")
def test_auto_is_the_default_and_falls_back_to_lexical_without_any() -> None:
    for metric in METRICS:
        assert metric().backend == "auto"
        assert evaluate(metric()).detail["backend"] == "lexical"


def test_auto_prefers_ragas_then_a_judge_then_local_and_takes_no_other_unasked(offer: Offer) -> None:
    offer("another")
    assert evaluate(FaithfulnessMetric()).detail["backend"] == "lexical"
    assert evaluate(FaithfulnessMetric(backend="another")).detail["backend"] == "another"
    for name in ("local", "judge", "ragas"):
        offer(name)
        assert evaluate(FaithfulnessMetric()).detail["backend"] == name


@pytest.mark.parametrize(
    ("automatic", "unready", "taken"),
    [("True", "None", "ragas"), ("False", "None", "judge"), ("True", "'set AGENTUNIT_JUDGE_MODEL'", "judge")],
    ids=["ready", "only by its name", "not ready"],
)
def test_auto_goes_on_to_the_judge(offer: Offer, automatic: str, unready: str, taken: str) -> None:
    offer("judge")
    offer("local")
    source = BACKEND_SOURCE.format(name="ragas", measures=ALL_MEASURES, unready=unready, verdicts=NUMBER_IN_THE_ANSWER)
    offer("ragas", source=f"{source}\n    automatic = {automatic}\n")
    assert evaluate(FaithfulnessMetric()).detail["backend"] == taken
    if unready == "None":
        assert evaluate(FaithfulnessMetric(backend="ragas")).detail["backend"] == "ragas"


def test_what_does_not_measure_this_leaves_it_to_the_next(offer: Offer) -> None:
    offer("judge")
    offer("ragas", measures=("faithfulness",))
    assert evaluate(FaithfulnessMetric()).detail["backend"] == "ragas"
    assert evaluate(AnswerCorrectnessMetric()).detail["backend"] == "judge"


def test_auto_passes_over_what_is_not_ready(offer: Offer) -> None:
    offer("judge", unready="'set AGENTUNIT_JUDGE_MODEL'")
    assert evaluate(FaithfulnessMetric()).detail["backend"] == "lexical"
    offer("local")
    assert evaluate(FaithfulnessMetric()).detail["backend"] == "local"


def test_of_two_sizes_auto_takes_the_larger_and_each_has_its_name(offer: Offer) -> None:
    offer("local")
    offer("local-large")
    assert evaluate(FaithfulnessMetric()).detail["backend"] == "local-large"
    assert evaluate(FaithfulnessMetric(backend="local")).detail["backend"] == "local"


def test_a_larger_model_that_is_not_there_is_named_with_its_command(offer: Offer) -> None:
    offer("local")
    with pytest.raises(BackendUnavailable, match=r"received 'local-large'; pip install .*agentunit-local-large"):
        FaithfulnessMetric(backend="local-large")


def test_auto_passes_over_what_does_not_measure_this(offer: Offer) -> None:
    offer("local", measures=("faithfulness",))
    assert evaluate(FaithfulnessMetric()).detail["backend"] == "local"
    assert evaluate(HallucinationRateMetric()).detail["backend"] == "local"
    assert evaluate(AnswerCorrectnessMetric()).detail["backend"] == "lexical"


@pytest.mark.parametrize(
    "source",
    [
        "raise RuntimeError('out of order')",
        "import a_package_that_is_not_there",
        "",
        "def Backend(): raise OSError('no weights')",
        BACKEND_SOURCE.format(name="judge", measures=ALL_MEASURES, unready="1 / 0", verdicts=NUMBER_IN_THE_ANSWER),
        "class Backend:\n    name = 'judge'\n",
    ],
    ids=["raises", "misses a dependency", "misses the class", "fails when made", "cannot say if ready", "no backend"],
)
def test_auto_passes_over_what_is_broken(offer: Offer, source: str) -> None:
    offer("judge", source=source)
    offer("local")
    assert evaluate(FaithfulnessMetric()).detail["backend"] == "local"
    run = agentunit.score([item_record()], [FaithfulnessMetric()])
    assert [scores.scores["faithfulness"].backend for scores in run] == ["local"]


def test_auto_names_a_backend_that_does_not_load(offer: Offer, capsys: pytest.CaptureFixture[str]) -> None:
    offer("local", source="raise RuntimeError('no weights')")
    for _ in range(2):
        assert evaluate(FaithfulnessMetric()).detail["backend"] == "lexical"
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("warning: backend 'local' of local-backend 1.0 does not load: RuntimeError: no weights")


def item_record(answer: str = "0.25") -> tuple[Any, Any, Any]:
    given = item(answer)
    return given.case, given.trace, given.outcome


def test_a_backend_that_is_named_must_be_ready(offer: Offer) -> None:
    offer("judge", unready="'set AGENTUNIT_JUDGE_MODEL'")
    with pytest.raises(
        BackendUnavailable, match=r"FaithfulnessMetric: .*'judge' cannot run: set AGENTUNIT_JUDGE_MODEL"
    ):
        FaithfulnessMetric(backend="judge")


def test_a_backend_that_is_named_must_measure_this(offer: Offer) -> None:
    offer("local", measures=("faithfulness",))
    HallucinationRateMetric(backend="local")
    with pytest.raises(BackendUnavailable, match="backend 'local' does not measure answer_correctness"):
        AnswerCorrectnessMetric(backend="local")


def test_a_backend_that_is_named_must_load(offer: Offer) -> None:
    offer("judge", source="raise RuntimeError('out of order')")
    with pytest.raises(
        BackendUnavailable, match=r"backend 'judge' of judge-backend 1\.0 does not load: RuntimeError: out of order"
    ):
        FaithfulnessMetric(backend="judge")


def test_an_unknown_backend_suggests_the_nearest(offer: Offer) -> None:
    offer("local")
    with pytest.raises(
        BackendUnavailable, match=r"one of auto, lexical, .*local.*; received 'locla'; did you mean 'local'"
    ):
        FaithfulnessMetric(backend="locla")
    with pytest.raises(BackendUnavailable, match="did you mean 'lexical'"):
        FaithfulnessMetric(backend="lexicl")
    with pytest.raises(BackendUnavailable, match=r"received 'zzzz'$"):
        FaithfulnessMetric(backend="zzzz")


def test_lexical_asks_for_nothing_to_be_imported(offer: Offer) -> None:
    module = offer("local")
    for metric in METRICS:
        assert evaluate(metric(backend="lexical")).detail["backend"] == "lexical"
    assert module not in sys.modules
    assert resolve_backend("lexical", "faithfulness", "me") is None
    assert module not in sys.modules


def test_naming_one_backend_imports_no_other(offer: Offer) -> None:
    local, other = offer("local"), offer("other")
    evaluate(FaithfulnessMetric(backend="local"))
    assert local in sys.modules
    assert other not in sys.modules


# What it is asked


def test_the_question_holds_what_the_case_holds(offer: Offer) -> None:
    module = offer("local")
    evaluate(AnswerCorrectnessMetric(), item("0.5", ["a", "b"], ["x", "y"], "Where?"))
    [(measure, [question])] = sys.modules[module].asked
    assert measure == "answer_correctness"
    assert isinstance(question, QualityQuestion)
    assert (question.question, list(question.context), question.answer) == ("Where?", ["a", "b"], "0.5")
    assert list(question.expected) == ["x", "y"]


def test_batches_keep_their_order_and_leave_out_what_misses_an_input(offer: Offer) -> None:
    module = offer("local")
    items = [item("0.1"), item(Outcome()), item("0.2"), item("0.3", context=()), item(None), item("0.4")]
    results = FaithfulnessMetric().evaluate_batch(items)
    assert [result.value for result in results] == [0.1, None, 0.2, None, None, 0.4]
    [(_, questions)] = sys.modules[module].asked
    assert [question.answer for question in questions] == ["0.1", "0.2", "0.4"]
    for result in results:
        assert set(result.detail) >= {"answer", "references", "backend"}
        assert (result.value is None) is ("reason" in result.detail)


def test_nothing_is_asked_when_nothing_can_be_judged(offer: Offer) -> None:
    module = offer("local")
    assert [r.value for r in FaithfulnessMetric().evaluate_batch([item(None), item(None)])] == [None, None]
    assert evaluate(FaithfulnessMetric(), item(None)).value is None
    assert sys.modules[module].asked == []


def test_a_batch_equals_one_by_one(offer: Offer) -> None:
    offer("local")
    items = [item("0.1"), item(None), item("0.9")]
    for metric in METRICS:
        assert metric().evaluate_batch(items) == [metric().measure(each) for each in items]


def test_a_run_asks_in_batches(offer: Offer) -> None:
    module = offer("local")
    records = [item_record(str(position / 10)) for position in range(5)]
    run = agentunit.score(records, [FaithfulnessMetric()], batch_size=2)
    assert [scores.scores["faithfulness"].value for scores in run] == [0.0, 0.1, 0.2, 0.3, 0.4]
    assert [len(questions) for _, questions in sys.modules[module].asked] == [2, 2, 1]


# What it answers


def test_the_verdicts_detail_stands_beside_what_is_always_shown(offer: Offer) -> None:
    offer("local", verdicts="[Verdict(0.5, {'claims': 3, 'backend': 'liar'}) for q in questions]")
    detail = evaluate(FaithfulnessMetric()).detail
    always = {"answer": "0.25", "references": ["Paris"], "sources": ["context[0]"]}
    assert detail == {**always, "claims": 3, "backend": "local", "why": 'backend "local" says 0.5'}


def test_a_judged_score_may_be_gated_although_the_lexical_one_may_not(offer: Offer) -> None:
    offer("local")
    [scores] = agentunit.score([item_record()], [FaithfulnessMetric()])
    assert (scores.scores["faithfulness"].backend, scores.scores["faithfulness"].status) == ("local", "ok")
    [scores] = agentunit.score([item_record()], [FaithfulnessMetric(backend="lexical")])
    assert scores.scores["faithfulness"].status == "informational"


def test_a_verdict_of_none_keeps_its_reason(offer: Offer) -> None:
    offer("local", verdicts="[Verdict(None, {'reason': 'too long'}) for q in questions]")
    for metric in METRICS:
        result = evaluate(metric())
        assert (result.value, result.detail["reason"], result.detail["backend"]) == (None, "too long", "local")


def test_a_verdict_of_none_without_a_reason_still_gets_one(offer: Offer) -> None:
    offer("local", verdicts="[Verdict(None) for q in questions]")
    assert evaluate(FaithfulnessMetric()).detail.get("reason")


def test_what_could_not_be_asked_names_the_backend_that_would_have_been(offer: Offer) -> None:
    offer("local")
    assert evaluate(FaithfulnessMetric(backend="local"), item(None)).detail["backend"] == "local"


@pytest.mark.parametrize("value", ["float('nan')", "float('inf')", "1.3", "-0.2", "'high'"])
@pytest.mark.parametrize("metric", [FaithfulnessMetric, HallucinationRateMetric])
def test_a_verdict_outside_its_range_never_becomes_a_score(offer: Offer, metric: Any, value: str) -> None:
    offer("local", verdicts=f"[Verdict({value}) for q in questions]")
    [scores] = agentunit.score([item_record()], [metric()])
    [score] = scores.scores.values()
    assert score.value is None
    assert score.status == "error"
    try:
        result = evaluate(metric())
    except (TypeError, ValueError):
        return  # refused aloud
    assert result.value is None or (isinstance(result.value, float) and 0 <= result.value <= 1)


@pytest.mark.parametrize(
    "verdicts", ["[Verdict(0.5)] * (len(questions) + 1)", "[Verdict(0.5)] * (len(questions) - 1)", "[]", "None"]
)
def test_a_wrong_number_of_verdicts_is_an_error_and_never_shifts_them(offer: Offer, verdicts: str) -> None:
    offer("local", verdicts=verdicts)
    run = agentunit.score([item_record(), item_record()], [FaithfulnessMetric()])
    for scores in run:
        score = scores.scores["faithfulness"]
        assert (score.value, score.status) == (None, "error")
        assert score.result.detail["error"]["message"]


def test_one_question_it_cannot_answer_does_not_take_the_batch_along(offer: Offer) -> None:
    offer("local")
    run = agentunit.score(
        [item_record("0.5"), item_record("not a number"), item_record("0.75")], [FaithfulnessMetric()]
    )
    scores = [case.scores["faithfulness"] for case in run]
    assert [score.value for score in scores] == [0.5, None, 0.75]
    assert [score.status for score in scores] == ["ok", "error", "ok"]
    assert scores[1].result.detail["error"]["type"] == "ValueError"
    assert run.summary().n_score_errors == 1


def test_numbers_of_a_models_library_are_numbers(offer: Offer) -> None:
    pytest.importorskip("numpy")
    offer("local", verdicts="[Verdict(__import__('numpy').float32(0.5)) for q in questions]")
    result = evaluate(FaithfulnessMetric())
    assert result.value == 0.5
    assert type(result.value) is float


def test_verdicts_are_plain_values() -> None:
    assert Verdict(0.5) == Verdict(0.5, {})
    assert Verdict(None).detail is not Verdict(None).detail
