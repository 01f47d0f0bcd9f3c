"""The one decision on a run: its exit code, its sentence, and every reason with the cases behind it.

Cases decide: a broken check fails the run, and so does a gate that is missed. Statistics explain, and catch what no
single case shows. The terminal, every report and every exit code render this decision; none makes its own.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from math import inf
from typing import Any, Literal

from agentunit.core.results import CaseCounts, RunSummary
from agentunit.core.said import Said
from agentunit.engine.deciding.case_findings import CaseFinding, findings_of, with_whys
from agentunit.engine.deciding.checks import ANSWERED, CheckRule, rules_of
from agentunit.engine.deciding.comparison import ALPHA, CaseKind, Comparison, MetricComparison
from agentunit.engine.deciding.gate_expressions import DEFAULT_MIN_COVERAGE, LABELED, Gate, GateVerdict, stored_gates
from agentunit.engine.deciding.known_failures import KnownFailure, counted_part, known_failures
from agentunit.engine.scoring.scored_run import (
    HOW_TO_GO_ON,
    ScoredRun,
    is_unfinished,
    n_with_scores,
    planned_cases,
    what_is_missing,
)
from agentunit.engine.scoring.stored_rows import told_by
from agentunit.store.runs import DATASET_CASES, KNOWN_FAILURES

EXIT_PASS, EXIT_FAILED, EXIT_USAGE, EXIT_ERRORS, EXIT_CANNOT_TELL = 0, 1, 2, 3, 4
_VERDICTS: dict[int, RunVerdict] = {
    EXIT_PASS: "pass",
    EXIT_FAILED: "fail",
    EXIT_ERRORS: "errors",
    EXIT_CANNOT_TELL: "cannot tell",
}
# Whoever treats 3 as an outage to be retried must not wave a failure through: a failure comes first.
_STRICTEST_FIRST = (EXIT_FAILED, EXIT_ERRORS, EXIT_CANNOT_TELL)
# These say how many cases may fail; the best or the worst value does not. "p": percentiles, pass^k and pass@k.
_RATES = ("mean", "median", LABELED)
FROM_FILE = "file"
"""What ``made_with`` says of a decision about a run that is not in a store."""
_LONGEST_HEADLINE = 200
_CASES_NAMED = 4
_ID_LENGTH = 40
_FEW_TIMES = {1: "once", 2: "twice"}
_WHY_LENGTH = 60
_UNFINISHED = "unfinished"
"""``made_with`` says so of a run that was stopped: it is to go on before anything is tried again."""

RunVerdict = Literal["pass", "fail", "errors", "cannot tell"]
ReasonKind = Literal[
    "broken",
    "wrong",
    "newly failing",
    "gate",
    "unanswered gate",
    "regression",
    "undecided",
    "too little",
    "failed case",
    "failed score",
    "simulated user",
    "unreadable",
    "no records",
    "no scores",
    "failed test",
    "test session",
]


@dataclass(frozen=True)
class Reason:
    """One reason why a run does not pass, and the exit code it would have for this reason alone.

    ``subject`` is what it is about (a gate as it is written, a metric), ``text`` says why, ``cases`` are the ids of the
    cases behind it. ``metric`` and ``backend`` are there when it is about the scores of one metric, ``run`` says of
    which of several runs it holds.
    """

    kind: ReasonKind
    exit_code: int
    subject: str
    text: Said
    cases: tuple[str, ...] = ()
    metric: str | None = None
    backend: str | None = None
    run: str | None = None


@dataclass(frozen=True)
class Decision:
    """What was decided about a run.

    ``verdict`` is ``None`` when nothing was there to decide by. ``headline`` is the whole in one sentence, ``line``
    what statistics add to it. ``counts`` says how many cases are fine, wrong, flaky or doubtful, ``findings`` names
    those that are not fine, each with why. ``n_errors`` failed scores, unreadable inputs and, where ``max_errors`` is
    set, failed cases were held against it. ``gates`` and ``comparison`` are what it was made from, ``known_failures``
    the cases that were marked as such. ``made_with`` says what it was held against and with which options.
    """

    exit_code: int
    verdict: RunVerdict | None
    headline: Said
    reasons: tuple[Reason, ...] = ()
    gates: tuple[GateVerdict, ...] = ()
    comparison: Comparison | None = None
    n_errors: int = 0
    max_errors: int = 0
    known_failures: tuple[KnownFailure, ...] = ()
    line: Said = ""
    counts: CaseCounts | None = None
    findings: tuple[CaseFinding, ...] = ()
    made_with: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return str(import_module("agentunit.reports.printed").decision_text(self))

    @property
    def word(self) -> str:
        """The verdict as reports show it; empty when there is none."""
        return (self.verdict or "").upper()

    @property
    def said(self) -> str:
        """The headline without the verdict."""
        return self.headline.removeprefix(f"{self.word}: ")

    @property
    def failing_cases(self) -> tuple[str, ...]:
        """The ids of all cases behind the reasons for which it does not pass, in their order."""
        reasons = [reason for reason in self.reasons if reason.exit_code]
        return tuple(dict.fromkeys(case_id for reason in reasons for case_id in reason.cases))

    @property
    def cases_to_see(self) -> tuple[str, ...]:
        """The ids of the cases to look at: those behind the reasons, then what is newly flaky, wrong or flaky."""
        found = dict.fromkeys(self.failing_cases)
        for kind in ("newly failing", "newly flaky", "lost"):
            found |= dict.fromkeys(finding.case_id for finding in self.findings if finding.kind == kind)
        for state in ("wrong", "flaky", "doubtful"):
            found |= dict.fromkeys(finding.case_id for finding in self.findings if finding.state == state)
        return tuple(found)

    def why(self, case_id: str) -> str:
        """The sentence about a case; empty where it is fine."""
        return next((finding.why for finding in self.findings if finding.case_id == case_id), "")

    @property
    def way_out(self) -> str | None:
        """The command that would confirm what newly fails and was not tried again; ``None`` elsewhere."""
        comparison = self.comparison
        if self.exit_code != EXIT_CANNOT_TELL or comparison is None or not comparison.unconfirmed:
            return None
        if self.made_with.get("by") == FROM_FILE:
            # A run that is not in a store cannot be tried again.
            return None
        if self.made_with.get("try_again") is False:
            # Its suite says that what the agent does cannot be repeated.
            return None
        if self.made_with.get(_UNFINISHED):
            # The rest of it comes first, with "--resume".
            return None
        command = ["agentunit", "rerun", comparison.candidate, "--newly-failing"]
        if self.made_with.get("needs_suite"):
            command += ["--suite", "SUITE"]
        if self.made_with.get("by") not in ("run", "rerun"):
            # These note in the run what it is held against.
            command += ["--baseline", str(self.made_with.get("baseline", comparison.baseline))]
        return shlex.join(command)


def decide_run(
    run: ScoredRun,
    gates: Iterable[Gate | str] | None = None,
    comparison: Comparison | None = None,
    *,
    min_coverage: float | None = None,
    max_errors: int | None = None,
) -> Decision:
    """Decide about a run by its cases, by gates, an error allowance and a comparison.

    What is not passed in is the run's own.
    """
    settings = run.header.settings
    if gates is None:
        stored = settings.get("gates")
        gates = stored if isinstance(stored, (list, tuple)) else ()
    if min_coverage is None:
        min_coverage = stored_min_coverage(settings)
    if max_errors is None:
        max_errors = stored_max_errors(settings)
    verdicts: list[GateVerdict] = []
    gates = list(gates)
    if has_no_scores_yet(run):
        decision = decide(run, (), comparison, max_errors=max_errors)
        if comparison is None:
            decision = replace(decision, reasons=())
        elif decision.exit_code == EXIT_FAILED:
            return decision
        return not_decided(decision, f"the run {what_is_missing(run)}; --resume goes on")
    if gates:
        from agentunit.engine.deciding.gates import evaluate_gates

        verdicts = evaluate_gates(run, gates, min_coverage=min_coverage)
    return decide(run, verdicts, comparison, max_errors=max_errors)


def decide(
    run: ScoredRun,
    verdicts: Sequence[GateVerdict] = (),
    comparison: Comparison | None = None,
    *,
    max_errors: int | None = None,
) -> Decision:
    """The decision that cases, gate verdicts, a comparison and the errors of a run make together."""
    gates = [verdict.gate for verdict in verdicts]
    n_cases_run = _n_cases_run(run)
    known, run, rules, counts, findings = _by_case(run, gates, comparison)
    if comparison is None:
        reasons = _wrong_reasons(findings, gates, max_errors)
        if run.header.settings.get("set") and not gates:
            # Variants are ranked: without a gate none of them fails.
            reasons = []
    else:
        reasons = [*_case_reasons(comparison), *_comparison_reasons(comparison)]
    reasons += _gate_reasons(verdicts)
    n_errors, allowance = _errors(run, max_errors)
    if n_errors > (max_errors or 0):
        reasons += _error_reasons(run, with_failed=max_errors is not None)
    scored = any(row.value is not None for rows in run.metrics.values() for row in rows)
    if run.metrics and not scored and not verdicts and comparison is None:
        text = "no case could be scored: the data cannot tell"
        reasons.append(Reason("no scores", EXIT_CANNOT_TELL, "scores", text))
    users = _user_reason(run)
    if users is not None:
        reasons.append(users)
    named = {case_id for reason in reasons for case_id in reason.cases}
    if findings:
        findings = with_whys(run, findings, rules, named)
    if comparison is None:
        findings = _with_allowed(findings, verdicts, max_errors, named)
    if verdicts:
        findings += _gate_findings(run, verdicts, {finding.case_id for finding in findings})
    decided = _Parts(reasons, findings, comparison)
    is_ranked = bool(run.header.settings.get("set"))
    has_checks = not is_ranked and counts.fine + counts.wrong + counts.flaky > 0
    return _decided(
        reasons,
        decided.headlines(allowance),
        passed=decided.passed(verdicts, counts) if verdicts or comparison is not None or has_checks else None,
        undecided=str(counts),
        beside=_beside(users, known),
        n_cases_run=n_cases_run,
        gates=tuple(verdicts),
        comparison=comparison,
        n_errors=n_errors,
        max_errors=max_errors or 0,
        known_failures=known,
        line="" if comparison is None else _statistics(comparison),
        counts=counts,
        findings=tuple(findings),
        made_with=_what_its_run_says(run),
    )


def decide_comparison(comparison: Comparison, candidate: ScoredRun | None = None) -> Decision:
    """The decision of a comparison alone; with its ``candidate`` it also names why cases fail."""
    reasons = [*_case_reasons(comparison), *_comparison_reasons(comparison)]
    known: tuple[KnownFailure, ...] = ()
    findings: list[CaseFinding] = []
    counts: CaseCounts | None = None
    if candidate is not None:
        gates = stored_gates(candidate.header.settings)
        known, counted, rules, counts, findings = _by_case(candidate, gates, comparison)
        findings = with_whys(counted, findings, rules, {case for reason in reasons for case in reason.cases})
    decided = _Parts(reasons, findings, comparison)
    return _decided(
        reasons,
        decided.headlines(),
        passed=decided.passed((), counts),
        beside=_beside(None, known),
        n_cases_run="" if candidate is None else _n_cases_run(candidate),
        comparison=comparison,
        known_failures=known,
        line=_statistics(comparison),
        counts=counts,
        findings=tuple(findings),
        made_with={} if candidate is None else _what_its_run_says(candidate),
    )


def _what_its_run_says(run: ScoredRun) -> dict[str, Any]:
    """What a decision must know later: that the run is unfinished, or that the acts of its agent cannot be repeated."""
    said: dict[str, Any] = {}
    if run.header.settings.get("try_again") is False:
        said["try_again"] = False
    if is_unfinished(run):
        said[_UNFINISHED] = True
    return said


def has_no_scores_yet(run: ScoredRun) -> bool:
    """Whether a run was stopped before any of the metrics it was to have was scored."""
    has_metrics = bool(run.header.settings.get("metrics"))
    return has_metrics and run.header.status != "finished" and n_with_scores(run) == 0


def _by_case(
    run: ScoredRun, gates: Sequence[Gate], comparison: Comparison | None
) -> tuple[tuple[KnownFailure, ...], ScoredRun, dict[str, CheckRule], CaseCounts, list[CaseFinding]]:
    """The known failures of a run, the run without them, its checks, and how its cases stand."""
    known: tuple[KnownFailure, ...] = ()
    if run.header.settings.get(KNOWN_FAILURES):
        known = known_failures(run, gates)
        run = counted_part(run)
    rules = rules_of(run, gates, pass_fail={} if comparison is None else comparison.pass_fail)
    return known, run, rules, *findings_of(run, rules, comparison)


def not_decided(decision: Decision, why: str) -> Decision:
    """A decision that something is missing for: nothing says against the run, and nothing can say that it passes."""
    reason = Reason("too little", EXIT_CANNOT_TELL, "run", why)
    return replace(
        decision,
        exit_code=EXIT_CANNOT_TELL,
        verdict=_VERDICTS[EXIT_CANNOT_TELL],
        headline=f"CANNOT TELL: {why}",
        reasons=(*decision.reasons, reason),
    )


def decide_together(decisions: Mapping[str, Decision]) -> Decision:
    """One decision on several runs, by what each is called: the strictest of them, and the runs that it is due to.

    >>> both = {"a": Decision(0, "pass", "PASS: no worse"), "b": Decision(1, "fail", "FAIL: m is worse")}
    >>> decide_together(both).headline
    'FAIL: b: m is worse'
    """
    code = strictest(each.exit_code for each in decisions.values())
    verdict = None if all(each.verdict is None for each in decisions.values()) else _VERDICTS[code]
    word = "" if verdict is None else f"{verdict.upper()}: "
    if verdict is None:
        # Nothing says which would be good enough: they are ranked by their cases.
        ranked = sorted(decisions.items(), key=lambda entry: -entry[1].counts.fine if entry[1].counts else 0)
        decisions = dict(ranked)
    said = "; ".join(f"{label}: {each.said}" for label, each in decisions.items() if each.exit_code == code)
    reasons = (replace(reason, run=label) for label, each in decisions.items() for reason in each.reasons)
    return Decision(code, verdict, f"{word}{said}", tuple(reasons))


def strictest(codes: Iterable[int]) -> int:
    """The exit code of several decisions or reasons together: a failure first, then errors, then "cannot tell".

    >>> strictest([0, 4, 1]), strictest([])
    (1, 0)
    """
    found = set(codes)
    return next((each for each in _STRICTEST_FIRST if each in found), EXIT_PASS)


def decide_scoring(summary: RunSummary, max_errors: int) -> Decision:
    """The decision on records that were read and scored without a run around them."""
    n_errors = summary.n_input_errors + summary.n_score_errors
    reasons: list[Reason] = []
    if summary.n_cases == 0 and not n_errors:
        reasons.append(Reason("no records", EXIT_ERRORS, "input", "nothing to score: the input holds no records"))
    elif n_errors > max_errors:
        counted = f"{summary.n_input_errors} unreadable, {summary.n_score_errors} failed scores"
        text = f"errors: {n_errors} ({counted}), allowed: {max_errors} (--max-errors)"
        failed = [case for each in summary.unscored if each.status == "error" for case in each.first_cases]
        kind: ReasonKind = "failed score" if summary.n_score_errors else "unreadable"
        reasons.append(Reason(kind, EXIT_ERRORS, "errors", text, tuple(dict.fromkeys(failed))))
    elif not any(row.n_scored for row in summary.metrics):
        text = "no case could be scored: the data cannot tell"
        reasons.append(Reason("no scores", EXIT_CANNOT_TELL, "scores", text))
    headlines = [(reason.exit_code, reason.text + _first_of(reason.cases)) for reason in reasons]
    return _decided(reasons, headlines, undecided="scored", n_errors=n_errors, max_errors=max_errors)


def decide_ranking(n_runs: int, n_ranked: int, n_errors: int, max_errors: int) -> Decision:
    """The decision on runs that were ranked and not scored (``engine/suspects``): it fails nothing."""
    reasons: list[Reason] = []
    if not n_runs and not n_errors:
        reasons.append(Reason("no records", EXIT_ERRORS, "input", "nothing to rank: the input holds no records"))
    elif n_errors > max_errors:
        text = f"errors: {n_errors} unreadable, allowed: {max_errors} (--max-errors)"
        reasons.append(Reason("unreadable", EXIT_ERRORS, "errors", text))
    elif not n_ranked:
        text = "no run could be ranked: none has two other runs of the same task; the data cannot tell"
        reasons.append(Reason("no scores", EXIT_CANNOT_TELL, "scores", text))
    headlines = [(reason.exit_code, reason.text) for reason in reasons]
    return _decided(reasons, headlines, undecided="ranked", n_errors=n_errors, max_errors=max_errors)


def decide_tests(failed: Sequence[str], n_tests: int, *, session_exit_code: int = EXIT_PASS) -> Decision:
    """The decision of a test session: ``failed`` names the failed tests, of ``n_tests`` that evaluated something."""
    reasons: list[Reason] = []
    if failed:
        text = f"{_tests(len(failed))} of {n_tests} failed"
        reasons.append(Reason("failed test", EXIT_FAILED, "tests", text, tuple(failed)))
    elif session_exit_code:
        text = f"the test session ended with exit code {session_exit_code}; no test with an evaluation failed"
        reasons.append(Reason("test session", EXIT_FAILED, "session", text))
    headlines = [(reason.exit_code, reason.text + _in_cases(reason.cases, ": ")) for reason in reasons]
    passed = f"{_tests(n_tests)} passed" if n_tests else None
    return _decided(reasons, headlines, passed=passed, undecided="no test evaluated anything")


def stored_min_coverage(settings: Mapping[str, Any]) -> float:
    """The coverage a run says its gates need; a run from elsewhere is not trusted blindly."""
    stored = _stored(settings.get("min_coverage"), DEFAULT_MIN_COVERAGE)
    return stored if stored <= 1.0 else DEFAULT_MIN_COVERAGE


def stored_max_errors(settings: Mapping[str, Any]) -> int | None:
    """How many errors a run allows; ``None`` where that was not set: then cases decide about what the agent failed."""
    stored = settings.get("max_errors")
    return None if stored is None else int(_stored(stored, 0))


def _errors(run: ScoredRun, max_errors: int | None) -> tuple[int, str]:
    """How many errors count, and what a headline says of them. The agent's failures count where a number is set."""
    n_errors = run.n_score_errors + run.n_input_errors
    counted = "failed scores"
    if run.n_input_errors:
        counted = "unreadable records and failed scores"
    if max_errors is not None:
        n_errors += run.n_failed
        counted = "unreadable records, failed cases and scores" if run.n_input_errors else "failed cases and scores"
    return n_errors, f"{counted}: {n_errors}, allowed: {max_errors or 0}"


