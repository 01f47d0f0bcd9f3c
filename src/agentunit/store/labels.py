"""People's labels: what one is about, how it is kept, and which of them speak of a run.

A label belongs to a case and the answer it judged, not to a run: another run that gives the same answer has it, too.
It is on the scale of its metric: the value that the score should have been. Labels are never deleted. One that is
undone, or replaced by the same rater, is *withdrawn* and stays in the file; what is not withdrawn *stands*.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from math import fsum, inf
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct, field

from agentunit.core.records import Record, outcome_text
from agentunit.core.results import encode_json
from agentunit.store.runs import is_again

if TYPE_CHECKING:
    from agentunit.store.run_store import RunStore

from agentunit.core.score_block import Place

"""Position and repeat of a record in its run."""


class StoredLabel(Struct, omit_defaults=True):
    """What one person said of one answer.

    ``value`` is on the scale of the ``metric`` (1.0: yes to its ``question``); ``None`` where the rater could not say.
    ``subject`` is the digest of the case and the answer. ``run_id``, ``position`` and ``repeat`` say where it was
    given; ``source`` by what: "label" for the screen, else the file or tool it came from. Where the case was drawn at
    random, ``draw`` names the draw, and ``stratum`` and ``probability`` say how likely this case was in it.
    """

    subject: str
    metric: str
    case_id: str
    value: float | None
    rater: str
    made_at: float = field(default_factory=time.time)
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    question: str = ""
    note: str = ""
    source: str = "label"
    run_id: str = ""
    position: int = 0
    repeat: int = 0
    draw: str | None = None
    stratum: int | None = None
    probability: float | None = None
    withdrawn_at: float | None = None

    @property
    def place(self) -> Place:
        """Which record of the run it speaks of."""
        return self.position, self.repeat


def subject_of(record: Record) -> str:
    """What a label is about: a digest of the case and its answer, alike for every run that gave this answer.

    >>> from agentunit.core.case import DatasetCase
    >>> first, again = (Record(DatasetCase("q1", "2 + 2?"), outcome="4") for _ in range(2))
    >>> subject_of(first) == subject_of(again) != subject_of(Record(DatasetCase("q1", "2 + 2?"), outcome="5"))
    True
    """
    judged = [record.case.id, record.case.query, outcome_text(record.outcome)]
    return hashlib.sha256(encode_json(judged)).hexdigest()[:32]


def labels_of_run(store: RunStore, run_id: str, metric: str | None = None) -> list[StoredLabel]:
    """The standing labels of a run's answers, in dataset order, with their places in this run.

    They may have been given on another run, whose ``run_id`` they keep, where it had the same answer.
    """
    by_case: dict[str, list[StoredLabel]] = {}
    for label in store.labels(metric):
        by_case.setdefault(label.case_id, []).append(label)
    found = []
    for case_id, labels in by_case.items():
        for stored in store.case(run_id, case_id):
            if is_again(stored.repeat):
                continue
            subject = subject_of(stored.record)
            found += [
                msgspec.structs.replace(label, position=stored.position, repeat=stored.repeat)
                for label in labels
                if label.subject == subject
            ]
    return sorted(found, key=lambda label: (*label.place, label.made_at))


def frames_of_run(store: RunStore, run_id: str, labels: Sequence[StoredLabel]) -> dict[str, dict[Place, str]]:
    """By metric, where labels were given on other runs: the group within which the labels of each record are random.

    A run is asked about the answers that no run labeled before it had, so each record belongs to the first labeled run
    that had its answer. Where a later run gave labels to such answers, too, those that it had are a group of their own,
    named "first+later", unless its labels do not count (``sampled_labels``). Of a run that was deleted only the labeled
    answers are known to have been.
    """
    metrics = {label.metric for label in labels if label.run_id not in ("", run_id)}
    if not metrics:
        return {}
    subjects = _subjects(store, run_id)
    known = {run.id for run in store.runs()}
    answers: dict[str, set[str]] = {run_id: set(subjects.values())}
    found = {}
    for metric in sorted(metrics):
        given: dict[str, set[str]] = {run_id: set()}
        for label in labels:
            if label.metric == metric and label.run_id:
                given.setdefault(label.run_id, set()).add(label.subject)
        for each in given.keys() & known - answers.keys():
            answers[each] = set(_subjects(store, each).values())
        had = {each: answers.get(each, judged) for each, judged in given.items()}
        order = _by_first_label(store, metric, had)
        first = {place: next(each for each in order if subject in had[each]) for place, subject in subjects.items()}
        counted = sampled_labels([label for label in labels if label.metric == metric], first, run_id)
        found[metric] = _groups(subjects, first, order, had, counted, run_id)
    return found


def _subjects(store: RunStore, run_id: str) -> dict[Place, str]:
    """What labels would be about, by record. Tries again are never drawn for labels."""
    return {stored.place: subject_of(stored.record) for stored in store.records(run_id) if not is_again(stored.repeat)}


def sampled_labels(labels: Sequence[StoredLabel], first: Mapping[Place, str], run_id: str) -> list[StoredLabel]:
    """The labels of one metric from which a rate of the run may follow; ``first`` names the group of each record.

    Within a group whose own run was labeled by a draw, a label of another run that nobody drew (of a file) speaks only
    of records that were drawn: any more would make a random sample one of which nothing is known.
    """
    drawn = {label.place for label in labels if label.draw is not None}
    by_draw = {label.run_id for label in labels if label.draw is not None and label.run_id == first.get(label.place)}
    return [
        label
        for label in labels
        if label.run_id in ("", run_id) or label.place in drawn or first.get(label.place) not in by_draw
    ]


def _by_first_label(store: RunStore, metric: str, runs: Iterable[str]) -> list[str]:
    """The runs in the order in which their first labels were given."""
    began: dict[str, float] = {}
    for label in store.labels(metric, withdrawn=True):
        began[label.run_id] = min(label.made_at, began.get(label.run_id, inf))
    return sorted(runs, key=lambda each: (began.get(each, inf), each))


def _groups(
    subjects: Mapping[Place, str],
    first: Mapping[Place, str],
    order: Sequence[str],
    had: Mapping[str, set[str]],
    labels: Sequence[StoredLabel],
    run_id: str,
) -> dict[Place, str]:
    # Every record is an answer of this run itself, so its own labels set none of them apart. Nor do further words on
    # records that were drawn.
    drawn = {label.place for label in labels if label.draw is not None}
    chosen = [label for label in labels if label.draw is not None or label.place not in drawn]
    later: dict[str, list[str]] = {each: [] for each in order}
    for each in order:
        frames = {first[label.place] for label in chosen if label.run_id == each} if each != run_id else set()
        for frame in frames - {each}:
            later[frame].append(each)
    return {
        place: "+".join([first[place], *(each for each in later[first[place]] if subject in had[each])])
        for place, subject in subjects.items()
    }


def label_values(labels: Iterable[StoredLabel], metric: str) -> dict[Place, float]:
    """The label of each record: the mean of what its raters said. Those that no rater could judge have none.

    >>> said = [StoredLabel("s", "faithfulness", "q1", value, rater) for rater, value in (("ana", 1.0), ("ben", 0.0))]
    >>> label_values(said, "faithfulness")
    {(0, 0): 0.5}
    """
    said: dict[Place, list[float]] = {}
    for label in labels:
        if label.metric == metric and label.value is not None:
            said.setdefault(label.place, []).append(label.value)
    return {place: fsum(values) / len(values) for place, values in said.items()}


def split_labels(
    labels: Iterable[StoredLabel], *, held_out_share: float = 0.5
) -> tuple[list[StoredLabel], list[StoredLabel]]:
    """Labels that may be shown (to a judge, as examples) and those held out to measure by.

    What a label is about decides, so all labels of one answer fall on one side, the same on every machine and however
    many are added.
    """
    shown: list[StoredLabel] = []
    held_out: list[StoredLabel] = []
    for label in labels:
        (held_out if int(label.subject[:8], 16) < held_out_share * 2**32 else shown).append(label)
    return shown, held_out


def unshown_labels(labels: Iterable[StoredLabel], shown_share: float) -> list[StoredLabel]:
    """The labels that say something about a scorer which learned from this share of them: the others, all for none."""
    return split_labels(labels, held_out_share=1.0 - shown_share)[1] if shown_share else list(labels)


def places_of(labels: Iterable[StoredLabel]) -> Mapping[Place, list[StoredLabel]]:
    """Labels by the record that they speak of."""
    found: dict[Place, list[StoredLabel]] = {}
    for label in labels:
        found.setdefault(label.place, []).append(label)
    return found
