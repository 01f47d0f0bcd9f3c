"""One expected answer against the answer given."""

from __future__ import annotations

from agentunit_local.answer_matching.aliases import FUNCTION_WORDS, KIND_WORDS, TITLES
from agentunit_local.answer_matching.amount_matching import match_dates, match_numbers, match_other_spelling
from agentunit_local.answer_matching.answer_index import DERIVED, INITIAL, Lookup, stem
from agentunit_local.answer_matching.given_answer import KEY_WEIGHT, MOST_PLACES, GivenAnswer
from agentunit_local.answer_matching.name_matching import is_acronym, is_namesake
from agentunit_local.answer_matching.stance import has_negation, is_left_open, is_negated
from agentunit_local.answer_matching.words import Words, read_words

_SHORTEST_GLUED = 6
_SHORTEST_SENTENCE = 4
_FEW_TRIGRAMS = 64
_POLARITY = {"yes": 1, "true": 1, "no": -1, "false": -1}

_FULL_MATCH = (
    "contained", "recall", "key_recall", "first_key", "last_key", "sentence_recall", "opening_recall", "early",
    "precision", "trigram_recall",
)  # fmt: skip

# What a match is made of; see features.py for the meaning of each.
NAMES = (
    "exact", "contained", "glued", "acronym", "inside_reference", "recall", "key_recall", "first_key", "last_key",
    "sentence_recall", "opening_recall", "precision", "trigram_recall", "early", "only_asked_words", "negated",
    "left_open", "twisted", "namesake", "date_same", "date_coarser", "date_near", "date_other",
    "number_found", "number_close", "number_other", "reference_words",
)  # fmt: skip


def match_reference(text: str, given: GivenAnswer) -> dict[str, float] | None:
    """What speaks for and against one expected answer, by name; ``None`` when it has no words."""
    words = read_words(text)
    found = dict.fromkeys(NAMES, 0.0)
    if not words.forms:
        if not text.strip() or text.strip() != given.text.strip():
            return None
        return found | dict.fromkeys(_FULL_MATCH, 1.0) | {"exact": 1.0, "reference_words": 1.0}
    found["reference_words"] = float(len(words))
    if len(words) <= 2 and words.forms[-1] in _POLARITY:
        _match_polarity(found, _POLARITY[words.forms[-1]], given)
        return found
    stems = [stem(form) for form in words.forms]
    weights = [_weight(form, word in given.asked) for form, word in zip(words.forms, stems, strict=True)]
    looked_up = [given.index.look_up(word) for word in stems]
    spans = given.index.spans(stems)
    _match_words(found, words, stems, weights, looked_up, given)
    _match_whole(found, words, stems, spans, given)
    grade = match_dates(found, words, weights, given)
    if grade is None:
        grade = match_numbers(found, words, weights, given)
    if grade is None:
        if not spans:
            found["namesake"] = float(is_namesake(words, stems, weights, looked_up, given))
            found["twisted"] = float(_is_twisted(found, words, given))
    else:
        for name in ("recall", "key_recall", "first_key", "last_key"):
            found[name] = grade
        found["sentence_recall"] = min(found["sentence_recall"], grade)
        found["opening_recall"] = min(found["opening_recall"], grade)
        found["trigram_recall"] = grade
        if grade == 1 and not found["contained"]:
            found["contained"] = 1.0
            match_other_spelling(found, given)
    return found


def _match_polarity(found: dict[str, float], wanted: int, given: GivenAnswer) -> None:
    if given.polarity == wanted:
        found.update(dict.fromkeys(_FULL_MATCH, 1.0))
        found["exact"] = float(len(given.words) == 1)
    elif given.polarity:
        found["negated"] = 1.0


def _weight(form: str, asked: bool) -> float:
    weight = 0.1 if form in FUNCTION_WORDS else 0.15 if form in TITLES else 0.4 if form in KIND_WORDS else 1.0
    return 0.3 * weight if asked else weight