def _wrong_reasons(findings: Sequence[CaseFinding], gates: Sequence[Gate], max_errors: int | None) -> list[Reason]:
    """The cases in which a check fails in every try, unless something says how many may."""
    allowed = {gate.metric for gate in gates if gate.aggregate in _RATES or gate.aggregate[:1] == "p"}
    if max_errors is not None:
        allowed.add(ANSWERED.name)
    wrong: dict[str, None] = {}
    for finding in findings:
        if finding.state != "wrong":
            continue
        if any(metric not in allowed for metric in finding.wrong):
            wrong[finding.case_id] = None
    if not wrong:
        return []
    n_wrong = sum(finding.state == "wrong" for finding in findings)
    text = f"{n_wrong:,} wrong"
    if len(wrong) < n_wrong:
        text = f"{len(wrong):,} of {text} {'is' if len(wrong) == 1 else 'are'} not allowed by a gate"
    return [Reason("wrong", EXIT_FAILED, "cases", text, tuple(wrong))]


def _with_allowed(
    findings: Iterable[CaseFinding], verdicts: Sequence[GateVerdict], max_errors: int | None, named: set[str]
) -> list[CaseFinding]:
    """The findings, those of wrong cases that no reason names with what allows them."""
    marked: list[CaseFinding] = []
    for finding in findings:
        if finding.state == "wrong" and finding.case_id not in named:
            allowing = [
                str(each.gate) for each in verdicts if each.verdict == "pass" and each.gate.metric in finding.wrong
            ]
            if max_errors is not None and ANSWERED.name in finding.wrong:
                allowing.append(f"max_errors {max_errors}")
            finding = replace(finding, allowed_by=", ".join(allowing))
        marked.append(finding)
    return marked


