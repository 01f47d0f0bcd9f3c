"""Builds a small lexicon of exchangeable words from WordNet 3.0, for making right and wrong edits of sentences.

``python -m training.groundedness.lexicon /usr/share/wordnet lexicon.json.gz`` reads the files of the package
``wordnet-base``. For each common word: words of the same meaning, of the opposite meaning, and of a sister meaning (another
kind of the same thing), which make a sentence wrong without making it odd.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter, defaultdict
from pathlib import Path

PARTS = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
_ENTRIES = 8


def sense_counts(folder: Path) -> dict[tuple[str, str], Counter[int]]:
    """How often each numbered sense of a lemma was seen in the tagged texts that come with WordNet."""
    counts: dict[tuple[str, str], Counter[int]] = defaultdict(Counter)
    letters = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}
    for line in (folder / "cntlist.rev").read_text(encoding="utf-8").splitlines():
        key, number, count = line.split()
        lemma, rest = key.split("%")
        counts[lemma, letters[rest[0]]][int(number)] += int(count)
    return counts


def build(folder: Path) -> dict[str, dict[str, dict[str, list[str]]]]:
    """The lexicon: part of speech, lemma, then ``same``, ``opposite`` and ``sister`` words, the most common first."""
    counts = sense_counts(folder)
    seen = {key: sum(senses.values()) for key, senses in counts.items()}
    lexicon: dict[str, dict[str, dict[str, list[str]]]] = {}
    for part, letter in PARTS.items():
        synsets = _synsets(folder / f"data.{part}")
        children: dict[str, list[str]] = defaultdict(list)
        for offset, (_, pointers) in synsets.items():
            for symbol, target, _, _ in pointers:
                if symbol == "@":
                    children[target].append(offset)
        entries: dict[str, dict[str, list[str]]] = {}
        for line in (folder / f"index.{part}").read_text(encoding="utf-8").splitlines():
            if line.startswith(" "):
                continue
            fields = line.split()
            lemma = fields[0]
            if "_" in lemma or not lemma.isalpha() or seen.get((lemma, letter), 0) < 2:
                continue
            offsets = fields[-int(fields[2]) :]
            entry = _entry(lemma, letter, offsets, synsets, children, counts, seen)
            if any(entry.values()):
                entries[lemma] = entry
        lexicon[letter] = entries
    return lexicon


def _synsets(path: Path) -> dict[str, tuple[list[str], list[tuple[str, str, int, int]]]]:
    synsets = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith(" "):
            continue
        fields = line.split(" | ")[0].split()
        n_words = int(fields[3], 16)
        words = [fields[4 + 2 * number].split("(")[0].lower() for number in range(n_words)]
        at = 4 + 2 * n_words
        pointers = []
        for number in range(int(fields[at])):
            symbol, target, _, ends = fields[at + 1 + 4 * number : at + 5 + 4 * number]
            pointers.append((symbol, target, int(ends[:2], 16), int(ends[2:], 16)))
        synsets[fields[0]] = (words, pointers)
    return synsets


def _entry(lemma, letter, offsets, synsets, children, counts, seen):  # type: ignore[no-untyped-def]
    def common(words):  # type: ignore[no-untyped-def]
        usable = {word for word in words if word.isalpha() and word != lemma and seen.get((word, letter), 0) >= 2}
        return sorted(usable, key=lambda word: (-seen[word, letter], word))[:_ENTRIES]

    senses = counts.get((lemma, letter), Counter())
    total = sum(senses.values()) or 1
    # A word with one dominant sense can be exchanged without knowing which sense is meant.
    main = [offset for number, offset in enumerate(offsets, 1) if senses[number] / total >= 0.5]
    same, opposite, sister = [], [], []
    for offset in main:
        same += synsets[offset][0]
    for offset in offsets[:3]:
        words, pointers = synsets[offset]
        for symbol, target, source_word, target_word in pointers:
            if symbol == "!" and words[source_word - 1] == lemma:
                opposite.append(synsets[target][0][target_word - 1])
            if symbol == "@" and offset in main and len(children[target]) <= 60:
                for child in children[target]:
                    if child not in offsets:
                        sister += synsets[child][0][:1]
    near = {word for offset in offsets for word in synsets[offset][0]}
    return {"same": common(same), "opposite": common(opposite), "sister": common(set(sister) - near)}


if __name__ == "__main__":
    source, target = sys.argv[1:]
    with gzip.open(target, "wt", encoding="utf-8") as file:
        json.dump(build(Path(source)), file, sort_keys=True)
