"""Options that several verbs share."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar

import click

from agentunit.backends.media_sources import configure_media_root
from agentunit.cli.main import EXIT_ERRORS
from agentunit.core.case import DatasetCase
from agentunit.core.codec import RecordError
from agentunit.engine.recording.end_signals import END_SIGNALS, heard_by
from agentunit.installation import engine_problem, usable_processors
from agentunit.reports.printable import printable_line
from agentunit.store import opening
from agentunit.store.opening import DEFAULT_PATH, may_exist, shown_address, sqlite_file
from agentunit.store.run_store import RunStore
from agentunit.store.schema import StoreError
from agentunit.urls import without_passwords

if TYPE_CHECKING:
    from agentunit.cli.judge_options import JudgeChoice

_Command = TypeVar("_Command", bound=Callable[..., Any])
_HELP_OF_ALL = "agentunit.help_all"


class Option(click.Option):
    """An option that also takes the spellings of earlier versions, which no help shows."""

    def __init__(self, names: Sequence[str], *, former: Sequence[str] = (), **attributes: Any) -> None:
        super().__init__([*names, *former], **attributes)
        self.former = former

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The line of the help, with the spellings of today."""
        spelled = self.opts
        self.opts = [name for name in spelled if name not in self.former]
        try:
            return super().get_help_record(ctx)
        finally:
            self.opts = spelled


def say_moved(former: str, now: str) -> None:
    """Say on standard error how something is spelled that has another name now."""
    click.echo(f"note: {former} is now {now}; the old spelling works in this edition only", err=True)


def _show_all_options(context: click.Context, _: click.Parameter, is_asked: bool) -> None:
    if is_asked and not context.resilient_parsing:
        context.meta[_HELP_OF_ALL] = True
        click.echo(context.get_help(), color=context.color)
        context.exit()


