"""``agentunit export``: a run as a file for people, for CI or for another machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from agentunit.cli.compare import compare_as_asked
from agentunit.cli.gate import gates_for
from agentunit.cli.judge_options import JudgeChoice, ask_about_pairs, pairwise_options
from agentunit.cli.options import Verb, by_option, open_store, show_personal_data_option, store_option, unsure_option
from agentunit.cli.references import (
    find_reported_run,
    load_run,
    note_what_stays,
    sliced_as_asked,
    unreadable_runs_fail,
)
from agentunit.cli.streams import remember_exit_code
from agentunit.cli.taken_in import run_or_traces
from agentunit.engine.deciding.checks import rules_of
from agentunit.engine.deciding.comparison import ALPHA, labels_of
from agentunit.engine.deciding.decision import Decision, decide_run, stored_min_coverage
from agentunit.engine.deciding.gate_expressions import stored_gates
from agentunit.engine.deciding.trying import history_for_export
from agentunit.engine.scoring.score_rows import is_table
from agentunit.engine.scoring.scored_run import ScoredRun, run_from_store
from agentunit.engine.scoring.slices import slices_of_comparison, slices_of_run
from agentunit.reports.figures import counted_cases
from agentunit.reports.printable import printable, printable_line
from agentunit.reports.reported_run import ReportedRun
from agentunit.reports.reporters import (
    PORTABLE,
    STDOUT,
    format_for,
    known_endings,
    reporter_named,
    reporter_names,
)
from agentunit.store.portable import export_run
from agentunit.urls import is_file

if TYPE_CHECKING:
    from agentunit.addons.judge.win_rate import JudgedPairs

_WITH_TEXTS = ("html", "markdown")
_WITHOUT_VERDICT = (PORTABLE, "csv", "parquet", "otel")


@dataclass(frozen=True)
class ExportOptions:
    """What the command line of ``agentunit export`` says, by the names that the command's decorators give it."""

    references: tuple[str, ...]
    target: str
    format_name: str | None
    gates: tuple[str, ...]
    baseline: str | None
    on: tuple[str, ...]
    by: str | None
    choice: JudgeChoice
    show_personal_data: bool
    store_path: str

    @property
    def is_decided_here(self) -> bool:
        """Whether a verdict is asked for, and not only the one that was made with the run."""
        return bool(self.gates) or self.baseline is not None

    def check(self, chosen: str) -> None:
        """Refuse what does not go together, before anything is read."""
        for reference in self.references:
            _refuse_overwriting(self.target, reference, self.store_path)
        if len(self.references) > 1 and self.baseline is None:
            raise click.UsageError("several runs need --baseline RUN: the run that each of them is compared with")
        if "--judge" in self.choice.said and self.baseline is None:
            raise click.UsageError("--judge needs --baseline RUN: the run whose answers are the other ones")
        is_decided = self.baseline is not None or self.on
        if len(self.references) == 1 and chosen in _WITHOUT_VERDICT and is_decided:
            raise click.UsageError(
                f"--baseline and --on are for html, markdown and junit: {chosen} holds scores and no verdict "
                "('agentunit compare BASE RUN --json' prints a comparison as JSON)"
            )

    def with_traces_taken_in(self) -> ExportOptions:
        """The same with runs in place of the files of traces among what it names."""
        references = tuple(run_or_traces(each, self.store_path, self.gates) for each in self.references)
        baseline = self.baseline
        if baseline is not None:
            baseline = run_or_traces(baseline, self.store_path, self.gates)
        return replace(self, references=references, baseline=baseline)


