"""The tables of names in scripts without capital letters: one file a language, read when its letters first occur."""

from __future__ import annotations

import functools
import lzma
import re
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

DATA_FOLDER = Path(__file__).parent / "data"
# Signs that are written or left out: Arabic vowels and the hamza on an alef, points of Hebrew, the nukta of Hindi.
_LEFT_OUT = frozenset("\u0640\u200c\u200d\u200e\u200f\u093c")
# "हेमन्त" is "हेमंत": a nasal before a consonant is also written as a point.
_NASAL = re.compile("[ङञणनम]्(?=[क-मय-ह])")
_SAME = str.maketrans({"أ": "ا", "إ": "ا", "آ": "ا", "ی": "ي", "ک": "ك", "ة": "ه", "׳": "'", "״": '"'})


@functools.cache
def table(language: str) -> dict[str, frozenset[str]]:
    """The words of a language by their kind, as ``scripts/build_script_tables.py`` wrote them."""
    text = lzma.decompress((DATA_FOLDER / f"names_{language}.xz").read_bytes()).decode()
    lines = (line.split("\t") for line in text.split("\n"))
    return {kind: frozenset(words) for kind, *words in lines}


def kind_of(language: str, kind: str) -> frozenset[str]:
    """The words of one kind; none where a table lacks it."""
    return table(language).get(kind, frozenset())


def bare(word: str) -> str:
    """A word without the signs that its language writes or leaves out.

    >>> bare("أَحمد") == bare("احمد"), bare("डॉ") == bare("डॉ")
    (True, True)
    """
    if "\u0900" <= word[:1] <= "\u097f":
        plain = "".join(letter for letter in unicodedata.normalize("NFD", word) if letter not in _LEFT_OUT)
        return _NASAL.sub("ं", plain.replace("ँ", "ं"))
    if word[:1] >= "\u0900":
        return word
    kept = (letter for letter in word if not unicodedata.combining(letter) and letter not in _LEFT_OUT)
    return "".join(kept).translate(_SAME)


def names_in_runs(
    text: str, runs: re.Pattern[str], name_at: Callable[[str, int, int, int], int]
) -> Iterator[tuple[int, int]]:
    """Where names stand in the runs of letters of a script, one behind the other.

    ``name_at`` says where the name that begins at a place of a run ends; 0 where none does.
    """
    done = 0
    for run in runs.finditer(text):
        at = max(run.start(), done)
        while at < run.end():
            end = name_at(text, at, run.start(), run.end())
            if end:
                yield at, end
                at = done = end
            else:
                at += 1
