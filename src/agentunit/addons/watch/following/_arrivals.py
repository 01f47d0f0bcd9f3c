"""Traces that arrive: which of them are scored, with which metrics, and their scores."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, redirect_stdout
from typing import Any

from msgspec import Struct

from agentunit.addons.watch.following.sampling import ended_at, fraction_of, has_failed, slice_share
from agentunit.addons.watch.following.state import FollowSettings, FollowState
from agentunit.backends.services import SPEND_CAP_REACHED
from agentunit.core.judged import judged_of
from agentunit.core.records import Record
from agentunit.core.results import Score
from agentunit.engine.scoring.case_fields import field_values
from agentunit.engine.scoring.judging import judge_run, judged_metrics
from agentunit.engine.scoring.records import Run
from agentunit.metrics.base import describe

# What is scored together is what a signal to end waits for, and what a kill makes scored once more.
_BATCH, _MODEL_BATCH, _JUDGED_BATCH = 256, 32, 16


class Arrived(Struct):
    """A trace that came, and what was decided about it."""

    record: Record
    identity: str
    at_s: float
    is_timed: bool
    failed: bool
    in_sample: bool = True
    slices: tuple[str, ...] = ()
    in_slices: tuple[str, ...] = ()
    has_models: bool = True
    scores: dict[str, Score] | None = None


class ArrivalScorer:
    """Decides about each trace that comes, and scores those that are chosen, within the budgets of a day.

    Names of slices are kept as ``masked`` gives them back.
    """

    def __init__(
        self,
        metrics: Sequence[Any],
        settings: FollowSettings,
        state: FollowState,
        masked: Callable[[Any], Any] = lambda data: data,
    ) -> None:
        self._settings, self._state, self._masked = settings, state, masked
        self._metrics = list(metrics)
        self._plain = [metric for metric in metrics if not is_model_backed(metric)]
        self._judged = {metric.name for metric in judged_metrics(metrics)}
        self._unjudged = [metric for metric in metrics if not judged_metrics([metric])]
        self._judging, self._is_judging = ExitStack(), False

    @property
    def batch(self) -> int:
        """How many traces are scored together."""
        return _JUDGED_BATCH if self._judged else _MODEL_BATCH if self._plain != self._metrics else _BATCH

    def begin_day(self, day: int) -> None:
        """Let the counts of a day begin anew, if it is another one."""
        if day != self._state.day:
            self._state.day, self._state.spent_usd = day, 0.0
            self._state.slices = dict.fromkeys(self._state.slices, 0)
            self.close()
        if self._judged and not self._is_judging:
            # All batches of a day are one run for the judge, whose cap is on what a run spends.
            self._judging.enter_context(judge_run(self._metrics))
            self._is_judging = True

    def close(self) -> None:
        """End what is one run for a judge."""
        self._judging.close()
        self._is_judging = False

    def decide(self, record: Record, identity: str, now: float) -> Arrived:
        """Whether a trace is scored, and what for; it is counted as one that came."""
        # What claims to come from the future would keep all others from counting as new.
        ended = ended_at(record)
        at_s = now if ended is None else min(ended, now)
        each = Arrived(record, identity, at_s, ended is not None, has_failed(record))
        fraction = fraction_of(identity)
        each.in_sample = fraction < self._settings.sample
        if self._settings.by is not None:
            each.slices = self._state.slice_names(self._masked(list(_values_of(record, self._settings.by))))
            in_slices = []
            for name in each.slices:
                n_today = self._state.slices.get(name, 0)
                if fraction < slice_share(self._settings.sample, n_today):
                    in_slices.append(name)
                self._state.slices[name] = n_today + 1
            each.in_slices = tuple(in_slices)
        self._state.count("arrived")
        self._state.count("failed", int(each.failed))
        return each

    def score(self, arrived: Sequence[Arrived], now: float) -> list[Arrived]:
        """Score those that were chosen; each has its scores then."""
        chosen = [each for each in arrived if each.in_sample or each.in_slices or each.failed]
        self._state.count("scored", len(chosen))
        self._state.count("not_sampled", len(arrived) - len(chosen))
        if len(self._plain) < len(self._metrics):
            for each in chosen:
                each.has_models = self._state.budget.take(now)
        cap = self._settings.judge_usd
        is_spent = cap is not None and (self._state.spent_usd >= cap or self._state.capped_day == self._state.day)
        with_models = self._unjudged if is_spent else self._metrics
        for metrics, some in (
            (with_models, [each for each in chosen if each.has_models]),
            (self._plain, [each for each in chosen if not each.has_models]),
        ):
            for each, scores in zip(some, _scores_of([each.record for each in some], metrics), strict=True):
                each.scores = self._without_capped(scores)
                for score in scores.values() if self._judged else ():
                    spent = judged_of(score.result.detail, nested=True)
                    if spent is not None and spent.cost_usd is not None:
                        self._state.spent_usd += spent.cost_usd
                        self._state.spent_usd_total += spent.cost_usd
        return chosen

    def _without_capped(self, scores: dict[str, Score]) -> dict[str, Score]:
        """Scores without those that the judge was not asked for any more: they are left out, not failed."""
        if self._settings.judge_usd is None:
            return scores
        capped = {name for name, score in scores.items() if score.status == "error" and _is_capped(score)}
        if capped:
            self._state.capped_day = self._state.day
        return {name: score for name, score in scores.items() if name not in capped}


def is_model_backed(metric: Any) -> bool:
    """Whether a model or a service scores."""
    return bool(
        getattr(metric, "asks_service", False)
        or getattr(metric, "gains_from_batches", False)
        or describe(metric).family == "multimodal"
    )


def _is_capped(score: Score) -> bool:
    reason = score.result.detail.get("reason")
    return isinstance(reason, str) and SPEND_CAP_REACHED in reason


def _values_of(record: Record, field: str) -> tuple[str, ...]:
    """The values of a field of a case; traces of spans have theirs in the metadata of the trace."""
    return field_values(record.case.metadata, field) or field_values(record.trace.metadata, field)


def _scores_of(records: Sequence[Record], metrics: Sequence[Any]) -> list[dict[str, Score]]:
    if not records or not metrics:
        return [{} for _ in records]
    # What metrics print must not get between the lines of a table.
    with redirect_stdout(sys.stderr):
        found = [case.scores for case in Run(iter(records), metrics, aggregated=False)]
    if len(found) == len(records):
        return found
    # One of them cannot be looked at: each by itself, so that none gets the scores of another.
    return [
        next((case.scores for case in Run([record], metrics, aggregated=False)), {}) if len(records) > 1 else {}
        for record in records
    ]
