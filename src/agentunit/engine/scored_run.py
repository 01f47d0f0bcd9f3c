"""A run as deciding sees it: every score, by metric, without the details."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import msgspec

from agentunit.core.codec import decode_record
from agentunit.core.conversation import SIMULATED_USER, USER_FAILED
from agentunit.core.judged import judged_of
from agentunit.core.results import JudgeSpend, MetricSummary, RunSummary, Score
from agentunit.engine.aggregate import MetricAggregate, amount_of
from agentunit.engine.judge_evidence import EVIDENCE, evidence_rows, keep_models_apart
from agentunit.engine.judging import JudgeTally, total_spend, with_bias
from agentunit.metrics.base import MetricInfo, describe
from agentunit.metrics.inputs import NO_CONTENT
from agentunit.metrics.registry import resolve_metrics
from agentunit.store.labels import Place, StoredLabel, frames_of_run, label_values, labels_of_run, unshown_labels
from agentunit.store.portable import read_portable
from agentunit.store.sqlite import RecordRow, RunHeader, ScoreRow, Store, StoredRecord


@dataclass(frozen=True)
class Clusters:
    """The field by which cases belong together, and the number of each case's cluster, by position."""

    field: str
    by_position: Sequence[int]

    def of_case(self, position: int) -> int:
        """The cluster of a case; one that is not known is a cluster of its own."""
        return self.by_position[position] if position < len(self.by_position) else -1 - position

    def count(self, positions: Iterable[int]) -> int:
        """How many clusters these cases are."""
        return len({self.of_case(position) for position in positions})

    def __str__(self) -> str:
        return f"clusters of {self.field}"


def recorded_clusters(settings: Mapping[str, Any]) -> Clusters | None:
    """The clusters that a run was recorded with. It may come from a file: what is no such thing is left out."""
    with suppress(msgspec.ValidationError):
        return msgspec.convert(settings["cluster"], Clusters) if settings.get("cluster") else None
    return None


