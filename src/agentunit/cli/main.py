"""The ``agentunit`` command. Each verb loads when it is called."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click

import agentunit

EXIT_OK = 0
EXIT_USAGE = 2
EXIT_ERRORS = 3
EXIT_CANNOT_TELL = 4
# What decides must not look like a pass when its output was cut off before it had decided: as if ended by SIGPIPE.
_EXIT_CLOSED = dict.fromkeys(("run", "rerun", "gate", "compare"), 141)

_VERBS = {
    "demo": "Score a bundled recording: the quickest look at what AgentUnit does.",
    "init": "Write a working suite into a folder, to start from.",
    "run": "Record an agent on a dataset, score what it did, decide.",
    "collect": "Receive OpenTelemetry spans from running agents and write records.",
    "score": "Score recorded traces, or a run that was recorded before.",
    "convert": "Turn traces of any format into records, to keep, share or edit.",
    "redact": "Write traces with personal data masked, to share them.",
    "gate": "Decide about a run: thresholds, and a baseline.",
    "compare": "Compare a run with a baseline, case by case.",
    "runs": "List the runs.",
    "show": "A run, or everything about one of its cases.",
    "rerun": "Run some cases of a run once more.",
    "promote": "Make test cases of a run's bad cases.",
    "export": "Write a run as one file: portable, JUnit, Markdown, CSV, Parquet, HTML.",
    "import": "Take an exported run into the store.",
    "metrics": "List the metrics, or everything about one.",
    "doctor": "What is installed and missing; with FILE: what traces hold, lack, and the setting that adds it.",
    "validity": "How well metrics agree with your own labels.",
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
        command: click.Command = getattr(import_module(f"agentunit.cli.{module}"), name)
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
            formatter.write_dl(list(_VERBS.items()))


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
    try:
        code = cli.main(standalone_mode=False)
        sys.stdout.flush()
        sys.exit(code if isinstance(code, int) else EXIT_OK)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(EXIT_USAGE)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("stopped", err=True)
        sys.exit(130)
    except OSError as error:
        _forget_output()
        where = f"{error.filename}: " if error.filename else ""
        # A terminal that was closed takes no words either.
        with suppress(OSError):
            click.echo(f"Error: {where}{(error.strerror or str(error)).lower()}", err=True)
        sys.exit(EXIT_ERRORS)
    except Exception as error:
        # A fault of ours, or of the machine. It is no verdict about an agent, so it must not look like a failed gate.
        if os.environ.get("AGENTUNIT_TRACEBACK"):
            raise
        message = " ".join(f"{type(error).__name__}: {error}".split())
        click.echo(f"Error: {message} (AGENTUNIT_TRACEBACK=1 shows where)", err=True)
        sys.exit(EXIT_ERRORS)


@contextmanager
def output_may_be_closed() -> Iterator[None]:
    """A reader of our output that has gone (head, less) does not change the exit code that a command ends with."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_output()


def _output_closed(verb: str) -> click.exceptions.Exit:
    """The quiet end of a command whose reader has gone. Click would exit with 1, as a failed gate does."""
    _forget_output()
    return click.exceptions.Exit(_EXIT_CLOSED.get(verb, EXIT_OK))


def _forget_output() -> None:
    """What could not be written must not be tried again when Python shuts down."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
