"""People's labels in the browser: the same questions, in the same order and through the same code as ``label``."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from agentunit import doors
from agentunit.addons.viewer._case_columns import NOTE
from agentunit.addons.viewer._case_detail import label_data
from agentunit.addons.viewer._library import Library, OpenRun, UnknownRun
from agentunit.addons.viewer._shown_case import key_of
from agentunit.engine.scoring.scored_run import ScoredRun, run_from_store
from agentunit.reports.figures import counted, with_interval
from agentunit.reports.reported_run import Mask
from agentunit.store.labels import StoredLabel, subject_of
from agentunit.store.opening import open_store
from agentunit.store.run_store import RunStore
from agentunit.store.runs import is_again

WIDTH = 0.2
_LONGEST_NAME, _LONGEST_NOTE = 80, 4_000
# A random order does not compress, and nobody labels more in a bundle.
_MOST_ASKED = 500


class LabelDesk:
    """Asks raters and keeps what they say in the store, at once. One at a time: each sees what was said before."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._lock = threading.Lock()

    @contextmanager
    def _session(self, run_id: str, metric: str, rater: str, *, write: bool) -> Iterator[tuple[Any, RunStore]]:
        self._library.header(run_id)
        with self._lock, open_store(self._library.address, read_only=not write) as store:
            run = run_from_store(store, run_id)
            session = doors.part("label_session")(store, run, metric, checked_name(rater), WIDTH)
            if session is None:
                raise UnknownRun(f"run {run.header.label} has no scores of {metric!r:.80} to label")
            yield session, store

    def task(self, run_id: str, metric: str, rater: str, *, personal: bool = False) -> dict[str, Any]:
        """What is asked now (``LabelTask`` of types.ts)."""
        with self._session(run_id, metric, rater, write=False) as (session, _):
            return _task(session, self._library.mask(personal))

    def give(
        self, run_id: str, key: str, metric: str, rater: str, value: float | None, note: str = ""
    ) -> dict[str, Any]:
        """Keep an answer and say what is asked next."""
        opened = self._library.run(run_id)
        place = opened.place(key)
        if value is not None and not 0.0 <= value <= 1.0:
            raise ValueError(f"a label is a number from 0 to 1; received {value:g}")
        case, _ = self._library.recorded_case(opened, key)
        with self._session(run_id, metric, rater, write=True) as (session, _):
            if not session.go_to(place):
                raise UnknownRun(f"record {key} has no score of {metric} to label")
            asked = session.current
            assert asked is not None
            session.give(value, subject_of(case.record), note.strip()[:_LONGEST_NOTE])
            return {**_task(session, self._library.mask()), "answered": _answered(asked, value)}

    def undo(self, run_id: str, metric: str, rater: str) -> dict[str, Any]:
        """Take back what the rater said last, and ask about its case again."""
        with self._session(run_id, metric, rater, write=True) as (session, store):
            last = session.last_given
            if last is not None:
                store.withdraw_label(last.id)
        with self._session(run_id, metric, rater, write=False) as (session, _):
            if last is not None:
                session.go_to(last.place)
            return _task(session, self._library.mask())

    def note(self, opened: OpenRun, key: str, rater: str, note: str) -> dict[str, Any]:
        """Keep a note on a case; a later one of the same rater takes its place."""
        case, _ = self._library.recorded_case(opened, key)
        if is_again(case.repeat):
            raise ValueError("a try again takes no note: write it on a planned repeat of the case")
        label = StoredLabel(
            subject_of(case.record),
            NOTE,
            case.case_id,
            None,
            checked_name(rater),
            note=note.strip()[:_LONGEST_NOTE],
            run_id=opened.header.id,
            position=case.position,
            repeat=case.repeat,
        )
        if not label.note:
            raise ValueError("a note holds some text")
        with self._lock, open_store(self._library.address) as store:
            store.add_labels([label])
        return label_data(label, self._library.mask())


