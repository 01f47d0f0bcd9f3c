"""A run in the terminal: one row a metric, what was not scored and why, and what to do next."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from agentunit.core.conversation import USER_FAILED
from agentunit.core.results import InputError, MetricSummary, PanelSummary, RunFinding, RunSummary, Unscored
from agentunit.formulas.text import number
from agentunit.metrics.base import MetricInfo
from agentunit.reports.figures import (
    INTERVAL_HEADING,
    counted,
    counted_cases,
    describe_clusters,
    describe_spending,
    describe_spread,
    duration,
    informational_notes,
    metric_cells,
    spread_rows,
    threshold_notes,
)
from agentunit.reports.finding_text import FindingText, describe_run_finding
from agentunit.reports.printable import printable, printable_line
from agentunit.reports.raters import LABELED_ROW, label_notes, labeled_cells
from agentunit.reports.terminal import Column, Terminal, Text, TextTable, cell_len

ROWS_SHOWN = 10
# The width of a window in which trust may wrap, and that of a score with its interval.
_NARROW, _VALUE_WIDTH, _TRUST_WIDTH = 90, len("0.93 [0.82, 0.98]"), len("useful, AUROC 0.73;")
_ERRORS_SHOWN = 10
_REASONS_SHOWN = 10
FINDINGS_SHOWN = 5
_INDENT = "    "
_LONGEST_SENTENCE = 400
# The room that evidence needs beside the command of its finding.
_LEAST_EVIDENCE = 24
_CASES_NAMED = 2


def plain_table(*headings: str, right: Sequence[str] = (), fixed: Sequence[str] = ()) -> TextTable:
    """A table without lines. Columns of ``right`` hold numbers; those of ``fixed`` hold words that stay whole."""
    return TextTable(*(Column(heading, right=heading in right, no_wrap=heading in fixed) for heading in headings))


def print_line(text: str, console: Terminal, style: str = "") -> None:
    """Print a line of any length; nothing in it is markup, or obeyed by a terminal or a CI log."""
    console.print(printable(text), style=style, soft_wrap=True)


def print_next(steps: Iterable[str], console: Terminal) -> None:
    """The commands to go on with."""
    for step in steps:
        print_line(f"next: {step}", console, "bold")


def print_block(
    sentence: Sequence[str],
    findings: Sequence[RunFinding],
    console: Terminal,
    *,
    style: str = "bold",
    healthy: str = "",
    all_rows: bool = False,
) -> None:
    """What every screen begins with: the verdict in a sentence, what statistics add, and what is wrong, with evidence.

    ``healthy`` is said where nothing is. Five findings are shown, unless ``all_rows``.
    """
    for place, line in enumerate(sentence):
        print_line(printable_line(line, _LONGEST_SENTENCE), console, "dim" if place else style)
    if not findings and healthy:
        print_line(healthy, console)
    shown = findings if all_rows else findings[:FINDINGS_SHOWN]
    if shown:
        console.print()
    for finding in shown:
        _print_finding(describe_run_finding(finding), console)
    if len(shown) < len(findings):
        named = "; ".join(f"{finding.n_cases:,} × {finding.name}" for finding in findings[len(shown) :])
        more = f"… and {len(findings) - len(shown):,} more (--why shows them): {printable_line(named)}"
        console.print(Text(_clipped_line(more, console.width), style="dim"), soft_wrap=True)


def _print_finding(finding: FindingText, console: Terminal) -> None:
    """What is wrong on one line, the evidence on the next; the command is at the end of the one that has room."""
    room = console.width - cell_len(finding.command) - 2
    evidence = f"{_INDENT}{finding.evidence}" if finding.evidence else ""
    is_beside = cell_len(finding.what) <= room
    first = Text(finding.what if is_beside else printable_line(finding.what, console.width), style="bold")
    if is_beside:
        first.append(" " * (room - cell_len(finding.what) + 2)).append(finding.command, style="not bold dim")
    console.print(first, soft_wrap=True)
    if is_beside:
        if evidence:
            console.print(Text(_clipped_line(evidence, console.width)), soft_wrap=True)
        return
    if room < _LEAST_EVIDENCE:
        console.print(Text(f"{_INDENT}{finding.command}", style="dim"), soft_wrap=True)
        return
    said = _clipped_line(evidence, room)
    second = Text(said).append(" " * (room - cell_len(said) + 2)).append(finding.command, style="dim")
    console.print(second, soft_wrap=True)


def _clipped_line(text: str, width: int) -> str:
    """A line cut between words to a width in columns."""
    if cell_len(text) <= width:
        return text
    words = text.split(" ")
    while len(words) > 1 and cell_len(" ".join(words)) > width - 2:
        words.pop()
    cut = " ".join(words)
    return f"{cut} …" if cell_len(cut) <= width - 2 else f"{cut[: max(0, width - 2)]}…"


def print_run(
    summary: RunSummary,
    infos: Mapping[str, MetricInfo],
    console: Terminal,
    *,
    next_steps: Iterable[str] = (),
    all_rows: bool = True,
    gated: Collection[str] = (),
    doctor: str = "",
) -> None:
    """Print the table of a run, what was not scored, its errors and the next commands.

    Without ``all_rows`` the table has at most ten rows: those of the metrics that are ``gated`` first, and none that
    only describe. ``doctor`` is the command that says what a run's traces lack.
    """
    if summary.n_cases:
        shown = summary.metrics if all_rows else _first_rows(summary.metrics, infos, gated)
        if shown:
            console.print()
            console.print(_table(shown, infos, console.width) if all_rows else _short_table(shown, infos))
        if len(shown) < len(summary.metrics):
            left_out = counted(len(summary.metrics) - len(shown), "more row")
            console.print(f"… and {left_out} (--why shows them)", style="dim")
        if clusters := describe_clusters(summary):
            print_line(printable_line(clusters), console, "dim")
        if any(row.labeled is not None for row in shown) or all_rows:
            for note in label_notes(shown):
                print_line(printable_line(note), console, "dim")
        if all_rows:
            for note in threshold_notes(shown):
                print_line(printable_line(note), console, "dim")
        if any(row.status == "informational" for row in shown):
            _print_informational(shown, console)
        if all_rows and summary.n_repeats > 1:
            _print_repeats(summary.metrics, infos, console)
        _print_judge(summary, infos, console, all_rows=all_rows)
    if summary.unscored:
        # Where nothing was scored, why is all there is to say.
        is_all = all_rows or not any(row.n_scored for row in summary.metrics)
        _print_unscored(summary.unscored, console, all_rows=is_all, doctor=doctor)
    if summary.n_input_errors:
        _print_input_errors(summary, console)
    rate = f" ({summary.n_cases / summary.elapsed_s:,.0f}/s)" if summary.elapsed_s > 0 else ""
    cases = counted_cases(summary.n_cases, summary.n_repeats, summary.n_records)
    if summary.n_without_content:
        cases += f", {counted(summary.n_without_content, 'record')} without content"
    if summary.n_user_failed:
        cases += f", the simulated user failed in {summary.n_user_failed:,}"
    # A stored run may have been stopped and resumed: it has no one duration.
    elapsed = f" in {duration(summary.elapsed_s)}{rate}" if summary.elapsed_s else ""
    console.print(f"{cases}{elapsed}", style="dim")
    print_next(next_steps, console)


def _first_rows(
    rows: list[MetricSummary], infos: Mapping[str, MetricInfo], gated: Collection[str]
) -> list[MetricSummary]:
    """The rows to show where there are many, in their order: gated ones, and one a metric before further backends.

    Left out are those that say nothing to act on: no score, one that only describes, the mirror of another.
    """
    seen: set[str] = set()
    ranked = []
    names = {row.metric for row in rows}
    for place, row in enumerate(rows):
        is_gated = row.metric in gated
        # Informational scores of some cases stand beside the others of the same metric.
        is_rest = row.status != "ok" and any(other.metric == row.metric and other.status == "ok" for other in rows)
        is_mirror = row.metric == "hallucination_rate" and "faithfulness" in names
        is_useful = (
            row.n_scored > 0
            and not (is_mirror or is_rest)
            and infos[row.metric].trust.get(row.backend) != "descriptive"
        )
        if is_gated or is_useful:
            ranked.append((not is_gated, row.metric in seen, row.status != "ok", place))
        seen.add(row.metric)
    return [rows[place] for place in sorted(rank[-1] for rank in sorted(ranked)[:ROWS_SHOWN])]


def _short_table(rows: list[MetricSummary], infos: Mapping[str, MetricInfo]) -> TextTable:
    """What a metric came to, on how many cases, and what that is worth in one word."""
    table = plain_table("metric", INTERVAL_HEADING, "scored", "trust", right=("scored",), fixed=("metric", "scored"))
    for row in rows:
        cells = metric_cells(row, infos[row.metric])
        is_one_of_several = sum(other.metric == row.metric for other in rows) > 1
        backend = f" ({row.backend})" if is_one_of_several and row.n_scored else ""
        mark = " i" if row.status == "informational" else ""
        # How many degrees reach their thresholds is for who asks: cases say more.
        value = cells.value.partition("], ")[0] + "]" if row.cut is not None and "], " in cells.value else cells.value
        table.add_row(
            Text(printable_line(f"{row.metric}{cells.mark}{mark}{backend}")),
            Text(value),
            Text(cells.scored, style="" if row.n_scored == row.n_cases else "yellow"),
            Text(printable_line(row.trust.partition(",")[0].partition(" ")[0] if row.trust else "–")),
            style="" if row.status == "ok" else "dim",
        )
        labeled = None if row.labeled is None else labeled_cells(row, infos[row.metric])
        if labeled is not None:
            shown = map(printable_line, (labeled.value, labeled.scored, labeled.trust))
            table.add_row(f"  {LABELED_ROW}{labeled.mark}", *map(Text, shown), style="bold")
    return table


def _table(rows: list[MetricSummary], infos: Mapping[str, MetricInfo], width: int) -> TextTable:
    headings = ("metric", INTERVAL_HEADING, "scored", "backend", "trust")
    shown = [(row, metric_cells(row, infos[row.metric])) for row in rows]
    names = [f"{row.metric}{cells.mark}{' i' if row.status == 'informational' else ''}" for row, cells in shown]
    labeled_rows = [None if row.labeled is None else labeled_cells(row, infos[row.metric]) for row in rows]
    every = [cells for _, cells in shown] + [cells for cells in labeled_rows if cells is not None]
    values, scored, backends, trusts = ([cells[at] for cells in every] for at in range(1, 5))
    labeled_name = [f"  {LABELED_ROW} ↑"] * any(labeled_rows)
    others = sum(_longest(each) + 2 for each in ([*names, *labeled_name], [*scored, "scored"], [*backends, "backend"]))
    # Values stay whole as long as trust has room to wrap in; in a narrow window both wrap, trust between its words.
    room = width - others - _longest([*values, INTERVAL_HEADING]) - 2
    are_whole = width >= _NARROW and room >= _TRUST_WIDTH
    fixed = ("metric", "scored", "backend", *((INTERVAL_HEADING,) if are_whole else ()))
    table = plain_table(*headings, right=("scored",), fixed=fixed)
    if are_whole:
        table.columns[1].min_width = _longest(values)
    else:
        lines = [line for value in values for line in _lines_of(value).split("\n")]
        # Trust keeps the width of its longest word, where the words of the values leave it that much.
        left = width - others - 2 - _longest_word(trusts)
        least = (
            min(_VALUE_WIDTH, _longest(values)) if left >= _VALUE_WIDTH else _longest_word([*values, INTERVAL_HEADING])
        )
        table.columns[1].width = max(least, min(_longest([*lines, INTERVAL_HEADING]), left))
    for (row, cells), name, labeled in zip(shown, names, labeled_rows, strict=True):
        table.add_row(
            Text(printable_line(name)),
            Text(cells.value if are_whole else _lines_of(cells.value)),
            Text(cells.scored, style="" if row.n_scored == row.n_cases else "yellow"),
            Text(printable_line(cells.backend)),
            Text(cells.trust),
            style="" if row.status == "ok" else "dim",
        )
        if labeled is not None:
            table.add_row(f"  {LABELED_ROW}{labeled.mark}", *map(Text, map(printable_line, labeled[1:])), style="bold")
    return table


def _longest(texts: Iterable[str]) -> int:
    return max(map(cell_len, texts), default=0)


def _lines_of(value: str) -> str:
    """A value with what follows its interval on a line of its own."""
    return value.replace("], ", "],\n")


def _longest_word(texts: Iterable[str]) -> int:
    return _longest(word for text in texts for word in text.split())


def _print_informational(rows: list[MetricSummary], console: Terminal) -> None:
    for note in informational_notes(rows):
        print_line(f"i  {printable_line(note)}", console, "dim")
    if not rows:
        return
    from agentunit.backends.quality import LEXICAL, missing_local_model

    command = missing_local_model() if any(row.backend == LEXICAL for row in rows) else None
    if command is not None:
        print_line(f"i  {command} adds the local model, whose scores are worth more", console, "dim")


def _print_repeats(rows: list[MetricSummary], infos: Mapping[str, MetricInfo], console: Terminal) -> None:
    repeated = [row for row in rows if row.within_case_sd is not None]
    if not repeated:
        return
    times = max(row.n_repeats for row in repeated)
    heading = Text("\nRepeats", style="bold")
    console.print(heading.append(f" (a case up to {times} times; 'scored' counts every repeat)", style="not bold"))
    for row in repeated:
        unit, k = infos[row.metric].unit, row.n_repeats
        parts = [f"± {number(row.within_case_sd or 0.0, unit)} from run to run of a case"]
        if row.pass_all is not None and row.pass_any is not None:
            parts = [f"pass^{k} {row.pass_all:.2f}", f"pass@{k} {row.pass_any:.2f}", *parts]
        print_line("  " + printable_line(f"{row.metric}: {', '.join(parts)}"), console)


def _print_judge(summary: RunSummary, infos: Mapping[str, MetricInfo], console: Terminal, *, all_rows: bool) -> None:
    spreads = spread_rows(summary.metrics) if all_rows else []
    if spreads:
        asked = max(spread.n_repeats for _, spread in spreads)
        console.print(Text("\nJudge", style="bold").append(f" (asked {asked} times)", style="not bold"))
    for row, spread in spreads:
        spread_text = describe_spread(spread, infos[row.metric].unit)
        print_line("  " + printable_line(f"{row.metric}: {spread_text}"), console)
    panels = {row.metric: row.panel for row in summary.metrics if row.panel is not None and all_rows}
    if panels:
        _print_panels(panels, console)
    spent = describe_spending(summary)
    if spent:
        print_line(printable_line("spent: " + "; ".join(f"{who}: {words}" for who, words in spent)), console, "dim")


def _print_panels(panels: Mapping[str, PanelSummary], console: Terminal) -> None:
    from agentunit.reports.raters import describe_panel

    for metric, panel in panels.items():
        first, *lines = describe_panel(panel)
        console.print(Text("\nPanel of ", style="bold").append(printable_line(f"{metric}: {first}"), style="not bold"))
        for line in lines:
            print_line(f"  {printable_line(line)}", console)


def _print_unscored(entries: list[Unscored], console: Terminal, *, all_rows: bool, doctor: str) -> None:
    """What was not scored, and why: errors always, what is missing in one line unless everything is asked for."""
    # Several metrics often miss the same input: one line says it for all of them.
    shared: dict[tuple[str, str, int, tuple[str, ...]], list[Unscored]] = {}
    for entry in entries:
        key = (entry.status, entry.reason, entry.n_records, tuple(entry.first_cases))
        shared.setdefault(key, []).append(entry)
    ordered = sorted(shared.items(), key=lambda pair: (pair[0][0] != "error", -pair[0][2]))
    if all_rows:
        n_missing = 0
    else:
        # What is missing is no fault of the run; errors, and a simulated user that failed, are.
        faults = [pair for pair in ordered if pair[0][0] == "error" or pair[0][1].startswith(USER_FAILED)]
        n_missing = len(ordered) - len(faults)
        ordered = faults
    if ordered:
        console.print("\nNot scored", style="bold")
    for (status, reason, n_records, _), group in ordered[:_REASONS_SHOWN]:
        named = printable_line(", ".join(group[0].first_cases[:_CASES_NAMED]))
        more = ", …" if group[0].n_cases > _CASES_NAMED else ""
        metrics = printable_line(", ".join(entry.metric for entry in group))
        line = Text("  ")
        if status == "error":
            line.append("error ", style="red")
        line.append(f"{metrics}: {n_records} × {printable_line(reason)} ").append(f"({named}{more})", style="dim")
        console.print(line, soft_wrap=True)
    if len(ordered) > _REASONS_SHOWN:
        console.print(
            f"  … and {counted(len(ordered) - _REASONS_SHOWN, 'more reason')} (--json lists them)", style="dim"
        )
    if n_missing:
        how = f"'{doctor}' says what to record" if doctor else "--why lists them"
        console.print(f"not scored: {counted(n_missing, 'kind')} of missing input ({how})", style="dim")


def _print_input_errors(summary: RunSummary, console: Terminal) -> None:
    print_errors_heading(summary.n_input_errors, console)
    # A file of another format has the same reason on every line: it is printed once.
    alike: dict[tuple[str, str], list[InputError]] = {}
    for error in summary.input_errors:
        alike.setdefault((error.source, error.reason), []).append(error)
    for group in list(alike.values())[:_ERRORS_SHOWN]:
        more = f" (and {counted(len(group) - 1, 'more line')} like it)" if len(group) > 1 else ""
        print_line(f"  {error_line(group[0])}{more}", console)
    if len(alike) > _ERRORS_SHOWN or summary.n_input_errors > len(summary.input_errors):
        console.print("  … --errors FILE lists them all", style="dim")


def print_errors_heading(n_errors: int, console: Terminal) -> None:
    """The heading of what could not be read."""
    parts = counted(n_errors, "part")
    line = Text().append("\nErrors", style="bold red")
    console.print(line.append(f": {parts} of the input could not be read"))


def error_line(error: InputError) -> str:
    """An input error as one printable line, masked: control characters of a hostile file do not reach the terminal."""
    from agentunit.reports.reported_run import masked_error

    return printable_line(str(masked_error(error)))
