"""Checks that an agent passes without doing anything: by silence, an echo, a refusal, or always the same answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from agentunit.addons.review.soundness._grading import Grading
from agentunit.addons.review.soundness._texts import is_refusal, plain, shown
from agentunit.addons.review.soundness.found import Hit
from agentunit.addons.review.soundness.material import Material
from agentunit.core.case import DatasetCase
from agentunit.metrics.inputs import acceptable_answers

_REFUSAL = "I'm sorry, but I can't help with that."
_IDLE = "Done."
# A constant answer passes some cases of every suite with few answers: half of those that ask for yes or no. It is a
# fault where it earns a good part, and half as much again as it would if the answers were balanced.
_LARGE_SHARE = 0.2
_OF_BALANCED = 1.5
_NEARLY_ALL = 0.95


def passed_by_nobody(material: Material) -> Iterator[Hit]:
    """Cases that an agent passes that does nothing."""
    grading = Grading(material)
    if not grading or material.left_out:
        return
    cases = [case for case in grading.sampled(material.cases) if grading.is_all_of(case)]
    agents: list[tuple[str, Callable[[DatasetCase], str]]] = [
        ("answers nothing", lambda case: ""),
        ("does nothing and says 'Done.'", lambda case: _IDLE),
        ("repeats the question", lambda case: case.query or ""),
        ("refuses", lambda case: _REFUSAL),
    ]
    seen: set[str] = set()
    for what, answer in agents:
        for case in cases:
            if case.id in seen or _has_turns(case):
                continue
            output = answer(case)
            if what == "refuses" and any(map(is_refusal, acceptable_answers(case.expected_output))):
                continue
            if what == "repeats the question" and not output.strip():
                continue
            passed = grading.is_passed(case, output)
            if passed:
                seen.add(case.id)
                yield Hit(case.id, f"an agent that {what} passes {', '.join(passed)}")


def constant_answer(material: Material) -> Iterator[Hit]:
    """The cases that one and the same answer passes, where they are a good part of the suite."""
    grading = Grading(material)
    answers = Counter(each for case in material.cases for each in acceptable_answers(case.expected_output))
    if not grading or material.left_out or len(answers) < 2:
        return
    answer, n_cases = answers.most_common(1)[0]
    cases = [case for case in grading.sampled(material.cases) if grading.is_all_of(case)]
    large = max(_LARGE_SHARE, _OF_BALANCED / _n_choices(answers))
    if n_cases < 3 or n_cases < large * len(material.cases) or not plain(answer):
        return
    passed = [case.id for case in cases if not _has_turns(case) and grading.is_passed(case, answer)]
    if len(passed) >= large * len(cases):
        for case_id in passed:
            yield Hit(case_id, f"an agent that always answers {shown(answer)} passes")


def _n_choices(answers: Counter[str]) -> int:
    """How many answers there are to choose from: those that make up nearly all, and no fewer than two."""
    left = _NEARLY_ALL * answers.total()
    n_choices = 0
    for _, times in answers.most_common():
        if left <= 0:
            break
        left -= times
        n_choices += 1
    return max(n_choices, 2)


def _has_turns(case: DatasetCase) -> bool:
    return case.turns is not None or case.user is not None
