"""``agentunit run --set model=a,b``: one run for each value, each in a process of its own, then one table of all.

A fresh process a run, because modules keep what they read when they are imported: the second run of one process could
be that of the first value.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from typing import Any

import click

from agentunit.adapters.bound_function import SET_PREFIX
from agentunit.cli.compare import compare_variants
from agentunit.cli.main import EXIT_STOPPED
from agentunit.cli.options import open_store, say_stopped
from agentunit.cli.references import load_run, next_command
from agentunit.cli.streams import remember_exit_code
from agentunit.engine.compare import compare_runs
from agentunit.engine.comparison import labels_of
from agentunit.engine.decision import (
    Decision,
    Unsure,
    count_unsure,
    decide_run,
    decide_together,
    stored_min_coverage,
    strictest,
)
from agentunit.engine.end_signals import heard_by
from agentunit.engine.scored_run import ScoredRun
from agentunit.reports.reported_run import Mask
from agentunit.store.opening import may_exist
from agentunit.store.runs import RunHeader

_ARGUMENTS = "agentunit.arguments"
_VERDICTS = (0, 1, 3, 4)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# So long a run that was asked to stop with its whole group has for its last words before it is asked again. A terminal
# asks the whole group; who sends SIGTERM mostly names one process.
_ASK_AFTER_S, _ASK_AFTER_TERMINAL_S = 1.0, 10.0


class KeepsArguments(click.Command):
    """A command that remembers what it was called with, to call itself again."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, after taking note."""
        ctx.meta[_ARGUMENTS] = list(args)
        return super().parse_args(ctx, args)


def variants_from(sets: Sequence[str]) -> list[dict[str, str]]:
    """Every combination of the values of ``--set NAME=VALUE,VALUE``; without any, one that sets nothing."""
    values: dict[str, list[str]] = {}
    for each in sets:
        name, _, listed = each.partition("=")
        found = list(dict.fromkeys(value.strip() for value in listed.split(",") if value.strip()))
        if not _NAME.fullmatch(name.strip()) or not found:
            raise click.BadParameter(
                f"must be NAME=VALUE,VALUE, such as model=a,b; received {each!r}", param_hint="--set"
            )
        if name.strip() in values:
            raise click.BadParameter(f"names {name.strip()} twice; list its values with commas", param_hint="--set")
        values[name.strip()] = found
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]


def set_variables(chosen: Mapping[str, str]) -> None:
    """Hand the values of a run to its agent, and to whatever the suite starts, through the environment."""
    for name, value in chosen.items():
        os.environ[f"{SET_PREFIX}{name.upper()}"] = value


def recorded_variables(header: RunHeader) -> dict[str, str]:
    """What a run was recorded with; nothing for a run that came with a file."""
    chosen = header.settings.get("set")
    if header.is_foreign or not isinstance(chosen, Mapping):
        return {}
    return {str(name): str(value) for name, value in chosen.items() if _NAME.fullmatch(str(name))}


def run_matrix(
    context: click.Context,
    variants: Sequence[Mapping[str, str]],
    store_path: str,
    *,
    baseline: str | None,
    unsure: Unsure | None,
    all_rows: bool,
    as_json: bool,
    show_personal_data: bool,
) -> None:
    """Run each variant, compare the others with the first, and leave with the decision on all runs together."""
    arguments = _without_sets(context.meta[_ARGUMENTS])
    run_ids: list[str] = []
    codes: list[int] = []
    with _RunOfAVariant.heeding_signals() as run:
        for chosen in variants:
            known = _run_ids(store_path, chosen)
            sets = [word for name, value in chosen.items() for word in ("--set", f"{name}={value}")]
            click.echo(" ".join(sets[1::2]), err=True)
            sys.stdout.flush()
            code = run.ended([sys.executable, "-m", "agentunit", "run", *arguments, *sets])
            made = [run_id for run_id in _run_ids(store_path, chosen) if run_id not in known]
            if run.is_stopped:
                # Who pressed Ctrl-C wants no further run. One that ended with this code has said what is kept.
                if code != EXIT_STOPPED:
                    say_stopped(f"{len(run_ids) + bool(made)} of {len(variants)} runs were begun; their cases are kept")
                raise click.exceptions.Exit(EXIT_STOPPED)
            if code not in _VERDICTS or not made:
                # A wrong suite is wrong for every value.
                raise click.exceptions.Exit(code if code > 0 else 3)
            run_ids.append(made[0])
            codes.append(code)
    runs = [load_run(run_id, store_path) for run_id in run_ids]
    labels = labels_of([run.header for run in runs])
    base = None if baseline is None else load_run(baseline, store_path)
    mask = Mask(show_all=show_personal_data)
    # What each process decided, once more: of its own settings and scores, which the store has kept.
    decisions = [mask.decision(count_unsure(_decided(run, base), unsure)) for run in runs]
    together = decide_together(dict(zip(labels, decisions, strict=True)))
    if together.exit_code != strictest(codes):
        ended = ", ".join(f"{label} {code}" for label, code in zip(labels, codes, strict=True))
        together = Decision(strictest(codes), None, f"the runs ended with the exit codes {ended}")
    remember_exit_code(together.exit_code)
    place = next((at for at, each in enumerate(decisions) if each.exit_code == together.exit_code), 0)
    compare_variants(
        dict(zip(labels, runs, strict=True)),
        together,
        next_command(run_ids[place], runs[place], decisions[place]),
        all_rows=all_rows,
        as_json=as_json,
        show_personal_data=show_personal_data,
    )
    raise click.exceptions.Exit(together.exit_code)


class _RunOfAVariant:
    """The process of the variant that runs now. Who asks this process to end asks that one."""

    def __init__(self) -> None:
        self.is_stopped = False
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    @contextmanager
    def heeding_signals(cls) -> Iterator[_RunOfAVariant]:
        """From here on Ctrl-C, a polite request to end and a closed terminal are handed on and end nothing here."""
        run = cls()
        with heard_by(run._on_signal):
            yield run

    def ended(self, command: Sequence[str]) -> int:
        """Run it to its end; returns its exit code."""
        if self.is_stopped:
            return EXIT_STOPPED
        with subprocess.Popen(command) as process:
            self._process = process
            if self.is_stopped:
                # Asked while it was started: it may have come too late for the signal.
                self._hand_on(signal.SIGTERM)
            return process.wait()

    def _on_signal(self, number: int, frame: Any) -> None:
        self.is_stopped = True
        # Asked twice, a run would have no time for its last words.
        wait_s = _ASK_AFTER_S if number == signal.SIGTERM else _ASK_AFTER_TERMINAL_S
        later = threading.Timer(wait_s, self._hand_on, [number])
        later.daemon = True
        later.start()

    def _hand_on(self, number: int) -> None:
        if self._process is not None and os.name == "posix":
            self._process.send_signal(number)


def _decided(run: ScoredRun, base: ScoredRun | None) -> Decision:
    coverage = stored_min_coverage(run.header.settings)
    return decide_run(run, None, None if base is None else compare_runs(run, base, min_coverage=coverage))


def _run_ids(store_path: str, chosen: Mapping[str, str]) -> list[str]:
    if not may_exist(store_path):
        return []
    with open_store(store_path, read_only=True) as store:
        return [header.id for header in store.runs() if header.settings.get("set") == dict(chosen)]


def _without_sets(arguments: Sequence[str]) -> list[str]:
    kept: list[str] = []
    waiting = iter(arguments)
    for each in waiting:
        if each == "--set":
            next(waiting, None)
        elif not each.startswith("--set="):
            kept.append(each)
    return kept
