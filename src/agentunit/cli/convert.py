"""``agentunit convert``: traces of any format in, AgentUnit's own records out, or what other programs read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import click

from agentunit import doors
from agentunit.cli.options import jobs_option, store_option
from agentunit.cli.rewriting import can_share, conclude_rewriting, rewrite_in_processes, rewrite_records
from agentunit.cli.trace_inputs import (
    expected_option,
    files_or_run,
    refuse_overwriting_inputs,
    rewriting_options,
    trace_options,
)
from agentunit.core.codec import encode_record
from agentunit.core.records import Record
from agentunit.traces.grouping import GroupBy

_WRITERS = {"atif": "encode_atif", "otlp": "encode_otlp", "openai": "encode_openai"}
"""The parts that write other formats than records."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@rewriting_options
@trace_options
@expected_option
@click.option(
    "--to",
    "target",
    type=click.Choice(["records", "atif", "otlp", "openai"]),
    default="records",
    show_default=True,
    help="What to write, one JSON object per line: AgentUnit's records, ATIF trajectories (as of Harbor), spans in "
    "OTLP's JSON, or messages for OpenAI's fine-tuning.",
)
@jobs_option
@store_option
def convert(
    files: tuple[str, ...],
    out: str,
    format_name: str | None,
    group_by: GroupBy,
    expected: str | None,
    target: str,
    jobs: int | None,
    store_path: str,
) -> None:
    """Turn traces into AgentUnit's own records, to keep, share or edit: what 'score' would read of them.

    '--to atif' writes each case as a trajectory that other tools read; read back, it is the same record. '--to otlp'
    writes spans that any backend of OpenTelemetry shows, '--to openai' the conversation alone.

    The name of a run instead of files writes what it recorded.

    \b
    agentunit convert spans.json.gz --out records.jsonl
    agentunit convert exports/ --group-by session --expected answers.csv --out records.jsonl.gz
    agentunit convert session.jsonl --to atif --out trajectory.json
    agentunit convert session.jsonl --to otlp --out spans.jsonl
    """
    refuse_overwriting_inputs(files, out)
    source = files_or_run(files, format_name, group_by, store_path, expected)
    encode: Callable[[Record], bytes] = encode_record if target == "records" else doors.part(_WRITERS[target])
    shared = None if jobs is None else can_share(source, files, group_by)
    if jobs is None or shared is None:
        done = rewrite_records(source, out, lambda records: map(encode, records))
    else:
        done = rewrite_in_processes(shared, out, partial(_encoded, encode), jobs, format_name=format_name)
    conclude_rewriting(source, out, done)


def _encoded(encode: Callable[[Record], bytes], records: Sequence[Record]) -> tuple[list[bytes], None]:
    return [encode(record) for record in records], None
