"""A run as deciding sees it: every score, by metric, without the details."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from math import ceil
from typing import Any, Literal, NamedTuple

import msgspec

from agentunit.core.conversation import SIMULATED_USER
from agentunit.core.judged import judged_of
from agentunit.core.results import InputError, JudgeSpend, MetricSummary, RunSummary, Score
from agentunit.core.score_block import Place, RowsByMetric, ScoreRow
from agentunit.doors import part
from agentunit.engine.deciding.cut_offs import number_key
from agentunit.engine.scoring.aggregate import MetricAggregate
from agentunit.engine.scoring.judging import (
    EVIDENCE,
    JudgeTally,
    evidence_rows,
    keep_models_apart,
    total_spend,
    with_bias,
)
from agentunit.engine.scoring.score_rows import ScoreRows, TableRow, is_table, record_rows, rows_in_store
from agentunit.engine.scoring.stored_rows import (
    MOST_HELD,
    StoredRecords,
    StoredRows,
    add_up,
    n_repeats_of,
    told_by,
)
from agentunit.metrics.base import MetricInfo, describe
from agentunit.metrics.functions import CHECK_FACTS
from agentunit.metrics.registry import parameters_digest, resolve_metrics
from agentunit.store.labels import StoredLabel, frames_of_run, label_values, labels_of_run, unshown_labels
from agentunit.store.portable import portable_extras, read_portable, stored_in
from agentunit.store.run_store import RunStore
from agentunit.store.runs import (
    HISTORY,
    KNOWN_FAILURES,
    RecordRow,
    RunHeader,
    StoredDecision,
    StoredRecord,
    is_again,
    scored_records,
)
from agentunit.urls import is_file, is_remote

# Runs that are not whole: stopped before all cases were done, or without the scores of what was recorded.

HOW_TO_GO_ON = "'agentunit run SUITE --resume RUN' runs the rest, 'agentunit score RUN' scores what is recorded"
_PARAMETERS = "parameters"
"""What the facts about a metric in the settings of a run call the digest of its parameters."""
_ENDED = {"running": "is still running, with", "stopped": "was stopped at", "interrupted": "was interrupted at"}


def planned_cases(run: ScoredRun) -> int:
    """How many cases a run has, or was planned to have."""
    planned = run.header.settings.get("repeats")
    repeats = max(run.n_repeats, max((record.repeat + 1 for record in run.records), default=1))
    if isinstance(planned, int):
        repeats = max(repeats, planned)
    return max(run.n_cases, ceil((run.header.n_planned or 0) / repeats))


def is_unfinished(run: ScoredRun) -> bool:
    """Whether cases of a run are still open."""
    return run.header.status != "finished" and run.n_records < (run.header.n_planned or 0)


def n_with_scores(run: ScoredRun) -> int:
    """How many records were scored, whatever came of it: a metric that does not apply has been there, too."""
    stored = [rows for rows in run.metrics.values() if isinstance(rows, StoredRows)]
    # No score is without its record: a metric with as many scores has been everywhere.
    if any(len(rows) == len(run.records) for rows in stored):
        return len(run.records)
    return len({row.place for rows in run.metrics.values() for row in rows})


def what_is_missing(run: ScoredRun) -> str | None:
    """What a run lacks, as the end of a sentence about it; ``None`` of a run that is whole."""
    n_scored = n_with_scores(run)
    if not is_unfinished(run):
        if not n_scored:
            return "has no scores"
        n_records = max(run.n_records, n_scored)
        return f"has scores of {n_scored:,} of {n_records:,} records" if n_scored < n_records else None
    what = "cases" if planned_cases(run) == run.header.n_planned else "runs of cases"
    said = f"{_ENDED[run.header.status]} {run.n_records:,} of {run.header.n_planned:,} {what}"
    return said if n_scored >= run.n_records else f"{said}, {f'{n_scored:,} scored' if n_scored else 'none scored'}"


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


@dataclass
class ScoredRun(ScoreRows):
    """The scores of a run, by metric, each list in dataset order (by position, then repeat).

    ``records`` are all finished cases, also those without a score; ``infos`` what each metric said about itself when
    the run was scored. ``read_records`` opens the records themselves, where they are kept, ``read_rows`` the scores
    with their details, and ``read_cases`` both of some cases; ``reopen`` opens the store that it is in.
    ``n_input_errors`` parts of its input could not be read, where it came from files; ``input_errors`` are the first of
    them. ``labels`` are what people said of its answers; where some were said of another run's, ``frames`` names, by
    metric, the group of records within which labels are random.

    Tries again, which confirm failing checks, are in ``again_records`` and ``again_metrics`` and nowhere else, but
    ``read_records`` and ``read_rows`` give them, too. ``decisions`` are what was decided about the run so far, oldest
    first; ``history`` is what its file says about earlier tries of its checks.
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
    read_rows: Callable[..., Iterator[TableRow]] | None = field(default=None, repr=False, compare=False)
    read_cases: Callable[[Collection[str]], Iterator[tuple[StoredRecord, Mapping[str, Score]]]] | None = field(
        default=None, repr=False, compare=False
    )
    reopen: Callable[[], RunStore] | None = field(default=None, repr=False, compare=False)
    n_input_errors: int = 0
    input_errors: list[InputError] = field(default_factory=list)
    again_records: list[RecordRow] = field(default_factory=list)
    again_metrics: dict[str, list[ScoreRow]] = field(default_factory=dict)
    decisions: list[StoredDecision] = field(default_factory=list)
    history: dict[str, Any] = field(default_factory=dict)
    _summary: RunSummary | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def n_repeats(self) -> int:
        """How often each case was run; the most, where they differ."""
        scored = (row.repeat + 1 for rows in self.metrics.values() if isinstance(rows, list) for row in rows)
        return max(n_repeats_of(self.records), max(scored, default=1))

    @property
    def n_score_errors(self) -> int:
        """How many scores are errors."""
        return sum(told_by(rows).n_errors for rows in self.metrics.values())

    @property
    def clusters(self) -> Clusters | None:
        """Which cases belong together, where the suite says so."""
        clusters = self.header.settings.get("cluster")
        # The run may come from a file: what is no such thing is left out.
        with suppress(msgspec.ValidationError):
            return msgspec.convert(clusters, Clusters) if clusters else None
        return None

    @property
    def user_failed(self) -> list[RecordRow]:
        """The records in which the simulated user failed, and not the agent: no metric scores them."""
        places = set[Place]().union(*(told_by(rows).user_failed for rows in self.metrics.values()))
        return [row for row in self.records if row.place in places] if places else []

    def _users_spend(self) -> JudgeSpend | None:
        """What a judge took to play users, which only the records tell."""
        if "judge" not in (self.header.settings.get("users") or ()) or self.read_records is None:
            return None
        tally = JudgeTally()
        for stored in self.read_records():
            if is_again(stored.repeat):
                continue
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
            vars(self._summary)["infos"] = {name: self.info(name) for name in self.metrics}
        return self._summary

    def __repr__(self) -> str:
        return str(import_module("agentunit.reports.printed").run_text(self))

    def _repr_html_(self) -> str:
        # For notebooks; the reports stand above the engine and load only when one asks.
        return str(import_module("agentunit.reports.notebook").run_html(self))

    def _with_people(self, rows: Sequence[MetricSummary]) -> Iterator[MetricSummary]:
        """The rows of a metric with what people said: the labeled rate, and how each judge of a panel stands to it."""
        from agentunit.engine.scoring.labeled_rates import with_labels  # it reads scored runs itself

        for row in with_labels(rows, self):
            if row.panel is None:
                yield row
                continue
            labels = label_values(unshown_labels(self.labels, self.info(row.metric).shown_share), row.metric)
            said = [
                (each.judged, labels[each.place])
                for each in self.metrics[row.metric]
                if each.judged is not None and each.place in labels
            ]
            yield msgspec.structs.replace(row, panel=with_bias(row.panel, said))

    def _aggregated(self) -> RunSummary:
        aggregates = []
        aside: set[str] = set()
        if self.header.settings.get(KNOWN_FAILURES):
            from agentunit.engine.deciding.known_failures import set_aside  # it reads scored runs itself

            aside = set_aside(self)
        n_repeats, clusters = self.n_repeats, self.clusters
        for name, rows in self.metrics.items():
            cluster_of = None if clusters is None else clusters.of_case
            aggregate = MetricAggregate(name, self.info(name), aside, repeated=n_repeats > 1, cluster_of=cluster_of)
            add_up(rows, aggregate)
            aggregates.append(aggregate)
        metrics: list[MetricSummary] = []
        for aggregate in aggregates:
            of_metric = aggregate.rows()
            metrics += self._with_people(of_metric) if self.labels else of_metric
        return RunSummary(
            n_cases=self.n_cases,
            metrics=metrics,
            unscored=[entry for aggregate in aggregates for entry in aggregate.unscored()],
            n_input_errors=self.n_input_errors,
            input_errors=list(self.input_errors),
            n_score_errors=self.n_score_errors,
            elapsed_s=0.0,
            judge=total_spend((aggregate.judge_spend for aggregate in aggregates), _sentences(self.header.settings)),
            n_records=self.n_records,
            n_repeats=n_repeats,
            clustered_by=None if clusters is None else clusters.field,
            n_clusters=None if clusters is None else clusters.count(record.position for record in self.records),
            n_user_failed=len(self.user_failed),
            simulated_user=self._users_spend(),
            n_without_content=len(set().union(*(told_by(rows).without_content for rows in self.metrics.values()))),
        )


