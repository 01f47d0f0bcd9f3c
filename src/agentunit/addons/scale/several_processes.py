"""How ``agentunit score --jobs`` works through its files: in worker processes, or by the tasks of an engine."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, redirect_stdout
from typing import IO, Any

import click

from agentunit.addons.scale.parallel.folder import JobFolder, JobFolderError, identity_of
from agentunit.addons.scale.parallel.parallel_scoring import ParallelScoring
from agentunit.addons.scale.parallel.units import BLOCK_BYTES
from agentunit.addons.scale.parallel.work import ScoringJob
from agentunit.addons.scale.remote import StorageOutput, delete_files, exists, file_names, open_remote
from agentunit.cli.options import InputFailure, end_signals_interrupt
from agentunit.cli.outputs import unfinished_path
from agentunit.cli.score_files import blocks_beside, kept_part, say_discarded
from agentunit.cli.score_options import ScoreOptions
from agentunit.cli.score_output import ScoreSink
from agentunit.core.codec import RecordError
from agentunit.core.results import InputError, RunSummary
from agentunit.engine.scoring.records import WorkFailed
from agentunit.engine.scoring.slices import Slices
from agentunit.reports.progress import Progress
from agentunit.traces.reading import TraceFiles
from agentunit.urls import RemoteError, is_remote


class SeveralProcesses:
    """Scoring in worker processes, block by block."""

    def __init__(
        self,
        options: ScoreOptions,
        metrics: Sequence[Any],
        source: TraceFiles,
        *,
        sink: ScoreSink | None,
        slices: Slices | None,
        on_error: Callable[[InputError], None],
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        self._out = out = options.out
        self._stack = ExitStack()
        # Several machines share what they all reach by its URL.
        is_shared = out is not None and options.engine is not None and is_remote(out)
        self._can_resume = is_shared or (out is not None and unfinished_path(out) != out)
        job = ScoringJob(
            source.files[0][0],
            metrics=metrics,
            format=options.format_name,
            expected=source.expected,
            strict=options.strict,
            by=None if slices is None else slices.field,
            with_lines=out is not None,
            with_ids=len(source.files) > 1,
        )
        identity = identity_of(source.files, job, block_bytes, options.expected)
        if out is not None and self._can_resume:
            path = blocks_beside(out)
        else:
            path = tempfile.mkdtemp(prefix="agentunit-blocks-")
            self._stack.callback(shutil.rmtree, path, ignore_errors=True)
        try:
            make_folder = RemoteJobFolder if is_shared else JobFolder
            self._folder = make_folder(path, identity, resume=options.resume)
        except JobFolderError as error:
            if sink is not None:
                sink.remove_unfinished()
            raise click.UsageError(f"--resume: {error}") from None
        except OSError as error:
            if sink is not None:
                sink.remove_unfinished()
            raise InputFailure(f"cannot write {path}: {(error.strerror or str(error)).lower()}") from None
        say_discarded(self._folder.n_discarded)
        self._sink = sink
        self.totals = ParallelScoring(
            source,
            job,
            self._folder,
            jobs=options.jobs,
            engine=options.engine,
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
            else kept_part(self._out, self.totals.n_cases)
        )


# The folder of a job by URL, for machines that share no file system.


_COPY_BYTES = 1 << 20


class RemoteJobFolder(JobFolder):
    """A folder of objects, such as ``s3://bucket/scores.parquet.blocks``. An object is there whole, or not at all."""

    def _make(self) -> None:
        """Objects need no folder."""

    def _unfinished_folder(self) -> AbstractContextManager[str]:
        return tempfile.TemporaryDirectory(prefix="agentunit-unit-")

    def _names(self) -> list[str]:
        return file_names(self.path)

    def _exists(self, name: str) -> bool:
        return exists(f"{self.path}/{name}")

    def _read(self, name: str) -> IO[bytes]:
        return open_remote(f"{self.path}/{name}")

    def _put(self, finished: str, name: str) -> None:
        with open(finished, "rb") as file, StorageOutput(f"{self.path}/{name}") as target:
            shutil.copyfileobj(file, target, _COPY_BYTES)

    def _delete(self, names: Sequence[str]) -> None:
        delete_files([f"{self.path}/{name}" for name in names])
