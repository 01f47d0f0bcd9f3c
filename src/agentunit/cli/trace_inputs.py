"""What the verbs that read traces share: their options, the loop that rewrites records, and care with their files."""

from __future__ import annotations

import gzip
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

import click

from agentunit.cli.main import EXIT_ERRORS
from agentunit.cli.options import InputFailure, open_store
from agentunit.core.records import Record
from agentunit.core.results import InputError
from agentunit.datasets.readers import DatasetError, load_dataset
from agentunit.reports.console import Terminal, error_line
from agentunit.reports.progress import Progress
from agentunit.reports.trace_console import print_reading
from agentunit.store.opening import may_exist
from agentunit.store.schema import StoreError
from agentunit.traces.expected import ExpectedAnswers
from agentunit.traces.grouping import GroupBy
from agentunit.traces.native import STDIN
from agentunit.traces.reading import TraceFiles, TraceSource
from agentunit.traces.spans import ReadingNotes

_SHOWN = 5
# A few, so that memory stays small.
_RECORDS_AT_ONCE = 16

_Command = TypeVar("_Command", bound=Callable[..., Any])


def trace_options(command: _Command) -> _Command:
    """``--from`` and ``--group-by``: how trace files are read."""
    command = click.option(
        "--group-by",
        type=click.Choice(["trace", "session"]),
        default="trace",
        show_default=True,
        help="What makes one case of spans.",
    )(command)
    return click.option(
        "--from",
        "format_name",
        metavar="FORMAT",
        help="Read the files as this format instead of telling it by how they begin (docs/traces.md lists them).",
    )(command)


def rewriting_options(command: _Command) -> _Command:
    """``FILE…`` or a run, and ``--out``: what is read, and where its records are written."""
    command = click.option(
        "-o",
        "--out",
        required=True,
        type=click.Path(dir_okay=False),
        help="Write the records here, one JSON a line ('-': standard output; .gz compresses).",
    )(command)
    return click.argument("files", nargs=-1, required=True, metavar="FILE…|RUN")(command)


def trace_files_from(
    files: Sequence[str], format_name: str | None, group_by: GroupBy, expected: str | None = None
) -> TraceFiles:
    """The traces that a command was given; a format or dataset that is wrong is a usage error."""
    answers = None
    if expected is not None:
        try:
            answers = ExpectedAnswers(load_dataset(expected))
        except DatasetError as error:
            raise InputFailure(f"--expected: {error}") from None
    try:
        return TraceFiles(files, format=format_name, group_by=group_by, expected=answers)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--from") from None


class StoredRun:
    """The records of a run in the store, read as trace files are."""

    def __init__(self, store_path: str, run_id: str) -> None:
        self.notes = ReadingNotes()
        self.expected: ExpectedAnswers | None = None
        self.on_progress: Callable[[], None] = lambda: None
        self._store_path = store_path
        self._run_id = run_id

    def fraction(self) -> float | None:
        """Not known: a run is small, and read at once."""
        return None

    def __iter__(self) -> Iterator[Record | InputError]:
        with open_store(self._store_path, read_only=True) as store:
            for stored in store.records(self._run_id):
                yield stored.record


def files_or_run(
    files: Sequence[str], format_name: str | None, group_by: GroupBy, store_path: str, expected: str | None = None
) -> TraceSource:
    """The traces that a command was given: files, or a run by its name where no such file is there."""
    if len(files) == 1 and files[0] != STDIN and not os.path.exists(files[0]) and may_exist(store_path):
        with open_store(store_path, read_only=True) as store:
            try:
                return StoredRun(store_path, store.find_run(files[0]).id)
            except StoreError as error:
                raise InputFailure(f"{files[0]}: no such file, and no such run ({error})") from None
    refuse_missing(files)
    return trace_files_from(files, format_name, group_by, expected)


class Rewritten(NamedTuple):
    """What came of rewriting: how many records were written, and what could not be read."""

    n_records: int
    errors: list[InputError]