def run_from_store(store: RunStore, reference: str, *, labels: bool = True, held: bool = True) -> ScoredRun:
    """A run of a store: an id, the beginning of one, a name, ``last`` or ``last~N``.

    Without ``labels``, where only scores are wanted, it is quicker; so it is where nothing is ``held``, as of a long
    run, for whoever reads few of its scores.
    """
    header = store.find_run(reference)
    run = ScoredRun(header, 0, header.n_done, header.n_failed)
    infos = recorded_infos(header.settings)
    size = store.size(header.id)
    run.n_cases = size.n_cases
    is_long = size.n_records > MOST_HELD or not held
    keys = {name: number_key(infos.get(name) or info_of(name)) for name in store.metrics_scored(header.id)}
    if is_long:
        records = StoredRecords(store, header.id, size.n_records, size.n_repeats)
        run.records = records
        run.metrics = {name: StoredRows(store, header.id, name, key, records) for name, key in keys.items()}
    else:
        run.records = list(store.record_rows(header.id))
        run.metrics = {name: list(store.metric_rows(header.id, name, key)) for name, key in keys.items()}
    run.read_records = partial(_records_in_store, store, header.id)
    run.read_cases = partial(_cases_in_store, store, header.id)
    run.reopen = store.reopened
    if labels:
        run.labels = labels_of_run(store, header.id)
    if run.labels:
        run.frames = frames_of_run(store, header.id, run.labels)
    run.read_rows = partial(rows_in_store, store, header.id, infos)
    if is_long:
        run.again_records = list(store.record_rows(header.id, again=True))
        run.again_metrics = _again_metrics(store, run, infos)
    run.decisions = store.decisions(header.id)
    history = header.settings.get(HISTORY)
    run.history = history if isinstance(history, dict) else {}
    return in_suite_order(run)


