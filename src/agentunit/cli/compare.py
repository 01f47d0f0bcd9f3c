"""``agentunit compare``: is a run worse than an earlier one?"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

import click

from agentunit.cli.judge_options import JudgeChoice, ask_about_pairs, pairwise_options
from agentunit.cli.options import (
    InputFailure,
    Verb,
    by_option,
    json_option,
    margin_option,
    open_store,
    show_personal_data_option,
    store_option,
    unsure_option,
    why_option,
)
from agentunit.cli.references import how_to_complete, load_run, shown_name, sliced_as_asked
from agentunit.cli.streams import remember_exit_code
from agentunit.cli.taken_in import run_or_traces
from agentunit.core.results import RunFinding
from agentunit.engine.deciding.compare import compare_runs
from agentunit.engine.deciding.comparison import ALPHA, Comparison, labels_of
from agentunit.engine.deciding.cut_offs import margins_from
from agentunit.engine.deciding.decision import FROM_FILE, Decision, decide_comparison, strictest
from agentunit.engine.deciding.gate_expressions import DEFAULT_MIN_COVERAGE, Gate
from agentunit.engine.deciding.stored import keep_decision
from agentunit.engine.recording.suite_run import baseline_reference
from agentunit.engine.scoring.scored_run import ScoredRun
from agentunit.engine.scoring.slices import slices_of_comparison
from agentunit.reports.console import print_line, print_next
from agentunit.reports.decision_console import (
    next_command,
    print_comparison,
    print_known_failures,
    print_verdict,
    print_verdict_block,
)
from agentunit.reports.json_report import decision_as_data
from agentunit.reports.printable import printable_json, printable_line
from agentunit.reports.reported_run import Mask, ReportedRun
from agentunit.reports.several_runs import print_several
from agentunit.reports.slice_table import print_slices
from agentunit.reports.terminal import Terminal
from agentunit.store.schema import StoreError

if TYPE_CHECKING:
    from agentunit.addons.judge.win_rate import JudgedPairs


@dataclass(frozen=True)
class CompareOptions:
    """What the command line of ``agentunit compare`` says, by the names that the command's decorators give it."""

    references: tuple[str, ...]
    names: tuple[str, ...]
    on: tuple[str, ...]
    margins: tuple[str, ...]
    alpha: float
    by: str | None
    all_rows: bool
    choice: JudgeChoice
    as_json: bool
    show_personal_data: bool
    store_path: str


@click.command(cls=Verb)
@click.argument("references", nargs=-1, required=True, metavar="BASE NEW [NEW]...")
@click.option(
    "-m",
    "--metrics",
    "names",
    multiple=True,
    metavar="NAMES",
    help="Only these, separated by commas (NAME or NAME[backend]); all of them count, unless --on says which. "
    "Default: all, of which checks and those with gates count.",
)
@click.option(
    "--on",
    "on",
    multiple=True,
    metavar="METRIC",
    help="A metric to test against the baseline; repeatable. The others are shown, not tested.",
)
@margin_option
@click.option("--alpha", type=float, default=ALPHA, show_default=True, help="The allowed chance of a false alarm.")
@by_option
@why_option
@unsure_option
@pairwise_options
@json_option("Print the comparison as JSON.")
@show_personal_data_option
@store_option
def compare(**received: Any) -> None:
    """Compare runs with an earlier one, over the cases that both have: the old run first, then the new ones.

    BASE and NEW are ids, beginnings of one, names, 'last', 'last~1', exported files or score tables (.parquet); a file
    or folder of traces becomes a run first, scored by the standard set. First come the cases that are broken, newly
    fail, are fixed, worse or better, with both answers. Then the metrics: differences are NEW − BASE, and those that
    count are tested in the direction that is worse. Several new runs are shown in one table, each against BASE; the
    allowed chance of a false alarm is shared among them.

    \b
    agentunit compare last~1 last
    agentunit compare main.json variant-a variant-b
    agentunit compare last~1 last --by metadata.category
    agentunit compare main.json last --on task_success --on cost --margin cost=5%
    agentunit compare last~1 last --judge qwen3-8b

    Nothing is run again, so a case that newly fails may do so by chance: 'agentunit rerun NEW --newly-failing' tells.

    Exit codes: 0 nothing got worse, 1 cases are broken, more newly fail than chance makes, or a metric got worse, 4
    cases newly fail and were not tried to the end, a --margin is not ruled out, or too much is missing.
    """
    options = CompareOptions(**received)
    references, store_path, all_rows = options.references, options.store_path, options.all_rows
    if len(references) < 2:
        raise click.UsageError("name at least two runs: the old one first")
    references = tuple(run_or_traces(reference, store_path) for reference in references)
    old, *new = (load_run(reference, store_path) for reference in references)
    mask = Mask(show_all=options.show_personal_data)
    base, *labels = labels_of([run.header for run in (old, *new)])
    decisions, slices = [], []
    judged = ask_about_pairs(options.choice, old, new)
    for run, label, chosen in zip(new, labels, judged, strict=True):
        comparison = compare_as_asked(
            run,
            old,
            options.names,
            options.margins,
            options.alpha / len(new),
            on=options.on,
            labels=(base, label),
            judged=chosen,
        )
        decision = decide_comparison(comparison, run)
        decision = keep_beside(run, decision, "compare", store_path, baseline=baseline_reference(references[0], old))
        decisions.append(mask.decision(decision))
        if options.by is not None:
            slices.append(mask.view(sliced_as_asked(slices_of_comparison, comparison, run, old, options.by)))
    exit_code = strictest(decision.exit_code for decision in decisions)
    remember_exit_code(exit_code)
    if options.as_json:
        data = [decision_as_data(decision) for decision in decisions]
        for each, table in zip(data, slices, strict=False):
            each["slices"] = table
        click.echo(printable_json(data[0] if len(data) == 1 else {"comparisons": data, "exit_code": exit_code}))
        _leave(exit_code)
    for run, label, table in zip(new, labels, slices, strict=False):
        infos = {row.metric: run.info(row.metric) for row in table.rows}
        print_slices(table, infos, Terminal(), all_rows=all_rows, run=label if len(new) > 1 else None)
    if len(new) == 1:
        steps = how_to_complete(dict(zip(references, (old, *new), strict=True)), store_path)
        steps = steps or [next_command(shown_name(references[1], new[0]), decisions[0])]
        shown = shown_name(references[1], new[0])
        findings = findings_of_file_or_run(new[0], decisions[0], shown, options.show_personal_data)
        print_verdict(decisions[0], findings, Terminal(), *steps, all_rows=all_rows)
    else:
        print_several(decisions, labels, base, Terminal(), _report_of(references), all_rows=all_rows)
    _leave(exit_code)


