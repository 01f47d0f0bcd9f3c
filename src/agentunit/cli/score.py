"""``agentunit score``: recorded traces in, scores out."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, redirect_stdout
from itertools import chain, islice
from typing import IO, Any

import click

from agentunit.backends.judge.settings import why_not_configured
from agentunit.backends.quality import SERVICES
from agentunit.cli.consent import ask_before_sending
from agentunit.cli.follow_options import OPTIONS as FOLLOW_OPTIONS
from agentunit.cli.follow_options import SECTION as FOLLOWING
from agentunit.cli.follow_options import FollowChoice, follow_options, refuse_with_follow
from agentunit.cli.judge_options import JUDGE_OPTIONS, JudgeChoice, judge_options
from agentunit.cli.options import (
    InputFailure,
    by_option,
    end_signals_interrupt,
    engine_option,
    jobs_option,
    media_root_option,
    metrics_from,
    open_store,
    say_stopped,
    show_personal_data_option,
    store_option,
)
from agentunit.cli.outputs import open_for_writing, unfinished_path
from agentunit.cli.references import sliced_as_asked
from agentunit.cli.score_output import ScoreSink, check_output, open_sink, run_as_data
from agentunit.cli.score_plan import print_plan
from agentunit.cli.score_work import OneProcess, SeveralProcesses, works_here
from agentunit.cli.sections import in_sections
from agentunit.cli.streams import remember_exit_code
from agentunit.cli.suspects import SuspectInput, refuse_with_suspects, score_suspects, suspects_options
from agentunit.cli.trace_inputs import (
    expected_option,
    names_run,
    refuse_missing,
    refuse_overwriting_inputs,
    trace_files_from,
    trace_options,
)
from agentunit.core.codec import RecordError
from agentunit.core.records import Record
from agentunit.core.results import InputError, RunSummary, encode_json
from agentunit.engine.decision import Decision, decide_scoring
from agentunit.engine.judge_plan import SAMPLE_SIZE, plan_sending
from agentunit.engine.judging import judged_metrics
from agentunit.engine.rescoring import score_run, sending_of_run
from agentunit.engine.scored_run import run_from_store
from agentunit.engine.scoring import score as score_records
from agentunit.engine.slices import Slices, slices_of_run
from agentunit.engine.suspects.tool_marks import Mark
from agentunit.metrics.base import describe
from agentunit.reports.console import Terminal, error_line, print_causes, print_next, print_run
from agentunit.reports.figures import counted
from agentunit.reports.printable import printable_json, printable_line, show_command
from agentunit.reports.progress import Progress
from agentunit.reports.reported_run import Mask, ReportedRun
from agentunit.reports.slice_table import print_slices
from agentunit.reports.trace_console import print_reading
from agentunit.store.parquet_table import is_table_name
from agentunit.store.protocol import RunStore
from agentunit.store.schema import StoreError
from agentunit.traces.grouping import GroupBy
from agentunit.traces.native import STDIN
from agentunit.traces.reading import TraceFiles

_INTERRUPTED = 130
_READ_BEFORE_ASKING = 1000


@click.command(
    cls=in_sections({"Backends and judge": JUDGE_OPTIONS, FOLLOWING: FOLLOW_OPTIONS}),
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.argument("files", nargs=-1, required=True, metavar="FILE…|RUN")
@click.option(
    "-m",
    "--metrics",
    "names",
    multiple=True,
    metavar="NAMES",
    help="Metrics, separated by commas (also module:attribute for your own). Default: the standard set. "
    "'agentunit metrics' lists them.",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(dir_okay=False),
    help="Write every case's scores here: one JSON object per line ('-': standard output), or a table that 'gate', "
    "'compare' and 'show' read as a run, where the name ends in .parquet.",
)
@click.option("--errors", "errors_file", type=click.Path(dir_okay=False), help="Write what could not be read here.")
@click.option("--json", "as_json", is_flag=True, help="Print the run's summary as JSON instead of a table.")
@by_option
@click.option("--all", "all_rows", is_flag=True, help="With --by: every row of the table by slice, not only ten.")
@click.option("--strict", is_flag=True, help="Stop at the first record that cannot be read.")
@click.option(
    "--max-errors",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Unreadable records plus failed scores that are allowed before the exit code becomes 3.",
)
@jobs_option
@engine_option
@click.option("--resume", is_flag=True, help="Continue a job that was stopped (with --out, and --jobs or --engine).")
@click.option("--plan", is_flag=True, help="Score only a sample, and estimate what all would take: time, memory, cost.")
@click.option("--again", is_flag=True, help="Score a stored run's cases again, even if they have these scores.")
@suspects_options
@show_personal_data_option
@media_root_option
@judge_options
@trace_options
@expected_option
@store_option
@follow_options(starts=True)
def score(
    files: tuple[str, ...],
    names: tuple[str, ...],
    out: str | None,
    errors_file: str | None,
    as_json: bool,
    by: str | None,
    all_rows: bool,
    strict: bool,
    max_errors: int,
    jobs: int | None,
    engine: str | None,
    resume: bool,
    plan: bool,
    again: bool,
    suspects: bool,
    task_field: str | None,
    tool_marks: Mapping[str, Mark],
    show_personal_data: bool,
    format_name: str | None,
    group_by: GroupBy,
    expected: str | None,
    store_path: str,
    choice: JudgeChoice,
    following: FollowChoice,
) -> None:
    """Score recorded traces: files and folders, plain, .gz or .zst; '-' reads standard input, and a URL such as
    s3://bucket/traces/ other storage (extra remote).

    OpenTelemetry exports (OpenInference, GenAI, OpenLLMetry), other tools' exports, chat logs, rows with questions and
    answers (JSON, CSV, Parquet) and AgentUnit's own records are told apart by themselves. 'agentunit doctor FILE' says
    what a file holds and lacks.

    The name of a run instead of a file scores what it recorded with new metrics, and keeps the scores with it.

    \b
    agentunit score traces.jsonl
    agentunit score rows.csv --metrics faithfulness,answer_correctness
    agentunit score spans.json.gz --expected answers.csv
    agentunit score exports/ --group-by session
    agentunit score traces.jsonl.gz --metrics faithfulness,cost --out scores.jsonl
    agentunit score s3://bucket/traces/ --out s3://bucket/scores.parquet
    agentunit score traces/ --follow --by metadata.category --sample 5%
    agentunit score last --metrics response_time
    agentunit score traces.jsonl --by metadata.category
    agentunit score exports/ --jobs auto --out scores.jsonl
    agentunit score exports/ --engine ray://head:10001 --out scores.jsonl
    agentunit score traces.jsonl --metrics faithfulness --backend judge
    agentunit score traces.jsonl --suspects
    """
    choice.configure()
    if suspects and following.is_asked:
        raise click.UsageError("--suspects compares recorded runs, --follow scores new ones: use one at a time")
    if suspects:
        refuse_with_suspects(
            metrics=names, by=by, jobs=jobs, engine=engine, resume=resume, plan=plan, again=again, expected=expected
        )
        score_suspects(
            SuspectInput(files, store_path, format_name, group_by),
            marks=tool_marks,
            task_field=task_field,
            out=out,
            errors_file=errors_file,
            as_json=as_json,
            all_rows=all_rows,
            strict=strict,
            max_errors=max_errors,
            show_personal_data=show_personal_data,
            choice=choice,
        )
        return
    if task_field is not None or tool_marks:
        raise click.UsageError("--task and --mark say how runs are compared: they go with --suspects")
    metrics = choice.adjust(metrics_from(names, choice))
    if following.is_asked:
        refuse_with_follow(
            out=out, errors=errors_file, all=all_rows, strict=strict, jobs=jobs, engine=engine, resume=resume,
            plan=plan, again=again, group_by=group_by != "trace",
        )  # fmt: skip
        refuse_missing(files)
        from agentunit.cli.following import follow_files

        follow_files(
            files,
            metrics,
            following,
            as_json=as_json,
            max_errors=max_errors,
            show_personal_data=show_personal_data,
            store_path=store_path,
            by=by,
            yes=choice.yes,
            format_name=format_name,
            expected=trace_files_from((), format_name, group_by, expected).expected,
        )
        return
    if following.is_changed:
        raise click.UsageError(f"{', '.join(FOLLOW_OPTIONS[2:])} go with --follow or --once")
    if names_run(files, store_path):
        if engine is not None:
            raise click.UsageError("--engine goes with files: the records of a run are read from its store")
        score_stored_run(
            files[0],
            metrics,
            store_path,
            out=out,
            again=again,
            jobs=jobs,
            as_json=as_json,
            by=by,
            all_rows=all_rows,
            max_errors=max_errors,
            yes=choice.yes,
            show_personal_data=show_personal_data,
        )
        return
    refuse_missing(files)
    if choice.settings.get("transcripts") and not out:
        raise click.UsageError("--judge-transcripts keeps every call with the scores: say where with --out FILE")
    if resume and (
        (jobs is None and engine is None)
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
    refuse_overwriting_inputs(files, out, errors_file)
    check_output(out)
    if out and errors_file and os.path.abspath(out) == os.path.abspath(errors_file):
        raise click.UsageError(f"--out and --errors must be different files; received {out} for both")
    source = trace_files_from(files, format_name, group_by, expected)
    if plan:
        if STDIN in files:
            raise click.UsageError("--plan reads a sample and then nothing: standard input could not be read again")
        print_plan(source, metrics, format_name=format_name, group_by=group_by, jobs=jobs, as_json=as_json)
        return
    with ExitStack() as stack:
        errors_stream = stack.enter_context(open_for_writing(errors_file)) if errors_file else None
        infos = {metric.name: describe(metric) for metric in metrics}
        slices = None if by is None else Slices(by)
        work: OneProcess | SeveralProcesses
        judged = judged_metrics(metrics)
        if works_here(files, metrics, group_by, judged, jobs=jobs, engine=engine):
            if resume:
                click.echo("note: --resume: this process reads all records in order, and starts over", err=True)
            records, n_cases = _records(source, errors_stream), None
            if judged:
                records, n_cases = _asked_about(records, source, metrics, choice)
            run = score_records(records, metrics, strict=strict, jobs=jobs)
            if slices is not None:
                of_slices = slices
                run.on_scored = lambda item, scores: of_slices.add_scores(item.case.metadata, scores, infos)
            # Opened after the question: who declines to send anything leaves no unfinished file.
            work = OneProcess(run, source, out, _opened(out, metrics, files, max_errors), n_cases)
        else:
            work = SeveralProcesses(
                source,
                metrics,
                jobs=jobs,
                engine=engine,
                format_name=format_name,
                expected_path=expected,
                out=out,
                sink=_opened(out, metrics, files, max_errors),
                resume=resume,
                strict=strict,
                slices=slices,
                on_error=lambda error: _list_error(error, errors_stream),
            )
        try:
            summary = work.work()
        except RecordError as error:
            raise InputFailure(f"{printable_line(str(error))} (--strict stops at the first{work.kept()})") from None
        except KeyboardInterrupt:
            click.echo(f"stopped after {counted(work.totals.n_cases, 'case')}{work.kept()}", err=True)
            raise click.exceptions.Exit(_INTERRUPTED) from None
    decision = decide_scoring(summary, max_errors)
    remember_exit_code(decision.exit_code)
    mask = Mask(show_all=show_personal_data)
    summary = mask.summary(summary)
    table = None if slices is None else mask.slices(slices.table())
    if as_json:
        print_reading(source, Terminal(stderr=True))
        click.echo(printable_json(run_as_data(files, metrics, summary, table)))
    else:
        print_reading(source, Terminal(stderr=out == STDIN))
        if table is not None and summary.n_cases:
            print_slices(table, infos, Terminal(stderr=out == STDIN), all_rows=all_rows)
        shared_ids = getattr(source, "repeated_ids", ())
        _print(summary, metrics, out if summary.n_cases or out == STDIN else None, errors_file, files, shared_ids)
    _leave(decision, summary, as_json)


def _asked_about(
    records: Iterator[Record | InputError], source: TraceFiles, metrics: Sequence[Any], choice: JudgeChoice
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
    ask_before_sending(plan_sending(metrics, sample, n_cases=n_cases, exact=whole), yes=choice.yes)
    return chain(first, records), n_cases if whole else None


def score_stored_run(
    reference: str,
    metrics: Sequence[Any],
    store_path: str,
    *,
    out: str | None = None,
    again: bool = False,
    jobs: int | None = None,
    as_json: bool = False,
    by: str | None = None,
    all_rows: bool = False,
    max_errors: int = 0,
    yes: bool = False,
    show_personal_data: bool = False,
) -> None:
    """Put metrics over the records of a stored run, and print the run with all its scores."""
    with open_store(store_path) as store:
        try:
            header = store.find_run(reference)
        except StoreError as error:
            raise InputFailure(f"{reference}: no such file, and no such run ({error})") from None
        if out is not None:
            raise click.UsageError(f"--out goes with files; 'agentunit export {reference} --to FILE' writes its scores")
        if again:
            _refuse_to_replace_judged(store, header.id, metrics)
        ask_before_sending(sending_of_run(store, header.id, metrics, again=again), yes=yes)
        progress = Progress("cases", fraction=lambda: None)
        try:
            with redirect_stdout(sys.stderr), end_signals_interrupt():
                score_run(store, header.id, metrics, again=again, on_case=progress.ticker(), jobs=jobs)
        except KeyboardInterrupt:
            progress.clear()
            say_stopped("the scores so far are kept with the run; the same command continues")
            raise click.exceptions.Exit(_INTERRUPTED) from None
        except StoreError as error:
            raise InputFailure(f"{error}; the scores so far are kept, and the same command continues") from None
        finally:
            progress.clear()
        scored = run_from_store(store, header.id)
        mask = Mask(show_all=show_personal_data)
        summary = mask.summary(scored.summary())
        table = None if by is None else mask.slices(sliced_as_asked(slices_of_run, scored, by))
        causes = [] if as_json else ReportedRun(scored, store=store, show_personal_data=show_personal_data).causes
    decision = decide_scoring(summary, max_errors)
    remember_exit_code(decision.exit_code)
    if as_json:
        click.echo(printable_json(run_as_data([header.id], metrics, summary, table)))
    else:
        infos = {row.metric: scored.info(row.metric) for row in summary.metrics}
        if table is not None:
            print_slices(table, infos, Terminal(), all_rows=all_rows)
        print_run(summary, infos, Terminal())
        print_causes(causes, Terminal())
        print_next([f"agentunit show {header.id}"], Terminal())
    _leave(decision, summary, as_json)


def _refuse_to_replace_judged(store: RunStore, run_id: str, metrics: Sequence[Any]) -> None:
    """What a judge was paid for gives way to another backend only where one is named: the judge may be the suite's."""
    chosen_here = {
        metric.name
        for metric in metrics
        if getattr(metric, "backend", None) == "auto" and not getattr(metric, "asks_service", False)
    }
    for name, row in store.score_rows(run_id) if chosen_here else ():
        if name in chosen_here and row.backend in SERVICES:
            raise click.UsageError(
                f"{name} of run {run_id} was scored by {row.backend}, and {why_not_configured()}; "
                "--backend NAME replaces its scores by another's"
            )


