"""What is wrong with the cases of a run: each case that is not fine, with one sentence why."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from agentunit.core.codec import RecordError
from agentunit.core.records import Record
from agentunit.core.results import STATES, CaseCounts, CaseState, Score, explained
from agentunit.core.said import Said
from agentunit.engine.deciding.checks import ANSWERED, CaseTries, CheckRule, repaired_records, tries_by_case
from agentunit.engine.deciding.comparison import CaseKind, Comparison
from agentunit.engine.scoring.scored_run import ScoredRun
from agentunit.metrics.sentences import LONGEST, on_one_line, sentence
from agentunit.store.runs import StoredRecord
from agentunit.store.schema import StoreError

# Why a check failed on one try, in one short sentence.

# So much of an error is looked at from its end: it may be megabytes long.
_READ = 4000


def why_failed(score: Score, needs: str) -> str:
    """Why a value did not pass, as its metric says it. ``needs`` says which values pass.

    What is quoted of an answer may hold personal data: who shows or keeps the sentence masks it.

    >>> from agentunit import MetricResult
    >>> score = Score(MetricResult("support", 0.16), "ok", "local", "1")
    >>> why_failed(score, ">= 0.5")
    '0.16, needs >= 0.5'
    >>> score.why = 'no source says "24 months"'
    >>> why_failed(score, ">= 0.5")
    'no source says "24 months" (0.16, needs >= 0.5)'
    """
    value, said = score.value or 0.0, explained(score)
    if said and value in (0.0, 1.0):
        return sentence(said)
    shown = f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    if shown in needs.split():
        # Rounded, it would seem to pass.
        shown = f"{value:.10g}"
    wanted = f"{shown}, needs {needs}"
    if not said:
        return sentence(wanted)
    if shown in said:
        wanted = f", needs {needs}"
    elif needs == "1":
        # A check: that a part of it passed says less than what did not.
        wanted = ""
    else:
        wanted = f" ({wanted})"
    return on_one_line(said, LONGEST - len(wanted)) + wanted


def why_not_answered(record: Record) -> str:
    """Why the agent gave no answer, in one line.

    >>> from agentunit import DatasetCase, Outcome
    >>> why_not_answered(Record(DatasetCase("q1"), outcome=Outcome(error="ValueError:\\n  no such city")))
    'ValueError: no such city'
    """
    error = str(getattr(record.outcome, "error", None) or "").strip()
    if error.startswith("Traceback (most recent call last)"):
        # The exception is at the end.
        error = error[-_READ:].rpartition("\n")[2]
    return sentence(error) or "the agent failed and left no message"


# Of cases beyond these the sentence says how often the check failed: reading them all would take minutes.
_MOST_READ = 200
_MOST_KEPT = 10_000
_STATES_FIRST: tuple[CaseKind, ...] = ("broken", "newly failing", "newly flaky", "lost")


@dataclass(frozen=True, slots=True)
class CaseFinding:
    """A case that is not fine: how it stands, what became of it beside a baseline, and one sentence why.

    ``check`` failed in ``n_failed`` of ``n_tries`` tries; ``checks`` are all that failed, ``wrong`` those that did in
    every try. A doubt names its metrics. ``allowed_by`` says what allows a wrong case.
    """

    case_id: str
    state: CaseState
    kind: CaseKind | None = None
    check: str | None = None
    checks: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    n_failed: int = 0
    n_tries: int = 0
    needed: int | None = None
    why: Said = ""
    allowed_by: str = ""


def findings_of(
    run: ScoredRun, rules: Mapping[str, CheckRule], comparison: Comparison | None
) -> tuple[CaseCounts, list[CaseFinding]]:
    """How many cases are fine and so on, and each that is not. Beside a baseline also what became of it."""
    counts: dict[CaseState, int] = dict.fromkeys(STATES, 0)
    found: list[CaseFinding] = []
    standings = {} if comparison is None else comparison.cases
    for case in tries_by_case(run, rules, repaired_records(run)):
        state = state_of(case)
        counts[state] += 1
        standing = standings.get(case.case_id)
        kind = None if standing is None else standing.kind
        if state in ("fine", "unknown") and kind not in _STATES_FIRST:
            continue
        decides = kind in _STATES_FIRST or (comparison is None and state == "wrong")
        if len(found) < _MOST_KEPT or decides:
            finding = _finding(case, state)
            if standing is not None:
                finding = replace(finding, kind=kind, check=standing.check or finding.check, needed=standing.needed)
            found.append(finding)
    return CaseCounts(**counts), found


def _finding(case: CaseTries, state: CaseState) -> CaseFinding:
    failing = sorted(
        ((metric, check) for metric, check in case.checks.items() if check.n_failed or check.repaired),
        key=lambda entry: not entry[1].is_wrong,
    )
    if not failing:
        return CaseFinding(case.case_id, state, checks=case.doubts)
    metric, check = failing[0]
    names = tuple(name for name, _ in failing)
    wrong = tuple(name for name, tries in failing if tries.is_wrong)
    return CaseFinding(case.case_id, state, None, metric, names, wrong, check.n_failed, check.n_tries)


def with_whys(
    run: ScoredRun, findings: list[CaseFinding], rules: Mapping[str, CheckRule], named: Collection[str]
) -> list[CaseFinding]:
    """The findings, each with one sentence why: from the records for those that a verdict names, and the first few."""
    wanted = [finding.case_id for finding in findings if finding.case_id in named]
    wanted += [finding.case_id for finding in findings if finding.case_id not in named and finding.check is not None]
    checks = {finding.case_id: finding.check for finding in findings if finding.check is not None}
    whys: dict[str, str] = {}
    for stored, scores in _read_cases(run, list(dict.fromkeys(wanted))[:_MOST_READ]):
        metric = checks.get(stored.case_id)
        if metric is None or stored.case_id in whys:
            continue
        why = _why(stored, scores, metric, rules)
        if why is not None:
            whys[stored.case_id] = why
    return [replace(finding, why=whys.get(finding.case_id) or _by_counts(finding)) for finding in findings]


def _why(stored: StoredRecord, scores: Mapping[str, Score], metric: str, rules: Mapping[str, CheckRule]) -> str | None:
    """Why a check failed on this try; ``None`` where it did not."""
    if metric == ANSWERED.name:
        return why_not_answered(stored.record) if stored.failed else None
    score, rule = scores.get(metric), rules.get(metric)
    value = None if score is None else score.result.value
    if stored.failed or score is None or value is None or rule is None or rule.passes(value):
        return None
    return why_failed(score, rule.needs)


def _by_counts(finding: CaseFinding) -> str:
    if finding.kind == "lost":
        return f"{finding.check} passed before and cannot be made now"
    if finding.check is None:
        return f"doubted by {', '.join(finding.checks)}"
    if not finding.n_failed:
        return "the agent failed at first and was tried again"
    return f"{finding.check} failed in {finding.n_failed} of {finding.n_tries} tries"


def _read_cases(run: ScoredRun, case_ids: Collection[str]) -> Iterator[tuple[StoredRecord, Mapping[str, Score]]]:
    """The records of some cases with their scores. What cannot be read has no sentence of its own."""
    if run.read_cases is None or not case_ids:
        return
    try:
        yield from run.read_cases(case_ids)
    except (RecordError, StoreError, OSError):
        return


def state_of(case: CaseTries) -> CaseState:
    """How a case stands by its own tries.

    >>> from agentunit.engine.deciding.checks import CheckTries
    >>> case = CaseTries(0, "q1", {"contains": CheckTries({0: True, 1: False})})
    >>> state_of(case), state_of(CaseTries(0, "q2"))
    ('flaky', 'unknown')
    """
    tries = case.checks.values()
    if any(check.is_wrong for check in tries):
        return "wrong"
    if any(check.is_flaky for check in tries):
        return "flaky"
    if case.doubts:
        return "doubtful"
    # That the agent answered says nothing about what it answered.
    is_checked = any(check.results for metric, check in case.checks.items() if metric != ANSWERED.name)
    return "fine" if is_checked else "unknown"
