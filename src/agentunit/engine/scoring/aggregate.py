"""The aggregate of a run, kept as scores are made, in constant memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import fsum, inf, sqrt
from typing import Any

from agentunit.core.judged import Judged
from agentunit.core.results import (
    NO_REASON,
    AmountSummary,
    JudgeSpend,
    JudgeSpread,
    MetricSummary,
    Score,
    Status,
    Unscored,
)
from agentunit.core.score_block import BlockBuilder, ScoreBlock, gathered, number_in
from agentunit.engine.deciding.cut_offs import (
    MIDDLE,
    CutDegrees,
    are_shares,
    number_key,
    possible_range,
    usable_threshold,
    within,
)
from agentunit.engine.scoring.judging import JudgeTally
from agentunit.formulas.repeats import JudgeVariance, between_within_variance
from agentunit.formulas.running import ClusterTotals, RunningStatistics
from agentunit.metrics.base import MetricInfo
from agentunit.metrics.evidence import NOT_MEASURED
from agentunit.metrics.trust import describe_trust, why_informational

# The cases that a reader should look at first: the few with the worst values of a metric.

CASES_NAMED = 5


class WorstCases:
    """The few cases with the worst values of a metric, the first to come where they tie; none that is perfect."""

    def __init__(self, info: MetricInfo) -> None:
        # Badness grows with the value where lower is better, and falls with it where higher is.
        self.sign = {"higher": -1.0, "lower": 1.0, "none": 0.0}[info.direction]
        perfect = {"higher": info.range[1], "lower": info.range[0], "none": 0.0}[info.direction]
        self.best = -inf if perfect is None else self.sign * perfect
        self.n_below_best = 0
        self.floor = self.best
        self._worst: list[tuple[float, str]] = []

    def add(self, case_id: str, value: float) -> None:
        """Take one more value."""
        badness = self.sign * value
        self.n_below_best += badness > self.best
        if badness <= self.floor:
            return
        # Two cases may have one id: the worse of them counts.
        known = next((entry for entry in self._worst if entry[1] == case_id), None)
        if known is not None:
            if badness <= known[0]:
                return
            self._worst.remove(known)
        self._worst.append((badness, case_id))
        self._worst.sort(key=lambda entry: -entry[0])
        del self._worst[CASES_NAMED:]
        if len(self._worst) == CASES_NAMED:
            self.floor = self._worst[-1][0]

    def add_all(self, values: Sequence[float], case_id_of: Callable[[int], str]) -> None:
        """Take values one after the other; ``case_id_of`` tells the case of one that may be among the worst."""
        sign, floor = self.sign, self.floor
        if not values or sign * (min(values) if sign < 0 else max(values)) <= self.best:
            return
        below_best = len([value for value in values if sign * value > self.best])
        candidates = [number for number, value in enumerate(values) if sign * value > floor]
        self.n_below_best += below_best - len(candidates)
        for number in candidates:
            if sign * values[number] > self.floor:
                self.add(case_id_of(number), values[number])
            else:
                self.n_below_best += 1

    def case_ids(self) -> list[str]:
        """The worst first."""
        return [case_id for _, case_id in self._worst]


# Scores that come one by one are added up so many at once: enough to be quick, few enough to stay small.
_ADDED_AT_ONCE = 128
# Reasons may quote values, so a bad file could bring a new one with every line.
_MOST_REASONS = 100


class _Backend:
    """What one backend's scores of a metric add up to."""

    __slots__ = (
        "amounts",
        "clusters",
        "cut",
        "elapsed_s",
        "informational",
        "judge",
        "last",
        "n_from_half",
        "n_low_cases",
        "n_scored",
        "n_unmeasured",
        "records",
        "repeated",
        "statistics",
        "worst",
    )

    def __init__(self, info: MetricInfo) -> None:
        # The mean and its interval are over cases; where cases were repeated, everything else is over the records,
        # shares of low scores among it: a case whose mean is good may have repeats that are not.
        self.statistics = RunningStatistics()
        self.clusters: ClusterTotals | None = None
        self.records = RunningStatistics()
        self.amounts = None if info.amount is None else RunningStatistics()
        self.repeated: list[list[float]] = []
        self.cut = CutDegrees(info) if info.mean_of and are_shares(info) else None
        self.worst = WorstCases(info)
        self.judge: JudgeVariance | None = None
        self.elapsed_s = 0.0
        self.n_scored = 0
        self.n_unmeasured = 0
        self.informational: Counter[str] = Counter()
        self.n_from_half = 0
        self.n_low_cases = 0
        self.last: float | None = None

    def add_to_cluster(self, cluster: int, value: float) -> None:
        """Take a case's value also as one of its cluster."""
        if self.clusters is None:
            self.clusters = ClusterTotals()
        self.clusters.add(cluster, value)

    def add_said(self, said: list[tuple[float, ...]]) -> None:
        """Take what a judge said of the answers of one case, each time that it was asked."""
        if self.judge is None:
            self.judge = JudgeVariance()
        self.judge.add(said)

    def add_note(self, reason: str | None) -> None:
        """Count what a row says of a score: that its evidence was not measured, or why it is informational."""
        if reason == NOT_MEASURED:
            self.n_unmeasured += 1
        elif reason and (reason in self.informational or len(self.informational) < _MOST_REASONS):
            self.informational[reason] += 1


