"""Scores of one metric as columns: how they are stored, sent between processes, added up and exported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat as repeated
from typing import Any

import msgspec
from msgspec import Struct

from agentunit.core.judged import Judged, judged_of
from agentunit.core.results import (
    EVIDENCE_NOTE,
    INFORMATIONAL_NOTE,
    InputError,
    MetricResult,
    Score,
    Status,
    reason_of,
    written_detail,
)

# What a worker process makes of some records: their scores as blocks, and all else that a run adds up.
#
# One process that adds up blocks in the order of the input gets the same figures as one that scored every record.


class SliceColumns(Struct, array_like=True):
    """The slices of some cases: their different values of a field, with how many cases have each.

    ``of_record`` is the place in ``values`` of each record. ``other_fields`` are those of cases without a value.
    """

    values: list[tuple[tuple[str, ...], int]]
    other_fields: list[list[str]]
    of_record: list[int]


class MaskedValues(Struct, array_like=True):
    """What was masked in some records: how often each type, and each value's mark, type and text as first written.

    ``survivors`` tell the type, record and place of values that could not be.
    """

    uses: dict[str, int]
    values: list[tuple[str, str, str]]
    survivors: list[tuple[str, str, str]] = []


class Cause(Struct, frozen=True, array_like=True):
    """Why one case is not fine. ``words`` are what cases with the same cause share, ``error`` is the evidence.

    ``repeat`` counts from 0; ``None`` where the case was recorded once. ``word`` says how the case stands. What an
    agent raised has a ``place`` in the user's code and the ``line`` itself, and ``failure`` says how the agent failed.
    ``reference`` is the run or file to show the case of, where that is not the one of all.
    """

    case_id: str
    repeat: int | None
    kind: str
    words: str
    error: str
    slices: tuple[str, ...] = ()
    reference: str = ""
    word: str = ""
    place: str = ""
    line: str = ""
    failure: str = ""


class CauseGroup(Struct, array_like=True):
    """The cases with one cause: the first of them, how many they are, and in which slices."""

    first: Cause
    n_records: int
    ids: list[str]
    n_cases: int
    slices: dict[str, int]
    is_alike: bool = True
    """Whether all of them say the same to the letter."""
    last_id: str = ""


class TallyColumns(Struct, array_like=True):
    """How the cases of a block stand, by state, why those are not fine, and how many are of each kind."""

    counts: list[int]
    groups: list[CauseGroup]
    slices: dict[str, int]


class Block(Struct, array_like=True, tag="block"):
    """Some records of one unit of work after scoring, or after they were written again.

    ``errors`` are what could not be read, with lines counted from the start of the unit. ``case_ids`` are those that
    records have themselves, which may be empty. ``n_line_bytes`` is the length of their lines, which are numbered from
    ``first``. Blocks of ``scores`` leave out their places, which only the run knows.
    """

    n_records: int
    scores: list[ScoreBlock]
    errors: list[InputError]
    n_without_content: int
    n_user_failed: int
    n_line_bytes: int
    case_ids: list[str] = []
    slices: SliceColumns | None = None
    masked: MaskedValues | None = None
    first: int = 0
    tally: TallyColumns | None = None


Place = tuple[int, int]
"""Position and repeat of a case in its run."""
Producer = tuple[Status, str, str]
"""Status, backend and version of a score."""


class ScoreRow(Struct):
    """One row of a block, for whoever looks at single scores; ``judged`` is what it took of a judge.

    ``reason`` says why there is no value, or of a value why it is informational, or that its evidence was not measured;
    ``amount`` is the number of its detail that was asked for: what tables show in its place, or its own threshold.
    """

    position: int
    repeat: int
    case_id: str
    value: float | None
    status: Status
    backend: str
    version: str
    reason: str | None = None
    amount: float | None = None
    judged: Judged | None = None

    @property
    def place(self) -> Place:
        """Position and repeat."""
        return self.position, self.repeat


class ScoreBlock(Struct, array_like=True):
    """Scores of one metric on records that follow each other, in dataset order, column by column.

    ``producers`` are the statuses, backends and versions that occur, and ``producer_of`` the number of each score's;
    ``None``: all have the first. ``reasons`` and ``judged`` are by number of the row, where there are any. ``amounts``
    are the numbers that details have under ``amount_key``. ``elapsed_s``, ``details`` (JSON) and ``whys`` are empty
    where they were not asked for.
    """

    metric: str
    positions: Sequence[int]
    repeats: Sequence[int]
    values: list[float | None]
    producers: list[Producer]
    producer_of: list[int] | None = None
    reasons: dict[int, str] = {}
    judged: dict[int, Judged] = {}
    amount_key: str | None = None
    amounts: list[float | None] | None = None
    elapsed_s: list[float] = []
    details: list[Any] = []
    whys: list[str | None] = []

    def __len__(self) -> int:
        return len(self.values)

    def places(self) -> Iterator[Place]:
        """Position and repeat of each score."""
        return zip(self.positions, self.repeats, strict=True)

    def producer_numbers(self) -> Iterable[int]:
        """The number of each score's producer."""
        return repeated(0, len(self.values)) if self.producer_of is None else self.producer_of

    def producer(self, number: int) -> Producer:
        """Status, backend and version of a row."""
        return self.producers[0 if self.producer_of is None else self.producer_of[number]]

    def score(self, number: int) -> Score:
        """A row as a score with its detail, which must have been asked for."""
        result = MetricResult(self.metric, self.values[number], msgspec.json.decode(self.details[number]))
        # Blocks of earlier versions have none.
        why = self.whys[number] if self.whys else None
        return Score(result, *self.producer(number), self.elapsed_s[number], why)

    def rows(self, case_ids: Mapping[Place, str]) -> Iterator[ScoreRow]:
        """The scores one by one; those of places without a case are left out."""
        amounts: Iterable[float | None] = repeated(None) if self.amounts is None else self.amounts
        columns = zip(self.positions, self.repeats, self.values, self.producer_numbers(), amounts, strict=False)
        for number, (position, repeat, value, producer, amount) in enumerate(columns):
            case_id = case_ids.get((position, repeat))
            if case_id is None:
                continue
            reason, judged = self.reasons.get(number), self.judged.get(number)
            yield ScoreRow(position, repeat, case_id, value, *self.producers[producer], reason, amount, judged)

    def of_rows(self, numbers: Sequence[int]) -> ScoreBlock:
        """Some rows as a block of their own."""
        return self if len(numbers) == len(self) else gathered([(self, number) for number in numbers])


