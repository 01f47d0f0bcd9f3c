"""In a worker: the scores of one record after the other become columns."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any

from agentunit.core.judged import Judged, judged_of
from agentunit.core.results import (
    EVIDENCE_NOTE,
    INFORMATIONAL_NOTE,
    CaseScores,
    InputError,
    Score,
    Status,
    append_scores,
)
from agentunit.engine.aggregate import amount_of, reason_of, reason_text
from agentunit.engine.case_fields import field_values, other_fields
from agentunit.engine.columns import Block, MetricColumns, ReasonColumn, SliceColumns, SliceScores, ValueColumn
from agentunit.engine.cut_offs import CutDegrees, own_threshold
from agentunit.engine.slices import MOST_FIELDS
from agentunit.engine.worst_cases import CASES_NAMED, WorstCases
from agentunit.metrics.base import MetricInfo

# The ids that records without one get: another record may have the same as its own.
_GIVEN_ID = "case-"


class _Values:
    __slots__ = ("amounts", "candidates", "cut", "elapsed_s", "informational", "n_unmeasured", "values", "worst")

    def __init__(self, info: MetricInfo) -> None:
        self.values = array("d")
        self.amounts = array("d")
        self.elapsed_s = 0.0
        self.n_unmeasured = 0
        self.cut = CutDegrees(info) if info.mean_of else None
        self.informational: dict[str, int] = {}
        self.worst = WorstCases(info)
        self.candidates: list[tuple[int, str, float]] = []

    def consider(self, place: int, case_id: str, value: float) -> None:
        """Keep a case that may be among the worst of the run.

        A case that is not among the worst of these records is not among those of all. An id that may be that of a case
        without one says nothing about how many different cases there are, so its case is kept and not counted.
        """
        worst = self.worst
        if not case_id.startswith(_GIVEN_ID):
            if worst.add(case_id or f"\0{place}", value):
                self.candidates.append((place, case_id, value))
        else:
            worst.n_below_best += 1
            if worst.could_take(value):
                self.candidates.append((place, case_id, value))


class _Metric:
    """The columns of one metric."""

    def __init__(self, info: MetricInfo) -> None:
        self._info = info
        self._amount = info.amount
        self._composite = info.family == "composite"
        self._n_errors = 0
        self._values: dict[tuple[str, Status], _Values] = {}
        self._reasons: dict[tuple[Status, str], ReasonColumn] = {}
        self._judged: list[tuple[tuple[str, Status] | None, float | None, Judged, bool]] = []

    def add(self, place: int, case_id: str, score: Score) -> None:
        result, status = score.result, score.status
        value, detail = result.value, result.detail
        key = (score.backend, status)
        if self._composite or "judge" in detail:
            judged = judged_of(detail, nested=self._composite)
            if judged is not None:
                self._judged.append((None if value is None else key, value, judged, status == "error"))
        if value is None:
            self._n_errors += status == "error"
            why = (status, reason_text(reason_of(detail)))
            reason = self._reasons.get(why)
            if reason is None:
                reason = self._reasons[why] = ReasonColumn(status, why[1], 0, [])
            reason.n += 1
            if len(reason.first) < CASES_NAMED:
                reason.first.append((place, case_id))
            return
        column = self._values.get(key)
        if column is None:
            column = self._values[key] = _Values(self._info)
        column.values.append(value)
        column.elapsed_s += score.elapsed
        if INFORMATIONAL_NOTE in detail:
            why_so = str(detail[INFORMATIONAL_NOTE])
            column.informational[why_so] = column.informational.get(why_so, 0) + 1
        elif EVIDENCE_NOTE in detail:
            column.n_unmeasured += 1
        if self._amount is not None and (amount := amount_of(self._info, detail)) is not None:
            column.amounts.append(amount)
        worst = column.worst
        comparable = value if column.cut is None else column.cut.add(value, own_threshold(self._info, detail))
        badness = worst.sign * comparable
        if badness > worst.best:
            if badness > worst.floor:
                column.consider(place, case_id, comparable)
            else:
                worst.n_below_best += 1

    def columns(self) -> MetricColumns:
        places = {key: place for place, key in enumerate(self._values)}
        return MetricColumns(
            self._n_errors,
            [
                ValueColumn(
                    backend,
                    status,
                    each.values.tobytes(),
                    each.amounts.tobytes(),
                    each.elapsed_s,
                    each.worst.n_below_best,
                    each.candidates,
                    each.n_unmeasured,
                    0 if each.cut is None else each.cut.n_low,
                    None if each.cut is None else each.cut.span,
                    each.informational,
                )
                for (backend, status), each in self._values.items()
            ],
            list(self._reasons.values()),
            [(None if key is None else places[key], *rest) for key, *rest in self._judged],  # type: ignore[misc]
        )


class _Sliced:
    """The slices of some cases."""

    def __init__(self, field: str) -> None:
        self._field = field
        self._values: dict[tuple[str, ...], list[int]] = {}
        self._other: dict[str, None] = {}
        self._other_fields: list[list[str]] = []
        self._scores: dict[tuple[int, str, Status, int], array[float]] = {}

    def add(self, metadata: Any, scores: Iterable[Score]) -> None:
        values = field_values(metadata, self._field)
        if not values and len(self._other) < MOST_FIELDS and (fields := other_fields(metadata)):
            self._other.update(dict.fromkeys(fields))
            self._other_fields.append(fields)
        number, n_cases = self._values.setdefault(values, [len(self._values), 0])
        self._values[values][1] = n_cases + 1
        for metric, score in enumerate(scores):
            if score.value is not None:
                key = (metric, score.backend, score.status, number)
                column = self._scores.get(key)
                if column is None:
                    column = self._scores[key] = array("d")
                column.append(score.value)

    def columns(self) -> SliceColumns:
        return SliceColumns(
            [(values, n_cases) for values, (_, n_cases) in self._values.items()],
            self._other_fields,
            [SliceScores(*key, column.tobytes()) for key, column in self._scores.items()],
        )


class Collector:
    """Takes cases with their scores, from place ``first`` of the input on; ``block`` is what they add up to."""

    def __init__(
        self, infos: Sequence[MetricInfo], first: int, *, by: str | None, with_lines: bool, with_ids: bool
    ) -> None:
        self._metrics = [_Metric(info) for info in infos]
        self._add_to_metrics = [metric.add for metric in self._metrics]
        self._first = first
        self._slices = None if by is None else _Sliced(by)
        self._lines: bytearray | None = bytearray() if with_lines else None
        self._case_ids: list[str] | None = [] if with_ids else None
        self._missing_ids: list[int] = []
        self.n_records = 0

    @property
    def n_line_bytes(self) -> int:
        """How long the lines are so far."""
        return 0 if self._lines is None else len(self._lines)

    def add(self, case: CaseScores, own_id: str, metadata: Any) -> None:
        """Take the scores of the next record."""
        place = self.n_records
        self.n_records += 1
        if not own_id:
            self._missing_ids.append(place)
        for add, score in zip(self._add_to_metrics, case.scores.values(), strict=True):
            add(place, own_id, score)
        if self._slices is not None:
            self._slices.add(metadata, case.scores.values())
        if self._case_ids is not None:
            self._case_ids.append(own_id)
        if self._lines is not None:
            case.index = self._first + place
            case.case_id = own_id or f"case-{case.index + 1}"
            append_scores(case, self._lines)

    def block(self, errors: list[InputError], n_without_content: int, n_user_failed: int) -> tuple[Block, bytearray]:
        """What the records add up to, and their lines."""
        lines = self._lines or bytearray()
        found = Block(
            self.n_records,
            [metric.columns() for metric in self._metrics],
            errors,
            self._missing_ids,
            n_without_content,
            n_user_failed,
            len(lines),
            self._case_ids,
            None if self._slices is None else self._slices.columns(),
            first=self._first,
        )
        return found, lines
