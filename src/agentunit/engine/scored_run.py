"""A run as deciding sees it: every score, by metric, without the details."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import Any, Literal, NamedTuple

import msgspec

from agentunit.core.codec import decode_record
from agentunit.core.conversation import SIMULATED_USER
from agentunit.core.judged import judged_of
from agentunit.core.results import InputError, JudgeSpend, MetricSummary, RunSummary, Score
from agentunit.engine.aggregate import MetricAggregate, number_of
from agentunit.engine.cut_offs import number_key
from agentunit.engine.judge_evidence import EVIDENCE, evidence_rows, keep_models_apart
from agentunit.engine.judging import JudgeTally, total_spend, with_bias
from agentunit.engine.score_rows import ScoreRows, rows_in_file, rows_in_store
from agentunit.engine.stored_rows import (
    MOST_HELD,
    StoredRecords,
    StoredRows,
    n_errors_of,
    n_repeats_of,
    user_failed_in,
    without_content_in,
)
from agentunit.metrics.base import MetricInfo, describe
from agentunit.metrics.registry import resolve_metrics
from agentunit.store.labels import Place, StoredLabel, frames_of_run, label_values, labels_of_run, unshown_labels
from agentunit.store.parquet_table import TableRow
from agentunit.store.portable import read_portable
from agentunit.store.protocol import RunStore
from agentunit.store.runs import RecordRow, RunHeader, ScoreRow, StoredRecord
from agentunit.store.score_blocks import reason_in
from agentunit.store.table_reading import is_table
from agentunit.traces.remote import is_file, is_remote


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
class ScoredRun(ScoreRows):
    """The scores of a run, by metric, each list in dataset order (by position, then repeat).

    ``records`` are all finished cases, also those without a score; ``infos`` what each metric said about itself when
    the run was scored. ``read_records`` opens the records themselves, where they are kept, and ``read_rows`` the scores
    with their details. ``n_input_errors`` parts of its input could not be read, where it came from files;
    ``input_errors`` are the first of them. ``labels`` are what people said of its answers; where some were said of
    another run's, ``frames`` names, by metric, the group of records within which labels are random.
    """

    header: RunHeader
    n_cases: int
    n_records: int
    n_failed: int
    metrics: dict[str, Sequence[ScoreRow]] = field(default_factory=dict)
    records: Sequence[RecordRow] = field(default_factory=list)
    infos: dict[str, MetricInfo] = field(default_factory=dict)
    labels: list[StoredLabel] = field(default_factory=list)
    frames: dict[str, dict[Place, str]] = field(default_factory=dict)
    read_records: Callable[[], Iterator[StoredRecord]] | None = field(default=None, repr=False, compare=False)
    read_rows: Callable[[], Iterator[TableRow]] | None = field(default=None, repr=False, compare=False)
    n_input_errors: int = 0
    input_errors: list[InputError] = field(default_factory=list)
    _summary: RunSummary | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def n_repeats(self) -> int:
        """How often each case was run; the most, where they differ."""
        scored = (row.repeat + 1 for rows in self.metrics.values() if isinstance(rows, list) for row in rows)
        return max(n_repeats_of(self.records), max(scored, default=1))

    @property
    def n_score_errors(self) -> int:
        """How many scores are errors."""
        return sum(map(n_errors_of, self.metrics.values()))

    @property
    def clusters(self) -> Clusters | None:
        """Which cases belong together, where the suite says so."""
        return recorded_clusters(self.header.settings)

    @property
    def user_failed(self) -> list[RecordRow]:
        """The records in which the simulated user failed, and not the agent: no metric scores them."""
        places = frozenset().union(*map(user_failed_in, self.metrics.values()))
        return [row for row in self.records if (row.position, row.repeat) in places] if places else []

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

    def _rows(self) -> Iterator[TableRow]:
        if self.read_rows is None:
            raise ValueError(f"run {self.header.label} was put together in memory: its details are not known")
        return self.read_rows()

    def rows_of(self, name: str) -> Sequence[ScoreRow] | None:
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

    def _repr_html_(self) -> str:
        # For notebooks; the reports stand above the engine and load only when one asks.
        return str(import_module("agentunit.reports.notebook").run_html(self))

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
            if isinstance(rows, StoredRows) and n_repeats == 1 and clusters is None and not aside:
                rows.add_to(aggregate)
            else:
                of_case = None if clusters is None else clusters.of_case
                aggregate.add_rows(rows, repeated=n_repeats > 1, clusters=of_case)
            aggregates.append(aggregate)
        return RunSummary(
            n_cases=self.n_cases,
            metrics=[self._with_people(row) for each in aggregates for row in with_labels(each.rows(), self)],
            unscored=[entry for aggregate in aggregates for entry in aggregate.unscored()],
            n_input_errors=self.n_input_errors,
            input_errors=list(self.input_errors),
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
            n_without_content=len(frozenset().union(*map(without_content_in, self.metrics.values()))),
        )


def run_from_store(store: RunStore, reference: str, *, labels: bool = True) -> ScoredRun:
    """A run of a store: an id, the beginning of one, a name, ``last`` or ``last~N``.

    Without ``labels``, where only scores are wanted, it is quicker.
    """
    header = store.find_run(reference)
    run = ScoredRun(header, 0, header.n_done, header.n_failed)
    infos = recorded_infos(header.settings)
    size = store.size(header.id)
    run.n_cases = size.n_cases
    is_long = size.n_records > MOST_HELD
    records = StoredRecords(store, header.id, size.n_records, size.n_repeats)
    run.records = records if is_long else list(store.record_rows(header.id))
    for name in store.metrics_scored(header.id):
        key = number_key(infos.get(name) or info_of(name))
        rows = StoredRows(store, header.id, name, key, records)
        run.metrics[name] = rows if is_long else list(store.metric_rows(header.id, name, key))
    run.read_records = partial(_records_in_store, store, header.id)
    if labels:
        run.labels = labels_of_run(store, header.id)
        run.frames = frames_of_run(store, header.id, run.labels)
    run.read_rows = partial(rows_in_store, store, header.id, infos)
    return in_suite_order(run)


def _records_in_store(store: RunStore, run_id: str) -> Iterator[StoredRecord]:
    # The store itself may be closed by the time that the records are wanted.
    with store.reopened() as reader:
        yield from reader.records(run_id)


def run_from_file(path: str | os.PathLike[str]) -> ScoredRun:
    """A run of a portable file or of a score table, without taking it into a store."""
    if is_table(path):
        from agentunit.engine.table_run import run_from_table  # it makes scored runs itself

        return run_from_table(path)
    header, cases = read_portable(path)
    run = ScoredRun(header, 0, 0, 0)
    records: list[RecordRow] = []
    metrics: dict[str, list[ScoreRow]] = {}
    infos = recorded_infos(header.settings)
    for case in cases:
        records.append(RecordRow(case.position, case.repeat, case.case_id, case.failed))
        run.n_records += 1
        run.n_failed += case.failed
        for metric, score in case.scores.items():
            if metric not in infos:
                infos[metric] = info_of(metric)
            row = score_row(case.position, case.repeat, case.case_id, score, infos[metric])
            metrics.setdefault(metric, []).append(row)
        run.labels += [
            msgspec.structs.replace(label, position=case.position, repeat=case.repeat) for label in case.labels
        ]
        for metric, frame in case.frames.items():
            run.frames.setdefault(metric, {})[case.position, case.repeat] = frame
    run.records, run.metrics = records, {**metrics}
    run.n_cases = len({record.position for record in records})
    path = path if is_remote(path) else os.path.abspath(path)
    run.read_records = partial(_records_in_file, path)
    run.read_rows = partial(rows_in_file, path, header.id, infos)
    return in_suite_order(run)


def _records_in_file(path: str | os.PathLike[str]) -> Iterator[StoredRecord]:
    for case in read_portable(path)[1]:
        record = decode_record(bytes(case.record))
        yield StoredRecord(case.position, case.repeat, case.case_id, case.failed, case.elapsed_s, record)


def score_row(position: int, repeat: int, case_id: str, score: Score, info: MetricInfo) -> ScoreRow:
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
        reason_in(score.result.value, detail),
        number_of(info, detail),
        judged_of(detail, nested=True),
    )


def in_suite_order(run: ScoredRun) -> ScoredRun:
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


def find_scored_run(reference: str, store: RunStore) -> ScoredRun:
    """A run by whatever names it: a portable file, or a run of the store."""
    return run_from_file(reference) if is_file(reference) else run_from_store(store, reference)


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