@dataclass
class ScoredRun:
    """The scores of a run, by metric, each list in dataset order (by position, then repeat).

    ``records`` are all finished cases, also those without a score; ``infos`` what each metric said about itself when
    the run was scored. ``read_records`` opens the records themselves, where they are kept. ``labels`` are what people
    said of its answers; where some were said of another run's, ``frames`` names the run from whose answers those of
    each record were drawn.
    """

    header: RunHeader
    n_cases: int
    n_records: int
    n_failed: int
    metrics: dict[str, list[ScoreRow]] = field(default_factory=dict)
    records: list[RecordRow] = field(default_factory=list)
    infos: dict[str, MetricInfo] = field(default_factory=dict)
    labels: list[StoredLabel] = field(default_factory=list)
    frames: dict[Place, str] = field(default_factory=dict)
    read_records: Callable[[], Iterator[StoredRecord]] | None = field(default=None, repr=False, compare=False)
    _summary: RunSummary | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def n_repeats(self) -> int:
        """How often each case was run; the most, where they differ."""
        scored = (row.repeat + 1 for rows in self.metrics.values() for row in rows)
        return max(1, max((record.repeat + 1 for record in self.records), default=1), max(scored, default=1))

    @property
    def n_score_errors(self) -> int:
        """How many scores are errors."""
        return sum(row.status == "error" for rows in self.metrics.values() for row in rows)

    @property
    def clusters(self) -> Clusters | None:
        """Which cases belong together, where the suite says so."""
        return recorded_clusters(self.header.settings)

    @property
    def user_failed(self) -> list[RecordRow]:
        """The records in which the simulated user failed, and not the agent: no metric scores them."""
        places = {
            (row.position, row.repeat)
            for rows in self.metrics.values()
            for row in rows
            if row.reason is not None and row.reason.startswith(USER_FAILED)
        }
        return [row for row in self.records if (row.position, row.repeat) in places]

    def _users_spend(self) -> JudgeSpend | None:
        """What a judge took to play users, which only the records tell."""
        if "judge" not in (self.header.settings.get("users") or ()) or self.read_records is None:
            return None
        tally = JudgeTally()
        for stored in self.read_records():
            about = stored.record.trace.metadata.get(SIMULATED_USER)
            judged = judged_of(about) if isinstance(about, dict) else None
            if judged is not None:
                # A user that failed is counted apart, and no score.
                tally.add(judged, failed=False)
        return tally.spend()

    def rows_of(self, name: str) -> list[ScoreRow] | None:
        """The scores of a metric, or what judged scores tell under this name; ``None`` where there are none."""
        return self.metrics[name] if name in self.metrics else evidence_rows(name, self.metrics)

    def info(self, name: str) -> MetricInfo:
        """The facts about a metric of this run, by the name that it has there: a rubric may have one of its own."""
        found = self.infos.get(name) or info_of(name)
        return found if found.name == name else replace(found, name=name)

    def summary(self) -> RunSummary:
        """The aggregate of the run, as ``agentunit score`` makes it; repeats of a case count as one, by their mean.

        It is made once: scores that are put in afterwards are not in it.
        """
        if self._summary is None:
            self._summary = self._aggregated()
        return self._summary

    def _with_people(self, row: MetricSummary) -> MetricSummary:
        """A row of the summary with how each judge of a panel stands to people's labels."""
        if row.panel is None or not self.labels:
            return row
        labels = label_values(unshown_labels(self.labels, self.info(row.metric).shown_share), row.metric)
        said = [
            (each.judged, labels[each.position, each.repeat])
            for each in self.metrics[row.metric]
            if each.judged is not None and (each.position, each.repeat) in labels
        ]
        return msgspec.structs.replace(row, panel=with_bias(row.panel, said))

    def _aggregated(self) -> RunSummary:
        # They read scored runs themselves.
        from agentunit.engine.known_failures import set_aside
        from agentunit.engine.labeled_rates import with_labels

        aggregates = []
        aside = set_aside(self)
        n_repeats, clusters = self.n_repeats, self.clusters
        for name, rows in self.metrics.items():
            aggregate = MetricAggregate(name, self.info(name), aside)
            aggregate.add_rows(rows, repeated=n_repeats > 1, clusters=None if clusters is None else clusters.of_case)
            aggregates.append(aggregate)
        return RunSummary(
            n_cases=self.n_cases,
            metrics=[self._with_people(with_labels(row, self)) for each in aggregates for row in each.rows()],
            unscored=[entry for aggregate in aggregates for entry in aggregate.unscored()],
            n_input_errors=0,
            input_errors=[],
            n_score_errors=self.n_score_errors,
            elapsed_s=0.0,
            judge=total_spend(
                (aggregate.judging.spend() for aggregate in aggregates), _sentences(self.header.settings)
            ),
            n_records=self.n_records,
            n_repeats=n_repeats,
            clustered_by=None if clusters is None else clusters.field,
            n_clusters=None if clusters is None else clusters.count(record.position for record in self.records),
            n_user_failed=len(self.user_failed),
            simulated_user=self._users_spend(),
            n_without_content=len(
                {
                    (row.position, row.repeat)
                    for rows in self.metrics.values()
                    for row in rows
                    if row.reason == NO_CONTENT
                }
            ),
        )


def run_from_store(store: Store, reference: str, *, labels: bool = True) -> ScoredRun:
    """A run of a store: an id, the beginning of one, a name, ``last`` or ``last~N``.

    Without ``labels``, where only scores are wanted, it is quicker.
    """
    header = store.find_run(reference)
    run = ScoredRun(header, 0, header.n_done, header.n_failed)
    infos = recorded_infos(header.settings)
    amounts = {name: info.amount[0] for name, info in infos.items() if info.amount is not None}
    for metric, row in store.score_rows(header.id, amounts):
        run.metrics.setdefault(metric, []).append(row)
    run.records = list(store.record_rows(header.id))
    run.n_cases = len({row.position for row in run.records})
    run.read_records = partial(_records_in_store, store.file, header.id)
    if labels:
        run.labels = labels_of_run(store, header.id)
        run.frames = frames_of_run(store, header.id, run.labels)
    return _in_suite_order(run)


def _records_in_store(file: str, run_id: str) -> Iterator[StoredRecord]:
    with Store(file, read_only=True) as store:
        yield from store.records(run_id)


def run_from_file(path: str | os.PathLike[str]) -> ScoredRun:
    """A run of a portable file, without taking it into a store."""
    header, cases = read_portable(path)
    run = ScoredRun(header, 0, 0, 0)
    positions = set()
    infos = recorded_infos(header.settings)
    for case in cases:
        positions.add(case.position)
        run.records.append(RecordRow(case.position, case.repeat, case.case_id, case.failed))
        run.n_records += 1
        run.n_failed += case.failed
        for metric, score in case.scores.items():
            row = score_row(case.position, case.repeat, case.case_id, score, infos.get(metric))
            run.metrics.setdefault(metric, []).append(row)
        run.labels += [
            msgspec.structs.replace(label, position=case.position, repeat=case.repeat) for label in case.labels
        ]
        if case.frame is not None:
            run.frames[case.position, case.repeat] = case.frame
    run.n_cases = len(positions)
    run.read_records = partial(_records_in_file, os.path.abspath(path))
    return _in_suite_order(run)


