"""What reports say of a run beside its figures: where it comes from, which cases are not fine, and what was decided."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from agentunit.engine.deciding.case_findings import CaseFinding
from agentunit.engine.deciding.comparison import (
    CaseAnswer,
    CaseDifference,
    CaseKind,
    CaseStanding,
    Comparison,
    MetricComparison,
)
from agentunit.engine.deciding.decision import EXIT_FAILED, Decision, Reason, named_cases
from agentunit.engine.deciding.stored import is_made_now
from agentunit.formulas.text import number
from agentunit.reports.figures import CASE_REASONS, counted, counted_cases, describe_reason
from agentunit.store.runs import RunHeader, StoredDecision

# A comparison in words that every report shares: which cases changed and how, what was tested, and by how much.

KIND_HEADINGS: dict[CaseKind, str] = {
    "broken": "Broken",
    "newly failing": "Newly failing, not tried to the end",
    "newly flaky": "Newly flaky",
    "flaky": "Flaky",
    "lost": "Lost",
    "fixed": "Fixed",
    "worse": "Worse",
    "better": "Better",
    "changed": "Changed: another question or expected answer under the same id",
    "other answer": "Another answer",
}
"""How reports call the kinds of cases that they list."""
_TOOLS_NAMED = 20
_CHANGED = {key: f"{key} changed" for key in ("schema", "version", "server", "server version")}


def describe_difference(each: MetricComparison) -> str:
    """The difference between two runs with its 95 % interval."""
    return "–" if each.difference is None else signed_interval(each.difference, each.low, each.high, each.unit)


def signed_interval(value: float, low: float | None, high: float | None, unit: str) -> str:
    """A difference with its interval.

    >>> signed_interval(-0.17, -0.3, 0.0, "score"), signed_interval(0.0, None, None, "score")
    ('-0.170 [-0.300, +0.000]', '+0.000')
    """
    if low is None or high is None:
        return _signed(value, unit)
    return f"{_signed(value, unit)} [{_signed(low, unit)}, {_signed(high, unit)}]"


def _signed(value: float, unit: str) -> str:
    # Two digits hide what matters here: a loss of 0.004 is not 0.00.
    if unit == "score":
        return f"{value:+.3f}"
    return f"{'-' if value < 0 else '+'}{number(abs(value), unit)}"


def describe_pairs(comparison: Comparison) -> str:
    """How many cases two runs share, and how many only one of them has."""
    alone = [
        f"{n:,} only in the {which}"
        for n, which in ((comparison.n_only_baseline, "baseline"), (comparison.n_only_candidate, "new run"))
        if n
    ]
    if comparison.n_set_aside:
        alone.append(f"{counted(comparison.n_set_aside, 'known failure')} set aside")
    return f"{counted_cases(comparison.n_paired)} in both{''.join(f', {each}' for each in alone)}"


def describe_kinds(comparison: Comparison) -> str:
    """How many cases of each kind there are, in one line; nothing where no case is in both runs.

    >>> counts = {"broken": 2, "fixed": 0, "unchanged": 7}
    >>> describe_kinds(Comparison("a", "b", 9, 0, 0, 0.01, (), n_by_kind=counts))
    '2 broken, 7 unchanged'
    """
    words = {"other answer": "with another answer and the same scores"}
    return ", ".join(f"{n:,} {words.get(kind, kind)}" for kind, n in comparison.n_by_kind.items() if n)


def describe_tested(comparison: Comparison) -> str:
    """Which metrics count, and why these; nothing where all that are shown do."""
    if not comparison.tested or all(each.gated for each in comparison.metrics):
        return ""
    why = {"gates": "checks, and the metrics with gates", "named": "checks, and as asked for", "nothing": "checks"}
    return f"tested: {', '.join(comparison.tested)} ({why[comparison.tested_by]}); the others are described"


def describe_standing(case: CaseStanding) -> str:
    """How often the check that a case is listed for failed, now and before.

    >>> describe_standing(CaseStanding("broken", True, False, "contains", 10, 10, 10, (3, 3)))
    'contains failed 10 of 10, passed 3 of 3 before; broken after 10'
    """
    if case.check is None:
        return ""
    passed, tries = case.passed_before
    count = f"failed {case.n_failed}" if case.n_failed else f"passed {case.n_tries}"
    now = f"{count} of {case.n_tries}" if case.n_tries else "not made"
    # The same answer each time shows it sooner.
    is_sooner = case.kind == "broken" and case.n_tries < (case.needed or 0)
    needed = "" if case.needed is None or is_sooner else f"; broken after {case.needed}"
    return f"{case.check} {now}, passed {passed} of {tries} before{needed}"


def describe_scores(difference: CaseDifference) -> str:
    """How the counted scores of a case changed.

    >>> from agentunit.engine.deciding.comparison import ScoreChange
    >>> describe_scores(CaseDifference("q1", "worse", (ScoreChange("m", 1.0, 0.5),)))
    'm 1.00 → 0.50'
    """
    return ", ".join(
        f"{each.metric} {number(each.baseline, each.unit)} → {number(each.candidate, each.unit)}"
        for each in difference.scores
    )


def describe_answers(difference: CaseDifference) -> list[tuple[str, str]]:
    """The two answers of a case, or the one that both runs gave; nothing where they are not known."""
    sides = (("before", difference.baseline), ("now", difference.candidate))
    texts = [(when, _answer_text(answer)) for when, answer in sides if answer is not None]
    if len(texts) == 2 and texts[0][1] == texts[1][1]:
        return [("same answer", texts[0][1])]
    return texts


def _answer_text(answer: CaseAnswer) -> str:
    if answer.error is not None:
        return f"the agent failed: {answer.error}"
    return "(no answer)" if answer.text is None else answer.text


def describe_tool_changes(comparison: Comparison) -> list[tuple[str, str]]:
    """How the tools of two runs differ: what changed, with the names of the tools and what is known about each."""
    by_kind: dict[str, list[str]] = {}
    for each in comparison.tools:
        if each.change == "called only now":
            known = f" ({each.candidate})"
        elif each.change == "no longer called":
            known = f" ({each.baseline} before)"
        else:
            known = "" if each.baseline is None else f" ({each.baseline} → {each.candidate})"
        by_kind.setdefault(_CHANGED.get(each.change, each.change), []).append(each.name + known)
    for names in by_kind.values():
        if len(names) > _TOOLS_NAMED:
            names[_TOOLS_NAMED:] = [f"and {len(names) - _TOOLS_NAMED} more"]
    return [(kind, ", ".join(names)) for kind, names in by_kind.items()]


_KNOWN_WORDS = {
    "fixed": "fixed: remove the mark",
    "expired": "counts again: the mark ended on {until}",
    "unknown": "set aside until {until}; no gate says whether it passes",
    "still fails": "still fails, set aside until {until}",
}
_IDS_SHOWN = {"fixed": 20, "expired": 20, "unknown": 5, "still fails": 5}
_COMMIT_DIGITS = 10
WRONG = "Wrong"
# What became of a case says more than how it stands by itself.
_KINDS_OF_CHECKS = ("broken", "newly flaky", "newly failing", "lost", "still failing")
FAILING_HEADINGS = (KIND_HEADINGS["broken"], KIND_HEADINGS["newly failing"], WRONG)
"""Over the cases that fail a run."""
_DECIDED_NOW = "decided now: no decision was kept with this run"


def origin_facts(header: RunHeader) -> list[tuple[str, str]]:
    """Name and text of what is known about the origin of a run, for reports."""
    settings = header.settings
    facts = []
    if tags := header.tags:
        facts.append(("tags", ", ".join(f"{key}={value}" for key, value in tags.items())))
    git = settings.get("git")
    if isinstance(git, Mapping) and isinstance(git.get("commit"), str):
        changed = " with uncommitted changes" if git.get("dirty") else ""
        facts.append(("commit", git["commit"][:_COMMIT_DIGITS] + changed))
    version, earlier = settings.get("agent_version"), settings.get("earlier_agent_versions")
    if isinstance(version, str):
        mixed = f" (some cases: {', '.join(map(str, earlier))})" if isinstance(earlier, list) and earlier else ""
        facts.append(("agent version", version + mixed))
    return facts


def describe_known_failures(decision: Decision, states: Collection[str] = tuple(_KNOWN_WORDS)) -> list[str]:
    """Lines about the cases that are marked as known to fail: how they stand, and why they were marked.

    Those with one reason and one date share a line; what asks for something to be done comes first.
    """
    alike: dict[tuple[str, str, str], list[str]] = {}
    for state in _KNOWN_WORDS:
        for each in decision.known_failures:
            if each.state == state and state in states:
                alike.setdefault((state, each.until, each.reason), []).append(each.case_id)
    return [
        f"{named_cases(cases, _IDS_SHOWN[state])}: {_KNOWN_WORDS[state].format(until=until)} ({reason})"
        for (state, until, reason), cases in alike.items()
    ]


def lines_under(decision: Decision) -> list[str]:
    """What stands under the sentence of a decision: what statistics add, and whether it was made for this report."""
    lines = [decision.line] if decision.line else []
    return [*lines, _DECIDED_NOW] if is_made_now(decision) else lines


def further_reasons(decision: Decision) -> list[Reason]:
    """The reasons that the sentence leaves out or cuts short. Cases that fail are listed elsewhere, with why."""
    said = decision.headline
    return [
        reason
        for reason in decision.reasons
        if reason.kind not in CASE_REASONS
        and describe_reason(reason) not in said
        and not (reason.kind == "regression" and reason.subject in said)
    ]


def describe_beside(stored: StoredDecision, decision: Decision, when: str) -> str:
    """What another command decided about a run, in one line."""
    against = "" if decision.comparison is None else f" against {decision.comparison.baseline_label}"
    return f"{stored.made_by}{against}, {when}: {decision.headline}"


def findings_by_case(decision: Decision) -> dict[str, CaseFinding]:
    """The findings of a decision, by the id of their case."""
    return {finding.case_id: finding for finding in decision.findings}


def failed_cases(decision: Decision) -> dict[str, CaseFinding]:
    """The cases that a run fails for: a check fails in every try, and nothing says that it may."""
    behind = {case_id for reason in decision.reasons if reason.exit_code == EXIT_FAILED for case_id in reason.cases}
    failed = (finding for finding in decision.findings if finding.state == "wrong" and finding.case_id in behind)
    return {finding.case_id: finding for finding in failed}


def findings_by_heading(decision: Decision) -> dict[str, list[CaseFinding]]:
    """The cases to list, by what they are called: those that fail the run first, then the flaky ones.

    Without a baseline all wrong cases are listed, those too that a gate allows.
    """
    failed = failed_cases(decision)
    flaky = KIND_HEADINGS["flaky"]
    headings = [heading for kind, heading in KIND_HEADINGS.items() if kind in _KINDS_OF_CHECKS]
    listed: dict[str, list[CaseFinding]] = {heading: [] for heading in (*headings, WRONG, flaky)}
    for finding in decision.findings:
        heading = KIND_HEADINGS.get(finding.kind) if finding.kind in _KINDS_OF_CHECKS else None
        # Beside a baseline what is wrong may be no news, unless the run fails for it.
        is_wrong = finding.case_id in failed or (decision.comparison is None and finding.state == "wrong")
        if is_wrong and heading not in FAILING_HEADINGS:
            heading = WRONG
        elif heading is None and finding.state == "flaky":
            heading = flaky
        if heading is not None:
            listed[heading].append(finding)
    return {heading: findings for heading, findings in listed.items() if findings}


def word_of(finding: CaseFinding) -> str:
    """What a case is called.

    >>> word_of(CaseFinding("q1", "wrong", "broken")), word_of(CaseFinding("q2", "doubtful", "unchanged"))
    ('broken', 'doubtful')
    """
    return finding.kind if finding.kind in _KINDS_OF_CHECKS else finding.state


def describe_finding(finding: CaseFinding, comparison: Comparison | None = None) -> str:
    """Why a case is not fine, how often its check failed, and which gate allows that.

    >>> describe_finding(CaseFinding("q1", "wrong", None, "contains", n_failed=3, n_tries=3, why='missing: "Room 36"'))
    'missing: "Room 36" (contains failed 3 of 3)'
    """
    allowed = f" (allowed by {finding.allowed_by})" if finding.allowed_by else ""
    return _why_and_tries(finding, comparison) + allowed


def _why_and_tries(finding: CaseFinding, comparison: Comparison | None) -> str:
    standing = None if comparison is None else comparison.cases.get(finding.case_id)
    tries = "" if standing is None else describe_standing(standing)
    if not tries and finding.n_failed:
        tries = f"{finding.check} failed {finding.n_failed} of {finding.n_tries}"
    if not tries or not finding.why or finding.why.startswith(f"{finding.check} failed in "):
        return tries or finding.why
    return f"{finding.why} ({tries})"


def describe_change(difference: CaseDifference, comparison: Comparison, findings: Mapping[str, CaseFinding]) -> str:
    """What became of a case: why its check fails and how often, or else how its scores changed.

    ``findings`` are those of the decision, by case.
    """
    standing, finding = comparison.cases.get(difference.case_id), findings.get(difference.case_id)
    if standing is None or standing.check is None:
        return describe_scores(difference)
    return describe_standing(standing) if finding is None else describe_finding(finding, comparison)


def origin_as_data(header: RunHeader) -> dict[str, object]:
    """The same for JSON."""
    settings = header.settings
    return {"tags": header.tags, "git": settings.get("git"), "agent_version": settings.get("agent_version")}
