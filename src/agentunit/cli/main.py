"""The ``agentunit`` command. Each verb loads when it is called."""

from __future__ import annotations

import gc
import io
import os
import sys
from contextlib import suppress
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import click

import agentunit
from agentunit.cli.streams import end_process, forget_output, remembered_exit_code

if TYPE_CHECKING:
    from agentunit.plugins import Plugin, PluginTable

ENTRY_POINT_GROUP = "agentunit.commands"
EXIT_OK = 0
EXIT_USAGE = 2
EXIT_ERRORS = 3
EXIT_CANNOT_TELL = 4
EXIT_STOPPED = 130
_COMPLETION = "_AGENTUNIT_COMPLETE"
# What decides must not look like a pass when its output was cut off before it had decided: as if ended by SIGPIPE.
_EXIT_CLOSED = dict.fromkeys(("run", "rerun", "compare"), 141)


class _Verb(NamedTuple):
    """A command of AgentUnit's own: where it is, its line of help, and whether a newcomer needs it."""

    target: str
    line: str
    is_first: bool = False


# The help lists the first ones, and the others under "More".
_VERBS = {
    "init": _Verb(
        "agentunit.cli.init:init", "Write a working suite into a folder, as a start, or of another tool's tests.", True
    ),
    "run": _Verb("agentunit.cli.run:run", "Record an agent on a dataset, score what it did, decide.", True),
    "score": _Verb("agentunit.cli.score:score", "Score recorded traces, or a run that was recorded before.", True),
    "compare": _Verb("agentunit.cli.compare:compare", "Compare a run with a baseline, case by case.", True),
    "show": _Verb(
        "agentunit.cli.show:show", "Show a run or one of its cases, and check it against gates: try 'show demo'.", True
    ),
    "view": _Verb(
        "agentunit.addons.viewer.view_command:view",
        "Look at runs in the browser, or write a bundle of them to publish.",
    ),
    "label": _Verb(
        "agentunit.addons.review.label_command:label", "Label cases of a run, and measure scores against the labels."
    ),
    "collect": _Verb(
        "agentunit.addons.watch.collect_command:collect",
        "Receive OpenTelemetry spans from running agents and write records.",
    ),
    "convert": _Verb(
        "agentunit.cli.convert:convert", "Turn traces of any format into records, masked with --mask, to share them."
    ),
    "runs": _Verb("agentunit.cli.runs:runs", "List the runs, take in exported ones, erase data."),
    "rerun": _Verb("agentunit.cli.rerun:rerun", "Run some cases of a run again."),
    "promote": _Verb("agentunit.addons.review.promote_command:promote", "Turn bad cases of a run into test cases."),
    "export": _Verb(
        "agentunit.cli.export:export", "Write a run as one file: portable, JUnit, Markdown, CSV, Parquet, HTML."
    ),
    "metrics": _Verb("agentunit.cli.metrics:metrics", "List the metrics, or everything about one."),
    "doctor": _Verb(
        "agentunit.cli.doctor:doctor", "Check the installation, what traces contain, and whether a suite is sound."
    ),
}
# Verbs of earlier versions: they work, and no help lists them.
_FORMER_VERBS = ("demo", "gate", "import", "redact", "validity")


@cache
def command_table() -> PluginTable[click.Command]:
    """The commands by name, AgentUnit's own and those of installed packages."""
    from agentunit.plugins import PluginTable

    own = {name: verb.target for name, verb in _VERBS.items()}
    return PluginTable("command", ENTRY_POINT_GROUP, own, adopt=_adopted)


def _adopted(made: Any, _: Plugin) -> click.Command:
    if not isinstance(made, click.Command):
        raise TypeError(f"what its package offers is no click.Command; received {made!r:.80}")
    return made