def numbered(producers: Sequence[Producer]) -> tuple[list[Producer], list[int] | None]:
    """The distinct producers, and the number of each score's; ``None`` where all scores have the same."""
    distinct = list(dict.fromkeys(producers))
    if len(distinct) <= 1:
        return distinct, None
    number_of = {producer: number for number, producer in enumerate(distinct)}
    return distinct, [number_of[producer] for producer in producers]


def gathered(rows: Sequence[tuple[ScoreBlock, int]]) -> ScoreBlock:
    """Rows of one or more blocks of a metric as one block. There must be at least one."""
    first = rows[0][0]
    blocks = {id(block): block for block, _ in rows}.values()
    same_amount = all(block.amounts is not None and block.amount_key == first.amount_key for block in blocks)
    made = BlockBuilder(first.metric, first.amount_key if same_amount else None)
    for block, number in rows:
        amount = None if block.amounts is None else block.amounts[number]
        place = (block.positions[number], block.repeats[number])
        reason, judged = block.reasons.get(number), block.judged.get(number)
        made.add_row(place, block.values[number], block.producer(number), reason, judged, amount)
        if block.details:
            made.add_detail(block.elapsed_s[number], block.details[number], block.whys[number] if block.whys else None)
    return made.block()


def block_of_rows(metric: str, rows: Iterable[ScoreRow]) -> ScoreBlock:
    """Rows in dataset order as a block without details."""
    made = BlockBuilder(metric, amount_key="")
    for row in rows:
        producer = (row.status, row.backend, row.version)
        made.add_row(row.place, row.value, producer, row.reason, row.judged, row.amount)
    return made.block()


