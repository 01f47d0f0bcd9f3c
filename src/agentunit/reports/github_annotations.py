"""What GitHub shows beside the lines of a pull request: workflow commands, written only inside GitHub Actions.

Texts from data are made printable first, which breaks up commands in them, and then escaped as GitHub asks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from agentunit.engine.decision import EXIT_ERRORS, EXIT_FAILED
from agentunit.reports.failure_groups import FailureGroup, named_ids
from agentunit.reports.figures import describe_reason
from agentunit.reports.printable import printable_line
from agentunit.reports.reported_run import ReportedRun
from agentunit.reports.run_facts import describe_known_failures

# GitHub shows ten annotations of a kind in a step.
_GROUPS_SHOWN, _REASONS_SHOWN = 4, 5
_LONGEST = 600


def workflow_commands(reported: ReportedRun, environment: Mapping[str, str] = os.environ) -> Iterator[str]:
    """The workflow commands of a run; none outside GitHub Actions.

    Errors are what the run does not pass for; what its allowance covers, and what the data cannot tell, are warnings.
    """
    if environment.get("GITHUB_ACTIONS") != "true":
        return
    decision = reported.decision
    counted = any(reason.kind == "failed case" for reason in decision.reasons)
    root = environment.get("GITHUB_WORKSPACE") or os.getcwd()
    for group in reported.failures[:_GROUPS_SHOWN]:
        text = f"{group.n_records:,} × {group.error} (in {named_ids(group.cases)})"
        yield _command("error" if counted else "warning", text, title="the agent failed", **_place(group, root))
    reasons = [reason for reason in decision.reasons if reason.kind != "failed case"]
    for reason in reasons[:_REASONS_SHOWN]:
        level = "error" if reason.exit_code in (EXIT_FAILED, EXIT_ERRORS) else "warning"
        title = "errors" if reason.exit_code == EXIT_ERRORS else reason.kind
        yield _command(level, describe_reason(reason), title=f"AgentUnit: {title}")
    for line in describe_known_failures(decision, ("fixed", "expired"))[:_GROUPS_SHOWN]:
        yield _command("warning", line, title="AgentUnit: known failure")


def _place(group: FailureGroup, root: str) -> dict[str, str]:
    """File and line, where the file lies below the root of the repository."""
    file, _, rest = (group.place or "").rpartition(":")
    path = os.path.abspath(file) if file else ""
    if not os.path.isfile(path) or not path.startswith(os.path.join(os.path.abspath(root), "")):
        return {}
    return {"file": os.path.relpath(path, root), "line": rest.partition(" ")[0]}


def _command(level: str, text: str, **properties: str) -> str:
    """A workflow command.

    >>> _command("error", "100% ::error::x", title="a, b: c")
    '::error title=a%2C b%3A c::100%25 : :error::x'
    """
    named = ",".join(f"{name}={_escaped(value, ':,')}" for name, value in properties.items())
    return f"::{level} {named}::{_escaped(printable_line(text, _LONGEST))}"


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
