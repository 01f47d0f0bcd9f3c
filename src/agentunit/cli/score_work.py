"""How ``agentunit score`` works through its files: in this process, or in several."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext, redirect_stdout
from typing import Any

import click

from agentunit.cli.options import InputFailure, end_signals_interrupt
from agentunit.cli.outputs import unfinished_path
from agentunit.cli.score_output import ScoreSink, kept_unfinished
from agentunit.core.codec import RecordError
from agentunit.core.results import InputError, RunSummary
from agentunit.engine.parallel.folder import JobFolder, JobFolderError, discard_job
from agentunit.engine.parallel.identity import identity_of
from agentunit.engine.parallel.pool import WorkFailed
from agentunit.engine.parallel.remote_folder import RemoteJobFolder
from agentunit.engine.parallel.scoring import ParallelScoring
from agentunit.engine.parallel.units import BLOCK_BYTES
from agentunit.engine.parallel.work import ScoringJob
from agentunit.engine.scoring import Run
from agentunit.engine.slices import Slices
from agentunit.metrics.base import describe
from agentunit.reports.figures import counted
from agentunit.reports.progress import Progress
from agentunit.traces.native import STDIN
from agentunit.traces.reading import TraceFiles
from agentunit.traces.remote import RemoteError, is_remote


class OneProcess:
    """Scoring here, record by record."""

    def __init__(
        self, run: Run, source: TraceFiles, out: str | None, sink: ScoreSink | None, n_cases: int | None
    ) -> None:
        self.totals = run
        self._run = run
        self._source = source
        self._out = out
        self._sink = sink
        self._n_cases = n_cases

    def work(self) -> RunSummary:
        """Score everything."""
        run, source, n_cases = self._run, self._source, self._n_cases
        progress = Progress(
            "cases",
            # What was read before the question says nothing about what is scored.
            fraction=lambda: run.n_cases / n_cases if n_cases else source.fraction(),
            failures=lambda: run.n_input_errors + run.n_score_errors,
        )
        source.on_progress = progress.touch
        # What a metric prints must not get between the lines of --json or --out -.
        with redirect_stdout(sys.stderr), self._sink or nullcontext() as sink, end_signals_interrupt():
            try:
                for case in progress.watch(run):
                    if sink is not None:
                        sink.add(case)
            except WorkFailed as error:
                raise InputFailure(str(error)) from None
            if sink is not None:
                sink.finish(run)
            if self._out is not None:
                _say_discarded(discard_job(_blocks_beside(self._out)))
            return run.summary()

    def kept(self) -> str:
        """What is left of a run that was stopped."""
        return _kept_part(self._out, self.totals.n_cases)


def _kept_part(out: str | None, n_cases: int) -> str:
    unfinished = kept_unfinished(out)
    return f"; {unfinished} holds the {n_cases:,} cases before" if unfinished else ""


def _blocks_beside(out: str) -> str:
    """Where the blocks of a job lie until its output is whole."""
    return f"{out}.blocks"


def _say_discarded(n_blocks: int) -> None:
    if n_blocks:
        found = counted(n_blocks, "block")
        click.echo(f"note: {found} of a job that was stopped are discarded (--resume continues with them)", err=True)


class SeveralProcesses:
    """Scoring in worker processes, block by block."""

    def __init__(
        self,
        source: TraceFiles,
        metrics: Sequence[Any],
        *,
        jobs: int | None,
        engine: str | None,
        format_name: str | None,
        expected_path: str | None,
        out: str | None,
        sink: ScoreSink | None,
        resume: bool,
        strict: bool,
        slices: Slices | None,
        on_error: Callable[[InputError], None],
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        self._out = out
        self._stack = ExitStack()
        # Several machines share what they all reach by its URL.
        is_shared = out is not None and engine is not None and is_remote(out)
        self._can_resume = is_shared or (out is not None and unfinished_path(out) != out)
        job = ScoringJob(
            source.files[0][0],
            metrics=metrics,
            format=format_name,
            expected=source.expected,
            strict=strict,
            by=None if slices is None else slices.field,
            with_lines=out is not None,
            with_ids=len(source.files) > 1,
        )
        identity = identity_of(source.files, job, block_bytes, expected_path)
        if out is not None and self._can_resume:
            path = _blocks_beside(out)
        else:
            path = tempfile.mkdtemp(prefix="agentunit-blocks-")
            self._stack.callback(shutil.rmtree, path, ignore_errors=True)
        try:
            self._folder = (RemoteJobFolder if is_shared else JobFolder)(path, identity, resume=resume)
        except JobFolderError as error:
            if sink is not None:
                sink.remove_unfinished()
            raise click.UsageError(f"--resume: {error}") from None
        except OSError as error:
            if sink is not None:
                sink.remove_unfinished()
            raise InputFailure(f"cannot write {path}: {(error.strerror or str(error)).lower()}") from None
        _say_discarded(self._folder.n_discarded)
        self._sink = sink
        self.totals = ParallelScoring(
            source,
            job,
            self._folder,
            jobs=jobs,
            engine=engine,
            sink=sink,
            slices=slices,
            on_error=on_error,
            block_bytes=block_bytes,
        )

    def work(self) -> RunSummary:
        """Score everything."""
        totals = self.totals
        progress = Progress(
            "cases", fraction=totals.fraction, failures=lambda: totals.n_input_errors + totals.n_score_errors
        )
        with redirect_stdout(sys.stderr), self._stack, self._sink or nullcontext() as sink, end_signals_interrupt():
            try:
                summary = totals.work(progress.ticker())
            except (WorkFailed, RemoteError) as error:
                raise InputFailure(f"{error}{self.kept()}") from None
            except RecordError:
                # It would stop at the same place again.
                self._can_resume = False
                self._folder.remove()
                raise
            finally:
                progress.clear()
            if sink is not None:
                sink.finish(totals)
            self._folder.remove()
            return summary

    def kept(self) -> str:
        """What is left of a run that was stopped."""
        return (
            "; the same command with --resume continues"
            if self._can_resume
            else _kept_part(self._out, self.totals.n_cases)
        )


def works_here(
    files: Sequence[str],
    metrics: Sequence[Any],
    group_by: str,
    judged: Sequence[Any],
    *,
    jobs: int | None,
    engine: str | None,
) -> bool:
    """Whether this process reads all records; why it does although others were asked for is said."""
    if jobs is None and engine is None:
        return True
    asked = "--engine" if jobs is None else "--jobs"
    if judged:
        click.echo(f"{asked}: {judged[0].name} asks a judge, whose limits hold for one process", err=True)
        return True
    # They depend on each other, or cannot be read in parts.
    is_in_order = STDIN in files or group_by == "session" or any(describe(metric).stateful for metric in metrics)
    if is_in_order and engine is not None:
        click.echo("--engine: these records can only be read in order, which this machine does", err=True)
    return is_in_order
