"""The verdict on each gate: whether a scored run is good enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import floor, fsum, inf
from typing import Literal

from msgspec import structs

from agentunit.backends.quality import LEXICAL, missing_local_model
from agentunit.engine.gate_expressions import LABELED, Gate, GateError, nearest_name, parse_gate
from agentunit.engine.known_failures import counted_part
from agentunit.engine.labeled_rates import labeled_sample, labeled_summary
from agentunit.engine.margins import are_shares, possible_range
from agentunit.engine.scored_run import Clusters, ScoredRun, SequentialAnswer, installed_metric, sequential_answers
from agentunit.engine.unfinished import HOW_TO_GO_ON, is_unfinished, planned_cases, what_is_missing
from agentunit.formulas.repeats import pass_at_k, pass_hat_k
from agentunit.formulas.running import ClusterTotals
from agentunit.formulas.statistics import Interval, mean_interval, quantile, wilson_interval
from agentunit.metrics.base import MetricInfo
from agentunit.metrics.evidence import NOT_MEASURED
from agentunit.metrics.trust import describe_trust, unmeasured_note, why_informational
from agentunit.store.runs import ScoreRow

DEFAULT_MIN_COVERAGE = 0.8
_CASES_NAMED = 5
_WORSE = {">": "lower", ">=": "lower", "<": "higher", "<=": "higher"}
"""The direction of a metric that an operator runs against."""

Verdict = Literal["pass", "fail", "error", "cannot tell"]


@dataclass(frozen=True)
class GateVerdict:
    """What became of a gate: "error" means that the run cannot answer it, "cannot tell" that its scores are no ground
    to decide by: all are informational, or they are of several backends, and the gate names none, or the evidence of a
    run until decided leaves it open.

    ``value`` is the number compared (for all and any: the share of values that meet the condition), ``low`` and
    ``high`` its 95 % interval where there is one. ``near`` says that the interval holds the threshold: another run
    could fall on the other side. ``n_scored`` of ``n_expected`` is the coverage, in records (for pass^k and pass@k
    in cases, those with k tries). ``cases`` break the gate by themselves, the worst first (of a sum: the few that add
    most). ``note`` is a warning about the score, or about a gate that runs against the metric's direction.
    """

    gate: Gate
    verdict: Verdict
    reason: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    near: bool = False
    n_scored: int = 0
    n_expected: int = 0
    backend: str | None = None
    unit: str = "score"
    cases: tuple[str, ...] = ()
    note: str | None = None

    @property
    def coverage(self) -> float:
        """The share of what should have a score that has one."""
        return self.n_scored / self.n_expected if self.n_expected else 0.0


def evaluate_gates(
    run: ScoredRun, gates: Iterable[Gate | str], *, min_coverage: float = DEFAULT_MIN_COVERAGE
) -> list[GateVerdict]:
    """The verdict on each gate. A metric that is not there, or scored on too few records, never passes.

    Coverage counts every record the run has or was planned to have; for ``METRIC[backend]`` those that another
    backend scored are left out, so that a record without a score counts against each of them. Where a gate names no
    backend and some scores are informational, the others decide, and a record with an informational score counts as
    not scored. Cases that are known to fail count in neither.
    """
    if not 0.0 <= min_coverage <= 1.0:
        raise ValueError(f"evaluate_gates: min_coverage must be from 0 to 1; received {min_coverage!r}")
    parsed = [gate if isinstance(gate, Gate) else parse_gate(gate) for gate in gates]
    run = counted_part(run)
    shown = sequential_answers(run.header.settings)
    verdicts = [_evaluate(run, gate, min_coverage if gate.coverage is None else gate.coverage) for gate in parsed]
    return [_with_evidence(verdict, shown.get(str(verdict.gate))) for verdict in verdicts]


def _with_evidence(verdict: GateVerdict, shown: SequentialAnswer | None) -> GateVerdict:
    """A verdict that a run until decided was stopped for: what its evidence leaves open is not decided."""
    if shown is None or verdict.verdict == "error":
        return verdict
    reason = f"{verdict.reason}; {shown.text}"
    if shown.answer is None:
        return replace(verdict, verdict="cannot tell", reason=reason, cases=())
    return replace(verdict, reason=reason)


def refuse_slips(run: ScoredRun, gates: Iterable[Gate], path: str | None = None) -> None:
    """Raise at the first gate with a metric or backend that the run does not have, or a threshold that no value has.

    A slip is not a verdict. A run that was stopped before anything was scored has no names yet: its gates are errors.
    ``path`` is the exported file that the run was read from, if it was.
    """
    if is_unfinished(run) and not run.metrics:
        return
    for gate in gates:
        rows = run.rows_of(gate.metric)
        if rows is None:
            missing = f"run {run.header.label} has no scores of {gate.metric!r}"
            raise GateError(f"gate {str(gate)!r}: {missing}; {_instead_of(gate, run, path)}")
        backends = dict.fromkeys(row.backend for row in rows)
        if gate.backend is not None and gate.backend not in backends:
            known = nearest_name(gate.backend, backends)
            raise GateError(f"gate {str(gate)!r}: {gate.metric} was not scored by {gate.backend!r}; {known}")
        refuse_impossible(gate, run.info(gate.metric))


def _instead_of(gate: Gate, run: ScoredRun, path: str | None = None) -> str:
    """What to do where a run has no scores of the metric of a gate: score it, or write the name that was meant."""
    if run.metrics and installed_metric(gate.metric) is None:
        return nearest_name(gate.metric, run.metrics)
    has = f"it has {', '.join(run.metrics)}" if run.metrics else "it has no scores at all"
    # The records of a score table are not there to be scored.
    can_score = run.read_records is not None or not run.metrics
    kept = "" if path is None else f"agentunit import {path} && "
    return f"{has}: '{kept}agentunit score {run.header.id} --metrics {gate.metric}' adds them" if can_score else has


def refuse_impossible(gate: Gate, info: MetricInfo) -> None:
    """Raise where a metric's range is known and the threshold is outside of it: no value or every value would meet it.

    The end of a range is allowed: ``contains >= 0`` asks that there are scores.
    """
    low, high = info.range
    if gate.aggregate.startswith("pass"):
        low, high = 0.0, 1.0
    if low is None or high is None or gate.aggregate in ("sum", LABELED):
        return
    threshold = gate.threshold
    unreachable = (gate.operator == ">" and threshold == high) or (gate.operator == "<" and threshold == low)
    if low <= threshold <= high and not unreachable:
        return
    meant = None
    if unreachable:
        meant = replace(gate, operator=f"{gate.operator}=")
    elif (low, high) == (0.0, 1.0) and 1.0 < threshold <= 100.0:
        meant = replace(gate, threshold=threshold / 100.0)
    hint = f"; did you mean {str(meant)!r}?" if meant else ""
    subject = gate.metric if gate.aggregate == "mean" else f"{gate.metric} {gate.aggregate}"
    raise GateError(f"gate {str(gate)!r}: values of {subject} lie between {low:g} and {high:g}{hint}")


def _evaluate(run: ScoredRun, gate: Gate, min_coverage: float) -> GateVerdict:
    """What became of a gate. Where it would be met but for simulated users that failed, the data cannot tell."""
    verdict = _evaluated(run, gate, min_coverage)
    n_broken_off = len(run.user_failed)
    if verdict.verdict != "fail" or not n_broken_off:
        return verdict
    others = _without_user_failures(run)
    if others.n_records and _evaluated(others, gate, min_coverage).verdict == "fail":
        return verdict
    failed = f"the simulated user failed in {_records(n_broken_off)}, which are not scored"
    return replace(verdict, verdict="cannot tell", reason=f"{failed}; {verdict.reason}")


def _without_user_failures(run: ScoredRun) -> ScoredRun:
    aside = {(record.position, record.repeat) for record in run.user_failed}
    records = [record for record in run.records if (record.position, record.repeat) not in aside]
    n_planned = None if run.header.n_planned is None else run.header.n_planned - len(aside)
    return replace(
        run,
        header=structs.replace(run.header, n_planned=n_planned),
        n_cases=len({record.position for record in records}),
        n_records=len(records),
        metrics={
            name: [row for row in rows if (row.position, row.repeat) not in aside] for name, rows in run.metrics.items()
        },
        records=records,
    )


def _evaluated(run: ScoredRun, gate: Gate, min_coverage: float) -> GateVerdict:
    rows = run.rows_of(gate.metric)
    n_expected = max(run.n_records, run.header.n_planned or 0)
    nothing = GateVerdict(gate, "fail", "", n_expected=n_expected)
    if rows is None:
        is_stopped = not run.metrics and is_unfinished(run)
        known = f"it {what_is_missing(run)}; {HOW_TO_GO_ON}" if is_stopped else _instead_of(gate, run)
        return replace(nothing, verdict="error", reason=f"the run has no metric {gate.metric}: {known}")
    # Labels decide whatever the scores are worth.
    left_out = _informational_beside_others(rows) if gate.backend is None and gate.aggregate != LABELED else []
    if left_out:
        rows = [structs.replace(row, value=None) if row.status == "informational" else row for row in rows]
    counts = Counter(row.backend for row in rows if row.value is not None)
    if not counts:
        return replace(nothing, reason=f"no value in {_records(len(rows))}: {_main_reason(rows)}")
    if gate.backend is not None and gate.backend not in counts:
        scored_by = ", ".join(counts)
        return replace(
            nothing, reason=f"backend {gate.backend} scored nothing: {gate.metric} was scored by {scored_by}"
        )
    if gate.backend is None and len(counts) > 1:
        parts = ", ".join(f"{gate.metric}[{backend}] ({n})" for backend, n in counts.most_common())
        reason = f"values of several backends are not one number: name one of {parts}"
        return replace(nothing, verdict="cannot tell", reason=reason)
    backend = gate.backend or next(iter(counts))
    scored = [row for row in rows if row.value is not None and row.backend == backend]
    info = run.info(gate.metric)
    verdict = replace(
        nothing,
        n_scored=len(scored),
        n_expected=n_expected - (counts.total() - counts[backend]) - _before_first_value(rows, info),
        backend=backend,
        unit="score" if gate.aggregate in ("all", "any") or gate.aggregate.startswith("pass") else info.unit,
    )
    if info.direction == _WORSE.get(gate.operator):
        verdict = replace(verdict, note=f"{info.direction} is better, and this gate asks for the contrary")
    n_unmeasured = sum(row.reason == NOT_MEASURED for row in scored)
    notes = [
        verdict.note,
        _informational_note(info, scored, left_out),
        unmeasured_note(info, backend, len(scored), n_unmeasured),
    ]
    verdict = replace(verdict, note="; ".join(each for each in notes if each) or None)
    if gate.aggregate == LABELED:
        return _by_labels(verdict, run, info, min_coverage)
    by_case = _by_case(scored)
    if gate.aggregate.startswith("pass"):
        elsewhere = {row.position for row in rows if row.value is not None} - by_case.keys()
        verdict = replace(verdict, n_expected=planned_cases(run) - len(elsewhere))
        by_case = _tries(run, rows, backend, elsewhere)
    verdict = _measured(verdict, by_case, info, run.clusters)
    if verdict.verdict == "error":
        return verdict
    worst_first = {">": 1.0, ">=": 1.0, "<": -1.0, "<=": -1.0}.get(
        gate.operator, -1.0 if info.direction == "lower" else 1.0
    )
    names = {record.position: record.case_id for record in run.records} | {row.position: row.case_id for row in rows}
    breaking = tuple(names[position] for position in _breaking(gate, by_case, worst_first))
    is_last = gate.aggregate == "mean" and info.aggregate == "last"
    judged = _judged(verdict, min_coverage, breaking, "last value" if is_last else gate.aggregate, len(left_out))
    are_informational = any(row.status == "informational" for row in scored)
    # That too few records are scored does not hang on what the scores are worth.
    if not are_informational or gate.backend is not None or not _is_covered(judged, min_coverage):
        return judged
    return _undecided(judged, run.header.id)


def _informational_beside_others(rows: Sequence[ScoreRow]) -> list[ScoreRow]:
    """The informational scores of a metric, where it has others to decide by."""
    informational: list[ScoreRow] = []
    n_scored = 0
    for row in rows:
        if row.value is not None:
            n_scored += 1
            if row.status == "informational":
                informational.append(row)
    return informational if len(informational) < n_scored else []


def _informational_note(info: MetricInfo, scored: Sequence[ScoreRow], left_out: Sequence[ScoreRow]) -> str | None:
    """How many informational scores were left out or count, and why they are informational."""
    found = left_out or [row for row in scored if row.status == "informational"]
    if not found:
        return None
    # Scores that were left out may be of another backend than those that decide.
    backend = found[0].backend
    reasons = Counter(row.reason for row in found if row.reason and row.reason != NOT_MEASURED)
    why = why_informational(info, backend, reasons) or describe_trust(info, backend)
    if backend != scored[0].backend:
        why = f"by {backend}, {why}"
    n_all = len(scored) + len(left_out)
    if len(found) == n_all:
        return f"informational: {why}"
    are = "is" if len(found) == 1 else "are"
    what = f"{are} informational and left out" if left_out else f"that count {are} informational"
    return f"{len(found):,} of {n_all:,} scores {what}: {why}"


def _by_labels(verdict: GateVerdict, run: ScoredRun, info: MetricInfo, min_coverage: float) -> GateVerdict:
    """A gate on the rate that people would give. Labels decide whatever the scores are worth."""
    gate = verdict.gate
    found = labeled_summary(run, gate.metric, verdict.backend)
    verdict = replace(verdict, note=None, unit="score")
    if found is None or found.rate is None or found.low is None or found.high is None:
        why = "no case is labeled" if found is None else found.reason
        command = f"agentunit label {run.header.id} --metric {gate.metric}"
        return replace(verdict, verdict="cannot tell", reason=f"{why}: {command}")
    near = gate.holds(found.low) != gate.holds(found.high)
    verdict = replace(verdict, value=found.rate, low=found.low, high=found.high, near=near)
    if found.assumed_random:
        verdict = replace(verdict, note="labels taken for a random sample")
    sample = labeled_sample(run, gate.metric, verdict.backend)
    names = {(row.position, row.repeat): row.case_id for row in run.metrics[gate.metric]}
    sign = -1.0 if info.direction == "lower" else 1.0
    worst_first = sorted(sample.labels, key=lambda index: sign * sample.labels[index])
    breaking = [names[sample.places[index]] for index in worst_first if not gate.holds(sample.labels[index])]
    judged = _judged(verdict, min_coverage, tuple(dict.fromkeys(breaking)), "labeled rate")
    return replace(judged, reason=f"{judged.reason} ({found.n_labels:,} labels of {found.n_cases:,})")


def why_undecided(gate: Gate, backend: str, rescore: str | None = None) -> str:
    """Why scores that are informational do not decide about a gate, and what would help.

    ``rescore`` is the command that scores again once the local model is installed.
    """
    commands = [missing_local_model(), rescore] if LEXICAL in backend.split("+") else []
    helps = " && ".join(command for command in commands if command)
    named = replace(gate, backend=backend)
    if not helps:
        return f"informational scores do not decide unless the gate names the backend: {named}"
    return f"informational scores do not decide: {helps} (or name the backend: {named})"


def _undecided(verdict: GateVerdict, run_id: str) -> GateVerdict:
    """A gate that has only informational scores: what it would say, and the one command that would let it decide."""
    rescore = f"agentunit score {run_id} --backend local"
    reason = f"{verdict.reason}, but {why_undecided(verdict.gate, verdict.backend or '', rescore)}"
    return replace(verdict, verdict="cannot tell", reason=reason, cases=())


def _measured(
    verdict: GateVerdict, values_by_case: Mapping[int, list[float]], info: MetricInfo, clusters: Clusters | None
) -> GateVerdict:
    """The verdict with the number to compare and its interval; it does not hold the number to the threshold yet."""
    gate = verdict.gate

    def interval_of(values: Sequence[float | None], *, shares: bool = True) -> Interval | None:
        """The interval of the mean of what each case has, over clusters where there are some."""
        if clusters is None:
            return mean_interval([value for value in values if value is not None], shares=shares)
        totals = ClusterTotals()
        for position, value in zip(values_by_case, values, strict=True):
            if value is not None:
                totals.add(clusters.of_case(position), value)
        return totals.interval(shares=shares)

    by_case = list(values_by_case.values())
    values = [value for case in by_case for value in case]
    interval: Interval | None = None
    if gate.aggregate.startswith("pass"):
        k = gate.repeats_needed
        formula = pass_hat_k if gate.aggregate[4] == "^" else pass_at_k
        of_cases = [formula(case.count(1.0), len(case), k) for case in by_case]
        known = [each for each in of_cases if each is not None]
        verdict = replace(verdict, n_scored=len(known))
        if not known:
            most_tries = max(len(case) for case in by_case)
            reason = f"no case has {k} scored repeats, the most is {most_tries}: run with --repeats {k} or more"
            return replace(verdict, verdict="error", reason=reason)
        value, interval = fsum(known) / len(known), _within(interval_of(of_cases), (0.0, 1.0))
    elif gate.aggregate == "mean" and info.aggregate == "last":
        value = values_by_case[max(values_by_case)][-1]
    elif gate.aggregate == "mean":
        means = [fsum(case) / len(case) for case in by_case]
        value = fsum(means) / len(means)
        allowed = possible_range(info, min(values), max(values))
        interval = _within(interval_of(means, shares=are_shares(info)), allowed)
    elif gate.aggregate in ("all", "any"):
        value = sum(gate.holds(each) for each in values) / len(values)
    elif gate.aggregate == "sum":
        totals = [fsum(case) for case in by_case]
        value = fsum(totals)
        mean = interval_of(totals, shares=False)
        if mean is not None:
            least, most = (None if end is None else len(values) * end for end in info.range)
            spread = Interval(len(totals) * mean.low, len(totals) * mean.high, mean.method)
            interval = _within(spread, (least, most))
    elif gate.aggregate in ("min", "max"):
        # The extremes of a sample say nothing about how far others would go: they have no interval.
        value = min(values) if gate.aggregate == "min" else max(values)
    else:
        share = 0.5 if gate.aggregate == "median" else float(gate.aggregate[1:]) / 100.0
        ordered = sorted(values)
        value = quantile(ordered, share)
        # Woodruff's interval: where the quantile's rank may lie, as a share of independent cases.
        ranks = wilson_interval(round(share * len(by_case)), len(by_case))
        if clusters is None:
            interval = Interval(quantile(ordered, ranks.low), quantile(ordered, ranks.high), "rank")
    if interval is None:
        return replace(verdict, value=value)
    near = interval.low <= gate.threshold <= interval.high and interval.low < interval.high
    return replace(verdict, value=value, low=interval.low, high=interval.high, near=near)


def _before_first_value(rows: Sequence[ScoreRow], info: MetricInfo) -> int:
    """How many records a run's balance does not need: those to which it does not apply, nothing being spent yet."""
    return sum(row.status == "not_applicable" for row in rows) if info.aggregate == "last" else 0