class MetricAggregate:
    """One metric over a run. Values of different backends are kept apart. Blocks come in dataset order.

    Cases that are set ``aside`` count in all numbers, but are not among the worst: their fault is known. Where a run is
    ``repeated``, the scores of one case count once, by their mean: runs of the same case are alike, so counting each
    would make the interval narrower than it is. ``cluster_of`` tells the cluster of a position, where cases are alike
    too.
    """

    def __init__(
        self,
        name: str,
        info: MetricInfo,
        aside: Collection[str] = (),
        *,
        repeated: bool = False,
        cluster_of: Callable[[int], int] | None = None,
    ) -> None:
        self.name = name
        self.info = info
        self.n_cases = 0
        self._aside = frozenset(aside)
        self._repeated = repeated
        self._cluster_of = cluster_of
        self._n_errors = 0
        self._judging: JudgeTally | None = None
        self._backends: dict[tuple[str, Status], _Backend] = {}
        self._unscored: dict[tuple[Status, str], Unscored] = {}
        self._waiting = BlockBuilder(name, number_key(info))
        self._waiting_ids: list[str] = []
        # Of a repeated run, the scores of the case that came last: more of them may follow.
        self._last_case: tuple[ScoreBlock, Callable[[int, int], str]] | None = None

    @property
    def n_errors(self) -> int:
        """How many scores are errors."""
        self.settle()
        return self._n_errors

    @property
    def judge_spend(self) -> JudgeSpend | None:
        """What judged scores took; ``None`` where no judge was asked."""
        self.settle()
        return None if self._judging is None else self._judging.spend()

    def add(self, case_id: str, score: Score) -> None:
        """Take one more score."""
        self._waiting.add(score)
        self._waiting_ids.append(case_id)
        if len(self._waiting_ids) >= _ADDED_AT_ONCE:
            self._add_waiting()

    def add_block(self, block: ScoreBlock, case_id_at: Callable[[int, int], str]) -> None:
        """Take the scores of a block; ``case_id_at`` tells the id of the case at a position and repeat."""
        if not self._repeated:
            self._add(block, case_id_at)
            return
        rows = [(block, number) for number in range(len(block))]
        if self._last_case is not None:
            last, _ = self._last_case
            rows = [(last, number) for number in range(len(last))] + rows
        joined = gathered(rows)
        first_of_last = joined.positions.index(joined.positions[-1])
        if first_of_last:
            self._add(joined.of_rows(range(first_of_last)), case_id_at)
        self._last_case = (joined.of_rows(range(first_of_last, len(joined))), case_id_at)

    def _add_waiting(self) -> None:
        case_ids, self._waiting_ids = self._waiting_ids, []
        self._add(self._waiting.block(), lambda position, repeat: case_ids[position])

    def settle(self) -> None:
        """Add up what waits: no more scores come, or figures are asked for."""
        if self._waiting_ids:
            self._add_waiting()
        if self._last_case is not None:
            block, case_id_at = self._last_case
            self._last_case = None
            self._add(block, case_id_at)

    def _add(self, block: ScoreBlock, case_id_at: Callable[[int, int], str]) -> None:
        """The one way in which scores are added up."""

        def case_id_of(number: int) -> str:
            return case_id_at(block.positions[number], block.repeats[number])

        self.n_cases += len(block)
        if block.judged:
            self._add_judged(block, case_id_of)
        keys = [(backend, status) for status, backend, _ in block.producers]
        scored: dict[tuple[str, Status], list[int]] = {}
        if len(keys) == 1 and None not in block.values:
            scored[keys[0]] = list(range(len(block)))
        else:
            unscored = []
            for number, producer in enumerate(block.producer_numbers()):
                if block.values[number] is None:
                    unscored.append(number)
                else:
                    scored.setdefault(keys[producer], []).append(number)
            self._add_unscored(block, unscored, case_id_of)
        for key, numbers in scored.items():
            self._add_scored(self._backend(*key), block, numbers, case_id_of)

    def _add_judged(self, block: ScoreBlock, case_id_of: Callable[[int], str]) -> None:
        """Add up what a judge was asked for the scores of a block."""
        if self._judging is None:
            self._judging = JudgeTally()
        for number, judged in block.judged.items():
            # Only of a panel the cases are named on which it disagrees.
            case_id = case_id_of(number) if judged.by_judge else ""
            self._judging.add(judged, failed=block.producer(number)[0] == "error", case_id=case_id)

    def _add_scored(
        self, backend: _Backend, block: ScoreBlock, numbers: list[int], case_id_of: Callable[[int], str]
    ) -> None:
        """Add up the scores of one backend."""
        values = [value for number in numbers if (value := block.values[number]) is not None]
        backend.n_scored += len(values)
        backend.n_from_half += len([value for value in values if value >= MIDDLE])
        backend.last = values[-1]
        if block.elapsed_s:
            backend.elapsed_s += sum([block.elapsed_s[number] for number in numbers])
        for number in numbers if block.reasons else ():
            backend.add_note(block.reasons.get(number))
        if block.amounts is not None and backend.amounts is not None:
            backend.amounts.extend([amount for number in numbers if (amount := block.amounts[number]) is not None])
        if self._repeated:
            self._add_repeats(backend, block, numbers, values, case_id_of)
        else:
            self._add_once(backend, block, numbers, values, case_id_of)

    def _add_once(
        self,
        backend: _Backend,
        block: ScoreBlock,
        numbers: list[int],
        values: list[float],
        case_id_of: Callable[[int], str],
    ) -> None:
        """Take values of cases that were run once."""
        backend.statistics.extend(values)
        if self._cluster_of is not None:
            for number, value in zip(numbers, values, strict=True):
                backend.add_to_cluster(self._cluster_of(block.positions[number]), value)
        for number, value in zip(numbers, values, strict=True) if block.judged else ():
            if number in block.judged:
                backend.add_said([_said(block.judged[number], value)])
        comparable: Sequence[float] = values
        if backend.cut is not None:
            comparable = backend.cut.add_all(values, _thresholds(block, numbers))
        if self._aside:
            shown = [place for place, number in enumerate(numbers) if case_id_of(number) not in self._aside]
            numbers = [numbers[place] for place in shown]
            comparable = [comparable[place] for place in shown]
        backend.worst.add_all(comparable, lambda place: case_id_of(numbers[place]))

    def _add_repeats(
        self,
        backend: _Backend,
        block: ScoreBlock,
        numbers: list[int],
        values: list[float],
        case_id_of: Callable[[int], str],
    ) -> None:
        """Take values of cases that were run several times."""
        backend.records.extend(values)
        by_case: dict[int, list[int]] = {}
        for number in numbers:
            by_case.setdefault(block.positions[number], []).append(number)
        for position, of_case in by_case.items():
            repeats = [value for number in of_case if (value := block.values[number]) is not None]
            mean = fsum(repeats) / len(repeats)
            backend.statistics.add(mean)
            if self._cluster_of is not None:
                backend.add_to_cluster(self._cluster_of(position), mean)
            if len(repeats) > 1:
                backend.repeated.append(repeats)
            said = [
                _said(block.judged[number], value)
                for number, value in zip(of_case, repeats, strict=True)
                if number in block.judged
            ]
            if said:
                backend.add_said(said)
            comparable = mean
            if backend.cut is not None:
                n_low_before = backend.cut.n_low
                levels = backend.cut.add_all(repeats, _thresholds(block, of_case))
                # A case is as bad as the worst of its repeats, so that those with a low one come first.
                comparable = max(levels) if backend.worst.sign > 0 else min(levels)
                backend.n_low_cases += backend.cut.n_low > n_low_before
            case_id = case_id_of(of_case[0])
            if case_id not in self._aside:
                backend.worst.add(case_id, comparable)

    def _add_unscored(self, block: ScoreBlock, numbers: Iterable[int], case_id_of: Callable[[int], str]) -> None:
        """Count records without a value; a case counts once for each of its reasons."""
        of_case: tuple[int, set[tuple[Status, str]]] = (-1, set())
        for number in numbers:
            status = block.producer(number)[0]
            self._n_errors += status == "error"
            entry = self._unscored_entry((status, block.reasons.get(number) or NO_REASON))
            entry.n_records += 1
            position, key = block.positions[number], (entry.status, entry.reason)
            if not self._repeated or of_case[0] != position:
                of_case = (position, set())
            if key in of_case[1]:
                continue
            of_case[1].add(key)
            entry.n_cases += 1
            if len(entry.first_cases) < CASES_NAMED:
                entry.first_cases.append(case_id_of(number))

    def _backend(self, name: str, status: Status) -> _Backend:
        backend = self._backends.get((name, status))
        if backend is None:
            backend = self._backends[name, status] = _Backend(self.info)
        return backend

    def _unscored_entry(self, key: tuple[Status, str]) -> Unscored:
        if key not in self._unscored and len(self._unscored) >= _MOST_REASONS:
            key = (key[0], "other reasons")
        entry = self._unscored.get(key)
        if entry is None:
            entry = self._unscored[key] = Unscored(self.name, key[0], key[1], 0, [])
        return entry

    def unscored(self) -> list[Unscored]:
        """Why there is no value, most frequent first."""
        self.settle()
        return sorted(self._unscored.values(), key=lambda entry: -entry.n_records)

    def rows(self) -> list[MetricSummary]:
        """One row for each backend that scored; one without numbers when none did."""
        self.settle()
        if not self._backends:
            status: Status = "error" if self._n_errors else "not_applicable"
            return [MetricSummary(self.name, self.info.backend, self.info.version, status, self.n_cases, 0)]
        most_scored_first = sorted(self._backends, key=lambda key: -self._backends[key].statistics.n)
        return [self._row(key) for key in most_scored_first]

    def _row(self, key: tuple[str, Status]) -> MetricSummary:
        backend, status = key
        scored = self._backends[key]
        statistics = scored.statistics
        records = scored.records if scored.records.n else statistics
        is_last = self.info.aggregate == "last"
        sampled = scored.clusters or statistics
        allowed = possible_range(self.info, records.minimum, records.maximum)
        interval = None if is_last else within(sampled.interval(shares=are_shares(self.info)), allowed)
        repeats = _repeats(scored.repeated)
        if is_last and repeats:
            # A balance differs from case to case because it is spent: that says nothing about how steady a case is.
            repeats = {"n_repeats": repeats["n_repeats"]}
        informational = None
        if status == "informational":
            informational = why_informational(self.info, backend, scored.informational)
        return MetricSummary(
            metric=self.name,
            backend=backend,
            version=self.info.version,
            status=status,
            n_cases=self.n_cases,
            n_scored=scored.n_scored,
            mean=scored.last if is_last else statistics.mean,
            low=interval.low if interval else None,
            high=interval.high if interval else None,
            interval=interval.method if interval else None,
            minimum=records.minimum,
            p50=records.quantile(0.5),
            p95=records.quantile(0.95),
            maximum=records.maximum,
            total=records.total,
            exact_quantiles=records.exact,
            trust=describe_trust(
                self.info,
                backend,
                n_scored=scored.n_scored,
                n_unmeasured=scored.n_unmeasured,
                is_other_text=informational is not None,
            ),
            n_unmeasured=scored.n_unmeasured,
            worst_cases=scored.worst.case_ids(),
            n_below_best=scored.worst.n_below_best,
            **repeats,
            elapsed_s=scored.elapsed_s,
            amount=self._amount(scored.amounts, clustered=scored.clusters is not None),
            judge=None if scored.judge is None else _judge_spread(scored.judge),
            aggregate=self.info.aggregate,
            mean_of=self.info.mean_of,
            share_from_half=scored.n_from_half / scored.n_scored if are_shares(self.info) and not is_last else None,
            share_low=scored.cut.n_low / scored.n_scored if scored.cut is not None and not is_last else None,
            n_low_cases=None if scored.cut is None or is_last else scored.n_low_cases or scored.cut.n_low,
            cut=scored.cut.span if scored.cut is not None and not is_last else None,
            panel=None if self._judging is None else self._judging.panel(),
            informational=informational,
        )

    def _amount(self, amounts: RunningStatistics | None, *, clustered: bool) -> AmountSummary | None:
        if amounts is None or self.info.amount is None:
            return None
        mean, p95, total = amounts.mean, amounts.quantile(0.95), amounts.total
        if mean is None or p95 is None or total is None:
            return None
        # Amounts are not kept by cluster, and an interval over cases would claim too much.
        interval = None if clustered else amounts.interval(shares=False)
        # An amount (energy, carbon) cannot be negative; Student's t does not know that.
        low, high = (None, None) if interval is None else (max(0.0, interval.low), interval.high)
        return AmountSummary(self.info.amount[1], mean, low, high, p95, total, amounts.exact)


