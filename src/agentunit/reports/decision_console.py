"""Gates, comparisons and the decision in the terminal: on which numbers, and why."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from agentunit.core.results import RunFinding
from agentunit.engine.deciding.comparison import LISTED_KINDS, MOST_LISTED, Comparison
from agentunit.engine.deciding.decision import Decision, named_cases
from agentunit.engine.deciding.gate_expressions import GateVerdict
from agentunit.reports.console import plain_table, print_block, print_line, print_next
from agentunit.reports.figures import (
    DIRECTION_MARK,
    GATE_WORDS,
    INTERVAL_HEADING,
    counted,
    describe_mean,
    with_interval,
)
from agentunit.reports.printable import printable_line, show_command
from agentunit.reports.raters import describe_pairwise
from agentunit.reports.run_facts import (
    FAILING_HEADINGS,
    KIND_HEADINGS,
    WRONG,
    describe_answers,
    describe_change,
    describe_difference,
    describe_finding,
    describe_kinds,
    describe_known_failures,
    describe_pairs,
    describe_tested,
    describe_tool_changes,
    findings_by_case,
    findings_by_heading,
    lines_under,
)
from agentunit.reports.terminal import Terminal, Text

_CASES_SHOWN = 5
_CASES_LISTED = 10
_ANSWER_LENGTH = 200
_LINE_LENGTH = 400
_HEADING_STYLE = {
    **dict.fromkeys(FAILING_HEADINGS, "bold red"),
    **dict.fromkeys(("Newly flaky", "Lost", "Flaky", "Worse"), "bold yellow"),
    **dict.fromkeys(("Fixed", "Better"), "bold green"),
}
VERDICT_STYLE = {"pass": "bold green", "cannot tell": "bold yellow", None: "bold"}
_WORD_STYLE = {
    "met": "green",
    "FAIL": "bold red",
    "ERROR": "bold red",
    "regression": "bold red",
    "no worse": "green",
    "no loss shown": "green",
    "better": "green",
    "no change": "green",
    "cannot tell": "bold yellow",
    "not compared": "yellow",
    "shown only": "dim",
}


def print_verdict_block(
    decision: Decision,
    findings: Sequence[RunFinding],
    console: Terminal,
    *,
    beside: Sequence[str] = (),
    all_rows: bool | None = None,
) -> None:
    """What the screen of a run begins with: its verdict, what was decided ``beside`` it, and what is wrong with it."""
    sentence = [decision.headline, *lines_under(decision), *beside]
    style = VERDICT_STYLE.get(decision.verdict, "bold red")
    print_block([line for line in sentence if line], findings, console, style=style, all_rows=bool(all_rows))


def print_gates(decision: Decision, console: Terminal, *, all_rows: bool | None = True) -> None:
    """Print a row for each gate that is not met or has a note: what it compared, on how much, and why; or for all."""
    verdicts = decision.gates
    if not verdicts:
        return
    shown = [each for each in verdicts if all_rows or each.verdict != "pass" or each.note]
    n_met = sum(each.verdict == "pass" for each in verdicts)
    if aside := sum(each.state != "expired" for each in decision.known_failures):
        text = f"{counted(aside, 'known failure')} set aside: gates do not count them"
        console.print(text, style="dim")
    if not shown:
        console.print(f"gates: {n_met} of {len(verdicts)} met", style="dim")
        return
    table = plain_table("gate", INTERVAL_HEADING, "scored", "", "why", fixed=("scored", ""))
    for each in shown:
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
    console.print(f"\nGates ({n_met} of {len(verdicts)} met)", style="bold")
    console.print(table)


def print_findings(
    decision: Decision, console: Terminal, *, all_rows: bool | None = None, only: str | None = None
) -> None:
    """Print the cases that fail the run and those that are flaky, each with why; ten of a kind, unless ``all_rows``.

    ``only`` those under one heading.
    """
    most = MOST_LISTED if all_rows else _CASES_LISTED
    for heading, findings in findings_by_heading(decision).items():
        if only not in (None, heading):
            continue
        _print_heading(heading, len(findings), console)
        for finding in findings[:most]:
            _print_case(finding.case_id, describe_finding(finding, decision.comparison), console)
        _print_more(len(findings) - most, console, all_rows)


def print_comparison(decision: Decision, console: Terminal, *, all_rows: bool | None = None) -> None:
    """Print the cases that changed, what the metrics show, and why each verdict that counts is what it is.

    Ten cases of a kind, unless ``all_rows``; ``None`` where the command has no option for more.
    """
    comparison = decision.comparison
    if comparison is None:
        return
    runs = f"{printable_line(comparison.baseline_label)} → {printable_line(comparison.candidate_label)}"
    heading = Text("\nAgainst the baseline ", style="bold")
    console.print(heading.append(f"{runs}: {describe_pairs(comparison)}", style="not bold"), soft_wrap=True)
    if comparison.note:
        print_line(printable_line(comparison.note), console, "yellow")
    _print_differences(decision, comparison, console, all_rows)
    if comparison.metrics:
        console.print()
    if tested := describe_tested(comparison):
        console.print(Text(printable_line(tested), style="dim"), soft_wrap=True)
    table = plain_table("metric", "baseline", "now", "difference, 95 %", "p worse", "", fixed=("p worse", ""))
    names = [printable_line(label) for label in comparison.labels]
    shown = [each.gated or each.verdict != "not compared" for each in comparison.metrics]
    for name, each, is_shown in zip(names, comparison.metrics, shown, strict=True):
        if not is_shown:
            continue
        table.add_row(
            Text(f"{name}{DIRECTION_MARK[each.direction]}{'' if each.gated else ' i'}"),
            describe_mean(each.baseline_mean, each.unit),
            describe_mean(each.candidate_mean, each.unit),
            describe_difference(each),
            "–" if each.p_adjusted is None else f"{each.p_adjusted:.3f}" if each.p_adjusted >= 0.001 else "<0.001",
            Text(each.verdict, style=_WORD_STYLE[each.verdict]),
            style="" if each.gated else "dim",
        )
    if any(shown):
        console.print(table)
    if any(not each.gated and each.verdict != "not compared" for each in comparison.metrics):
        console.print("i  shown, not tested", style="dim")
    for name, each in zip(names, comparison.metrics, strict=True):
        # What did not change is said under the sentence. Only labels have a verdict of their own without being tested.
        is_news = each.verdict not in ("no loss shown", "no change")
        if each.reason and is_news and (each.gated or each.verdict != "shown only"):
            line = Text(f"  {name}: ", style="bold").append(printable_line(each.reason), style="not bold")
            console.print(line, soft_wrap=True)
    if comparison.pairwise is not None:
        console.print("\nBy a judge, pair by pair", style="bold")
        for said in describe_pairwise(comparison.pairwise):
            print_line(f"  {printable_line(said, 400)}", console)
    if comparison.tools:
        console.print("\nTools", style="bold")
    for change, tools in describe_tool_changes(comparison):
        line = Text(f"  {change}: ", style="bold").append(printable_line(tools), style="not bold")
        console.print(line, soft_wrap=True)


def print_verdict(
    decision: Decision,
    findings: Sequence[RunFinding],
    console: Terminal,
    *next_steps: str,
    all_rows: bool | None = None,
    all_gates: bool = False,
) -> None:
    """Print everything about a decision: what was decided and why, its gates, what was compared, the next commands."""
    print_verdict_block(decision, findings, console, all_rows=all_rows)
    print_details(decision, console, all_rows=all_rows, all_gates=all_gates)
    print_next([decision.way_out] if decision.way_out else next_steps, console)


def print_details(
    decision: Decision, console: Terminal, *, all_rows: bool | None = None, all_gates: bool = False
) -> None:
    """Print what a decision rests on: gates, the comparison, known failures; and every case where that is asked for."""
    print_gates(decision, console, all_rows=all_rows or all_gates)
    print_comparison(decision, console, all_rows=all_rows)
    if all_rows:
        # Beside a baseline, what a missed gate rests on may be no news.
        print_findings(decision, console, all_rows=True, only=None if decision.comparison is None else WRONG)
    print_known_failures([decision], console)


def print_sentence(decision: Decision, sentence: str, console: Terminal) -> None:
    """The sentence of a decision, and under it the line of statistics."""
    print_line(f"\n{printable_line(sentence, _LINE_LENGTH)}", console, VERDICT_STYLE.get(decision.verdict, "bold red"))
    for line in lines_under(decision):
        print_line(printable_line(line, _LINE_LENGTH), console, "dim")


def print_known_failures(decisions: Sequence[Decision], console: Terminal) -> None:
    """How the cases stand that are marked as known to fail; what is the same in several runs is said once."""
    lines = dict.fromkeys(line for decision in decisions for line in describe_known_failures(decision))
    if lines:
        console.print("\nKnown failures", style="bold")
    for line in lines:
        print_line(f"  {printable_line(line, 300)}", console)


def _gated_value(each: GateVerdict) -> str:
    if each.value is None:
        return "–"
    if each.gate.aggregate in ("all", "any"):
        return f"{round(each.value * each.n_scored)} of {each.n_scored}"
    return with_interval(each.value, each.low, each.high, each.unit)


def _print_differences(decision: Decision, comparison: Comparison, console: Terminal, all_rows: bool | None) -> None:
    """The cases that changed, by kind, each with why or its scores, and with its two answers."""
    most = MOST_LISTED if all_rows else _CASES_LISTED
    findings = findings_by_case(decision)
    kinds = describe_kinds(comparison)
    if kinds:
        print_line(kinds, console)
    for kind in LISTED_KINDS:
        listed = comparison.of_kind(kind)[:most]
        if not listed:
            continue
        _print_heading(KIND_HEADINGS[kind], comparison.n_by_kind[kind], console)
        if kind == "other answer":
            ids = ", ".join(printable_line(each.case_id, 40) for each in listed)
            console.print(Text(f"  {ids}"), soft_wrap=True)
        else:
            for each in listed:
                _print_case(each.case_id, describe_change(each, comparison, findings), console)
                for when, answer in describe_answers(each):
                    shown = printable_line(answer, _ANSWER_LENGTH)
                    console.print(Text(f"    {when}: ", style="dim").append(shown, style="not dim"), soft_wrap=True)
        _print_more(comparison.n_by_kind[kind] - len(listed), console, all_rows)


def _print_heading(heading: str, n_cases: int, console: Terminal) -> None:
    console.print(Text(f"\n{heading} ({n_cases:,})", style=_HEADING_STYLE.get(heading, "bold")))


def _print_case(case_id: str, text: str, console: Terminal) -> None:
    line = Text(f"  {printable_line(case_id, 40)}", style="bold")
    said = f"  {printable_line(text)}" if text else ""
    console.print(line.append(said, style="not bold"), soft_wrap=True)


def _print_more(n_more: int, console: Terminal, all_rows: bool | None) -> None:
    if n_more > 0:
        # Beyond what is kept in full, only the counts are known here; files of "export" name every case.
        how = "--json lists them" if all_rows is None else "export lists them" if all_rows else "--why shows them"
        console.print(f"  … and {n_more:,} more ({how})", style="dim")


def next_command(shown: str, decision: Decision) -> str:
    """How to look at a run, by its id or file, or at the case that matters most in it."""
    first = next(iter(decision.cases_to_see), None)
    return shlex.join(["agentunit", "show", shown]) if first is None else show_command(shown, first)
