"""Blocks of scores as rows of a table: those of one metric on up to 256 cases.

What a run adds up to needs the columns alone. The details, which take most of the room, lie together behind them and
are decoded only for whoever asks. Columns are JSON: ``json_each`` and ``jsonb_array_elements`` can read them too.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from itertools import repeat as repeated
from typing import Any

import msgspec
from msgspec import Struct

from agentunit.core.judged import Judged
from agentunit.core.results import Score, encode_json
from agentunit.core.score_block import BlockBuilder, Place, Producer, ScoreBlock, gathered

# Long texts in a store: compressed where that pays.

_FASTEST = 1
_MARK = b"\x78"
"""What zlib's output begins with, and no JSON."""


def packed(text: bytes, compressed_from_bytes: int) -> bytes:
    """JSON as it is kept: compressed if it has this size.

    >>> packed(b"[1]", 4), packed(b"[" + b"1," * 999 + b"1]", 4)[:1]
    (b'[1]', b'x')
    """
    return zlib.compress(text, _FASTEST) if len(text) >= compressed_from_bytes else text


def unpacked(kept: bytes) -> bytes:
    """The JSON itself."""
    return zlib.decompress(kept) if kept[:1] == _MARK else bytes(kept)


BLOCK_SIZE = 256
# From this size of a detail on they are compressed: below it that costs more time than writing them does.
_COMPRESSED_FROM_BYTES = 2048

_int_lists = msgspec.json.Decoder(list[int])
_float_lists = msgspec.json.Decoder(list[float | None])
_producer_lists = msgspec.json.Decoder(list[Producer])
_reasons = msgspec.json.Decoder(dict[str, list[int]])
_judged = msgspec.json.Decoder(dict[int, Judged])


class _Details(Struct, array_like=True):
    """What stands behind the columns. Blocks of earlier versions have no ``whys``."""

    elapsed_s: list[float]
    details: list[msgspec.Raw]
    whys: list[str | None] = []


_details = msgspec.json.Decoder(_Details)

READ_COLUMNS = (
    "first_position, first_repeat, n_scores, positions, repeats, score_values, producers, producer_of, reasons,"
    " amount_key, amounts, judged"
)
_KEY_COLUMNS = ("run_id", "metric", "last_position", "last_repeat")
INSERT_BLOCK = (
    f"INSERT INTO score_blocks ({', '.join(_KEY_COLUMNS)}, {READ_COLUMNS}, details)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


class ScoreBuffer:
    """Scores of cases that wait to be written together. ``amounts`` names the key of some metrics' amounts."""

    def __init__(self, amounts: Mapping[str, str] | None = None) -> None:
        self._amounts = amounts or {}
        self._builders: dict[str, BlockBuilder] = {}
        self.n_cases = 0

    def add(self, position: int, repeat: int, scores: Mapping[str, Score]) -> None:
        """Take the scores of one case."""
        self.n_cases += 1
        for metric, score in scores.items():
            builder = self._builders.get(metric)
            if builder is None:
                builder = BlockBuilder(metric, self._amounts.get(metric), keeps_details=True)
                self._builders[metric] = builder
            builder.add_at(position, repeat, score)

    def take(self) -> list[ScoreBlock]:
        """What waits, a block a metric; the buffer is empty afterwards."""
        self.n_cases = 0
        return [builder.block() for builder in self._builders.values() if len(builder)]


def block_of(metric: str, row: tuple[Any, ...]) -> ScoreBlock:
    """A block from a row of ``READ_COLUMNS``, and the details if they were asked for."""
    first, repeat, n, positions, repeats, values, producers, producer_of, reasons, key, amounts, judged, *details = row
    block = ScoreBlock(
        metric,
        range(first, first + n) if positions is None else _int_lists.decode(positions),
        [repeat] * n if repeats is None else _int_lists.decode(repeats),
        _float_lists.decode(values),
        _producer_lists.decode(producers),
        None if producer_of is None else _int_lists.decode(producer_of),
        {} if reasons is None else {n: why for why, numbers in _reasons.decode(reasons).items() for n in numbers},
        {} if judged is None else _judged.decode(judged),
        key,
        None if amounts is None else _float_lists.decode(amounts),
    )
    if details:
        behind = _details.decode(unpacked(details[0]))
        block.elapsed_s, block.details, block.whys = behind.elapsed_s, behind.details, behind.whys
    return block


def block_values(run_id: str, block: ScoreBlock) -> tuple[Any, ...]:
    """The values of ``INSERT_BLOCK`` for a block in dataset order."""
    n, first = len(block), block.positions[0]
    by_reason: dict[str, list[int]] = {}
    for number, reason in block.reasons.items():
        by_reason.setdefault(reason, []).append(number)
    follow_each_other = list(block.positions) == list(range(first, first + n))
    same_repeat = list(block.repeats).count(block.repeats[0]) == n
    return (
        run_id,
        block.metric,
        block.positions[-1],
        block.repeats[-1],
        first,
        block.repeats[0],
        n,
        None if follow_each_other else _text(list(block.positions)),
        None if same_repeat else _text(block.repeats),
        _text(block.values),
        _text(block.producers),
        None if block.producer_of is None else _text(block.producer_of),
        _text(by_reason) if by_reason else None,
        None if block.amounts is None else block.amount_key,
        None if block.amounts is None else _text(block.amounts),
        _text(block.judged) if block.judged else None,
        packed(_detail_text(block), _COMPRESSED_FROM_BYTES * n),
    )


def _detail_text(block: ScoreBlock) -> bytes:
    """What ``_details`` reads, put together at once: it is long, and every copy of it takes its time."""
    first, *others = block.details
    separated = chain(*zip(repeated(b","), others))
    whys = encode_json(block.whys) if any(block.whys) else b"[]"
    return b"".join((b"[", encode_json(block.elapsed_s), b",[", first, *separated, b"],", whys, b"]"))


def _text(value: Any) -> str:
    return encode_json(value).decode()


def in_order(blocks: Sequence[ScoreBlock]) -> ScoreBlock:
    """Blocks of one metric as one, in dataset order; of two scores at one place the later counts."""
    by_place: dict[Place, tuple[ScoreBlock, int]] = {}
    for block in blocks:
        for number, place in enumerate(block.places()):
            by_place[place] = (block, number)
    places = sorted(by_place)
    if len(blocks) == 1 and places == list(blocks[0].places()):
        return blocks[0]
    return gathered([by_place[place] for place in places])


def pieces(block: ScoreBlock) -> Iterable[ScoreBlock]:
    """A block cut to the size that a row of the table holds."""
    for start in range(0, len(block), BLOCK_SIZE):
        yield block.of_rows(range(start, min(start + BLOCK_SIZE, len(block))))
