"""What the verbs that read traces share: their options, the loop that rewrites records, and care with their files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from agentunit.cli.options import InputFailure, open_store, print_field_notes
from agentunit.cli.references import is_demo
from agentunit.core.records import Record
from agentunit.core.results import InputError
from agentunit.datasets.demo import demo_records
from agentunit.datasets.readers import DatasetError, load_dataset
from agentunit.store.opening import may_exist
from agentunit.store.runs import is_again
from agentunit.store.schema import StoreError
from agentunit.traces.expected import ExpectedAnswers
from agentunit.traces.grouping import GroupBy
from agentunit.traces.native import STDIN, spoken_os_error
from agentunit.traces.reading import TraceFiles, TraceSource
from agentunit.traces.spans import ReadingNotes
from agentunit.urls import is_remote, refuse_missing_url

_Command = TypeVar("_Command", bound=Callable[..., Any])


def trace_options(command: _Command) -> _Command:
    """``--from`` and ``--group-by``: how trace files are read."""
    command = click.option(
        "--group-by",
        type=click.Choice(["trace", "session"]),
        default="trace",
        show_default=True,
        help="Which spans form one case.",
    )(command)
    return click.option(
        "--from",
        "format_name",
        metavar="FORMAT",
        help="Read the files as this format instead of detecting it (docs/traces.md lists them).",
    )(command)


def trace_files_from(
    files: Sequence[str], format_name: str | None, group_by: GroupBy, expected: str | None = None
) -> TraceFiles:
    """The traces that a command was given; a format or dataset that is wrong is a usage error."""
    answers = None
    if expected is not None:
        try:
            cases = load_dataset(expected)
            print_field_notes(cases)
            answers = ExpectedAnswers(cases)
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
                if not is_again(stored.repeat):
                    yield stored.record


class _BundledRecording(StoredRun):
    """The records of the demo."""

    def __init__(self) -> None:
        super().__init__("", "")

    def __iter__(self) -> Iterator[Record | InputError]:
        yield from demo_records()


def files_or_run(
    files: Sequence[str], format_name: str | None, group_by: GroupBy, store_path: str, expected: str | None = None
) -> TraceSource:
    """The traces that a command was given: files, or a run by its name where no such file is there."""
    if is_demo(files[0], store_path):
        return _BundledRecording()
    if names_run(files, store_path):
        with open_store(store_path, read_only=True) as store:
            try:
                return StoredRun(store_path, store.find_run(files[0]).id)
            except StoreError as error:
                raise InputFailure(f"{files[0]}: no such file, and no such run ({error})") from None
    refuse_missing(files)
    return trace_files_from(files, format_name, group_by, expected)


def names_run(files: Sequence[str], store_path: str) -> bool:
    """Whether what stands in the place of files can only be the name of a run."""
    first = files[0]
    is_input = len(files) > 1 or first == STDIN or is_remote(first) or os.path.exists(first)
    return not is_input and may_exist(store_path)


def expected_option(command: _Command) -> _Command:
    """``--expected``: a dataset with the answers."""
    return click.option(
        "--expected",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE",
        help="A dataset with the expected answers, joined by trace id, case id or question.",
    )(command)


def refuse_missing(files: Sequence[str]) -> None:
    """An input that is not there is told before anything is read."""
    for path in files:
        if is_remote(path):
            try:
                refuse_missing_url(path)
            except OSError as error:
                raise InputFailure(f"{path}: {spoken_os_error(error)}") from None
        elif path != STDIN and not os.path.exists(path):
            raise InputFailure(f"{path}: no such file")


def refuse_overwriting_inputs(files: Sequence[str], *outputs: str | None) -> None:
    """An output must not be one of the inputs, nor lie in a folder of them, where it would be read the next time."""
    for output in outputs:
        for path in files:
            if not output or output == STDIN:
                continue
            if is_remote(output) and is_remote(path):
                _refuse_overwriting_url(path, output)
            if not os.path.exists(path):
                continue
            if os.path.exists(output) and os.path.samefile(output, path):
                raise click.UsageError(f"{output} is an input: writing there would destroy it")
            if os.path.isdir(path) and Path(output).resolve().is_relative_to(Path(path).resolve()):
                raise click.UsageError(f"{output} is in the input folder {path}: it would be read the next time")


def _refuse_overwriting_url(path: str, output: str) -> None:
    if output == path:
        raise click.UsageError(f"{output} is an input: writing there would destroy it")
    if output.startswith(path.rstrip("/") + "/"):
        raise click.UsageError(f"{output} is in the input folder {path}: it would be read the next time")
