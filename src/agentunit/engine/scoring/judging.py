"""Which metrics ask a judge, what that would send, when its run begins, and what it took, score by score."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import fsum
from typing import Any

from msgspec import structs

from agentunit.backends.quality import load_backend
from agentunit.core.judged import Judged
from agentunit.core.results import JudgeSpend, JudgeStanding, PanelSummary
from agentunit.core.score_block import ScoreBlock, ScoreRow, numbered
from agentunit.doors import part
from agentunit.formulas.statistics import krippendorff_alpha
from agentunit.metrics.base import CompositeMetric, MetricInfo
from agentunit.store.run_store import RunStore

SAMPLE_SIZE = 500
"""How many records tell what a judge would be sent."""
_MODELS_NAMED = 10
_CASES_NAMED = 100
_HALF = 0.5
_AMOUNTS = ("prompt_tokens", "completion_tokens", "cost_usd")
_MOST_CASES = 512
_FEWEST_CASES = 16
_CASES_OF_A_BATCH = 10_000
_TURNS = 8
_lock = threading.Lock()
_n_open = 0


def judged_metrics(metrics: Iterable[Any]) -> list[Any]:
    """The metrics that would send what they score to a judge; parts of composites count by themselves."""
    found: list[Any] = []
    for metric in metrics:
        if isinstance(metric, CompositeMetric):
            found += judged_metrics(metric.metrics)
        elif getattr(metric, "asks_service", False):
            found.append(metric)
    return found


PLAYED_USERS = "the simulated user"
"""What stands among the metrics of a ``Sending`` where a judge plays the users of cases."""


@dataclass(frozen=True)
class Sending:
    """What a run would send. ``n_cases``, ``n_calls``, tokens and cost are estimates, ``None`` where unknown.

    ``n_cases`` are those of which something is sent: ``exact`` says that they are counted, ``at_most`` that some of
    them are sent only if the agent does what is not known yet. ``fields`` names the parts of a case that are sent,
    ``is_batch`` that they are asked in batches, at half the price.
    """

    metrics: tuple[str, ...]
    place: str
    model: str
    is_encrypted: bool
    fields: tuple[str, ...]
    n_cases: int | None
    exact: bool
    n_calls: int | None
    n_tokens: int | None
    cost_usd: float | None
    repeats: int
    is_cached: bool
    max_spend_usd: float | None
    at_most: bool = False
    is_batch: bool = False


def plan_sending(
    metrics: Iterable[Any], sample: Sequence[Any], *, n_cases: int | None, exact: bool, answered: bool = True
) -> Sending | None:
    """What scoring would send, judged by a sample of its records; ``None`` when nothing would be.

    ``exact``: ``n_cases`` is counted. Without ``answered``, the answers of the records are yet to come.
    """
    judged = judged_metrics(metrics)
    if not judged:
        return None
    planned: Sending | None = part("plan_sending")(judged, sample, n_cases=n_cases, exact=exact, answered=answered)
    return planned


@contextmanager
def judge_run(metrics: Sequence[Any] | None = None, *, plays_users: bool = False) -> Iterator[None]:
    """Within it, everything asked of a judge is one run. One within another, or beside it, is part of that.

    With ``metrics``, only if one of them asks a judge, or a judge ``plays_users``; without, whatever is scored within.
    """
    global _n_open
    if metrics is not None and not judged_metrics(metrics) and not plays_users:
        yield
        return
    with _lock:
        if _n_open == 0 and metrics is not None:
            _begin()
        _n_open += 1
    try:
        yield
    finally:
        with _lock:
            _n_open -= 1


@contextmanager
def spend_of_run(store: RunStore, run_id: str, metrics: Sequence[Any], *, plays_users: bool = False) -> Iterator[None]:
    """Within it, a judge's spend cap is for all that is asked for a run, by processes that were killed before as well.

    Without a run it is for what one process asks.
    """
    clients = _clients() if plays_users or judged_metrics(metrics) else []
    keeping = [each for each in clients if callable(getattr(each, "keep_spend", None))]
    for number, client in enumerate(keeping):
        client.keep_spend(partial(part("spend_ledger"), store, run_id, str(number)))
    try:
        yield
    finally:
        for client in keeping:
            client.keep_spend(None)


def cases_under_way(metrics: Sequence[Any]) -> int:
    """How many cases may wait for an answer together.

    Several times what a judge is asked at once, so that a slow answer at the front of the row does not leave it idle;
    not more than that, because the first case would be done only when all of them have had their turn.
    """
    settings = [getattr(each, "settings", None) for each in (_clients() if judged_metrics(metrics) else ())]
    if any(getattr(each, "batch", False) for each in settings):
        return _CASES_OF_A_BATCH
    at_once = max((getattr(each, "concurrency", 0) for each in settings), default=0) or None
    return min(_MOST_CASES, max(_FEWEST_CASES, _TURNS * at_once)) if isinstance(at_once, int) else _MOST_CASES


def judge_problems(metrics: Sequence[Any]) -> list[str]:
    """Sentences about the judge's run as a whole, such as a cache that cannot be written."""
    sentences: list[str] = []
    for client in _clients() if judged_metrics(metrics) else ():
        sentences += getattr(getattr(client, "usage", None), "problems", ())
        describe_spend = getattr(client, "describe_spend", None)
        if callable(describe_spend):
            sentences += filter(None, [describe_spend()])
    return list(dict.fromkeys(sentences))


