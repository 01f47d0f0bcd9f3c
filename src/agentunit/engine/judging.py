"""Which metrics ask a judge, and what it took over a run, added up score by score."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import fsum
from typing import Any

from agentunit.core.judged import Judged
from agentunit.core.results import JudgeSpend
from agentunit.metrics.base import CompositeMetric

_MODELS_NAMED = 10
_AMOUNTS = ("prompt_tokens", "completion_tokens", "cost_usd")


def judged_metrics(metrics: Iterable[Any]) -> list[Any]:
    """The metrics that would send what they score to a judge; parts of composites count by themselves."""
    found: list[Any] = []
    for metric in metrics:
        if isinstance(metric, CompositeMetric):
            found += judged_metrics(metric.metrics)
        elif getattr(metric, "asks_service", False):
            found.append(metric)
    return found


class JudgeTally:
    """The sum of what judged scores say they took."""

    def __init__(self) -> None:
        self._n_scores = self._n_failed = self._n_calls = self._n_cached = self._n_unstated = 0
        self._n_suspected = self._n_quotes = self._n_quotes_found = 0
        self._models: dict[str, None] = {}
        self._amounts: dict[str, float] = {}
        self._partial = False

    def add(self, judged: Judged, *, failed: bool) -> None:
        """Take one score's word; ``failed``: the judge left it without a value."""
        self._n_scores += 1
        self._n_failed += failed
        self._n_calls += judged.n_calls
        self._n_cached += judged.n_cached
        self._n_unstated += judged.n_unstated
        self._n_suspected += judged.is_suspected
        self._n_quotes += judged.n_quotes
        self._n_quotes_found += judged.n_quotes_found
        for model in judged.models:
            if len(self._models) < _MODELS_NAMED:
                self._models.setdefault(model)
        if not judged.n_calls:
            return
        for name in _AMOUNTS:
            amount = getattr(judged, name)
            if amount is None:
                self._partial = True
            else:
                self._amounts[name] = self._amounts.get(name, 0) + amount

    def spend(self) -> JudgeSpend | None:
        """The sum; ``None`` when no judge was asked. Without any call everything is known: it took nothing."""
        if not self._n_scores:
            return None
        prompt, completion, cost = (self._amounts.get(name, None if self._n_calls else 0) for name in _AMOUNTS)
        return JudgeSpend(
            models=list(self._models),
            n_scores=self._n_scores,
            n_failed=self._n_failed,
            n_calls=self._n_calls,
            n_cached=self._n_cached,
            prompt_tokens=None if prompt is None else int(prompt),
            completion_tokens=None if completion is None else int(completion),
            cost_usd=None if cost is None else float(cost),
            partial=self._partial,
            n_unstated=self._n_unstated,
            n_suspected=self._n_suspected,
            n_quotes=self._n_quotes,
            n_quotes_found=self._n_quotes_found,
        )


def total_spend(parts: Iterable[JudgeSpend | None], problems: Sequence[str] = ()) -> JudgeSpend | None:
    """The sum over several metrics, with the run's problems; ``None`` when none of them asked a judge."""
    known = [part for part in parts if part is not None]
    if not known:
        return None
    # Where some called and others were answered by the cache, the zeros of these say nothing about the price.
    counted = [part for part in known if part.n_calls] or known
    prompts = [part.prompt_tokens for part in counted if part.prompt_tokens is not None]
    completions = [part.completion_tokens for part in counted if part.completion_tokens is not None]
    costs = [part.cost_usd for part in counted if part.cost_usd is not None]
    return JudgeSpend(
        models=list(dict.fromkeys(model for part in known for model in part.models)),
        n_scores=sum(part.n_scores for part in known),
        n_failed=sum(part.n_failed for part in known),
        n_calls=sum(part.n_calls for part in known),
        n_cached=sum(part.n_cached for part in known),
        prompt_tokens=sum(prompts) if prompts else None,
        completion_tokens=sum(completions) if completions else None,
        cost_usd=fsum(costs) if costs else None,
        partial=any(part.partial for part in known),
        n_unstated=sum(part.n_unstated for part in known),
        problems=list(problems),
        # Metrics judge the same cases, so what one of them found is not added to what another found.
        n_suspected=max(part.n_suspected for part in known),
        n_quotes=sum(part.n_quotes for part in known),
        n_quotes_found=sum(part.n_quotes_found for part in known),
    )
