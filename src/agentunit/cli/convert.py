"""``agentunit convert``: traces of any format in, AgentUnit's own records out."""

from __future__ import annotations

import click

from agentunit.cli.main import EXIT_ERRORS
from agentunit.cli.options import store_option
from agentunit.cli.trace_inputs import (
    expected_option,
    files_or_run,
    finish_output,
    open_for_writing,
    refuse_overwriting_inputs,
    trace_options,
    unfinished_path,
)
from agentunit.core.codec import encode_record
from agentunit.core.results import InputError
from agentunit.reports.console import Terminal, error_line
from agentunit.reports.progress import Progress
from agentunit.reports.trace_console import print_reading
from agentunit.traces.grouping import GroupBy
from agentunit.traces.native import STDIN

_SHOWN = 5


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("files", nargs=-1, required=True, metavar="FILE…|RUN")
@click.option(
    "-o",
    "--out",
    required=True,
    type=click.Path(dir_okay=False),
    help="Write the records here, one JSON a line ('-': standard output; .gz compresses).",
)
@trace_options
@expected_option
@store_option
def convert(
    files: tuple[str, ...],
    out: str,
    format_name: str | None,
    group_by: GroupBy,
    expected: str | None,
    store_path: str,
) -> None:
    """Turn traces into AgentUnit's own records, to keep, share or edit: what 'score' would read of them.

    The name of a run in place of files writes what it recorded.

    \b
    agentunit convert spans.json.gz --out records.jsonl
    agentunit convert exports/ --group-by session --expected answers.csv --out records.jsonl.gz
    """
    refuse_overwriting_inputs(files, out)
    source = files_or_run(files, format_name, group_by, store_path, expected)
    errors: list[InputError] = []
    progress = Progress("records", fraction=source.fraction, failures=lambda: len(errors))
    source.on_progress = progress.touch
    n_records = 0
    # What was there before stays until the new records are whole.
    unfinished = unfinished_path(out)
    with open_for_writing(unfinished, compressed=out.endswith(".gz")) as stream:
        for each in progress.watch(source):
            if isinstance(each, InputError):
                errors.append(each)
            else:
                n_records += 1
                stream.write(encode_record(each) + b"\n")
    finish_output(unfinished, out, keep=n_records > 0)
    console = Terminal(stderr=True)
    print_reading(source, console)
    for error in errors[:_SHOWN]:
        console.print(f"not read: {error_line(error)}", markup=False, highlight=False, soft_wrap=True)
    if len(errors) > _SHOWN:
        console.print(f"… and {len(errors) - _SHOWN:,} more")
    where = "standard output" if out == STDIN else out
    written = f"{n_records:,} record{'' if n_records == 1 else 's'} in {where}" if n_records else "no records"
    console.print(written, markup=False, highlight=False, soft_wrap=True)
    if errors or not n_records:
        raise click.exceptions.Exit(EXIT_ERRORS)
