"""A command: the longest answers in files of traces."""

from __future__ import annotations

import click


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True))
@click.option("--count", default=3, show_default=True, help="How many answers to show.")
def longest(files: tuple[str, ...], count: int) -> None:
    """Show the longest answers in FILES of any trace format."""
    # Imported here, so that "--help" does not wait for it.
    from agentunit import Record, read_records
    from agentunit.core.records import outcome_text

    answers = []
    for each in read_records(*files):
        if isinstance(each, Record):
            answers.append((outcome_text(each.outcome) or "", each.case.id))
        else:  # what could not be read, with its file and line
            click.echo(f"warning: {each}", err=True)
    answers.sort(key=lambda answer: len(answer[0]), reverse=True)
    for text, case_id in answers[:count]:
        click.echo(f"{len(text)} characters, {case_id}: {text}")
