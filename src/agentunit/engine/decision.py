"""The one decision on a run: its exit code, its headline, and every reason with the cases behind it.

Gates, the comparison with a baseline and errors are put together here and nowhere else. The terminal, every report
and every exit code render this decision; none makes its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Literal

from agentunit.core.results import RunSummary
from agentunit.engine.comparison import CaseKind, Comparison
from agentunit.engine.gate_expressions import LABELED, Gate, stored_gates
from agentunit.engine.gates import DEFAULT_MIN_COVERAGE, GateVerdict, evaluate_gates
from agentunit.engine.known_failures import KnownFailure, counted_part, known_failures
from agentunit.engine.scored_run import ScoredRun
from agentunit.engine.stored_rows import n_errors_of
from agentunit.engine.unfinished import HOW_TO_GO_ON

EXIT_PASS, EXIT_FAILED, EXIT_USAGE, EXIT_ERRORS, EXIT_CANNOT_TELL = 0, 1, 2, 3, 4
_VERDICTS: dict[int, RunVerdict] = {
    EXIT_PASS: "pass",
    EXIT_FAILED: "fail",
    EXIT_ERRORS: "errors",
    EXIT_CANNOT_TELL: "cannot tell",
}
# Whoever treats 3 as an outage to be retried must not wave a failure through: a failure comes first.
_STRICTEST_FIRST = (EXIT_FAILED, EXIT_ERRORS, EXIT_CANNOT_TELL)
_WORSE_KINDS: tuple[CaseKind, ...] = ("newly failing", "worse")
_BETTER_KINDS: tuple[CaseKind, ...] = ("fixed", "better")
_CASES_NAMED = 3
_ID_LENGTH = 40

RunVerdict = Literal["pass", "fail", "errors", "cannot tell"]
Unsure = Literal["pass", "fail", "by-case"]
ReasonKind = Literal[
    "newly failing",
    "gate",
    "unanswered gate",
    "regression",
    "undecided",
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
    cases behind it, the worst first. ``metric`` and ``backend`` are there when it is about the scores of one metric,
    ``run`` says of which of several runs it holds.
    """

    kind: ReasonKind
    exit_code: int
    subject: str
    text: str
    cases: tuple[str, ...] = ()
    metric: str | None = None
    backend: str | None = None
    run: str | None = None


@dataclass(frozen=True)
class Decision:
    """What was decided about a run.

    ``verdict`` is ``None`` when nothing was there to decide by: no gate, no baseline, and no error too many.
    ``headline`` is the whole in one sentence. ``n_errors`` failed cases and scores were held against ``max_errors``.
    ``gates`` and ``comparison`` are what it was made from. ``known_failures`` are the cases that were marked as such.
    ``unsure`` is what someone said that "cannot tell" counts as, where that made the decision.
    """

    exit_code: int
    verdict: RunVerdict | None
    headline: str
    reasons: tuple[Reason, ...] = ()
    gates: tuple[GateVerdict, ...] = ()
    comparison: Comparison | None = None
    n_errors: int = 0
    max_errors: int = 0
    known_failures: tuple[KnownFailure, ...] = ()
    unsure: Unsure | None = None

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
        """The ids of all cases behind the reasons: those that newly fail first, then in the order of the reasons."""
        failing = {case for reason in self.reasons if reason.exit_code for case in reason.cases}
        return tuple(case for case in self.cases_to_see if case in failing)

    @property
    def cases_to_see(self) -> tuple[str, ...]:
        """The ids of the cases to look at, in this order: those that newly fail, then those behind the reasons."""
        counted = (each for each in self.reasons if each.exit_code or each.kind == "newly failing")
        return tuple(dict.fromkeys(case for reason in counted for case in reason.cases))

    @property
    def way_out(self) -> str | None:
        """What one can do where the data cannot tell whether the run is worse than a baseline; ``None`` elsewhere."""
        comparison = self.comparison
        if self.exit_code != EXIT_CANNOT_TELL or comparison is None or not comparison.n_by_kind:
            return None
        others = any(each.exit_code and each.kind != "undecided" for each in self.reasons)
        undecided = comparison.undecided
        # Where cases or scores are missing, others would not help: the reason says what does.
        if others or not undecided or any(each.cases_needed is None for each in undecided):
            return None
        n_worse, n_better = (
            sum(comparison.n_by_kind.get(kind, 0) for kind in kinds) for kinds in (_WORSE_KINDS, _BETTER_KINDS)
        )
        better = f", {n_better:,} better" if n_better else ""
        seen = f"{n_worse:,} of {comparison.n_paired:,} cases worse{better}" if n_worse else f"no case is worse{better}"
        code = count_unsure(self, "by-case").exit_code
        return f"{seen}. More cases would tell; --unsure by-case decides by these cases alone (exit code {code})"