def _records_in_file(path: str) -> Iterator[StoredRecord]:
    for case in read_portable(path)[1]:
        record = decode_record(bytes(case.record))
        yield StoredRecord(case.position, case.repeat, case.case_id, case.failed, case.elapsed_s, record)


def score_row(position: int, repeat: int, case_id: str, score: Score, info: MetricInfo | None) -> ScoreRow:
    """A score without its detail."""
    detail = score.result.detail
    return ScoreRow(
        position,
        repeat,
        case_id,
        score.result.value,
        score.status,
        score.backend,
        score.version,
        str(detail.get("reason") or "") or None if score.result.value is None else None,
        amount_of(info, detail) if info is not None else None,
        judged_of(detail, nested=True),
    )


def _in_suite_order(run: ScoredRun) -> ScoredRun:
    """Metrics in the order in which the suite names them, later ones after them by name."""
    named = [name for name in run.header.settings.get("metrics") or () if name in run.metrics]
    order = dict.fromkeys([*named, *sorted(run.metrics)])
    run.metrics = {name: run.metrics[name] for name in order}
    for rows in run.metrics.values():
        keep_models_apart(rows)
    run.infos = recorded_infos(run.header.settings)
    return run


def _sentences(settings: Mapping[str, Any]) -> list[str]:
    """What was wrong with the judge's run as a whole when it was last asked."""
    said = settings.get("judge_problems")
    return [each for each in said if isinstance(each, str)] if isinstance(said, list) else []


def recorded_infos(settings: Mapping[str, Any]) -> dict[str, MetricInfo]:
    """What a run's metrics said about themselves when it was scored; what cannot be read is left out."""
    found: dict[str, MetricInfo] = {}
    for name, facts in (settings.get("metric_infos") or {}).items():
        with suppress(msgspec.ValidationError, ValueError, TypeError):
            if facts.get("stateful") and "aggregate" not in facts:
                # Written before metrics said how a run adds up.
                facts = {**facts, "aggregate": info_of(name).aggregate}
            found[name] = msgspec.convert(facts, MetricInfo)
    return found


class SequentialAnswer(NamedTuple):
    """What the evidence of a run until decided says about a gate or a baseline; ``None`` where it says nothing."""

    answer: Literal["yes", "no"] | None
    text: str
    p_value: float | None


def sequential_answers(settings: Mapping[str, Any]) -> dict[str, SequentialAnswer]:
    """The answers that a run until decided has kept, by what they are about. They count in every report of the run."""
    stored = settings.get("until_decided")
    answers = stored.get("answers") if isinstance(stored, Mapping) else None
    found = {}
    for subject, each in answers.items() if isinstance(answers, Mapping) else ():
        with suppress(msgspec.ValidationError):
            found[str(subject)] = msgspec.convert(each, SequentialAnswer)
    return found


def is_undecided(settings: Mapping[str, Any]) -> bool:
    """Whether a run until decided has not come to its end."""
    stored = settings.get("until_decided")
    return isinstance(stored, Mapping) and "ended" in stored and stored["ended"] is None


def infos_as_data(metrics: Iterable[Any]) -> dict[str, Any]:
    """What metrics say about themselves, for a run's settings."""
    return {metric.name: msgspec.to_builtins(describe(metric)) for metric in metrics}


def find_scored_run(reference: str, store: Store) -> ScoredRun:
    """A run by whatever names it: a portable file, or a run of the store."""
    return run_from_file(reference) if os.path.isfile(reference) else run_from_store(store, reference)


def info_of(name: str) -> MetricInfo:
    """The facts about a metric of this name; a minimal description when it is not installed here."""
    if name in EVIDENCE:
        return EVIDENCE[name]
    metric = installed_metric(name)
    return MetricInfo(name, "custom", "") if metric is None else describe(metric)


def installed_metric(name: str) -> Any | None:
    """The metric that has this name here, made with its defaults; ``None`` when there is none."""
    # The name may come from somebody's file: one that points to a module must not make us import it.
    if ":" in name:
        return None
    try:
        return resolve_metrics([name])[0]
    except (ValueError, TypeError, ImportError, RuntimeError):
        return None
