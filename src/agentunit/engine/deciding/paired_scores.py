"""What two runs bring to a comparison: a metric's values by backend and case, and which of them are asked for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

from msgspec import structs

from agentunit.core.score_block import ScoreRow
from agentunit.engine.deciding.checks import CheckRule, answered_rows
from agentunit.engine.scoring.scored_run import ScoredRun
from agentunit.engine.scoring.stored_rows import StoredRecords


@dataclass
class BackendScores:
    """What one backend made of a metric in one run; values by case, a case's repeats averaged.

    ``models`` are those that a judge answered with, ``last`` is the last value in dataset order. ``is_binary`` says
    that every value is 0 or 1; ``repeats`` are the values by repeat of the cases that were not just run once. Where
    only some scores are informational, they are not among the values, and ``n_left_out`` counts them.
    """

    informational: bool
    values: dict[str, float] = field(default_factory=dict)
    versions: set[str] = field(default_factory=set)
    models: set[str] = field(default_factory=set)
    last: float = math.nan
    is_binary: bool = True
    repeats: dict[str, dict[int, float]] = field(default_factory=dict)
    n_values: int = 0
    n_left_out: int = 0

    def add(self, row: ScoreRow, value: float) -> None:
        """Take the value of one more record. The repeats of a case are averaged when all are there."""
        case_id = row.case_id
        if row.repeat == 0 and case_id not in self.values:
            self.values[case_id] = value
        else:
            by_repeat = self.repeats.setdefault(case_id, {})
            if case_id in self.values and not by_repeat:
                by_repeat[0] = self.values[case_id]
            by_repeat[row.repeat] = value
        self.versions.add(row.version)
        self.last = value
        self.is_binary = self.is_binary and value in (0.0, 1.0)
        self.n_values += 1
        if row.judged is not None:
            self.models.update(row.judged.models)

    def by_repeat(self, case_id: str) -> dict[int, float]:
        """The values of a case by repeat."""
        return self.repeats.get(case_id) or {0: self.values[case_id]}

    def n_repeats(self, case_id: str) -> int:
        """How many repeats of a case have a value."""
        return len(self.repeats[case_id]) if case_id in self.repeats else 1

    def extremes(self, case_id: str) -> tuple[int, int]:
        """The repeats of a case with its lowest and its highest value."""
        values = self.by_repeat(case_id)
        return min(values, key=values.__getitem__), max(values, key=values.__getitem__)

    def first_repeats(self, n_of_case: Mapping[str, int]) -> BackendScores:
        """The same with only so many repeats of these cases, the first of each."""
        kept = {case_id: dict(sorted(self.by_repeat(case_id).items())[:n]) for case_id, n in n_of_case.items()}
        return replace(self, values={**self.values, **_means(kept)}, repeats={**self.repeats, **kept})


def scores_by_backend(rows: Iterable[ScoreRow]) -> dict[str, BackendScores]:
    """The values of one metric's rows, by backend; informational ones only where the backend has no others."""
    ordinary: dict[str, BackendScores] = {}
    informational: dict[str, BackendScores] = {}
    for row in rows:
        if row.value is None:
            continue
        is_informational = row.status == "informational"
        of_backend = informational if is_informational else ordinary
        if row.backend not in of_backend:
            of_backend[row.backend] = BackendScores(is_informational)
        of_backend[row.backend].add(row, row.value)
    for backend in ordinary.keys() & informational.keys():
        ordinary[backend].n_left_out = informational[backend].n_values
    both = {**informational, **ordinary}
    for scores in both.values():
        scores.values.update(_means(scores.repeats))
    return both


def _means(cases: Mapping[str, Mapping[int, float]]) -> dict[str, float]:
    return {case_id: math.fsum(values.values()) / len(values) for case_id, values in cases.items()}


def equally_repeated(old: BackendScores, new: BackendScores) -> tuple[BackendScores, BackendScores, int]:
    """Both with as many repeats of each case as both have, and how many cases have fewer of them now.

    The difference of two means of unequally many values is skewed, also where nothing changed: a baseline that fails
    once of once loses more than three repeats of a candidate can win back. A test by signs takes that for a change.
    """
    unequal = {}
    if old.repeats or new.repeats:
        for case_id in old.values:
            if case_id in new.values and old.n_repeats(case_id) != new.n_repeats(case_id):
                unequal[case_id] = min(old.n_repeats(case_id), new.n_repeats(case_id))
    if not unequal:
        return old, new, 0
    return old.first_repeats(unequal), new.first_repeats(unequal), len(unequal)


def answered_scores(run: ScoredRun) -> dict[str, BackendScores]:
    """The share of a case's repeats in which the agent did not fail, without those in which the simulated user did."""
    return scores_by_backend(answered_rows(run))


def passed_scores(rows: Iterable[ScoreRow], rule: CheckRule) -> dict[str, BackendScores]:
    """Whether each try of a check passed, in place of its values."""
    passed: list[ScoreRow] = []
    for row in rows:
        result = rule.result(row)
        if result is not None:
            passed.append(structs.replace(row, value=float(result), status="ok"))
    return scores_by_backend(passed)


def case_ids(run: ScoredRun) -> set[str]:
    """The cases that a run has finished, whether or not they have a score."""
    if isinstance(run.records, StoredRecords):
        # A store has no score without its record.
        return set(run.records.case_ids)
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