def _case_reasons(comparison: Comparison) -> Iterable[Reason]:
    """What became of cases: broken ones fail the run; what newly fails and was not tried again may be chance."""
    broken, unconfirmed = comparison.broken, comparison.unconfirmed
    if broken:
        yield Reason("broken", EXIT_FAILED, "cases", f"{len(broken):,} broken", broken)
    if not unconfirmed:
        return
    p_chance = 1.0 if comparison.p_chance is None else comparison.p_chance
    text = f"{len(unconfirmed):,} newly failing"
    if p_chance < ALPHA:
        more = f"{text}, more than chance makes"
        yield Reason("newly failing", EXIT_FAILED, "cases", more, unconfirmed)
    else:
        code = EXIT_PASS if broken else EXIT_CANNOT_TELL
        yield Reason("newly failing", code, "cases", f"{text}, not tried to the end", unconfirmed)


def _comparison_reasons(comparison: Comparison) -> Iterable[Reason]:
    """What the metrics that count say, and whether the runs share enough."""
    names = dict(zip(map(id, comparison.metrics), comparison.labels, strict=True))
    for metric in comparison.regressions:
        facts = (names[id(metric)], metric.reason)
        yield Reason("regression", EXIT_FAILED, *facts, metric=metric.metric, backend=metric.backend)
    for metric in comparison.undecided:
        facts = (names[id(metric)], metric.reason)
        yield Reason("undecided", EXIT_CANNOT_TELL, *facts, metric=metric.metric, backend=metric.backend)
    if comparison.too_few is not None:
        text = "; ".join([comparison.too_few, *comparison.incomplete])
        yield Reason("too little", EXIT_CANNOT_TELL, "comparison", text)
        return
    # Without records nobody knows whether the answers are the same.
    is_same = comparison.is_unchanged and any(case.ok_before is not None for case in comparison.cases.values())
    is_open = comparison.incomplete or not (comparison.undecided or comparison.checks or is_same)
    if not comparison.has_scores and is_open:
        why = "; ".join([*comparison.incomplete, HOW_TO_GO_ON]) if comparison.incomplete else "no value is in both runs"
        yield Reason("undecided", EXIT_CANNOT_TELL, "comparison", f"no metric can be compared: {why}")
        return
    # That the agent answered at all says nothing about what it answered.
    differs = comparison.n_by_kind.get("other answer") or any(metric.difference for metric in comparison.metrics)
    if not comparison.tested and not comparison.checks and differs:
        text = "no check and no gate says what must not get worse; --on METRIC names some"
        yield Reason("undecided", EXIT_CANNOT_TELL, "comparison", text)


