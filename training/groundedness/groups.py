"""What an example is: groups of (evidence, claim) pairs with one label. Needs numpy at most, so that it travels anywhere."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDS = 5
LENGTH = 384
"""How many tokens a pair of evidence and claim has at most."""
MADE = "made:"
"""How the kind of a group begins that was made from a text."""


@dataclass
class Pair:
    """Evidence and claim; ``wrong`` marks the characters of the claim that are wrong, where that is known."""

    evidence: str
    claim: str
    wrong: list[tuple[int, int]] | None = None


@dataclass
class Group:
    """Pairs with one label (1.0: all supported), what it counts, where it is from, its fold, and its document's number.

    ``kind`` names the set or text it is from, ``maker`` how it came about. Groups with one ``document`` are ranked by
    their labels in training.
    """

    pairs: list[Pair]
    label: float
    weight: float = 1.0
    kind: str = "pair"
    key: str = ""
    fold: int = -1
    document: int = -1
    maker: str = "given"


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a gzipped JSON-lines file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def number_of(name: Any) -> int:
    """A number that stands for a document, whatever its name is."""
    return zlib.crc32(str(name).encode("utf-8", "surrogatepass"))


def first_of_two(name: Any) -> int:
    """A number for a text that has a double with something changed, which takes the next number."""
    return number_of(name) & ~1


def fold_of(name: Any) -> int:
    """The fold of a document or question: all its rows are in the same one."""
    return number_of(name) % FOLDS
