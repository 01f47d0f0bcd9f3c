"""Figures and phrases that every report shares: scores, dollars, tokens and seconds, gates, judges, differences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import fsum
from typing import NamedTuple

from agentunit.core.results import (
    AmountSummary,
    JudgeSpend,
    JudgeSpread,
    MetricSummary,
    RunSummary,
    Unscored,
)
from agentunit.engine.deciding.decision import Reason, named_cases
from agentunit.engine.deciding.gate_expressions import GateVerdict
from agentunit.engine.scoring.scored_run import ScoredRun
from agentunit.formulas.text import number, shown_share
from agentunit.metrics.base import MetricInfo

INTERVAL_HEADING = "value, 95 %"
"""Over every column of values with their intervals."""
DIRECTION_MARK = {"higher": " ↑", "lower": " ↓", "none": ""}
"""After the name of a metric: which way is better."""
GATE_WORDS = {"pass": "met", "fail": "FAIL", "error": "ERROR", "cannot tell": "cannot tell"}
"""Of one gate. A gate that is met is not a run that passes: its decision says that."""
CASE_REASONS = ("broken", "wrong", "newly failing")
"""The kinds of reasons that are about cases, which reports list with why."""
_PREFIXES = (("m", 1e3), ("µ", 1e6), ("n", 1e9))
_MODELS_NAMED = 3
_CASES_NAMED = 5


class MetricCells(NamedTuple):
    """A metric's row of a table, as plain text; ``mark`` follows its name."""

    mark: str
    value: str
    scored: str
    backend: str
    trust: str


def informational_notes(rows: Iterable[MetricSummary]) -> list[str]:
    """For each kind of informational score in a table, one line: what it is worth, or why only some scores are.

    >>> row = MetricSummary("faithfulness", "lexical", "2", "informational", 4, 4, trust="weak, AUROC 0.50")
    >>> informational_notes([row])
    ['faithfulness by lexical is informational (weak, AUROC 0.50): not a basis for decisions']
    >>> other = MetricSummary("faithfulness", "local", "2", "informational", 4, 1, informational="the text is in 'de'")
    >>> informational_notes([MetricSummary("faithfulness", "local", "2", "ok", 4, 3), other])
    ["1 of 4 scores of faithfulness by local is informational: the text is in 'de'; gates leave it out"]
    """
    shown = list(rows)
    ordinary = {(row.metric, row.backend): row.n_scored for row in shown if row.status == "ok"}
    alike: dict[tuple[str, str | None, str, int, int], list[str]] = {}
    for row in shown:
        if row.status == "informational":
            n_others = ordinary.get((row.metric, row.backend), 0)
            trust = row.trust or "unmeasured"
            kind = (row.backend, row.informational, "" if row.informational else trust, row.n_scored, n_others)
            # What all scores of a backend are worth does not depend on how many they are.
            alike.setdefault(kind if row.informational else (*kind[:3], 0, 0), []).append(row.metric)
    return [_informational_note(*kind, names) for kind, names in alike.items()]


def _informational_note(
    backend: str, why: str | None, trust: str, n_informational: int, n_others: int, names: Sequence[str]
) -> str:
    if why is None:
        are = "is" if len(names) == 1 else "are"
        return f"{', '.join(names)} by {backend} {are} informational ({trust}): not a basis for decisions"
    is_one = n_informational == 1
    of_all = f" of {n_informational + n_others:,}" if n_others else ""
    scores = f"{n_informational:,}{of_all} {'score' if is_one and not n_others else 'scores'}"
    so_what = f"gates leave {'it' if is_one else 'them'} out" if n_others else "not a basis for decisions"
    return f"{scores} of {', '.join(names)} by {backend} {'is' if is_one else 'are'} informational: {why}; {so_what}"


def metric_cells(row: MetricSummary, info: MetricInfo) -> MetricCells:
    """The cells that every table of metrics shows."""
    return MetricCells(
        DIRECTION_MARK[better_direction(row, info)],
        describe_value(row, info.unit, info.direction),
        f"{row.n_scored}/{row.n_cases}",
        row.backend if row.n_scored else "–",
        row.trust or "–",
    )