def decide_run(
    run: ScoredRun,
    gates: Iterable[Gate | str] | None = None,
    comparison: Comparison | None = None,
    *,
    min_coverage: float | None = None,
    max_errors: int | None = None,
) -> Decision:
    """Decide about a run by gates, an error allowance and a comparison; what is not passed in is the run's own."""
    settings = run.header.settings
    if gates is None:
        stored = settings.get("gates")
        gates = stored if isinstance(stored, (list, tuple)) else ()
    if min_coverage is None:
        min_coverage = stored_min_coverage(settings)
    if max_errors is None:
        max_errors = int(_stored(settings.get("max_errors"), 0))
    return decide(run, evaluate_gates(run, gates, min_coverage=min_coverage), comparison, max_errors=max_errors)


def decide(
    run: ScoredRun, verdicts: Sequence[GateVerdict] = (), comparison: Comparison | None = None, *, max_errors: int = 0
) -> Decision:
    """The decision that gate verdicts, a comparison and the errors of a run make together."""
    known = known_failures(run, [verdict.gate for verdict in verdicts])
    run = counted_part(run)
    reasons = [*_newly_failing(comparison), *_gate_reasons(verdicts), *_comparison_reasons(comparison)]
    headlines = _headline_parts(reasons)
    errors = _error_reasons(run)
    n_errors = run.n_failed + run.n_score_errors + run.n_input_errors
    counted = "unreadable records, failed cases and scores" if run.n_input_errors else "failed cases and scores"
    allowance = f"{counted}: {n_errors}, allowed: {max_errors}"
    if n_errors > max_errors:
        reasons += errors
        failed = list(dict.fromkeys(case for reason in errors for case in reason.cases))
        headlines.append((EXIT_ERRORS, f"{allowance} ({named_cases(failed, _CASES_NAMED)})" if failed else allowance))
    scored = any(row.value is not None for rows in run.metrics.values() for row in rows)
    if run.metrics and not scored and not verdicts and comparison is None:
        text = "no case could be scored: the data cannot tell"
        reasons.append(Reason("no scores", EXIT_CANNOT_TELL, "scores", text))
        headlines.append((EXIT_CANNOT_TELL, text))
    users = _user_reason(run)
    if users is not None:
        reasons.append(users)
    met = [f"{len(verdicts)} {'gate' if len(verdicts) == 1 else 'gates'} met"] if verdicts else []
    unsure = _met_by_the_point(verdicts)
    if comparison is not None:
        met.append(_no_worse(comparison))
    beside = f"; {users.text} ({named_cases(users.cases, _CASES_NAMED)})" if users is not None else ""
    allowed = unsure + _beside_pass(reasons) + (f"; {allowance}" if n_errors else "") + beside + _known_part(known)
    return _decided(
        reasons,
        [(code, text + beside) if at == 0 else (code, text) for at, (code, text) in enumerate(headlines)],
        passed=f"{', '.join(met)}{allowed}" if met else None,
        undecided=f"recorded and scored; no gates to decide by{allowed}",
        gates=tuple(verdicts),
        comparison=comparison,
        n_errors=n_errors,
        max_errors=max_errors,
        known_failures=known,
    )


