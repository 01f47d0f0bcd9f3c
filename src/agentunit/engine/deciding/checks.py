"""Checks: a pass or a fail of one metric on one try of one case.

What is a check is said once, here: metrics whose facts say so, metrics with an ``all`` gate, and functions of a user
that are gated and give only 0 and 1. That the agent answered at all is a check of its own, and the only one of a try
in which it did not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from math import fsum, inf
from types import MappingProxyType

from agentunit.core.conversation import USER_FAILED
from agentunit.core.records import Record
from agentunit.core.results import Status
from agentunit.core.score_block import Place, ScoreRow
from agentunit.engine.deciding.cut_offs import is_low, mean_threshold, usable_threshold
from agentunit.engine.deciding.gate_expressions import Gate
from agentunit.engine.scoring.scored_run import ScoredRun
from agentunit.metrics.base import MetricInfo
from agentunit.store.runs import FIRST_AGAIN, RETRIED_FAILED, RecordRow, is_again

ANSWERED = MetricInfo(
    name="answered",
    family="run",
    summary="Whether the agent ended without failure.",
    direction="higher",
    range=(0.0, 1.0),
    backend="run",
    check=True,
)
_ROUNDING = 1e-9
_LOWER_IS_BETTER = ("<", "<=")
# So many calls that fail, and so many of those between the first and the last, are an outage.
_LEAST_OUTAGE, _OUTAGE_SHARE = 3, 0.8

MadeBy = frozenset[tuple[str, str]]
"""The backends and versions that scored the tries of a check."""
_BY_THE_RUN: MadeBy = frozenset([(ANSWERED.backend, ANSWERED.version)])


@dataclass(frozen=True)
class CheckRule:
    """Which values of a metric pass.

    ``needs`` says it for people. ``backends`` are those whose informational scores count, because a gate names them;
    where ``only`` some are asked about, scores of others are none.
    """

    metric: str
    passes: Callable[[float], bool]
    needs: str
    backends: frozenset[str] = frozenset()
    only: frozenset[str] | None = None

    def result(self, row: ScoreRow) -> bool | None:
        """Whether a score passes; ``None`` where it has no value, or one that is no ground to decide by."""
        if row.value is None or row.status == "error":
            return None
        if self.only is not None and row.backend not in self.only:
            return None
        if row.status == "informational" and row.backend not in self.backends:
            return None
        return self.passes(row.value)


def check_rules(
    gates: Iterable[Gate], infos: Mapping[str, MetricInfo], is_pass_fail: Callable[[str], bool]
) -> dict[str, CheckRule]:
    """The checks of a run, by metric. ``is_pass_fail`` says whether a metric gave only 0 and 1."""
    by_metric: dict[str, list[Gate]] = {}
    for gate in gates:
        by_metric.setdefault(gate.metric, []).append(gate)
    rules: dict[str, CheckRule] = {}
    for metric, info in infos.items():
        rule = _rule(metric, info, by_metric.get(metric, []), is_pass_fail)
        if rule is not None:
            rules[metric] = rule
    return rules


def _rule(
    metric: str, info: MetricInfo, gates: Sequence[Gate], is_pass_fail: Callable[[str], bool]
) -> CheckRule | None:
    named = frozenset(gate.backend for gate in gates if gate.backend is not None)
    limits = [gate for gate in gates if gate.aggregate == "all"]
    best: float | None = None
    if gates and _is_own(info) and (info.check or is_pass_fail(metric)):
        # The gate says which way is better: a function seldom does.
        best = better_of_0_and_1(gates[0])
    elif info.check:
        best = 0.0 if info.direction == "lower" else 1.0
    if best is None and not limits:
        return None
    needs = [] if best is None else [f"{best:g}"]
    # What the best value meets says nothing more.
    needs += [gate.condition for gate in limits if best is None or not gate.holds(best)]
    wanted = best

    def passes(value: float) -> bool:
        if wanted is not None and abs(value - wanted) > _ROUNDING:
            return False
        return all(gate.holds(value) for gate in limits)

    return CheckRule(metric, passes, " and ".join(needs), named)


def better_of_0_and_1(gate: Gate) -> float:
    """Which of 0 and 1 a gate asks for: the one that meets it, or else the one that its operator points to."""
    if gate.holds(1.0) != gate.holds(0.0):
        return 1.0 if gate.holds(1.0) else 0.0
    return 0.0 if gate.operator in _LOWER_IS_BETTER else 1.0


def _is_own(info: MetricInfo) -> bool:
    """Whether a metric is a user's, of which only its values tell what it is."""
    return info.family == "custom" and info.unit == "score"