def describe_value(row: MetricSummary, unit: str, direction: str = "higher") -> str:
    """The middle of a table row: the mean with its 95 % interval, a raw quantity with its tail, or the last balance.

    Next to a mean of degrees is the share of scores that reach their threshold, or pass it where lower is better.

    >>> row = MetricSummary("cost", "recorded", "1", "ok", 2, 2, mean=0.0123, low=0.01, high=0.0146, p95=0.02)
    >>> describe_value(row, "USD")
    '$0.0123 ± 0.0023, p95 0.0200'
    >>> support = MetricSummary("faithfulness", "local", "2", "ok", 9, 9, mean=0.59, mean_of="support")
    >>> support.share_low, support.cut = 1 / 3, (0.3, 0.44)
    >>> describe_value(support, "score"), describe_value(support, "score", "lower")
    ('0.59, 67% ≥ 0.30–0.44', '0.59, 33% > 0.30–0.44')
    >>> row.amount = AmountSummary("Wh", 0.52, 0.5, 0.54, 0.61, 1.04, True)
    >>> describe_value(row, "score")
    '0.52 ± 0.02 Wh, p95 0.61'
    """
    if row.mean is None:
        return "–"
    if row.amount is not None:
        return _describe_amount(row.amount)
    if row.aggregate == "last":
        return f"{quantity(row.mean, unit)} at the end"
    value = with_interval(row.mean, row.low, row.high, unit)
    if row.share_low is not None and row.cut is not None:
        share, sign = (row.share_low, ">") if direction == "lower" else (1.0 - row.share_low, "≥")
        return f"{value}, {shown_share(share)} {sign} {describe_cut(row.cut)}"
    if unit == "score" or row.p95 is None:
        return value
    approximately = "" if row.exact_quantiles else "~"
    return f"{value}, p95 {approximately}{number(row.p95, unit)}"


def describe_cut(cut: tuple[float, float]) -> str:
    """The threshold of scores, or the lowest and the highest where they differ from case to case.

    >>> describe_cut((0.5, 0.5)), describe_cut((0.3, 0.44))
    ('0.5', '0.30–0.44')
    """
    low, high = cut
    return f"{low:.3g}" if f"{low:.3g}" == f"{high:.3g}" else f"{low:.2f}–{high:.2f}"


def threshold_notes(rows: Iterable[MetricSummary]) -> list[str]:
    """A line about the metrics whose scores name thresholds that differ from case to case; none where none do.

    >>> row = MetricSummary("faithfulness", "local", "6", "ok", 4, 4, mean=0.4, share_low=0.5, cut=(0.3, 0.44))
    >>> threshold_notes([row])
    ["faithfulness: each score is held against its own threshold, by the kind of answer ('show' names it)"]
    """
    names = dict.fromkeys(row.metric for row in rows if row.cut is not None and row.cut[0] < row.cut[1])
    which = "each score is held against its own threshold, by the kind of answer ('show' names it)"
    return [f"{', '.join(names)}: {which}"] if names else []


def n_to_look_at(row: MetricSummary) -> int:
    """How many cases are worth a look: all that could be better, of a model's degrees those that are low."""
    return row.n_below_best if row.n_low_cases is None else min(row.n_below_best, row.n_low_cases)


def with_interval(value: float, low: float | None, high: float | None, unit: str) -> str:
    """A number with its interval.

    >>> with_interval(0.857, 0.487, 1.0, "score"), with_interval(3.0, 2.5, 3.5, "s"), with_interval(3.0, 0.0, 7.5, "s")
    ('0.86 [0.49, 1.00]', '3 s ± 0.5', '3 s [0, 7.5]')
    """
    return f"{quantity(value, unit)}{_interval(value, low, high, unit)}"


