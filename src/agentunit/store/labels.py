"""People's labels: what one is about, how it is kept, and which of them speak of a run.

A label belongs to a case and the answer it judged, not to a run: a later run that gives the same answer has it, too.
It is on the scale of its metric: the value that the score should have been. Labels are never deleted. One that is
undone, or replaced by the same rater, is *withdrawn* and stays in the file; what is not withdrawn *stands*.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from math import fsum
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct, field

from agentunit.core.outcome import outcome_text
from agentunit.core.records import Record
from agentunit.core.results import encode_json

if TYPE_CHECKING:
    from agentunit.store.protocol import RunStore

Place = tuple[int, int]
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
            subject = subject_of(stored.record)
            found += [
                msgspec.structs.replace(label, position=stored.position, repeat=stored.repeat)
                for label in labels
                if label.subject == subject
            ]
    return sorted(found, key=lambda label: (*label.place, label.made_at))


def frames_of_run(store: RunStore, run_id: str, labels: Sequence[StoredLabel]) -> dict[Place, str]:
    """For a run with labels that were given on other runs: the run from whose answers each record's labels were drawn.

    Answers that another run had, too, were all among those that its labels were drawn from; the rest are this run's
    own. Of a run that was deleted only the labeled answers are known to have been. Without such labels: nothing.
    """
    given_on = {label.run_id for label in labels} - {"", run_id}
    if not given_on:
        return {}
    asked: dict[str, str] = {label.subject: label.run_id for label in labels if label.run_id in given_on}
    known = {run.id for run in store.runs()}
    for frame in sorted(given_on & known):
        for stored in store.records(frame):
            asked.setdefault(subject_of(stored.record), frame)
    return {
        (stored.position, stored.repeat): asked.get(subject_of(stored.record), run_id)
        for stored in store.records(run_id)
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