def _again_metrics(store: RunStore, run: ScoredRun, infos: Mapping[str, MetricInfo]) -> dict[str, list[ScoreRow]]:
    """The scores of the tries again of a long run: only their positions are read."""
    case_ids = {row.place: row.case_id for row in run.again_records}
    metrics: dict[str, list[ScoreRow]] = {}
    for name in run.metrics if case_ids else ():
        key = number_key(infos.get(name) or info_of(name))
        for position in dict.fromkeys(position for position, _ in case_ids):
            of_case = {place: case_id for place, case_id in case_ids.items() if place[0] == position}
            for block in store.blocks(run.header.id, name, key, (position, position)):
                metrics.setdefault(name, []).extend(block.rows(of_case))
    return metrics


def _records_in_store(store: RunStore, run_id: str) -> Iterator[StoredRecord]:
    # The store itself may be closed by the time that the records are wanted.
    with store.reopened() as reader:
        yield from reader.records(run_id)


def _cases_in_store(
    store: RunStore, run_id: str, case_ids: Collection[str]
) -> Iterator[tuple[StoredRecord, Mapping[str, Score]]]:
    with store.reopened() as reader:
        for case_id in case_ids:
            yield from scored_records(reader.case(run_id, case_id), reader.scores(run_id, case_id=case_id))


def run_from_file(path: str | os.PathLike[str]) -> ScoredRun:
    """A run of a portable file or of a score table, without taking it into a store."""
    if is_table(path):
        of_table: ScoredRun = part("run_from_table")(path)
        return of_table

    return run_from_portable(path)


def in_suite_order(run: ScoredRun) -> ScoredRun:
    """Metrics in the order in which the suite names them, later ones after them by name; tries again set apart."""
    if isinstance(run.records, list):
        _set_tries_apart(run)
    named = [name for name in run.header.settings.get("metrics") or () if name in run.metrics]
    order = dict.fromkeys([*named, *sorted(run.metrics)])
    run.metrics = {name: run.metrics[name] for name in order}
    for rows in run.metrics.values():
        # Rows that are read again each time name them as they are read.
        if isinstance(rows, list) and any(row.judged is not None for row in rows):
            keep_models_apart(rows)
    run.infos = recorded_infos(run.header.settings)
    return run