def _gate_reasons(verdicts: Iterable[GateVerdict]) -> Iterable[Reason]:
    for verdict in verdicts:
        facts = (str(verdict.gate), verdict.reason, verdict.cases, verdict.gate.metric, verdict.gate.backend)
        if verdict.verdict == "fail":
            yield Reason("gate", EXIT_FAILED, *facts)
        elif verdict.verdict == "error":
            yield Reason("unanswered gate", EXIT_ERRORS, *facts)
        elif verdict.verdict == "cannot tell":
            yield Reason("undecided", EXIT_CANNOT_TELL, *facts)


def _gate_findings(run: ScoredRun, verdicts: Iterable[GateVerdict], known: set[str]) -> list[CaseFinding]:
    """The cases that break a gate by themselves although no check of them fails, each with why."""
    whys: dict[str, str] = {}
    for verdict in verdicts:
        gate = verdict.gate
        broken = set(verdict.cases) - known if verdict.verdict == "fail" else set()
        for row in run.rows_of(gate.metric) or () if broken else ():
            if row.case_id in broken and row.value is not None and not gate.holds(row.value):
                whys.setdefault(row.case_id, f"{gate.metric} {row.value:.4g}, needs {gate.condition}")
        for case_id in verdict.cases:
            if case_id in broken:
                whys.setdefault(case_id, f"no value of {gate.metric} that counts, needs {gate.condition}")
    return [CaseFinding(case_id, "unknown", why=why) for case_id, why in whys.items()]


