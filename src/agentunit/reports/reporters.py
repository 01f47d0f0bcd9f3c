"""What writes a run as a file, by the name of the format: AgentUnit's own reporters and those of installed packages.

A package adds one through the entry-point group ``agentunit.reporters``: an object that is a ``Reporter``.
"""

from __future__ import annotations

import csv
import io
import os
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import IO, Any, NamedTuple, Protocol, cast

from agentunit.core.score_block import reason_in
from agentunit.plugins import Plugin, PluginTable, require
from agentunit.reports.figures import counted
from agentunit.reports.printable import disarmed
from agentunit.reports.reported_run import ReportedRun
from agentunit.traces.native import spoken_os_error
from agentunit.urls import is_remote, open_output

# A run as a table for people, in CSV: one row a case, repeat and metric.

COLUMNS = (
    "case_id",
    "repeat",
    "metric",
    "value",
    "status",
    "backend",
    "version",
    "elapsed_s",
    "reason",
    "agent_failed",
    "agent_elapsed_s",
    "why",
)
"""``repeat`` counts from 1; ``elapsed_s`` is the metric's time, ``agent_elapsed_s`` the agent's.

``why`` is the proof of a value.
"""

# A spreadsheet takes a cell that begins like this for a formula, and runs it.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def score_rows(reported: ReportedRun) -> Iterator[tuple[Any, ...]]:
    """The rows of the table, as the ``COLUMNS`` name them."""
    for case in reported.cases():
        for metric, score in case.scores.items():
            yield (
                case.case_id,
                case.repeat + 1,
                metric,
                score.result.value,
                score.status,
                score.backend,
                score.version,
                score.elapsed,
                reason_in(score.value, score.result.detail),
                case.failed,
                case.elapsed_s,
                score.why,
            )


def write_csv(reported: ReportedRun, path: str | os.PathLike[str]) -> int:
    """Write the table as CSV in UTF-8; returns the number of rows."""
    n_rows = 0
    with whole_file(path) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8", errors="replace", newline="", write_through=True)
        # With the line end of the standard, a lone carriage return inside a text is quoted too.
        writer = csv.writer(text, lineterminator="\r\n")
        try:
            writer.writerow(COLUMNS)
            for row in score_rows(reported):
                writer.writerow([_cell(value) for value in row])
                n_rows += 1
        finally:
            # The stream belongs to whoever opened it.
            text.detach()
    return n_rows


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # Not even readers of CSV agree on what a zero byte means.
        text = disarmed(value.replace("\x00", "\ufffd"))
        # Some spreadsheets take full-width signs for the plain ones.
        start = unicodedata.normalize("NFKC", text.lstrip(" \u00a0\u3000")[:1])
        return f"'{text}" if start.startswith(_FORMULA_STARTS) else text
    return value


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
        with open_output(url) as stream:
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
    "parquet": "agentunit.addons.scale.table_output:PARQUET",
    "html": "agentunit.addons.viewer.html_file:HTML",
    "otel": "agentunit.reports.reporters:OTEL",
}

# Known by their ending alone: nothing is imported to write another one of them.
_NAMED_BY_ENDING = ("csv", "parquet", "html")


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
    own_name = name.rpartition(".")[2]
    if own_name in _NAMED_BY_ENDING:
        return own_name
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
    from agentunit.reports._junit import write_junit

    return _counted(reported, write_junit(reported, target))


def _write_markdown(reported: ReportedRun, target: str) -> str:
    from agentunit.reports.markdown import run_markdown

    text = run_markdown(reported)
    with whole_file(target) as stream:
        stream.write(text.encode("utf-8", "replace"))
    return f"{len(text):,} characters"


def _write_csv(reported: ReportedRun, target: str) -> str:

    return counted(write_csv(reported, target), "row")


def _send_events(reported: ReportedRun, target: str) -> str:
    from agentunit.reports.otel_events import send_scores

    return counted(send_scores(reported, target), "event")


def _counted(reported: ReportedRun, n_cases: int) -> str:
    of_runs = f"{counted(len(reported.runs), 'run')}, " if reported.others else ""
    return f"{of_runs}{counted(n_cases, 'case')}"


JUNIT = RunReporter("JUnit XML for CI: one test per case and one per gate", (".xml",), _write_junit, several=True)
MARKDOWN = RunReporter("Markdown for a pull request", (".md", ".markdown"), _write_markdown, several=True)
CSV = RunReporter("a table: one row per case, repeat and metric", (".csv",), _write_csv)
OTEL = RunReporter("every score as an OpenTelemetry event, sent to an address (extra otel)", (), _send_events)
