"""The ``agentunit`` command. Each verb loads when it is called."""

from __future__ import annotations

import gc
import io
import os
import sys
from contextlib import suppress
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NoReturn

import click

import agentunit
from agentunit.cli.streams import end_process, forget_output, remembered_exit_code

EXIT_OK = 0
EXIT_USAGE = 2
EXIT_ERRORS = 3
EXIT_CANNOT_TELL = 4
EXIT_STOPPED = 130
# What decides must not look like a pass when its output was cut off before it had decided: as if ended by SIGPIPE.
_EXIT_CLOSED = dict.fromkeys(("run", "rerun", "gate", "compare"), 141)

# The first are what a newcomer needs; the help lists the others under "More".
_FIRST_VERBS = {
    "init": "Write a working suite into a folder, as a start.",
    "run": "Record an agent on a dataset, score what it did, decide.",
    "score": "Score recorded traces, or a run that was recorded before.",
    "compare": "Compare a run with a baseline, case by case.",
    "show": "Show a run, or everything about one of its cases.",
    "demo": "Score a bundled recording: the quickest look at what AgentUnit does.",
}
_VERBS = {
    **_FIRST_VERBS,
    "view": "Look at runs in the browser, or write a bundle of them to publish.",
    "label": "Label some cases, to estimate the rate that people would give.",
    "collect": "Receive OpenTelemetry spans from running agents and write records.",
    "convert": "Turn traces of any format into records, to keep, share or edit.",
    "redact": "Write traces with personal data masked, to share them.",
    "gate": "Check a run against thresholds and a baseline.",
    "runs": "List the runs.",
    "rerun": "Run some cases of a run again.",
    "promote": "Turn bad cases of a run into test cases.",
    "export": "Write a run as one file: portable, JUnit, Markdown, CSV, Parquet, HTML.",
    "import": "Import an exported run, labels, or the tests of another tool.",
    "metrics": "List the metrics, or everything about one.",
    "doctor": "Check the installation, what traces contain, and whether a suite is sound.",
    "validity": "Measure how well metrics agree with your own labels.",
}
# "import" is a word of Python's own and cannot name a module.
_MODULES = {"import": ("import_run", "import_run")}


class _Verbs(click.Group):
    """The verbs, each in a module of its own, so that ``--help`` does not load them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _VERBS:
            return None
        module, name = _MODULES.get(cmd_name, (cmd_name, cmd_name))
        collects = gc.isenabled()
        gc.disable()
        try:
            command: click.Command = getattr(import_module(f"agentunit.cli.{module}"), name)
        finally:
            # What modules hold stays to the end: the garbage collector need not walk through it again and again.
            gc.freeze()
            if collects:
                gc.enable()
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        nearest = get_close_matches(args[0], _VERBS, n=1)
        if args[0] not in _VERBS and nearest:
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
            formatter.write_dl(list(_FIRST_VERBS.items()))
        with formatter.section("More"):
            formatter.write_dl([item for item in _VERBS.items() if item[0] not in _FIRST_VERBS])


@click.command(
    cls=_Verbs,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 pass, 1 gate failed, 2 usage, 3 errors in the input or the scores, 4 the data cannot tell.",
)
@click.version_option(agentunit.__version__, prog_name="agentunit")
def cli() -> None:
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
        code = cli.main(standalone_mode=False)
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
        if os.environ.get("AGENTUNIT_TRACEBACK"):
            raise
        from agentunit.reports.printable import printable_line

        if _is_store_error(error):
            click.echo(f"Error: {printable_line(str(error))}", err=True)
            return EXIT_ERRORS
        message = printable_line(f"{type(error).__name__}: {error}")
        click.echo(f"Error: {message} (AGENTUNIT_TRACEBACK=1 shows where)", err=True)
        return EXIT_ERRORS


def _is_store_error(error: BaseException) -> bool:
    """Whether the store could not be used, by a full disk for example. Who did not load it did not raise its error."""
    store = sys.modules.get("agentunit.store.schema")
    return store is not None and isinstance(error, store.StoreError)


def _output_closed(verb: str) -> click.exceptions.Exit:
    """The quiet end of a command whose reader (head, less) has gone. Click would exit with 1, as a failed gate does."""
    forget_output()
    return click.exceptions.Exit(remembered_exit_code(_EXIT_CLOSED.get(verb, EXIT_OK)))