def _error_reasons(run: ScoredRun, *, with_failed: bool) -> list[Reason]:
    reasons = []
    if run.n_input_errors:
        parts = "1 part" if run.n_input_errors == 1 else f"{run.n_input_errors:,} parts"
        first = f"; first: {run.input_errors[0]}" if run.input_errors else ""
        reasons.append(Reason("unreadable", EXIT_ERRORS, "input", f"{parts} of the input could not be read{first}"))
    if run.n_failed and with_failed:
        failed = tuple(dict.fromkeys(record.case_id for record in run.records if record.failed))
        where = f"on {len(failed)} {'case' if len(failed) == 1 else 'cases'}" if failed else ""
        times = f" ({run.n_failed} times)" if run.n_failed != len(failed) else ""
        reasons.append(Reason("failed case", EXIT_ERRORS, "agent", f"the agent failed {where}{times}".strip(), failed))
    for name, rows in run.metrics.items():
        if not told_by(rows).n_errors:
            continue
        broken = [row.case_id for row in rows if row.status == "error"]
        text = f"{'1 score' if len(broken) == 1 else f'{len(broken)} scores'} of {name} failed"
        reasons.append(Reason("failed score", EXIT_ERRORS, name, text, tuple(dict.fromkeys(broken)), name))
    return reasons