def is_pass_fail(rows: Iterable[ScoreRow]) -> bool:
    """Whether scores are only 0 and 1, and there are some."""
    has_values = False
    for row in rows:
        if row.value is None:
            continue
        if row.value not in (0.0, 1.0):
            return False
        has_values = True
    return has_values


def pass_fail_of(run: ScoredRun, gates: Sequence[Gate], baseline: ScoredRun | None = None) -> dict[str, bool]:
    """Of gated functions of a user, whether they gave only 0 and 1: in the ``baseline``, where it has them."""
    known: dict[str, bool] = {}
    for metric in {gate.metric for gate in gates}.intersection(run.metrics):
        if _is_own(run.info(metric)):
            before = () if baseline is None else baseline.rows_of(metric) or ()
            has_values = any(row.value is not None for row in before)
            known[metric] = is_pass_fail(before if has_values else run.metrics[metric])
    return known


def rules_of(
    run: ScoredRun,
    gates: Sequence[Gate],
    baseline: ScoredRun | None = None,
    pass_fail: Mapping[str, bool] = MappingProxyType({}),
) -> dict[str, CheckRule]:
    """The checks of a run with these gates, ``answered`` among them where the run has records.

    What was a check in the ``baseline`` is one now, whatever values it has now; and the other way round. Without the
    baseline at hand ``pass_fail`` says it, as a comparison has kept it.
    """
    infos = {metric: run.info(metric) for metric in run.metrics}
    if baseline is not None:
        # A check that is not made any more is lost, in every case.
        for metric in baseline.metrics:
            infos.setdefault(metric, baseline.info(metric))
    for gate in gates:
        # What judged scores tell besides their values can be gated, too.
        if gate.metric not in infos and run.rows_of(gate.metric) is not None:
            infos[gate.metric] = run.info(gate.metric)

    known = {**pass_fail_of(run, gates, baseline), **pass_fail}
    rules = check_rules(gates, infos, lambda metric: known.get(metric, False))
    if run.records:
        rules[ANSWERED.name] = CheckRule(ANSWERED.name, bool, "an answer")
    return rules


@dataclass(slots=True)
class CheckTries:
    """The tries of one check on one case, by repeat: those of the run as planned, then those made again.

    ``made_by`` are the backends and versions that scored them.
    """

    results: dict[int, bool] = field(default_factory=dict)
    made_by: MadeBy = frozenset()
    repaired: frozenset[int] = frozenset()
    """In which tries the agent failed at first, and ``retries`` or ``--retry-failed`` made up for it."""

    @property
    def n_tries(self) -> int:
        """How often the check was made."""
        return len(self.results)

    @property
    def n_passed(self) -> int:
        """How often it passed."""
        return sum(self.results.values())

    @property
    def n_failed(self) -> int:
        """How often it failed."""
        return len(self.results) - self.n_passed

    @property
    def is_wrong(self) -> bool:
        """Whether it failed in every try."""
        return bool(self.results) and not any(self.results.values())

    @property
    def is_flaky(self) -> bool:
        """Whether it both passed and failed."""
        return bool(self.repaired) or 0 < self.n_passed < len(self.results)

    @property
    def n_failed_first(self) -> int:
        """How often it failed before its first pass, where it did in every planned try and was tried again, or 0.

        A try that was made up for later had failed when the tries again were made.

        >>> CheckTries({0: False, FIRST_AGAIN: False, FIRST_AGAIN + 1: True}).n_failed_first
        2
        """
        in_order = sorted(self.results)
        passed = [repeat for repeat in in_order if self.results[repeat] and repeat not in self.repaired]
        first_pass = passed[0] if passed else inf
        if not in_order or not is_again(in_order[-1]) or first_pass < FIRST_AGAIN:
            return 0
        return sum(repeat < first_pass for repeat in in_order)


