"""Decisions as they are kept with a run, so that every screen says for good what was decided once."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import msgspec

import agentunit
from agentunit.core.results import MetricSummary, RunSummary, encode_json
from agentunit.engine.deciding.decision import (
    EXIT_PASS,
    Decision,
    decide_run,
    has_no_scores_yet,
    not_decided,
    strictest,
)
from agentunit.engine.scoring.scored_run import ScoredRun, is_unfinished, run_from_store, what_is_missing
from agentunit.metrics.base import MetricInfo
from agentunit.store.run_store import RunStore
from agentunit.store.runs import RunHeader, StoredDecision

MOST_FINDINGS = 2_000
"""So many cases that are not fine are kept with a decision."""
SCORED_LATER = "scored_later"
"""Under this name the settings of a run say that it got scores after it was decided."""
_HEADLINES = 3


class _MadeWith(msgspec.Struct):
    means: dict[str, float] | None = None


class _KeptMeans(msgspec.Struct):
    made_with: _MadeWith = msgspec.field(default_factory=_MadeWith)


_means_decoder = msgspec.json.Decoder(_KeptMeans)


def headline_rows(summary: RunSummary, infos: Mapping[str, MetricInfo]) -> list[MetricSummary]:
    """The few metrics that say most about a run: scores one may decide on first, then what it cost."""

    def rank(row: MetricSummary) -> int:
        scores = infos[row.metric].unit == "score"
        return (0 if scores else 1) if row.status == "ok" else 2

    # A metric is shown by the scores that decide, however many informational ones are beside them.
    scored = sorted((row for row in summary.metrics if row.mean is not None), key=lambda row: row.status != "ok")
    first_of_metric = list({row.metric: row for row in reversed(scored)}.values())[::-1]
    return sorted(first_of_metric, key=rank)[:_HEADLINES]


def headline_means(run: ScoredRun) -> dict[str, float]:
    """The means of the few metrics that say most about a run, the first first."""
    infos = {name: run.info(name) for name in run.metrics}
    return {row.metric: row.mean for row in headline_rows(run.summary(), infos) if row.mean is not None}


def listed_means(store: RunStore, header: RunHeader) -> dict[str, float]:
    """The same for a list of runs: as they were kept with the run's own decision, or else by adding up its scores."""
    # What came from a file may state anything, and a run that goes on or was scored again has other means by now.
    if header.status == "finished" and not header.is_foreign and not header.settings.get(SCORED_LATER):
        for stored in reversed(store.decisions(header.id)):
            if stored.is_own:
                with suppress(msgspec.DecodeError, msgspec.ValidationError):
                    means = _means_decoder.decode(stored.decision).made_with.means
                    if means is not None:
                        return means
                break
    return headline_means(run_from_store(store, header.id, labels=False))


def keep_decision(store: RunStore, run_id: str, decision: Decision, made_by: str, **options: Any) -> Decision:
    """Keep what was decided about a run, and with which options; returns it with a note of them."""
    made_with = {**decision.made_with, "by": made_by, "agentunit": agentunit.__version__, **options}
    if decision.comparison is not None:
        made_with.setdefault("baseline", decision.comparison.baseline)
    decision = replace(decision, made_with=made_with)
    data = msgspec.Raw(encode_json(_worth_keeping(decision)))
    store.add_decision(run_id, StoredDecision(time.time(), made_by, decision.verdict, decision.headline, data))
    return decision


def _worth_keeping(decision: Decision) -> Decision:
    """A decision without the cases of which there is nothing to say."""
    comparison = decision.comparison
    if comparison is not None:
        # Most answers of a model differ in every run: they are counted.
        nothing = ("unchanged", "other answer")
        changed = {case_id: case for case_id, case in comparison.cases.items() if case.kind not in nothing}
        comparison = replace(comparison, cases=changed)
    named = set(decision.failing_cases)
    room = max(0, MOST_FINDINGS - len(named))
    others = [finding.case_id for finding in decision.findings if finding.case_id not in named]
    kept = named.union(others[:room])
    findings = tuple(finding for finding in decision.findings if finding.case_id in kept)
    return replace(decision, comparison=comparison, findings=findings)


def own_decision(run: ScoredRun) -> Decision | None:
    """What was decided when a run was made; ``None`` where that was not kept, or cannot be read."""
    for stored in reversed(run.decisions):
        if stored.is_own:
            return decoded(stored)
    return None


def decisions_beside(run: ScoredRun) -> list[tuple[StoredDecision, Decision]]:
    """What other commands decided about a run: of each command and baseline the newest, the newest first.

    A baseline may be named as a run and as a file of it: what was found twice is told once.
    """
    newest: dict[tuple[str, object], tuple[StoredDecision, Decision]] = {}
    for stored in reversed(run.decisions):
        decision = None if stored.is_own else decoded(stored)
        if decision is not None:
            newest.setdefault((stored.made_by, decision.made_with.get("baseline")), (stored, decision))
    told: dict[tuple[str, str, str], tuple[StoredDecision, Decision]] = {}
    for stored, decision in newest.values():
        against = "" if decision.comparison is None else decision.comparison.baseline_label
        told.setdefault((stored.made_by, against, decision.headline), (stored, decision))
    return list(told.values())


def decoded(stored: StoredDecision) -> Decision | None:
    """A decision as it was kept. It may come from a file: one that cannot be read is none."""
    try:
        return msgspec.json.decode(stored.decision, type=Decision)
    except (msgspec.DecodeError, msgspec.ValidationError, ValueError, TypeError):
        return None


def decision_of(run: ScoredRun) -> Decision:
    """The decision of a run: its own where it was kept, else one that is made now, which says so.

    A run that is going on again, after ``--resume``, has not been decided yet.
    """
    own = None if run.header.status == "running" else own_decision(run)
    if own is not None:
        return own
    decision = replace(decide_run(run), made_with={"by": "now"})
    ended_early = run.header.status in ("interrupted", "stopped")
    if ended_early and run.header.settings.get("baseline"):
        # What it was to be held against, and whether failing cases were to be tried again, is not known here. Cases
        # that are wrong may have been wrong before.
        others = tuple(reason for reason in decision.reasons if reason.kind != "wrong")
        if strictest(reason.exit_code for reason in others) == EXIT_PASS:
            decision = replace(decision, reasons=others)
            why = "the run was stopped before it was held against its baseline; --resume goes on"
            return not_decided(decision, why)
    if not ended_early or decision.exit_code != EXIT_PASS:
        return decision
    missing = what_is_missing(run) if is_unfinished(run) else None
    return decision if missing is None else not_decided(decision, f"the run {missing}; --resume goes on")


def own_verdicts(store: RunStore, headers: Iterable[RunHeader]) -> dict[str, tuple[str | None, str]]:
    """Verdict and headline of each of these runs that was decided, for a list.

    Of a run that was stopped before anything was scored it is known as well: it cannot be told.
    """
    decided = store.own_decisions()
    own: dict[str, tuple[str | None, str]] = {}
    for header in headers:
        # One that is going on again has not been decided yet.
        if header.status == "running":
            continue
        own[header.id] = decided.get(header.id, (None, ""))
        if header.id not in decided and header.status != "finished":
            run = run_from_store(store, header.id, labels=False)
            if has_no_scores_yet(run):
                decision = decision_of(run)
                own[header.id] = (decision.verdict, decision.headline)
    return own


def is_made_now(decision: Decision) -> bool:
    """Whether a decision was made for a report, because the run has none of its own."""
    return decision.made_with.get("by") == "now"
