"""The verdict on each gate: whether a scored run is good enough."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import floor, fsum

from msgspec import structs

from agentunit.backends.quality import LEXICAL, missing_local_model
from agentunit.core.conversation import USER_FAILED
from agentunit.core.score_block import Place, ScoreRow
from agentunit.engine.deciding.checks import ANSWERED, CheckRule, answered_rows, rules_of
from agentunit.engine.deciding.cut_offs import are_shares, possible_range, within
from agentunit.engine.deciding.gate_expressions import (
    DEFAULT_MIN_COVERAGE,
    LABELED,
    Gate,
    GateError,
    GateVerdict,
    nearest_name,
    parse_gate,
    refuse_impossible,
)
from agentunit.engine.deciding.known_failures import counted_part
from agentunit.engine.scoring.labeled_rates import labeled_summary
from agentunit.engine.scoring.scored_run import (
    HOW_TO_GO_ON,
    Clusters,
    ScoredRun,
    SequentialAnswer,
    installed_metric,
    is_unfinished,
    planned_cases,
    sequential_answers,
    what_is_missing,
)
from agentunit.formulas.repeats import pass_at_k, pass_hat_k
from agentunit.formulas.running import ClusterTotals
from agentunit.formulas.statistics import Interval, mean_interval, quantile, wilson_interval
from agentunit.metrics.base import MetricInfo
from agentunit.metrics.evidence import NOT_MEASURED
from agentunit.metrics.inputs import NO_CONTENT
from agentunit.metrics.trust import describe_trust, unmeasured_note, why_informational

_CASES_NAMED = 5
# How the reasons begin of a metric that applies to a case, and found nothing that it could score.
_NOTHING_TO_SCORE = ("no answer", NO_CONTENT, USER_FAILED)
_WORSE = {">": "lower", ">=": "lower", "<": "higher", "<=": "higher"}
"""The direction of a metric that an operator runs against."""


def evaluate_gates(
    run: ScoredRun, gates: Iterable[Gate | str], *, min_coverage: float = DEFAULT_MIN_COVERAGE
) -> list[GateVerdict]:
    """The verdict on each gate. A metric that is not there, or scored on too few records, never passes.

    Coverage counts every record the run has or was planned to have, but those to which the metric does not apply; for
    ``METRIC[backend]`` also those that another backend scored are left out. Where a gate names no backend and some
    scores are informational, the others decide, and a record with an informational score counts as not scored: a gate
    that such scores could turn is not met. Cases that are known to fail count in neither.
    """
    if not 0.0 <= min_coverage <= 1.0:
        raise ValueError(f"evaluate_gates: min_coverage must be from 0 to 1; received {min_coverage!r}")
    parsed = [gate if isinstance(gate, Gate) else parse_gate(gate) for gate in gates]
    run = counted_part(run)
    shown = sequential_answers(run.header.settings)
    rules = rules_of(run, parsed)
    verdicts = [
        _evaluate(run, gate, min_coverage if gate.coverage is None else gate.coverage, rules) for gate in parsed
    ]
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
        if gate.metric == ANSWERED.name:
            refuse_impossible(gate, ANSWERED)
            continue
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
    kept = "" if path is None else f"agentunit runs --import {path} && "
    return f"{has}: '{kept}agentunit score {run.header.id} --metrics {gate.metric}' adds them" if can_score else has


def _evaluate(run: ScoredRun, gate: Gate, min_coverage: float, rules: Mapping[str, CheckRule]) -> GateVerdict:
    """What became of a gate. Where it would be met but for simulated users that failed, the data cannot tell."""
    verdict = _evaluated(run, gate, min_coverage, rules)
    n_broken_off = len(run.user_failed)
    if verdict.verdict != "fail" or not n_broken_off:
        return verdict
    others = _without_user_failures(run)
    if others.n_records and _evaluated(others, gate, min_coverage, rules).verdict == "fail":
        return verdict
    failed = f"the simulated user failed in {_records(n_broken_off)}, which are not scored"
    return replace(verdict, verdict="cannot tell", reason=f"{failed}; {verdict.reason}")


def _without_user_failures(run: ScoredRun) -> ScoredRun:
    aside = {record.place for record in run.user_failed}
    records = [record for record in run.records if record.place not in aside]
    n_planned = None if run.header.n_planned is None else run.header.n_planned - len(aside)
    return replace(
        run,
        header=structs.replace(run.header, n_planned=n_planned),
        n_cases=len({record.position for record in records}),
        n_records=len(records),
        metrics={name: [row for row in rows if row.place not in aside] for name, rows in run.metrics.items()},
        records=records,
    )


def _evaluated(run: ScoredRun, gate: Gate, min_coverage: float, rules: Mapping[str, CheckRule]) -> GateVerdict:
    rows = answered_rows(run) if gate.metric == ANSWERED.name else run.rows_of(gate.metric)
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
    missing = _Missing.of(run, rows)
    if not counts:
        reason = f"no value in {_records(len(rows))}: {_main_reason(rows)}"
        # Where the metric applies to no case, the gate rests on nothing.
        return replace(nothing, verdict="fail" if missing.n_missing else "cannot tell", reason=reason)
    if gate.backend is not None and gate.backend not in counts:
        scored_by = ", ".join(counts)
        return replace(
            nothing, reason=f"backend {gate.backend} scored nothing: {gate.metric} was scored by {scored_by}"
        )
    if gate.backend is None and len(counts) > 1:
        (most, n_most), *others = counts.most_common()
        named = replace(gate, backend=most)
        command = shlex.join(["agentunit", "show", run.header.id, "--gate", str(named)])
        rest = ", ".join(f"{gate.metric}[{backend}] {n}" for backend, n in others)
        # The command comes first: a verdict's sentence is cut at its end.
        reason = f"values of several backends are not one number: {command} counts {n_most}, {rest}"
        return replace(nothing, verdict="cannot tell", reason=reason)
    backend = gate.backend or next(iter(counts))
    scored = [row for row in rows if row.value is not None and row.backend == backend]
    info = ANSWERED if gate.metric == ANSWERED.name else run.info(gate.metric)
    verdict = replace(
        nothing,
        n_scored=len(scored),
        n_expected=n_expected - (counts.total() - counts[backend]) - missing.n_not_applicable,
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
    verdict = replace(verdict, note="; ".join(note for note in notes if note) or None)
    if gate.aggregate == LABELED:
        return _by_labels(verdict, run, info, min_coverage)
    by_case = _by_case(scored)
    if gate.aggregate.startswith("pass"):
        elsewhere = {row.position for row in rows if row.value is not None} - by_case.keys()
        verdict = replace(verdict, n_expected=planned_cases(run) - len(elsewhere) - missing.n_cases_not_applicable)
        by_case = _tries(run, rows, backend, elsewhere)
    verdict = _measured(verdict, by_case, info, run.clusters)
    if verdict.verdict == "error":
        return verdict
    names = {record.position: record.case_id for record in run.records} | {row.position: row.case_id for row in rows}
    breaking = [names[position] for position in _breaking(gate, by_case, rules.get(gate.metric))]
    is_last = gate.aggregate == "mean" and info.aggregate == "last"
    aggregate = "last value" if is_last else gate.aggregate
    without = missing.case_ids if gate.aggregate == "all" else []
    judged = _judged(verdict, min_coverage, tuple(breaking), aggregate, len(left_out), without)
    if judged.verdict == "pass" and left_out:
        judged = _with_left_out(judged, by_case, left_out, info, run.clusters)
    are_informational = any(row.status == "informational" for row in scored)
    # That too few records are scored does not hang on what the scores are worth.
    if not are_informational or gate.backend is not None or not _is_covered(judged, min_coverage):
        return judged
    return _undecided(judged, run.header.id)


@dataclass
class _Missing:
    """The records of a run without a value of a metric: those to which it does not apply, and the cases of the others.

    Where the agent failed or gave no answer, or a simulated user failed, the metric applies: there is nothing to score.
    """

    n_not_applicable: int = 0
    n_cases_not_applicable: int = 0
    n_missing: int = 0
    case_ids: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, run: ScoredRun, rows: Sequence[ScoreRow]) -> _Missing:
        failed = {record.place for record in run.records if record.failed}
        missing = cls()
        cases_missing: dict[str, None] = {}
        not_applicable: set[int] = set()
        applicable: set[int] = set()
        scored: set[Place] = set()
        for row in rows:
            place = row.place
            scored.add(place)
            has_nothing = row.reason is not None and row.reason.startswith(_NOTHING_TO_SCORE)
            if row.value is None and row.status == "not_applicable" and place not in failed and not has_nothing:
                missing.n_not_applicable += 1
                not_applicable.add(row.position)
                continue
            applicable.add(row.position)
            if row.value is None:
                missing.n_missing += 1
                cases_missing[row.case_id] = None
        for record in run.records:
            if record.place not in scored:
                missing.n_missing += 1
                cases_missing[record.case_id] = None
        missing.n_cases_not_applicable = len(not_applicable - applicable)
        missing.case_ids = list(cases_missing)
        return missing


def _with_left_out(
    verdict: GateVerdict,
    by_case: Mapping[int, list[float]],
    left_out: Sequence[ScoreRow],
    info: MetricInfo,
    clusters: Clusters | None,
) -> GateVerdict:
    """A gate that is met without the scores that were left out, and would not be if these were as bad as can be."""
    gate = verdict.gate
    low, high = info.range
    worst = low if gate.operator in (">", ">=") else high
    if worst is None or gate.aggregate in ("all", "any", "sum", LABELED):
        return verdict
    with_worst = {position: list(values) for position, values in by_case.items()}
    for row in left_out:
        with_worst.setdefault(row.position, []).append(worst)
    value = _measured(verdict, with_worst, info, clusters).value
    if value is None or gate.holds(value):
        return verdict
    cases = list(dict.fromkeys(row.case_id for row in left_out))
    scores = "1 score that is" if len(left_out) == 1 else f"{len(left_out)} scores that are"
    could = f"{scores} left out could turn it: {', '.join(cases[:_CASES_NAMED])}"
    return replace(verdict, verdict="fail", reason=f"{verdict.reason}, but {could}", cases=tuple(cases))


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
    judged = _judged(verdict, min_coverage, (), "labeled rate")
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
        value, interval = fsum(known) / len(known), within(interval_of(of_cases), (0.0, 1.0))
    elif gate.aggregate == "mean" and info.aggregate == "last":
        value = values_by_case[max(values_by_case)][-1]
    elif gate.aggregate == "mean":
        means = [fsum(case) / len(case) for case in by_case]
        value = fsum(means) / len(means)
        allowed = possible_range(info, min(values), max(values))
        interval = within(interval_of(means, shares=are_shares(info)), allowed)
    elif gate.aggregate in ("all", "any"):
        value = sum(gate.holds(each) for each in values) / len(values)
    elif gate.aggregate == "sum":
        totals = [fsum(case) for case in by_case]
        value = fsum(totals)
        mean = interval_of(totals, shares=False)
        if mean is not None:
            least, most = (None if end is None else len(values) * end for end in info.range)
            spread = Interval(len(totals) * mean.low, len(totals) * mean.high, mean.method)
            interval = within(spread, (least, most))
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


def _is_covered(verdict: GateVerdict, min_coverage: float) -> bool:
    return verdict.coverage >= min_coverage - 1e-12


def _judged(
    verdict: GateVerdict,
    min_coverage: float,
    breaking: tuple[str, ...],
    aggregate: str,
    n_left_out: int = 0,
    without: Sequence[str] = (),
) -> GateVerdict:
    """The verdict by the number and the coverage; ``n_left_out`` informational scores count as not scored.

    ``without`` are the cases without a value, where every case must have one.
    """
    gate, value = verdict.gate, verdict.value
    assert value is not None
    if gate.aggregate in ("all", "any"):
        holds = value == 1.0 and not without if gate.aggregate == "all" else value > 0.0
        reason = _all_or_any(verdict, value, without)
        breaking += tuple(case_id for case_id in without if case_id not in breaking)
    else:
        holds = gate.holds(value)
        reason = f"{aggregate} {value:.4g} {'meets' if holds else 'misses'} {gate.condition}"
        if verdict.near and gate.aggregate == LABELED:
            otherwise = "miss" if holds else "meet"
            interval = f"95 %: {verdict.low:.4g} to {verdict.high:.4g}"
            reason += f"; the rate of more labels might {otherwise} it ({interval})"
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


def _all_or_any(verdict: GateVerdict, value: float, without: Sequence[str]) -> str:
    """How many values meet the condition; where all must, also which cases have none."""
    gate = verdict.gate
    meeting = round(value * verdict.n_scored)
    if gate.aggregate == "any":
        return f"{meeting} of {verdict.n_scored} values are {gate.condition}"
    parts = []
    if meeting < verdict.n_scored:
        parts.append(f"{verdict.n_scored - meeting} of {verdict.n_scored} values are not {gate.condition}")
    if without:
        cases = "1 case has" if len(without) == 1 else f"{len(without)} cases have"
        parts.append(f"{cases} no value that counts ({', '.join(without[:_CASES_NAMED])})")
    return "; ".join(parts) or f"every value is {gate.condition}"


def _breaking(gate: Gate, by_case: Mapping[int, list[float]], rule: CheckRule | None) -> list[int]:
    """The cases that break a gate by themselves, in dataset order."""
    if gate.aggregate in ("all", "min", "max"):
        return [position for position, values in by_case.items() if not all(map(gate.holds, values))]
    is_rate = gate.aggregate in ("mean", "median") or gate.aggregate.startswith("p")
    if rule is None or not is_rate:
        return []
    return [position for position, values in by_case.items() if not all(map(rule.passes, values))]


def _tries(run: ScoredRun, rows: Sequence[ScoreRow], backend: str, elsewhere: set[int]) -> dict[int, list[float]]:
    """For each case, whether each of its repeats passed (1.0) or not (0.0).

    Where the agent failed or the score is an error it did not; where the metric does not apply there was no try.
    Exactly 1.0 is a pass, whatever the metric: a partial score does not solve a case. Cases that only another
    backend scored are left out.
    """
    passed = {record.place: 0.0 for record in run.records if record.failed}
    for row in rows:
        if row.status == "error" or (row.value is not None and row.backend == backend):
            passed.setdefault(row.place, float(row.value == 1.0))
    tries: dict[int, list[float]] = {}
    for position, repeat in sorted(passed):
        if position not in elsewhere:
            tries.setdefault(position, []).append(passed[position, repeat])
    return tries


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