def counted(n: int, one: str, many: str | None = None) -> str:
    """A count with its noun.

    >>> counted(1, "label"), counted(1200, "row"), counted(2, "reply", "replies")
    ('1 label', '1,200 rows', '2 replies')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def counted_cases(n_cases: int, n_repeats: int = 1, n_records: int | None = None) -> str:
    """How large a run is, in cases and repeats.

    >>> counted_cases(66, 3, 198), counted_cases(66, 3, 150), counted_cases(1)
    ('66 cases × 3 repeats', '66 cases, up to 3 repeats (150 records)', '1 case')
    """
    cases = counted(n_cases, "case")
    if n_repeats <= 1:
        return cases
    uneven = n_records is not None and n_records != n_cases * n_repeats
    return f"{cases}, up to {n_repeats} repeats ({n_records:,} records)" if uneven else f"{cases} × {n_repeats} repeats"


def describe_clusters(summary: RunSummary) -> str | None:
    """The line under a table whose intervals are over clusters."""
    if summary.clustered_by is None:
        return None
    return f"intervals are over {summary.n_clusters or 0:,} clusters of {summary.clustered_by}, not over cases"


def describe_failed(run: ScoredRun) -> str:
    """On how much of a run the agent failed."""
    n_cases = len({record.position for record in run.records if record.failed})
    if run.n_repeats > 1:
        return f"in {run.n_failed:,} of {run.n_records:,} records, on {n_cases:,} of {counted_cases(run.n_cases)}"
    return f"on {run.n_failed:,} of {counted_cases(run.n_cases)}"


def better_direction(row: MetricSummary, info: MetricInfo) -> str:
    """Which way the shown value is better: an amount in place of its score is better when it is smaller."""
    return "lower" if row.amount is not None else info.direction


def quantity(value: float, unit: str) -> str:
    """One number in its unit.

    >>> quantity(0.8567, "score"), quantity(0.0032, "USD"), quantity(15234.0, "tokens"), quantity(1.25, "s")
    ('0.86', '$0.0032', '15,234', '1.25 s')
    """
    if unit == "score":
        return f"{value:.2f}"
    if unit == "USD":
        return f"${number(value, unit)}"
    if unit == "tokens":
        return number(value, unit)
    return f"{number(value, unit)} {unit}"


def duration(seconds: float) -> str:
    """A span of time as one says it.

    >>> duration(0.42), duration(75), duration(7300), duration(0.0123), duration(0.0)
    ('0.4 s', '1 min 15 s', '2 h 1 min', '12 ms', 'less than 1 ms')
    """
    if seconds < 0.0005:
        return "less than 1 ms"
    if seconds < 0.0995:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    if seconds < 3600:
        return f"{int(seconds // 60)} min {int(seconds % 60)} s"
    return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60)} min"


def _describe_amount(amount: AmountSummary) -> str:
    # From a tenth of the unit on it is left alone: 0.52 Wh reads better than 520 mWh.
    prefix, factor = "", 1.0
    if 0 < amount.mean < 0.1:
        prefix, factor = next((pair for pair in _PREFIXES if amount.mean * pair[1] >= 1), _PREFIXES[-1])
    unit = prefix + amount.unit
    mean = amount.mean * factor
    low, high = (None if end is None else end * factor for end in (amount.low, amount.high))
    approximately = "" if amount.exact_quantiles else "~"
    p95 = number(amount.p95 * factor, unit)
    return f"{number(mean, unit)}{_interval(mean, low, high, unit)} {unit}, p95 {approximately}{p95}"


def _interval(value: float, low: float | None, high: float | None, unit: str) -> str:
    if low is None or high is None:
        return ""
    margin = max(high - value, value - low)
    # A score has a range: near its end, and for shares anywhere, the interval is lopsided, and no "±" is true. Nor is
    # one that would reach below zero where nothing does.
    if unit == "score" or value - margin < 0.0 <= low:
        return f" [{number(low, unit)}, {number(high, unit)}]"
    return f" ± {number(margin, unit)}"


def errors_first(entries: Iterable[Unscored]) -> list[Unscored]:
    """What was not scored: errors first, then what concerns most cases."""
    return sorted(entries, key=lambda entry: (entry.status != "error", -entry.n_cases))


def describe_unscored(entry: Unscored) -> str:
    """What was not scored, on how much, and why."""
    return f"{entry.metric} not scored on {counted_cases(entry.n_cases)}: {entry.reason}"


def aligned(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """The lines of a table.

    >>> list(aligned([("metric", "value"), ("cost", "$2")]))
    ['metric  value', 'cost    $2']
    """
    listed = list(rows)
    widths = [max(map(len, column)) for column in zip(*listed, strict=True)]
    for row in listed:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def gate_rule(verdict: GateVerdict) -> str:
    """The expression without its metric: what stands beside the metric in a table."""
    return str(verdict.gate).removeprefix(verdict.gate.metric).strip()


def is_about(verdict: GateVerdict, metric: str, backend: str) -> bool:
    """Whether a gate looks at these scores: one on a named backend looks at that backend's only."""
    return verdict.gate.metric == metric and verdict.gate.backend in (None, backend)


