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
from agentunit.engine.gate_expressions import LABELED, Gate
from agentunit.engine.scored_run import ScoredRun
from agentunit.engine.suite import SuiteError

FIELD = "known_failure"
KnownState = Literal["still fails", "fixed", "expired", "unknown"]


@dataclass(frozen=True)
class KnownFailure:
    """A marked case of a run: ``expired`` counts again, ``unknown`` means that no gate says whether it passes."""

    case_id: str
    reason: str
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
    settings = {name: value for name, value in run.header.settings.items() if name != _SETTING}
    return replace(
        run,
        header=structs.replace(run.header, n_planned=n_planned, settings=settings),
        n_cases=len({record.position for record in records}),
        n_records=len(records),
        n_failed=sum(record.failed for record in records),
        metrics={name: [row for row in rows if row.case_id not in aside] for name, rows in run.metrics.items()},
        records=records,
    )


def known_failures(run: ScoredRun, gates: Sequence[Gate]) -> tuple[KnownFailure, ...]:
    """The marked cases that a run has recorded, each with how it stands."""
    marks = _marks_in(run.header.settings)
    if not marks:
        return ()
    recorded = {record.case_id for record in run.records}
    holding = set_aside(run)
    return tuple(
        KnownFailure(case_id, reason, until, _state(run, case_id, gates) if case_id in holding else "expired")
        for case_id, (reason, until) in marks.items()
        if case_id in recorded
    )


def _state(run: ScoredRun, case_id: str, gates: Sequence[Gate]) -> KnownState:
    if any(record.failed for record in run.records if record.case_id == case_id):
        return "still fails"
    state: KnownState = "unknown"
    for gate in gates:
        # A cheap answer may be wrong: only scores tell whether a case passes; a sum or a rate is not about one case.
        if run.info(gate.metric).unit != "score" or gate.aggregate in ("sum", LABELED):
            continue
        rows = [row for row in run.rows_of(gate.metric) or () if row.case_id == case_id]
        values = [row.value for row in rows if row.value is not None and gate.backend in (None, row.backend)]
        if any(row.status == "error" for row in rows):
            return "still fails"
        if not values:
            continue
        if gate.aggregate == "mean":
            values = [sum(values) / len(values)]
        solved = [value == 1.0 if gate.aggregate.startswith("pass") else gate.holds(value) for value in values]
        if not all(solved):
            return "still fails"
        state = "fixed"
    return state


_SETTING = "known_failures"


def set_aside(run: ScoredRun) -> set[str]:
    """The ids of the cases whose mark holds on the day of the run, the last day included."""
    return set_aside_on(run.header.created_at, run.header.settings)


def set_aside_on(created_at: float, settings: Mapping[str, Any]) -> set[str]:
    """As ``set_aside``, of a run with these settings that began then."""
    day = datetime.fromtimestamp(created_at, timezone.utc).date()
    return {case_id for case_id, (_, until) in _marks_in(settings).items() if date.fromisoformat(until) >= day}


def _marks_in(settings: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """The marks that a run has kept. It may come from elsewhere: what is no mark is left out."""
    stored = settings.get(_SETTING)
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
