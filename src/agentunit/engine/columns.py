"""The scores of some records as columns: all that the aggregates of a run need of them, whoever scored them.

One process that adds up columns in the order of the input gets the same figures as one that scored every record.
"""

from __future__ import annotations

from array import array

from msgspec import Struct

from agentunit.core.judged import Judged
from agentunit.core.results import InputError, Status


class ValueColumn(Struct, array_like=True):
    """The values of one metric by one backend, in order, as bytes of doubles; with the cases that may be the worst.

    A case is named by its place among the records, and by its own id, which may be empty. ``n_low`` and ``cut`` are of
    degrees: how many are low, and the lowest and highest of their thresholds. ``informational`` counts the reasons why
    scores are.
    """

    backend: str
    status: Status
    values: bytes
    amounts: bytes
    elapsed_s: float
    n_below_best: int
    worst: list[tuple[int, str, float]]
    n_unmeasured: int = 0
    n_low: int = 0
    cut: tuple[float, float] | None = None
    informational: dict[str, int] = {}


class ReasonColumn(Struct, array_like=True):
    """Why ``n`` of the records have no value, and the first few of them."""

    status: Status
    reason: str
    n: int
    first: list[tuple[int, str]]


class MetricColumns(Struct, array_like=True):
    """One metric over some records; columns and reasons are in the order in which each of them first came.

    ``judged`` are scores by a judge: which of the ``values`` they belong to, the value, and whether the judge failed.
    """

    n_errors: int
    values: list[ValueColumn]
    reasons: list[ReasonColumn]
    judged: list[tuple[int | None, float | None, Judged, bool]]


class SliceScores(Struct, array_like=True):
    """Values of one metric, backend and slice; ``metric`` and ``slice`` are places in lists."""

    metric: int
    backend: str
    status: Status
    slice: int
    values: bytes


class SliceColumns(Struct, array_like=True):
    """The slices of some cases: their different values of a field, with how many cases have each, and the scores.

    ``scores`` are in the order of their first values. ``other_fields`` are those of cases without a value.
    """

    values: list[tuple[tuple[str, ...], int]]
    other_fields: list[list[str]]
    scores: list[SliceScores]


class MaskedValues(Struct, array_like=True):
    """What was masked in some records: how often each type, and each value's mark, type and text as first written.

    ``survivors`` tell the type, record and place of values that could not be.
    """

    uses: dict[str, int]
    values: list[tuple[str, str, str]]
    survivors: list[tuple[str, str, str]] = []


class Block(Struct, array_like=True, tag="block"):
    """Some records of one unit of work after scoring, or after they were written again.

    ``errors`` are what could not be read, with lines counted from the start of the unit. ``missing_ids`` are the places
    of records without an id; ``case_ids`` are there when all are wanted. ``n_line_bytes`` is the length of their lines,
    which are numbered from ``first``.
    """

    n_records: int
    metrics: list[MetricColumns]
    errors: list[InputError]
    missing_ids: list[int]
    n_without_content: int
    n_user_failed: int
    n_line_bytes: int
    case_ids: list[str] | None = None
    slices: SliceColumns | None = None
    masked: MaskedValues | None = None
    first: int = 0


def numbers_of(data: bytes) -> array[float]:
    """Numbers that were written as bytes.

    >>> numbers_of(array("d", [0.5, 1.0]).tobytes()).tolist()
    [0.5, 1.0]
    """
    numbers = array("d")
    numbers.frombytes(data)
    return numbers
