"""What a gate decided, in the words every report uses, and which cases it holds responsible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from agentunit.core.results import Score
from agentunit.engine.gate_expressions import parse_gate
from agentunit.engine.gates import DEFAULT_MIN_COVERAGE, GateVerdict, evaluate_gates, refuse_unknown_names
from agentunit.engine.scored_run import ScoredRun
from agentunit.metrics.base import MetricInfo
from agentunit.metrics.trust import trust_words
from agentunit.reports.figures import quantity

# A score that nobody can argue with: computed from the trace by a rule, or said by the agent itself.
_BEYOND_DISPUTE = ("exact", "recorded")


class Verdict(Protocol):
    """What reports need of a verdict: a ``GateVerdict``, or anything that has ``expression`` in place of a gate."""

    @property
    def verdict(self) -> str:
        """``pass``, ``fail``, or that the run cannot answer."""
        ...

    @property
    def reason(self) -> str:
        """Why."""
        ...


def verdicts_of(run: ScoredRun, gates: Sequence[str] | None = None) -> list[GateVerdict]:
    """What gates say about a run: those received, which must name what it has, else those it was made with."""
    settings = run.header.settings
    expressions = settings.get("gates") if gates is None else gates
    if not isinstance(expressions, (list, tuple)):
        return []
    coverage = settings.get("min_coverage")
    if not isinstance(coverage, (int, float)) or not 0 <= coverage <= 1:
        coverage = DEFAULT_MIN_COVERAGE
    if gates is not None:
        refuse_unknown_names(run, [parse_gate(each) for each in gates])
    return evaluate_gates(run, list(expressions), min_coverage=coverage)


def verdict_word(verdict: Verdict) -> str:
    """PASS, FAIL, or what else the gate says.

    >>> from types import SimpleNamespace
    >>> verdict_word(SimpleNamespace(verdict="cannot_tell"))
    'CANNOT TELL'
    """
    given = str(getattr(verdict.verdict, "value", verdict.verdict))
    return given.replace("_", " ").upper()


def gate_expression(verdict: Verdict) -> str:
    """The gate as one writes it."""
    expression = getattr(verdict, "expression", None)
    return str(getattr(verdict, "gate", "") if expression is None else expression)


def gated_metric(verdict: Verdict) -> str:
    """The metric a gate is about: the first word of its expression, unless the gate names it."""
    named = getattr(getattr(verdict, "gate", verdict), "metric", None)
    if isinstance(named, str) and named:
        return named
    words = gate_expression(verdict).split()
    return words[0] if words else ""


def gate_rule(verdict: Verdict) -> str:
    """The expression without its metric: what stands beside the metric in a table."""
    return gate_expression(verdict).removeprefix(gated_metric(verdict)).strip()


def is_about(verdict: Verdict, metric: str, backend: str) -> bool:
    """Whether a gate looks at these scores: one on a named backend looks at that backend's only."""
    wanted = getattr(getattr(verdict, "gate", None), "backend", None)
    return gated_metric(verdict) == metric and wanted in (None, backend)


def cases_to_look_at(verdict: Verdict) -> list[str]:
    """The cases a gate names, the worst first; for most gates only a few."""
    return [str(each) for each in getattr(verdict, "cases", None) or ()]


def broken_by(verdict: Verdict) -> list[str]:
    """Every case that breaks a failed gate by itself: only a gate on all values knows them all."""
    if verdict_word(verdict) != "FAIL" or getattr(getattr(verdict, "gate", None), "aggregate", "all") != "all":
        return []
    return cases_to_look_at(verdict)


def overall_word(verdicts: Sequence[Verdict]) -> str | None:
    """The word over all gates: FAIL as soon as one failed; ``None`` without gates."""
    words = [verdict_word(verdict) for verdict in verdicts]
    if not words or "FAIL" in words:
        return "FAIL" if words else None
    return next((word for word in words if word != "PASS"), "PASS")


def check_word(metric: str, score: Score, infos: Mapping[str, MetricInfo]) -> str | None:
    """``pass`` or ``fail`` for the best and the worst value of a score beyond dispute, ``None`` for anything else.

    A share of 0.4 neither passes nor fails: how much is enough is for a gate to say.
    """
    info = infos.get(metric)
    if info is None or score.result.value is None or score.status != "ok":
        return None
    if info.direction == "none" or trust_words(info, score.backend) not in _BEYOND_DISPUTE:
        return None
    low, high = info.range
    if low is None or high is None:
        return None
    worst, best = (low, high) if info.direction == "higher" else (high, low)
    return {worst: "fail", best: "pass"}.get(score.result.value)


def failed_checks(
    scores: Mapping[str, Score], infos: Mapping[str, MetricInfo], verdicts: Sequence[Verdict] = ()
) -> list[str]:
    """The checks one case fails, each in one line; where there are gates, only what they look at."""
    return [
        f"{metric} is {quantity(score.result.value or 0.0, infos[metric].unit)}"
        for metric, score in scores.items()
        if check_word(metric, score, infos) == "fail"
        and (not verdicts or any(is_about(verdict, metric, score.backend) for verdict in verdicts))
    ]
