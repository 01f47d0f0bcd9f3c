"""The runs and cases that a command line names."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import click
import msgspec

from agentunit.cli.options import InputFailure, open_store
from agentunit.core.codec import RecordError
from agentunit.core.results import describe_own_file
from agentunit.datasets.demo import DEMO
from agentunit.engine.deciding.gate_expressions import GateError
from agentunit.engine.scoring.score_rows import is_table
from agentunit.engine.scoring.scored_run import ScoredRun, find_scored_run, is_unfinished, n_with_scores, run_from_file
from agentunit.reports.printable import printable_line
from agentunit.reports.reported_run import ReportedRun, how_to_resume, open_run, open_run_file, store_arguments
from agentunit.reports.reporters import ReportError
from agentunit.store.opening import may_exist
from agentunit.store.run_store import RunStore
from agentunit.store.schema import StoreError
from agentunit.urls import is_file, is_remote

if TYPE_CHECKING:
    from agentunit.engine.scoring.slices import SliceTable

# What can be a path and is hardly a run's name: it has a folder, or ends like a file.
_PATH = re.compile(r"[/\\]|\.[A-Za-z][A-Za-z0-9]{1,7}\Z")


@contextmanager
def unreadable_runs_fail() -> Iterator[None]:
    """A run that cannot be found, read or written ends the command with one line and exit code 3."""
    try:
        yield
    except (StoreError, RecordError, ReportError, GateError) as error:
        raise InputFailure(str(error)) from None


def load_run(reference: str, store_path: str) -> ScoredRun:
    """The scores of a run of a file or of the store; a file needs no store."""
    refuse_other_files(reference, store_path)
    with unreadable_runs_fail():
        if is_file(reference):
            return run_from_file(reference)
        with open_store(store_path, read_only=True) as store:
            _note_shared_name(reference, store)
            return find_scored_run(reference, store)


def _note_shared_name(reference: str, store: RunStore) -> None:
    """Say which run is meant by a name that several have."""
    called = [header for header in store.runs() if header.name == reference != header.id]
    if len(called) > 1:
        newest = store.find_run(reference)
        if newest.name == reference:
            text = f"note: {len(called)} runs are called {reference!r}: taking the newest ({newest.id})"
            click.echo(printable_line(text), err=True)


def sliced_as_asked(slices_of: Callable[..., SliceTable], *arguments: Any) -> SliceTable:
    """The table by slice that a command line asks for; a run that cannot be sliced, or read, fails in one line."""
    with unreadable_runs_fail():
        try:
            return slices_of(*arguments)
        except ValueError as error:
            raise InputFailure(str(error)) from None


def find_reported_run(reference: str, store_path: str, *, show_personal_data: bool, held: bool = True) -> ReportedRun:
    """A run with its records: of an exported file, of a score table, which has none, or of the store.

    One of the store is not ``held`` in memory for whoever looks at single cases.
    """
    if is_file(reference):
        return open_run_file(reference, show_personal_data=show_personal_data)
    store = open_store(store_path, read_only=True)
    try:
        _note_shared_name(reference, store)
        return open_run(reference, store, show_personal_data=show_personal_data, held=held)
    except StoreError:
        store.close()
        raise


def note_what_stays(references: Sequence[str], store_path: str) -> None:
    """Say that names and addresses stay in what was written of runs, unless their store keeps masked text only."""
    if not any(is_file(each) for each in references):
        with open_store(store_path, read_only=True) as store:
            if store.masking.is_on:
                return
    reference = references[0] if references else "RUN"
    masks = "masks the records, to score FILE"
    if is_file(reference) and is_table(reference):
        # A table holds no records: the traces are masked that its scores were made of.
        way = f"'agentunit convert TRACES --mask --out FILE' {masks}"
    elif is_file(reference) and _is_exported_run(reference):
        taken_in = shlex.join(["agentunit", "runs", "--import", reference])
        way = f"'{taken_in}' takes the run in, and 'agentunit convert RUN --mask --out FILE' {masks}"
    else:
        where = [] if os.path.exists(reference) else store_arguments(store_path)
        way = f"'{shlex.join(['agentunit', 'convert', reference, '--mask', '--out', 'FILE', *where])}' {masks}"
    click.echo(printable_line(f"names and addresses may be in it: {way}"), err=True)


def refuse_other_files(reference: str, store_path: str) -> None:
    """Say what is wrong with a reference that can only be a file: it is not there, or it holds scores alone."""
    if is_file(reference):
        if is_remote(reference) or _is_exported_run(reference):
            return
        own = describe_own_file(_first_names(reference), reference)
        if own is not None:
            raise InputFailure(f"{reference}: {own}")
        return
    if is_remote(reference) or os.path.exists(reference) or not _PATH.search(reference):
        return
    if may_exist(store_path):
        with open_store(store_path, read_only=True) as store, suppress(StoreError):
            store.find_run(reference)
            return
    raise InputFailure(f"{reference}: no such file, and no run is called so")


def _is_exported_run(path: str) -> bool:
    # A run of a store is found without what reads files.
    from agentunit.store.portable import is_portable

    return is_portable(path)


def _first_names(path: str) -> Collection[str]:
    """The names of the first object of a file with one on each line."""
    from agentunit.traces.compressed import BROKEN_STREAM, ZstandardMissing, bounded_lines, decompressed

    try:
        with open(path, "rb") as raw:
            line = next((line for _, line in bounded_lines(decompressed(raw))), b"")
        # A whole export may be one line: it is not decoded to no end.
        if isinstance(line, str) or b'"case_id"' not in line or b'"scores"' not in line:
            return ()
        first = msgspec.json.decode(line)
    except (msgspec.DecodeError, OSError, UnicodeError, RecursionError, ZstandardMissing, *BROKEN_STREAM):
        return ()
    return first.keys() if isinstance(first, dict) else ()


def names_traces(reference: str, store_path: str) -> bool:
    """Whether a reference is a file or folder of traces. A run that is called like a folder comes first."""
    refuse_other_files(reference, store_path)
    if is_file(reference):
        return not (_is_exported_run(reference) or is_table(reference))
    if not os.path.isdir(reference) or not may_exist(store_path):
        return os.path.isdir(reference)
    with open_store(store_path, read_only=True) as store:
        try:
            store.find_run(reference)
        except StoreError:
            return True
    return False


def is_demo(reference: str, store_path: str) -> bool:
    """Whether a reference is the bundled recording. A file or run that is called so comes first."""
    if reference != DEMO or os.path.exists(reference):
        return False
    if not may_exist(store_path):
        return True
    with open_store(store_path, read_only=True) as store:
        try:
            store.find_run(reference)
        except StoreError:
            return True
    return False


def meant_case(case_id: str, known: Sequence[str]) -> str | None:
    """The id that a command line means: itself, as it was printed, or its beginning where no other begins so.

    >>> meant_case("desk-01", ["desk-016", "desk-021"]), meant_case("desk-0", ["desk-016", "desk-021"])
    ('desk-016', None)
    """
    if case_id in known:
        return case_id
    # What steers a terminal or a CI log is not in an id as it was printed.
    as_printed = [each for each in known if printable_line(each) == case_id]
    begin_so = [each for each in known if each.startswith(case_id)]
    return as_printed[0] if as_printed else begin_so[0] if len(begin_so) == 1 and case_id else None


def unknown_case(run: str, case_id: str, known: Sequence[str]) -> InputFailure:
    """The error for a case that a run does not have, with the id that was probably meant."""

    def without_zeros(text: str) -> str:
        return re.sub(r"0*([0-9]+)", r"\1", text.casefold())

    # People leave out the zeros of an id, or type only a part of it.
    near = [each for each in known if without_zeros(each) == without_zeros(case_id)]
    near += get_close_matches(case_id, known, n=1, cutoff=0.5)
    near += [each for each in known if case_id.casefold() in each.casefold()]
    hint = f"; did you mean {printable_line(near[0])!r}?" if near else ""
    return InputFailure(f"run {run} has no case {case_id!r}{hint}")


def how_to_complete(runs: Mapping[str, ScoredRun], store_path: str) -> list[str]:
    """The commands that run or score what runs of the store still lack, by what they were called."""
    commands = []
    for reference, run in runs.items():
        if is_file(reference):
            continue
        resume = how_to_resume(run.header, store_path)
        if resume is not None:
            commands.append(resume)
        elif n_with_scores(run) < run.n_records and not is_unfinished(run):
            commands.append(shlex.join(["agentunit", "score", run.header.id, *store_arguments(store_path)]))
    return list(dict.fromkeys(commands))


def shown_name(reference: str, run: ScoredRun) -> str:
    """What other commands find a run by: the file it was read from, or its id, whatever it was called by."""
    return reference if is_file(reference) else run.header.id
