"""Gates, comparisons and the decision in the terminal: on which numbers, and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from agentunit.engine.comparison import CaseChange, Comparison, MetricComparison
from agentunit.engine.decision import Decision, Reason, named_cases
from agentunit.engine.gates import GateVerdict
from agentunit.reports.figures import INTERVAL_HEADING, counted_cases, number, quantity, with_interval
from agentunit.reports.gate_words import GATE_WORDS
from agentunit.reports.printable import printable_line

_CASES_SHOWN = 5
_VERDICT_STYLE = {"pass": "bold green", "cannot tell": "bold yellow", None: "bold"}
_WORD_STYLE = {
    "met": "green",
    "FAIL": "bold red",
    "ERROR": "bold red",
    "regression": "bold red",
    "no worse": "green",
    "better": "green",
    "cannot tell": "bold yellow",
    "not compared": "yellow",
    "shown only": "dim",
}
_MARK = {"higher": "↑", "lower": "↓", "none": " "}


def print_gates(verdicts: Sequence[GateVerdict], console: Console) -> None:
    """Print one row for each gate: the number it compared, how much was scored, whether it is met, and why."""
    if not verdicts:
        return
    table = _table("gate", INTERVAL_HEADING, "scored", "", "why", narrow=("scored", ""))
    for each in verdicts:
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


def print_comparison(comparison: Comparison, console: Console, *, changed_cases: bool = True) -> None:
    """Print one row for each metric, why each gated verdict is what it is, and the cases that changed most."""
    runs = f"{printable_line(comparison.baseline)} → {printable_line(comparison.candidate)}"
    heading = Text("\nAgainst the baseline ", style="bold")
    console.print(heading.append(f"{runs}: {_spoken_pairs(comparison)}", style="not bold"), soft_wrap=True)
    if comparison.note:
        console.print(printable_line(comparison.note), style="yellow", markup=False, highlight=False, soft_wrap=True)
    table = _table("metric", "baseline", "now", "difference, 95 %", "p worse", "", narrow=("p worse", ""))
    names = [printable_line(label) for label in comparison.labels]
    for name, each in zip(names, comparison.metrics, strict=True):
        if each.verdict == "not compared" and not each.gated:
            continue
        table.add_row(
            Text(f"{name} {_MARK[each.direction]}{'' if each.gated else ' i'}"),
            _amount(each.baseline_mean, each.unit),
            _amount(each.candidate_mean, each.unit),
            difference_words(each),
            "–" if each.p_adjusted is None else f"{each.p_adjusted:.3f}" if each.p_adjusted >= 0.001 else "<0.001",
            Text(each.verdict, style=_WORD_STYLE[each.verdict]),
            style=None if each.gated else "dim",
        )
    if table.row_count:
        console.print(table)
    if any(not each.gated and each.verdict != "not compared" for each in comparison.metrics):
        console.print("i  shown, but not counted: informational, or neither way is better", style="dim")
    for name, each in zip(names, comparison.metrics, strict=True):
        if each.reason and (each.gated or each.verdict == "not compared"):
            line = Text(f"  {name}: ", style="bold").append(printable_line(each.reason), style="not bold")
            console.print(line, soft_wrap=True)
    if changed_cases:
        _print_changed_cases(zip(names, comparison.metrics, strict=True), console)


def print_decision(decision: Decision, next_step: str, console: Console) -> None:
    """The last lines: what was decided, and the next command."""
    style = _VERDICT_STYLE.get(decision.verdict, "bold red")
    line = printable_line(decision.headline)
    console.print(f"\n{line}", style=style, highlight=False, markup=False, soft_wrap=True)
    console.print(f"next: {next_step}", style="bold", highlight=False, markup=False, soft_wrap=True)


def reason_line(reason: Reason) -> str:
    """A reason in one line, with the first of the cases behind it.

    >>> reason_line(Reason("gate", 1, "cost max <= 1", "max 3 misses <= 1", ("q1",)))
    'cost max <= 1: max 3 misses <= 1 (q1)'
    """
    about = (
        "" if reason.kind in ("failed case", "failed score", "failed test", "test session") else f"{reason.subject}: "
    )
    cases = f" ({named_cases(reason.cases, _CASES_SHOWN)})" if reason.cases else ""
    return f"{about}{reason.text}{cases}"


def _gated_value(each: GateVerdict) -> str:
    if each.value is None:
        return "–"
    if each.gate.aggregate in ("all", "any"):
        return f"{round(each.value * each.n_scored)} of {each.n_scored}"
    return with_interval(each.value, each.low, each.high, each.unit)


def _spoken_pairs(comparison: Comparison) -> str:
    alone = [
        f"{n:,} only in the {which}"
        for n, which in ((comparison.n_only_baseline, "baseline"), (comparison.n_only_candidate, "new run"))
        if n
    ]
    return f"{counted_cases(comparison.n_paired)} in both{''.join(f', {each}' for each in alone)}"


def _amount(value: float | None, unit: str) -> str:
    return "–" if value is None else quantity(value, unit)


def difference_words(each: MetricComparison) -> str:
    """The difference between two runs with its 95 % interval."""
    if each.difference is None:
        return "–"
    # Two digits hide what matters here: a loss of 0.004 is not 0.00.
    digits = f"{each.difference:+.3f}" if each.unit == "score" else f"{_signed(each.difference, each.unit)}"
    if each.low is None or each.high is None:
        return digits
    ends = [f"{end:+.3f}" if each.unit == "score" else _signed(end, each.unit) for end in (each.low, each.high)]
    return f"{digits} [{', '.join(ends)}]"


def _signed(value: float, unit: str) -> str:
    return f"{'-' if value < 0 else '+'}{number(abs(value), unit)}"


def _print_changed_cases(named: Iterable[tuple[str, MetricComparison]], console: Console) -> None:
    lines = []
    for name, each in named:
        for words, changes in (("worse", each.got_worse), ("better", each.got_better)):
            if changes:
                told = ", ".join(_told_change(change, each.unit) for change in changes)
                words = words if each.direction != "none" else {"worse": "less", "better": "more"}[words]
                lines.append(Text(f"  {name} {words}: ", style="bold").append(told, style="not bold"))
    if lines:
        console.print("\n[bold]Changed most[/bold]")
    for line in lines:
        console.print(line, soft_wrap=True)


def _told_change(change: CaseChange, unit: str) -> str:
    return f"{printable_line(change.case_id, 40)} ({number(change.baseline, unit)} → {number(change.candidate, unit)})"


def _table(*headings: str, narrow: Sequence[str] = ()) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), collapse_padding=True, header_style="bold")
    for heading in headings:
        table.add_column(heading, no_wrap=heading in narrow)
    return table
