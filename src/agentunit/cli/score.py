"""``agentunit score``: recorded traces in, scores out. Each way in which it works is in a module of its own."""

from __future__ import annotations

from typing import Any

import click

from agentunit import doors
from agentunit.cli._score_stored import score_stored_run
from agentunit.cli.follow_options import follow_options
from agentunit.cli.judge_options import judge_options
from agentunit.cli.options import (
    Verb,
    by_option,
    engine_option,
    jobs_option,
    media_root_option,
    metrics_from,
    show_personal_data_option,
    store_option,
    why_option,
)
from agentunit.cli.score_files import score_files
from agentunit.cli.score_options import ScoreOptions, suspects_options
from agentunit.cli.trace_inputs import expected_option, names_run, trace_options


@click.command(
    cls=Verb,
    first="--metrics --out --by --from --expected --backend --judge --follow --why --json",
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
    help="Write every case's scores here: one JSON object per line ('-': standard output), or a table that "
    "'show' and 'compare' read as a run, where the name ends in .parquet.",
)
@click.option("--errors", "errors_file", type=click.Path(dir_okay=False), help="Write what could not be read here.")
@click.option("--json", "as_json", is_flag=True, help="Print the run's summary as JSON instead of a table.")
@by_option
@why_option
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
def score(**received: Any) -> None:
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
    agentunit score traces/ --follow --by metadata.category --watch sample=5%
    agentunit score last --metrics response_time
    agentunit score traces.jsonl --by metadata.category
    agentunit score exports/ --jobs auto --out scores.jsonl
    agentunit score exports/ --engine ray://head:10001 --out scores.jsonl
    agentunit score traces.jsonl --metrics faithfulness --backend judge
    agentunit score traces.jsonl --suspects
    """
    options = ScoreOptions(**received)
    following = options.following
    options.choice.configure()
    if options.suspects and following.is_asked:
        raise click.UsageError("--suspects compares recorded runs, --follow scores new ones: use one at a time")
    if options.suspects:
        doors.part("score_suspects")(options)
        return
    if options.task_field is not None or options.tool_marks:
        raise click.UsageError("--task and --mark say how runs are compared: they go with --suspects")
    metrics = options.choice.adjust(metrics_from(options.names, options.choice))
    if following.is_asked:
        doors.part("follow_files")(options, metrics)
        return
    if following.is_changed:
        raise click.UsageError("--watch goes with --follow or --once")
    if names_run(options.files, options.store_path):
        score_stored_run(options, metrics)
    else:
        score_files(options, metrics)
