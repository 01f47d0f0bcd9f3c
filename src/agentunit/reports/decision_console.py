"""Gates, comparisons and the decision in the terminal: on which numbers, and why."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from agentunit.engine.case_differences import MOST_LISTED
from agentunit.engine.comparison import LISTED_KINDS, Comparison
from agentunit.engine.decision import Decision, named_cases
from agentunit.engine.gates import GateVerdict
from agentunit.reports.comparison_view import (
    KIND_HEADINGS,
    describe_answers,
    describe_difference,
    describe_kinds,
    describe_pairs,
    describe_scores,
    describe_tested,
    describe_tool_changes,
)
from agentunit.reports.console import ROWS_SHOWN, plain_table, print_line, print_next
from agentunit.reports.figures import (
    DIRECTION_MARK,
    GATE_WORDS,
    INTERVAL_HEADING,
    counted,
    describe_mean,
    with_interval,
)
from agentunit.reports.panel_view import describe_pairwise
from agentunit.reports.printable import printable_line
from agentunit.reports.run_facts import describe_known_failures

_CASES_SHOWN = 5
_CASES_LISTED = 10
_ANSWER_LENGTH = 200
_KIND_STYLE = {"newly failing": "bold red", "worse": "bold yellow", "fixed": "bold green", "better": "bold green"}
_KIND_STYLE["other answer"] = "bold"
VERDICT_STYLE = {"pass": "bold green", "cannot tell": "bold yellow", None: "bold"}
_WORD_STYLE = {
    "met": "green",
    "FAIL": "bold red",
    "ERROR": "bold red",
    "regression": "bold red",
    "no worse": "green",
    "better": "green",
    "no change": "green",
    "cannot tell": "bold yellow",
    "not compared": "yellow",
    "shown only": "dim",
}


def print_gates(decision: Decision, console: Console) -> None:
    """Print one row for each gate: the number it compared, how much was scored, whether it is met, and why."""
    verdicts = decision.gates
    if not verdicts:
        return
    table = plain_table("gate", INTERVAL_HEADING, "scored", "", "why", fixed=("scored", ""))
    # What is not met is shown whatever its place; of what is met, as many as there is room for.
    room = max(0, ROWS_SHOWN - sum(each.verdict != "pass" for each in verdicts))
    met = [each for each in verdicts if each.verdict == "pass"]
    for each in verdicts:
        if each.verdict == "pass" and each not in met[:room]:
            continue
        word = GATE_WORDS[each.verdict]
        why = Text(printable_line(each.reason))
        if each.verdict != "pass" and each.cases:
            why.append(f": {printable_line(named_cases(each.cases, _CASES_SHOWN))}", style="bold")
        if each.note:
            why.append(f" ({printable_line(each.note)})", style="dim")
        table.add_row(
            Text(printable_line(str(each.gate))),
            Text(_gated_value(each)),
            Text(f"{each.n_scored}/{each.n_expected}", style="" if each.n_scored == each.n_expected else "yellow"),
            Text(word, style=_WORD_STYLE[word]),
            why,
        )
    console.print("\n[bold]Gates[/bold]")
    console.print(table)
    if len(met) > room:
        console.print(f"… and {len(met) - room} more that are met (--json lists them)", style="dim", highlight=False)
    if aside := sum(each.state != "expired" for each in decision.known_failures):
        text = f"{counted(aside, 'known failure')} set aside: gates do not count them"
        console.print(text, style="dim", highlight=False)


def print_comparison(comparison: Comparison, console: Console, *, all_rows: bool | None = None) -> None:
    """Print the cases that changed, what the metrics show, and why each verdict that counts is what it is.

    Ten cases of a kind, unless ``all_rows``; ``None`` where the command has no option for more.
    """
    runs = f"{printable_line(comparison.baseline_label)} → {printable_line(comparison.candidate_label)}"
    heading = Text("\nAgainst the baseline ", style="bold")
    console.print(heading.append(f"{runs}: {describe_pairs(comparison)}", style="not bold"), soft_wrap=True)
    if comparison.note:
        print_line(printable_line(comparison.note), console, "yellow")
    _print_differences(comparison, console, all_rows)
    if comparison.sentence:
        console.print(Text(f"\n{printable_line(comparison.sentence)}", style="bold"), soft_wrap=True)
    if tested := describe_tested(comparison):
        console.print(Text(printable_line(tested), style="dim"), soft_wrap=True)
    table = plain_table("metric", "baseline", "now", "difference, 95 %", "p worse", "", fixed=("p worse", ""))
    names = [printable_line(label) for label in comparison.labels]
    for name, each in zip(names, comparison.metrics, strict=True):
        if each.verdict == "not compared" and not each.gated:
            continue
        table.add_row(
            Text(f"{name}{DIRECTION_MARK[each.direction]}{'' if each.gated else ' i'}"),
            describe_mean(each.baseline_mean, each.unit),
            describe_mean(each.candidate_mean, each.unit),
            describe_difference(each),
            "–" if each.p_adjusted is None else f"{each.p_adjusted:.3f}" if each.p_adjusted >= 0.001 else "<0.001",
            Text(each.verdict, style=_WORD_STYLE[each.verdict]),
            style=None if each.gated else "dim",
        )
    if table.row_count:
        console.print(table)
    if any(not each.gated and each.verdict != "not compared" for each in comparison.metrics):
        console.print("i  shown, not tested", style="dim")
    for name, each in zip(names, comparison.metrics, strict=True):
        # Only what people's labels say has a verdict of its own without being tested.
        if each.reason and (each.gated or each.verdict != "shown only"):
            line = Text(f"  {name}: ", style="bold").append(printable_line(each.reason), style="not bold")
            console.print(line, soft_wrap=True)
    if comparison.pairwise is not None:
        console.print("\n[bold]By a judge, pair by pair[/bold]")
        for said in describe_pairwise(comparison.pairwise):
            print_line(f"  {printable_line(said, 400)}", console)
    if comparison.tools:
        console.print("\n[bold]Tools[/bold]")
    for change, tools in describe_tool_changes(comparison):
        line = Text(f"  {change}: ", style="bold").append(printable_line(tools), style="not bold")
        console.print(line, soft_wrap=True)


def print_verdict(decision: Decision, console: Console, *next_steps: str, all_rows: bool | None = None) -> None:
    """Print everything about a decision: its gates, its comparison, what was decided, and the next commands."""
    print_gates(decision, console)
    if decision.comparison is not None:
        print_comparison(decision.comparison, console, all_rows=all_rows)
    print_decision(decision, console, *next_steps)


def print_decision(decision: Decision, console: Console, *next_steps: str) -> None:
    """The last lines: what was decided, and the next commands."""
    print_known_failures([decision], console)
    style = VERDICT_STYLE.get(decision.verdict, "bold red")
    line = printable_line(decision.headline)
    if decision.way_out is not None:
        print_line(f"\n{decision.way_out}", console)
    print_line(f"\n{line}", console, style)
    print_next(next_steps, console)


def print_known_failures(decisions: Sequence[Decision], console: Console) -> None:
    """How the cases stand that are marked as known to fail; what is the same in several runs is said once."""
    lines = dict.fromkeys(line for decision in decisions for line in describe_known_failures(decision))
    if lines:
        console.print("\n[bold]Known failures[/bold]")
    for line in lines:
        print_line(f"  {printable_line(line, 300)}", console)


def _gated_value(each: GateVerdict) -> str:
    if each.value is None:
        return "–"
    if each.gate.aggregate in ("all", "any"):
        return f"{round(each.value * each.n_scored)} of {each.n_scored}"
    return with_interval(each.value, each.low, each.high, each.unit)


def _print_differences(comparison: Comparison, console: Console, all_rows: bool | None) -> None:
    """The cases that changed, by kind, each with its scores and its two answers."""
    most = MOST_LISTED if all_rows else _CASES_LISTED
    kinds = describe_kinds(comparison)
    if kinds:
        print_line(kinds, console)
    for kind in LISTED_KINDS:
        listed = comparison.of_kind(kind)
        if not listed:
            continue
        console.print(Text(f"\n{KIND_HEADINGS[kind]} ({comparison.n_by_kind[kind]:,})", style=_KIND_STYLE[kind]))
        if kind == "other answer":
            ids = ", ".join(printable_line(each.case_id, 40) for each in listed[:most])
            console.print(Text(f"  {ids}"), soft_wrap=True)
        else:
            for each in listed[:most]:
                line = Text(f"  {printable_line(each.case_id, 40)}", style="bold")
                console.print(line.append(f"  {printable_line(describe_scores(each))}", style="not bold"))
                for when, answer in describe_answers(each):
                    shown = printable_line(answer, _ANSWER_LENGTH)
                    console.print(Text(f"    {when}: ", style="dim").append(shown, style="not dim"), soft_wrap=True)
        more = comparison.n_by_kind[kind] - len(listed[:most])
        if more > 0:
            # Beyond what is kept in full, only the counts are known here; files of "export" name every case.
            how = "--json lists them" if all_rows is None else "export lists them" if all_rows else "--all shows them"
            console.print(f"  … and {more:,} more ({how})", style="dim", highlight=False)