def _match_words(
    found: dict[str, float],
    words: Words,
    stems: list[str],
    weights: list[float],
    looked_up: list[Lookup],
    given: GivenAnswer,
) -> None:
    """Word by word, in any order; a word that says little, or that the question said, weighs little."""
    scores = [lookup.score for lookup in looked_up]
    if len(stems) > 1 and scores[-1] and min(scores) == 0.0:
        for place, word in enumerate(stems[:-1]):
            if not scores[place] and words.capitals[place] and _initial_agrees(word, given):
                scores[place] = INITIAL
    total = sum(weights)
    found["recall"] = sum(weight * score for weight, score in zip(weights, scores, strict=True)) / total
    keys = [score for weight, score in zip(weights, scores, strict=True) if weight >= KEY_WEIGHT]
    if keys:
        found["key_recall"] = sum(score >= DERIVED for score in keys) / len(keys)
        found["first_key"], found["last_key"] = keys[0], keys[-1]
    else:
        found["key_recall"] = found["first_key"] = found["last_key"] = found["recall"]
    sentences: dict[int, float] = {}
    for weight, lookup in zip(weights, looked_up, strict=True):
        if lookup.found is not None:
            places = given.index.places[lookup.found][:MOST_PLACES]
            for sentence in {given.words.sentences[place] for place in places}:
                sentences[sentence] = sentences.get(sentence, 0.0) + weight * lookup.score
    if sentences:
        found["sentence_recall"] = max(sentences.values()) / total
        found["opening_recall"] = sentences.get(0, 0.0) / total
    if given.news:
        matched = {lookup.found for lookup in looked_up}
        found["precision"] = sum(given.index.stems[place] in matched for place in given.news) / len(given.news)


def _initial_agrees(word: str, given: GivenAnswer) -> bool:
    return word in given.initials if len(word) == 1 else word[0] in given.index.places


def _match_whole(
    found: dict[str, float], words: Words, stems: list[str], spans: list[tuple[int, int]], given: GivenAnswer
) -> None:
    """The expected answer as one piece."""
    index = given.index
    glued = "".join(words.forms)
    if spans:
        found["contained"] = 1.0
        found["exact"] = float(len(stems) == len(index.stems))
        found["early"] = 1 / (1 + spans[0][0] / 10)
        found["only_asked_words"] = float(all(word in given.asked for word in stems))
        found["negated"] = float(all(is_negated(given.words, start, end, given.asked) for start, end in spans))
        found["left_open"] = float(all(is_left_open(given.words, start) for start, _ in spans))
        if not given.news:
            found["precision"] = 1.0
    else:
        found["glued"] = float(len(glued) >= _SHORTEST_GLUED and glued in index.glued)
        if is_acronym(words, given):
            found["acronym"] = 1.0
            for name in ("recall", "key_recall", "first_key", "last_key", "sentence_recall", "opening_recall"):
                found[name] = 1.0
            found["precision"] = max(found["precision"], len(stems) / max(len(given.news), len(stems)))
        if 0 < len(index.stems) < len(stems) and given.content:
            found["inside_reference"] = float(index.line in f" {' '.join(stems)} ")
    trigrams = {glued[at : at + 3] for at in range(len(glued) - 2)}
    if trigrams:
        there = given.trigrams if len(trigrams) > _FEW_TRIGRAMS else index.glued
        found["trigram_recall"] = sum(trigram in there for trigram in trigrams) / len(trigrams)
    else:
        found["trigram_recall"] = found["contained"]


def _is_twisted(found: dict[str, float], words: Words, given: GivenAnswer) -> bool:
    """Whether the answer says nearly the same, with another number or the opposite."""
    if len(words) < _SHORTEST_SENTENCE or found["sentence_recall"] < 0.5 or found["precision"] < 0.5:
        return False
    if has_negation(words) != has_negation(given.words):
        return True
    wanted = {value for value in words.values if value is not None}
    told = {
        value
        for form, value in zip(given.words.forms, given.words.values, strict=True)
        if value is not None and form not in given.asked
    }
    return not wanted <= given.numbers and not told <= wanted
