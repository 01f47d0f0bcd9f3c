"""Scores as a store keeps them: a block holds those of one metric on up to 256 cases, column by column.

What a run adds up to needs the columns alone. The details, which take most of the room, lie together behind them and
are decoded only for whoever asks. Columns are JSON: ``json_each`` and ``jsonb_array_elements`` can read them too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from itertools import repeat as repeated
from operator import lt
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import astuple

from agentunit.core.judged import Judged, judged_of
from agentunit.core.results import EVIDENCE_NOTE, INFORMATIONAL_NOTE, MetricResult, Score, Status, encode_json
from agentunit.store.packing import packed, unpacked
from agentunit.store.runs import ScoreRow

Place = tuple[int, int]
"""Position and repeat of a case in its run."""

BLOCK_SIZE = 256
# From this size of a detail on they are compressed: below it that costs more time than writing them does.
_COMPRESSED_FROM_BYTES = 2048

_Producer = tuple[Status, str, str]
_int_lists = msgspec.json.Decoder(list[int])
_float_lists = msgspec.json.Decoder(list[float | None])
_producer_lists = msgspec.json.Decoder(list[_Producer])
_reasons = msgspec.json.Decoder(dict[str, list[int]])
_judged = msgspec.json.Decoder(dict[int, Judged])
_detail_lists = msgspec.json.Decoder(tuple[list[float], list[msgspec.Raw]])


class WrittenScore(Struct):
    """A score as it is written: nothing that changes afterwards changes it. ``detail`` is JSON.

    ``amount`` is the number that the detail has under ``amount_key``.
    """

    run_id: str
    metric: str
    position: int
    repeat: int
    value: float | None
    producer: _Producer
    elapsed_s: float
    detail: bytes | msgspec.Raw
    reason: str | None = None
    amount_key: str | None = None
    amount: float | None = None
    judged: Judged | None = None

    @property
    def score(self) -> Score:
        """The score itself."""
        result = MetricResult(self.metric, self.value, msgspec.json.decode(self.detail))
        return Score(result, *self.producer, self.elapsed_s)


def written_scores(
    run_id: str, position: int, repeat: int, scores: Mapping[str, Score], amounts: Mapping[str, str] | None = None
) -> list[WrittenScore]:
    """The scores of one case as the store keeps them; ``amounts`` names the key of some metrics' amounts."""
    written = []
    for metric, score in scores.items():
        result, backend = score.result, score.backend
        detail, value = result.detail, result.value
        row = WrittenScore(
            run_id,
            metric,
            position,
            repeat,
            value if value is None or value.__class__ is float else float(value),
            (score.status, backend, score.version),
            score.elapsed,
            encode_json(detail),
        )
        if value is None or EVIDENCE_NOTE in detail or INFORMATIONAL_NOTE in detail:
            row.reason = reason_in(value, detail)
        if value is None or "judge" in detail or "judge" in backend or "ragas" in backend:
            row.judged = judged_of(detail, nested=True)
        if amounts and metric in amounts:
            row.amount_key = amounts[metric]
            row.amount = number_in(detail, row.amount_key)
        written.append(row)
    return written


def reason_in(value: float | None, detail: Mapping[str, Any]) -> str | None:
    """Why there is no value, as a detail says it; of a value, why it is informational, or its evidence not measured."""
    found = detail.get("reason") if value is None else detail.get(INFORMATIONAL_NOTE) or detail.get(EVIDENCE_NOTE)
    return str(found or "") or None


def number_in(detail: Mapping[str, Any], key: str) -> float | None:
    """The number that a detail has under a key."""
    number = detail.get(key)
    return float(number) if isinstance(number, (int, float)) and not isinstance(number, bool) else None


class ScoreColumns(Struct):
    """Scores of one metric on cases that follow each other, in dataset order, without their details.

    ``producers`` are the statuses, backends and versions that occur, and ``producer_of`` the number of each score's;
    ``None``: all have the first. ``reasons`` and ``judged`` are by place in the columns, where there are any.
    """

    positions: Sequence[int]
    repeats: Sequence[int]
    values: list[float | None]
    producers: list[_Producer]
    producer_of: list[int] | None
    reasons: dict[int, str]
    amounts: list[float | None] | None
    judged: dict[int, Judged]

    def places(self) -> Iterator[Place]:
        """Position and repeat of each score."""
        return zip(self.positions, self.repeats, strict=True)

    def rows(self, case_ids: Mapping[Place, str]) -> Iterator[ScoreRow]:
        """The scores one by one; those of places without a case are left out."""
        which: Iterable[int] = repeated(0) if self.producer_of is None else self.producer_of
        amounts: Iterable[float | None] = repeated(None) if self.amounts is None else self.amounts
        columns = zip(self.positions, self.repeats, self.values, which, amounts, strict=False)
        for number, (position, repeat, value, producer, amount) in enumerate(columns):
            case_id = case_ids.get((position, repeat))
            if case_id is not None:
                yield ScoreRow(
                    position,
                    repeat,
                    case_id,
                    value,
                    *self.producers[producer],
                    self.reasons.get(number),
                    amount,
                    self.judged.get(number),
                )


