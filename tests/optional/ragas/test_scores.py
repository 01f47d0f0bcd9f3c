"""RAGAS itself, asked through AgentUnit: its scores, and that they come from the texts it was given."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from judge_server import JudgeServer
from ragas_decisions import decide

import agentunit
from agentunit.addons.judge.client import JudgeClient
from agentunit.addons.judge.settings import JudgeSettings
from agentunit.addons.ragas._ragas_backend import RagasBackend
from agentunit.backends.quality import QualityQuestion
from agentunit.metrics.builtin import FaithfulnessMetric

pytestmark = pytest.mark.optional

QUESTION = "Where is Paris?"
PARIS = "Paris is in France."
BREAD = "Bread is baked in ovens."
RIVER = "The Seine is a river."
ALL_MEASURES = ("faithfulness", "answer_correctness", "retrieval_quality")


@pytest.fixture(autouse=True)
def _embeddings_only_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGENTUNIT_RAGAS_EMBEDDINGS", raising=False)
    monkeypatch.setattr("agentunit.addons.ragas._ragas_embeddings._local_embeddings", lambda: None)


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer(decide) as running:
        yield running


@pytest.fixture
def backend(server: JudgeServer) -> Iterator[RagasBackend]:
    client = JudgeClient(JudgeSettings(server.url, "judge-1", cache=None))
    yield RagasBackend(client)
    client.close()


def asked(answer: str, *context: str, expected: tuple[str, ...] = ()) -> QualityQuestion:
    return QualityQuestion(QUESTION, context or (PARIS, BREAD), answer, expected)


def values(backend: RagasBackend, measure: str, *questions: QualityQuestion) -> list[float | None]:
    return [verdict.value for verdict in backend.judge(measure, questions)]


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        (PARIS, 1.0),
        (f"{PARIS} {RIVER}", 0.5),
        (f"{PARIS} {BREAD} {RIVER}", 2 / 3),
        (RIVER, 0.0),
    ],
)
def test_faithfulness_is_the_share_of_statements_that_the_context_has(
    backend: RagasBackend, answer: str, value: float
) -> None:
    (verdict,) = backend.judge("faithfulness", [asked(answer)])
    assert verdict.value == pytest.approx(value)
    supported = [claim["verdict"] == "supported" for claim in verdict.detail["claims"]]
    assert sum(supported) / len(supported) == verdict.value
    assert verdict.detail["judge"]["calls"] == 2


@pytest.mark.parametrize(
    ("contexts", "expected", "value", "basis"),
    [
        ((PARIS, BREAD), (PARIS,), 1.0, "expected_output"),
        ((BREAD, PARIS), (PARIS,), 0.5, "expected_output"),  # the one useful passage comes second
        ((PARIS, BREAD, PARIS), (PARIS,), (1 + 2 / 3) / 2, "expected_output"),
        ((BREAD,), (PARIS,), 0.0, "expected_output"),
        ((BREAD, PARIS), (), 0.5, "answer"),
    ],
)
def test_retrieval_quality_is_the_average_precision_of_the_passages(
    backend: RagasBackend, contexts: tuple[str, ...], expected: tuple[str, ...], value: float, basis: str
) -> None:
    (verdict,) = backend.judge("retrieval_quality", [asked(PARIS, *contexts, expected=expected)])
    assert verdict.value == pytest.approx(value, abs=1e-9)
    assert verdict.value != 0.9999999999  # the epsilon of RAGAS does not show
    assert verdict.detail["judged_against"] == basis
    assert len(verdict.detail["passages"]) == len(contexts)


@pytest.mark.parametrize(
    ("answer", "expected", "value", "counts"),
    [
        (f"{PARIS} {RIVER}", (PARIS,), 2 / 3, {"tp": 1, "fp": 1, "fn": 0}),
        (RIVER, (PARIS,), 0.0, {"tp": 0, "fp": 1, "fn": 1}),
        (PARIS, (f"{PARIS} {BREAD}",), 2 / 3, {"tp": 1, "fp": 0, "fn": 1}),
        (f"{PARIS} {RIVER}", (BREAD, f"{RIVER} {PARIS}"), 1.0, {"tp": 2, "fp": 0, "fn": 0}),  # the best of two
    ],
)
def test_answer_correctness_without_embeddings_is_the_overlap_of_statements(
    backend: RagasBackend, answer: str, expected: tuple[str, ...], value: float, counts: dict[str, int]
) -> None:
    (verdict,) = backend.judge("answer_correctness", [asked(answer, expected=expected)])
    assert verdict.value == pytest.approx(value)
    assert verdict.detail["counts"] == counts
    assert verdict.detail["weights"] == {"facts": 1.0, "similarity": 0.0}
    assert verdict.detail["embeddings"] is None


def test_embeddings_of_the_server_take_part_when_a_model_is_named(
    server: JudgeServer, backend: RagasBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTUNIT_RAGAS_EMBEDDINGS", "small-embeddings")
    (verdict,) = backend.judge("answer_correctness", [asked("In France is Paris!", expected=(PARIS,))])
    # The same words: the statements overlap fully, and the hashed words of both texts have the cosine 1.
    assert verdict.value == pytest.approx(1.0)
    assert verdict.detail["weights"] == {"facts": 0.75, "similarity": 0.25}
    assert verdict.detail["embeddings"] == {"model": "small-embeddings", "runs": "server"}
    asked_for = [request.body for request in server.requests if request.path == "/v1/embeddings"]
    assert {body["model"] for body in asked_for} == {"small-embeddings"}
    assert {text for body in asked_for for text in body["input"]} == {"In France is Paris!", PARIS}


@pytest.mark.filterwarnings("ignore")  # what the client of RAGAS warns about is none of ours
def test_scores_equal_those_of_ragas_with_its_own_client(
    server: JudgeServer, backend: RagasBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # RAGAS keeps a number for its user there, also where it reports nothing.
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert backend.unready() is None  # from here on its telemetry is off
    from openai import AsyncOpenAI
    from ragas.llms import llm_factory
    from ragas.metrics.collections import AnswerCorrectness, ContextPrecision, Faithfulness

    questions = [
        asked(f"{first} {second}", third, first, expected=(f"{second} {third}",))
        for first in (PARIS, BREAD, RIVER)
        for second in (PARIS, BREAD, RIVER)
        for third in (PARIS, RIVER)
    ]

    async def by_ragas() -> dict[str, list[float]]:
        async with AsyncOpenAI(base_url=server.url, api_key="none") as client:
            llm: Any = llm_factory("judge-1", client=client)
            found: dict[str, list[float]] = {measure: [] for measure in ALL_MEASURES}
            for each in questions:
                shared = {"user_input": QUESTION}
                contexts, reference = list(each.context), each.expected[0]
                results = (
                    await Faithfulness(llm).ascore(**shared, response=each.answer, retrieved_contexts=contexts),
                    await AnswerCorrectness(llm, weights=[1.0, 0.0]).ascore(
                        **shared, response=each.answer, reference=reference
                    ),
                    await ContextPrecision(llm).ascore(**shared, reference=reference, retrieved_contexts=contexts),
                )
                for measure, result in zip(ALL_MEASURES, results, strict=True):
                    found[measure].append(result.value)
            return found

    reference = asyncio.run(by_ragas())
    for measure in ALL_MEASURES:
        assert len(set(reference[measure])) > 1
        # A text equal to the expected output needs no judge here; none of these is.
        assert values(backend, measure, *questions) == pytest.approx(reference[measure], abs=1e-8)


@pytest.mark.parametrize("measure", ["faithfulness", "retrieval_quality"])
def test_swapping_contexts_between_cases_changes_the_scores(backend: RagasBackend, measure: str) -> None:
    right = values(backend, measure, asked(PARIS, PARIS), asked(RIVER, RIVER))
    swapped = values(backend, measure, asked(PARIS, RIVER), asked(RIVER, PARIS))
    assert (right, swapped) == ([1.0, 1.0], [0.0, 0.0])


def test_the_four_metrics_by_name_in_one_run(server: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTUNIT_JUDGE_URL", server.url)
    monkeypatch.setenv("AGENTUNIT_JUDGE_MODEL", "judge-1")
    monkeypatch.setenv("AGENTUNIT_JUDGE_CACHE", "off")
    from agentunit.metrics.builtin import AnswerCorrectnessMetric, HallucinationRateMetric, RetrievalQualityMetric

    kinds = (FaithfulnessMetric, HallucinationRateMetric, RetrievalQualityMetric, AnswerCorrectnessMetric)
    case = {"id": "q1", "query": QUESTION, "context": [PARIS], "expected_output": PARIS}
    run = agentunit.score([{"case": case, "outcome": f"{PARIS} {RIVER}"}], [kind(backend="ragas") for kind in kinds])
    (scored,) = run
    scores = scored.scores
    assert {name: score.result.value for name, score in scores.items()} == pytest.approx(
        {"faithfulness": 0.5, "hallucination_rate": 0.5, "retrieval_quality": 1.0, "answer_correctness": 2 / 3}
    )
    assert {(score.backend, score.status) for score in scores.values()} == {("ragas", "ok")}


def test_it_works_inside_a_running_event_loop_and_from_threads(backend: RagasBackend) -> None:
    async def inside() -> list[float | None]:
        return values(backend, "faithfulness", asked(PARIS), asked(RIVER))

    assert asyncio.run(inside()) == [1.0, 0.0]
    found: list[list[float | None]] = []
    threads = [
        threading.Thread(target=lambda: found.append(values(backend, "faithfulness", asked(PARIS), asked(RIVER))))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[1.0, 0.0]] * 4


def test_repeats_are_judged_anew_and_kept_apart(server: JudgeServer) -> None:
    client = JudgeClient(JudgeSettings(server.url, "judge-1", cache=None, repeats=3))
    (verdict,) = RagasBackend(client).judge("faithfulness", [asked(f"{PARIS} {RIVER}")])
    client.close()
    assert (verdict.value, verdict.detail["judge_values"], verdict.detail["judge_sd"]) == (0.5, [0.5] * 3, 0.0)
    assert server.n_calls == 6