def decide_comparison(comparison: Comparison, candidate: ScoredRun | None = None) -> Decision:
    """The decision of a comparison alone; with its ``candidate`` it also says how the known failures of that stand."""
    reasons = [*_newly_failing(comparison), *_comparison_reasons(comparison)]
    known = () if candidate is None else known_failures(candidate, stored_gates(candidate.header.settings))
    passed = _no_worse(comparison) + _beside_pass(reasons) + _known_part(known)
    return _decided(reasons, _headline_parts(reasons), passed=passed, comparison=comparison, known_failures=known)


def decide_together(decisions: Mapping[str, Decision]) -> Decision:
    """One decision on several runs, by what each is called: the strictest of them, and the runs that it is due to.

    >>> both = {"a": Decision(0, "pass", "PASS: no worse"), "b": Decision(1, "fail", "FAIL: m is worse")}
    >>> decide_together(both).headline
    'FAIL: b: m is worse'
    """
    code = strictest(each.exit_code for each in decisions.values())
    verdict = None if all(each.verdict is None for each in decisions.values()) else _VERDICTS[code]
    word = "" if verdict is None else f"{verdict.upper()}: "
    said = "; ".join(f"{label}: {each.said}" for label, each in decisions.items() if each.exit_code == code)
    reasons = (replace(reason, run=label) for label, each in decisions.items() for reason in each.reasons)
    return Decision(code, verdict, f"{word}{said}", tuple(reasons))


def count_unsure(decision: Decision, unsure: Unsure | None) -> Decision:
    """The decision where "cannot tell" counts as a pass or as a failure; any other decision stays as it is.

    "by-case" counts it as a failure where more cases passed in every repeat of the baseline and fail in every one now
    than chance makes, else as a pass. It fails such a run also where the loss is within the margin.

    >>> unsure = Decision(EXIT_CANNOT_TELL, "cannot tell", "CANNOT TELL: 5 cases")
    >>> count_unsure(unsure, "pass").headline
    'PASS: cannot tell, which counts as a pass: 5 cases'
    """
    if unsure == "by-case" and decision.exit_code in (EXIT_PASS, EXIT_CANNOT_TELL):
        newly_failing = next((each for each in decision.reasons if each.kind == "newly failing"), None)
        if newly_failing is not None and decision.comparison is not None and decision.comparison.breaks_cases:
            return _failed_by_case(decision, newly_failing, decision.comparison.failing_in_every_repeat)
    if unsure is None or decision.exit_code != EXIT_CANNOT_TELL:
        return decision
    code = EXIT_FAILED if unsure == "fail" else EXIT_PASS
    counted = "a failure" if unsure == "fail" else "a pass"
    none = _why_none_is_broken(decision.comparison) if unsure == "by-case" else ""
    return replace(
        decision,
        exit_code=code,
        verdict=_VERDICTS[code],
        headline=f"{_VERDICTS[code].upper()}: cannot tell, which counts as {counted}{none}: {decision.said}",
        reasons=tuple(replace(each, exit_code=code) if each.exit_code else each for each in decision.reasons),
        unsure=unsure,
    )


def _why_none_is_broken(comparison: Comparison | None) -> str:
    if comparison is None or comparison.p_broken is None:
        return ", as no case newly fails in every repeat"
    n_broken, chance = len(comparison.failing_in_every_repeat), f"p = {comparison.p_broken:.2g}"
    return f", as chance alone may make {n_broken:,} fail in every repeat ({chance}; more repeats would decide)"


def _failed_by_case(decision: Decision, newly_failing: Reason, in_every_repeat: Collection[str]) -> Decision:
    """The failure of a run because of cases that are broken for sure; what else is said about it stays."""
    cases = tuple(each for each in newly_failing.cases if each in in_every_repeat)
    failed = replace(newly_failing, exit_code=EXIT_FAILED, cases=cases)
    otherwise = "the data cannot tell"
    if decision.exit_code == EXIT_PASS:
        otherwise = decision.headline.removeprefix(f"{decision.word}: ").replace(_beside_pass([newly_failing]), "")
    return replace(
        decision,
        exit_code=EXIT_FAILED,
        verdict="fail",
        headline=f"FAIL: {_headline_part(newly_failing)}; otherwise {otherwise}",
        reasons=tuple(failed if each is newly_failing else each for each in decision.reasons),
        unsure="by-case",
    )