class ScoreBlock(Struct):
    """A row of the table of scores. Its first and last place are those of its columns."""

    columns: ScoreColumns
    amount_key: str | None
    details: bytes | None

    def names(self, key: str) -> bool:
        """Whether any detail may have this key: a look that spares decoding those that have not."""
        return f'"{key}"'.encode() in unpacked(self.details or b"")

    def written(self, run_id: str, metric: str) -> list[WrittenScore]:
        """The scores with their details, to be written again or to be shown."""
        columns = self.columns
        elapsed_s, details = _detail_lists.decode(unpacked(self.details or b""))
        return [
            WrittenScore(
                run_id,
                metric,
                position,
                repeat,
                value,
                columns.producers[0 if columns.producer_of is None else columns.producer_of[number]],
                elapsed_s[number],
                details[number],
                columns.reasons.get(number),
                self.amount_key,
                None if columns.amounts is None else columns.amounts[number],
                columns.judged.get(number),
            )
            for number, (position, repeat, value) in enumerate(
                zip(columns.positions, columns.repeats, columns.values, strict=True)
            )
        ]


READ_COLUMNS = (
    "first_position, first_repeat, n_scores, positions, repeats, score_values, producers, producer_of, reasons,"
    " amount_key, amounts, judged"
)


def block_of(row: tuple[Any, ...]) -> ScoreBlock:
    """A block from a row of ``READ_COLUMNS``, and the details if they were asked for."""
    first, repeat, n, positions, repeats, values, producers, producer_of, reasons, key, amounts, judged, *details = row
    columns = ScoreColumns(
        range(first, first + n) if positions is None else _int_lists.decode(positions),
        [repeat] * n if repeats is None else _int_lists.decode(repeats),
        _float_lists.decode(values),
        _producer_lists.decode(producers),
        None if producer_of is None else _int_lists.decode(producer_of),
        {} if reasons is None else {n: why for why, numbers in _reasons.decode(reasons).items() for n in numbers},
        None if amounts is None else _float_lists.decode(amounts),
        {} if judged is None else _judged.decode(judged),
    )
    return ScoreBlock(columns, key, details[0] if details else None)


_KEY_COLUMNS = ("run_id", "metric", "last_position", "last_repeat")
INSERT_BLOCK = (
    f"INSERT INTO score_blocks ({', '.join(_KEY_COLUMNS)}, {READ_COLUMNS}, details)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


def block_from(rows: Sequence[WrittenScore]) -> ScoreBlock:
    """Scores of one metric in dataset order as a block."""
    return block_of(block_values(rows)[len(_KEY_COLUMNS) :])


def block_values(rows: Sequence[WrittenScore]) -> tuple[Any, ...]:
    """The values of ``INSERT_BLOCK`` for scores of one metric in dataset order."""
    first, last = rows[0], rows[-1]
    # Columns out of rows in C: this is what writing scores takes most of its time for.
    _, _, positions, repeats, values, producers, elapsed_s, details, reasons, keys, amounts, judged = zip(
        *map(astuple, rows), strict=True
    )
    numbered = {producers[0]: 0}
    if producers.count(producers[0]) < len(rows):
        numbered = {producer: number for number, producer in enumerate(dict.fromkeys(producers))}
    by_reason: dict[str, list[int]] = {}
    for number, reason in enumerate(reasons) if any(reasons) else ():
        if reason is not None:
            by_reason.setdefault(reason, []).append(number)
    of_judge = {number: each for number, each in enumerate(judged) if each is not None} if any(judged) else {}
    same_amount = first.amount_key is not None and keys.count(first.amount_key) == len(rows)
    return (
        first.run_id,
        first.metric,
        last.position,
        last.repeat,
        first.position,
        first.repeat,
        len(rows),
        None if positions == tuple(range(first.position, first.position + len(rows))) else _text(positions),
        None if repeats.count(first.repeat) == len(rows) else _text(repeats),
        _text(values),
        _text(list(numbered)),
        None if len(numbered) == 1 else _text([numbered[producer] for producer in producers]),
        _text(by_reason) if by_reason else None,
        first.amount_key if same_amount else None,
        _text(amounts) if same_amount else None,
        _text(of_judge) if of_judge else None,
        packed(_detail_text(elapsed_s, details), _COMPRESSED_FROM_BYTES * len(rows)),
    )


def _detail_text(elapsed_s: Sequence[float], details: Sequence[bytes | msgspec.Raw]) -> bytes:
    """What ``_detail_lists`` reads, put together at once: it is long, and every copy of it takes its time."""
    return b"".join((b"[", encode_json(elapsed_s), b",[", details[0], *chain(*zip(repeated(b","), details[1:])), b"]]"))


def _text(value: Any) -> str:
    return encode_json(value).decode()


def by_metric(rows: Iterable[WrittenScore]) -> dict[tuple[str, str], list[WrittenScore]]:
    """Scores by run and metric, each in dataset order; of two at one place the later counts."""
    found: dict[tuple[str, str], list[WrittenScore]] = {}
    for row in rows:
        key = (row.run_id, row.metric)
        if key in found:
            found[key].append(row)
        else:
            found[key] = [row]
    return {key: in_order(of_metric) for key, of_metric in found.items()}


def in_order(rows: list[WrittenScore]) -> list[WrittenScore]:
    """Scores of one metric in dataset order; of two at one place the later counts."""
    places = [(row.position, row.repeat) for row in rows]
    if all(map(lt, places, places[1:])):
        return rows
    return [row for _, row in sorted(dict(zip(places, rows, strict=True)).items())]
