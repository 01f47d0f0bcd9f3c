"""The aggregate of a run, kept as scores are made, in constant memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from math import fsum, inf, sqrt
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from agentunit.core.judged import Judged, judged_of
from agentunit.core.results import (
    EVIDENCE_NOTE,
    INFORMATIONAL_NOTE,
    AmountSummary,
    JudgeSpread,
    MetricSummary,
    Score,
    Status,
    Unscored,
)
from agentunit.engine.columns import numbers_of
from agentunit.engine.cut_offs import MIDDLE, CutDegrees, mean_threshold, own_threshold, usable_threshold
from agentunit.engine.judging import JudgeTally
from agentunit.engine.margins import are_shares, possible_range
from agentunit.engine.worst_cases import CASES_NAMED, WorstCases
from agentunit.formulas.repeats import JudgeVariance, between_within_variance
from agentunit.formulas.running import ClusterTotals, RunningStatistics
from agentunit.metrics.base import MetricInfo
from agentunit.metrics.evidence import NOT_MEASURED
from agentunit.metrics.trust import describe_trust, why_informational

if TYPE_CHECKING:
    from agentunit.engine.columns import MetricColumns, ReasonColumn
    from agentunit.store.runs import ScoreRow
    from agentunit.store.score_blocks import ScoreColumns

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
        "n_scored",
        "n_unmeasured",
        "records",
        "repeated",
        "statistics",
        "worst",
    )

    def __init__(self, info: MetricInfo) -> None:
        # The mean and its interval are over cases; where cases were repeated, everything else is over the records.
        self.statistics = RunningStatistics()
        self.clusters: ClusterTotals | None = None
        self.records = RunningStatistics()
        self.amounts = None if info.amount is None else RunningStatistics()
        self.repeated: list[list[float]] = []
        self.cut = CutDegrees(info) if info.mean_of and are_shares(info) else None
        self.worst = WorstCases(info)
        self.judge = JudgeVariance()
        self.elapsed_s = 0.0
        self.n_scored = 0
        self.n_unmeasured = 0
        self.informational: Counter[str] = Counter()
        self.n_from_half = 0
        self.last: float | None = None

    def add_to_cluster(self, cluster: int, value: float) -> None:
        """Take a case's value also as one of its cluster."""
        if self.clusters is None:
            self.clusters = ClusterTotals()
        self.clusters.add(cluster, value)

    def add_note(self, reason: str | None) -> None:
        """Count what a row says of a score: that its evidence was not measured, or why it is informational."""
        if reason == NOT_MEASURED:
            self.n_unmeasured += 1
        elif reason:
            self.add_informational({reason: 1})

    def add_informational(self, reasons: Mapping[str, int]) -> None:
        """Count why scores are informational."""
        for reason, n in reasons.items():
            if reason in self.informational or len(self.informational) < _MOST_REASONS:
                self.informational[reason] += n