def _set_tries_apart(run: ScoredRun) -> None:
    """Split the tries again off a run that is held as a whole, and count its planned records."""
    run.again_records = [record for record in run.records if is_again(record.repeat)]
    run.records = [record for record in run.records if not is_again(record.repeat)]
    run.n_records = len(run.records)
    run.n_failed = sum(record.failed for record in run.records)
    run.n_cases = len({record.position for record in run.records})
    if not run.again_records:
        return
    for name, rows in run.metrics.items():
        again = [row for row in rows if is_again(row.repeat)]
        if again:
            run.again_metrics[name] = again
            run.metrics[name] = [row for row in rows if not is_again(row.repeat)]


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
            if facts.get("family") != "custom" and "check" not in facts:
                # Written before metrics said that they are checks; one may have a name of its own in a run.
                installed = info_of(str(facts.get("name")))
                facts = {**facts, "check": installed.check and installed.family != "custom"}
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
    """Whether a run until decided has not come to its end, or its failing checks are still being tried again."""
    if settings.get("trying_again"):
        return True
    stored = settings.get("until_decided")
    return isinstance(stored, Mapping) and "ended" in stored and stored["ended"] is None


def infos_as_data(metrics: Iterable[Any], stored: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What metrics say about themselves, for a run's settings; what is ``stored`` of others stays.

    So does what is stored of the same version of a check: a function without annotations does not know that it is one.
    """
    infos = dict(stored or {})
    for metric in metrics:
        facts, earlier = msgspec.to_builtins(describe(metric)), infos.get(metric.name)
        facts[_PARAMETERS] = parameters_digest(metric)
        is_check = earlier and earlier.get("check") and earlier.get("version") == facts["version"]
        infos[metric.name] = {**facts, **CHECK_FACTS} if is_check else facts
    return infos


def has_other_parameters(run: ScoredRun, other: ScoredRun, metric: str) -> bool:
    """Whether a metric was made with other parameters in another run; runs of earlier versions do not tell."""
    told: list[object] = []
    for each in (run, other):
        facts = (each.header.settings.get("metric_infos") or {}).get(metric)
        told.append(facts.get(_PARAMETERS) if isinstance(facts, Mapping) else None)
    return None not in told and told[0] != told[1]


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


# A portable file as a run: ``show``, ``gate``, ``compare`` and ``export`` read it as they read a run of a store.


def run_from_portable(path: str | os.PathLike[str]) -> ScoredRun:
    """A run of a portable file."""
    header, cases = read_portable(path)
    run = ScoredRun(header, 0, 0, 0)
    records: list[RecordRow] = []
    infos = recorded_infos(header.settings)
    rows = RowsByMetric(lambda metric: number_key(infos[metric]))
    for case in cases:
        records.append(RecordRow(case.position, case.repeat, case.case_id, case.failed))
        for metric in case.scores:
            if metric not in infos:
                infos[metric] = info_of(metric)
        rows.add(case.position, case.repeat, case.case_id, case.scores)
        run.labels += [
            msgspec.structs.replace(label, position=case.position, repeat=case.repeat) for label in case.labels
        ]
        for metric, frame in case.frames.items():
            run.frames.setdefault(metric, {})[case.place] = frame
    run.records, run.metrics = records, {**rows.rows()}
    run.decisions, run.history = portable_extras(path)
    path = path if is_remote(path) else os.path.abspath(path)
    run.read_records = partial(_records_in_file, path)
    run.read_cases = partial(_cases_in_file, path)
    run.read_rows = partial(_rows_in_file, path, header.id, infos)
    return in_suite_order(run)


def _records_in_file(path: str | os.PathLike[str]) -> Iterator[StoredRecord]:
    for case in read_portable(path)[1]:
        yield stored_in(path, case)


def _cases_in_file(
    path: str | os.PathLike[str], case_ids: Collection[str]
) -> Iterator[tuple[StoredRecord, Mapping[str, Score]]]:
    for case in read_portable(path)[1]:
        if case.case_id in case_ids:
            yield stored_in(path, case), case.scores


def _rows_in_file(path: str | os.PathLike[str], run_id: str, infos: Mapping[str, MetricInfo]) -> Iterator[TableRow]:
    """The rows of a run of a portable file."""
    for case in read_portable(path)[1]:
        yield from record_rows(
            run_id,
            case.position,
            case.repeat,
            case.case_id,
            case.scores,
            infos,
            failed=case.failed,
            elapsed_s=case.elapsed_s,
        )
