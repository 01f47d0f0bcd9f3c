"""Answers that an agent is handed with the question."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice

from agentunit.addons.review.soundness._texts import plain, shown, texts_in, words
from agentunit.addons.review.soundness.found import Hit
from agentunit.addons.review.soundness.material import Material, metadata_of, passages_of
from agentunit.metrics.inputs import acceptable_answers

_ANNOUNCED = re.compile(
    r"(?:\b(?:correct|right|expected|reference|gold(?:en)?|ground[ _-]?truth)[ _-]?(?:answer|output|response)?"
    r"|^[ \t]*(?:answer|solution|label))\s*(?:is|=|:)\s*(?P<text>\S[^\n]*)",
    re.IGNORECASE | re.MULTILINE,
)
_CHOICES = re.compile(r"(?:^|[\s(])(?:[A-Ea-e1-5][.):]|[-*•])\s|\bor\b|options?:|choices?:|choose|one of", re.MULTILINE)
# What a question holds to be worked on: a text to translate, to correct, to sort, to look something up in.
_WORKED_ON = re.compile(
    r"\b(?:translate|rewrite|rephrase|correct|fix|extract|summari[sz]e|sort|repeat|spell|classify|quote|copy|find|"
    r"convert|format|following|passage|text|sentence|list|which|whose|who|according|between|given|is|are|was|does|did|"
    r"call(?:ed)?|titled|named|reply|say|write|send|post|search)\b|:\s|[\"“«]",
    re.IGNORECASE,
)
_LONGEST_QUESTION = 40
_SHORTEST_ANSWER = 4
_MOST_WORDS = 4


def in_question(material: Material) -> Iterator[Hit]:
    """Questions and passages that announce the answer, or simply contain it."""
    for case in material.cases:
        answers = {each: told for each in acceptable_answers(case.expected_output) if (told := plain(each))}
        if not answers:
            continue
        query = case.query or ""
        place = _announced(query, answers)
        if place:
            yield Hit(case.id, f"the question says {shown(place)}")
            continue
        place = next((found for text in passages_of(case) if (found := _announced(text, answers))), None)
        if place:
            yield Hit(case.id, f"the context says {shown(place)}")
        elif found := _contained(query, answers):
            yield Hit(case.id, f"the question {shown(query)} contains the answer {shown(found)}")


def in_fields(material: Material) -> Iterator[Hit]:
    """Fields of the metadata that agents receive and that hold the expected answer."""
    if material.metrics is None and material.runs:
        # Records say what is known of a case now, not what its agent was given.
        return
    for case in material.cases:
        answers = {plain(each) for each in acceptable_answers(case.expected_output) if _is_telling(plain(each))}
        if not answers or not metadata_of(case):
            continue
        asked = plain(case.query or "")
        for key, value in metadata_of(material.view(case)).items():
            held = next((text for text in texts_in(value) if plain(text) in answers and plain(text) not in asked), None)
            if held is not None:
                yield Hit(case.id, f"agents receive metadata[{key!r}] = {shown(held)}, which is the expected answer")
                break


def in_id(material: Material) -> Iterator[Hit]:
    """Ids, which every agent receives, that name the answer."""
    if material.metrics is None and material.runs:
        return
    for case in material.cases:
        of_id = words(re.sub(r"[\W_]+", " ", case.id))
        query = set(words(case.query or ""))
        for answer in acceptable_answers(case.expected_output):
            of_answer = words(answer)
            new = [word for word in of_answer if word not in query]
            if new and len(of_answer) <= _MOST_WORDS and _is_telling(plain(answer)) and _runs_through(of_answer, of_id):
                yield Hit(case.id, f"the id names the answer {shown(answer)}")
                break


def _announced(text: str, answers: Mapping[str, str]) -> str | None:
    """Where a text says the answer; one that announces several answers shows how others were given."""
    announced = list(islice(_ANNOUNCED.finditer(text), 2))
    if len(announced) != 1:
        return None
    said = plain(announced[0]["text"])
    if any(said == each or (_is_telling(each) and said.startswith(each)) for each in answers.values()):
        return announced[0].group().strip()
    return None


def _contained(query: str, answers: Mapping[str, str]) -> str | None:
    """An answer within a short question that offers no choice and gives no text to work on."""
    asked = words(query)
    if not 0 < len(asked) <= _LONGEST_QUESTION or _CHOICES.search(query) or _WORKED_ON.search(query):
        return None
    for answer, told in answers.items():
        wanted = words(answer)
        if _is_telling(told) and len(wanted) < len(asked) and _runs_through(wanted, asked):
            return answer
    return None


def _is_telling(answer: str) -> bool:
    return (
        len(answer) >= _SHORTEST_ANSWER
        and not answer.replace(" ", "").isdigit()
        and answer not in ("true", "false", "none", "null")
    )


def _runs_through(wanted: list[str], found: list[str]) -> bool:
    n = len(wanted)
    return n > 0 and any(found[start : start + n] == wanted for start in range(len(found) - n + 1))
