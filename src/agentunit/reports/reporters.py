"""What writes a run as a file, by the name of the format: AgentUnit's own reporters and those of installed packages.

A package adds one through the entry-point group ``agentunit.reporters``: an object that is a ``Reporter``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import IO, Any, NamedTuple, Protocol, cast

from agentunit.plugins import Plugin, PluginTable, require
from agentunit.reports.figures import counted, counted_cases
from agentunit.reports.reported_run import ReportedRun
from agentunit.traces.native import spoken_os_error
from agentunit.traces.remote import RemoteOutput, is_remote

STDOUT = "-"


class ReportError(RuntimeError):
    """A report that cannot be made; the message says why and what to do."""


@contextmanager
def _opened(path: str) -> Iterator[IO[bytes]]:
    try:
        with open(path, "wb") as stream:
            yield stream
    except OSError as error:
        raise ReportError(f"cannot write {path}: {(error.strerror or str(error)).lower()}") from None


@contextmanager
def _sent(url: str) -> Iterator[IO[bytes]]:
    try:
        with RemoteOutput(url) as stream:
            yield cast(IO[bytes], stream)
    except OSError as error:
        raise ReportError(f"cannot write {url}: {spoken_os_error(error)}") from None


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A stream whose content takes the place of a file, or is one by URL, when all of it is written; ``-`` is standard
    output."""
    target = os.fspath(path)
    if target == STDOUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if is_remote(target):
        with _sent(target) as stream:
            yield stream
        return
    # A link is followed; a device or a pipe is written to, never replaced by a file.
    if os.path.islink(target):
        target = os.path.realpath(target)
    if os.path.exists(target) and not os.path.isfile(target):
        with _opened(target) as stream:
            yield stream
        return
    unfinished = f"{target}.{os.getpid()}.part"
    try:
        stream = open(unfinished, "wb")  # noqa: SIM115  # closed before the rename, which Windows insists on
    except OSError as error:
        raise ReportError(f"cannot write {target}: {(error.strerror or str(error)).lower()}") from None
    try:
        with stream:
            yield stream
        os.replace(unfinished, target)
    except BaseException as error:
        if os.path.exists(unfinished):
            os.unlink(unfinished)
        if isinstance(error, OSError):
            raise ReportError(f"cannot write {target}: {(error.strerror or str(error)).lower()}") from None
        raise


ENTRY_POINT_GROUP = "agentunit.reporters"
PORTABLE = "json"
"""The run itself with all its records, which can be imported again: no report, so no reporter may take the name."""
_PORTABLE_ENDINGS = (".json", ".jsonl", ".json.gz", ".jsonl.gz")


class Reporter(Protocol):
    """What a package implements to write a run in a format of its own.

    ``summary`` says what it writes. A file that ends in one of ``endings`` is written by it without ``--format``;
    endings of AgentUnit's own formats stay with them. One that has ``several = True`` is also called for several runs
    against one baseline: ``reported.runs`` has all of them, ``reported.verdict`` what they amount to.
    """

    @property
    def summary(self) -> str:
        """One line on what it writes."""
        ...

    @property
    def endings(self) -> Sequence[str]:
        """The endings of its files, such as ``.txt``; none where it must be named."""
        ...

    def write(self, reported: ReportedRun, target: str) -> str:
        """Write a run to a file, ``-`` being standard output, and say how much was written, as in ``12 rows``.

        ``whole_file(target)`` is a stream that takes the file's place when all of it is written. What goes wrong is a
        ``ReportError`` that says why. A verdict is rendered, never made: it is
        ``reported.decision``.
        """
        ...


class RunReporter(NamedTuple):
    """A reporter made of a function. ``several``: it writes all of ``reported.runs``, not only the first."""

    summary: str
    endings: Sequence[str]
    write: Callable[[ReportedRun, str], str]
    several: bool = False


_OWN_REPORTERS = {
    "junit": "agentunit.reports.reporters:JUNIT",
    "markdown": "agentunit.reports.reporters:MARKDOWN",
    "csv": "agentunit.reports.reporters:CSV",
    "parquet": "agentunit.reports.reporters:PARQUET",
    "html": "agentunit.viewer.html_file:HTML",
    "otel": "agentunit.reports.reporters:OTEL",
}


