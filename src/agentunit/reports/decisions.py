"""Gates and comparisons in the terminal: what was decided, on which numbers, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from agentunit.engine.comparison import CaseChange, Comparison, MetricComparison
from agentunit.engine.gates import GateVerdict
from agentunit.reports.figures import number, quantity
from agentunit.reports.printable import printable_line

_CASES_SHOWN = 5
_CASES_IN_LINE = 3
_WORD_STYLE = {
    "PASS": "green",
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
    """Print one row for each gate: the number it compared, how much was scored, PASS or FAIL, and why."""
    if not verdicts:
        return
    table = _table("gate", "value ± 95 %", "scored", "", "why", narrow=("scored", ""))
    for each in verdicts:
        word = each.verdict.upper()
        why = Text(printable_line(each.reason))
        if each.verdict != "pass" and each.cases:
            why.append(f": {named_cases(each.cases)}", style="bold")
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
    names = labels(comparison)
    for name, each in zip(names, comparison.metrics, strict=True):
        if each.verdict == "not compared" and not each.gated:
            continue
        table.add_row(
            Text(f"{name} {_MARK[each.direction]}{'' if each.gated else ' i'}"),
            _amount(each.baseline_mean, each.unit),
            _amount(each.candidate_mean, each.unit),
            _difference(each),
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


def labels(comparison: Comparison) -> list[str]:
    """How one names each metric of a comparison on the command line: with the backend where it has several."""
    times = Counter(each.metric for each in comparison.metrics)
    return [
        printable_line(f"{each.metric}[{each.backend}]" if times[each.metric] > 1 and each.backend else each.metric)
        for each in comparison.metrics
    ]


def named_cases(cases: Sequence[str], most: int = _CASES_SHOWN) -> str:
    """A few case ids, and how many more there are.

    >>> named_cases(["q1", "q2", "q3"], 2)
    'q1, q2 and 1 more'
    """
    shown = ", ".join(printable_line(case, 40) for case in cases[:most])
    return shown if len(cases) <= most else f"{shown} and {len(cases) - most} more"


def decision_line(
    code: int,
    verdicts: Sequence[GateVerdict],
    comparison: Comparison | None = None,
    *,
    n_errors: int = 0,
    max_errors: int = 0,
) -> str:
    """Everything in one sentence, for the last line of a command.

    >>> decision_line(3, [], n_errors=2)
    'ERRORS: failed cases and scores: 2, allowed: 0'
    """
    if code == 0:
        parts = [f"{len(verdicts)} {'gate' if len(verdicts) == 1 else 'gates'} met"] if verdicts else []
        if comparison is not None:
            parts.append(f"no worse than {comparison.baseline}")
        return f"PASS: {', '.join(parts) or 'nothing failed'}"
    parts = [_broken_gate(each) for each in verdicts if each.verdict != "pass"]
    if comparison is not None:
        named = dict(zip(map(id, comparison.metrics), labels(comparison), strict=True))
        parts += [f"{named[id(each)]} is worse than the baseline" for each in comparison.regressions]
        if code == 4:
            parts += [f"{named[id(each)]}: {each.reason}" for each in comparison.undecided] or [
                "no metric counts for the decision; --metrics names some"
            ]
    if n_errors > max_errors:
        parts.append(f"failed cases and scores: {n_errors}, allowed: {max_errors}")
    return f"{({1: 'FAIL', 3: 'ERRORS', 4: 'CANNOT TELL'})[code]}: {printable_line('; '.join(parts))}"


def case_to_show(verdicts: Iterable[GateVerdict], comparison: Comparison | None = None) -> str | None:
    """The case to look at first: one that breaks a gate, or the one that lost most."""
    for verdict in verdicts:
        if verdict.verdict != "pass" and verdict.cases:
            return verdict.cases[0]
    for each in comparison.regressions if comparison is not None else []:
        if each.got_worse:
            return each.got_worse[0].case_id
    return None


def _broken_gate(each: GateVerdict) -> str:
    cases = f" in {named_cases(each.cases, _CASES_IN_LINE)}" if each.cases else ""
    return f"{each.gate}{cases}"


def _gated_value(each: GateVerdict) -> str:
    if each.value is None:
        return "–"
    if each.gate.aggregate in ("all", "any"):
        return f"{round(each.value * each.n_scored)} of {each.n_scored}"
    value = quantity(each.value, each.unit)
    if each.low is None or each.high is None:
        return value
    # Intervals of shares and quantiles are lopsided; the wider side is the honest "±".
    return f"{value} ± {number(max(each.high - each.value, each.value - each.low), each.unit)}"


def _spoken_pairs(comparison: Comparison) -> str:
    cases = "1 case" if comparison.n_paired == 1 else f"{comparison.n_paired:,} cases"
    alone = [
        f"{n:,} only in the {which}"
        for n, which in ((comparison.n_only_baseline, "baseline"), (comparison.n_only_candidate, "new run"))
        if n
    ]
    return f"{cases} in both{''.join(f', {each}' for each in alone)}"


def _amount(value: float | None, unit: str) -> str:
    return "–" if value is None else quantity(value, unit)


def _difference(each: MetricComparison) -> str:
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
