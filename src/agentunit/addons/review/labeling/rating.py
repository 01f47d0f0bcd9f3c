"""A rater's way through the cases of a run: which one comes next, what was said of it, and what is known by now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from msgspec import structs

from agentunit.core.results import LabeledSummary
from agentunit.core.score_block import Place, ScoreRow
from agentunit.engine.scoring.labeled_rates import draw_seed, labeled_sample, labeled_summary, own_frame, scored_rows
from agentunit.engine.scoring.scored_run import ScoredRun
from agentunit.formulas.labeled import LabeledRate, draw_for_labeling, labels_needed
from agentunit.metrics.base import MetricInfo
from agentunit.store.labels import StoredLabel, subject_of
from agentunit.store.run_store import RunStore

FEWEST_LABELS = 10
"""Before so many labels nobody can say how many more are needed."""


def labeled_info(run: ScoredRun, metric: str) -> MetricInfo:
    """The facts about a metric under the name that it has in the run: a rubric may have one of its own."""
    return replace(run.info(metric), name=metric)


def metrics_to_label(run: ScoredRun) -> list[str]:
    """The metrics that can be labeled: first those whose mean is not a rate, then those with their own question."""
    infos = {name: run.info(name) for name in run.metrics if scored_rows(run, name)}

    def rank(name: str) -> int:
        return 0 if infos[name].mean_of else 1 if infos[name].question else 2

    return sorted((name for name, info in infos.items() if info.question or info.unit == "score"), key=rank)


def main_backend(run: ScoredRun, metric: str) -> str | None:
    """The backend that scored most cases of a metric; ``None`` where none was scored."""
    scored = [row.backend for row in scored_rows(run, metric) if row.value is not None]
    return max(dict.fromkeys(scored), key=scored.count) if scored else None


def label_questions(run: ScoredRun) -> Iterator[tuple[MetricInfo, str]]:
    """The metrics that can be labeled, each with the backend whose scores its labels are held against."""
    for name in metrics_to_label(run):
        backend = main_backend(run, name)
        if backend is not None:
            yield labeled_info(run, name), backend


def label_session(store: RunStore, run: ScoredRun, metric: str, rater: str, width: float) -> LabelSession | None:
    """A session on the backend that scored most cases of a metric; ``None`` where none was scored."""
    backend = main_backend(run, metric)
    if backend is None:
        return None
    return LabelSession(store, run, labeled_info(run, metric), rater, backend=backend, width=width)


class CaseToLabel(NamedTuple):
    """A case that a rater is asked about; ``given`` is what this rater said of it before."""

    place: Place
    case_id: str
    score: ScoreRow
    stratum: int | None
    probability: float | None
    given: StoredLabel | None


class Standing(NamedTuple):
    """What the labels of all raters show: ``n_more`` labels would about give the wanted width; ``None``: not known."""

    n_labels: int
    n_cases: int
    rate: LabeledRate | None
    n_more: int | None


class LabelSession:
    """One rater labels the cases of a run for one metric. Every answer is in the store when its method returns.

    The order of the cases is drawn once, the same for all raters: it goes on where this rater left off, and two raters
    label the same cases. Answers that labels of another run speak for come last.
    """

    def __init__(
        self, store: RunStore, run: ScoredRun, info: MetricInfo, rater: str, *, backend: str, width: float
    ) -> None:
        self.run = run
        self.info = info
        self.rater = rater
        self.width = width
        self.backend = backend
        self._store = store
        self._sample = labeled_sample(run, info.name, backend)
        self._rows = {row.place: row for row in run.metrics[info.name] if row.backend == backend}
        self._alike = self._same_answers()
        self._queue = self._drawn()
        self._mine = {label.place: label for label in run.labels if self._is_mine(label)}
        self._at = self._next_open(0)
        self._trail: list[int] = []

    def _is_mine(self, label: StoredLabel) -> bool:
        return label.metric == self.info.name and label.rater == self.rater

    def _same_answers(self) -> dict[Place, list[Place]]:
        """The records that one label speaks for, by the first of them: the repeats of a case with the same answer."""
        if self.run.n_repeats == 1:
            return {place: [place] for place in self._sample.places}
        records = self._store.records(self.run.header.id)
        subjects = {each.place: subject_of(each.record) for each in records}
        alike: dict[str, list[Place]] = {}
        for place in self._sample.places:
            alike.setdefault(subjects[place], []).append(place)
        return {places[0]: places for places in alike.values()}

    def _drawn(self) -> list[tuple[Place, int | None, float | None]]:
        # Answers are drawn, not records: one that came three times would have three chances and count thrice.
        asked = [index for index, place in enumerate(self._sample.places) if place in self._alike]
        mine = set(own_frame(self.run, self.info.name, self._sample))
        own, rest = [each for each in asked if each in mine], [each for each in asked if each not in mine]
        seed = draw_seed(self.run, self.info.name)
        return [
            # The chance that a case had of being among as many as were asked about when its turn came.
            (self._sample.places[indices[at]], stratum, number / len(indices))
            for indices in (own, rest)
            for number, (at, stratum, _) in enumerate(
                draw_for_labeling([self._sample.scores[index] for index in indices], len(indices), seed=seed), 1
            )
        ]

    @property
    def n_given(self) -> int:
        """How many answers this rater has labeled; those that were skipped do not count."""
        return len({label.subject for label in self._mine.values() if label.value is not None})

    @property
    def current(self) -> CaseToLabel | None:
        """The case to ask about; ``None`` when none is left."""
        if self._at is None:
            return None
        place, stratum, probability = self._queue[self._at]
        return CaseToLabel(
            place, self._rows[place].case_id, self._rows[place], stratum, probability, self._mine.get(place)
        )

    def give(self, value: float | None, subject: str, note: str = "") -> StoredLabel:
        """Keep an answer to the current case, or with ``None`` that the rater cannot say, and go on."""
        asked = self.current
        assert asked is not None
        label = StoredLabel(
            subject,
            self.info.name,
            asked.case_id,
            value,
            self.rater,
            question=self.info.asked,
            note=note,
            run_id=self.run.header.id,
            position=asked.place[0],
            repeat=asked.place[1],
            draw=f"{self.run.header.id}/{self.info.name}",
            stratum=asked.stratum,
            probability=asked.probability,
        )
        self._store.add_labels([label])
        self._refresh(self._mine.get(asked.place), label)
        self._mine[asked.place] = label
        self._trail.append(self._at or 0)
        self._at = self._next_open((self._at or 0) + 1)
        return label

    def go_to(self, place: Place) -> bool:
        """Ask about the case at a place of the run; false where it is not among those that can be asked about."""
        at = next((at for at, (each, _, _) in enumerate(self._queue) if each == place), None)
        if at is not None:
            self._at = at
        return at is not None

    @property
    def queue(self) -> list[Place]:
        """The places of all cases, in the order in which they are asked about."""
        return [place for place, _, _ in self._queue]

    @property
    def last_given(self) -> StoredLabel | None:
        """What this rater said last."""
        return max(self._mine.values(), key=lambda label: label.made_at, default=None)

    def back(self) -> bool:
        """Return to the case before; an answer given now takes the place of the earlier one."""
        if not self._trail:
            return False
        self._at = self._trail.pop()
        return True

    def undo(self) -> StoredLabel | None:
        """Withdraw the answer to the case that ``back`` returned to, else the last one, and return to its case."""
        is_given = self.current is not None and self.current.given is not None
        if (not is_given and not self.back()) or self._at is None:
            return None
        label = self._mine.pop(self._queue[self._at][0], None)
        if label is not None:
            self._store.withdraw_label(label.id)
            self._refresh(label, None)
        return label

    def standing(self) -> Standing:
        """What all labels show by now."""
        sample = self._sample
        rate = sample.rate() if len(sample.labels) > 1 else None
        few = len(sample.labels) < FEWEST_LABELS
        n_more = None if rate is None or few else labels_needed(rate, self.width)
        return Standing(len(sample.labels), len(sample.places), rate, n_more)

    def summary(self) -> LabeledSummary | None:
        """What the labels come to, as reports show it."""
        return labeled_summary(self.run, self.info.name, self.backend)

    def _refresh(self, replaced: StoredLabel | None, label: StoredLabel | None) -> None:
        kept = [each for each in self.run.labels if replaced is None or each.id != replaced.id]
        if label is not None:
            alike = self._alike[label.place]
            kept += [structs.replace(label, position=position, repeat=repeat) for position, repeat in alike]
        self.run.labels = kept
        self._sample = labeled_sample(self.run, self.info.name, self.backend)

    def _next_open(self, start: int) -> int | None:
        places = [place for place, _, _ in self._queue]
        later = (at for at in range(start, len(places)) if places[at] not in self._mine)
        earlier = (at for at in range(min(start, len(places))) if places[at] not in self._mine)
        return next(later, next(earlier, None))
