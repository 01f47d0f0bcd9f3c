"""What was decided about a run as its page shows it (``Decision`` of types.ts): rendered, never decided here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from agentunit.core.results import STATES, RunFinding
from agentunit.engine.deciding.case_findings import CaseFinding
from agentunit.engine.deciding.decision import Decision, Reason
from agentunit.engine.deciding.stored import MOST_FINDINGS, is_made_now
from agentunit.reports.console import FINDINGS_SHOWN
from agentunit.reports.figures import describe_reason
from agentunit.reports.finding_text import describe_run_finding
from agentunit.reports.reported_run import ReportedRun
from agentunit.reports.run_facts import describe_standing, further_reasons, word_of

CASES_NAMED = 200
_CASES_OF_A_GROUP = 50
_CASES_OF_A_FINDING = 8
# They have a table of their own.
_GATES = ("gate", "unanswered gate")
_WORDS = ("broken", "newly failing", "newly flaky", "lost", "still failing", *STATES)


def decision_data(reported: ReportedRun, headline: str) -> dict[str, Any]:
    """The decision of a run with the cases that are not fine; of a run that is going on without a verdict."""
    decision = reported.decision
    is_live = reported.run.header.status == "running"
    counts = "" if decision.counts is None else str(decision.counts)
    return {
        "verdict": None if is_live else decision.verdict,
        "headline": headline,
        "line": decision.line,
        "counts": "" if counts in headline else counts,
        "decided_now": is_decided_now(reported),
        "reasons": [] if is_live else [_reason(each) for each in further_reasons(decision) if each.kind not in _GATES],
        "groups": _groups(decision),
        "beside": list(_beside(reported)),
        "exit_code": decision.exit_code,
        "n_errors": decision.n_errors,
        "max_errors": decision.max_errors,
    }


def findings_data(findings: Sequence[RunFinding]) -> dict[str, Any]:
    """What is wrong with a run, as every report begins (``RunFinding`` of types.ts), and how much more there is."""
    return {
        "findings": [_run_finding(each) for each in findings[:FINDINGS_SHOWN]],
        "n_more_findings": max(0, len(findings) - FINDINGS_SHOWN),
    }


def _run_finding(finding: RunFinding) -> dict[str, Any]:
    facts = {name: getattr(finding, name) for name in ("word", "n_cases", "n_of", "repeat")}
    return {
        **facts,
        **describe_run_finding(finding)._asdict(),
        "cases": list(finding.cases[:_CASES_OF_A_FINDING]),
    }


def is_decided_now(reported: ReportedRun) -> bool:
    """Whether a run that has ended was decided for this page, because no decision was kept with it."""
    return reported.run.header.status != "running" and is_made_now(reported.decision)


def _reason(reason: Reason) -> dict[str, Any]:
    return {"kind": reason.kind, "text": describe_reason(reason), "cases": list(reason.cases[:CASES_NAMED])}


def _groups(decision: Decision) -> list[dict[str, Any]]:
    """The cases that are not fine, by what they are called."""
    groups: dict[str, list[CaseFinding]] = {word: [] for word in _WORDS}
    for finding in decision.findings:
        groups[word_of(finding)].append(finding)
    # What is kept of a long run is only a part, and no number of cases.
    is_cut = len(decision.findings) >= MOST_FINDINGS
    return [
        {
            "word": word,
            "n": None if is_cut else len(findings),
            "cases": [finding_data(each, decision) for each in findings[:_CASES_OF_A_GROUP]],
        }
        for word, findings in groups.items()
        if findings
    ]


def words_of(decision: Decision | None) -> dict[str, str] | None:
    """What the cases are called that are not fine; ``None`` where not all of them are known."""
    if decision is None or is_made_now(decision) or len(decision.findings) >= MOST_FINDINGS:
        return None
    return {finding.case_id: word_of(finding) for finding in decision.findings}


def finding_data(finding: CaseFinding, decision: Decision) -> dict[str, Any]:
    """A case that is not fine (``CaseFinding`` of types.ts)."""
    standing = None if decision.comparison is None else decision.comparison.cases.get(finding.case_id)
    tries = "" if standing is None else describe_standing(standing)
    if not tries and finding.n_failed:
        tries = f"{finding.check} failed {finding.n_failed} of {finding.n_tries}"
    return {"word": word_of(finding), "case_id": finding.case_id, "tries": tries, "why": finding.why}


def _beside(reported: ReportedRun) -> Iterable[dict[str, Any]]:
    """The decisions that other commands made about the run, each with its name."""
    for stored, decision in reported.beside:
        yield {
            "made_by": stored.made_by,
            "made_at": stored.made_at,
            "against": "" if decision.comparison is None else decision.comparison.baseline_label,
            "verdict": decision.verdict,
            "headline": decision.headline,
        }