def _report_of(references: Sequence[str]) -> str:
    return shlex.join(["agentunit", "export", *references[1:], "--baseline", references[0], "--to", "report.html"])


def compare_variants(
    variants: Mapping[str, ScoredRun],
    decision: Decision,
    next_step: str,
    *,
    all_rows: bool,
    as_json: bool,
    show_personal_data: bool,
) -> None:
    """Describe how the others differ from the first, by what each is called, and end with what was decided of all.

    Which variant is better is what was asked: a worse one is no failure, so nothing here is a verdict but the last.
    """
    mask = Mask(show_all=show_personal_data)
    (base, old), *others = variants.items()
    found = []
    for label, run in others:
        comparison = compare_runs(run, old, alpha=ALPHA / len(others), labels=(base, label))
        found.append(mask.decision(decide_comparison(comparison, run)))
    if as_json:
        data = decision_as_data(decision)
        facts = {name: data[name] for name in ("decision", "exit_code")}
        click.echo(printable_json({"comparisons": [decision_as_data(each) for each in found], **facts}))
        return
    console = Terminal()
    print_verdict_block(decision, (), console)
    if len(found) == 1:
        print_line(printable_line(found[0].said), console, "bold")
        print_comparison(found[0], console, all_rows=all_rows)
    else:
        labels = [label for label, _ in others]
        print_several(found, labels, base, console, all_rows=all_rows, as_verdicts=False)
        next_step = _report_of([run.header.id for run in variants.values()])
    print_known_failures([decision], console)
    print_next([decision.way_out or next_step], console)


def findings_of_file_or_run(
    run: ScoredRun, decision: Decision, shown_as: str, show_personal_data: bool
) -> list[RunFinding]:
    """What is wrong with a run by a decision that was made here."""
    reported = ReportedRun(run, decision=decision, show_personal_data=show_personal_data)
    reported.shown_as = shown_as
    return reported.findings


def keep_beside(run: ScoredRun, decision: Decision, made_by: str, store_path: str, **options: Any) -> Decision:
    """Keep what was decided about a run of the store, beside its own decision; returns it with a note of how.

    A file is never written to.
    """
    if run.reopen is None:
        return replace(decision, made_with={"by": FROM_FILE})
    if run.header.is_foreign or not run.header.settings.get("suite"):
        # Nothing that came with a run is executed: who tries it again says what to run.
        options["needs_suite"] = True
    # Whoever may only read a store can decide all the same.
    with suppress(StoreError, InputFailure), open_store(store_path) as store:
        if decision.verdict is not None:
            return keep_decision(store, run.header.id, decision, made_by, **options)
    return replace(decision, made_with={**decision.made_with, "by": made_by, **options})


def _leave(exit_code: int) -> NoReturn:
    raise click.exceptions.Exit(exit_code)


def compare_as_asked(
    candidate: ScoredRun,
    baseline: ScoredRun,
    names: Sequence[str] = (),
    margins: Sequence[str] = (),
    alpha: float = ALPHA,
    *,
    on: Sequence[str] = (),
    gates: Sequence[Gate] | None = None,
    min_coverage: float = DEFAULT_MIN_COVERAGE,
    labels: tuple[str, str] | None = None,
    judged: JudgedPairs | None = None,
) -> Comparison:
    """The comparison that a command line asks for; what is wrong with it is a usage error."""
    if judged is not None:
        candidate, baseline = judged.put_into(candidate, baseline)
    wanted, counted = (
        [name.strip() for group in groups for name in group.split(",") if name.strip()] for groups in (names, on)
    )
    try:
        comparison = compare_runs(
            candidate,
            baseline,
            metrics=wanted or None,
            on=counted or None,
            gates=gates,
            margin=margins_from(margins),
            alpha=alpha,
            min_coverage=min_coverage,
            labels=labels,
        )
        return comparison if judged is None else judged.add_to(comparison)
    except ValueError as error:
        # Who called it is no news on a command line, and its parameters are options there.
        said = re.sub(r"^compare_runs: (\w+)", lambda found: f"--{found[1].replace('_', '-')}", str(error))
        raise click.UsageError(said) from None
