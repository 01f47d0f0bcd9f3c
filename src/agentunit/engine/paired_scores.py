"""What two runs bring to a comparison: a metric's values by backend and case, and which of them are asked for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

from agentunit.engine.scored_run import ScoredRun
from agentunit.metrics.base import MetricInfo
from agentunit.store.runs import ScoreRow

ANSWERED = MetricInfo(
    name="answered",
    family="run",
    summary="Whether the agent ended without failure: what it never answered has no other score to lose.",
    direction="higher",
    range=(0.0, 1.0),
    backend="run",
)


@dataclass(frozen=True)
class BackendScores:
    """What one backend made of a metric in one run; values by case, a case's repeats averaged.

    ``models`` are those that a judge answered with, ``last`` is the last value in dataset order. ``is_binary`` says
    that every value is 0 or 1; ``repeats`` are the values of each case by repeat. Where only some scores are
    informational, they are not among the values, and ``n_left_out`` counts them.
    """

    values: dict[str, float]
    versions: frozenset[str]
    informational: bool
    models: frozenset[str] = frozenset()
    last: float | None = None
    is_binary: bool = False
    repeats: dict[str, dict[int, float]] = field(default_factory=dict)
    n_left_out: int = 0

    def extremes(self, case_id: str) -> tuple[int, int]:
        """The repeats of a case with its lowest and its highest value."""
        values = self.repeats[case_id]
        return min(values, key=values.__getitem__), max(values, key=values.__getitem__)

    def first_repeats(self, n_of_case: Mapping[str, int]) -> BackendScores:
        """The same with only so many repeats of these cases, the first of each."""
        kept = {case_id: dict(sorted(self.repeats[case_id].items())[:n]) for case_id, n in n_of_case.items()}
        return replace(self, values={**self.values, **_means(kept)}, repeats={**self.repeats, **kept})


def scores_by_backend(rows: Iterable[ScoreRow]) -> dict[str, BackendScores]:
    """The values of one metric's rows, by backend; informational ones only where the backend has no others."""
    ordinary: dict[str, _Values] = {}
    informational: dict[str, _Values] = {}
    for row in rows:
        if row.value is not None:
            kind = informational if row.status == "informational" else ordinary
            kind.setdefault(row.backend, _Values()).add(row, row.value)
    return {
        backend: BackendScores(
            _means(found.repeats),
            frozenset(found.versions),
            backend not in ordinary,
            frozenset(found.models),
            found.last,
            all(value in (0.0, 1.0) for values in found.repeats.values() for value in values.values()),
            found.repeats,
            informational[backend].n_values if backend in ordinary and backend in informational else 0,
        )
        for backend, found in {**informational, **ordinary}.items()
    }


class _Values:
    """The values of one backend."""

    def __init__(self) -> None:
        self.repeats: dict[str, dict[int, float]] = {}
        self.versions: set[str] = set()
        self.models: set[str] = set()
        self.last: float | None = None
        self.n_values = 0

    def add(self, row: ScoreRow, value: float) -> None:
        self.repeats.setdefault(row.case_id, {})[row.repeat] = value
        self.versions.add(row.version)
        self.last = value
        self.n_values += 1
        if row.judged is not None:
            self.models.update(row.judged.models)


def _means(cases: Mapping[str, Mapping[int, float]]) -> dict[str, float]:
    return {case_id: math.fsum(values.values()) / len(values) for case_id, values in cases.items()}


def equally_repeated(old: BackendScores, new: BackendScores) -> tuple[BackendScores, BackendScores, int]:
    """Both with as many repeats of each case as both have, and how many cases have fewer of them now.

    The difference of two means of unequally many values is skewed, also where nothing changed: a baseline that fails
    once of once loses more than three repeats of a candidate can win back. A test by signs takes that for a change.
    """
    unequal = {
        case_id: min(len(values), len(new.repeats[case_id]))
        for case_id, values in old.repeats.items()
        if case_id in new.repeats and len(values) != len(new.repeats[case_id])
    }
    return old.first_repeats(unequal), new.first_repeats(unequal), len(unequal)


def answered_scores(run: ScoredRun) -> dict[str, BackendScores]:
    """The share of a case's repeats in which the agent did not fail, without those in which the simulated user did."""
    broken_off = {(record.position, record.repeat) for record in run.user_failed}
    return scores_by_backend(
        ScoreRow(
            record.position,
            record.repeat,
            record.case_id,
            0.0 if record.failed else 1.0,
            "ok",
            ANSWERED.backend,
            ANSWERED.version,
        )
        for record in run.records
        if (record.position, record.repeat) not in broken_off
    )


def case_ids(run: ScoredRun) -> set[str]:
    """The cases that a run has finished, whether or not they have a score."""
    return {record.case_id for record in run.records} | {row.case_id for rows in run.metrics.values() for row in rows}


def clusters_by_case(candidate: ScoredRun, baseline: ScoredRun) -> dict[str, int] | None:
    """The cluster of each case of a run; as the baseline says where the run itself says none."""
    run = candidate if candidate.clusters is not None else baseline
    clusters = run.clusters
    return None if clusters is None else {row.case_id: clusters.of_case(row.position) for row in run.records}


def wanted_backends(name: str, metrics: Sequence[str] | None) -> set[str | None] | None:
    """The backends of a metric that were named (None: whichever); nothing when it was not, empty when none were."""
    if metrics is None:
        return set()
    wanted: set[str | None] = {
        None if each == name else each[len(name) + 1 : -1] for each in metrics if _metric_of(each) == name
    }
    return wanted or None


def _metric_of(label: str) -> str:
    return label.split("[", 1)[0] if label.endswith("]") else label


def check_names(parameter: str, labels: Iterable[str], known: Mapping[str, Iterable[str]]) -> None:
    """Raise ValueError at the first ``name`` or ``name[backend]`` that is not among the metrics and their backends."""
    for label in labels:
        name = _metric_of(label)
        if name not in known:
            raise ValueError(
                f"compare_runs: {parameter} must name metrics of the runs ({', '.join(known) or 'they have none'}); "
                f"received {label!r}{_near(name, known)}"
            )
        backends = list(known[name])
        if label != name and label[len(name) + 1 : -1] not in backends:
            raise ValueError(
                f"compare_runs: {parameter} must name a backend that scored {name} ({', '.join(backends)}); "
                f"received {label!r}{_near(label[len(name) + 1 : -1], backends)}"
            )


def _near(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""


def baseline_subject(metric: str, backend: str | None, baseline: str) -> str:
    """What the evidence of a run until decided calls a metric beside a baseline."""
    return f"{metric}[{backend}] against {baseline}"
