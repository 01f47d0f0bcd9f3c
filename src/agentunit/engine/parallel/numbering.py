"""Which place in the input each record has, when others before it are still being worked on."""

from __future__ import annotations

from collections.abc import Sequence

from agentunit.engine.parallel.units import FileUnit, Unit
from agentunit.traces.line_ranges import LineRange
from agentunit.traces.remote import is_remote


class Forecast:
    """The place of each unit's first record, guessed before it is done.

    A worker that knows it writes lines as they are to be. Every line of a file is taken for a record, and every trace;
    where one is none, the lines of the units that were begun meanwhile are numbered anew.
    """

    def __init__(self, block_bytes: int) -> None:
        self._block_bytes = block_bytes
        self._n_done = 0
        self._ahead: dict[int, int] = {}
        self._n_ahead = 0

    def begin(self, number: int, unit: Unit) -> int:
        """Go on with the next unit: where its first record will stand."""
        first = self._n_done + self._n_ahead
        self._ahead[number] = self._guess(unit)
        self._n_ahead += self._ahead[number]
        return first

    def finish(self, number: int, n_records: int) -> None:
        """A unit was taken, after all before it."""
        self._n_done += n_records
        self._n_ahead -= self._ahead.pop(number, 0)

    def _guess(self, unit: Unit) -> int:
        if not isinstance(unit, FileUnit):
            return len(unit.traces)
        if is_remote(unit.path) or unit.n_bytes > self._block_bytes:
            return 0
        try:
            with open(unit.path, "rb", buffering=0) as raw:
                return (unit.lines or LineRange(0, unit.n_bytes)).n_begun(raw)
        except OSError:
            return 0


def numbered_lines(data: bytes, first: int, was_first: int, missing_ids: Sequence[int]) -> list[bytes]:
    """Score lines with their right places in the input, which are not what was guessed.

    >>> numbered_lines(b'{"index":6,"case_id":"q7"}\\n{"index":7,"case_id":"case-8"}\\n', 9, 6, [1])
    [b'{"index":9,"case_id":"q7"}', b'{"index":10,"case_id":"case-11"}']
    """
    without_id = frozenset(missing_ids)
    lines = data.split(b"\n")
    lines.pop()
    for place, line in enumerate(lines):
        start = _line_start(was_first + place, place in without_id)
        lines[place] = _line_start(first + place, place in without_id) + line[len(start) :]
    return lines


def _line_start(index: int, without_id: bool) -> bytes:
    return b'{"index":%d,"case_id":"case-%d"' % (index, index + 1) if without_id else b'{"index":%d' % index