@cache
def reporter_table() -> PluginTable[Reporter]:
    """The reporters by name; those of installed packages come last."""
    return PluginTable("reporter", ENTRY_POINT_GROUP, _OWN_REPORTERS, adopt=_adopted, reserved=(PORTABLE,))


def reporter_names() -> list[str]:
    """The names for ``--format``; none of the packages is imported by looking."""
    return [PORTABLE, *reporter_table().entries]


def reporter_named(name: str) -> Reporter:
    """The reporter of this name, which is one of ``reporter_names``; one that does not load is a ``ReportError``."""
    try:
        return reporter_table().load(name)
    except ValueError as error:
        raise ReportError(str(error)) from None


def format_for(target: str) -> str | None:
    """The name of the format for a file or an address; ``None`` when no format has files that end like it."""
    if target.startswith(("http://", "https://")):
        return "otel"
    name = os.path.basename(target).lower()
    # Of AgentUnit's own formats first: packages are imported only for an ending that none of them has.
    return next((format_name for ending, format_name in _endings() if name.endswith(ending)), None)


def known_endings() -> list[str]:
    """The endings by which the format of a file is known."""
    return [ending for ending, _ in _endings()]


def _endings() -> Iterator[tuple[str, str]]:
    for ending in _PORTABLE_ENDINGS:
        yield ending, PORTABLE
    for name, reporter in reporter_table().usable():
        for ending in reporter.endings:
            yield ending.lower(), name


def _adopted(made: Any, plugin: Plugin) -> Reporter:
    """A reporter; one of another package that fails in an unforeseen way is named in the error."""
    if plugin.package is None:
        own: Reporter = made
        return own
    require(made, "reporter", "summary", "endings", "write")

    def write(reported: ReportedRun, target: str) -> str:
        try:
            return str(made.write(reported, target))
        except ReportError:
            raise
        except Exception as error:
            raise ReportError(f"{plugin} failed: {type(error).__name__}: {error}") from error

    endings = (made.endings,) if isinstance(made.endings, str) else tuple(made.endings)
    return RunReporter(str(made.summary), endings, write, several=bool(getattr(made, "several", False)))


def _write_junit(reported: ReportedRun, target: str) -> str:
    from agentunit.reports.junit import write_junit

    return _counted(reported, write_junit(reported, target))


def _write_markdown(reported: ReportedRun, target: str) -> str:
    from agentunit.reports.markdown import run_markdown

    text = run_markdown(reported)
    with whole_file(target) as stream:
        stream.write(text.encode("utf-8", "replace"))
    return f"{len(text):,} characters"


def _write_csv(reported: ReportedRun, target: str) -> str:
    from agentunit.reports.table_files import write_csv

    return counted(write_csv(reported, target), "row")


def _write_parquet(reported: ReportedRun, target: str) -> str:
    from agentunit.reports.table_files import write_parquet

    return counted(write_parquet(reported, target), "row")


def _send_events(reported: ReportedRun, target: str) -> str:
    from agentunit.reports.otel_events import send_scores

    return counted(send_scores(reported, target), "event")


def _counted(reported: ReportedRun, n_records: int) -> str:
    if reported.others:
        return f"{counted(len(reported.runs), 'run')}, {counted(n_records, 'record')}"
    return counted_cases(reported.run.n_cases, reported.run.n_repeats, n_records)


JUNIT = RunReporter("JUnit XML for CI: one test per case and one per gate", (".xml",), _write_junit, several=True)
MARKDOWN = RunReporter("Markdown for a pull request", (".md", ".markdown"), _write_markdown, several=True)
CSV = RunReporter("a table: one row per case, repeat and metric", (".csv",), _write_csv)
PARQUET = RunReporter(
    "the score table, which gate, compare and show read again (extra parquet)", (".parquet",), _write_parquet
)
OTEL = RunReporter("every score as an OpenTelemetry event, sent to an address (extra otel)", (), _send_events)
