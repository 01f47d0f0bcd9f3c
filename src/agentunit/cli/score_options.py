"""What the command line of ``agentunit score`` says, for every way in which it works."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from agentunit import doors
from agentunit.cli.follow_options import FollowChoice
from agentunit.cli.judge_options import JudgeChoice
from agentunit.engine.scoring.case_fields import check_field
from agentunit.traces.grouping import GroupBy

# The options of ``agentunit score --suspects``; what ranks runs (addons/review) is loaded when it is asked for.

_Command = TypeVar("_Command", bound=Callable[..., Any])


def suspects_options(command: _Command) -> _Command:
    """``--suspects``, ``--task`` and ``--mark``: rank runs in place of scoring them, and how they are compared."""

    def field(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
        try:
            return None if value is None else check_field(value)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None

    def marks(_: click.Context, __: click.Parameter, values: Sequence[str]) -> Mapping[str, str]:
        try:
            return doors.part("tool_marks")(values) if values else {}
        except ValueError as error:
            raise click.BadParameter(str(error)) from None

    command = click.option(
        "--mark",
        "tool_marks",
        multiple=True,
        metavar="TOOL=read|write",
        callback=marks,
        help="With --suspects: whether a tool changes something, where its name does not tell.",
    )(command)
    command = click.option(
        "--task",
        "task_field",
        metavar="FIELD",
        callback=field,
        help="With --suspects: runs with the same value of this field (metadata.NAME) are of one task. "
        "Default: the id of the case, otherwise the question.",
    )(command)
    return click.option(
        "--suspects",
        is_flag=True,
        help="Score nothing; rank the runs that differ most from other runs of the same task, with the evidence.",
    )(command)


@dataclass(frozen=True)
class ScoreOptions:
    """Its options, by the names that the command's decorators give them.

    ``tool_marks`` say of tools whether they read or write, which ``--suspects`` asks.
    """

    files: tuple[str, ...]
    names: tuple[str, ...]
    out: str | None
    errors_file: str | None
    as_json: bool
    by: str | None
    all_rows: bool
    strict: bool
    max_errors: int
    jobs: int | None
    engine: str | None
    resume: bool
    plan: bool
    again: bool
    suspects: bool
    task_field: str | None
    tool_marks: Mapping[str, Any]
    show_personal_data: bool
    format_name: str | None
    group_by: GroupBy
    expected: str | None
    store_path: str
    choice: JudgeChoice
    following: FollowChoice