def strictest(codes: Iterable[int]) -> int:
    """The exit code of several decisions or reasons together: a failure first, then errors, then "cannot tell".

    >>> strictest([0, 4, 1]), strictest([])
    (1, 0)
    """
    found = set(codes)
    return next((each for each in _STRICTEST_FIRST if each in found), EXIT_PASS)


def _no_worse(comparison: Comparison) -> str:
    return f"no {'change from' if comparison.is_unchanged else 'worse than'} {comparison.baseline_label}"


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


def _decided(
    reasons: Sequence[Reason],
    headlines: Sequence[tuple[int, str]],
    *,
    passed: str | None = None,
    undecided: str = "",
    **facts: Any,
) -> Decision:
    code = strictest(reason.exit_code for reason in reasons)
    if code == EXIT_PASS and passed is None:
        return Decision(code, None, undecided, **facts)
    verdict = _VERDICTS[code]
    # Beside a failure or errors, what the data cannot tell is no news: the reasons list it.
    parts = [text for each, text in headlines if each != EXIT_CANNOT_TELL or code == EXIT_CANNOT_TELL]
    said = passed if code == EXIT_PASS else "; ".join(parts)
    return Decision(code, verdict, f"{verdict.upper()}: {said}", tuple(reasons), **facts)


def _gate_reasons(verdicts: Iterable[GateVerdict]) -> Iterable[Reason]:
    for each in verdicts:
        facts = (str(each.gate), each.reason, each.cases, each.gate.metric, each.gate.backend)
        if each.verdict == "fail":
            yield Reason("gate", EXIT_FAILED, *facts)
        elif each.verdict == "error":
            yield Reason("unanswered gate", EXIT_ERRORS, *facts)
        elif each.verdict == "cannot tell":
            yield Reason("undecided", EXIT_CANNOT_TELL, *facts)


def _newly_failing(comparison: Comparison | None) -> Iterable[Reason]:
    """The cases that newly fail. No exit code comes of it by itself: chance makes some cases fail now and then."""
    cases = () if comparison is None else comparison.newly_failing
    if comparison is not None and cases:
        n_broken = len(comparison.failing_in_every_repeat)
        repeats = "" if n_broken == len(cases) else f", {n_broken or 'none'} of them in every repeat"
        yield Reason("newly failing", EXIT_PASS, "newly failing", f"{len(cases):,} newly failing{repeats}", cases)


def _comparison_reasons(comparison: Comparison | None) -> Iterable[Reason]:
    if comparison is None:
        return
    names = dict(zip(map(id, comparison.metrics), comparison.labels, strict=True))
    for each in comparison.regressions:
        worse = tuple(change.case_id for change in each.got_worse)
        yield Reason("regression", EXIT_FAILED, names[id(each)], each.reason, worse, each.metric, each.backend)
    for each in comparison.undecided:
        facts = (names[id(each)], each.reason)
        yield Reason("undecided", EXIT_CANNOT_TELL, *facts, metric=each.metric, backend=each.backend)
    if not comparison.has_scores and (comparison.incomplete or not comparison.undecided):
        why = "; ".join([*comparison.incomplete, HOW_TO_GO_ON]) if comparison.incomplete else "no value is in both runs"
        yield Reason("undecided", EXIT_CANNOT_TELL, "comparison", f"no metric can be compared: {why}")
        return
    scores_changed = any(each.unit == "score" and (each.got_worse or each.got_better) for each in comparison.metrics)
    if not comparison.tested and (scores_changed or not comparison.is_unchanged):
        text = "no metric counts for the decision; --on names some"
        yield Reason("undecided", EXIT_CANNOT_TELL, "comparison", text)


