"""Cases that ask the same: exactly, nearly, or the same with different expected answers."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from agentunit.addons.review.soundness._texts import numbers, plain, shown, texts_in, unpunctuated, words
from agentunit.addons.review.soundness._tool_keys import expected_calls
from agentunit.addons.review.soundness.found import Hit
from agentunit.addons.review.soundness.material import Material, metadata_of, passages_of
from agentunit.core.case import DatasetCase
from agentunit.formulas.text import shown_share
from agentunit.metrics.inputs import acceptable_answers

_SHINGLE = 3
_ALIKE = 0.8
_FEWEST_WORDS = 8
# A shingle that this many questions share is how questions of the suite begin, not what makes two of them the same.
_MOST_SHARING = 100
_LONGEST_COMPARED = 3000
# Words of courtesy and grammar: questions that differ in these alone ask the same.
_LIGHT = frozenset((
    "a", "an", "and", "are", "at", "be", "by", "can", "could", "do", "does", "for", "from", "has", "have", "hello",
    "hi", "i", "im", "in", "is", "it", "just", "kindly", "let", "like", "me", "my", "now", "of", "on", "or", "our",
    "please", "quickly", "simply", "so", "some", "tell", "thank", "thanks", "that", "the", "then", "there", "this",
    "to", "us", "was", "we", "will", "with", "would", "you", "your",
))  # fmt: skip
_LONGEST_MARK = 40
_LETTER = re.compile(r"\w")
_FILE = re.compile(r"\.\w{2,5}$")
_EXPECTATIONS = ("contains", "regex", "json_schema", "assertions", "expected_state", "expected_tool_calls", "rubric")


def repeated(material: Material) -> Iterator[Hit]:
    """Cases that ask what an earlier one asks, and expect the same."""
    for group in _same_questions(material.cases, as_written=False):
        firsts: dict[Any, DatasetCase] = {}
        for case in group:
            first = firsts.setdefault(_expectation(case), case)
            if first is not case:
                yield Hit(case.id, f"asks the same as {first.id}{_but_for(case, first)}: {shown(_question(case))}")


def nearly_repeated(material: Material) -> Iterator[Hit]:
    """Cases that ask nearly what another one asks, with the same numbers, and expect the same."""
    # Templates filled with other numbers, or asked about something else, are other questions: the rest is compared.
    same_matter: dict[Any, list[DatasetCase]] = defaultdict(list)
    for group in _same_questions(material.cases, alone=True, as_written=False):
        same_matter[tuple(sorted(numbers(_question(group[0])))), _surroundings(group[0])].append(group[0])
    pairs = [pair for cases in same_matter.values() if len(cases) > 1 for pair in _near_pairs(cases)]
    place_of = {case.id: place for place, case in enumerate(material.cases)} if pairs else {}
    for one, other, alike in sorted(pairs, key=lambda pair: place_of[pair[1].id]):
        if _expectation(one) == _expectation(other):
            yield Hit(other.id, f"{shown_share(alike)} of its wording is that of {one.id}: {shown(_question(other))}")


def contradictory(material: Material) -> Iterator[Hit]:
    """Cases that ask the same and expect something else, where no answer is accepted by both."""
    for group in _same_questions(material.cases):
        first = group[0]
        for case in group[1:]:
            one, other = _answers(first), _answers(case)
            if one and other and not one & other:
                told = f"{shown(case.expected_output)} here, {shown(first.expected_output)} in {first.id}"
                yield Hit(case.id, f"the same question expects {told}")
                continue
            calls, others = _calls(case), _calls(first)
            if not (one or other) and calls is not None and others is not None and calls != others:
                yield Hit(case.id, f"the same question expects {_named(calls)} here, {_named(others)} in {first.id}")


def _same_questions(
    cases: Sequence[DatasetCase], *, alone: bool = False, as_written: bool = True
) -> Iterator[list[DatasetCase]]:
    """Cases that ask the same, in groups; ``as_written`` sets only spacing aside, not case and punctuation."""
    groups: dict[Any, list[DatasetCase]] = defaultdict(list)
    for case in cases:
        question = _question(case)
        if _LETTER.search(question) or plain(question):
            # Casing and signs can be what a question is about: other answers to it are no contradiction then.
            asked = " ".join(question.split()) if as_written else unpunctuated(question)
            groups[asked, _surroundings(case)].append(case)
    for group in groups.values():
        if alone or len(group) > 1:
            yield group


def _but_for(case: DatasetCase, first: DatasetCase) -> str:
    return "" if _question(case).split() == _question(first).split() else " but for case, punctuation or spacing"


def _near_pairs(cases: Sequence[DatasetCase]) -> Iterator[tuple[DatasetCase, DatasetCase, float]]:
    """Pairs of which at least ``_ALIKE`` of the shingles are shared, found by the rarest shingles of each."""
    shingles = [_shingles(_question(case)[:_LONGEST_COMPARED]) for case in cases]
    counts = Counter(each for own in shingles for each in own)
    by_shingle: dict[int, list[int]] = defaultdict(list)
    for index, own in enumerate(shingles):
        if not own:
            continue
        # Two sets that share so much share one of their rarest members: a prefix of each is enough to find them.
        rarest = sorted(own, key=lambda each: (counts[each], each))[: len(own) - int(_ALIKE * len(own)) + 1]
        candidates = {earlier for each in rarest for earlier in by_shingle[each]}
        best = max(((_jaccard(shingles[each], own), -each) for each in candidates), default=(0.0, 0))
        if best[0] >= _ALIKE and _differ_in_wording(cases[-best[1]], cases[index]):
            yield cases[-best[1]], cases[index], _jaccard(_full(cases[-best[1]]), _full(cases[index]))
        for each in rarest:
            if len(by_shingle[each]) < _MOST_SHARING:
                by_shingle[each].append(index)


def _differ_in_wording(one: DatasetCase, other: DatasetCase) -> bool:
    """Whether two like questions differ in wording only: templates filled with other names do not."""
    one_words, other_words = Counter(words(_question(one))), Counter(words(_question(other)))
    differing = (one_words - other_words) | (other_words - one_words)
    return differing.keys() <= _LIGHT and _jaccard(_full(one), _full(other)) >= _ALIKE


def _shingles(text: str) -> frozenset[int]:
    found = words(text)
    if len(found) < _FEWEST_WORDS:
        return frozenset()
    return frozenset(hash(tuple(found[start : start + _SHINGLE])) for start in range(len(found) - _SHINGLE + 1))


def _full(case: DatasetCase) -> frozenset[int]:
    return _shingles(_question(case))


def _jaccard(one: frozenset[int], other: frozenset[int]) -> float:
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared) if shared else 0.0


def _question(case: DatasetCase) -> str:
    if isinstance(case.query, str) and case.query:
        return case.query
    turns = case.turns if isinstance(case.turns, list) else []
    return "\n".join(str(turn.get("query") if isinstance(turn, dict) else turn) for turn in turns)


def _surroundings(case: DatasetCase) -> Any:
    """What a question is asked about: passages, tools, files, and documents among the fields."""
    others = ((key, value) for key, value in metadata_of(case).items() if key not in _EXPECTATIONS)
    # A template that is filled later is not the same question twice.
    is_template = "{{" in _question(case)
    fields = {
        key: value
        for key, value in others
        if is_template or key in ("vars", "task_id") or any(_is_matter(each) for each in texts_in(value))
    }
    later = case.turns if case.query else None
    try:
        return msgspec.json.encode([passages_of(case), case.tools, fields, later], order="deterministic")
    except (TypeError, ValueError, RecursionError):
        return case.id


def _is_matter(text: str) -> bool:
    """Whether a field is more than a mark such as a topic or a source: a document, a path, an address."""
    return len(text) > _LONGEST_MARK or "/" in text or _FILE.search(text) is not None


def _expectation(case: DatasetCase) -> Any:
    keys = {key: value for key, value in metadata_of(case).items() if key in _EXPECTATIONS}
    try:
        return tuple(sorted(_answers(case))), msgspec.json.encode(keys, order="deterministic")
    except (TypeError, ValueError, RecursionError):
        return case.id


def _calls(case: DatasetCase) -> list[str] | None:
    """The names of the expected calls; other arguments for the same tools may both be right."""
    return None if metadata_of(case).get("expected_tool_calls") is None else [name for name, _ in expected_calls(case)]


def _named(calls: list[str]) -> str:
    return f"calls of {', '.join(calls)}" if calls else "no call"


def _answers(case: DatasetCase) -> set[str]:
    return {plain(each) for each in acceptable_answers(case.expected_output) if plain(each)}