@dataclass(slots=True)
class CaseTries:
    """One case of a run: its checks, and the metrics that doubt it."""

    position: int
    case_id: str
    checks: dict[str, CheckTries] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()

    def tries_of(self, metric: str) -> CheckTries:
        """The tries of one check, begun where there are none yet."""
        if metric not in self.checks:
            self.checks[metric] = CheckTries()
        return self.checks[metric]


def tries_by_case(
    run: ScoredRun, rules: Mapping[str, CheckRule], repaired: Collection[Place] = ()
) -> Iterator[CaseTries]:
    """Every case of a run with its tries, in dataset order. Constant memory, however long the run is.

    ``repaired`` are the records in which the agent failed at first, and a retry made up for it.
    """
    doubting = [_Doubter(run, metric) for metric in run.metrics if metric not in rules and _may_doubt(run, metric)]
    cursors = {metric: _Cursor(run.rows_of(metric) or ()) for metric in rules if metric != ANSWERED.name}
    again = _AgainByPosition(run)
    # Nearly all scores of a run have one maker: its set is made once.
    makers: dict[tuple[str, str], MadeBy] = {}
    user_failed = _user_failed(run)
    for position, records in _records_by_position(run):
        case = CaseTries(position, records[0].case_id)
        again_records = again.records(position)
        of_case = records + again_records if again_records else records
        unanswered = {record.repeat for record in of_case if record.failed}
        if ANSWERED.name in rules:
            tries = case.tries_of(ANSWERED.name)
            tries.made_by = _BY_THE_RUN
            for record in of_case:
                # A simulated user that failed says nothing about the agent.
                if (position, record.repeat) not in user_failed:
                    tries.results[record.repeat] = not record.failed
            if repaired:
                made_up = [record.repeat for record in of_case if (position, record.repeat) in repaired]
                tries.repaired = frozenset(made_up)
        for metric, cursor in cursors.items():
            rows = cursor.at(position)
            rows += again.rows(metric, position)
            for row in rows:
                passed = None if row.repeat in unanswered else rules[metric].result(row)
                if passed is not None:
                    tries = case.tries_of(metric)
                    tries.results[row.repeat] = passed
                    maker = (row.backend, row.version)
                    made_by = makers.setdefault(maker, frozenset([maker]))
                    tries.made_by = tries.made_by | made_by if tries.made_by else made_by
        if doubting:
            case.doubts = tuple(doubter.metric for doubter in doubting if doubter.doubts(position))
        yield case


def answered_rows(run: ScoredRun) -> list[ScoreRow]:
    """Whether the agent ended without failure, as scores that a gate can be about."""
    user_failed = {record.place for record in run.user_failed}
    rows: list[ScoreRow] = []
    for record in run.records:
        value: float | None = float(not record.failed)
        status: Status = "ok"
        reason: str | None = None
        if record.place in user_failed:
            value, status, reason = None, "not_applicable", USER_FAILED
        row = (record.position, record.repeat, record.case_id, value, status, ANSWERED.backend, ANSWERED.version)
        rows.append(ScoreRow(*row, reason))
    return rows


def is_outage(run: ScoredRun) -> bool:
    """Whether the agent failed for a while: failures lie close together, in the order of the run.

    Either every case that failed was answered in another try, or less than half of the calls failed: an agent that
    answers nothing any more is broken.
    """
    if sum(record.failed for record in run.records) < _LEAST_OUTAGE:
        return False
    in_order = sorted(run.records, key=lambda record: (record.repeat, record.position))
    failed = [place for place, record in enumerate(in_order) if record.failed]
    span = failed[-1] - failed[0] + 1
    if len(failed) < _OUTAGE_SHARE * span:
        return False
    if 2 * len(failed) < len(in_order):
        return True
    answered = {record.position for record in (*in_order, *run.again_records) if not record.failed}
    return all(in_order[place].position in answered for place in failed)


