"""A finding of a run in words, as every report shows it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import structs

from agentunit.core.results import RunFinding
from agentunit.engine.deciding.causes import DOUBT, EXCEPTION, FACT
from agentunit.engine.deciding.run_findings import ALLOWED
from agentunit.reports.printable import printable_line, show_command

_LONGEST = 400
# What a reader calls a case that stands so.
_WORDS = {FACT: "", DOUBT: "doubted", ALLOWED: "wrong, as a gate allows"}


def with_commands(findings: Iterable[RunFinding], reference: str, show_options: Sequence[str] = ()) -> list[RunFinding]:
    """Findings with the command that shows their example. ``reference`` is the run or file; empty where it is gone."""
    found: list[RunFinding] = []
    for finding in findings:
        of = finding.reference or reference
        if of:
            show = show_command(of, finding.cases[0], repeat=finding.repeat, more=show_options)
            finding = structs.replace(finding, next=show)
        found.append(finding)
    return found


class FindingText(NamedTuple):
    """A finding in words: what is wrong, the evidence, and the command that shows an example."""

    what: str
    evidence: str
    command: str


def describe_run_finding(finding: RunFinding) -> FindingText:
    """A finding in words.

    >>> one = RunFinding("", '"We have no room."', None, None, 4, ("c36",), "agentunit show last c36", "contains",
    ...     'contains: missing: "Room 36"', None, 4, 40, "broken")
    >>> describe_run_finding(one).what
    '4 of 40 cases broken: contains: missing: "Room 36"'
    """
    of_all = f" of {finding.n_of:,}" if finding.n_of else ""
    cases = "case" if (finding.n_of or finding.n_cases) == 1 else "cases"
    where = f" with {finding.slice}" if finding.slice else ""
    word = _WORDS.get(finding.word, finding.word)
    stand = f" {word}" if word else ""
    what = f"{finding.n_cases:,}{of_all} {cases}{where}{stand}: {finding.name}"
    evidence = finding.error if finding.kind != EXCEPTION else ""
    if finding.place:
        evidence = f"at {finding.place}"
        if finding.line:
            evidence += f": {finding.line}"
    return FindingText(printable_line(what, _LONGEST), printable_line(evidence, _LONGEST), finding.next)