def _user_reason(run: ScoredRun) -> Reason | None:
    """Cases that say nothing about the agent, because the simulated user failed. No exit code comes of it by itself."""
    failed = run.user_failed
    if not failed:
        return None
    cases = tuple(dict.fromkeys(record.case_id for record in failed))
    times = f" ({len(failed)} times)" if len(failed) != len(cases) else ""
    text = f"simulated user failed: {len(cases)} {'case' if len(cases) == 1 else 'cases'}{times}"
    # Where so much says nothing about the agent, the rest cannot say that it is good enough.
    is_too_much = len(failed) > (1.0 - DEFAULT_MIN_COVERAGE) * run.n_records
    return Reason("simulated user", EXIT_CANNOT_TELL if is_too_much else EXIT_PASS, "simulated user", text, cases)


def _met_by_the_point(verdicts: Iterable[GateVerdict]) -> str:
    """Which gates on a labeled rate are met although its interval reaches over the threshold."""
    said = (
        f"; {each.gate} by the point: its interval reaches {'above' if each.gate.holds(each.low) else 'below'}"
        for each in verdicts
        if each.verdict == "pass" and each.near and each.gate.aggregate == LABELED and each.low is not None
    )
    return "".join(said)


@dataclass(frozen=True)
class _Parts:
    """What the sentence is made of: cases first, then gates and metrics."""

    reasons: Sequence[Reason]
    findings: Sequence[CaseFinding]
    comparison: Comparison | None

    def headlines(self, allowance: str = "") -> list[tuple[int, str]]:
        """A part of the sentence for each reason, with the exit code of that reason."""
        parts: list[tuple[int, str]] = []
        errors = [reason for reason in self.reasons if reason.kind in ("unreadable", "failed case", "failed score")]
        for reason in self.reasons:
            if reason.kind in ("broken", "wrong", "newly failing"):
                parts.append((reason.exit_code, self._cases(reason)))
            elif reason.kind == "regression":
                parts.append((reason.exit_code, f"{reason.subject} {self._difference(reason)}"))
            elif reason.kind == "undecided":
                of_comparison = reason.subject == "comparison"
                said = reason.text if of_comparison else f"{reason.subject}: {reason.text.partition(';')[0]}"
                parts.append((reason.exit_code, said))
            elif reason in errors:
                if reason is errors[0]:
                    failed = list(dict.fromkeys(case for error in errors for case in error.cases))
                    cases = f" ({named_cases(failed, _CASES_NAMED)})" if failed else ""
                    parts.append((reason.exit_code, f"{allowance or reason.text}{cases}"))
            elif reason.kind in ("gate", "unanswered gate"):
                parts.append((reason.exit_code, f"{reason.subject}: {reason.text.partition(';')[0]}"))
            elif reason.kind != "simulated user":
                parts.append((reason.exit_code, reason.text))
            elif reason.exit_code:
                parts.append((reason.exit_code, f"{reason.text} ({named_cases(reason.cases, _CASES_NAMED)})"))
        return parts

    def _cases(self, reason: Reason) -> str:
        """How many cases, which, why the first of them fails, and what the metric came to."""
        findings = {finding.case_id: finding for finding in self.findings}
        first = reason.cases[0]
        why = findings[first].why if first in findings else ""
        because = f": {_shortened(why, _WHY_LENGTH)}" if why else ""
        if because and not _fail_alike([findings[case_id] for case_id in reason.cases if case_id in findings]):
            # The reason is that of the first case alone.
            others = named_cases(reason.cases[1:], _CASES_NAMED - 1)
            text = f"{reason.text} ({named_cases([first], 1)}{because}; {others})"
        else:
            text = f"{reason.text} ({named_cases(reason.cases, _CASES_NAMED)}{because})"
        if reason.kind != "broken" or self.comparison is None:
            return text
        text += _few_before(self.comparison, reason.cases)
        check = self.comparison.cases[reason.cases[0]].check
        if any(other.kind == "regression" and other.metric == check for other in self.reasons):
            # Its own part of the sentence says what it came to.
            return text
        for metric in self.comparison.metrics:
            if metric.metric == check and metric.candidate_mean is not None and metric.baseline_mean is not None:
                is_worse = (metric.difference or 0.0) * (1.0 if metric.direction == "lower" else -1.0) > 0.0
                if is_worse:
                    return f"{text}; {check} {metric.candidate_mean:.2f}, was {metric.baseline_mean:.2f}"
        return text

    def _difference(self, reason: Reason) -> str:
        assert self.comparison is not None
        for metric in self.comparison.metrics:
            if (metric.metric, metric.backend) == (reason.metric, reason.backend) and metric.verdict == "regression":
                return _before_and_now(metric)
        return "is worse"

    def passed(self, verdicts: Sequence[GateVerdict], counts: CaseCounts | None) -> str:
        """What the sentence of a run that passes says."""
        parts: list[str] = []
        if self.comparison is not None:
            against = self.comparison.baseline_label
            same = self.comparison.is_unchanged
            parts.append(f"no change from {against}" if same else f"nothing broken against {against}")
            fixed = self.comparison.ids_of("fixed")
            if fixed:
                parts.append(f"{len(fixed):,} fixed ({named_cases(fixed, _CASES_NAMED)})")
            # Nothing got worse by them, and a reader must not take them for fine.
            unknown_before = {*self.comparison.new, *self.comparison.ids_of("changed")}
            wrong = [finding.case_id for finding in self.findings if finding.state == "wrong"]
            wrong = [case_id for case_id in wrong if case_id in unknown_before]
            if wrong:
                parts.append(f"{len(wrong):,} new or changed and wrong ({named_cases(wrong, _CASES_NAMED)})")
        if verdicts:
            parts.append(
                f"{len(verdicts)} {'gate' if len(verdicts) == 1 else 'gates'} met{_met_by_the_point(verdicts)}"
            )
        if counts is not None and (self.comparison is None or not self.comparison.is_unchanged):
            parts.append(str(counts))
        return "; ".join(parts)


