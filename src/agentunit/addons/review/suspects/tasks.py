"""Which records are runs of the same task: by the id of the case, else by the question."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from typing import Any, Literal, NamedTuple

from agentunit.addons.review.suspects._answers import normalized_question
from agentunit.core.case import DatasetCase
from agentunit.engine.scoring.case_fields import field_values

TASK_FIELDS = ("task_id", "instance_id", "question_id", "question_ID", "sample_id", "problem_id")
"""Metadata in which benchmarks and frameworks say which task a run is of, the first that is there."""
TASK_PARTS = ("domain", "suite", "dataset", "environment", "instruction")
"""Metadata that tell tasks of one id apart: task 3 of the airline is not task 3 of the shop."""
FEWEST_WORDS = 4
"""A shorter question ("Hi, I need help") is that of many tasks."""
MOST_QUESTIONS = 300
"""So many different questions are compared in meaning: encoding them takes some ten seconds."""
SAME_MEANING = 0.92
"""From this cosine on two questions with the same numbers are one task."""

TaskBy = Literal["field", "id", "question", "meaning"]
_REPEAT = re.compile(
    r"(?<![/#:@ _-])[/#:@ _-]*(?:trial|epoch|repeat|rep|attempt|try|run|sample|seed)[-_ #:]?\d+$", re.IGNORECASE
)
_NUMBER = re.compile(r"\d+")
_LONGEST_QUESTION = 400


class TaskKeys(NamedTuple):
    """What a record can be matched by: digests of its id and of its question (with the context it came with)."""

    by_id: bytes
    by_question: bytes | None
    is_named: bool
    question: str | None
    by_field: bool = False


def task_keys(case: DatasetCase, field: str | None = None) -> TaskKeys:
    """The keys of a case. ``field`` is a field that says by itself which task it is (``metadata.ticket``).

    >>> first, second, other = (task_keys(DatasetCase(id)).by_id for id in ("a/trial-0", "a/trial-1", "b/trial-0"))
    >>> first == second, first == other
    (True, False)
    """
    metadata = case.metadata if isinstance(case.metadata, dict) else {}
    if field is not None:
        values = field_values(metadata, field)
        if values:
            return TaskKeys(_digest("field", *values), None, True, None, by_field=True)
    named = next((metadata[name] for name in TASK_FIELDS if metadata.get(name) not in (None, "")), None)
    parts = [str(metadata.get(name) or "") for name in TASK_PARTS]
    identity = str(case.id if named is None else named)
    without_repeat = _REPEAT.sub("", identity)
    question = normalized_question(case.query) if isinstance(case.query, str) else ""
    # Files of several tasks often number their samples from 1: one id with two questions is two tasks, unless it is
    # said that they are tries at one, whose simulated users word the question in their own ways.
    asked = question if named is None and without_repeat == identity else ""
    by_id = _digest("id" if named is None else "named", without_repeat, asked, *parts)
    if len(question.split()) < FEWEST_WORDS:
        return TaskKeys(by_id, None, named is not None, None)
    context = [str(each) for each in case.context] if isinstance(case.context, list) else []
    kept = question if len(question) <= _LONGEST_QUESTION and not context else None
    return TaskKeys(by_id, _digest("question", question, *context), named is not None, kept)


class TaskRuns(NamedTuple):
    """Runs of one task, by their numbers, and what they were matched by."""

    by: TaskBy
    runs: list[int]


def group_tasks(
    keys: Sequence[TaskKeys], *, alike: Callable[[list[str]], list[list[int]]] | None = None
) -> Iterator[TaskRuns]:
    """The runs of each task. Those without another of the same id are matched by their questions.

    ``alike`` groups questions by meaning, for those that no other equals: each group is a list of their places.
    A run whose framework names its task is never matched by its question: its peers are known.
    """
    by_id: dict[bytes, list[int]] = {}
    for place, key in enumerate(keys):
        by_id.setdefault(key.by_id, []).append(place)
    by_question: dict[bytes, list[int]] = {}
    alone: list[int] = []
    named_tasks = Counter(keys[places[0]].is_named and len(places) > 1 for places in by_id.values())[True]
    for places in by_id.values():
        if len(places) > 1 or (named_tasks and keys[places[0]].is_named):
            yield TaskRuns("field" if keys[places[0]].by_field else "id", places)
            continue
        question = keys[places[0]].by_question
        if question is None:
            yield TaskRuns("id", places)
        else:
            by_question.setdefault(question, []).extend(places)
    for places in by_question.values():
        if len(places) > 1:
            yield TaskRuns("question", sorted(places))
        else:
            alone += places
    yield from _by_meaning(keys, alone, alike)


def _by_meaning(
    keys: Sequence[TaskKeys], alone: list[int], alike: Callable[[list[str]], list[list[int]]] | None
) -> Iterator[TaskRuns]:
    asked = [place for place in alone if keys[place].question is not None][:MOST_QUESTIONS] if alike else []
    matched: set[int] = set()
    if alike is not None and len(asked) > 1:
        for group in alike([keys[place].question or "" for place in asked]):
            if len(group) > 1:
                matched |= {asked[each] for each in group}
                yield TaskRuns("meaning", sorted(asked[each] for each in group))
    for place in alone:
        if place not in matched:
            yield TaskRuns("question", [place])


def groups_alike(questions: Sequence[str], similarity: Callable[[str, str], float]) -> list[list[int]]:
    """Questions that mean the same, by their places: the same numbers, and a similarity of 0.92 to the first of them.

    Questions that differ in a number are different questions, however alike they read.

    >>> groups_alike(["cancel my order 7", "please cancel order 7", "cancel my order 8"], lambda left, right: 0.95)
    [[0, 1], [2]]
    """
    groups: dict[tuple[str, ...], list[list[int]]] = {}
    for place, question in enumerate(questions):
        same_numbers = groups.setdefault(tuple(sorted(_NUMBER.findall(question))), [])
        for group in same_numbers:
            if similarity(questions[group[0]], question) >= SAME_MEANING:
                group.append(place)
                break
        else:
            same_numbers.append([place])
    return [group for each in groups.values() for group in each]


def _digest(*parts: Any) -> bytes:
    text = "\0".join(str(part) for part in parts)
    return blake2b(text.encode("utf-8", "replace"), digest_size=12).digest()
