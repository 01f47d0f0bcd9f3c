"""A smaller set for backends that are slow: always the same rows, and drawn without looking at them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from benchmarks.validity.measure import LabelledCase


def sampled(cases: Sequence[LabelledCase], most: int, *, whole_groups: bool = False) -> list[LabelledCase]:
    """At most so many cases, in their order; all of them where there are no more.

    The draw goes by a digest of the case's id, or of its group with ``whole_groups``: then a group is in or out as a
    whole, and the last one that does not fit ends the draw.
    """
    if len(cases) <= most:
        return list(cases)
    units: dict[str, list[int]] = {}
    for position, (record, label) in enumerate(cases):
        unit = label.group if whole_groups and label.group is not None else record.case.id
        units.setdefault(str(unit), []).append(position)
    drawn: list[int] = []
    for unit in sorted(units, key=_digest):
        if len(drawn) + len(units[unit]) > most:
            break
        drawn += units[unit]
    return [cases[position] for position in sorted(drawn)]


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