def _fail_alike(findings: Iterable[CaseFinding]) -> bool:
    """Whether the same check of all these cases fails for the same kind of reason: what stands before a colon."""
    checks: set[str | None] = set()
    kinds: set[str] = set()
    for finding in findings:
        checks.add(finding.check)
        kind, colon, _ = finding.why.partition(":")
        if colon:
            kinds.add(kind)
    return len(checks) <= 1 and len(kinds) <= 1


def _few_before(comparison: Comparison, cases: Iterable[str]) -> str:
    """What the sentence says where so few tries before tell little about how often a case passes."""
    n_tries = {comparison.cases[case_id].passed_before[1] for case_id in cases}
    if not n_tries <= _FEW_TIMES.keys():
        return ""
    return f", passed {' or '.join(_FEW_TIMES[n] for n in sorted(n_tries))} before"


def _before_and_now(metric: MetricComparison) -> str:
    if metric.baseline_mean is None or metric.candidate_mean is None:
        return "is worse"
    return f"{metric.candidate_mean:.3g}, was {metric.baseline_mean:.3g} ({metric.reason.partition(', ')[2]})"


def _statistics(comparison: Comparison) -> str:
    """The line under the sentence: what else became of cases, and what would have been seen."""
    parts: list[str] = []
    kinds: dict[CaseKind, str] = {"newly flaky": "newly flaky", "flaky": "flaky", "lost": "lost a check"}
    for kind, what in kinds.items():
        cases = comparison.ids_of(kind)
        if cases:
            parts.append(f"{len(cases):,} {what} ({named_cases(cases, _CASES_NAMED)})")
    counts = {
        "still failing": comparison.n_by_kind.get("still failing", 0),
        "changed, not compared": comparison.n_changed,
        "new": comparison.n_only_candidate,
        "gone": comparison.n_only_baseline,
    }
    parts += [f"{n:,} {what}" for what, n in counts.items() if n]
    if comparison.sentence:
        parts.append(comparison.sentence)
    return "; ".join(parts)


