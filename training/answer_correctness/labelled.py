"""The labelled answers, and the rows made from them."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

VARIABLE = "AGENTUNIT_DATA"
FILE = "dev/answer_correctness.jsonl.gz"
# Data sets whose licence allows weights fitted on them to ship.
MAY_TRAIN = ("evouna_",)


_NUMBER = re.compile(r"(?<![\d.,])\d+(?![\d.,]\d)")

_VERB = re.compile(r"\b(is|was|are|were)\b(?! not)")


class Row(NamedTuple):
    """One answer with its label; ``question_id`` keeps the rows of one question together."""

    id: str
    question_id: str
    question: str
    expected: tuple[str, ...]
    answer: str
    correct: bool
    dataset: str
    model: str


def data_file(root: Path) -> Path:
    """Where the labelled answers are."""
    folder = os.environ.get(VARIABLE)
    return (Path(folder) if folder else root.parent / "shared" / "data") / FILE


def read_rows(path: Path) -> list[Row]:
    """All labelled rows. Rows that share a question (whatever their id) share its ``question_id``."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [
            Row(
                raw["id"],
                " ".join(raw["question"].casefold().split()),
                raw["question"],
                tuple(raw["expected"]),
                raw["answer"],
                bool(raw["correct"]),
                raw["dataset"],
                raw["model"],
            )
            for raw in map(json.loads, lines)
        ]


def may_train(row: Row) -> bool:
    """Whether a row may shape coefficients that ship."""
    return row.dataset.startswith(MAY_TRAIN)


def made_up_rows(rows: Sequence[Row], seed: int, questions: int = 500) -> list[Row]:
    """Answers that are right or wrong by construction: negation, guesses, refusals, other answers, yes and no.

    People's labels hold too few of them to learn from, and users write all of them in their first hour.
    """
    chance = random.Random(seed)
    by_question = {row.question_id: row for row in rows}
    chosen = chance.sample(sorted(by_question), min(questions, len(by_question)))
    made = []
    for number, name in enumerate(chosen):
        row = by_question[name]
        right = row.expected[0]
        wrong = by_question[chosen[number - 1]].expected[0]
        if not _differ(right, wrong) or not _differ(wrong, *row.expected):
            continue
        for kind, answer, correct in _answers(right, wrong):
            made.append(
                row._replace(id=f"{name}:{kind}", answer=answer, correct=correct, dataset="made_up", model=kind)
            )
        for kind, expected, answer, correct in _yes_and_no(right, wrong):
            question = f"is the answer to {row.question} {right}?"
            made.append(Row(f"{name}:{kind}", name, question, (expected,), answer, correct, "made_up", kind))
    return made


def namesake_rows(rows: Sequence[Row], seed: int) -> list[Row]:
    """The surname that was expected with first names from other answers: wrong."""
    chance = random.Random(seed)
    named = {row.question_id: row for row in rows if _is_name(row.expected[0])}
    first_names = sorted({row.expected[0].split()[0] for row in named.values()})
    made = []
    for name in sorted(named):
        first, last = named[name].expected[0].split()
        others = [other for other in chance.sample(first_names, 3) if other[0] != first[0]]
        for other, frame in zip(others, ("{}", "It was {}.", "The answer is {}."), strict=False):
            answer = frame.format(f"{other} {last}")
            made.append(named[name]._replace(answer=answer, correct=False, dataset="made_up", model="namesake"))
    return made


def _is_name(text: str) -> bool:
    return text.istitle() and len(text.split()) == 2 and text.replace(" ", "").isalpha() and not text.startswith("The ")


def _differ(one: str, *others: str) -> bool:
    words = {word for other in others for word in other.casefold().split()}
    return words.isdisjoint(one.casefold().split())


def _answers(right: str, wrong: str) -> Iterable[tuple[str, str, bool]]:
    yield "plain", right, True
    yield "sentence", f"It is {right}.", True
    yield "not the other", f"The answer is {right}, not {wrong}.", True
    yield "but", f"It is not {wrong} but {right}.", True
    yield "other", wrong, False
    yield "other sentence", f"It is {wrong}.", False
    yield "denied", f"It is not {right}.", False
    yield "denied short form", f"It isn't {right}. It is {wrong}.", False
    yield "no longer", f"It is no longer {right}.", False
    yield "rather than", f"It is {wrong} rather than {right}.", False
    yield "not this one", f"The answer is {wrong}, not {right}.", False
    yield "either", f"It is either {right} or {wrong}.", False
    yield "maybe", f"Maybe {right}, maybe {wrong}.", False
    yield "refusal", "I don't know.", False
    yield "long refusal", "I'm sorry, but I could not find any information about that.", False
    yield "unsure", f"I am not sure whether it is {right}.", False


def _yes_and_no(right: str, wrong: str) -> Iterable[tuple[str, str, str, bool]]:
    yield "yes: yes", "Yes", f"Yes, it is {right}.", True
    yield "yes: no", "Yes", f"No, it is {wrong}.", False
    yield "no: no", "No", f"No, it is {wrong}.", True
    yield "no: yes", "no", f"Yes, it is {right}.", False


def twisted_rows(rows: Sequence[Row], seed: int) -> list[Row]:
    """Correct answers as the expected one, beside copies with another number or a negation, which are wrong."""
    chance = random.Random(seed)
    made = []
    for row in rows:
        if not row.correct or not 5 <= len(row.answer.split()) <= 40:
            continue
        numbers = [match for match in _NUMBER.finditer(row.answer) if len(match.group()) <= 6]
        changed = [_VERB.sub(r"\1 not", row.answer, count=1)]
        if numbers:
            place = chance.choice(numbers)
            other = str(int(place.group()) + chance.choice((-3, -2, -1, 1, 2, 3, 7, 10)))
            changed.append(row.answer[: place.start()] + other + row.answer[place.end() :])
        kept = [text for text in changed if text != row.answer]
        made.extend(
            row._replace(expected=(row.answer,), answer=text, correct=text == row.answer, dataset="twisted")
            for text in (row.answer, *kept)
        )
    return made


def sentence_rows(rows: Sequence[Row], seed: int) -> list[Row]:
    """Rows whose expected answer is a sentence: a correct answer of one model, for the answers of the others."""
    chance = random.Random(seed)
    by_question: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_question[row.question_id].append(row)
    made = []
    for name in sorted(by_question):
        group = by_question[name]
        sentences = [row for row in group if row.correct and 6 <= len(row.answer.split()) <= 40]
        if not sentences:
            continue
        source = chance.choice(sentences)
        made.extend(
            row._replace(expected=(source.answer,), dataset="sentence_reference") for row in group if row is not source
        )
    return made
