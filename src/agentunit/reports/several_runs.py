"""Several runs against one baseline, as every report shows them: metrics by runs, cases by runs, each decision."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agentunit.engine.deciding.comparison import CaseStanding, Comparison, MetricComparison
from agentunit.engine.deciding.decision import Decision
from agentunit.reports.console import ROWS_SHOWN, plain_table, print_line, print_next
from agentunit.reports.decision_console import print_known_failures, print_sentence
from agentunit.reports.figures import counted, counted_cases, describe_mean
from agentunit.reports.printable import printable_line
from agentunit.reports.raters import describe_pairwise
from agentunit.reports.run_facts import describe_scores
from agentunit.reports.terminal import Terminal, Text

NOT_THERE = "not in this run"
_LOSSES = ("broken", "newly flaky", "newly failing", "lost", "worse")
_KIND_STYLE = {
    **dict.fromkeys(("broken", "newly failing"), "bold red"),
    **dict.fromkeys(("fails", "still failing"), "red"),
    **dict.fromkeys(("newly flaky", "flaky", "lost", "worse"), "yellow"),
    **dict.fromkeys(("fixed", "better"), "green"),
}


@dataclass(frozen=True)
class CaseByRuns:
    """One case in all runs: how it stood in the baseline, what became of it in each run, and its scores there."""

    case_id: str
    baseline: str
    runs: tuple[str, ...]
    scores: tuple[str, ...]
    is_changed: bool


def describe_several(labels: Iterable[str], baseline: str) -> str:
    """The title of a report on several runs.

    >>> describe_several(["a", "b"], "main")
    'a, b against main'
    """
    return f"{', '.join(labels)} against {baseline}"


def metrics_by_runs(comparisons: Sequence[Comparison]) -> list[tuple[str, list[str]]]:
    """A row a metric: its mean in the baseline, then in each run, with the verdict or ``i`` where it does not count.

    A run is held against the cases that both have a score of. The mean of the baseline is that over the most of them;
    a run with fewer says over how many, and what the baseline has there.
    """
    found: dict[str, dict[int, MetricComparison]] = {}
    for place, comparison in enumerate(comparisons):
        for label, each in zip(comparison.labels, comparison.metrics, strict=True):
            if each.verdict != "not compared" or each.gated:
                found.setdefault(label, {})[place] = each
    rows = []
    for label, by_run in found.items():
        fullest = max(by_run.values(), key=lambda each: each.n_pairs)
        base = describe_mean(fullest.baseline_mean, fullest.unit)
        row = [base, *["–"] * len(comparisons)]
        for place, each in by_run.items():
            own = describe_mean(each.baseline_mean, each.unit)
            fewer = "" if own in (base, "–") else f" (from {own}, {counted_cases(each.n_pairs)})"
            verdict = each.verdict if each.gated else "i"
            row[place + 1] = f"{describe_mean(each.candidate_mean, each.unit)} {verdict}{fewer}"
        rows.append((label, row))
    return rows


def cases_by_runs(comparisons: Sequence[Comparison]) -> list[CaseByRuns]:
    """A row a case that the baseline shares with a run: those that fail or got worse in most runs first."""
    scores = [{each.case_id: describe_scores(each) for each in comparison.differences} for comparison in comparisons]
    rows = []
    for case_id in dict.fromkeys(case_id for comparison in comparisons for case_id in comparison.cases):
        standings = [comparison.cases.get(case_id) for comparison in comparisons]
        before = {each.ok_before for each in standings if each is not None} - {None}
        rows.append(
            CaseByRuns(
                case_id,
                "–" if not before else "ok" if before == {True} else "fails",
                tuple(map(_describe_standing, standings)),
                tuple(of_run.get(case_id, "") for of_run in scores),
                any(each is not None and each.kind not in ("unchanged", "other answer") for each in standings),
            )
        )
    return sorted(rows, key=lambda row: (-sum(word in _LOSSES for word in row.runs), not row.is_changed))


def _describe_standing(standing: CaseStanding | None) -> str:
    if standing is None:
        return NOT_THERE
    if standing.kind not in ("unchanged", "other answer"):
        return standing.kind
    another = standing.kind == "other answer"
    if standing.ok_now is None:
        return "another answer" if another else "unchanged"
    return f"{'ok' if standing.ok_now else 'fails'}{', another answer' if another else ''}"


def print_several(
    decisions: Sequence[Decision],
    labels: Sequence[str],
    baseline: str,
    console: Terminal,
    *next_steps: str,
    all_rows: bool = False,
    as_verdicts: bool = True,
) -> None:
    """Print comparisons of runs of these labels with one baseline; ten cases unless ``all_rows``.

    Without ``as_verdicts`` each line says what was found, and leaves it to another to say whether that passes.
    """
    compared = [each.comparison for each in decisions if each.comparison is not None]
    runs = [printable_line(label, 30) for label in labels]
    base = printable_line(baseline, 30)
    table = plain_table("metric", base, *runs)
    for label, cells in metrics_by_runs(compared):
        table.add_row(*(Text(printable_line(cell)) for cell in (label, *cells)))
    console.print(Text(f"\nEach against {printable_line(baseline)}", style="bold"))
    console.print(table)
    changed = [row for row in cases_by_runs(compared) if row.is_changed]
    if changed:
        cases = plain_table("case", base, *runs)
        for row in changed if all_rows else changed[:ROWS_SHOWN]:
            words = (Text(word, style=_KIND_STYLE.get(word, "")) for word in (row.baseline, *row.runs))
            cases.add_row(Text(printable_line(row.case_id, 40)), *words)
        console.print("\nCases that changed", style="bold")
        console.print(cases)
        if len(changed) > ROWS_SHOWN and not all_rows:
            left_out = counted(len(changed) - ROWS_SHOWN, "more case")
            console.print(f"… and {left_out} (--why shows them)", style="dim")
    print_known_failures(decisions, console)
    for run, decision in zip(runs, decisions, strict=True):
        said = decision.headline if as_verdicts else decision.said
        print_sentence(decision, f"{run}: {said}", console)
        if decision.comparison is not None and decision.comparison.note:
            print_line(printable_line(decision.comparison.note), console, "yellow")
        if decision.comparison is not None and decision.comparison.pairwise is not None:
            for line in describe_pairwise(decision.comparison.pairwise):
                print_line(f"  {printable_line(line, 400)}", console)
    ways_out = [decision.way_out for decision in decisions if decision.way_out]
    print_next([*ways_out, *next_steps], console)
