"""How the measurement goes, on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def tell(text: str) -> None:
    """One line."""
    print(f"validity: {text}", file=sys.stderr, flush=True)


def each_set(what: str, sets: Mapping[str, Sequence[Any]]) -> Iterator[tuple[str, Sequence[Any]]]:
    """The sets one by one, telling how long each took."""
    for number, (name, cases) in enumerate(sets.items(), 1):
        start = time.monotonic()
        yield name, cases
        tell(f"  {what}, set {number} of {len(sets)}: {name}, {len(cases)} rows in {time.monotonic() - start:.0f} s")
