"""``agentunit import``: a run from a file into the store, or another tool's tests into a suite."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import click

from agentunit import doors
from agentunit.cli.options import InputFailure, open_store, store_option
from agentunit.cli.references import unreadable_runs_fail
from agentunit.engine.scoring.score_rows import is_table
from agentunit.reports.figures import counted_cases
from agentunit.reports.printable import printable_line
from agentunit.reports.reported_run import printing_mask
from agentunit.store.portable import import_run as take_in
from agentunit.store.portable import is_portable


@click.command(name="import")
@click.argument("file", metavar="FILE")
@click.option("--as", "run_id", metavar="ID", help="The id a run gets (default: the one it had).")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Where a suite is written (default: a folder named after FILE).",
)
@click.option("--run", "reference", metavar="RUN", help="FILE holds labels of this run's answers.")
@click.option("-m", "--metric", metavar="NAME", help="The metric that the labels are about (default: as 'label' does).")
@click.option("--name", metavar="NAME", help="Of another tool's annotations, those of this name (default: --metric).")
@click.option("--rater", metavar="NAME", help="Who labeled, where no column rater says so (default: FILE).")
@click.option("--label-column", default="label", show_default=True, help="The column that holds the label.")
@click.option(
    "--label-means",
    type=click.Choice(["good", "bad"]),
    default="good",
    show_default=True,
    help="What true, yes, 1 or a high number means. Pass, good and correct always mean good.",
)
@store_option
def import_run(
    file: str,
    run_id: str | None,
    out: Path | None,
    reference: str | None,
    metric: str | None,
    name: str | None,
    rater: str | None,
    label_column: str,
    label_means: Literal["good", "bad"],
    store_path: str,
) -> None:
    """Import a run that 'agentunit export' wrote, labels, or the tests of another tool.

    A run (.json, .jsonl, .json.gz) goes into the store. Tests of promptfoo, DeepEval, RAGAS, LangSmith, Langfuse,
    Inspect or OpenAI evals (YAML, JSON, JSONL, CSV) become a suite: dataset.jsonl and suite.yaml. What does not map is
    listed, and the exit code is 3 then. Nothing in the file is run, and nothing is overwritten.

    With --run, FILE holds people's labels of its answers: CSV or JSONL with the columns id (or case_id) and label, and
    optionally rater, note, answer (a label of another answer is left out) and repeat; annotations exported from
    Langfuse (scores), Phoenix or LangSmith (feedback), joined by trace id; or records, whose outcomes say whether they
    succeeded. Labels are true/false, yes/no, 1/0, pass/fail, good/bad, correct/incorrect or a grade from 0 to 1.

    \b
    agentunit import main.json.gz --as main
    agentunit import promptfooconfig.yaml --out evals
    agentunit import labels.csv --run last --metric faithfulness --rater ana
    """
    if run_id is not None and not run_id.strip():
        raise click.BadParameter("an id must not be blank", param_hint="--as")
    if not os.path.isfile(file):
        raise InputFailure(f"{file}: no such file")
    if reference is not None:
        if run_id is not None or out is not None:
            raise click.UsageError("--run imports labels; --as and --out are for runs and tests")
        doors.part("import_labels")(
            file,
            reference,
            store_path,
            metric=metric,
            name=name,
            rater=rater,
            label_column=label_column,
            label_means=label_means,
        )
        return
    if metric or name or rater:
        raise click.UsageError("--metric, --name and --rater go with labels: --run names the run that they are about")
    if is_table(file):
        raise InputFailure(
            f"{file} is a score table, without records to import: gate, compare and show read it as it is"
        )
    if not is_portable(file):
        if run_id is not None:
            raise click.UsageError(f"--as is for an exported run, which {file} is not")
        doors.part("import_cases")(file, out)
        return
    if out is not None:
        raise click.UsageError(f"--out goes with the tests of another tool; {file} is an exported run")
    with unreadable_runs_fail(), open_store(store_path, must_exist=False) as store:
        header = take_in(store, file, run_id=run_id)
        size = store.size(header.id)
    name, cases = (
        printable_line(printing_mask().header(header).name),
        counted_cases(size.n_cases, size.n_repeats, size.n_records),
    )
    click.echo(f"{cases} of {name!r} imported as run {header.id}   next: agentunit show {header.id}")