def _said(judged: Judged, value: float) -> tuple[float, ...]:
    """What the judge said of an answer each time, moved to where the score is: a rate is 1 less what it said."""
    if len(judged.values) < 2:
        return (value,)
    mean = fsum(judged.values) / len(judged.values)
    return tuple(value + (each - mean) for each in judged.values)


def _judge_spread(noise: JudgeVariance) -> JudgeSpread | None:
    spread = noise.spread()
    return None if spread.judge_sd is None else JudgeSpread(noise.most_repeats, *spread)


def _repeats(groups: list[list[float]]) -> dict[str, Any]:
    """What repeating cases shows: how steady each case is, and how many pass always or ever."""
    if not groups:
        return {}
    between, within = between_within_variance(groups)
    found: dict[str, Any] = {
        "n_repeats": max(len(group) for group in groups),
        "within_case_sd": None if within is None else sqrt(within),
        "between_cases_sd": None if between is None else sqrt(between),
    }
    # Of cases that were run unequally often, no number of runs stands for all.
    even = len({len(group) for group in groups}) == 1
    if even and all(value in (0.0, 1.0) for group in groups for value in group):
        passed = [(sum(group), len(group)) for group in groups]
        found["pass_all"] = sum(count == n for count, n in passed) / len(passed)
        found["pass_any"] = sum(count > 0 for count, n in passed) / len(passed)
    return found


def amount_of(info: MetricInfo, detail: Mapping[str, Any]) -> float | None:
    """The amount that tables show in place of the score, if the metric has one and this result states it."""
    return None if info.amount is None else number_in(detail, info.amount[0])


def _thresholds(block: ScoreBlock, numbers: Iterable[int]) -> list[float | None] | None:
    """The thresholds that scores name themselves; ``None`` where they were not asked for."""
    if block.amounts is None:
        return None
    return [usable_threshold(block.amounts[number]) for number in numbers]