def _opened(out: str | None, metrics: Sequence[Any], files: Sequence[str], max_errors: int) -> ScoreSink | None:
    return None if out is None else open_sink(out, metrics, files, max_errors)


def _records(source: TraceFiles, errors_stream: IO[bytes] | None) -> Iterator[Record | InputError]:
    for each in source:
        if isinstance(each, InputError):
            _list_error(each, errors_stream)
        yield each


def _list_error(error: InputError, errors_stream: IO[bytes] | None) -> None:
    if errors_stream is not None:
        errors_stream.write(encode_json(error) + b"\n")


def _print(
    summary: RunSummary,
    metrics: Sequence[Any],
    out: str | None,
    errors_file: str | None,
    files: Sequence[str],
    shared_ids: Collection[str],
) -> None:
    if summary.n_cases == 0 and not summary.n_input_errors:
        click.echo(printable_line(f"nothing to score: {', '.join(files)} holds no records"), err=True)
        return
    steps = []
    if summary.n_input_errors and errors_file:
        steps.append(f"all {summary.n_input_errors:,} unreadable parts are listed in {errors_file}")
    if out and out != STDIN and is_table_name(out):
        steps.append(shlex.join(["agentunit", "show", out]))
    elif out and out != STDIN:
        steps.append(f"every case's scores are in {out}")
    elif worst := _worst_case(summary, metrics) if len(files) == 1 and os.path.exists(files[0]) else None:
        steps.append(show_command(files[0], worst))
    elif summary.n_cases and not out:
        steps.append("agentunit score … --out scores.jsonl keeps every case's scores")
    # Where only some scores are, the line under the table says why.
    if informational := [
        row.metric for row in summary.metrics if row.status == "informational" and not row.informational
    ]:
        steps.append(f"agentunit metrics {informational[0]} explains why it is only informational")
    infos = {metric.name: describe(metric) for metric in metrics}
    print_run(summary, infos, Terminal(stderr=out == STDIN), next_steps=steps, shared_ids=shared_ids)


def _worst_case(summary: RunSummary, metrics: Sequence[Any]) -> str | None:
    """The first of the cases that the table says to look at."""
    scores = {metric.name for metric in metrics if describe(metric).unit == "score"}
    rows = (row for row in summary.metrics if row.status == "ok" and row.metric in scores)
    return next((case for row in rows for case in row.worst_cases), None)


def _leave(decision: Decision, summary: RunSummary, as_json: bool) -> None:
    """Leave with the exit code of the decision, and say on standard error why it is not 0."""
    if not decision.exit_code:
        return
    # That nothing was there to score is said already, with the names of the files.
    if decision.reasons[0].kind == "no records" and not as_json:
        raise click.exceptions.Exit(decision.exit_code)
    # Without a table on the screen, this line is all there is to see.
    first = f"; first: {error_line(summary.input_errors[0])}" if summary.input_errors and as_json else ""
    click.echo(printable_line(decision.headline) + first, err=True)
    raise click.exceptions.Exit(decision.exit_code)