def may_be_outage(run: ScoredRun) -> bool:
    """Whether the agent may still be out: several calls failed close together, or the last one did."""
    last = max(run.records, key=lambda record: (record.repeat, record.position), default=None)
    return is_outage(run) or last is None or last.failed


class _Cursor:
    """Rows in dataset order, handed out position by position."""

    def __init__(self, rows: Iterable[ScoreRow]) -> None:
        self._rows = iter(rows)
        self._next: ScoreRow | None = next(self._rows, None)

    def at(self, position: int) -> list[ScoreRow]:
        """The rows of a position; positions must be asked for in their order."""
        rows: list[ScoreRow] = []
        while self._next is not None and self._next.position <= position:
            if self._next.position == position:
                rows.append(self._next)
            self._next = next(self._rows, None)
        return rows


class _AgainByPosition:
    """The records and scores of tries again, which are few."""

    def __init__(self, run: ScoredRun) -> None:
        self._records: dict[int, list[RecordRow]] = {}
        for record in run.again_records:
            self._records.setdefault(record.position, []).append(record)
        self._rows: dict[tuple[str, int], list[ScoreRow]] = {}
        for metric, rows in run.again_metrics.items():
            for row in rows:
                self._rows.setdefault((metric, row.position), []).append(row)

    def records(self, position: int) -> list[RecordRow]:
        return self._records.get(position, [])

    def rows(self, metric: str, position: int) -> list[ScoreRow]:
        return self._rows.get((metric, position), [])


def _records_by_position(run: ScoredRun) -> Iterator[tuple[int, list[RecordRow]]]:
    """The records of each case; a run that was put together of scores alone has one for each scored repeat."""
    if run.records:
        for position, records in groupby(run.records, key=lambda record: record.position):
            yield position, list(records)
        return
    scored: dict[Place, RecordRow] = {}
    for rows in run.metrics.values():
        for row in rows:
            scored[row.place] = RecordRow(row.position, row.repeat, row.case_id, False)
    ordered = [scored[place] for place in sorted(scored)]
    for position, records in groupby(ordered, key=lambda record: record.position):
        yield position, list(records)


def _user_failed(run: ScoredRun) -> frozenset[Place]:
    places = {record.place for record in run.user_failed}
    for rows in run.again_metrics.values():
        for row in rows:
            if row.reason is not None and row.reason.startswith(USER_FAILED):
                places.add(row.place)
    return frozenset(places)


def _may_doubt(run: ScoredRun, metric: str) -> bool:
    info = run.info(metric)
    return info.unit == "score" and info.direction != "none"


class _Doubter:
    """A metric of a model or a judge: it doubts a case whose mean lies below its threshold."""

    def __init__(self, run: ScoredRun, metric: str) -> None:
        self.metric = metric
        self._info = run.info(metric)
        self._cursor = _Cursor(run.metrics[metric])

    def doubts(self, position: int) -> bool:
        values: list[float] = []
        thresholds: list[float | None] = []
        for row in self._cursor.at(position):
            is_opinion = bool(self._info.mean_of) or row.judged is not None
            if is_opinion and row.value is not None and row.status == "ok":
                values.append(row.value)
                thresholds.append(usable_threshold(row.amount) if self._info.mean_of else None)
        if not values:
            return False
        return is_low(self._info, fsum(values) / len(values), mean_threshold(thresholds))


def is_repaired(record: Record) -> bool:
    """Whether the agent failed at first and was tried again by ``retries`` or ``--retry-failed``."""
    metadata = record.trace.metadata
    attempts = metadata.get("attempts") if isinstance(metadata, Mapping) else None
    return isinstance(attempts, int) and attempts > 1


def repaired_records(run: ScoredRun) -> set[Place]:
    """The records that retries made up for; only runs that were recorded with some are read for it."""
    settings = run.header.settings
    if run.read_records is None or not (settings.get("retries") or settings.get(RETRIED_FAILED)):
        return set()
    return {stored.place for stored in run.read_records() if not stored.failed and is_repaired(stored.record)}
