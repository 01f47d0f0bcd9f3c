"""Names of causes that a judge writes, where one is named: it sees the masked evidence of the most frequent groups."""

from __future__ import annotations

from typing import Any

import click
from msgspec import structs

from agentunit.backends.judge.group_names import name_groups
from agentunit.backends.judge.questions import Asking, JudgeFailed
from agentunit.backends.judge.settings import configured, why_not_configured
from agentunit.backends.quality import LEXICAL, load_backend
from agentunit.cli.consent import ask_before_sending
from agentunit.cli.judge_options import JudgeChoice
from agentunit.engine.judge_plan import estimated_sending
from agentunit.reports.failure_groups import GROUPS_SHOWN, FailureGroup
from agentunit.reports.printable import printable_line


def check_choice(choice: JudgeChoice) -> None:
    """A judge is asked only where it is named, and then for the names of causes alone."""
    if choice.backend not in (None, "auto", "local", LEXICAL, "judge"):
        raise click.UsageError(
            f"--backend must be judge, local or lexical with --suspects; received {choice.backend!r}"
        )
    if choice.settings and choice.backend != "judge":
        raise click.UsageError("with --suspects a judge only names causes: say so with --backend judge")
    if choice.backend == "judge" and configured() is None:
        raise click.UsageError(f"--backend judge: {why_not_configured()}")
    if choice.parameters:
        raise click.UsageError("--param does not go with --suspects: no metric is scored")


def named_by_judge(groups: list[FailureGroup], choice: JudgeChoice) -> list[FailureGroup]:
    """The most frequent groups with names that the judge wrote; with their own where it gives none."""
    settings = configured()
    asked = groups[:GROUPS_SHOWN]
    evidence = [f"{each.n_records} runs; {each.kind}: {each.name}\nexample: {each.error}" for each in asked]
    if settings is None:
        return groups
    sending = estimated_sending(
        settings,
        metrics=("the names of causes",),
        fields=("masked evidence",),
        n_cases=len(asked),
        n_calls=1,
        n_characters=sum(map(len, evidence)),
    )
    ask_before_sending(sending, yes=choice.yes)
    backend: Any = load_backend("judge")
    try:
        names = backend.client.submit(name_groups(evidence, Asking(backend.client))).result()
    except (JudgeFailed, RuntimeError) as error:
        click.echo(printable_line(f"note: the judge named no cause: {error}", 300), err=True)
        return groups
    named = [structs.replace(each, name=name) for each, name in zip(asked, names, strict=True)]
    return [*named, *groups[GROUPS_SHOWN:]]
