"""What a judge took and how steady it was, in words that every report shares."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum

from agentunit.core.results import JudgeSpend, JudgeSpread, MetricSummary, RunSummary
from agentunit.reports.figures import number, quantity

_MODELS_NAMED = 3


def spent_words(summary: RunSummary) -> list[tuple[str, str]]:
    """Who spent what, the agent first; nothing when no judge was asked."""
    if summary.judge is None:
        return []
    agent = [
        quantity(total, unit) + noun
        for metric, unit, noun in (("cost", "USD", ""), ("token_usage", "tokens", " tokens"))
        if (total := _total_of(summary.metrics, metric)) is not None
    ]
    told = [("agent", ", ".join(agent))] if agent else []
    return [*told, ("judge", judge_words(summary.judge))]


def judge_words(spend: JudgeSpend) -> str:
    """What a judge took over a run.

    >>> judge_words(JudgeSpend(["small"], 5, 1, 10, 2, 1200, 300, None, True))
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
    told = f"{', '.join(parts)} in {_counted(spend.n_calls, 'call')}" + (f" of {models}" if models else "")
    if spend.n_cached:
        told += f"; {_counted(spend.n_cached, 'reply', 'replies')} reused"
    if spend.n_failed:
        told += f"; {_counted(spend.n_failed, 'score')} failed"
    if spend.n_unstated:
        told += f"; {_counted(spend.n_unstated, 'call')} may have been billed unseen (broken off or unreadable)"
    return "; ".join([told, *spend.problems])


def spread_words(spread: JudgeSpread, unit: str = "score") -> str:
    """How much of the noise in a metric is the judge's.

    >>> spread_words(JudgeSpread(3, 0.05, None, 0.21, 0.04))
    "judge ± 0.05 on one answer, cases ± 0.21; 4 % of the variance of the mean is the judge's"
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
    told = ", ".join(parts)
    if spread.judge_share is None:
        return told
    share = spread.judge_share
    shown = "under 1" if 0 < share < 0.005 else f"{share:.0%}".removesuffix("%")
    return f"{told}; {shown} % of the variance of the mean is the judge's"


def spread_rows(rows: Sequence[MetricSummary]) -> list[tuple[MetricSummary, JudgeSpread]]:
    """The rows whose judge was asked several times."""
    return [(row, row.judge) for row in rows if row.judge is not None]


def _total_of(rows: Sequence[MetricSummary], metric: str) -> float | None:
    totals = [row.total for row in rows if row.metric == metric and row.total is not None and row.n_scored]
    return fsum(totals) if totals else None


def _counted(n: int, one: str, many: str | None = None) -> str:
    return f"{n:,} {one if n == 1 else many or one + 's'}"