def checked_name(rater: str) -> str:
    """A rater's name; an empty one or a very long one is refused."""
    name = rater.strip()
    if not 0 < len(name) <= _LONGEST_NAME:
        raise ValueError(f"a rater has a name of at most {_LONGEST_NAME} characters; received {len(name)}")
    return name


def _answered(asked: Any, value: float | None) -> dict[str, Any]:
    return {
        "key": key_of(*asked.place),
        "case_id": asked.case_id,
        "value": value,
        "score": asked.score.value,
        "backend": asked.score.backend,
    }


def _task(session: Any, mask: Mask) -> dict[str, Any]:
    standing, asked = session.standing(), session.current
    rate = standing.rate
    said = f"{counted(standing.n_labels, 'label')} of {standing.n_cases:,}"
    if rate is not None:
        said += f": labeled rate {with_interval(rate.rate, rate.low, rate.high, 'score')}"
    if standing.n_more:
        said += f"; about {standing.n_more:,} more give an interval {WIDTH:g} wide"
    return {
        "metric": session.info.name,
        "backend": session.backend,
        "rater": session.rater,
        "question": session.info.asked,
        "graded": session.info.graded,
        "n_given": session.n_given,
        "n_labels": standing.n_labels,
        "n_cases": standing.n_cases,
        "rate": None if rate is None else rate.rate,
        "low": None if rate is None else rate.low,
        "high": None if rate is None else rate.high,
        "n_more": standing.n_more,
        "standing": said,
        "asked": None
        if asked is None
        else {
            "key": key_of(*asked.place),
            "case_id": asked.case_id,
            "given": None if asked.given is None else label_data(asked.given, mask),
        },
        "answered": None,
    }


def labels_page(run: ScoredRun, mask: Mask) -> dict[str, Any]:
    """All labels of a run and what raters disagree on (``LabelsPage`` of types.ts)."""
    metrics = [
        {
            "metric": info.name,
            "backend": backend,
            "question": info.asked,
            "graded": info.graded,
            "n_labels": sum(label.metric == info.name and label.value is not None for label in run.labels),
            "summary": info.summary,
        }
        for info, backend in doors.part("label_questions")(run)
    ]
    return {
        "metrics": metrics,
        # They are offered to be chosen: nobody labels under a pseudonym.
        "raters": sorted(rater for rater in {label.rater for label in run.labels} if mask.name(rater) == rater),
        "labels": [label_data(label, mask) for label in run.labels],
        "disagreements": list(_disagreements(run.labels, mask)),
    }


def _disagreements(labels: Sequence[StoredLabel], mask: Mask) -> Iterator[dict[str, Any]]:
    said: dict[tuple[str, tuple[int, int]], list[StoredLabel]] = {}
    for label in labels:
        if label.value is not None:
            said.setdefault((label.metric, label.place), []).append(label)
    for (metric, place), given in said.items():
        if len({label.value for label in given}) > 1:
            yield {
                "metric": metric,
                "case_id": given[0].case_id,
                "key": key_of(*place),
                "said": [
                    {
                        "rater": mask.name(each.rater),
                        "value": each.value,
                        "note": mask.text(each.note) if each.note else "",
                    }
                    for each in given
                ],
            }


def label_queues(store: RunStore, run: ScoredRun, numbers: dict[tuple[int, int], int]) -> list[dict[str, Any]]:
    """By metric, the order in which records are asked about (``LabelQueue`` of types.ts), for a bundle."""
    queues = []
    for info, backend in doors.part("label_questions")(run):
        session = doors.part("label_session")(store, run, info.name, "nobody", WIDTH)
        queues.append(
            {
                "metric": info.name,
                "backend": backend,
                "question": info.asked,
                "graded": info.graded,
                "direction": info.direction,
                "queue": [numbers[place] for place in session.queue[:_MOST_ASKED]],
            }
        )
    return queues