def gates_of_row(
    verdicts: Iterable[GateVerdict], row: MetricSummary, rows: Iterable[MetricSummary]
) -> list[GateVerdict]:
    """The gates that stand beside a row of a table: at informational scores only those that have no others."""
    ordinary = [each.backend for each in rows if each.metric == row.metric and each.status == "ok"]
    return [
        verdict
        for verdict in verdicts
        if is_about(verdict, row.metric, row.backend)
        and not (row.status == "informational" and any(is_about(verdict, row.metric, each) for each in ordinary))
    ]


def describe_spending(summary: RunSummary) -> list[tuple[str, str]]:
    """Who spent what, the agent first, and what a solved case cost; nothing when neither that nor a judge is known."""
    solved = _each_solved(summary.metrics)
    if summary.judge is None and solved is None and summary.simulated_user is None:
        return []
    agent = [
        quantity(total, unit) + noun
        for metric, unit, noun in (("cost", "USD", ""), ("token_usage", "tokens", " tokens"))
        if (total := _total_of(summary.metrics, metric)) is not None
    ]
    by_agent = [("agent", ", ".join(agent))] if agent else []
    by_judge = [] if summary.judge is None else [("judge", describe_judge_spend(summary.judge))]
    played = summary.simulated_user
    by_user = [] if played is None else [("simulated user", describe_judge_spend(played, gives_verdicts=False))]
    return [*by_agent, *by_user, *by_judge, *([] if solved is None else [("agent for each solved case", solved)])]


def _each_solved(rows: Sequence[MetricSummary]) -> str | None:
    """What was spent for each case that succeeded; known only where every case has a cost and a verdict.

    >>> cost = MetricSummary("cost", "recorded", "1", "ok", 4, 4, mean=0.03)
    >>> success = MetricSummary("task_success", "outcome", "1", "ok", 4, 4, mean=0.75)
    >>> _each_solved([cost, success]), _each_solved([cost])
    ('$0.0400 (3 of 4 solved)', None)
    """
    named = {name: [row for row in rows if row.metric == name] for name in ("cost", "task_success")}
    if any(len(found) != 1 or found[0].n_scored != found[0].n_cases or not found[0].mean for found in named.values()):
        return None
    [cost], [success] = named.values()
    passed = (success.mean or 0.0) * success.n_scored
    n_solved = round(passed)
    if cost.n_scored != success.n_scored or not n_solved or abs(passed - n_solved) > 1e-6:
        return None
    total = (cost.mean or 0.0) * cost.n_scored
    return f"{quantity(total / n_solved, 'USD')} ({n_solved:,} of {success.n_scored:,} solved)"


def describe_judge_spend(spend: JudgeSpend, *, gives_verdicts: bool = True) -> str:
    """What a judge cost over a run; one that plays users gives no verdicts.

    >>> describe_judge_spend(JudgeSpend(["small"], 5, 1, 10, 2, 1200, 300, None, True))
    'price unknown, 1,500 tokens in 10 calls of small; 2 replies reused; 1 score failed'
    """
    at_least = "at least " if spend.partial else ""
    # "At least nothing" says nothing: of the calls that cost something no price is known.
    has_price = spend.cost_usd is not None and not (spend.partial and spend.cost_usd == 0)
    parts = [at_least + quantity(spend.cost_usd or 0.0, "USD") if has_price else "price unknown"]
    if spend.prompt_tokens is not None or spend.completion_tokens is not None:
        tokens = (spend.prompt_tokens or 0) + (spend.completion_tokens or 0)
        parts.append(f"{at_least if has_price else ''}{quantity(tokens, 'tokens')} tokens")
    models = ", ".join(spend.models[:_MODELS_NAMED]) + (", …" if len(spend.models) > _MODELS_NAMED else "")
    text = f"{', '.join(parts)} in {counted(spend.n_calls, 'call')}" + (f" of {models}" if models else "")
    if spend.n_cached:
        text += f"; {counted(spend.n_cached, 'reply', 'replies')} reused"
    if spend.n_failed:
        text += f"; {counted(spend.n_failed, 'score')} failed"
    if gives_verdicts and has_price and spend.n_calls and spend.n_scores:
        text += f"; {quantity((spend.cost_usd or 0.0) / spend.n_scores, 'USD')} a verdict"
    if spend.n_quotes:
        text += f"; quotes found {spend.n_quotes_found:,} of {spend.n_quotes:,}"
    if spend.n_suspected:
        text += f"; injection suspected in {counted(spend.n_suspected, 'score')}"
    if spend.n_unstated:
        text += f"; {counted(spend.n_unstated, 'call')} may have been billed unseen (broken off or unreadable)"
    return "; ".join([text, *spend.problems])


