"""``agentunit score FILE…``: the records of files, scored here or in several processes."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, nullcontext, redirect_stdout
from itertools import chain, islice
from typing import IO, Any, Protocol

import click

from agentunit.cli.options import InputFailure, end_signals_interrupt
from agentunit.cli.outputs import open_for_writing, unfinished_path
from agentunit.cli.score_options import ScoreOptions
from agentunit.cli.score_output import (
    ScoreSink,
    check_output,
    kept_unfinished,
    leave,
    list_error,
    open_sink,
    run_as_data,
)
from agentunit.cli.sending_notice import ask_before_sending
from agentunit.cli.streams import remember_exit_code
from agentunit.cli.trace_inputs import refuse_missing, refuse_overwriting_inputs, trace_files_from
from agentunit.core.codec import RecordError
from agentunit.core.records import Record
from agentunit.core.results import InputError, RunSummary
from agentunit.doors import part
from agentunit.engine.deciding.decision import decide_scoring
from agentunit.engine.scoring.judging import SAMPLE_SIZE, judged_metrics, plan_sending
from agentunit.engine.scoring.records import Run, RunTotals, WorkFailed
from agentunit.engine.scoring.score_rows import is_table_name
from agentunit.engine.scoring.slices import Slices, SliceTable
from agentunit.metrics.base import describe
from agentunit.reports.console import print_block, print_run
from agentunit.reports.figures import counted
from agentunit.reports.finding_text import with_commands
from agentunit.reports.printable import printable_json, printable_line
from agentunit.reports.progress import Progress
from agentunit.reports.reported_run import Mask
from agentunit.reports.slice_table import print_slices
from agentunit.reports.terminal import Terminal
from agentunit.reports.trace_console import print_reading
from agentunit.traces.native import STDIN
from agentunit.traces.reading import TraceFiles

# How ``agentunit score`` works through its files: in this process, or in several.


class ScoringWork(Protocol):
    """What works through the files of ``agentunit score``."""

    @property
    def totals(self) -> RunTotals:
        """What the run has come to so far."""

    def work(self) -> RunSummary:
        """Score everything."""

    def kept(self) -> str:
        """What is left of a run that was stopped."""


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
                say_discarded(discard_blocks(self._out))
            return run.summary()

    def kept(self) -> str:
        """What is left of a run that was stopped."""
        return kept_part(self._out, self.totals.n_cases)


def kept_part(out: str | None, n_cases: int) -> str:
    """What is left of an output that was begun, for the last line of a command."""
    unfinished = kept_unfinished(out)
    return f"; {unfinished} holds the {n_cases:,} cases before" if unfinished else ""


def blocks_beside(out: str) -> str:
    """Where the blocks of a job lie until its output is whole."""
    return f"{out}.blocks"


def discard_blocks(out: str) -> int:
    """Remove what a job that was stopped left beside its output; how many blocks that were."""
    blocks = blocks_beside(out)
    return int(part("discard_job")(blocks)) if os.path.isdir(blocks) else 0


def say_discarded(n_blocks: int) -> None:
    """Say that a job that was stopped is not gone on with."""
    if n_blocks:
        found = counted(n_blocks, "block")
        click.echo(f"note: {found} of a job that was stopped are discarded (--resume continues with them)", err=True)


def works_here(options: ScoreOptions, metrics: Sequence[Any], judged: Sequence[Any]) -> bool:
    """Whether this process reads all records; why it does although others were asked for is said."""
    if options.jobs is None and options.engine is None:
        return True
    asked = "--engine" if options.jobs is None else "--jobs"
    if judged:
        click.echo(f"{asked}: {judged[0].name} asks a judge, whose limits hold for one process", err=True)
        return True
    # They depend on each other, or cannot be read in parts.
    is_in_order = (
        STDIN in options.files or options.group_by == "session" or any(describe(metric).stateful for metric in metrics)
    )
    if is_in_order and options.engine is not None:
        click.echo("--engine: these records can only be read in order, which this machine does", err=True)
    return is_in_order


_INTERRUPTED = 130
_READ_BEFORE_ASKING = 1000


def score_files(options: ScoreOptions, metrics: Sequence[Any]) -> None:
    """Score the records of files, print their summary and decide; with ``--plan`` say only what that would take."""
    _refuse_what_does_not_fit(options)
    source = trace_files_from(options.files, options.format_name, options.group_by, options.expected)
    if options.plan:
        if STDIN in options.files:
            raise click.UsageError("--plan reads a sample and then nothing: standard input could not be read again")
        part("print_plan")(source, metrics, options)
        return
    slices = None if options.by is None else Slices(options.by)
    with ExitStack() as stack:
        errors_stream = stack.enter_context(open_for_writing(options.errors_file)) if options.errors_file else None
        work = _work(options, metrics, source, slices, errors_stream)
        try:
            summary = work.work()
        except RecordError as error:
            raise InputFailure(f"{printable_line(str(error))} (--strict stops at the first{work.kept()})") from None
        except KeyboardInterrupt:
            click.echo(f"stopped after {counted(work.totals.n_cases, 'case')}{work.kept()}", err=True)
            raise click.exceptions.Exit(_INTERRUPTED) from None
    decision = decide_scoring(summary, options.max_errors)
    remember_exit_code(decision.exit_code)
    mask = Mask(show_all=options.show_personal_data)
    summary = mask.view(summary)
    table = None if slices is None else mask.view(slices.table())
    if options.as_json:
        print_reading(source, Terminal(stderr=True))
        click.echo(printable_json(run_as_data(options.files, metrics, summary, table)))
    else:
        terminal = Terminal(stderr=options.out == STDIN)
        _print(summary, metrics, options, terminal, table, getattr(source, "repeated_ids", ()))
        print_reading(source, terminal)
    leave(decision, summary, options.as_json)


def source_reference(files: Sequence[str]) -> str:
    """The file that 'agentunit show' finds a case in; empty where there are several, or it is gone."""
    return files[0] if len(files) == 1 and os.path.exists(files[0]) else ""


def _refuse_what_does_not_fit(options: ScoreOptions) -> None:
    """Refuse, before anything is read, files that are not there and options that do not go together."""
    files, out, engine = options.files, options.out, options.engine
    refuse_missing(files)
    if options.choice.settings.get("transcripts") and not out:
        raise click.UsageError("--judge-transcripts keeps every call with the scores: say where with --out FILE")
    if options.resume and (
        (options.jobs is None and engine is None)
        or out in (None, STDIN)
        or (engine is None and out is not None and unfinished_path(out) == out)
    ):
        target = out if out is not None and unfinished_path(out) != out else "scores.jsonl"
        named = ["FILE" if each == STDIN else each for each in files]
        begun = shlex.join(["agentunit", "score", *named, "--jobs", "auto", "--out", target])
        raise click.UsageError(
            "--resume continues a job that was begun with --jobs and --out FILE (no URL), or with --engine and --out; "
            f"any other starts over. Begin with '{begun}' (and your other options): after a stop, the same "
            "command with --resume continues"
        )
    refuse_overwriting_inputs(files, out, options.errors_file)
    check_output(out)
    if out and options.errors_file and os.path.abspath(out) == os.path.abspath(options.errors_file):
        raise click.UsageError(f"--out and --errors must be different files; received {out} for both")


def _work(
    options: ScoreOptions,
    metrics: Sequence[Any],
    source: TraceFiles,
    slices: Slices | None,
    errors_stream: IO[bytes] | None,
) -> ScoringWork:
    """What scores: this process, or several where they are asked for and can."""
    judged = judged_metrics(metrics)
    if not works_here(options, metrics, judged):
        sink = _opened(options, metrics)
        several: ScoringWork = part("several_processes")(
            options, metrics, source, sink=sink, slices=slices, on_error=lambda error: list_error(error, errors_stream)
        )
        return several
    if options.resume:
        click.echo("note: --resume: this process reads all records in order, and starts over", err=True)
    records, n_cases = _records(source, errors_stream), None
    if judged:
        records, n_cases = _asked_about(records, source, metrics, yes=options.choice.yes)
    run = Run(records, metrics, strict=options.strict, jobs=options.jobs)
    if slices is not None:
        infos = {metric.name: describe(metric) for metric in metrics}
        run.on_scored = lambda item, scores: slices.add_scores(item.case.metadata, scores, infos)
    # Opened after the question: who declines to send anything leaves no unfinished file.
    return OneProcess(run, source, options.out, _opened(options, metrics), n_cases)


def _asked_about(
    records: Iterator[Record | InputError], source: TraceFiles, metrics: Sequence[Any], *, yes: bool
) -> tuple[Iterator[Record | InputError], int | None]:
    """The records, after the user agreed to what a judge will see of them, and how many cases they are if known.

    The first of them tell how much will be sent.
    """
    first = list(islice(records, _READ_BEFORE_ASKING))
    whole = len(first) < _READ_BEFORE_ASKING
    readable = [each for each in first if not isinstance(each, InputError)]
    read = None if whole else source.fraction()
    # A file that was read ahead to its end says nothing about how much of it has come out so far.
    n_cases = len(readable) if whole else round(len(readable) / read) if read and read < 1 else None
    sample = readable if whole else readable[:: max(1, len(readable) // SAMPLE_SIZE)]
    ask_before_sending(plan_sending(metrics, sample, n_cases=n_cases, exact=whole), yes=yes)
    return chain(first, records), n_cases if whole else None


def _opened(options: ScoreOptions, metrics: Sequence[Any]) -> ScoreSink | None:
    return None if options.out is None else open_sink(options.out, metrics, options.files, options.max_errors)


def _records(source: TraceFiles, errors_stream: IO[bytes] | None) -> Iterator[Record | InputError]:
    for each in source:
        if isinstance(each, InputError):
            list_error(each, errors_stream)
        yield each


def _print(
    summary: RunSummary,
    metrics: Sequence[Any],
    options: ScoreOptions,
    terminal: Terminal,
    table: SliceTable | None,
    shared_ids: Collection[str],
) -> None:
    files = options.files
    if summary.n_cases == 0 and not summary.n_input_errors:
        click.echo(printable_line(f"nothing to score: {', '.join(files)} holds no records"), err=True)
        return
    summary.findings = with_commands(summary.findings, source_reference(files))
    # Without a case nothing was written.
    out = options.out if summary.n_cases or options.out == STDIN else None
    steps = []
    if summary.n_input_errors and options.errors_file:
        steps.append(f"all {summary.n_input_errors:,} unreadable parts are listed in {options.errors_file}")
    if out and out != STDIN and is_table_name(out):
        steps.append(shlex.join(["agentunit", "show", out]))
    elif out and out != STDIN:
        steps.append(f"every case's scores are in {out}")
    elif summary.findings and summary.findings[0].next:
        steps.append(summary.findings[0].next)
    elif summary.n_cases and not out and len(files) == 1 and files[0] != STDIN:
        # What is given by a pipe is gone, and a line of a hundred files is no help.
        command = ["agentunit", "score", files[0], *(word for name in options.names for word in ("--metrics", name))]
        command += ["--from", options.format_name] if options.format_name else []
        steps.append(f"{shlex.join([*command, '--out', 'scores.jsonl'])} keeps every case's scores")
    # Where only some scores are, the line under the table says why.
    if informational := [
        row.metric for row in summary.metrics if row.status == "informational" and not row.informational
    ]:
        steps.append(f"agentunit metrics {informational[0]} explains why it is only informational")
    infos = {metric.name: describe(metric) for metric in metrics}
    sentence = [] if summary.counts is None else [str(summary.counts)]
    print_block(sentence, summary.findings, terminal, all_rows=options.all_rows)
    if any(finding.cases[0] in shared_ids for finding in summary.findings):
        said = "cases of several files have the same id: 'agentunit show FILE|FOLDER ID' lists them with their files"
        terminal.print(said, style="dim")
    if table is not None and summary.n_cases:
        print_slices(table, infos, terminal, all_rows=options.all_rows)
    doctor = shlex.join(["agentunit", "doctor", files[0]]) if len(files) == 1 and files[0] != STDIN else ""
    print_run(summary, infos, terminal, next_steps=steps, all_rows=options.all_rows, doctor=doctor)
