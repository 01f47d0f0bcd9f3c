"""``agentunit run --set model=a,b``: one run for each value, each in a process of its own, then one table of all.

A fresh process a run, because modules keep what they read when they are imported: the second run of one process could
be that of the first value.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click

from agentunit.cli._run_work import RunOptions
from agentunit.cli.compare import compare_variants
from agentunit.cli.main import EXIT_STOPPED
from agentunit.cli.options import of_all_verbs, open_store, say_stopped
from agentunit.cli.references import load_run
from agentunit.cli.run import ARGUMENTS
from agentunit.cli.streams import remember_exit_code
from agentunit.engine.deciding.comparison import labels_of
from agentunit.engine.deciding.decision import Decision, decide_together, strictest
from agentunit.engine.deciding.stored import decision_of
from agentunit.engine.recording.end_signals import heard_by
from agentunit.reports.decision_console import next_command
from agentunit.reports.reported_run import Mask
from agentunit.store.opening import may_exist

_VERDICTS = (0, 1, 3, 4)
# So long a run that was asked to stop with its whole group has for its last words before it is asked again. A terminal
# asks the whole group; who sends SIGTERM mostly names one process.
_ASK_AFTER_S, _ASK_AFTER_TERMINAL_S = 1.0, 10.0


def run_matrix(
    context: click.Context,
    variants: Sequence[Mapping[str, str]],
    options: RunOptions,
) -> None:
    """Run each variant, compare the others with the first, and leave with the decision on all runs together."""
    store_path = options.store_path
    arguments = _without_sets(context.meta[ARGUMENTS])
    for_all_verbs = ["--store", store_path]
    if (media_root := of_all_verbs(context, "media_root")) is not None:
        for_all_verbs += ["--media-root", media_root]
    run_ids: list[str] = []
    codes: list[int] = []
    with _RunOfAVariant.heeding_signals() as run:
        for chosen in variants:
            known = _run_ids(store_path, chosen)
            sets = [word for name, value in chosen.items() for word in ("--set", f"{name}={value}")]
            click.echo(" ".join(sets[1::2]), err=True)
            sys.stdout.flush()
            code = run.ended([sys.executable, "-m", "agentunit", *for_all_verbs, "run", *arguments, *sets])
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
    mask = Mask(show_all=options.show_personal_data)
    # What each process decided, and the store has kept.
    decisions = [mask.decision(decision_of(run)) for run in runs]
    together = decide_together(dict(zip(labels, decisions, strict=True)))
    if together.exit_code != strictest(codes):
        ended = ", ".join(f"{label} {code}" for label, code in zip(labels, codes, strict=True))
        together = Decision(strictest(codes), None, f"the runs ended with the exit codes {ended}")
    remember_exit_code(together.exit_code)
    place = next((at for at, each in enumerate(decisions) if each.exit_code == together.exit_code), 0)
    compare_variants(
        dict(zip(labels, runs, strict=True)),
        together,
        next_command(run_ids[place], decisions[place]),
        all_rows=options.all_rows,
        as_json=options.as_json,
        show_personal_data=options.show_personal_data,
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