class BlockBuilder:
    """Takes the scores of a metric one by one; ``block`` gives those that were taken since it was last asked.

    ``amount_key`` names a number in the details that the figures of a run need beside the value. A detail is written
    as soon as it is taken, so that nothing that changes afterwards changes it.
    """

    __slots__ = (
        "amount_key",
        "amounts",
        "details",
        "elapsed_s",
        "judged",
        "keeps_details",
        "metric",
        "positions",
        "producers",
        "reasons",
        "repeats",
        "values",
        "whys",
    )

    def __init__(self, metric: str, amount_key: str | None = None, *, keeps_details: bool = False) -> None:
        self.metric = metric
        self.amount_key = amount_key
        self.keeps_details = keeps_details
        self._clear()

    def _clear(self) -> None:
        self.positions: list[int] = []
        self.repeats: list[int] = []
        self.values: list[float | None] = []
        self.producers: list[Producer] = []
        self.reasons: dict[int, str] = {}
        self.judged: dict[int, Judged] = {}
        self.amounts: list[float | None] = []
        self.elapsed_s: list[float] = []
        self.details: list[Any] = []
        self.whys: list[str | None] = []

    def __len__(self) -> int:
        return len(self.values)

    def add(self, position: int, repeat: int, score: Score) -> None:
        """Take one more score."""
        # What ``add_row`` does, without the call: this is done for every score.
        result, backend = score.result, score.backend
        value, detail = result.value, result.detail
        if value is None or EVIDENCE_NOTE in detail or INFORMATIONAL_NOTE in detail:
            reason = reason_in(value, detail)
            if reason is not None:
                self.reasons[len(self.values)] = reason
        # The backend of a composite names those of its parts.
        if value is None or "judge" in detail or "judge" in backend or "ragas" in backend:
            judged = judged_of(detail, nested=True)
            if judged is not None:
                self.judged[len(self.values)] = judged
        self.positions.append(position)
        self.repeats.append(repeat)
        self.values.append(value if value is None or value.__class__ is float else float(value))
        self.producers.append((score.status, backend, score.version))
        self.amounts.append(None if self.amount_key is None else number_in(detail, self.amount_key))
        self.elapsed_s.append(score.elapsed)
        if self.keeps_details:
            self.details.append(written_detail(detail))
            self.whys.append(score.why)

    def add_row(
        self,
        place: Place,
        value: float | None,
        producer: Producer,
        reason: str | None = None,
        judged: Judged | None = None,
        amount: float | None = None,
    ) -> None:
        """Take one more score of which the columns are known."""
        if reason is not None:
            self.reasons[len(self.values)] = reason
        if judged is not None:
            self.judged[len(self.values)] = judged
        self.positions.append(place[0])
        self.repeats.append(place[1])
        # A metric of a user may give a whole number.
        self.values.append(value if value is None or value.__class__ is float else float(value))
        self.producers.append(producer)
        self.amounts.append(amount)

    def add_detail(self, elapsed_s: float, detail: bytes | msgspec.Raw, why: str | None = None) -> None:
        """Take the time, the detail and the proof of the row that was added last."""
        self.elapsed_s.append(elapsed_s)
        self.details.append(detail)
        self.whys.append(why)

    def block(self) -> ScoreBlock:
        """What was taken, as columns."""
        producers, producer_of = numbered(self.producers)
        made = ScoreBlock(
            self.metric,
            self.positions,
            self.repeats,
            self.values,
            producers,
            producer_of,
            self.reasons,
            self.judged,
            self.amount_key,
            None if self.amount_key is None else self.amounts,
            self.elapsed_s,
            self.details,
            self.whys,
        )
        self._clear()
        return made


class RowsByMetric:
    """Takes the scores of records one by one, and gives them as rows by metric.

    ``amount_key_of`` names the number in the details of a metric that the figures of a run need beside the value.
    """

    def __init__(self, amount_key_of: Callable[[str], str | None]) -> None:
        self._amount_key_of = amount_key_of
        self._builders: dict[str, BlockBuilder] = {}
        self._case_ids: dict[Place, str] = {}

    def add(self, position: int, repeat: int, case_id: str, scores: Mapping[str, Score]) -> None:
        """Take the scores of one record."""
        self._case_ids[position, repeat] = case_id
        for metric, score in scores.items():
            if metric not in self._builders:
                self._builders[metric] = BlockBuilder(metric, self._amount_key_of(metric))
            self._builders[metric].add(position, repeat, score)

    def rows(self) -> dict[str, list[ScoreRow]]:
        """The rows of each metric, in the order in which they were taken."""
        return {metric: list(builder.block().rows(self._case_ids)) for metric, builder in self._builders.items()}


def reason_in(value: float | None, detail: Mapping[str, Any]) -> str | None:
    """Why there is no value, as a detail says it; of a value, why it is informational, or its evidence not measured."""
    if value is None:
        return reason_of(detail)
    return str(detail.get(INFORMATIONAL_NOTE) or detail.get(EVIDENCE_NOTE) or "") or None


def number_in(detail: Mapping[str, Any], key: str) -> float | None:
    """The number that a detail has under a key."""
    number = detail.get(key)
    return float(number) if isinstance(number, (int, float)) and not isinstance(number, bool) else None