def _beside(users: Reason | None, known: Sequence[KnownFailure]) -> str:
    """What a headline says beside the verdict: simulated users that failed, and known failures."""
    said = "" if users is None or users.exit_code else f"; {users.text} ({named_cases(users.cases, _CASES_NAMED)})"
    fixed = [failure.case_id for failure in known if failure.state == "fixed"]
    aside = sum(failure.state in ("still fails", "unknown") for failure in known)
    said += f"; known failures set aside: {aside}" if aside else ""
    return said + (f"; fixed, remove the mark: {named_cases(fixed, _CASES_NAMED)}" if fixed else "")


def _n_cases_run(run: ScoredRun) -> str:
    """How many cases of its dataset a run has, where it does not have all."""
    n_in_dataset = run.header.settings.get(DATASET_CASES)
    if not isinstance(n_in_dataset, int):
        n_in_dataset = planned_cases(run) if is_unfinished(run) else 0
    return f"{run.n_cases:,} of {n_in_dataset:,} cases run" if run.n_cases < n_in_dataset else ""


def _decided(
    reasons: Sequence[Reason],
    headlines: Sequence[tuple[int, str]],
    *,
    passed: str | None = None,
    undecided: str = "",
    beside: str = "",
    n_cases_run: str = "",
    **facts: Any,
) -> Decision:
    code = strictest(reason.exit_code for reason in reasons)
    # Whatever is cut off: that it speaks of a part of the cases is said.
    at_the_end = f"; {n_cases_run}" if n_cases_run else ""
    most = _LONGEST_HEADLINE - len(at_the_end)
    if code == EXIT_PASS and passed is None:
        return Decision(code, None, _shortened(undecided + beside, most) + at_the_end, tuple(reasons), **facts)
    verdict = _VERDICTS[code]
    # Beside a failure or errors, what the data cannot tell is no news: the reasons list it.
    parts = [text for each, text in headlines if each and (each != EXIT_CANNOT_TELL or code == EXIT_CANNOT_TELL)]
    said = passed if code == EXIT_PASS else "; ".join(parts)
    headline = _shortened(f"{verdict.upper()}: {said}{beside}", most) + at_the_end
    return Decision(code, verdict, headline, tuple(reasons), **facts)


def _shortened(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def _first_of(cases: Sequence[str]) -> str:
    """The first of the cases, of which a summary keeps only some."""
    return f", first in {', '.join(cases[:_CASES_NAMED])}" if cases else ""


def _in_cases(cases: Sequence[str], before: str = " in ") -> str:
    distinct = list(dict.fromkeys(cases))
    return f"{before}{named_cases(distinct, _CASES_NAMED)}" if distinct else ""


def named_cases(cases: Sequence[str], most: int) -> str:
    """A few case ids, and how many more there are.

    >>> named_cases(["q1", "q2", "q3"], 2)
    'q1, q2 and 1 more'
    """
    lines = [" ".join(case.split()) for case in cases[:most]]
    shown = ", ".join(line if len(line) <= _ID_LENGTH else line[: _ID_LENGTH - 1] + "…" for line in lines)
    return shown if len(cases) <= most else f"{shown} and {len(cases) - most} more"


def _tests(n: int) -> str:
    return "1 test" if n == 1 else f"{n} tests"


def _stored(value: object, default: float) -> float:
    # A run may come from another machine or version: what it says about itself is not trusted blindly.
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value < inf else default  # type: ignore[operator,arg-type]