def _is_covered(verdict: GateVerdict, min_coverage: float) -> bool:
    return verdict.coverage >= min_coverage - 1e-12


def _judged(
    verdict: GateVerdict, min_coverage: float, breaking: tuple[str, ...], aggregate: str, n_left_out: int = 0
) -> GateVerdict:
    """The verdict by the number and the coverage; ``n_left_out`` informational scores count as not scored."""
    gate, value = verdict.gate, verdict.value
    assert value is not None
    if gate.aggregate in ("all", "any"):
        holds = value == 1.0 if gate.aggregate == "all" else value > 0.0
        meeting = round(value * verdict.n_scored)
        if gate.aggregate == "any":
            reason = f"{meeting} of {verdict.n_scored} values are {gate.condition}"
        elif holds:
            reason = f"every value is {gate.condition}"
        else:
            reason = f"{verdict.n_scored - meeting} of {verdict.n_scored} values are not {gate.condition}"
    else:
        holds = gate.holds(value)
        reason = f"{aggregate} {value:.4g} {'meets' if holds else 'misses'} {gate.condition}"
        if verdict.near:
            otherwise = "miss" if holds else "meet"
            doubt = "the rate of more labels" if gate.aggregate == LABELED else "others"
            here = "" if gate.aggregate == LABELED else " on these cases"
            reason += f"{here}; {doubt} might {otherwise} it (95 %: {verdict.low:.4g} to {verdict.high:.4g})"
    covered = _is_covered(verdict, min_coverage)
    if not covered:
        what = "cases" if gate.aggregate.startswith("pass") else "records"
        more = f", {n_left_out} more {'is' if n_left_out == 1 else 'are'} informational, and" if n_left_out else ","
        too_few = f"only {verdict.n_scored} of {verdict.n_expected} {what} scored{more} {min_coverage:.0%} are needed"
        # A share that is written with two digits must not ask for more than there is.
        enough = replace(gate, coverage=floor(verdict.coverage * 100) / 100)
        reason = f"{too_few}; {reason}" + (
            f"; if the others need no score: '{enough}'" if holds and enough.coverage else ""
        )
    passed = holds and covered
    return replace(verdict, verdict="pass" if passed else "fail", reason=reason, cases=() if holds else breaking)


