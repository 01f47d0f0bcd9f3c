"""``agentunit redact``: traces of any format in, records without the personal data that was found out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from itertools import islice

import click

from agentunit.backends.quality import BackendUnavailable
from agentunit.cli.main import EXIT_ERRORS
from agentunit.cli.options import InputFailure, store_option
from agentunit.cli.trace_inputs import (
    files_or_run,
    finish_output,
    open_for_writing,
    refuse_overwriting_inputs,
    trace_options,
    unfinished_path,
)
from agentunit.core.records import Record
from agentunit.core.results import InputError, encode_json
from agentunit.metrics.trust import measured_figures
from agentunit.privacy.detectors import DETECTORS, detector_named
from agentunit.privacy.findings import PII_TYPES, Detector
from agentunit.privacy.pseudonyms import Pseudonyms
from agentunit.privacy.redaction import Redactor
from agentunit.reports.console import Terminal, error_line
from agentunit.reports.progress import Progress
from agentunit.reports.trace_console import print_reading
from agentunit.traces.grouping import GroupBy
from agentunit.traces.native import STDIN

_SHOWN = 5
# Records are looked at together, which is faster; a few, so that memory stays small.
_RECORDS_AT_ONCE = 16


def _what_remains() -> str:
    measured = [measured_figures().get(("redact", name)) for name in DETECTORS]
    told = "; ".join(f"{figure.backend} {figure.at_length()}" for figure in measured if figure is not None)
    found = f" Measured over all types: {told}." if told else ""
    return (
        f"No detector finds everything.{found} Numbers that are no text are left as they are. Look at the "
        "file before you share it. Exit codes: 0 done, 2 usage, 3 something could not be read, or nothing was there."
    )


@click.command(context_settings={"help_option_names": ["-h", "--help"]}, epilog=_what_remains())
@click.argument("files", nargs=-1, required=True, metavar="FILE…|RUN")
@click.option(
    "-o",
    "--out",
    required=True,
    type=click.Path(dir_okay=False),
    help="Write the records here, one JSON a line ('-': standard output; .gz compresses).",
)
@click.option("--types", metavar="TYPES", help=f"Mask only these types, separated by commas: {', '.join(PII_TYPES)}.")
@click.option("--keep", metavar="TYPES", help="Leave these types as they are.")
@click.option(
    "--backend", default="patterns", show_default=True, metavar="NAME", help=f"What finds it: {', '.join(DETECTORS)}."
)
@click.option(
    "--salt",
    envvar="AGENTUNIT_SALT",
    metavar="SECRET",
    help="Make the same pseudonyms in every file of the same secret, instead of numbers (also AGENTUNIT_SALT).",
)
@click.option(
    "--mapping",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Also write which pseudonym stands for what. That file is a secret: only you can read it (mode 0600).",
)
@trace_options
@store_option
def redact(
    files: tuple[str, ...],
    out: str,
    types: str | None,
    keep: str | None,
    backend: str,
    salt: str | None,
    mapping: str | None,
    format_name: str | None,
    group_by: GroupBy,
    store_path: str,
) -> None:
    """Write traces with personal data masked, to share them: <NAME_1>, <EMAIL_1>, the same value the same everywhere.

    The name of a run in place of files masks what it recorded. All files given together share their pseudonyms. Every
    text of a record is looked at: what was asked and answered, tool calls, messages, metadata and fields that AgentUnit
    does not know.

    \b
    agentunit redact spans.json.gz --out shareable.jsonl
    agentunit redact exports/ --keep ip_address --mapping secret.json --out shareable.jsonl.gz
    """
    wanted = _types(types, keep)
    refuse_overwriting_inputs(files, out, mapping)
    if mapping is not None and os.path.abspath(mapping) == os.path.abspath(out):
        raise click.UsageError("--mapping and --out name the same file: one is a secret, the other is to be shared")
    if salt is not None and not salt.strip():
        raise click.BadParameter("must not be empty", param_hint="--salt")
    source = files_or_run(files, format_name, group_by, store_path)
    pseudonyms = Pseudonyms(salt)
    redactor = Redactor(_detector(backend), wanted, pseudonyms)
    errors: list[InputError] = []
    progress = Progress("records", fraction=source.fraction, failures=lambda: len(errors))
    source.on_progress = progress.touch
    n_records = 0
    # What was there before stays until the new records are whole.
    unfinished = unfinished_path(out)
    with open_for_writing(unfinished, compressed=out.endswith(".gz")) as stream:
        for batch in _batches(_readable(progress.watch(source), errors)):
            n_records += len(batch)
            stream.writelines(encode_json(each) + b"\n" for each in redactor.redact(batch))
    finish_output(unfinished, out, keep=bool(n_records))
    if mapping is not None:
        _write_secret(mapping, encode_json(pseudonyms.values))
    console = Terminal(stderr=True)
    print_reading(source, console)
    for error in errors[:_SHOWN]:
        console.print(f"not read: {error_line(error)}", markup=False, highlight=False, soft_wrap=True)
    if len(errors) > _SHOWN:
        console.print(f"… and {len(errors) - _SHOWN:,} more")
    for line in _summary(n_records, out, pseudonyms, mapping):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    if errors or not n_records:
        raise click.exceptions.Exit(EXIT_ERRORS)


def _types(types: str | None, keep: str | None) -> frozenset[str]:
    wanted = frozenset(PII_TYPES if types is None else _named(types, "--types"))
    wanted -= frozenset(() if keep is None else _named(keep, "--keep"))
    if not wanted:
        raise click.UsageError("no type is left to mask: 'agentunit convert' writes records as they are")
    return wanted


def _named(names: str, option: str) -> Iterator[str]:
    for name in (each.strip() for each in names.split(",") if each.strip()):
        if name not in PII_TYPES:
            nearest = get_close_matches(name, PII_TYPES, n=1)
            hint = f"; did you mean {nearest[0]!r}?" if nearest else f"; there are {', '.join(PII_TYPES)}"
            raise click.BadParameter(f"no type is called {name!r}{hint}", param_hint=option)
        yield name


def _detector(name: str) -> Detector:
    try:
        return detector_named(name, "redact")
    except BackendUnavailable as error:
        raise click.BadParameter(str(error).removeprefix("redact: "), param_hint="--backend") from None


def _readable(source: Iterable[Record | InputError], errors: list[InputError]) -> Iterator[Record]:
    for each in source:
        if isinstance(each, InputError):
            errors.append(each)
        else:
            yield each


def _batches(records: Iterator[Record]) -> Iterator[list[Record]]:
    while batch := list(islice(records, _RECORDS_AT_ONCE)):
        yield batch


def _write_secret(path: str, content: bytes) -> None:
    unfinished = unfinished_path(path)
    try:
        handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(handle, "wb") as stream:
            if hasattr(os, "fchmod"):
                os.fchmod(handle, 0o600)  # one that was left behind may have had another mode
            stream.write(content + b"\n")
        finish_output(unfinished, path, keep=True)
    except OSError as error:
        raise InputFailure(f"cannot write {path}: {(error.strerror or str(error)).lower()}") from None


def _summary(n_records: int, out: str, pseudonyms: Pseudonyms, mapping: str | None) -> Iterator[str]:
    where = "standard output" if out == STDIN else out
    records = "1 record" if n_records == 1 else f"{n_records:,} records"
    yield f"{records} in {where}" if n_records else "no records"
    counts = [
        f"{type} {n:,} ({pseudonyms.n_distinct(type):,} different)"
        for type, n in sorted(pseudonyms.uses.items(), key=lambda use: PII_TYPES.index(use[0]))
    ]
    yield f"masked: {', '.join(counts)}" if counts else "masked: nothing was found"
    if mapping is not None:
        yield f"{mapping} tells who is who: it is a secret, do not share it with the records"
    yield "a detector misses things ('agentunit redact --help' says how many): look at the file before you share it"
