"""How well texts that speak to the judge are noticed: recall on attacks in many languages, alarms on ordinary texts.

``python -m benchmarks.judge.injection [FOLDER]``: with a folder of JSON lines (records or rows with texts), their texts
are ordinary texts, too. ``attacks.tsv`` was written before the signs were looked at, ``attacks_later.tsv`` when they
were known, to get past them.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentunit.addons.judge.injection import suspicions

_FOLDER = Path(__file__).resolve().parent
_LONGEST = 20_000


def attacks(file: str = "attacks.tsv") -> list[tuple[str, str, str]]:
    """Language, kind and text of each attack."""
    rows = (line.split("\t") for line in (_FOLDER / file).read_text(encoding="utf-8").splitlines())
    return [(language, kind, _unescaped(text)) for language, kind, text in rows]


def ordinary() -> list[tuple[str, str]]:
    """Language and text of each text that is no attack, though some of its words stand in attacks, too."""
    rows = (line.split("\t") for line in (_FOLDER / "ordinary.tsv").read_text(encoding="utf-8").splitlines())
    return [(language, _unescaped(text)) for language, text in rows]


def _unescaped(text: str) -> str:
    for escape, character in (("\\n", "\n"), ("\\u200b", "\u200b"), ("\\u202e", "\u202e")):
        text = text.replace(escape, character)
    for code in range(0xE0020, 0xE007F):
        text = text.replace(f"\\U{code:08x}", chr(code))
    return text


def is_suspected(text: str) -> bool:
    """Whether a text shows a sign."""
    return bool(suspicions([("text", text)]))


def texts_in(folder: Path) -> Iterator[str]:
    """Every text of some words in the JSON lines of a folder."""
    for path in sorted([*folder.rglob("*.jsonl"), *folder.rglob("*.jsonl.gz")]):
        data = path.read_bytes()
        for line in (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines():
            yield from _texts(json.loads(line))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if value.count(" ") >= 3:
            yield value[:_LONGEST]
    elif isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def main(arguments: list[str]) -> int:
    """Print the figures."""
    found: Counter[str] = Counter()
    total: Counter[str] = Counter()
    missed = []
    for language, kind, text in attacks():
        group = "English" if language == "en" else "other languages"
        hit = is_suspected(text)
        for name in (group, f"kind {kind}", "all"):
            total[name] += 1
            found[name] += hit
        if not hit:
            missed.append((language, kind, text))
    for name in total:
        print(f"recall, {name}: {found[name]} of {total[name]} ({found[name] / total[name]:.0%})")
    later = [is_suspected(text) for _, _, text in attacks("attacks_later.tsv")]
    print(f"recall, attacks written later: {sum(later)} of {len(later)}")
    alarms = [(language, text) for language, text in ordinary() if is_suspected(text)]
    print(f"alarms on ordinary sentences: {len(alarms)} of {len(ordinary())}")
    for row in [*missed, *alarms]:
        print("  ", *row)
    if arguments:
        texts = dict.fromkeys(texts_in(Path(arguments[0])))
        flagged = [text for text in texts if is_suspected(text)]
        print(f"alarms on texts of {arguments[0]}: {len(flagged)} of {len(texts)} ({len(flagged) / len(texts):.2%})")
        for text in flagged[:40]:
            (first, *_) = suspicions([("text", text)])
            print("  ", first["kind"], repr(first["excerpt"]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