def _breaking(gate: Gate, by_case: Mapping[int, list[float]], sign: float) -> list[int]:
    """The cases whose own value breaks the gate, the worst first; of a sum the few that add most to it."""
    badness: dict[int, float] = {}
    for position, values in by_case.items():
        if gate.aggregate.startswith("pass"):
            broken = values if values.count(1.0) < len(values) else []
        elif gate.aggregate == "sum":
            broken = [sign * fsum(values)]
        elif gate.aggregate == "mean":
            mean = fsum(values) / len(values)
            broken = [] if gate.holds(mean) else [sign * mean]
        else:
            # Where not even one value is good enough for ``any``, no case is to blame more than another.
            broken = [] if gate.aggregate == "any" else [sign * each for each in values if not gate.holds(each)]
        if broken:
            badness[position] = fsum(broken) / len(broken) if gate.aggregate.startswith("pass") else min(broken)
    ordered = sorted(badness, key=badness.__getitem__)
    return ordered[:_CASES_NAMED] if gate.aggregate == "sum" else ordered


def _tries(run: ScoredRun, rows: Sequence[ScoreRow], backend: str, elsewhere: set[int]) -> dict[int, list[float]]:
    """For each case, whether each of its repeats passed (1.0) or not (0.0).

    Where the agent failed or the score is an error it did not; where the metric does not apply there was no try.
    Exactly 1.0 is a pass, whatever the metric: a partial score does not solve a case. Cases that only another
    backend scored are left out.
    """
    passed = {(record.position, record.repeat): 0.0 for record in run.records if record.failed}
    for row in rows:
        if row.status == "error" or (row.value is not None and row.backend == backend):
            passed.setdefault((row.position, row.repeat), float(row.value == 1.0))
    tries: dict[int, list[float]] = {}
    for position, repeat in sorted(passed):
        if position not in elsewhere:
            tries.setdefault(position, []).append(passed[position, repeat])
    return tries


def _within(interval: Interval | None, allowed: tuple[float | None, float | None]) -> Interval | None:
    """An interval that does not leave the values a metric can take; Student's t knows nothing of them."""
    if interval is None:
        return None
    low, high = (-inf if allowed[0] is None else allowed[0]), (inf if allowed[1] is None else allowed[1])
    return Interval(min(high, max(low, interval.low)), min(high, max(low, interval.high)), interval.method)


def _by_case(scored: Sequence[ScoreRow]) -> dict[int, list[float]]:
    by_case: dict[int, list[float]] = {}
    for row in scored:
        if row.value is not None:
            by_case.setdefault(row.position, []).append(row.value)
    return by_case


def _main_reason(rows: Sequence[ScoreRow]) -> str:
    # Where a score failed, that is why; the others may only be cases that the metric does not apply to.
    failed = [row for row in rows if row.status == "error"] or rows
    reasons = Counter(row.reason or "the metric gave no reason" for row in failed)
    return reasons.most_common(1)[0][0] if reasons else "nothing was scored"


def _records(n: int) -> str:
    return "1 record" if n == 1 else f"{n} records"
