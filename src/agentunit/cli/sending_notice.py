"""Before the first call to a judge: what is sent where, about what it costs, and whether it may be."""

from __future__ import annotations

import os
import sys

import click

from agentunit.cli.main import EXIT_USAGE
from agentunit.engine.scoring.judging import PLAYED_USERS, Sending
from agentunit.reports.figures import counted, quantity
from agentunit.reports.printable import printable_line

_NEED_A_JUDGE = (PLAYED_USERS, "win_rate")
_ON_BATCHES = "batches may take up to a day: stop with Ctrl-C as you like, the same command collects them later"


def ask_before_sending(sending: Sending | None, *, yes: bool) -> None:
    """Print what a judge will be sent and ask whether it may be; "no" leaves with exit code 2, and nothing was sent.

    With ``yes``, in CI and where nobody can answer it is printed and not asked.
    """
    if sending is None:
        return
    for line in sending_lines(sending):
        click.echo(line, err=True)
    if yes or os.environ.get("CI") or not _somebody_can_answer():
        return
    if not click.confirm("Send it?", default=False, err=True):
        hint = "" if sending.metrics[0] in _NEED_A_JUDGE else " (--backend lexical scores without a judge)"
        click.echo(f"nothing was sent{hint}", err=True)
        raise click.exceptions.Exit(EXIT_USAGE)


def sending_lines(sending: Sending) -> list[str]:
    """What will be sent where, and about what it costs."""
    verb = "asks" if len(sending.metrics) == 1 else "ask"
    parts = list(sending.fields)
    sent = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    open_line = "" if sending.is_encrypted else ", unencrypted"
    where = f"{sending.model} at {sending.place}{open_line}"
    first = f"{', '.join(sending.metrics)} {verb} a judge: {sent} of {_cases(sending)} go to {where}"
    lines = [printable_line(first, 1000), printable_line(_costs(sending), 1000)]
    return [*lines, _ON_BATCHES] if sending.is_batch else lines


def _cases(sending: Sending) -> str:
    if sending.n_cases is None:
        return "every case"
    about = "up to " if sending.at_most else "" if sending.exact else "about "
    return f"{about}{counted(sending.n_cases, 'case')}"


def _costs(sending: Sending) -> str:
    if sending.n_calls is None or sending.n_tokens is None:
        amount = "the number of calls is not known in advance"
    else:
        price = "price unknown" if sending.cost_usd is None else quantity(sending.cost_usd, "USD")
        amount = f"about {counted(sending.n_calls, 'call')}, {sending.n_tokens:,} tokens, {price}"
    if sending.is_batch:
        amount += " in batches, at half the price"
    if sending.repeats > 1:
        amount += f" (each question {sending.repeats} times)"
    cached = "; replies in the cache cost nothing" if sending.is_cached else ""
    cap = "" if sending.max_spend_usd is None else f"; it may spend at most {quantity(sending.max_spend_usd, 'USD')}"
    return f"{amount}{cached}{cap}"


def _somebody_can_answer() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()
