"""What GitHub shows beside the lines of a pull request: workflow commands, written only inside GitHub Actions.

Texts from data are made printable first, which breaks up commands in them, and then escaped as GitHub asks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from agentunit.core.results import RunFinding
from agentunit.engine.deciding.decision import EXIT_ERRORS, EXIT_FAILED
from agentunit.reports.failure_groups import named_ids
from agentunit.reports.figures import describe_reason
from agentunit.reports.printable import printable_line
from agentunit.reports.reported_run import ReportedRun
from agentunit.reports.run_facts import (
    FAILING_HEADINGS,
    WRONG,
    describe_finding,
    describe_known_failures,
    failed_cases,
    findings_by_heading,
    further_reasons,
    lines_under,
)

# GitHub shows ten annotations of a kind in a step.
_GROUPS_SHOWN, _REASONS_SHOWN, _CASES_SHOWN = 3, 3, 20
_LONGEST = 600


def workflow_commands(reported: ReportedRun, environment: Mapping[str, str] = os.environ) -> Iterator[str]:
    """The workflow commands of a run; none outside GitHub Actions.

    Errors are what the run does not pass for; what its allowance covers, and what the data cannot tell, are warnings.
    Of a run that passes, only the marks of known failures are said that have no use any more.
    """
    if environment.get("GITHUB_ACTIONS") != "true":
        return
    decision = reported.decision
    failing = set(decision.failing_cases)
    root = environment.get("GITHUB_WORKSPACE") or os.getcwd()
    for group in reported.failures[:_GROUPS_SHOWN]:
        text = f"{group.n_records:,} × {group.error} (in {named_ids(group.cases, group.n_cases)})"
        level = "error" if failing.intersection(group.cases) else "warning"
        yield _command(level, text, title="the agent failed", **_place(group, root))
    for line in describe_known_failures(decision, ("fixed", "expired"))[:_GROUPS_SHOWN]:
        yield _command("warning", line, title="AgentUnit: known failure")
    if not decision.exit_code:
        return
    level = _level(decision.exit_code)
    yield _command(level, decision.headline, *lines_under(decision), title=f"AgentUnit: {decision.word}")
    failed = failed_cases(decision)
    for heading, findings in findings_by_heading(decision).items():
        if heading == WRONG:
            findings = [finding for finding in findings if finding.case_id in failed]
        if findings and heading in FAILING_HEADINGS:
            cases = [f"{each.case_id}: {describe_finding(each, decision.comparison)}" for each in findings]
            more = [f"and {len(cases) - _CASES_SHOWN:,} more"] if len(cases) > _CASES_SHOWN else []
            yield _command(level, *cases[:_CASES_SHOWN], *more, title=f"AgentUnit: {heading} ({len(cases):,})")
    for reason in further_reasons(decision)[:_REASONS_SHOWN]:
        yield _command(_level(reason.exit_code), describe_reason(reason), title=f"AgentUnit: {reason.kind}")


def _place(group: RunFinding, root: str) -> dict[str, str]:
    """File and line, where the file lies below the root of the repository."""
    file, _, rest = (group.place or "").rpartition(":")
    path = os.path.abspath(file) if file else ""
    if not os.path.isfile(path) or not path.startswith(os.path.join(os.path.abspath(root), "")):
        return {}
    return {"file": os.path.relpath(path, root), "line": rest.partition(" ")[0]}


def _level(exit_code: int) -> str:
    return "error" if exit_code in (EXIT_FAILED, EXIT_ERRORS) else "warning"


def _command(level: str, *lines: str, **properties: str) -> str:
    """A workflow command.

    >>> _command("error", "100% ::error::x", "y", title="a, b: c")
    '::error title=a%2C b%3A c::100%25 : :error::x%0Ay'
    """
    named = ",".join(f"{name}={_escaped(value, ':,')}" for name, value in properties.items())
    text = "%0A".join(_escaped(printable_line(line, _LONGEST)) for line in lines)
    return f"::{level} {named}::{text}"


def _escaped(text: str, also: str = "") -> str:
    for sign in "%\r\n" + also:
        text = text.replace(sign, f"%{ord(sign):02X}")
    return text


def write_step_summary(reported: ReportedRun) -> bool:
    """Append a run to the summary of the current step of a GitHub workflow; returns whether there is one.

    Outside GitHub Actions, or when the summary cannot be written, nothing happens: a report that has no place to go
    must not fail the run it reports.
    """
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if not path:
        return False
    from agentunit.reports.markdown import run_markdown

    markdown = run_markdown(reported, full_cases=False)
    try:
        with open(path, "a", encoding="utf-8", errors="replace") as stream:
            stream.write(markdown.rstrip("\n") + "\n\n")
    except OSError:
        return False
    return True
