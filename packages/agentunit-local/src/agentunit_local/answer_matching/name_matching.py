"""Names: abbreviated by their first letters, or shared by somebody else."""

from __future__ import annotations

from agentunit_local.answer_matching.aliases import FUNCTION_WORDS, KIND_WORDS, RELATED, TITLES
from agentunit_local.answer_matching.answer_index import Lookup
from agentunit_local.answer_matching.given_answer import KEY_WEIGHT, MOST_PLACES, GivenAnswer
from agentunit_local.answer_matching.words import Words


def is_acronym(words: Words, given: GivenAnswer) -> bool:
    """Whether one of the two is made of the first letters of the other: JFK and John F. Kennedy."""
    if len(words) == 1:
        form = words.forms[0]
        return words.capitals[0] and 3 <= len(form) <= 6 and form not in given.asked and form in given.initials
    letters = "".join(form[0] for form in words.forms if form not in FUNCTION_WORDS)
    if not 3 <= len(letters) <= 8 or letters in given.asked:
        return False
    return any(given.words.capitals[place] for place in given.index.places.get(letters, ())[:MOST_PLACES])


def is_namesake(
    words: Words, stems: list[str], weights: list[float], looked_up: list[Lookup], given: GivenAnswer
) -> bool:
    """Whether a name shares a part with the expected one and differs in the other: Robert for John F. Kennedy."""
    keys = [place for place, weight in enumerate(weights) if weight >= KEY_WEIGHT and words.capitals[place]]
    if len(keys) < 2:
        return False
    first, last = looked_up[keys[0]], looked_up[keys[-1]]
    if (first.score > 0) == (last.score > 0):
        return False
    shared, step, missing = (first.found, 1, keys[-1]) if first.score else (last.found, -1, keys[0])
    if shared is None:
        return False
    neighbours = [place + step for place in given.index.places[shared][:MOST_PLACES]]
    return all(_is_another_name(place, stems, stems[missing][0], given) for place in neighbours)


def _is_another_name(place: int, stems: list[str], initial: str, given: GivenAnswer) -> bool:
    """Whether a capitalised word stands at a place that is no part or short form of the expected name."""
    if not 0 <= place < len(given.words) or not given.words.capitals[place]:
        return False
    form, word = given.words.forms[place], given.index.stems[place]
    if form in TITLES or form in KIND_WORDS or form in FUNCTION_WORDS or word in given.asked:
        return False
    return form[0] != initial and word not in stems and not any(other in stems for other in RELATED.get(word, ()))