def _error_reasons(run: ScoredRun) -> list[Reason]:
    reasons = []
    if run.n_input_errors:
        parts = "1 part" if run.n_input_errors == 1 else f"{run.n_input_errors:,} parts"
        first = f"; first: {run.input_errors[0]}" if run.input_errors else ""
        reasons.append(Reason("unreadable", EXIT_ERRORS, "input", f"{parts} of the input could not be read{first}"))
    if run.n_failed:
        failed = tuple(dict.fromkeys(record.case_id for record in run.records if record.failed))
        where = f"on {len(failed)} {'case' if len(failed) == 1 else 'cases'}" if failed else ""
        times = f" ({run.n_failed} times)" if run.n_failed != len(failed) else ""
        reasons.append(Reason("failed case", EXIT_ERRORS, "agent", f"the agent failed {where}{times}".strip(), failed))
    broken = {
        name: [row.case_id for row in rows if row.status == "error"]
        for name, rows in run.metrics.items()
        if n_errors_of(rows)
    }
    for name, cases in broken.items():
        scores = "1 score" if len(cases) == 1 else f"{len(cases)} scores"
        text = f"{scores} of {name} failed"
        reasons.append(Reason("failed score", EXIT_ERRORS, name, text, tuple(dict.fromkeys(cases)), name))
    return reasons


def _user_reason(run: ScoredRun) -> Reason | None:
    """Cases that say nothing about the agent, because the simulated user failed. No exit code comes of it by itself."""
    failed = run.user_failed
    if not failed:
        return None
    cases = tuple(dict.fromkeys(record.case_id for record in failed))
    times = f" ({len(failed)} times)" if len(failed) != len(cases) else ""
    text = f"simulated user failed: {len(cases)} {'case' if len(cases) == 1 else 'cases'}{times}"
    return Reason("simulated user", EXIT_PASS, "simulated user", text, cases)


def _met_by_the_point(verdicts: Iterable[GateVerdict]) -> str:
    """Which gates on a labeled rate are met although its interval reaches over the threshold."""
    said = (
        f"; {each.gate} by the point: its interval reaches {'above' if each.gate.holds(each.low) else 'below'}"
        for each in verdicts
        if each.verdict == "pass" and each.near and each.gate.aggregate == LABELED and each.low is not None
    )
    return "".join(said)


def _known_part(known: Sequence[KnownFailure]) -> str:
    """What a headline says about cases that are known to fail."""
    fixed = [each.case_id for each in known if each.state == "fixed"]
    aside = sum(each.state in ("still fails", "unknown") for each in known)
    said = f"; known failures set aside: {aside}" if aside else ""
    return said + (f"; fixed, remove the mark: {named_cases(fixed, _CASES_NAMED)}" if fixed else "")


def _headline_parts(reasons: Sequence[Reason]) -> list[tuple[int, str]]:
    """What a headline says of each reason. Cases that newly fail are named once, before all others."""
    named = any(reason.kind == "newly failing" for reason in reasons)
    without = (replace(each, cases=()) if named and each.kind == "regression" else each for each in reasons)
    return [(each.exit_code, _headline_part(each)) for each in without]


def _beside_pass(reasons: Sequence[Reason]) -> str:
    """What the headline of a run that passes says about cases that newly fail."""
    return "".join(f"; {_headline_part(each)}" for each in reasons if each.kind == "newly failing")


def _headline_part(reason: Reason) -> str:
    if reason.kind == "newly failing":
        return reason.text + _in_cases(reason.cases, ": ")
    if reason.kind == "regression":
        return f"{reason.subject} is worse than the baseline{_in_cases(reason.cases)}"
    if reason.kind == "undecided":
        return reason.text if reason.subject == "comparison" else f"{reason.subject}: {reason.text}"
    if reason.kind == "gate" and not reason.cases:
        return f"{reason.subject} ({reason.text.partition(';')[0]})"
    return f"{reason.subject}{_in_cases(reason.cases)}"


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
