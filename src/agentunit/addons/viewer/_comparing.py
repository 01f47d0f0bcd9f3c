"""Two runs beside each other (``ComparePage`` of types.ts), as the engine's comparison finds them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentunit.addons.viewer._decided import findings_data
from agentunit.addons.viewer._library import Library
from agentunit.addons.viewer._run_pages import header_line
from agentunit.addons.viewer._shown_case import key_of
from agentunit.engine.deciding.compare import compare_runs
from agentunit.engine.deciding.comparison import CaseAnswer, CaseDifference, Comparison, labels_of
from agentunit.engine.deciding.decision import Decision, decide_comparison
from agentunit.engine.deciding.stored import decisions_beside, own_decision
from agentunit.engine.scoring.scored_run import ScoredRun, run_from_store
from agentunit.reports.case_view import plain
from agentunit.reports.raters import describe_pairwise
from agentunit.reports.reported_run import Mask, ReportedRun
from agentunit.reports.run_facts import (
    describe_difference,
    describe_kinds,
    describe_pairs,
    describe_standing,
    describe_tested,
    describe_tool_changes,
)

_METRIC_FACTS = (
    *("metric", "backend", "unit", "direction", "verdict", "reason", "gated", "note", "n_pairs", "baseline_mean"),
    *("candidate_mean", "difference", "low", "high", "p_worse", "p_adjusted", "margin", "smallest_detectable"),
    "cases_needed",
)
# What fails now has a reason to be listed for; another case may be doubted for one of its own.
_EXPLAINED = ("broken", "newly failing", "newly flaky", "flaky", "lost")


def compare_page(
    library: Library, baseline: str, candidate: str, *, personal: bool = False, wait: bool = False
) -> dict[str, Any]:
    """The comparison of two runs of a library; pending while it is being made."""
    old, new = library.run(baseline), library.run(candidate)

    def make() -> dict[str, Any]:
        with library.reported(new, personal) as reported:
            return comparison_data(reported, baseline)

    key = ("compare", baseline, candidate, personal)
    page: dict[str, Any] | None = library.made(key, f"{old.stamp}{new.stamp}", make, wait=wait)
    if page is None:
        lines = [header_line(library.mask(personal).header(each.header)) for each in (old, new)]
        page = {**_NOTHING, "baseline": lines[0], "candidate": lines[1], "pending": True}
    return page


_NOTHING: dict[str, Any] = {
    **{"verdict": None, "headline": "", "line": "", "note": None, "n_paired": 0, "n_only_baseline": 0},
    **{"n_only_candidate": 0, "n_by_kind": {}, "tested": "", "metrics": [], "cases": [], "tools": [], "slices": []},
    **findings_data(()),
    "notes": [],
}


def comparison_data(reported: ReportedRun, baseline: str) -> dict[str, Any]:
    """The page of a run and another of its store: what was decided about the two, where that was kept."""
    assert reported.store is not None
    new, old = reported.run, run_from_store(reported.store, baseline)
    reported.decision = _kept(new, baseline) or _decided_now(old, new)
    return comparison_page(reported, old)


def _kept(run: ScoredRun, baseline: str) -> Decision | None:
    """What was decided about a run against a baseline: when it was made, else by the last command that compared."""
    for decision in (own_decision(run), *(each for _, each in decisions_beside(run))):
        if decision is not None and decision.comparison is not None and decision.comparison.baseline == baseline:
            return decision
    return None


def _decided_now(old: ScoredRun, new: ScoredRun) -> Decision:
    labels = labels_of([old.header, new.header])
    return decide_comparison(compare_runs(new, old, labels=(labels[0], labels[1])), new)


def comparison_page(reported: ReportedRun, old: ScoredRun) -> dict[str, Any]:
    """The page of a run that was compared with an older one."""
    new, decision, mask = reported.run, reported.decision, reported.mask
    found = decision.comparison
    assert found is not None
    whys = {finding.case_id: finding.why for finding in decision.findings if finding.kind in _EXPLAINED}
    keys = [_first_keys(run, {each.case_id for each in found.differences}) for run in (old, new)]
    return {
        "baseline": _side(old, mask),
        "candidate": _side(new, mask),
        "pending": False,
        "verdict": decision.verdict,
        "headline": decision.headline,
        "line": decision.line,
        **findings_data(reported.findings),
        "note": found.note,
        **{name: getattr(found, name) for name in ("n_paired", "n_only_baseline", "n_only_candidate")},
        "n_by_kind": dict(found.n_by_kind),
        "tested": describe_tested(found),
        "metrics": [
            {
                "label": label,
                **{name: getattr(each, name) for name in _METRIC_FACTS},
                "shown": describe_difference(each),
            }
            for label, each in zip(found.labels, found.metrics, strict=True)
        ],
        "cases": [_case(each, found, whys, keys) for each in found.differences],
        "tools": plain(found.tools),
        "slices": [],
        "notes": _notes(found),
    }


def _side(run: ScoredRun, mask: Mask) -> dict[str, Any]:
    own = own_decision(run)
    return {**header_line(mask.header(run.header)), "pending": False, "verdict": None if own is None else own.verdict}


def _notes(found: Comparison) -> list[str]:
    notes = [describe_pairs(found), describe_kinds(found), describe_tested(found)]
    notes += [f"{change}: {names}" for change, names in describe_tool_changes(found)]
    notes += [] if found.pairwise is None else describe_pairwise(found.pairwise)
    return [note for note in notes if note]


def _first_keys(run: ScoredRun, wanted: set[str]) -> dict[str, str]:
    """The key of the first repeat of each of these cases."""
    keys: dict[str, str] = {}
    for record in run.records:
        if record.case_id in wanted and record.case_id not in keys:
            keys[record.case_id] = key_of(record.position, record.repeat)
    return keys


def _case(
    each: CaseDifference, found: Comparison, whys: Mapping[str, str], keys: list[dict[str, str]]
) -> dict[str, Any]:
    standing = found.cases.get(each.case_id)
    return {
        "case_id": each.case_id,
        "kind": each.kind,
        "tries": "" if standing is None else describe_standing(standing),
        "why": whys.get(each.case_id, ""),
        "baseline_key": keys[0].get(each.case_id),
        "candidate_key": keys[1].get(each.case_id),
        "scores": plain(each.scores),
        "same_answer": each.same_answer,
        "baseline": _answer(each.baseline),
        "candidate": _answer(each.candidate),
    }


def _answer(answer: CaseAnswer | None) -> dict[str, str | None] | None:
    return None if answer is None else {"text": answer.text, "error": answer.error}
