"""Options that several verbs share."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from math import inf
from typing import Any, TypeVar

import click

from agentunit.backends.media.limits import configure_media_root
from agentunit.cli.judge_options import JudgeChoice
from agentunit.cli.main import EXIT_ERRORS
from agentunit.engine.end_signals import END_SIGNALS, heard_by
from agentunit.engine.parallel import engine_problem, usable_processors
from agentunit.metrics.registry import DEFAULT_METRICS, resolve_metrics
from agentunit.reports.printable import printable_line
from agentunit.store import opening
from agentunit.store.opening import DEFAULT_PATH, may_exist, shown_address, sqlite_file
from agentunit.store.protocol import RunStore
from agentunit.store.schema import StoreError
from agentunit.traces.remote import without_passwords

_TIME_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_Command = TypeVar("_Command", bound=Callable[..., Any])


class InputFailure(click.ClickException):
    """Input that cannot be read, or output that cannot be written: one line, exit code 3."""

    exit_code = EXIT_ERRORS

    def __init__(self, message: str) -> None:
        super().__init__(printable_line(without_passwords(message)))


def store_option(command: _Command) -> _Command:
    """``--store``: where runs are kept."""

    def check(_: click.Context, __: click.Parameter, address: str) -> str:
        try:
            sqlite_file(address)
        except StoreError as error:
            raise click.BadParameter(str(error)) from None
        return address

    return click.option(
        "--store",
        "store_path",
        envvar="AGENTUNIT_STORE",
        default=DEFAULT_PATH,
        show_default=True,
        metavar="FILE|URL",
        callback=check,
        help="Where runs are kept: a SQLite file, or postgresql://USER@HOST/DATABASE (also AGENTUNIT_STORE).",
    )(command)


def json_option(text: str) -> Callable[[_Command], _Command]:
    """``--json``: data for a program in place of text for a person."""
    return click.option("--json", "as_json", is_flag=True, help=text)


def all_rows_option(command: _Command) -> _Command:
    """``--all``: every row of a table, where ten are shown otherwise."""
    return click.option("--all", "all_rows", is_flag=True, help="Show every row of the table, not only ten.")(command)


def by_option(command: _Command) -> _Command:
    """``--by``: the table also by slice."""

    def check(_: click.Context, __: click.Parameter, field: str | None) -> str | None:
        from agentunit.engine.case_fields import check_field

        try:
            return None if field is None else check_field(field)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None

    return click.option(
        "--by",
        "by",
        metavar="FIELD",
        callback=check,
        help="Also a table by slice: metadata.category, metadata.a.b or tag. The slices that differ most come first.",
    )(command)


def jobs_option(command: _Command) -> _Command:
    """``--jobs``: how many processes score."""

    def read(_: click.Context, __: click.Parameter, text: str | None) -> int | None:
        if text is None:
            return None
        if text.strip() == "auto":
            return usable_processors()
        if not text.strip().isdecimal() or not int(text):
            raise click.BadParameter(f"must be a number of processes, or auto; received {text!r}")
        return int(text)

    return click.option(
        "-j",
        "--jobs",
        metavar="N",
        callback=read,
        help="Use this many processes ('auto': one per processor). The result is the same to the last digit.",
    )(command)


def engine_option(command: _Command) -> _Command:
    """``--engine``: what else than processes of this machine scores."""

    def check(_: click.Context, __: click.Parameter, engine: str | None) -> str | None:
        if engine is not None and (problem := engine_problem(engine)) is not None:
            raise click.BadParameter(problem)
        return engine

    return click.option(
        "--engine",
        metavar="ray[://HOST:PORT]",
        callback=check,
        help="Run as tasks of Ray (extra ray), here or on the cluster with this address, --jobs of them at once "
        "(default: one per processor of the cluster). The result is the same.",
    )(command)


def show_personal_data_option(command: _Command) -> _Command:
    """``--show-personal-data``: reports as they were before masking."""
    return click.option(
        "--show-personal-data",
        "--unmasked",
        is_flag=True,
        help="Show e-mail addresses, card numbers, credentials and the like, which are masked otherwise.",
    )(command)


def media_root_option(command: _Command) -> _Command:
    """``--media-root``: the folder that pictures, videos and recordings may be read from."""

    def configure(_: click.Context, __: click.Parameter, folder: str | None) -> None:
        configure_media_root(folder)

    return click.option(
        "--media-root",
        type=click.Path(exists=True, file_okay=False),
        metavar="FOLDER",
        callback=configure,
        expose_value=False,
        help="The folder of pictures, videos and recordings that cases name. Default: that of the naming file.",
    )(command)


def open_store(path: str, *, must_exist: bool = True, read_only: bool = False) -> RunStore:
    """The store of a command; one that is not there yet is an error unless the command makes it.

    Commands that only read say ``read_only``: they work where nothing can be written, and change nothing.
    """
    shown = shown_address(path)
    try:
        if must_exist and not may_exist(path):
            raise InputFailure(
                f"no runs are kept in {shown} yet ('agentunit run SUITE' makes some; --store names another)"
            )
        return opening.open_store(path, read_only=read_only)
    except StoreError as error:
        raise InputFailure(str(error)) from None
    except OSError as error:
        raise InputFailure(f"cannot open the store {shown}: {(error.strerror or str(error)).lower()}") from None


@contextmanager
def end_signals_interrupt() -> Iterator[None]:
    """A polite request to end, and a closed terminal, raise ``KeyboardInterrupt`` as Ctrl-C does."""

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    with heard_by(interrupt, [each for each in END_SIGNALS if signal.getsignal(each) == signal.SIG_DFL]):
        yield


def say_stopped(kept: str, next_step: str | None = None) -> None:
    """The last lines of a command that was stopped: what is kept and how to go on, if they can still be written."""
    with suppress(OSError):
        click.echo(f"stopped: {kept}", err=True)
        if next_step is not None:
            click.echo(f"next: {next_step}", err=True)


def tags_from(pairs: Sequence[str]) -> dict[str, str]:
    """The tags of a command line, ``KEY=VALUE`` each."""
    tags = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise click.BadParameter(f"must be KEY=VALUE, such as model=x; received {pair!r}", param_hint="--tag")
        tags[key.strip()] = value.strip()
    return tags


def seconds_from(text: str) -> float:
    """A length of time on a command line, in seconds: ``90``, ``30m`` or ``2h``."""
    unit = text[-1:].lower()
    try:
        seconds = float(text[:-1]) * _TIME_UNITS[unit] if unit in _TIME_UNITS else float(text)
    except ValueError:
        seconds = 0.0
    if not 0.0 < seconds < inf:
        raise click.BadParameter(f"must be a time such as 90, 30m or 2h; received {text!r}", param_hint="--max-time")
    return seconds


def metrics_from(names: Sequence[str], choice: JudgeChoice) -> list[Any]:
    """The metrics named on a command line, with their parameters from it; a wrong name is a usage error."""
    wanted = [name.strip() for group in names for name in group.split(",") if name.strip()]
    # A user's own metric is usually a module beside the traces; last, so that no file there takes another's place.
    if any(":" in name for name in wanted) and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    if names and not wanted:
        raise click.BadParameter("name at least one metric", param_hint="--metrics")
    try:
        with redirect_stdout(sys.stderr):
            return list(resolve_metrics(choice.with_parameters(wanted or DEFAULT_METRICS)))
    except (ValueError, TypeError, RuntimeError) as error:
        raise click.BadParameter(str(error), param_hint="--metrics") from None
    except Exception as error:  # noqa: BLE001  # a user's own module may fail in any way when it is loaded
        named = ", ".join(wanted)
        raise click.BadParameter(f"{named}: {type(error).__name__}: {error}", param_hint="--metrics") from None