class _Verbs(click.Group):
    """The commands, each in a module of its own, so that ``--help`` does not load them.

    What packages brought is looked up for ``--help`` and for names that are not AgentUnit's own: it takes time.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(command_table().entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _VERBS and cmd_name not in command_table().brought:
            return None
        collects = gc.isenabled()
        gc.disable()
        try:
            if cmd_name not in _VERBS:
                return _brought(ctx, cmd_name)
            command: click.Command = command_table().own[cmd_name].load()
            return command
        finally:
            # What modules hold stays to the end: the garbage collector need not walk through it again and again.
            gc.freeze()
            if collects:
                gc.enable()

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] in _FORMER_VERBS:
            from agentunit.cli.former_verbs import as_spelled_now

            args = as_spelled_now(*args)
        if args[0] not in _VERBS and args[0] not in (known := self.list_commands(ctx)):
            nearest = get_close_matches(args[0], known, n=1)
            if nearest:
                ctx.fail(f"no command is called {args[0]!r}; did you mean {nearest[0]!r}?")
        return super().resolve_command(ctx, args)

    def make_context(self, *args: Any, **options: Any) -> click.Context:
        try:
            return super().make_context(*args, **options)
        except BrokenPipeError:
            raise _output_closed("") from None

    def invoke(self, ctx: click.Context) -> object:
        try:
            result: object = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except BrokenPipeError:
            raise _output_closed(ctx.invoked_subcommand or "") from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, verb.line) for name, verb in _VERBS.items() if verb.is_first])
        with formatter.section("More"):
            formatter.write_dl([(name, verb.line) for name, verb in _VERBS.items() if not verb.is_first])
        brought = command_table().brought if _may_be_brought() else {}
        if brought:
            with formatter.section("From other packages"):
                # A line of help would need an import.
                formatter.write_dl([(name, str(plugin.package)) for name, plugin in brought.items()])


def _brought(ctx: click.Context, name: str) -> click.Command | None:
    """A command of another package; one that cannot be used is an error that names the package."""
    from agentunit.plugins import PluginError

    try:
        return command_table().load(name)
    except PluginError as error:
        if ctx.resilient_parsing:  # a shell asks what could follow: this could not
            return None
        from agentunit.cli.options import InputFailure

        raise InputFailure(str(error)) from None


def _may_be_brought() -> bool:
    """Whether a package here names commands. The module that reads metadata takes half as long to load as the help."""
    for folder in sys.path:
        with suppress(OSError), os.scandir(folder or ".") as found:
            for each in found:
                if each.name.endswith("-info") and _names_commands(os.path.join(each.path, "entry_points.txt")):
                    return True
    return False


def _names_commands(path: str) -> bool:
    with suppress(OSError), open(path, "rb") as stream:
        return ENTRY_POINT_GROUP.encode() in stream.read()
    return False


@click.command(
    cls=_Verbs,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 pass, 1 gate failed, 2 usage, 3 errors in the input or the scores, 4 the data cannot tell.",
)
@click.option(
    "--store",
    "store_path",
    envvar="AGENTUNIT_STORE",
    metavar="FILE|URL",
    help="Where runs are kept: a SQLite file (.agentunit/runs.db), or postgresql://USER@HOST/DATABASE (also "
    "AGENTUNIT_STORE, and after the verb).",
)
@click.option(
    "--media-root",
    type=click.Path(exists=True, file_okay=False),
    metavar="FOLDER",
    help="The folder of pictures, videos and recordings that cases name. Default: that of the naming file.",
)
@click.version_option(agentunit.__version__, prog_name="agentunit")
def cli(store_path: str | None, media_root: str | None) -> None:
    """How good are your AI agents? Scores over recorded traces: offline, no keys, nothing sent anywhere."""


def main() -> None:
    """Run the command line; every failure a user can cause is one line, not a traceback."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal or pipe that cannot show an arrow gets a question mark, not a traceback.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    shows_traceback = bool(os.environ.get("AGENTUNIT_TRACEBACK"))
    try:
        code = _run_verb()
    except KeyboardInterrupt:  # pressed again while the first one was being answered
        code = EXIT_STOPPED
    except BaseException:
        if shows_traceback:
            raise
        _leave_broken_process()
    try:
        end_process(code)
    except SystemExit:
        raise
    except BaseException:  # noqa: BLE001 - the same
        os._exit(code)


def _leave_broken_process() -> NoReturn:
    """Leave where an agent in this process broke what errors are told with, builtins for example.

    Python would leave with 1, as a failed gate does. Nothing is called here that is written in Python.
    """
    try:
        os.write(
            2, b"Error: the agent broke the process that it shares with the run (isolation: process keeps it apart)\n"
        )
    finally:
        os._exit(EXIT_ERRORS)


def _run_verb() -> int:
    """Run what the command line asks for; returns the exit code."""
    try:
        # However it was started: a usage error names the command that people know.
        code = cli.main(prog_name="agentunit", standalone_mode=False)
        return code if isinstance(code, int) else EXIT_OK
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return EXIT_USAGE
    except click.ClickException as error:
        from agentunit.reports.printable import printable

        # A message quotes what stood on the command line or in a file, which a terminal and a CI log must not obey.
        vars(error).update(message=printable(error.message))
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("stopped", err=True)
        return EXIT_STOPPED
    except OSError as error:
        from agentunit.reports.printable import printable_line

        forget_output()
        where = f"{error.filename}: " if error.filename else ""
        message = printable_line(f"{where}{(error.strerror or str(error)).lower()}")
        # A terminal that was closed cannot be written to either.
        with suppress(OSError):
            click.echo(f"Error: {message}", err=True)
        # A verdict that could not be printed is still the verdict.
        return remembered_exit_code(EXIT_ERRORS)
    except BaseException as error:
        # A fault of ours or of the machine. It says nothing about an agent, so it must not look like a failed gate.
        if isinstance(error, SystemExit) and _COMPLETION in os.environ:
            # A shell asks for the completion of what was typed: Click leaves when it has answered.
            return EXIT_USAGE if error.code else EXIT_OK
        if os.environ.get("AGENTUNIT_TRACEBACK"):
            raise
        from agentunit.reports.printable import printable_line

        if _is_told_in_full(error):
            click.echo(f"Error: {printable_line(str(error))}", err=True)
            return EXIT_ERRORS
        damaged = _damaged_store()
        if damaged is not None:
            click.echo(f"Error: {printable_line(damaged)}", err=True)
            return EXIT_ERRORS
        message = printable_line(f"{type(error).__name__}: {error}")
        if isinstance(error, RecursionError):
            message = "values of the suite, or of a file, are nested too deeply"
        click.echo(f"Error: {message} (AGENTUNIT_TRACEBACK=1 shows where)", err=True)
        return EXIT_ERRORS


def _is_told_in_full(error: BaseException) -> bool:
    """Whether a store cannot be used, as on a full disk, or an add-on. What was not loaded did not raise its error."""
    for module, name in (("agentunit.store.schema", "StoreError"), ("agentunit.plugins", "PluginError")):
        if module in sys.modules and isinstance(error, getattr(sys.modules[module], name)):
            return True
    return False


def _damaged_store() -> str | None:
    """What is wrong with the store of this command, if one was opened."""
    options = sys.modules.get("agentunit.cli.options")
    return None if options is None else options.damaged_store()


def _output_closed(verb: str) -> click.exceptions.Exit:
    """The quiet end of a command whose reader (head, less) has gone. Click would exit with 1, as a failed gate does."""
    forget_output()
    return click.exceptions.Exit(remembered_exit_code(_EXIT_CLOSED.get(verb, EXIT_OK)))
