"""Scores by slice: which kinds of cases do differently from the rest. Described, never tested.

A slice is the cases that share a value of a field (``metadata.category``). With many slices one of them always looks
bad by chance, so no p-value is computed: the rows say where to look.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import fsum, sqrt
from operator import attrgetter
from typing import Any

from agentunit.core.results import Score, Status
from agentunit.core.said import Said
from agentunit.core.score_block import ScoreBlock, SliceColumns
from agentunit.engine.deciding.comparison import Comparison
from agentunit.engine.deciding.cut_offs import are_shares, possible_range, within
from agentunit.engine.deciding.known_failures import set_aside, without_cases
from agentunit.engine.deciding.paired_scores import clusters_by_case, equally_repeated, scores_by_backend
from agentunit.engine.scoring.case_fields import check_field, field_values, other_fields
from agentunit.engine.scoring.scored_run import ScoredRun
from agentunit.formulas.running import ClusterTotals, RunningStatistics
from agentunit.metrics.base import MetricInfo

FEWEST_CASES = 5
MOST_SLICES = 200
MOST_FIELDS = 20
NO_VALUE, OTHER = "(none)", "(other)"


@dataclass(frozen=True)
class SliceRow:
    """One metric on one slice.

    ``n_scored`` of its ``n_cases`` cases have a value, with this mean and its 95 % interval; in a comparison the values
    are differences to the baseline. ``rest_mean`` is the mean of all other cases, and ``difference`` how far the slice
    is from it, in standard deviations of the values of all cases. ``too_small`` marks fewer than five values.
    """

    metric: str
    backend: str
    status: Status
    slice: Said
    n_cases: int
    n_scored: int
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    interval: str | None = None
    rest_mean: float | None = None
    difference: float | None = None
    too_small: bool = False


@dataclass(frozen=True)
class SliceTable:
    """The rows by a field, those that differ most first. ``differences``: the values are new run − baseline.

    ``fields`` are some that cases without a value of it have.
    """

    by: str
    rows: list[SliceRow]
    differences: bool = False
    fields: tuple[str, ...] = ()


class _Part:
    """The values of one metric on one slice."""

    def __init__(self) -> None:
        self.statistics = RunningStatistics(1)
        self.clusters: ClusterTotals | None = None

    def extend(self, values: array[float], cluster: int | None) -> None:
        self.statistics.extend(values)
        if cluster is not None:
            self.clusters = self.clusters or ClusterTotals()
            for value in values:
                self.clusters.add(cluster, value)


class Slices:
    """What the scores of each slice add up to, in memory that does not grow with the number of cases.

    At most 200 slices are kept apart; the cases of all further ones are "(other)". Pass/fail values have Wilson's
    interval, others Student's t: a bootstrap of every row would take minutes.
    """

    def __init__(self, field: str) -> None:
        self.field = check_field(field)
        self._fields: dict[str, None] = {}
        self._n_cases: dict[str, int] = {}
        self._infos: dict[str, MetricInfo] = {}
        self._whole: dict[tuple[str, str, Status], RunningStatistics] = {}
        self._parts: dict[tuple[str, str, Status], dict[str, _Part]] = {}

    def begin_case(self, metadata: Any) -> tuple[str, ...]:
        """Count a case, and return the names of the slices that it belongs to."""
        values = field_values(metadata, self.field)
        if not values:
            self._note_fields(other_fields(metadata))
        return self._count(values)

    def _note_fields(self, names: Sequence[str]) -> None:
        if len(self._fields) < MOST_FIELDS:
            self._fields.update(dict.fromkeys(names))

    def _count(self, values: Sequence[str], n_cases: int = 1) -> tuple[str, ...]:
        names = []
        for name in values or (NO_VALUE,):
            if name not in self._n_cases and len(self._n_cases) >= MOST_SLICES:
                name = OTHER
            if name not in names:
                names.append(name)
                self._n_cases[name] = self._n_cases.get(name, 0) + n_cases
        return tuple(names)

    def add_blocks(
        self, columns: SliceColumns, blocks: Sequence[ScoreBlock], infos: Sequence[tuple[str, MetricInfo]]
    ) -> None:
        """Take the scores of cases that another process scored, in the order in which they stand in the input."""
        for names in columns.other_fields:
            self._note_fields(names)
        slices = [self._count(values, n_cases) for values, n_cases in columns.values]
        # By the record and the metric that came first, as when the cases are taken one by one.
        values_of: dict[tuple[int, str, Status, int], array[float]] = {}
        first_of: dict[tuple[int, str, Status, int], int] = {}
        for metric, block in enumerate(blocks):
            rows = zip(block.values, block.producer_numbers(), columns.of_record, strict=True)
            for record, (value, producer, slice_number) in enumerate(rows):
                if value is None:
                    continue
                status, backend, _ = block.producers[producer]
                key = (metric, backend, status, slice_number)
                if key not in values_of:
                    values_of[key] = array("d")
                    first_of[key] = record
                values_of[key].append(value)
        for key in sorted(values_of, key=lambda key: (first_of[key], key[0])):
            metric, backend, status, slice_number = key
            name, info = infos[metric]
            self.add_some(slices[slice_number], name, info, backend, status, values_of[key])

    def table(self, *, differences: bool = False) -> SliceTable:
        """The rows, with what they were made by."""
        return SliceTable(self.field, self.rows(differences=differences), differences, tuple(self._fields))

    def add(
        self,
        names: Iterable[str],
        metric: str,
        info: MetricInfo,
        backend: str,
        status: Status,
        value: float,
        cluster: int | None = None,
    ) -> None:
        """Take the value of a case, of this cluster if any; a balance of the whole run is not cut into slices."""
        self.add_some(names, metric, info, backend, status, array("d", [value]), cluster)

    def add_some(
        self,
        names: Iterable[str],
        metric: str,
        info: MetricInfo,
        backend: str,
        status: Status,
        values: array[float],
        cluster: int | None = None,
    ) -> None:
        """Take values of cases of the same slices."""
        if info.aggregate == "last":
            return
        self._infos[metric] = info
        key = (metric, backend, status)
        parts = self._parts.setdefault(key, {})
        if key not in self._whole:
            self._whole[key] = RunningStatistics(1)
        self._whole[key].extend(values)
        for name in names:
            if name not in parts:
                parts[name] = _Part()
            parts[name].extend(values, cluster)

    def add_scores(self, metadata: Any, scores: Mapping[str, Score], infos: Mapping[str, MetricInfo]) -> None:
        """Take all scores of a case."""
        names = self.begin_case(metadata)
        for metric, score in scores.items():
            if score.value is not None:
                self.add(names, metric, infos[metric], score.backend, score.status, score.value)

    def rows(self, *, differences: bool = False) -> list[SliceRow]:
        """A row for each metric and slice; those that differ most from the rest first, small slices after the others.

        ``differences`` says that the values are differences of scores, which have no range: those that changed most
        come first.
        """
        found = [row for key in self._parts for row in self._rows_of(key, differences)]

        def apart(row: SliceRow) -> float:
            """How far a slice is from the rest; of differences, how far it moved, which the rest has no part in."""
            if not differences:
                return abs(row.difference or 0.0)
            whole = self._whole[row.metric, row.backend, row.status]
            return abs(row.mean or 0.0) / (sqrt(whole.sample_variance or 0.0) or 1.0)

        return sorted(found, key=lambda row: (row.status != "ok", row.too_small, -apart(row)))

    def _rows_of(self, key: tuple[str, str, Status], differences: bool) -> Iterator[SliceRow]:
        metric, backend, status = key
        info, whole = self._infos[metric], self._whole[key]
        total, n = whole.total or 0.0, whole.n
        spread = sqrt(whole.sample_variance or 0.0)
        for name, n_cases in self._n_cases.items():
            row = SliceRow(metric, backend, status, name, n_cases, 0, too_small=True)
            found = self._parts[key].get(name)
            if found is None or found.statistics.mean is None:
                yield row
                continue
            part = found.statistics
            interval = (found.clusters or part).interval(shares=are_shares(info) and not differences)
            if not differences:
                interval = within(interval, possible_range(info, part.minimum, part.maximum))
            elif part.minimum == part.maximum:
                # Values that are all the same have no spread to make an interval of.
                interval = None
            rest = (total - (part.total or 0.0)) / (n - part.n) if n > part.n else None
            yield replace(
                row,
                n_scored=part.n,
                mean=part.mean,
                low=interval.low if interval else None,
                high=interval.high if interval else None,
                interval=interval.method if interval else None,
                rest_mean=rest,
                difference=None
                if rest is None or part.mean is None
                else (part.mean - rest) / spread
                if spread
                else 0.0,
                too_small=part.n < FEWEST_CASES,
            )


def slices_of_run(run: ScoredRun, field: str) -> SliceTable:
    """The rows of a run by a field of its cases, which is read from its records. Repeats of a case count as one."""
    slices = Slices(field)
    names = {position: found for position, _, found in _sliced(run, slices)}
    clusters = run.clusters
    for metric, rows in run.metrics.items():
        info = run.info(metric)
        for position, of_case in groupby(rows, key=attrgetter("position")):
            values: dict[tuple[str, Status], list[float]] = {}
            for row in of_case:
                if row.value is not None:
                    values.setdefault((row.backend, row.status), []).append(row.value)
            for (backend, status), repeats in values.items():
                value = fsum(repeats) / len(repeats)
                cluster = None if clusters is None else clusters.of_case(position)
                slices.add(names.get(position, ()), metric, info, backend, status, value, cluster)
    return slices.table()


def slices_of_comparison(comparison: Comparison, candidate: ScoredRun, baseline: ScoredRun, field: str) -> SliceTable:
    """The rows of what changed: for each case its score less that of the baseline, by a field of the new run's cases.

    Only metrics whose scores in the two runs were compared as they were kept.
    """
    aside = set_aside(candidate)
    candidate, baseline = without_cases(candidate, aside), without_cases(baseline, aside)
    slices = Slices(field)
    names = {case_id: found for _, case_id, found in _sliced(candidate, slices)}
    clusters = clusters_by_case(candidate, baseline) or {}
    for each in comparison.metrics:
        if each.verdict == "not compared" or each.backend is None:
            continue
        old, new = (
            scores_by_backend(run.metrics.get(each.metric, ())).get(each.backend) for run in (baseline, candidate)
        )
        if old is None or new is None or old.versions != new.versions:
            continue
        old, new, _ = equally_repeated(old, new)
        status: Status = "informational" if old.informational or new.informational else "ok"
        for case_id, value in new.values.items():
            if case_id in old.values:
                change = value - old.values[case_id]
                info, cluster = candidate.info(each.metric), clusters.get(case_id)
                slices.add(names.get(case_id, ()), each.metric, info, each.backend, status, change, cluster)
    return slices.table(differences=True)


def _sliced(run: ScoredRun, slices: Slices) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    """Position, id and slices of each case, from the records, of which only one is in memory at a time."""
    if run.read_records is None:
        raise ValueError(f"run {run.header.label} was kept without its records: the fields of its cases are not known")
    wanted = {record.position for record in run.records}
    for stored in run.read_records():
        if stored.position in wanted:
            wanted.remove(stored.position)
            case = stored.record.case
            yield stored.position, stored.case_id, slices.begin_case(getattr(case, "metadata", None))
