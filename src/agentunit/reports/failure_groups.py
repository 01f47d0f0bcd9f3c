"""Groups of cases with one cause, in lines of plain text."""

from __future__ import annotations

from collections.abc import Sequence

from agentunit.core.results import RunFinding
from agentunit.engine.deciding.causes import EXCEPTION
from agentunit.engine.scoring.scored_run import ScoredRun
from agentunit.reports.figures import describe_failed
from agentunit.reports.printable import printable_line
from agentunit.reports.reported_run import resume_command
from agentunit.store.opening import DEFAULT_PATH

GROUPS_SHOWN = 5
_IDS_SHOWN = 5
_LONGEST_ID = 80
_LONGEST_ERROR = 300
_LONGEST_LINE = 160


def describe_group(group: RunFinding) -> list[str]:
    """A group in lines of plain text: what happened, where, and in which cases."""
    is_exception = group.kind == EXCEPTION
    lines = [f"{group.n_records:,} × {printable_line(group.error if is_exception else group.name, _LONGEST_ERROR)}"]
    if group.place:
        source = f":  {printable_line(group.line, _LONGEST_LINE)}" if group.line else ""
        lines.append(f"    at {printable_line(group.place, _LONGEST_ERROR)}{source}")
    if not is_exception:
        lines.append(f"    such as {printable_line(group.error, _LONGEST_ERROR)}")
    lines.append(f"    in {named_ids(group.cases, group.n_cases)}")
    if group.slice is not None:
        lines.append(f"    mostly {printable_line(group.slice, _LONGEST_LINE)}")
    return lines


def named_ids(cases: Sequence[str], n_cases: int) -> str:
    """The first ids of a group, and how many more of its cases there are."""
    more = f" and {n_cases - _IDS_SHOWN:,} more" if n_cases > _IDS_SHOWN else ""
    return ", ".join(printable_line(each, _LONGEST_ID) for each in cases[:_IDS_SHOWN]) + more


def describe_groups(groups: Sequence[RunFinding]) -> list[str]:
    """The most frequent groups in lines of plain text, and the command that shows a case of the first."""
    lines = [line for group in groups[:GROUPS_SHOWN] for line in describe_group(group)]
    if len(groups) > GROUPS_SHOWN:
        lines.append(f"and {len(groups) - GROUPS_SHOWN:,} other causes")
    return lines


def describe_failures(groups: Sequence[RunFinding], run: ScoredRun, store_path: str = DEFAULT_PATH) -> list[str]:
    """Lines for the terminal and the log: failed cases by their cause, and how to go on.

    The order of a run until decided must not depend on what came out, so that it cannot run them again.
    """
    if not groups:
        return []
    lines = [f"the agent failed {describe_failed(run)}:"]
    lines += [f"  {line}" for line in describe_groups(groups)]
    suite = run.header.settings.get("suite")
    if isinstance(suite, str) and not run.header.is_foreign:
        # The evidence of a run until decided must come in its order: only as one of fixed size can cases be retried.
        fixed = " --repeats 1" if run.header.settings.get("until_decided") else ""
        again = f"{resume_command(run.header.id, suite, store_path)}{fixed} --retry-failed"
        # Answers of two versions of an agent are mixed only by somebody who says so.
        is_mixed = run.n_failed < run.n_records and run.header.settings.get("agent_version") is not None
        changed = ", with --changed-agent if you change the agent first" if is_mixed else ""
        lines.append(f"  run them again{changed}: {printable_line(again)}")
    return lines
