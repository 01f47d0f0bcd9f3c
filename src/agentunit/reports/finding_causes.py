"""What is wrong with a stored run: its cases that are not fine, by cause. Every report begins with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from agentunit.core.results import RunFinding
from agentunit.core.score_block import Cause
from agentunit.engine.deciding.case_findings import CaseFinding, why_failed
from agentunit.engine.deciding.causes import (
    cause_of_check,
    cause_of_doubt,
    cause_of_failure,
    fact_of,
    why_low,
)
from agentunit.engine.deciding.checks import ANSWERED
from agentunit.engine.deciding.run_findings import ALLOWED, CauseGroups, doubts, most_telling, slice_counts_of
from agentunit.reports.finding_text import with_commands
from agentunit.reports.run_facts import KIND_HEADINGS, WRONG, findings_by_heading
from agentunit.store.runs import is_again

if TYPE_CHECKING:
    from agentunit.reports.reported_run import ReportedCase, ReportedRun

# Of a longer run only the cases are read that its decision names, and of these the first ones.
_MOST_READ = 2_000
_WORD_OF_HEADING = {heading: kind for kind, heading in KIND_HEADINGS.items()} | {WRONG: "wrong"}


def findings_of(reported: ReportedRun) -> list[RunFinding]:
    """What is wrong with a stored run, the gravest first. Not masked."""
    return _Finder(reported).findings()


class _Finder:
    """Looks at the cases of a run that are not fine, each for the one cause that explains it best."""

    def __init__(self, reported: ReportedRun) -> None:
        self._reported = reported
        self._groups = CauseGroups()
        self._stands: dict[str, tuple[str, CaseFinding]] = {}
        for heading, findings in findings_by_heading(reported.decision).items():
            for finding in findings:
                word = ALLOWED if finding.allowed_by else _WORD_OF_HEADING[heading]
                self._stands[finding.case_id] = (word, finding)
        self._aside = {failure.case_id for failure in reported.decision.known_failures}
        self._doubted = {each.case_id for each in reported.decision.findings if each.state == "doubtful"}
        self._explained: set[str] = set()

    def findings(self) -> list[RunFinding]:
        """What is wrong."""
        reported = self._reported
        run = reported.run
        is_short = run.n_records <= _MOST_READ
        metadata: dict[int, object] = {}
        for case in self._cases(is_short):
            if is_again(case.repeat):
                continue
            metadata[case.position] = case.record.case.metadata
            cause = self._cause(case)
            if cause is not None:
                self._groups.add(cause)
                self._explained.add(case.case_id)
        for case_id, (word, finding) in self._stands.items():
            # Those that were not read, and those in which nothing fails now.
            if case_id not in self._explained:
                self._groups.add(_unread(word, finding))
        # What is frequent elsewhere is not known of a long run, so that its findings have no slice.
        counts = slice_counts_of(metadata.values()) if is_short else {}
        found = self._groups.findings(run.n_cases, counts)
        return with_commands(found, reported.shown_as or reported.reference)

    def _cases(self, is_short: bool) -> Iterator[ReportedCase]:
        reported = self._reported
        if reported.is_table:
            return iter(())
        if is_short:
            return reported.recorded_cases()
        wanted = [*self._stands, *(case_id for case_id in self._doubted if case_id not in self._stands)]
        return reported.recorded_cases_of(wanted[:_MOST_READ])

    def _cause(self, case: ReportedCase) -> Cause | None:
        """Why one record is not fine; ``None`` for one that is, or that is known to fail."""
        reported, case_id = self._reported, case.case_id
        repeat = case.repeat if reported.run.n_repeats > 1 else None
        if case_id in self._stands:
            return self._cause_of_standing(case, repeat, *self._stands[case_id])
        if case_id in self._aside or case.failed:
            return None
        for metric, score in case.scores.items():
            if metric not in reported.rules and metric in reported.infos and doubts(reported.infos[metric], score):
                return cause_of_doubt(case_id, repeat, case.record, case.scores, metric, why_low(score))
        return fact_of(case_id, repeat, case.record, case.scores)

    def _cause_of_standing(
        self, case: ReportedCase, repeat: int | None, word: str, finding: CaseFinding
    ) -> Cause | None:
        if case.failed:
            is_why = finding.check in (ANSWERED.name, None)
            return cause_of_failure(case.case_id, repeat, case.record, word) if is_why else None
        checks = [finding.check] if finding.kind is not None or not finding.wrong else list(finding.wrong)
        failing = [check for check in checks if check and self._fails(case, check)]
        if not failing:
            return None
        check = most_telling(failing)
        why = why_failed(case.scores[check], self._reported.rules[check].needs)
        return cause_of_check(case.case_id, repeat, case.record, case.scores, check, why, word)

    def _fails(self, case: ReportedCase, check: str) -> bool:
        score, rule = case.scores.get(check), self._reported.rules.get(check)
        if score is None or score.value is None or rule is None:
            return False
        return not rule.passes(score.value)


def _unread(word: str, finding: CaseFinding) -> Cause:
    """The cause of a case of which no record says more."""
    return Cause(finding.case_id, None, finding.check or "gate", "", finding.why, (), "", word)
