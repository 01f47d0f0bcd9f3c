"""``agentunit convert``: traces of any format in; records, masked ones, or what other programs read, out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import click

from agentunit import doors
from agentunit.cli.options import Verb, jobs_option, store_option
from agentunit.cli.rewriting import can_share, conclude_rewriting, rewrite_in_processes, rewrite_records
from agentunit.cli.trace_inputs import expected_option, files_or_run, refuse_overwriting_inputs, trace_options
from agentunit.core.codec import encode_record
from agentunit.core.records import Record
from agentunit.metrics.trust import measured_figures
from agentunit.privacy.detectors import DETECTORS
from agentunit.privacy.findings import PII_TYPES
from agentunit.traces.grouping import GroupBy
from agentunit.traces.reading import TraceSource

_FOR_MASKING = ("types", "keep", "backend", "rules", "region", "salt", "mapping")

_WRITERS = {"atif": "encode_atif", "otlp": "encode_otlp", "openai": "encode_openai"}
"""The parts that write other formats than records."""


@dataclass(frozen=True)
class ConvertOptions:
    """What the command line of ``agentunit convert`` says, by the names that the command's decorators give it."""

    files: tuple[str, ...]
    out: str | None
    target: str
    format_name: str | None
    group_by: GroupBy
    expected: str | None
    masks: bool
    is_check: bool
    types: str | None
    keep: str | None
    backend: str | None
    rules: str | None
    region: str | None
    salt: str | None
    mapping: str | None
    jobs: int | None
    store_path: str

    def check(self) -> None:
        """Refuse what does not go together."""
        if self.is_check == (self.out is not None):
            raise click.UsageError("give either --out FILE, to write there, or --check, to write nothing")
        if self.masks or self.is_check:
            if self.target in ("atif", "openai"):
                raise click.UsageError(
                    f"--to {self.target} writes what was recorded: mask to records first, then convert those"
                )
            return
        for name in _FOR_MASKING:
            if getattr(self, name) is not None:
                raise click.UsageError(f"--{name} says how personal data is masked: it goes with --mask or --check")

    def source(self) -> TraceSource:
        """What is read."""
        return files_or_run(self.files, self.format_name, self.group_by, self.store_path, self.expected)


def _what_remains() -> str:
    measured = [measured_figures().get(("redact", name)) for name in DETECTORS]
    figures = "; ".join(f"{figure.backend} {figure.at_length()}" for figure in measured if figure is not None)
    found = f" Measured over all types: {figures}." if figures else ""
    return (
        f"No detector finds everything.{found} Numbers in data are masked only in fields such as ssn. Look at the "
        "file before you share it. Exit codes: 0 done, 1 --check found something, 2 usage, 3 something could not be "
        "read, nothing was there, or a known value is still there."
    )


@click.command(
    cls=Verb,
    first="--out --to --from --group-by --expected --mask --check --types --keep",
    epilog=_what_remains(),
)
@click.argument("files", nargs=-1, required=True, metavar="FILE…|RUN")
@click.option(
    "-o",
    "--out",
    type=click.Path(dir_okay=False),
    help="Write here, one JSON object per line ('-': standard output; .gz compresses).",
)
@click.option(
    "--to",
    "target",
    type=click.Choice(["records", "atif", "otlp", "openai"]),
    default="records",
    show_default=True,
    help="What to write: AgentUnit's records, ATIF trajectories (as of Harbor), OTLP in JSON (with --mask as it came, "
    "with its ids), or messages for OpenAI's fine-tuning.",
)
@trace_options
@expected_option
@click.option("--mask", "masks", is_flag=True, help="Mask personal data: <NAME_1>, the same value the same everywhere.")
@click.option(
    "--check",
    "is_check",
    is_flag=True,
    help="Write nothing: list where personal data is, and exit with 1 if there is any, as a gate in CI.",
)
@click.option("--types", metavar="TYPES", help=f"Mask only these types, separated by commas: {', '.join(PII_TYPES)}.")
@click.option("--keep", metavar="TYPES", help="Leave these types as they are.")
@click.option(
    "--rules",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Your own rules, YAML or JSON: values to allow and to deny, patterns of further types (docs/privacy.md).",
)
@click.option("--backend", metavar="NAME", help=f"What finds it: {', '.join(DETECTORS)}.  [default: patterns]")
@click.option(
    "--region",
    metavar="CODES",
    help="Also find identity and phone numbers of these countries (DE,FR), or of those a record names (auto).",
)
@click.option(
    "--salt",
    metavar="SECRET",
    help="Make the same pseudonyms in every file of the same secret, instead of numbers (also AGENTUNIT_SALT).",
)
@click.option(
    "--mapping",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Also write which pseudonym stands for what. That file is a secret: only you can read it (mode 0600).",
)
@jobs_option
@store_option
def convert(**received: Any) -> None:
    """Turn traces into AgentUnit's own records, to keep, edit or share: what 'score' would read of them.

    With --mask, personal data is masked in every text: what was asked and answered, tool calls, messages, metadata and
    fields that AgentUnit does not know. All files given together share their pseudonyms.

    '--to otlp' writes spans that any backend of OpenTelemetry shows, '--to openai' the conversation alone.

    '--to atif' writes each case as a trajectory that other tools read; read back, it is the same record. The name of a
    run instead of files writes what it recorded, and 'demo' the bundled recording.

    \b
    agentunit convert spans.json.gz --out records.jsonl
    agentunit convert exports/ --group-by session --expected answers.csv --out records.jsonl.gz
    agentunit convert session.jsonl --to atif --out trajectory.json
    agentunit convert session.jsonl --to otlp --out spans.jsonl
    agentunit convert spans.json.gz --mask --out shareable.jsonl
    agentunit convert exports/ --mask --keep ip_address --mapping secret.json --out shareable.jsonl.gz
    agentunit convert tests/data/*.jsonl --check
    """
    options = ConvertOptions(**received)
    options.check()
    if options.masks or options.is_check:
        doors.part("mask_traces")(options)
        return
    out, jobs = str(options.out), options.jobs
    refuse_overwriting_inputs(options.files, out)
    source = options.source()
    target = options.target
    encode: Callable[[Record], bytes] = encode_record if target == "records" else doors.part(_WRITERS[target])
    shared = None if jobs is None else can_share(source, options.files, options.group_by)
    if jobs is None or shared is None:
        done = rewrite_records(source, out, lambda records: map(encode, records))
    else:
        done = rewrite_in_processes(shared, out, partial(_encoded, encode), jobs, format_name=options.format_name)
    conclude_rewriting(source, out, done)


def _encoded(encode: Callable[[Record], bytes], records: Sequence[Record]) -> tuple[list[bytes], None]:
    return [encode(record) for record in records], None