def describe_spread(spread: JudgeSpread, unit: str = "score") -> str:
    """How much of the noise in a metric is the judge's.

    >>> describe_spread(JudgeSpread(3, 0.05, None, 0.21, 0.04))
    "judge ± 0.05 on one answer, cases ± 0.21; 4% of the variance of the mean is the judge's"
    """
    parts = [
        f"{who} ± {number(sd, unit)}{where}"
        for who, sd, where in (
            ("judge", spread.judge_sd, " on one answer"),
            ("agent", spread.agent_sd, " from run to run of a case"),
            ("cases", spread.case_sd, ""),
        )
        if sd is not None
    ]
    text = ", ".join(parts)
    if spread.judge_share is None:
        return text
    return f"{text}; {shown_share(spread.judge_share)} of the variance of the mean is the judge's"


def spread_rows(rows: Sequence[MetricSummary]) -> list[tuple[MetricSummary, JudgeSpread]]:
    """The rows whose judge was asked several times."""
    return [(row, row.judge) for row in rows if row.judge is not None]


def _total_of(rows: Sequence[MetricSummary], metric: str) -> float | None:
    totals = [row.total for row in rows if row.metric == metric and row.total is not None and row.n_scored]
    return fsum(totals) if totals else None


def describe_reason(reason: Reason) -> str:
    """A reason in one line, with the first of the cases behind it.

    >>> describe_reason(Reason("gate", 1, "cost max <= 1", "max 3 misses <= 1", ("q1",)))
    'cost max <= 1: max 3 misses <= 1 (q1)'
    """
    if reason.run is not None:
        return f"{reason.run}: {describe_reason(replace(reason, run=None))}"
    if reason.kind in CASE_REASONS:
        return f"{reason.text}: {named_cases(reason.cases, _CASES_NAMED)}"
    is_whole = reason.kind in ("failed case", "failed score", "failed test", "test session", "simulated user")
    about = "" if is_whole else f"{reason.subject}: "
    cases = f" ({named_cases(reason.cases, _CASES_NAMED)})" if reason.cases else ""
    return f"{about}{reason.text}{cases}"


def describe_mean(value: float | None, unit: str) -> str:
    """A mean in its unit; a dash when it is unknown."""
    return "–" if value is None else quantity(value, unit)


def describe_range(info: MetricInfo) -> str:
    """The values a metric can take, in words.

    >>> describe_range(MetricInfo("cost", "operational", "", range=(0.0, None), unit="USD"))
    'USD, 0 or more'
    """
    low, high = info.range
    if low is None and high is None:
        return info.unit
    if high is None:
        return f"{info.unit}, {low:g} or more"
    return f"{low:g} to {high:g}" if low is not None else f"up to {high:g}"


def describe_values(info: MetricInfo) -> str:
    """The values a metric can take, which way is better, and what passes.

    >>> describe_values(MetricInfo("contains", "quality", "", "higher", (0.0, 1.0), check=True))
    '0 to 1; higher is better; a check: passes at 1.0'
    """
    better = "neither way" if info.direction == "none" else info.direction
    check = "; a check: passes at 1.0" if info.check else ""
    return f"{describe_range(info)}; {better} is better{check}"