def _begin() -> None:
    for client in _clients():
        begin = getattr(client, "begin_run", None)
        if callable(begin):
            begin()


def _clients() -> list[Any]:
    """The clients of all judges, which RAGAS uses too; none when they cannot be had: that is told when one is asked."""
    try:
        backend = load_backend("judge")
        return list(getattr(backend, "clients", None) or [backend.client])  # type: ignore[union-attr]
    except (AttributeError, KeyError, RuntimeError, ValueError):
        return []


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


# What judged scores tell besides their values: quotes that were found, texts that speak to the judge, disagreement.
#
# They can be gated like metrics: ``injection_suspected all == 0``, ``quote_found >= 0.95``, ``judges_disagree <= 0.1``.

_evidence_info = partial(MetricInfo, family="quality", range=(0.0, 1.0), backend="judge")
EVIDENCE = {
    "injection_suspected": _evidence_info(
        "injection_suspected",
        summary="1 where a text of the case seems to address the judge, by signs that are not proof.",
        direction="lower",
        trust={"judge": "signs, not proof"},
    ),
    "quote_found": _evidence_info(
        "quote_found",
        summary="The share of the judge's quotes that are really in the texts they name.",
        direction="higher",
        trust={"judge": "exact"},
    ),
    "judges_disagree": _evidence_info(
        "judges_disagree",
        summary="1 where the judges of a panel are at least half of the scale apart.",
        direction="lower",
        trust={"judge": "exact"},
    ),
}
_WITHOUT_VALUE = {"quote_found": "the judge quoted nothing", "judges_disagree": "one judge was asked"}


def evidence_rows(name: str, metrics: Mapping[str, Sequence[ScoreRow]]) -> list[ScoreRow] | None:
    """A row for each record that a judge has judged; ``None`` where there is none, or the name is another one's.

    A record that several metrics judged is suspected when one of them says so; its quotes are those of all.
    """
    info = EVIDENCE.get(name)
    judged: dict[tuple[int, int], list[ScoreRow]] = {}
    for rows in metrics.values() if info is not None else ():
        for row in rows:
            if row.judged is not None:
                judged.setdefault(row.place, []).append(row)
    if info is None or not judged:
        return None
    return [_row(info, rows) for _, rows in sorted(judged.items())]


def _row(info: MetricInfo, rows: Sequence[ScoreRow]) -> ScoreRow:
    told = [row.judged for row in rows if row.judged is not None]
    n_quotes = sum(each.n_quotes for each in told)
    value: float | None = float(any(each.is_suspected for each in told))
    if info.name == "quote_found":
        value = sum(each.n_quotes_found for each in told) / n_quotes if n_quotes else None
    if info.name == "judges_disagree":
        value = float(any(each.disagree for each in told)) if any(each.by_judge for each in told) else None
    first = rows[0]
    return ScoreRow(
        first.position,
        first.repeat,
        first.case_id,
        value,
        "ok" if value is not None else "not_applicable",
        info.backend,
        info.version,
        None if value is not None else _WITHOUT_VALUE[info.name],
    )


def shared_backends(judged: Iterable[tuple[str, Judged | None]]) -> set[str]:
    """The backends, each beside what one of its scores tells of a judge, for which several models judged."""
    models = {(backend, told.models) for backend, told in judged if told is not None and told.models}
    times = Counter(backend for backend, _ in models)
    return {backend for backend, n_judges in times.items() if n_judges > 1}


def judge_backend(backend: str, told: Judged | None, shared: Collection[str]) -> str:
    """The backend of a score, with the model that judged it where the backend is shared by several.

    Their scores are never averaged. A run that was resumed with another judge has such scores.
    """
    return f"{backend}:{'+'.join(told.models)}" if told is not None and told.models and backend in shared else backend


def keep_models_apart(rows: Sequence[ScoreRow]) -> None:
    """Name the model in the backend of each judged score where several models judged."""
    shared = shared_backends((row.backend, row.judged) for row in rows)
    for row in rows if shared else ():
        row.backend = judge_backend(row.backend, row.judged, shared)


def block_with_models(block: ScoreBlock, shared: Collection[str]) -> ScoreBlock:
    """The same for the scores of a block, where the backends that several models ``shared`` are known."""
    producers = [block.producers[number] for number in block.producer_numbers()]
    for row, told in block.judged.items():
        status, backend, version = producers[row]
        producers[row] = (status, judge_backend(backend, told, shared), version)
    distinct, producer_of = numbered(producers)
    return structs.replace(block, producers=distinct, producer_of=producer_of)
