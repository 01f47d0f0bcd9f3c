"""Cases that are known to fail: set aside from gates and errors until a date, and reported when they pass.

A case says so in its metadata: ``known_failure: {reason: "…", until: 2027-01-31}``. Only graders see it. Whether the
date has come is asked of the day on which the run began, so that a run gets the same verdict whenever it is decided on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timezone
from typing import Any, Literal

from msgspec import structs

from agentunit.core.case import DatasetCase
from agentunit.core.said import Said
from agentunit.engine.deciding.checks import ANSWERED, CaseTries, rules_of, tries_by_case
from agentunit.engine.deciding.gate_expressions import Gate
from agentunit.engine.scoring.scored_run import ScoredRun
from agentunit.store.runs import KNOWN_FAILURES

FIELD = "known_failure"
KnownState = Literal["still fails", "fixed", "expired", "unknown"]


@dataclass(frozen=True)
class KnownFailure:
    """A marked case of a run: ``expired`` counts again, ``unknown`` means that no check says whether it passes."""

    case_id: str
    reason: Said
    until: str
    state: KnownState


def marks_of(cases: Iterable[DatasetCase]) -> dict[str, dict[str, str]]:
    """The marks of a dataset by case id, for a run's settings; a mark without reason or date is refused."""
    marks = {}
    for case in cases:
        mark = case.metadata.get(FIELD) if isinstance(case.metadata, Mapping) else None
        if mark is None:
            continue
        reason, until = (mark.get("reason"), mark.get("until")) if isinstance(mark, Mapping) else (None, None)
        day = _as_date(until)
        if not isinstance(reason, str) or not reason.strip() or day is None:
            from agentunit.engine.recording.suite import SuiteError

            raise SuiteError(
                f"case {case.id!r}: {FIELD} must have a reason and a date, such as "
                f"{{reason: waits for the new index, until: 2027-01-31}}; received {mark!r:.120}"
            )
        marks[case.id] = {"reason": reason, "until": day.isoformat()}
    return marks


def unmarked(case: DatasetCase) -> DatasetCase:
    """A case without its mark: marking a case does not make another dataset."""
    if not isinstance(case.metadata, Mapping) or FIELD not in case.metadata:
        return case
    return structs.replace(case, metadata={name: each for name, each in case.metadata.items() if name != FIELD})


def counted_part(run: ScoredRun) -> ScoredRun:
    """A run without the cases that are known to fail: what gates and errors count."""
    return without_cases(run, set_aside(run))


def without_cases(run: ScoredRun, aside: Collection[str]) -> ScoredRun:
    """A run without these cases."""
    if not aside:
        return run
    records = [record for record in run.records if record.case_id not in aside]
    n_planned = run.header.n_planned
    if n_planned is not None:
        repeats = run.header.settings.get("repeats")
        planned = len(aside) * (repeats if isinstance(repeats, int) else run.n_repeats)
        # A run until decided has more runs of a case than its suite says.
        n_planned = max(len(records), n_planned - max(planned, len(run.records) - len(records)))
    settings = {name: value for name, value in run.header.settings.items() if name != KNOWN_FAILURES}
    return replace(
        run,
        header=structs.replace(run.header, n_planned=n_planned, settings=settings),
        n_cases=len({record.position for record in records}),
        n_records=len(records),
        n_failed=sum(record.failed for record in records),
        metrics={name: [row for row in rows if row.case_id not in aside] for name, rows in run.metrics.items()},
        records=records,
        again_records=[record for record in run.again_records if record.case_id not in aside],
        again_metrics={
            name: [row for row in rows if row.case_id not in aside] for name, rows in run.again_metrics.items()
        },
    )


def known_failures(run: ScoredRun, gates: Sequence[Gate]) -> tuple[KnownFailure, ...]:
    """The marked cases that a run has recorded, each with how it stands by its checks."""
    marks = _marks_in(run.header.settings)
    if not marks:
        return ()
    holding = set_aside(run)
    states: dict[str, KnownState] = {}
    for case in tries_by_case(run, rules_of(run, gates)):
        if case.case_id in marks:
            states[case.case_id] = _state(case) if case.case_id in holding else "expired"
    return tuple(
        KnownFailure(case_id, reason, until, states[case_id])
        for case_id, (reason, until) in marks.items()
        if case_id in states
    )


def _state(case: CaseTries) -> KnownState:
    """How a case stands; that the agent answered says nothing about what it answered."""
    if any(check.n_failed for check in case.checks.values()):
        return "still fails"
    has_passed = any(check.results for metric, check in case.checks.items() if metric != ANSWERED.name)
    return "fixed" if has_passed else "unknown"


def set_aside(run: ScoredRun) -> set[str]:
    """The ids of the cases whose mark holds on the day of the run, the last day included."""
    return set_aside_on(run.header.created_at, run.header.settings)


def set_aside_on(created_at: float, settings: Mapping[str, Any]) -> set[str]:
    """As ``set_aside``, of a run with these settings that began then."""
    day = datetime.fromtimestamp(created_at, timezone.utc).date()
    return {case_id for case_id, (_, until) in _marks_in(settings).items() if date.fromisoformat(until) >= day}


def _marks_in(settings: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """The marks that a run has kept. It may come from elsewhere: what is no mark is left out."""
    stored = settings.get(KNOWN_FAILURES)
    found = {}
    for case_id, mark in stored.items() if isinstance(stored, Mapping) else ():
        day = _as_date(mark.get("until")) if isinstance(mark, Mapping) else None
        if day is not None:
            found[str(case_id)] = (str(mark.get("reason") or ""), day.isoformat())
    return found


def _as_date(value: object) -> date | None:
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    try:
        return date.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
