"""A run beside a baseline: what became of each case, and what the metrics that count say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, get_args

from agentunit.engine.deciding._cases import (
    CaseComparison,
    before_of,
    chance_of_unconfirmed,
    compare_cases,
    confirmation,
    with_broken,
)
from agentunit.engine.deciding._labeled_comparison import labeled_comparisons
from agentunit.engine.deciding._paired_tests import (
    ComparisonSettings,
    Measured,
    describe_result,
    measure,
    with_verdicts,
)
from agentunit.engine.deciding.case_records import BothRuns, read_both
from agentunit.engine.deciding.checks import (
    ANSWERED,
    CheckRule,
    better_of_0_and_1,
    is_outage,
    may_be_outage,
    pass_fail_of,
    repaired_records,
    rules_of,
    tries_by_case,
)
from agentunit.engine.deciding.comparison import (
    ALPHA,
    LISTED_KINDS,
    MOST_LISTED,
    CaseDifference,
    CaseKind,
    CaseStanding,
    CompareVerdict,
    Comparison,
    MetricComparison,
    ScoreChange,
    labels_of,
)
from agentunit.engine.deciding.cut_offs import Margin
from agentunit.engine.deciding.gate_expressions import LABELED, Gate, parse_gate, stored_gates
from agentunit.engine.deciding.known_failures import set_aside, without_cases
from agentunit.engine.deciding.paired_scores import (
    BackendScores,
    answered_scores,
    baseline_subject,
    case_ids,
    check_names,
    clusters_by_case,
    passed_scores,
    scores_by_backend,
    wanted_backends,
)
from agentunit.engine.deciding.trying import Earlier, TryingAgain, earlier_tries, may_have_earlier
from agentunit.engine.scoring.rescoring import rescore_baseline
from agentunit.engine.scoring.scored_run import (
    ScoredRun,
    is_unfinished,
    n_with_scores,
    planned_cases,
    sequential_answers,
    what_is_missing,
)
from agentunit.metrics.base import MetricInfo
from agentunit.metrics.trust import describe_trust

CLOCK_UNITS = frozenset({"s", "ms"})
# However many cases changed, the first so many of each kind are listed with their answers. All are counted.
_MOST_ANSWERED = 25
_MOST_NAMED = 1_000
_ROUNDING = 1e-9


def compare_runs(
    candidate: ScoredRun,
    baseline: ScoredRun,
    *,
    metrics: Sequence[str] | None = None,
    on: Sequence[str] | None = None,
    gates: Iterable[Gate | str] | None = None,
    margin: Margin | Mapping[str, Margin] | None = None,
    alpha: float = ALPHA,
    min_coverage: float = 0.8,
    resamples: int | None = None,
    labels: tuple[str, str] | None = None,
    at_hand: Sequence[Any] = (),
) -> Comparison:
    """Hold a run against a baseline, over the cases that both have.

    Every check is held against its own tries before: a check that passed and now fails in enough tries is broken. Of
    the metrics, those count that ``on`` names, or ``metrics``, or else the gates (the candidate's own, unless given),
    those with a ``margin`` of their own, and of each check the share that passed; the others are described. A loss of
    one that counts is a *regression* when it is significant (exact McNemar for pass/fail, sign flips otherwise,
    one-sided, Holm over the metrics that so many changed cases could show). With a ``margin`` a loss of that size must
    be ruled out as well.

    ``metrics`` limits the comparison to those named (``name`` or ``name[backend]``). Of each case as many repeats are
    tested as both runs have, the first ones: unequal numbers would raise alarms of their own. Cases that the
    candidate's dataset marks as known to fail are left out of both runs. ``labels`` are what the baseline and the
    candidate are called, where there are further runs beside them. ``at_hand`` are metrics of the user's own, by which
    a baseline is scored again where another version scored it.
    """
    if not 0.0 < alpha < 0.5:
        raise ValueError(f"compare_runs: alpha must be above 0 and below 0.5; received {alpha!r}")
    if not 0.0 <= min_coverage <= 1.0:
        raise ValueError(f"compare_runs: min_coverage must be from 0 to 1; received {min_coverage!r}")
    pair = _Pair(candidate, baseline, metrics, gates, at_hand)
    _check_options(pair, metrics, on, margin)
    settings = _settings(pair, ComparisonSettings(margin, alpha, min_coverage, resamples), metrics, on)
    found = pair.measured(settings, is_asked=_names_answered(metrics) or _names_answered(on))
    cases = pair.cases()
    both = read_both(pair.candidate, pair.baseline, pair.shared, _worth_showing(cases, found))
    changed = [case_id for case_id in pair.shared if both is not None and both.is_changed(case_id)]
    if changed:
        # What is asked there is another question: its scores are no measure of the agent.
        pair = pair.without(set(changed))
        found = pair.measured(settings, is_asked=_names_answered(metrics) or _names_answered(on))
        cases = pair.cases()
    standings, unconfirmed = with_broken(cases, confirmation(both, cases), may_be_at_once=True)
    standings.update(dict.fromkeys(changed, CaseStanding("changed")))
    differences = _differences(standings, found, both)
    baseline_label, candidate_label = labels or labels_of([baseline.header, candidate.header])
    missing = [what_is_missing(run) for run in (baseline, candidate)]
    incomplete = [
        f"{label} {what}" for label, what in zip((baseline_label, candidate_label), missing, strict=True) if what
    ]
    only_before = sorted(pair.baseline_cases - pair.candidate_cases - set(changed))
    only_now = sorted(pair.candidate_cases - pair.baseline_cases - set(changed))
    comparison = Comparison(
        baseline=baseline.header.id,
        candidate=candidate.header.id,
        n_paired=len(pair.shared),
        n_only_baseline=len(only_before),
        n_only_candidate=len(only_now),
        alpha=alpha,
        metrics=(
            *_with_evidence(with_verdicts(found, settings), candidate, baseline),
            *labeled_comparisons(pair.candidate, pair.baseline, pair.names, pair.gates, margin),
        ),
        note="; ".join([*incomplete, *pair.notes(cases, both, found)]) or None,
        tools=() if both is None else both.tools,
        differences=tuple(differences),
        n_by_kind=_count_kinds(standings),
        cases=standings,
        gone=tuple(only_before[:_MOST_NAMED]),
        new=tuple(only_now[:_MOST_NAMED]),
        n_changed=len(changed),
        n_checks=cases.n_checks,
        checks=tuple(metric for metric, n in cases.n_made_before.items() if n and metric != ANSWERED.name),
        p_chance=chance_of_unconfirmed(cases, in_outage=is_outage(pair.candidate)) if unconfirmed else None,
        too_few=_too_few(pair, cases, len(changed), settings),
        tested_by=settings.counted_by,
        baseline_label=baseline_label,
        candidate_label=candidate_label,
        n_set_aside=pair.n_set_aside,
        is_clustered=pair.clusters is not None,
        incomplete=tuple(incomplete),
        with_margin=margin is not None,
        pass_fail=pair.pass_fail,
    )
    widths = [*(_width(measured) for measured in found), *[None] * (len(comparison.metrics) - len(found))]
    return replace(comparison, sentence=describe_result(comparison, widths))


def open_checks(
    candidate: ScoredRun,
    baseline: ScoredRun,
    gates: Iterable[Gate | str] | None = None,
    at_hand: Sequence[Any] = (),
    most_tries: int | None = None,
    ended: Collection[tuple[int, str]] = (),
) -> tuple[TryingAgain, dict[str, CheckRule]]:
    """The newly failing checks of a run that are to be tried again, and the rules of all its checks.

    ``ended`` are those, by position and metric, of which trying has ended already.
    """
    pair = _Pair(candidate, baseline, None, gates, at_hand)
    cases = pair.cases()
    if not cases.newly_failing:
        return TryingAgain([]), pair.rules
    both = read_both(pair.candidate, pair.baseline, pair.shared, {})
    changed = {case_id for case_id in pair.shared if both is not None and both.is_changed(case_id)}
    if changed:
        pair = pair.without(changed)
        cases = pair.cases()
    confirmed = confirmation(both, cases)
    _, unconfirmed = with_broken(cases, confirmed)
    n_broken = len(cases.newly_failing) - len({check.case_id for check in unconfirmed})
    trying = TryingAgain(
        [check for check in unconfirmed if (check.position, check.metric) not in ended],
        deterministic=confirmed.deterministic,
        most_tries=most_tries,
        n_broken=n_broken,
        may_be_outage=may_be_outage(pair.candidate),
    )
    return trying, pair.rules


class _Pair:
    """Two runs as they are compared: without known failures, the baseline scored by the candidate's metrics."""

    def __init__(
        self,
        candidate: ScoredRun,
        baseline: ScoredRun,
        metrics: Sequence[str] | None,
        gates: Iterable[Gate | str] | None,
        at_hand: Sequence[Any],
    ) -> None:
        self.all_names = list(dict.fromkeys([*baseline.metrics, *candidate.metrics]))
        self.names = [name for name in self.all_names if wanted_backends(name, metrics) is not None]
        self._wanted = metrics
        self._before = baseline
        meant = _cases_meant(candidate)
        self._whole_baseline: ScoredRun | None = None
        if meant is not None:
            # A run of some cases says nothing about the others, but those that fail were chosen from all.
            self._whole_baseline = baseline
            baseline = without_cases(baseline, case_ids(baseline) - meant)
        baseline, self._rescored, self._refused = rescore_baseline(candidate, baseline, self.names, at_hand)
        if self._rescored:
            # Its tries again were scored by the version before.
            kept = {name: rows for name, rows in baseline.again_metrics.items() if name not in self._rescored}
            baseline = replace(baseline, again_metrics=kept)
        aside = set_aside(candidate)
        self.n_set_aside = len(aside & (case_ids(candidate) | case_ids(baseline))) if aside else 0
        self.candidate, self.baseline = without_cases(candidate, aside), without_cases(baseline, aside)
        self.gates = _gates_of(candidate, gates)
        self.pass_fail = pass_fail_of(self.candidate, self.gates, self.baseline)
        self._set_cases()

    def _set_cases(self) -> None:
        self.baseline_cases, self.candidate_cases = case_ids(self.baseline), case_ids(self.candidate)
        if self.baseline_cases == self.candidate_cases:
            # As in most comparisons: one set is enough.
            self.shared = self.baseline_cases = self.candidate_cases
        else:
            self.shared = self.baseline_cases & self.candidate_cases
        self.clusters = clusters_by_case(self.candidate, self.baseline)
        self.rules = self._rules()

    def _rules(self) -> dict[str, CheckRule]:
        rules = rules_of(self.candidate, self.gates, self.baseline, self.pass_fail)
        if self._wanted is not None:
            for metric in list(rules):
                backends = wanted_backends(metric, self._wanted)
                if backends is not None and None not in backends:
                    rules[metric] = replace(rules[metric], only=frozenset(filter(None, backends)))
                elif backends is None and metric != ANSWERED.name:
                    del rules[metric]
        if not (self.candidate.records and self.baseline.records):
            rules.pop(ANSWERED.name, None)
        return rules

    def without(self, cases: Collection[str]) -> _Pair:
        """The same without some cases, which are not compared."""
        pair = copy(self)
        pair.candidate, pair.baseline = without_cases(self.candidate, cases), without_cases(self.baseline, cases)
        pair._set_cases()
        return pair

    def cases(self) -> CaseComparison:
        """What became of each case, before the records are read."""
        earlier: Earlier = {}
        if may_have_earlier(self.baseline):
            # Only what fails now is worth a look at earlier runs.
            failing: set[tuple[str, str]] = set()
            for case in tries_by_case(self.candidate, self.rules):
                if case.case_id in self.baseline_cases:
                    for metric, check in case.checks.items():
                        # What the baseline was scored again by did not score the runs before it.
                        if check.n_failed and metric not in self._rescored:
                            failing.add((case.case_id, metric))
            earlier = earlier_tries(self.baseline, self.rules, failing) if failing else {}
        repaired_before = repaired_records(self.baseline)
        before = before_of(tries_by_case(self.baseline, self.rules, repaired_before), earlier)
        if self._whole_baseline is not None:
            before.n_passed = before_of(tries_by_case(self._whole_baseline, self.rules), {}).n_passed
        repaired = repaired_records(self.candidate)
        return compare_cases(tries_by_case(self.candidate, self.rules, repaired), before)

    def _directed(self, info: MetricInfo) -> MetricInfo:
        """The facts about a metric; one that does not say which way is better is asked by its gate's operator."""
        gates = [gate for gate in self.gates if gate.metric == info.name]
        if info.direction != "none" or not gates:
            return info
        return replace(info, direction="higher" if better_of_0_and_1(gates[0]) else "lower")

    def measured(self, settings: ComparisonSettings, *, is_asked: bool) -> list[Measured]:
        """Every metric in both runs, and of each check the share that passed."""
        found: list[Measured] = []
        for name in self.names:
            info = self._directed(self.candidate.infos.get(name) or self.baseline.info(name))
            old = scores_by_backend(self.baseline.metrics.get(name, ()))
            new = scores_by_backend(self.candidate.metrics.get(name, ()))
            wanted = wanted_backends(name, self._wanted) or set()
            rule = self.rules.get(name)
            are_passes = rule is not None and _are_passes(rule, info, old, new)
            counted = replace(settings, counted=settings.counted | {name}) if are_passes else settings
            found += _compare_metric(name, info, old, new, wanted, counted, self._refused.get(name), self.clusters)
            if rule is not None and not are_passes and old.keys() & new.keys():
                # Degrees, or a gate of its own on every value: the share that passes is another number.
                label = f"{name} passed"
                passed = MetricInfo(label, info.family, "", "higher", (0.0, 1.0))
                old, new = (passed_scores(run.rows_of(name) or (), rule) for run in (self.baseline, self.candidate))
                counted = replace(settings, counted=frozenset([label]))
                found += _compare_metric(label, passed, old, new, set(), counted, None, self.clusters)
        failed = any(record.failed for run in (self.baseline, self.candidate) for record in run.records)
        if ANSWERED.name in self.rules and (is_asked or failed):
            counts = frozenset() if is_outage(self.candidate) and not is_asked else frozenset([ANSWERED.name])
            counted = replace(settings, counted=counts)
            old, new = answered_scores(self.baseline), answered_scores(self.candidate)
            found += _compare_metric(ANSWERED.name, ANSWERED, old, new, set(), counted, None, self.clusters)
        return found

    def notes(self, cases: CaseComparison, both: BothRuns | None, found: Sequence[Measured]) -> Iterable[str]:
        """What a reader of the comparison must know about it as a whole."""
        yield from _rescored_note(self._rescored, self._before, self.baseline)
        for metric, n in cases.not_compared.items():
            versions = _describe_makers(self.baseline, self.candidate, metric)
            why = f": {self._refused[metric]}" if metric in self._refused else ""
            yield f"{metric} is not compared on {n:,} of {len(self.shared):,} cases: {versions}{why}"
        if both is not None and both.note is not None:
            yield both.note
        if self.clusters is not None:
            n_clusters = len({self.clusters[case_id] for case_id in self.shared if case_id in self.clusters})
            named = self.candidate.clusters or self.baseline.clusters
            yield f"intervals and tests are over {n_clusters:,} {named}, not over cases"
        yield from _repeats_note(found)
        yield from _left_out_note(found)


def _cases_meant(run: ScoredRun) -> set[str] | None:
    """The cases that a run is about, where these are not all of its dataset: as named, or as drawn until decided."""
    only = run.header.settings.get("only")
    if isinstance(only, list):
        return {str(case_id) for case_id in only}
    is_part = sequential_answers(run.header.settings) or run.header.settings.get("limit") is not None
    return case_ids(run) if is_part else None


def _check_options(
    pair: _Pair,
    metrics: Sequence[str] | None,
    on: Sequence[str] | None,
    margin: Margin | Mapping[str, Margin] | None,
) -> None:
    """Refuse names of metrics and backends that the runs do not have."""
    if not (metrics or on or isinstance(margin, Mapping)):
        return
    runs = (pair.baseline, pair.candidate)
    known = {
        name: dict.fromkeys(row.backend for run in runs for row in run.metrics.get(name, ())) for name in pair.all_names
    }
    if ANSWERED.name in pair.rules:
        known.setdefault(ANSWERED.name, {ANSWERED.backend: None})
    check_names("metrics", metrics or (), known)
    check_names("on", on or (), known)
    check_names("margin", margin if isinstance(margin, Mapping) else (), known)


def _settings(
    pair: _Pair, settings: ComparisonSettings, metrics: Sequence[str] | None, on: Sequence[str] | None
) -> ComparisonSettings:
    """Which metrics count besides the checks: those that were named, or those that have gates."""
    named = on if on is not None else metrics
    if named is not None:
        return replace(settings, counted_by="named", counted=frozenset(named))
    # A gate on what people say is held to by their labels, not by the scores.
    gated = frozenset(gate.subject for gate in pair.gates if gate.aggregate != LABELED)
    return replace(settings, counted_by="gates" if gated else "nothing", counted=gated)


def _names_answered(named: Sequence[str] | None) -> bool:
    return any(wanted_backends(ANSWERED.name, [name]) for name in named or ())


def _are_passes(
    rule: CheckRule, info: MetricInfo, old: Mapping[str, BackendScores], new: Mapping[str, BackendScores]
) -> bool:
    """Whether the values of a check are its passes and failures themselves: 1 and 0, or the other way round."""
    best, worst = (0.0, 1.0) if info.direction == "lower" else (1.0, 0.0)
    scores = [*old.values(), *new.values()]
    return rule.passes(best) and not rule.passes(worst) and all(each.is_binary for each in scores)


def _too_few(pair: _Pair, cases: CaseComparison, n_changed: int, settings: ComparisonSettings) -> str | None:
    """Why the runs share too little: what is missing may be what went wrong."""
    needed = settings.min_coverage
    n_planned = planned_cases(pair.baseline) if is_unfinished(pair.baseline) else 0
    n_before = max(len(pair.baseline_cases) + n_changed, n_planned)
    if len(pair.shared) < needed * n_before - _ROUNDING:
        changed = f" ({n_changed:,} ask something else now)" if n_changed else ""
        return f"only {len(pair.shared):,} of {n_before:,} cases are in both runs{changed}, {needed:.0%} are needed"
    for run in (pair.baseline, pair.candidate):
        if n_with_scores(run) < needed * len(run.records) - _ROUNDING:
            return f"too few of the recorded cases were scored, {needed:.0%} are needed"
    for metric, n_lost in cases.n_lost.items():
        n_made = cases.n_made_before[metric]
        if n_lost > (1.0 - needed) * n_made + _ROUNDING:
            run_id, asked = pair.candidate.header.id, pair.candidate.header.settings.get("metrics")
            if metric not in pair.candidate.metrics and isinstance(asked, list) and metric not in asked:
                return f"{metric} is not checked any more: if that is meant, record a new baseline"
            if metric not in pair.candidate.metrics and metric != ANSWERED.name:
                return f"{metric} was not scored in {run_id}: agentunit score {run_id} --metrics {metric}"
            return f"{metric} passed before and cannot be made now on {n_lost:,} of {n_made:,} cases"
    return None


def _worth_showing(cases: CaseComparison, found: Sequence[Measured]) -> dict[str, tuple[int, int]]:
    """The cases whose answers a report shows, with the repeats of both runs that show the change best."""
    chosen: dict[str, tuple[int, int]] = {}
    counts: Counter[CaseKind] = Counter()
    changes = _score_changes(found)
    for case_id, standing in cases.standings.items():
        kind = standing.kind
        measured = changes.get(case_id)
        if kind == "unchanged" and measured is not None:
            kind = measured.kind
        if kind not in LISTED_KINDS or counts[kind] >= _MOST_ANSWERED:
            continue
        counts[kind] += 1
        chosen[case_id] = measured.repeats if measured is not None else (0, 0)
    return chosen


@dataclass(frozen=True)
class _ScoreChanges:
    """How the counted metrics changed on a case, the greatest loss first."""

    kind: CaseKind
    change: float
    scores: tuple[ScoreChange, ...]
    repeats: tuple[int, int]


def _score_changes(found: Sequence[Measured]) -> dict[str, _ScoreChanges]:
    """The cases on which counted metrics changed."""
    counted = [
        each for each in found if each.comparison.gated and each.info.direction != "none" and each.old and each.new
    ]
    # A few tokens more are no news about a case: a quantity makes one worse only where nothing else counts.
    has_scores = any(each.info.unit == "score" for each in counted)
    gains: dict[str, list[tuple[float, Measured]]] = {}
    for each in counted:
        if has_scores and each.info.unit != "score":
            continue
        for case_id, gain in each.gains_of_cases():
            if abs(gain) > _ROUNDING:
                gains.setdefault(case_id, []).append((gain, each))
    changes: dict[str, _ScoreChanges] = {}
    for case_id, of_case in gains.items():
        of_case.sort(key=lambda entry: entry[0])
        is_loss = of_case[0][0] < 0.0
        if not is_loss:
            of_case.reverse()
        scores = tuple(each.score_change(case_id) for _, each in of_case)
        gain, telling = of_case[0]
        repeats = telling.telling_repeats(case_id, is_loss=is_loss)
        changes[case_id] = _ScoreChanges("worse" if is_loss else "better", abs(gain), scores, repeats)
    return changes


def _differences(
    standings: dict[str, CaseStanding], found: Sequence[Measured], both: BothRuns | None
) -> list[CaseDifference]:
    """The cases to list, by kind and the greatest change first.

    Cases that only their scores or answers tell apart get their kind here.
    """
    changes = _score_changes(found)
    by_kind: dict[CaseKind, list[str]] = {kind: [] for kind in LISTED_KINDS}
    for case_id, standing in standings.items():
        kind = standing.kind
        if kind == "unchanged":
            same = None if both is None else both.same_answer(case_id)
            if case_id in changes:
                kind = changes[case_id].kind
            elif same is False:
                kind = "other answer"
            if kind != "unchanged":
                standings[case_id] = replace(standing, kind=kind)
        if kind in by_kind:
            by_kind[kind].append(case_id)
    differences: list[CaseDifference] = []
    for kind, cases in by_kind.items():
        ordered = sorted(cases, key=lambda case_id: -changes[case_id].change if case_id in changes else 0.0)
        for case_id in ordered[:MOST_LISTED]:
            scores = changes[case_id].scores if case_id in changes else ()
            difference = CaseDifference(case_id, kind, scores)
            if both is not None:
                difference = replace(
                    difference,
                    same_answer=both.same_answer(case_id),
                    baseline=both.old.shown.get(case_id),
                    candidate=both.new.shown.get(case_id),
                )
            differences.append(difference)
    return differences


def _count_kinds(standings: Mapping[str, CaseStanding]) -> dict[CaseKind, int]:
    """How many cases there are of each kind."""
    counts: dict[CaseKind, int] = dict.fromkeys(get_args(CaseKind), 0)
    for standing in standings.values():
        counts[standing.kind] += 1
    return counts


def _describe_makers(baseline: ScoredRun, candidate: ScoredRun, metric: str) -> str:
    """Which version or backend scored a metric in both runs."""
    sides = []
    for run in (baseline, candidate):
        made_by = {(row.backend, row.version) for row in run.rows_of(metric) or () if row.value is not None}
        sides.append(", ".join(f"{backend} version {version}" for backend, version in sorted(made_by)) or "nothing")
    return f"scored by {sides[0]} before and by {sides[1]} now"


def _with_evidence(
    metrics: Iterable[MetricComparison], candidate: ScoredRun, baseline: ScoredRun
) -> Iterable[MetricComparison]:
    """Verdicts of a run until decided: a test of fixed size does not hold where the values say when to stop."""
    shown = sequential_answers(candidate.header.settings)
    verdicts: dict[str | None, CompareVerdict] = {"yes": "no worse", "no": "regression", None: "cannot tell"}
    tested = ("regression", "no worse", "no loss shown", "better", "cannot tell")
    for each in metrics:
        answer = shown.get(baseline_subject(each.metric, each.backend, baseline.header.id))
        if answer is None or each.verdict not in tested:
            yield each
            continue
        verdict = verdicts[answer.answer]
        # Only a loss that is shown has a number to it: which others would have been seen is not known.
        p_value = answer.p_value if verdict == "regression" else None
        yield replace(each, verdict=verdict, reason=answer.text, p_adjusted=p_value, cases_needed=None)


def _gates_of(run: ScoredRun, gates: Iterable[Gate | str] | None) -> list[Gate]:
    """The gates of a run, or those given; one of its own that cannot be read is left to the decision to report."""
    if gates is not None:
        return [gate if isinstance(gate, Gate) else parse_gate(gate) for gate in gates]
    return stored_gates(run.header.settings)


def _counts(
    name: str, backend: str | None, info: MetricInfo, informational: bool, settings: ComparisonSettings
) -> bool:
    """Whether a metric counts for the verdict."""
    with_backend = f"{name}[{backend}]"
    if with_backend in settings.counted:
        return True
    # Whoever names a loss that must be ruled out asks that the metric is tested.
    if isinstance(settings.margin, Mapping) and not settings.margin.keys().isdisjoint((name, with_backend)):
        return True
    if name not in settings.counted:
        return False
    if settings.counted_by == "named":
        return True
    # Seconds differ from machine to machine, also where a gate limits them.
    return not informational and info.unit not in CLOCK_UNITS


def _width(each: Measured) -> float | None:
    return None if each.sample is None else each.sample.width


def _rescored_note(names: Sequence[str], before: ScoredRun, after: ScoredRun) -> Iterable[str]:
    """That scores of the baseline are not those that it was kept with."""
    changes = []
    for name in names:
        old, new = ({row.version for row in run.metrics[name] if row.value is not None} for run in (before, after))
        versions = f"version {'/'.join(sorted(old))} → {'/'.join(sorted(new)) or 'without a value'}"
        changes.append(f"{name} ({'other parameters' if old == new else versions})")
    if changes:
        yield f"the baseline was scored again from its records with newer metrics: {', '.join(changes)}"


def _repeats_note(found: Sequence[Measured]) -> Iterable[str]:
    """That not all repeats were compared."""
    if n_unequal := max((each.n_unequal for each in found), default=0):
        cases = "1 case has" if n_unequal == 1 else f"{n_unequal:,} cases have"
        yield f"{cases} more repeats in one of the runs: as many were tested as both have, the first ones"


def _left_out_note(found: Sequence[Measured]) -> Iterable[str]:
    """That informational scores beside others are not compared."""
    counts = {
        each.comparison.metric: (each.old.n_left_out, each.new.n_left_out)
        for each in found
        if each.old is not None and each.new is not None and (each.old.n_left_out or each.new.n_left_out)
    }
    if counts:
        parts = (f"{name} ({before:,} in the baseline, {after:,} now)" for name, (before, after) in counts.items())
        yield f"informational scores beside others are left out: {', '.join(parts)}"


def _note(info: MetricInfo, backend: str, informational: bool) -> str | None:
    if informational:
        return f"informational: {describe_trust(info, backend)}"
    if info.unit in CLOCK_UNITS:
        return "seconds differ from machine to machine: they count only when named (--metrics)"
    return None


def _other_judge(old: set[str], new: set[str]) -> str | None:
    """That different models judged: a difference may be theirs and not the agent's."""
    if old == new:
        return None
    before, after = (", ".join(sorted(each)) or "no model named" for each in (old, new))
    return f"judged by {before} in the baseline and by {after} in the candidate: a change may be the judge's"


def _compare_metric(
    name: str,
    info: MetricInfo,
    old: Mapping[str, BackendScores],
    new: Mapping[str, BackendScores],
    wanted: set[str | None],
    settings: ComparisonSettings,
    not_rescored: str | None = None,
    clusters: Mapping[str, int] | None = None,
) -> list[Measured]:
    """One comparison for each backend that scored in both runs; the others say why there is none."""
    # Sorted where they come from a set: a report must not depend on the order of hashes.
    only = sorted(each for each in wanted if each) if None not in wanted else []
    backends = only or list(dict.fromkeys([*old, *new]))
    shared = [backend for backend in backends if backend in old and backend in new]
    compared = []
    for backend in shared:
        informational = old[backend].informational or new[backend].informational
        start = MetricComparison(
            metric=name,
            backend=backend,
            verdict="not compared",
            reason="",
            gated=_counts(name, backend, info, informational, settings),
            direction=info.direction,
            unit=info.unit,
            note=_note(info, backend, informational) or _other_judge(old[backend].models, new[backend].models),
        )
        versions = old[backend].versions, new[backend].versions
        if versions[0] != versions[1] or len(versions[0]) > 1:
            both = " and ".join("/".join(sorted(each)) for each in versions)
            reason = f"versions {both} of the metric may not mean the same, and the baseline cannot be scored again"
            refused = replace(start, reason=f"{reason}: {not_rescored}" if not_rescored else reason)
            compared.append(Measured(refused, info))
        elif info.aggregate == "last":
            compared.append(Measured(_last_values(start, old[backend], new[backend]), info))
        else:
            compared.append(measure(start, info, old[backend], new[backend], settings, clusters))
    missing = [backend for backend in backends if backend not in shared]
    if missing or not backends:
        before = ", ".join(backend for backend in old if backend not in shared)
        after = ", ".join(backend for backend in new if backend not in shared)
        lost = [backend for backend in missing if backend in old and not old[backend].informational]
        counts = any(_counts(name, each, info, False, settings) for each in lost or missing or ("",))
        compared.append(
            Measured(
                MetricComparison(
                    metric=name,
                    backend=missing[0] if len(missing) == 1 else None,
                    verdict="not compared",
                    reason=_why_missing(before, after),
                    gated=counts and bool(lost or settings.counted_by == "named"),
                    direction=info.direction,
                    unit=info.unit,
                ),
                info,
            )
        )
    return compared


def _last_values(start: MetricComparison, old: BackendScores, new: BackendScores) -> MetricComparison:
    """Two balances beside each other: one number a run has no spread, so no test can tell them apart."""
    return replace(
        start,
        gated=False,
        verdict="shown only",
        reason="one balance a run, the last: hold it to a gate",
        n_pairs=1,
        baseline_mean=old.last,
        candidate_mean=new.last,
        difference=new.last - old.last,
    )


def _why_missing(before: str, after: str) -> str:
    if before and after:
        return f"scored by {before} in the baseline and by {after} in the candidate: their values do not compare"
    if before:
        return f"the candidate has no value of {before}, the baseline has"
    return f"new: the baseline has no value of {after}" if after else "no value in either run"
