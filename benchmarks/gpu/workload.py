"""Texts to measure with: English of this project's own pages, so that nothing has to be carried along."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[2]
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
_MARKUP = re.compile(r"`|\*\*|\[([^\]]*)\]\([^)]*\)")
_CHARACTERS_A_TOKEN = 4.1


def sentences() -> list[str]:
    """Sentences of the pages, without tables, code and headings."""
    found: list[str] = []
    for page in sorted((_ROOT / "docs").glob("*.md")):
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for paragraph in text.split("\n\n"):
            if paragraph.lstrip().startswith(("#", "|", "<", "-", "```")):
                continue
            plain = _MARKUP.sub(lambda match: match.group(1) or "", " ".join(paragraph.split()))
            found += [each for each in _SENTENCE.split(plain) if 30 < len(each) < 300]
    return found


def pairs(n_pairs: int, mean_tokens: int, spread: float = 0.3, seed: int = 0) -> list[tuple[str, str]]:
    """Pairs of evidence and claim, each of its own, that have so many tokens on the average."""
    chance = random.Random(seed)
    known = sentences()
    found = []
    for number in range(n_pairs):
        claim = _changed(chance.choice(known), chance)
        most = (mean_tokens * chance.uniform(1 - spread, 1 + spread) - 3) * _CHARACTERS_A_TOKEN - len(claim)
        evidence = f"Number {number} of the list."
        while len(evidence) < most:
            evidence += " " + chance.choice(known)
        found.append((evidence[: int(most)], claim))
    return found


def records(n_records: int, seed: int = 1) -> list[dict[str, Any]]:
    """Cases of five passages of about 150 words, with an answer of four sentences: some from the passages, some not."""
    chance = random.Random(seed)
    known = sentences()
    found = []
    for number in range(n_records):
        passages = [" ".join(chance.choices(known, k=8)) for _ in range(5)]
        said = _SENTENCE.split(" ".join(passages))
        answer = [_changed(chance.choice(said if chance.random() < 0.7 else known), chance) for _ in range(4)]
        case = {"id": f"case {number}", "query": "What do the pages say?", "context": passages}
        found.append({"case": case, "outcome": " ".join(answer)})
    return found


def _changed(sentence: str, chance: random.Random) -> str:
    """A sentence with a word left out and two exchanged, so that it stands nowhere word for word."""
    words = sentence.split()
    if len(words) > 4:
        del words[chance.randrange(1, len(words) - 1)]
        at = chance.randrange(len(words) - 1)
        words[at], words[at + 1] = words[at + 1], words[at]
    return " ".join(words)