def rewrite_records(
    source: TraceSource, out: str, rewritten: Callable[[Sequence[Record]], Iterable[bytes]]
) -> Rewritten:
    """Write the records of a source as ``rewritten`` gives them back, a few at a time, which is faster for some.

    What was there before stays until the new records are whole.
    """
    errors: list[InputError] = []
    progress = Progress("records", fraction=source.fraction, failures=lambda: len(errors))
    source.on_progress = progress.touch
    records = _readable(progress.watch(source), errors)
    n_records = 0
    unfinished = unfinished_path(out)
    with open_for_writing(unfinished, compressed=out.endswith(".gz")) as stream:
        while batch := list(islice(records, _RECORDS_AT_ONCE)):
            n_records += len(batch)
            stream.writelines(line + b"\n" for line in rewritten(batch))
    finish_output(unfinished, out, keep=n_records > 0)
    return Rewritten(n_records, errors)


def _readable(source: Iterable[Record | InputError], errors: list[InputError]) -> Iterator[Record]:
    for each in source:
        if isinstance(each, InputError):
            errors.append(each)
        else:
            yield each


def conclude_rewriting(source: TraceSource, out: str, done: Rewritten, more: Iterable[str] = ()) -> None:
    """Say what was noticed, not read and written; nothing written, or an error, ends the command with exit code 3."""
    console = Terminal(stderr=True)
    print_reading(source, console)
    lines = [f"not read: {error_line(error)}" for error in done.errors[:_SHOWN]]
    if len(done.errors) > _SHOWN:
        lines.append(f"… and {len(done.errors) - _SHOWN:,} more")
    where = "standard output" if out == STDIN else out
    records = "1 record" if done.n_records == 1 else f"{done.n_records:,} records"
    lines.append(f"{records} in {where}" if done.n_records else "no records")
    for line in (*lines, *(more if done.n_records else ())):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    if done.errors or not done.n_records:
        raise click.exceptions.Exit(EXIT_ERRORS)


def expected_option(command: _Command) -> _Command:
    """``--expected``: a dataset with the answers."""
    return click.option(
        "--expected",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE",
        help="A dataset with the expected answers, joined by trace id, case id or question.",
    )(command)


def open_for_writing(path: str, *, compressed: bool = False) -> IO[bytes]:
    """A file to write, or standard output; one that cannot be written is an error in one line."""
    if path == STDIN:
        return open(sys.__stdout__.fileno() if sys.__stdout__ else 1, "wb", closefd=False)
    try:
        return gzip.open(path, "wb") if compressed else open(path, "wb")  # type: ignore[return-value]
    except OSError as error:
        raise cannot_write(path, error) from None


def cannot_write(path: str, error: OSError) -> InputFailure:
    """The failure of an output, in one line."""
    return InputFailure(f"cannot write {path}: {(error.strerror or str(error)).lower()}")


def unfinished_path(out: str) -> str:
    """Where an output is written until it is whole: beside its place. What is no file (a device, a pipe) is written to
    directly: it must not be replaced by one."""
    if out == STDIN or (os.path.exists(out) and not os.path.isfile(out)):
        return out
    return f"{os.path.realpath(out) if os.path.islink(out) else out}.part"


def finish_output(unfinished: str, out: str, *, keep: bool) -> None:
    """Put a whole output in its place; one that holds nothing is taken away, and what was there before stays."""
    if unfinished == out:
        return
    if keep:
        os.replace(unfinished, os.path.realpath(out))
    else:
        os.unlink(unfinished)


def refuse_missing(files: Sequence[str]) -> None:
    """An input that is not there is told before anything is read."""
    for path in files:
        if path != STDIN and not os.path.exists(path):
            raise InputFailure(f"{path}: no such file")


def refuse_overwriting_inputs(files: Sequence[str], *outputs: str | None) -> None:
    """An output must not be one of the inputs, nor lie in a folder of them, where it would be read the next time."""
    for output in outputs:
        for path in files:
            if not output or output == STDIN or not os.path.exists(path):
                continue
            if os.path.exists(output) and os.path.samefile(output, path):
                raise click.UsageError(f"{output} is an input: writing there would destroy it")
            if os.path.isdir(path) and Path(output).resolve().is_relative_to(Path(path).resolve()):
                raise click.UsageError(f"{output} lies in the input folder {path}: it would be read the next time")
