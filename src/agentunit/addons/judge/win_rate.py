"""Two runs by a judge's choice: which answer of each case is better, as a win rate of the new run.

The choice is kept as a metric of both runs: a case's ``win_rate`` is 1 for the run whose answer won, 0 for the other,
0.5 for a tie. So it is tested, and counts if it is named, as every other metric.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import fsum
from types import SimpleNamespace
from typing import Any

import click

from agentunit.addons.judge.sending import estimated_sending
from agentunit.addons.judge.settings import configured
from agentunit.backends.quality import BackendUnavailable, PairQuestion, Verdict, resolve_backend
from agentunit.cli.judge_options import JudgeChoice
from agentunit.cli.options import end_signals_interrupt, say_stopped
from agentunit.cli.sending_notice import ask_before_sending
from agentunit.core.judged import Judged, judged_of
from agentunit.core.score_block import ScoreRow
from agentunit.engine.deciding.comparison import Comparison, PairVerdict, Pairwise
from agentunit.engine.deciding.known_failures import set_aside
from agentunit.engine.scoring.judging import JudgeTally, Sending, judge_run
from agentunit.engine.scoring.scored_run import ScoredRun
from agentunit.formulas.bounded_mean import weighted_mean_bound
from agentunit.metrics.base import MetricInfo
from agentunit.metrics.inputs import Item, acceptable_answers
from agentunit.metrics.turns import transcript
from agentunit.reports.progress import Progress
from agentunit.store.runs import is_again

WIN_RATE = MetricInfo(
    name="win_rate",
    family="run",
    summary="How often a judge prefers the answers of this run to those of the other; a tie counts half.",
    direction="higher",
    range=(0.0, 1.0),
    backend="judge",
    informational=frozenset({"judge"}),
)
_ASKED = SimpleNamespace(asks_service=True, name=WIN_RATE.name)
_BATCH = 64
_AT_ONCE = 8
_TIE = 0.5
_ALPHA = 0.025
_MOST_LISTED = 200
_ROUNDING = 1e-9
_INTERRUPTED = 130


@dataclass(frozen=True)
class Pair:
    """One case in both runs: what to ask; ``None`` where both answers are the same."""

    case_id: str
    repeat: int
    position: int
    baseline_position: int
    question: PairQuestion | None


@dataclass
class Pairs:
    """The pairs of two runs, and how many cases lack an answer on either side."""

    listed: list[Pair] = field(default_factory=list)
    n_without_answer: int = 0

    @property
    def asked(self) -> list[Pair]:
        """Those that a judge is asked about."""
        return [each for each in self.listed if each.question is not None]


def pairs_of(candidate: ScoredRun, baseline: ScoredRun) -> Pairs:
    """The cases that both runs answered, repeat by repeat; known failures of the candidate are left out."""
    pairs = Pairs()
    if candidate.read_records is None or baseline.read_records is None:
        return pairs
    aside = set_aside(candidate)
    before: dict[tuple[str, int], tuple[int, str | None]] = {}
    for stored in baseline.read_records():
        if is_again(stored.repeat):
            continue
        answer = None if stored.failed else _answer(stored.record)
        before[stored.case_id, stored.repeat] = (stored.position, answer)
    for stored in candidate.read_records():
        found = before.get((stored.case_id, stored.repeat))
        if found is None or stored.case_id in aside or is_again(stored.repeat):
            continue
        position, other = found
        answer = None if stored.failed else _answer(stored.record)
        if answer is None or other is None:
            pairs.n_without_answer += 1
            continue
        record = stored.record
        question = None
        if answer.strip() != other.strip():
            question = _question(Item(record.case, record.trace, record.outcome), answer, other)
        pairs.listed.append(Pair(stored.case_id, stored.repeat, stored.position, position, question))
    return pairs


def _answer(record: Any) -> str | None:
    answer = Item(record.case, record.trace, record.outcome).answer
    return answer if answer is not None and answer.strip() else None


def _question(item: Item, answer: str, other: str) -> PairQuestion:
    query = transcript(item) or item.case.query
    return PairQuestion(
        question=query if isinstance(query, str) else None,
        context=item.context,
        answer=answer,
        expected=[each for each in acceptable_answers(item.case.expected_output) if each.strip()],
        other=other,
    )


def plan_pairwise(pairs: Sequence[Pairs]) -> Sending | None:
    """What asking about these pairs would send; ``None`` when nothing would be."""
    settings = configured()
    questions = [each.question for of_run in pairs for each in of_run.asked if each.question is not None]
    if settings is None or not questions:
        return None
    lengths = [_length(each) for each in questions]
    # Both orders of every pair.
    return estimated_sending(
        settings,
        metrics=(WIN_RATE.name,),
        fields=_fields(questions),
        n_cases=len({each.case_id for of_run in pairs for each in of_run.asked}),
        n_calls=2 * len(questions),
        n_characters=2 * sum(lengths),
    )


def _length(question: PairQuestion) -> int:
    texts = [question.question or "", question.answer, question.other, *question.context, *question.expected]
    return sum(map(len, texts))


def _fields(questions: Sequence[PairQuestion]) -> tuple[str, ...]:
    sent = {
        "question": any(each.question for each in questions),
        "both answers": True,
        "context": any(each.context for each in questions),
        "expected output": any(each.expected for each in questions),
    }
    return tuple(name for name, is_sent in sent.items() if is_sent)


def judge_all_pairs(
    pairs: Sequence[Pairs], on_pair: Callable[[int], None] = lambda _: None
) -> list[list[Verdict | None]]:
    """The verdicts on the pairs of several runs: one run to the judge, so what it may spend holds for all together."""
    with judge_run([_ASKED]):
        return [judge_pairs(each, on_pair) for each in pairs]


def judge_pairs(pairs: Pairs, on_pair: Callable[[int], None] = lambda _: None) -> list[Verdict | None]:
    """A verdict for each pair, in order; ``None`` for those whose answers are the same.

    Several batches are under way at once. What was answered before comes from the cache, so the same command continues
    where it was stopped.
    """
    judge: Any = resolve_backend("judge", "pairwise", "compare")
    asked = [each.question for each in pairs.asked]
    answers: list[Verdict] = []
    with judge_run([_ASKED]):
        batches = [asked[start : start + _BATCH] for start in range(0, len(asked), _BATCH)]
        settings = configured()
        # What goes through a batch API goes at once: it may take a day.
        n_started = len(batches) if settings is not None and settings.batch else _AT_ONCE
        started = [judge.start("pairwise", batch) for batch in batches[:n_started]]
        waiting = iter(batches[n_started:])
        try:
            while started:
                answers += started.pop(0).result()
                on_pair(len(answers))
                if (batch := next(waiting, None)) is not None:
                    started.append(judge.start("pairwise", batch))
        except BaseException:
            for each in started:
                each.cancel()
            raise
    received = iter(answers)
    return [None if each.question is None else next(received) for each in pairs.listed]


def with_win_rate(
    candidate: ScoredRun, baseline: ScoredRun, pairs: Pairs, verdicts: Sequence[Verdict | None]
) -> tuple[ScoredRun, ScoredRun]:
    """Both runs with the metric ``win_rate``; a pair without a verdict has a score in the baseline alone."""
    new, old = [], []
    for pair, verdict in zip(pairs.listed, verdicts, strict=True):
        value = _TIE if verdict is None else verdict.value
        judged = None if verdict is None else judged_of(verdict.detail)
        if value is not None:
            new.append(_row(pair.position, pair, value, judged))
        old.append(_row(pair.baseline_position, pair, _TIE if value is None else 1.0 - value, judged))
    name = WIN_RATE.name
    return (
        replace(candidate, metrics={**candidate.metrics, name: new}, infos={**candidate.infos, name: WIN_RATE}),
        replace(baseline, metrics={**baseline.metrics, name: old}, infos={**baseline.infos, name: WIN_RATE}),
    )


def _row(position: int, pair: Pair, value: float, judged: Judged | None) -> ScoreRow:
    row = ScoreRow(position, pair.repeat, pair.case_id, value, "informational", "judge", WIN_RATE.version)
    row.judged = judged
    return row


def with_pairwise(comparison: Comparison, pairs: Pairs, verdicts: Sequence[Verdict | None]) -> Comparison:
    """The comparison with what the judge chose, and the interval of the win rate in place of a bootstrapped one."""
    tally = JudgeTally()
    listed: list[PairVerdict] = []
    values: dict[str, list[float]] = {}
    n_first = n_decided = n_turned = n_failed = n_same = 0
    reason: str | None = None
    for pair, verdict in zip(pairs.listed, verdicts, strict=True):
        if verdict is None:
            n_same += 1
            values.setdefault(pair.case_id, []).append(_TIE)
            continue
        if (judged := judged_of(verdict.detail)) is not None:
            tally.add(judged, failed=verdict.value is None, case_id=pair.case_id)
        if verdict.value is None:
            n_failed += 1
            reason = reason or str(verdict.detail.get("reason"))
            continue
        values.setdefault(pair.case_id, []).append(verdict.value)
        listed.append(_listed(pair, verdict))
        orders = list(_orders(verdict.detail))
        n_decided += sum(each["better"] != "tie" for each in orders)
        n_first += sum(each["better"] == "first" for each in orders)
        n_turned += listed[-1].turned
    means = [fsum(each) / len(each) for each in values.values()]
    row = next((each for each in comparison.metrics if each.metric == WIN_RATE.name), None)
    clustered = row is not None and row.low is not None and comparison.is_clustered
    low, high = _interval(means) if means else (None, None)
    if clustered and row is not None and row.low is not None and row.high is not None:
        low, high = (1.0 + row.low) / 2, (1.0 + row.high) / 2
    found = Pairwise(
        win_rate=fsum(means) / len(means) if means else None,
        low=low,
        high=high,
        n_won=sum(value > _TIE + _ROUNDING for value in means),
        n_lost=sum(value < _TIE - _ROUNDING for value in means),
        n_tied=sum(abs(value - _TIE) <= _ROUNDING for value in means),
        n_same_answer=n_same,
        n_without_answer=pairs.n_without_answer,
        n_failed=n_failed,
        failed_why=reason,
        n_decided=n_decided,
        n_first_won=n_first,
        n_turned=n_turned,
        pairs=tuple(sorted(listed, key=lambda each: each.value)[:_MOST_LISTED]),
        spend=tally.spend(),
        panel=tally.panel(),
    )
    metrics = comparison.metrics
    if row is not None and low is not None and high is not None and not clustered:
        exact = replace(row, low=2 * low - 1, high=2 * high - 1)
        metrics = tuple(exact if each is row else each for each in metrics)
    return replace(comparison, metrics=metrics, pairwise=found)


def _listed(pair: Pair, verdict: Verdict) -> PairVerdict:
    why = [each["why"] for each in _orders(verdict.detail) if each.get("why")]
    detail = verdict.detail
    return PairVerdict(
        pair.case_id,
        pair.repeat,
        float(verdict.value or 0.0),
        turned=any(each.get("turned") is True for each in _said_by(detail)),
        why=tuple(dict.fromkeys(why)),
        judges_disagree=detail.get("judges_disagree") is True,
        injection_suspected=bool(detail.get("injection_suspected")),
    )


def _said_by(detail: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The detail of each judge that gave a verdict."""
    rows = detail.get("judges")
    if isinstance(rows, list):
        yield from (each["detail"] for each in rows if each["value"] is not None)
    else:
        yield detail