@click.command(cls=Verb)
@click.argument("references", nargs=-1, required=True, metavar="RUN...")
@click.option("-o", "--to", "target", required=True, metavar="FILE", help="The file to write; '-' is standard output.")
@click.option(
    "-f",
    "--format",
    "format_name",
    metavar="NAME",
    help=f"{', '.join(reporter_names())}. Default: by the file's ending.",
)
@click.option("-g", "--gate", "gates", multiple=True, metavar="EXPR", help="Gates instead of the run's own.")
@click.option("--baseline", metavar="RUN|FILE", help="Also compare with this run, as 'agentunit run --baseline' does.")
@click.option("--on", "on", multiple=True, metavar="METRIC", help="A metric that counts against the baseline.")
@by_option
@unsure_option
@pairwise_options
@show_personal_data_option
@store_option
def export(**received: Any) -> None:
    """Write a run, or several against one baseline, to one file.

    RUN is an id, the beginning of one, a name, 'last', a file that was exported before, or a score table (.parquet); a
    file or folder of traces becomes a run first, scored by the standard set and the metrics of the gates. A .json file
    holds everything and can be imported again; the others are for reading: HTML for people, Markdown for a
    pull request, JUnit XML for CI, CSV and Parquet for tables (one row per case, repeat and metric; show and
    compare read the Parquet table as they read a run). An http(s) address gets every
    score as an OpenTelemetry event (OTLP logs, extra otel).

    Several runs need a --baseline, and HTML, Markdown or JUnit: one report with metrics by runs, cases by runs, and
    everything about each run. The allowed chance of a false alarm is shared among them, as 'agentunit compare' does.

    The verdict that HTML, Markdown and JUnit hold is printed, too. With --gate the exit code is the
    verdict's: 0 pass, 1 fail, 3 errors, 4 cannot tell. Otherwise it is 0, as the file was written.

    Reports mask e-mail addresses, card numbers, credentials and the like. A .json file keeps them: it is the run itself
    ('agentunit convert RUN --mask' makes records to share).

    \b
    agentunit export last --to run.html
    agentunit export last --to baseline.json.gz
    agentunit export last --to junit.xml
    agentunit export variant-a variant-b --baseline main.json --to report.html
    agentunit export langfuse-export/ --gate "tool_success >= 0.9" --to comment.md
    agentunit export last --to http://localhost:4318/v1/logs
    """
    options = ExportOptions(**received)
    target = options.target
    chosen = _known(options.format_name) if options.format_name else _format_of(target)
    options.check(chosen)
    options = options.with_traces_taken_in()
    verdict: Decision | None = None
    with unreadable_runs_fail():
        if chosen == PORTABLE:
            written = _write_portable(options)
        else:
            written, verdict = _write_report(options, chosen)
    if verdict is not None and options.gates:
        remember_exit_code(verdict.exit_code)
    if target != STDOUT:
        click.echo(printable(f"{target}: {written}"))
    if chosen in _WITH_TEXTS and not options.show_personal_data:
        note_what_stays(options.references, options.store_path)
    if verdict is not None and verdict.verdict is not None:
        click.echo(printable_line(verdict.headline), err=True)
        if options.gates:
            raise click.exceptions.Exit(verdict.exit_code)


def _write_report(options: ExportOptions, chosen: str) -> tuple[str, Decision | None]:
    """Write a report of the runs; what was written, and the verdict that it holds."""
    reporter = reporter_named(chosen)
    if len(options.references) > 1 and not getattr(reporter, "several", False):
        raise click.UsageError(f"--format {chosen} writes one run; html, markdown and junit take several")
    with ExitStack() as opened:
        runs: list[ReportedRun] = []
        for reference in options.references:
            found = find_reported_run(reference, options.store_path, show_personal_data=options.show_personal_data)
            runs.append(opened.enter_context(found))
        old = None if options.baseline is None else load_run(options.baseline, options.store_path)
        judged: Sequence[JudgedPairs | None] = [None] * len(runs)
        if old is not None:
            if len(runs) > 1:
                _put_together(runs, old)
            judged = ask_about_pairs(options.choice, old, [reported.run for reported in runs])
        for reported, pairs in zip(runs, judged, strict=True):
            reported.baseline = old
            _decide(reported, runs[0].baseline_label, options, ALPHA / len(runs), pairs)
        written = reporter.write(runs[0], options.target)
        return written, None if chosen in _WITHOUT_VERDICT else runs[0].verdict


