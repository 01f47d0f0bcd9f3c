"""Claims about revisions of Wikipedia (VitaminC): the same claim with the sentence before and after one fact of it changed.

``vitaminc_real.zip`` and ``vitaminc_synthetic.zip``, as published (CC-BY-SA 3.0), hold pairs of claim and evidence in cases of
two to four: mostly two claims, each true by one of two sentences. So the words of a claim do not tell its label.
"""

from __future__ import annotations

import difflib
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentunit_local.grounding.segments import is_content, words_of

from training.groundedness.groups import Group, Pair, number_of
from training.groundedness.removed import content_of

MAKER = "revised"
_ALIKE = 0.6
_BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}", "-COLON-": ":"}
_SPACED = (
    (re.compile(r"``|''"), '"'),
    (re.compile(r'"\s*([^"]*?)\s*"'), r'"\1"'),
    (re.compile(r"([(\[{$£€#])\s+"), r"\1"),
    (re.compile(r"\s+([)\]}.,;:!?%])"), r"\1"),
    (re.compile(r"\s+('(?:s|re|ve|d|m|ll|t)\b|n't\b)"), r"\1"),
    (re.compile(r"(\d)\s*([–-])\s*(\d)"), r"\1\2\3"),
    (re.compile(r"\s+"), " "),
)


def revised_groups(published: Path, weight: float = 1.0) -> Iterator[Group]:
    """Every pair of a published file. Those of one case are ranked against each other by their labels."""
    for case in _cases(published):
        document = number_of(f"{published.stem} {case[0]['case_id']}")
        for row in case:
            claim, label = plain(row["claim"]), float(row["label"] == "SUPPORTS")
            wrong = [] if label else _wrong(row, case)
            pair = Pair(evidence_of(row), claim, wrong)
            yield Group([pair], label, weight, published.stem, document=document, maker=MAKER)


def _cases(published: Path) -> list[list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    with zipfile.ZipFile(published) as archive:
        (name,) = [each for each in archive.namelist() if each.endswith("test.jsonl") and "MACOSX" not in each]
        for line in archive.read(name).decode("utf-8").splitlines():
            row = json.loads(line)
            found.setdefault(row["case_id"], []).append(row)
    return list(found.values())


def evidence_of(row: dict[str, Any]) -> str:
    """The sentence of a page, after the page's title where it does not name the page: claims do."""
    sentence, title = plain(row["evidence"]), plain(row["page"].replace("_", " "))
    return sentence if content_of(title) <= content_of(sentence) else f"{title}: {sentence}"


def plain(text: str) -> str:
    """A text that was cut into words, as it is usually written.

    >>> plain("`` 2 Hearts '' ( a song ) was Minogue 's , in the U.S. , for $ 5 .")
    '"2 Hearts" (a song) was Minogue\\'s, in the U.S., for $5.'
    """
    for word, mark in _BRACKETS.items():
        text = text.replace(word, mark)
    text = text.replace("\ufffd", " ")
    for pattern, written in _SPACED:
        text = pattern.sub(written, text)
    return text.strip()


def _wrong(row: dict[str, Any], case: list[dict[str, Any]]) -> list[tuple[int, int]] | None:
    """Where a refuted claim differs from the claim that its evidence supports; ``None`` where that is unknown."""
    true = [each["claim"] for each in case if each["evidence"] == row["evidence"] and each["label"] == "SUPPORTS"]
    if row["label"] != "REFUTES" or not true:
        return None
    claim = plain(row["claim"])
    words = list(re.finditer(r"\S+", claim))
    other = re.findall(r"\S+", plain(true[0]))
    matched = difflib.SequenceMatcher(None, [word.group().lower() for word in words], [word.lower() for word in other])
    steps = matched.get_opcodes()
    # Far apart, or something is missing in the claim (a "not"): then no word of it is the wrong one.
    if matched.ratio() < _ALIKE or any(step == "insert" for step, *_ in steps):
        return None
    places = []
    for step, start, end, _, _ in steps:
        said = claim[words[start].start() : words[end - 1].end()].rstrip(".,;") if step in ("replace", "delete") else ""
        if any(is_content(word) for word in words_of(said)):
            places.append((words[start].start(), words[start].start() + len(said)))
    return places or None
