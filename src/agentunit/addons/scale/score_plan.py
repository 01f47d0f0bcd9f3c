"""``agentunit score --plan``: what a job would take, before it begins."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import Any

import click

from agentunit.addons.scale.parallel.plan import SHARES, JobPlan, plan_job
from agentunit.cli.score_options import ScoreOptions
from agentunit.cli.sending_notice import sending_lines
from agentunit.formulas.text import shown_share
from agentunit.installation import usable_processors
from agentunit.reports.console import plain_table
from agentunit.reports.figures import counted, duration
from agentunit.reports.printable import printable_json, printable_line
from agentunit.reports.terminal import Terminal, TextTable
from agentunit.traces.reading import TraceFiles


def print_plan(source: TraceFiles, metrics: Sequence[Any], options: ScoreOptions) -> None:
    """Score a sample, and print what all of it would take."""
    with redirect_stdout(sys.stderr):
        plan = plan_job(source, metrics, options.format_name, options.group_by)
    if options.as_json:
        click.echo(printable_json(plan))
        return
    console = Terminal()
    for line in plan_lines(plan, options.jobs or usable_processors()):
        console.print(line, soft_wrap=True)
    if plan.metrics:
        shares = "how precisely a random share of the records gives each mean (95 %; –: too few values, or all alike):"
        console.print(f"\n{shares}", soft_wrap=True)
        console.print(_table(plan))
    for line in () if plan.judge is None else sending_lines(plan.judge):
        console.print(line, soft_wrap=True)


def plan_lines(plan: JobPlan, jobs: int) -> list[str]:
    """What is there, and what it takes."""
    about = "" if plan.exact else "about "
    where = counted(plan.n_files, "file")
    lines = [f"{about}{counted(plan.n_records, 'record')} in {where} of {_size(plan.n_bytes)}"]
    if not plan.n_sampled:
        return [*lines, "nothing in the sample can be scored"]
    all_s = plan.cpu_hours * 3600
    alone = f"{plan.cpu_hours:,.1f} hours" if all_s >= 3600 else duration(all_s)
    lines.append(f"one core: {alone} ({_time(plan.cpu_s_a_record)} a record, of {plan.n_sampled:,} that were scored)")
    if jobs > 1:
        lines.append(f"--jobs {jobs}: {duration(all_s / jobs)}, if that many cores are free")
    if plan.memory_bytes is not None:
        lines.append(f"memory: about {plan.memory_bytes / 1e6:,.0f} MB per process")
    return lines


def _table(plan: JobPlan) -> TextTable:
    shares = [f"{share * 100:g} %" for share in SHARES]
    table = plain_table("metric", "backend", "sample", *shares, "time", fixed=("metric", "backend"))
    for each in plan.metrics:
        widths = ["–" if width is None else f"± {width:.2g}" for width in each.half_widths]
        name, backend = printable_line(each.metric), printable_line(each.backend)
        table.add_row(name, backend, f"{each.mean:.3g}", *widths, shown_share(each.cpu_share))
    return table


def _size(n_bytes: int) -> str:
    unit = next((unit for unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")) if n_bytes >= unit[0]), (1, "bytes"))
    return f"{n_bytes / unit[0]:,.3g} {unit[1]}" if unit[0] > 1 else f"{n_bytes} bytes"


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:,.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:,.0f} µs"