def _decide(
    reported: ReportedRun, baseline_label: str, options: ExportOptions, alpha: float, judged: JudgedPairs | None
) -> None:
    """Decide about a run by its gates and against its baseline, and cut its scores into slices if asked."""
    run, baseline = reported.run, reported.baseline
    gates = gates_for(run, options.gates, reported.path)
    coverage = stored_min_coverage(run.header.settings)
    comparison = None
    if baseline is not None:
        labels = (baseline_label, reported.label) if baseline_label else None
        comparison = compare_as_asked(
            run, baseline, alpha=alpha, on=options.on, gates=gates, min_coverage=coverage, labels=labels, judged=judged
        )
    # Without a baseline or gates of its own, a report says what was decided when the run was made.
    if options.is_decided_here:
        reported.decision = decide_run(run, gates, comparison)
    if options.by is not None:
        if comparison is not None and baseline is not None:
            reported.add_slices(sliced_as_asked(slices_of_comparison, comparison, run, baseline, options.by))
        reported.add_slices(sliced_as_asked(slices_of_run, run, options.by))


def _put_together(runs: list[ReportedRun], baseline: ScoredRun) -> None:
    """Make one report of runs that were compared with the same baseline."""
    first, *others = runs
    if len({reported.run.header.id for reported in runs}) < len(runs):
        raise click.UsageError("a run is named twice: name each one once")
    for reported in others:
        # One report: a pseudonym means the same in all of its runs.
        reported.mask = first.mask
    base, *labels = labels_of([first.mask.header(baseline.header), *(reported.header for reported in runs)])
    for reported, label in zip(runs, labels, strict=True):
        reported.label = label
    first.baseline_label, first.others = base, tuple(others)


def _known(format_name: str) -> str:
    if format_name in reporter_names():
        return format_name
    raise click.BadParameter(
        f"must be one of {', '.join(reporter_names())}; received {format_name!r}", param_hint="--format"
    )


def _format_of(target: str) -> str:
    found = format_for(target)
    if found is None:
        endings = ", ".join(known_endings())
        raise click.BadParameter(
            f"name a file that ends in {endings}, or say --format; received {target!r}", param_hint="--to"
        )
    return found


def _refuse_overwriting(target: str, reference: str, store_path: str) -> None:
    for path in (reference, store_path):
        if os.path.exists(target) and os.path.exists(path) and os.path.samefile(target, path):
            raise click.UsageError(f"{target} is where the run is read from: writing there would destroy it")
    if os.path.isdir(target):
        raise click.UsageError(f"{target} is a folder: name a file")


def _write_portable(options: ExportOptions) -> str:
    target = options.target
    if len(options.references) > 1:
        raise click.UsageError("a .json file holds one run with all its records: export each run to its own file")
    if options.by is not None:
        raise click.UsageError("--by is for reports: a .json file holds the run itself ('agentunit show RUN --by')")
    reference = options.references[0]
    if target == STDOUT:
        raise click.UsageError("a run with all its records goes to a file, not to standard output")
    if is_file(reference):
        if is_table(reference):
            raise click.UsageError(f"{reference} is a score table, without the records that a .json file holds")
        raise click.UsageError(f"{reference} is an exported run already: copy it")
    with open_store(options.store_path, read_only=True) as store:
        run_id = store.find_run(reference).id
        run = run_from_store(store, run_id, labels=False)
        checks = rules_of(run, stored_gates(run.header.settings))
        export_run(store, run_id, target, history=history_for_export(store, run, checks))
        planned = store.size(run_id)
    size = counted_cases(planned.n_cases, planned.n_repeats, planned.n_records)
    return f"{size}   elsewhere: agentunit runs --import {target}"
