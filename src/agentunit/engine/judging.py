"""Which metrics ask a judge, and what it took over a run, added up score by score."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import fsum
from typing import Any

from msgspec import structs

from agentunit.core.judged import Judged
from agentunit.core.results import JudgeSpend, JudgeStanding, PanelSummary
from agentunit.formulas.agreement import krippendorff_alpha
from agentunit.metrics.base import CompositeMetric

_MODELS_NAMED = 10
_CASES_NAMED = 100
_HALF = 0.5
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
        self._panel: dict[str, list[float | None]] = {}
        self._reasons: dict[str, str] = {}
        self._units: list[list[float]] = []
        self._disagree: dict[str, None] = {}
        self._n_disagree = 0

    def add(self, judged: Judged, *, failed: bool, case_id: str = "") -> None:
        """Take one score's word; ``failed``: the judge left it without a value."""
        self._n_scores += 1
        if judged.by_judge:
            self._add_panel(judged, case_id)
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

    def _add_panel(self, judged: Judged, case_id: str) -> None:
        for judge, value, reason in judged.by_judge:
            self._panel.setdefault(judge, []).append(value)
            if value is None and reason:
                self._reasons.setdefault(judge, reason)
        self._units.append([value for _, value, _ in judged.by_judge if value is not None])
        if judged.disagree:
            self._n_disagree += 1
            if len(self._disagree) < _CASES_NAMED:
                self._disagree.setdefault(case_id)

    def panel(self) -> PanelSummary | None:
        """How the judges of a panel stand to each other; ``None`` when one judge was asked, or none."""
        if not self._panel:
            return None
        judges = []
        for judge, values in self._panel.items():
            known = [value for value in values if value is not None]
            mean = fsum(known) / len(known) if known else None
            reason = self._reasons.get(judge)
            judges.append(JudgeStanding(judge, len(known), len(values) - len(known), mean, reason))
        return PanelSummary(judges, krippendorff_alpha(self._units), self._n_disagree, list(self._disagree))

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


def with_bias(panel: PanelSummary | None, said: Iterable[tuple[Judged, float]]) -> PanelSummary | None:
    """A panel with each judge's bias against labels: ``said`` has what the judges said of an answer, and people."""
    if panel is None:
        return None
    pairs: dict[str, list[tuple[float, float]]] = {}
    for judged, label in said:
        for judge, value, _ in judged.by_judge:
            if value is not None:
                pairs.setdefault(judge, []).append((value, label))
    judges = []
    for each in panel.judges:
        both = pairs.get(each.judge, [])
        if both:
            bias = fsum(value - label for value, label in both) / len(both)
            same = sum((value >= _HALF) == (label >= _HALF) for value, label in both)
            each = structs.replace(each, n_labels=len(both), bias=bias, agreement=same / len(both))
        judges.append(each)
    return structs.replace(panel, judges=judges)
