from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from made_media import TINY_CLIP

from agentunit.addons.judge import rubric_metric
from agentunit.backends import quality
from agentunit.privacy import _followed as followed
from agentunit.privacy import consent, minimization


@pytest.fixture(scope="module")
def no_backends_installed() -> Iterator[None]:
    """The lexical fallback must be what ``auto`` finds, whatever is installed where the tests run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quality, "installed_backends", dict)
        yield


@pytest.fixture(scope="module")
def a_judge_for_rubrics() -> Iterator[None]:
    """The one metric that only a judge can score gets one that finds every answer middling."""

    def start(measure: str, questions: Sequence[Any]) -> Future[list[quality.Verdict]]:
        verdicts: Future[list[quality.Verdict]] = Future()
        verdicts.set_result([quality.Verdict(0.5, {"score": 3.0}) for _ in questions])
        return verdicts

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rubric_metric, "resolve_backend", lambda *_: SimpleNamespace(name="judge", start=start))
        yield


@pytest.fixture(scope="module")
def a_small_clip() -> Iterator[None]:
    """The metrics that look at pictures get the CLIP that was trained on colored shapes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AGENTUNIT_CLIP", str(TINY_CLIP))
        yield


@pytest.fixture(scope="module")
def a_judge_that_remembers() -> Iterator[None]:
    """The groundedness model, where it is installed, reads a text once: thousands of records share most of theirs."""
    judge = followed.groundedness_judge()
    known: dict[str, quality.Verdict] = {}

    def remembered(measure: str, questions: Sequence[quality.QualityQuestion]) -> list[quality.Verdict]:
        assert judge is not None
        asked = {f"{measure} {question!r}": question for question in questions}
        new = {key: question for key, question in asked.items() if key not in known}
        if new:
            known.update(zip(new, judge.judge(measure, list(new.values())), strict=True))
        return [known[f"{measure} {question!r}"] for question in questions]

    with pytest.MonkeyPatch.context() as patch:
        if judge is not None:
            for user in (minimization, consent):
                patch.setattr(user, "groundedness_judge", lambda: SimpleNamespace(judge=remembered))
        yield