def _orders(detail: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for each in _said_by(detail):
        yield from each.get("orders") or ()


def _interval(values: Sequence[float]) -> tuple[float, float]:
    """A 95 % interval of a mean of values from 0 to 1 that holds for few of them, too (Gaffke's bound, both sides)."""
    low = weighted_mean_bound(values, lowest=0.0, alpha=_ALPHA)
    return low, 1.0 - weighted_mean_bound([1.0 - value for value in values], lowest=0.0, alpha=_ALPHA)


@dataclass(frozen=True)
class JudgedPairs:
    """The pairs of a run and its baseline, with what the judge chose."""

    pairs: Pairs
    verdicts: Sequence[Verdict | None]

    def put_into(self, candidate: ScoredRun, baseline: ScoredRun) -> tuple[ScoredRun, ScoredRun]:
        """Both runs with their win rates."""
        return with_win_rate(candidate, baseline, self.pairs, self.verdicts)

    def add_to(self, comparison: Comparison) -> Comparison:
        """The comparison with the judge's choices."""
        return with_pairwise(comparison, self.pairs, self.verdicts)


def ask_about_pairs(choice: JudgeChoice, baseline: ScoredRun, runs: Sequence[ScoredRun]) -> list[JudgedPairs]:
    """What a judge chooses between each run and the baseline, after the user agreed."""
    choice.configure()
    pairs = [pairs_of(run, baseline) for run in runs]
    ask_before_sending(plan_pairwise(pairs), yes=choice.yes)
    progress = Progress("pairs")
    tick = progress.ticker()
    try:
        with end_signals_interrupt():
            verdicts = judge_all_pairs(pairs, tick)
            return [JudgedPairs(each, of_run) for each, of_run in zip(pairs, verdicts, strict=True)]
    except BackendUnavailable as error:
        raise click.UsageError(str(error)) from None
    except KeyboardInterrupt:
        say_stopped("what the judge has answered is in the cache; the same command continues")
        raise click.exceptions.Exit(_INTERRUPTED) from None
    finally:
        progress.clear()