class MetricAggregate:
    """One metric over a run. Values of different backends are kept apart.

    Cases that are set ``aside`` count in all numbers, but are not among the worst: their fault is known.
    """

    def __init__(self, name: str, info: MetricInfo, aside: Collection[str] = ()) -> None:
        self.name = name
        self.info = info
        self._aside = frozenset(aside)
        self.n_cases = 0
        self.n_errors = 0
        self.judging = JudgeTally()
        self._composite = info.family == "composite"
        self._backends: dict[tuple[str, Status], _Backend] = {}
        self._unscored: dict[tuple[Status, str], Unscored] = {}

    def add(self, case_id: str, score: Score) -> None:
        """Take one more score."""
        result = score.result
        value, detail = result.value, result.detail
        if value is None or self._composite or "judge" in detail:
            backend = self._add_value(
                case_id,
                value,
                score.status,
                score.backend,
                reason_of(detail) if value is None else None,
                judged_of(detail, nested=self._composite),
                number_of(self.info, detail),
            )
        else:
            threshold = own_threshold(self.info, detail) if self.info.mean_of else None
            backend = self._add_plain(case_id, value, score.status, score.backend, threshold)
            if backend.amounts is not None and (amount := amount_of(self.info, detail)) is not None:
                backend.amounts.add(amount)
        if backend is not None:
            backend.elapsed_s += score.elapsed
            if INFORMATIONAL_NOTE in detail:
                backend.add_informational({str(detail[INFORMATIONAL_NOTE]): 1})
            elif EVIDENCE_NOTE in detail:
                backend.n_unmeasured += 1

    def add_rows(
        self, rows: Iterable[ScoreRow], *, repeated: bool, clusters: Callable[[int], int] | None = None
    ) -> None:
        """Take the scores of a run. Where it is ``repeated``, those of one case count once, by their mean.

        Runs of the same case are alike, so counting each would make the interval narrower than it is. ``clusters``
        tells the cluster of a position, where cases are alike too.
        """
        if repeated:
            for position, of_case in groupby(rows, key=attrgetter("position")):
                self._add_repeats(list(of_case), None if clusters is None else clusters(position))
            return
        for row in rows:
            backend = self._add_value(
                row.case_id, row.value, row.status, row.backend, row.reason, row.judged, row.amount
            )
            if backend is not None and row.value is not None:
                backend.add_note(row.reason)
                if clusters is not None:
                    backend.add_to_cluster(clusters(row.position), row.value)

    def add_columns(self, columns: ScoreColumns, case_id_at: Callable[[int, int], str]) -> None:
        """Take scores of a run without repeats, clusters and cases set aside: the same as ``add_rows``, but faster."""
        which = columns.producer_of or [0] * len(columns.values)
        self.n_cases += len(columns.values)

        def case_id_of(number: int) -> str:
            return case_id_at(columns.positions[number], columns.repeats[number])

        for number, judged in columns.judged.items():
            self.judging.add(judged, failed=columns.producers[which[number]][0] == "error")
        scored: dict[int, list[int]] = {}
        if None not in columns.values and columns.producer_of is None:
            scored[0] = list(range(len(columns.values)))
        else:
            for number, value in enumerate(columns.values):
                if value is None:
                    status = columns.producers[which[number]][0]
                    self._add_unscored(partial(case_id_of, number), status, columns.reasons.get(number))
                else:
                    scored.setdefault(which[number], []).append(number)
        for producer, numbers in scored.items():
            status, backend_name, _ = columns.producers[producer]
            self._add_scored(columns, numbers, (backend_name, status), case_id_of)

    def _add_scored(
        self, columns: ScoreColumns, numbers: list[int], key: tuple[str, Status], case_id_of: Callable[[int], str]
    ) -> None:
        backend = self._backend(*key)
        values = [value for number in numbers if (value := columns.values[number]) is not None]
        backend.statistics.extend(values)
        backend.n_from_half += sum(value >= MIDDLE for value in values)
        comparable: Sequence[float] = values
        if backend.cut is not None:
            named = columns.amounts
            thresholds = None if named is None else [usable_threshold(named[number]) for number in numbers]
            comparable = backend.cut.add_all(values, thresholds)
        backend.last = values[-1]
        backend.n_scored += len(values)
        for number in numbers if columns.reasons else ():
            backend.add_note(columns.reasons.get(number))
        for number in numbers if columns.judged else ():
            judged, value = columns.judged.get(number), columns.values[number]
            if judged is not None and value is not None:
                backend.judge.add([_said(judged, value)])
        if columns.amounts is not None and backend.amounts is not None:
            amounts = [amount for number in numbers if (amount := columns.amounts[number]) is not None]
            backend.amounts.extend(amounts)
        backend.worst.add_all(comparable, lambda place: case_id_of(numbers[place]))

    def add_block(self, columns: MetricColumns, n_records: int, case_id: Callable[[int, str], str]) -> None:
        """Take the scores of records that another process scored, in the order in which they stand in the input.

        ``case_id`` tells the id of a record by its place among them and what it says itself.
        """
        self.n_cases += n_records
        self.n_errors += columns.n_errors
        for each in columns.values:
            backend = self._backend(each.backend, each.status)
            values = numbers_of(each.values)
            backend.statistics.extend(values)
            backend.n_from_half += sum(value >= MIDDLE for value in values)
            backend.last = values[-1]
            backend.n_scored += len(values)
            backend.n_unmeasured += each.n_unmeasured
            backend.add_informational(each.informational)
            backend.elapsed_s += each.elapsed_s
            if backend.amounts is not None:
                backend.amounts.extend(numbers_of(each.amounts))
            if backend.cut is not None and each.cut is not None:
                backend.cut.add_cut(each.n_low, each.cut)
            n_below_best = backend.worst.n_below_best + each.n_below_best
            for place, own_id, value in each.worst:
                backend.worst.add(case_id(place, own_id), value)
            backend.worst.n_below_best = n_below_best
        for which, judged_value, judged, failed in columns.judged:
            self.judging.add(judged, failed=failed)
            if which is not None and judged_value is not None:
                source = columns.values[which]
                self._backends[source.backend, source.status].judge.add([_said(judged, judged_value)])
        self._add_reasons(columns.reasons, case_id)

    def _add_reasons(self, reasons: Sequence[ReasonColumn], case_id: Callable[[int, str], str]) -> None:
        first: dict[tuple[Status, str], list[tuple[int, str]]] = {}
        for each in reasons:
            entry = self._unscored_entry((each.status, each.reason))
            entry.n_records += each.n
            entry.n_cases += each.n
            first.setdefault((entry.status, entry.reason), []).extend(each.first)
        for key, places in first.items():
            named = self._unscored[key].first_cases
            named.extend(case_id(*each) for each in sorted(places)[: CASES_NAMED - len(named)])

    def _backend(self, name: str, status: Status) -> _Backend:
        backend = self._backends.get((name, status))
        if backend is None:
            backend = self._backends[name, status] = _Backend(self.info)
        return backend

    def _add_value(
        self,
        case_id: str,
        value: float | None,
        status: Status,
        backend_name: str,
        reason: object,
        judged: Judged | None,
        number: float | None,
    ) -> _Backend | None:
        """Take the score of a case that was run once; returns what it was added to. ``number``: see ``number_of``."""
        if judged is not None:
            self.judging.add(judged, failed=status == "error", case_id=case_id)
        if value is None:
            self.n_cases += 1
            self._add_unscored(case_id, status, reason)
            return None
        backend = self._add_plain(case_id, value, status, backend_name, usable_threshold(number))
        if judged is not None:
            backend.judge.add([_said(judged, value)])
        if number is not None and backend.amounts is not None:
            backend.amounts.add(number)
        return backend

    def _add_plain(
        self, case_id: str, value: float, status: Status, backend_name: str, threshold: float | None
    ) -> _Backend:
        """Take a value that no judge gave; returns what it was added to."""
        self.n_cases += 1
        backend = self._backends.get((backend_name, status))
        if backend is None:
            backend = self._backend(backend_name, status)
        backend.statistics.add(value)
        if value >= MIDDLE:
            backend.n_from_half += 1
        backend.last = value
        backend.n_scored += 1
        worst = backend.worst
        comparable = value if backend.cut is None else backend.cut.add(value, threshold)
        badness = worst.sign * comparable
        if badness > worst.best and case_id not in self._aside:
            if badness > worst.floor:
                worst.add(case_id, comparable)
            else:
                worst.n_below_best += 1
        return backend

    def _add_repeats(self, rows: Sequence[ScoreRow], cluster: int | None) -> None:
        values: dict[tuple[str, Status], list[float]] = {}
        numbers: dict[tuple[str, Status], list[float | None]] = {}
        said: dict[tuple[str, Status], list[tuple[float, ...]]] = {}
        without_value: set[tuple[Status, str]] = set()
        for row in rows:
            self.n_cases += 1
            if row.judged is not None:
                self.judging.add(row.judged, failed=row.status == "error", case_id=row.case_id)
            if row.value is None:
                self._add_unscored(row.case_id, row.status, row.reason, without_value)
            else:
                values.setdefault((row.backend, row.status), []).append(row.value)
                self._backend(row.backend, row.status).add_note(row.reason)
                if row.judged is not None:
                    said.setdefault((row.backend, row.status), []).append(_said(row.judged, row.value))
                numbers.setdefault((row.backend, row.status), []).append(row.amount)
        for key, repeats in values.items():
            backend = self._backend(*key)
            mean = fsum(repeats) / len(repeats)
            backend.statistics.add(mean)
            backend.n_from_half += mean >= MIDDLE
            if cluster is not None:
                backend.add_to_cluster(cluster, mean)
            backend.last = repeats[-1]
            for value in repeats:
                backend.records.add(value)
            backend.n_scored += len(repeats)
            if len(repeats) > 1:
                backend.repeated.append(repeats)
            if key in said:
                backend.judge.add(said[key])
            comparable = mean
            if backend.cut is not None:
                comparable = backend.cut.add(mean, mean_threshold(map(usable_threshold, numbers[key])))
            if row.case_id not in self._aside:
                backend.worst.add(row.case_id, comparable)
            if backend.amounts is not None:
                for amount in numbers[key]:
                    if amount is not None:
                        backend.amounts.add(amount)

    def _add_unscored(
        self,
        case_id: str | Callable[[], str],
        status: Status,
        reason: object,
        of_case: set[tuple[Status, str]] | None = None,
    ) -> None:
        """Count a record without a value; ``of_case`` are the reasons that other repeats of its case had."""
        if status == "error":
            self.n_errors += 1
        entry = self._unscored_entry((status, reason_text(reason)))
        key = (entry.status, entry.reason)
        entry.n_records += 1
        if of_case is not None:
            if key in of_case:
                return
            of_case.add(key)
        entry.n_cases += 1
        if len(entry.first_cases) < CASES_NAMED:
            entry.first_cases.append(case_id if isinstance(case_id, str) else case_id())

    def _unscored_entry(self, key: tuple[Status, str]) -> Unscored:
        if key not in self._unscored and len(self._unscored) >= _MOST_REASONS:
            key = (key[0], "other reasons")
        entry = self._unscored.get(key)
        if entry is None:
            entry = self._unscored[key] = Unscored(self.name, key[0], key[1], 0, [])
        return entry

    def unscored(self) -> list[Unscored]:
        """Why there is no value, most frequent first."""
        return sorted(self._unscored.values(), key=lambda entry: -entry.n_records)

    def rows(self) -> list[MetricSummary]:
        """One row for each backend that scored; one without numbers when none did."""
        if not self._backends:
            status: Status = "error" if self.n_errors else "not_applicable"
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
        interval = None if is_last else sampled.interval(shares=are_shares(self.info))
        allowed = possible_range(self.info, records.minimum, records.maximum)
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
            low=_within(interval.low, allowed) if interval else None,
            high=_within(interval.high, allowed) if interval else None,
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
            judge=_judge_spread(scored.judge),
            aggregate=self.info.aggregate,
            mean_of=self.info.mean_of,
            share_from_half=scored.n_from_half / statistics.n if are_shares(self.info) and not is_last else None,
            share_low=scored.cut.n_low / statistics.n if scored.cut is not None and not is_last else None,
            cut=scored.cut.span if scored.cut is not None and not is_last else None,
            panel=self.judging.panel(),
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
    amount = None if info.amount is None else detail.get(info.amount[0])
    return float(amount) if isinstance(amount, (int, float)) and not isinstance(amount, bool) else None


def number_of(info: MetricInfo, detail: Mapping[str, Any]) -> float | None:
    """The number in a detail that a run's figures need beside the value: its amount, or its own threshold."""
    return own_threshold(info, detail) if info.amount is None else amount_of(info, detail)


def reason_of(detail: dict[str, Any]) -> str | None:
    """Why a result has no value: its own reason, or those of a composite's parts."""
    if detail.get("reason"):
        return str(detail["reason"])
    parts = [
        f"{name}: {part['reason']}" for name, part in detail.items() if isinstance(part, dict) and part.get("reason")
    ]
    return "; ".join(parts) or None


def reason_text(reason: object) -> str:
    """A reason as it is counted."""
    return str(reason or "the metric gave no reason")


def _within(bound: float, allowed: tuple[float | None, float | None]) -> float:
    """An end of an interval, which must not leave the values a metric can take."""
    low, high = allowed
    return max(-inf if low is None else low, min(inf if high is None else high, bound))
