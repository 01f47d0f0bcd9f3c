"""Expected answers that fail the checks of their own case, and checks that no answer can pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentunit.addons.review.case_assertions import assertion_holds
from agentunit.addons.review.soundness._grading import Grading
from agentunit.addons.review.soundness._texts import shown
from agentunit.addons.review.soundness._tool_keys import expected_calls
from agentunit.addons.review.soundness.found import Hit
from agentunit.addons.review.soundness.material import Material, metadata_of
from agentunit.core.case import DatasetCase
from agentunit.core.records import Outcome
from agentunit.formulas.patterns import PatternError, linear_pattern
from agentunit.metrics.inputs import InputProblem, Item, acceptable_answers

# Measured of the run itself, not of an answer.
_OF_THE_RUN = ("cost", "latency", "tool-used")
_MOST_COMPARED = 100
_MOST_ANSWERS = 100


def fails_own_check(material: Material) -> Iterator[Hit]:
    """Cases whose expected answer, with the expected tool calls, does not pass."""
    grading = Grading(material, exact_only=True)
    if not grading:
        return
    for case in grading.sampled(material.cases):
        answers: list[Any] = acceptable_answers(case.expected_output)[:_MOST_ANSWERS]
        if not answers or case.turns is not None or case.user is not None:
            continue
        calls = [{"name": name, "arguments": arguments or {}} for name, arguments in expected_calls(case)]
        calls += [{"name": name, "arguments": {}} for name in _asserted_tools(case)]
        for answer in answers:
            verdict = grading.verdict(case, answer, calls)
            if verdict.failed:
                name, why = next(iter(verdict.failed.items()))
                told = f"the expected answer {shown(answer)} fails {name}" + (f": {why}" if why else "")
                yield Hit(case.id, told + _passed_by(case, material))
                break


def impossible(material: Material) -> Iterator[Hit]:
    """Checks of a case that contradict each other, or that cannot be used."""
    for case in material.cases:
        problem = next(_conflicts(case), None)
        if problem is not None:
            yield Hit(case.id, problem)


def _passed_by(case: DatasetCase, material: Material) -> str:
    """How the case came out, where runs are given: an answer that passed is one that the check takes for right."""
    tries = [each.counts_as_passed for run in material.runs for each in run.tries.get(case.id, ())]
    graded = [each for each in tries if each is not None]
    if not graded:
        return ""
    times = "try" if len(graded) == 1 else "tries"
    return f"; the case passed in {sum(graded)} of {len(graded)} {times}"


def _conflicts(case: DatasetCase) -> Iterator[str]:
    fields = metadata_of(case)
    pattern = fields.get("regex")
    if pattern is not None:
        yield from _unusable_pattern(pattern, "metadata['regex']")
    listed = fields.get("assertions")
    assertions = [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
    # Each is held against each: a hostile file lists thousands.
    assertions = assertions[:_MOST_COMPARED]
    for assertion in assertions:
        kind, value = str(assertion.get("type", "")), assertion.get("value")
        if kind.removeprefix("not-") == "regex" and value is not None:
            yield from _unusable_pattern(value, f"the assertion {kind}")
        if kind == "word-count" and isinstance(value, Mapping):
            lowest, highest = value.get("min"), value.get("max")
            if isinstance(lowest, (int, float)) and isinstance(highest, (int, float)) and lowest > highest:
                yield f"the assertion word-count wants at least {lowest} and at most {highest} words"
    for assertion in assertions:
        for text in _exact_texts(assertion):
            for other in assertions:
                if other is not assertion and _holds(other, text) is False:
                    one, two = _named(assertion), _named(other)
                    yield f"the assertions {one} and {two} cannot both hold"


def _exact_texts(assertion: Mapping[str, Any]) -> list[str]:
    """The texts that an assertion demands: the whole answer, or what must be in it."""
    value = assertion.get("value")
    if assertion.get("type") == "equals" and isinstance(value, str):
        return [value]
    if assertion.get("type") == "levenshtein" and isinstance(value, str) and assertion.get("threshold") == 0:
        return [value]
    if assertion.get("type") in ("contains", "contains-all", "icontains", "icontains-all"):
        texts = [value] if isinstance(value, str) else value
        # Another assertion can fail on a part of an answer and hold of the whole, unless it forbids the part.
        listed = texts[:_MOST_COMPARED] if isinstance(texts, list) else []
        return [_Fragment(each) for each in listed if isinstance(each, str)]
    return []


class _Fragment(str):
    """A text that an answer must contain, and of which it may be no more than a part."""

    __slots__ = ()


def _holds(assertion: Mapping[str, Any], text: str) -> bool | None:
    kind = str(assertion.get("type", ""))
    if kind.removeprefix("not-") in _OF_THE_RUN:
        return None
    if isinstance(text, _Fragment) and kind not in (
        "not-contains",
        "not-contains-any",
        "not-icontains",
        "not-icontains-any",
    ):
        return None
    try:
        return assertion_holds(assertion, Item(DatasetCase("answer"), None, Outcome(output=str(text))))
    except InputProblem:
        return None


def _unusable_pattern(pattern: Any, place: str) -> Iterator[str]:
    if not isinstance(pattern, str):
        yield f"{place} is {shown(pattern)}, which is not a valid regular expression"
        return
    try:
        linear_pattern(pattern)
    except PatternError as error:
        yield f"{place} is {shown(pattern)}, which cannot be used: {error}"


def _asserted_tools(case: DatasetCase) -> Iterator[str]:
    listed = metadata_of(case).get("assertions")
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, Mapping) and each.get("type") == "tool-used":
            value = each.get("value")
            yield from [value] if isinstance(value, str) else (name for name in value or () if isinstance(name, str))


def _named(assertion: Mapping[str, Any]) -> str:
    return f"{assertion.get('type')} {shown(assertion.get('value'))}"