_HELP_ALL = click.Option(
    ["--help-all"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_all_options,
    help="Show every option and exit.",
)


class Verb(click.Command):
    """A command whose help shows the options that most people need, and with ``--help-all`` the others too.

    ``first`` names them, separated by spaces; without it all are shown.
    """

    def __init__(self, *received: Any, first: str = "", **attributes: Any) -> None:
        super().__init__(*received, **attributes)
        self.first = frozenset(first.split())

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The parameters, the two of the help last."""
        *params, shows_help = super().get_params(ctx)
        return [*params, _HELP_ALL, shows_help]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the first options, and under a heading of their own the others if they were asked for."""
        *params, help_all, shows_help = self.get_params(ctx)
        first: list[tuple[str, str]] = []
        others: list[tuple[str, str]] = []
        for param in params:
            row = param.get_help_record(ctx)
            if row is not None:
                is_first = not self.first or not self.first.isdisjoint(param.opts)
                (first if is_first else others).append(row)
        shows_others = bool(others) and _HELP_OF_ALL in ctx.meta
        ends = [shows_help] if shows_others or not others else [help_all, shows_help]
        first += [row for each in ends if (row := each.get_help_record(ctx)) is not None]
        with formatter.section("Options"):
            formatter.write_dl(first)
        if shows_others:
            with formatter.section("More options"):
                formatter.write_dl(others)


_TIME_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


run_argument = click.argument("run_reference", metavar="RUN")


class InputFailure(click.ClickException):
    """Input that cannot be read, or output that cannot be written: one line, exit code 3."""

    exit_code = EXIT_ERRORS

    def __init__(self, message: str) -> None:
        error = sys.exc_info()[1]
        if isinstance(error, RecordError) or type(error).__module__.startswith("agentunit.datasets."):
            # What is wrong with a record, a row or a cell is said with what stands there.
            from agentunit.reports.reported_run import printing_mask

            message = printing_mask().name(message)
        super().__init__(printable_line(without_passwords(message)))


def of_all_verbs(context: click.Context, name: str) -> Any:
    """What was said before the verb, which holds for all of them: ``agentunit --store FILE runs``."""
    return context.find_root().params.get(name)


def store_option(command: _Command) -> _Command:
    """``--store``, which may follow the verb, too: where runs are kept."""

    def check(context: click.Context, __: click.Parameter, address: str | None) -> str:
        address = address or of_all_verbs(context, "store_path") or os.environ.get("AGENTUNIT_STORE") or DEFAULT_PATH
        try:
            sqlite_file(address)
        except StoreError as error:
            raise click.BadParameter(str(error)) from None
        return address

    return click.option("--store", "store_path", metavar="FILE|URL", hidden=True, callback=check)(command)


def json_option(text: str) -> Callable[[_Command], _Command]:
    """``--json``: data for a program in place of text for a person."""
    return click.option("--json", "as_json", is_flag=True, help=text)


why_option = click.option(
    "--why",
    "all_rows",
    cls=Option,
    former=("--all",),
    is_flag=True,
    help="Show everything: every row, how far each score can be trusted, and why scores are missing.",
)


def by_option(command: _Command) -> _Command:
    """``--by``: the table also by slice."""

    def check(_: click.Context, __: click.Parameter, field: str | None) -> str | None:
        from agentunit.engine.scoring.case_fields import check_field

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


def _say_that_unsure_is_gone(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value is not None and not context.resilient_parsing:
        click.echo(
            f"note: --unsure {value} has no effect any more: cases decide now, failing ones are tried again, and exit "
            "code 4 is left for what nothing can decide (docs/statistics.md)",
            err=True,
        )


# What earlier versions took, accepted for one more edition.
unsure_option = click.option(
    "--unsure",
    type=click.Choice(["pass", "fail", "by-case"]),
    hidden=True,
    expose_value=False,
    callback=_say_that_unsure_is_gone,
)

margin_option = click.option(
    "--margin",
    "margins",
    multiple=True,
    metavar="METRIC=LOSS",
    help="Also ask that a loss of this size is ruled out: 0.02, or 10% of the metric's mean. Without METRIC=: of all "
    "that are tested.",
)

tries_option = click.option(
    "--tries",
    "most_tries",
    type=click.IntRange(min=1),
    metavar="N",
    help="The most tries of a case that newly fails, the first ones included. 1: nothing is tried again. Default: as "
    "many as it takes to tell a broken case from a flaky one.",
)


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


show_personal_data_option = click.option(
    "--unmasked",
    "show_personal_data",
    cls=Option,
    former=("--show-personal-data",),
    is_flag=True,
    help="Show e-mail addresses, card numbers, credentials and the like, which are masked otherwise.",
)


def media_root_option(command: _Command) -> _Command:
    """``--media-root``, which may follow the verb, too: the folder that pictures and recordings may be read from."""

    def configure(context: click.Context, __: click.Parameter, folder: str | None) -> None:
        configure_media_root(folder or of_all_verbs(context, "media_root"))

    return click.option(
        "--media-root",
        type=click.Path(exists=True, file_okay=False),
        metavar="FOLDER",
        callback=configure,
        expose_value=False,
        hidden=True,
    )(command)


_opened: dict[str, None] = {}


def damaged_store() -> str | None:
    """What is wrong with a store of this command, for an error that nothing else explains; ``None``: nothing."""
    from agentunit.store.sqlite import why_damaged

    for path in _opened:
        file = opening.sqlite_file(path)
        why = None if file is None else why_damaged(file)
        if why is not None:
            return f"{path} is damaged ({why}): put a copy of it in its place"
    return None


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
        _opened[path] = None
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


def user_name() -> str:
    """Who uses this machine, as far as it says so: whoever labels, unless another is named."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""


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


def print_field_notes(cases: Sequence[DatasetCase], declared: Collection[str] = ()) -> None:
    """Say which fields of a dataset are probably misspelled: they are not read."""
    from agentunit.datasets.rows import field_notes

    for slip in field_notes(cases, declared):
        click.echo(f"note: {printable_line(slip)}", err=True)


def metrics_from(names: Sequence[str], choice: JudgeChoice) -> list[Any]:
    """The metrics named on a command line, with their parameters from it; a wrong name is a usage error."""
    from agentunit.metrics.registry import DEFAULT_METRICS, resolve_metrics

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
