"""A comparison in words that every report shares: which cases changed and how, what was tested, and by how much."""

from __future__ import annotations

from agentunit.engine.comparison import CaseAnswer, CaseDifference, CaseKind, Comparison, MetricComparison
from agentunit.reports.figures import counted, counted_cases, number

KIND_HEADINGS: dict[CaseKind, str] = {
    "newly failing": "Newly failing",
    "worse": "Worse",
    "fixed": "Fixed",
    "better": "Better",
    "other answer": "Another answer, same scores",
}
"""How reports call the kinds of cases that they list."""
_TOOLS_NAMED = 20
_CHANGED = {key: f"{key} changed" for key in ("schema", "version", "server", "server version")}


def describe_difference(each: MetricComparison) -> str:
    """The difference between two runs with its 95 % interval."""
    return "–" if each.difference is None else signed_interval(each.difference, each.low, each.high, each.unit)


def signed_interval(value: float, low: float | None, high: float | None, unit: str) -> str:
    """A difference with its interval.

    >>> signed_interval(-0.17, -0.3, 0.0, "score"), signed_interval(0.0, None, None, "score")
    ('-0.170 [-0.300, +0.000]', '+0.000')
    """
    if low is None or high is None:
        return _signed(value, unit)
    return f"{_signed(value, unit)} [{_signed(low, unit)}, {_signed(high, unit)}]"


def _signed(value: float, unit: str) -> str:
    # Two digits hide what matters here: a loss of 0.004 is not 0.00.
    if unit == "score":
        return f"{value:+.3f}"
    return f"{'-' if value < 0 else '+'}{number(abs(value), unit)}"


def describe_pairs(comparison: Comparison) -> str:
    """How many cases two runs share, and how many only one of them has."""
    alone = [
        f"{n:,} only in the {which}"
        for n, which in ((comparison.n_only_baseline, "baseline"), (comparison.n_only_candidate, "new run"))
        if n
    ]
    if comparison.n_set_aside:
        alone.append(f"{counted(comparison.n_set_aside, 'known failure')} set aside")
    return f"{counted_cases(comparison.n_paired)} in both{''.join(f', {each}' for each in alone)}"


def describe_kinds(comparison: Comparison) -> str:
    """How many cases of each kind there are, in one line; nothing where no case is in both runs.

    >>> counts = {"newly failing": 2, "fixed": 0, "unchanged": 7}
    >>> describe_kinds(Comparison("a", "b", 9, 0, 0, 0.05, (), n_by_kind=counts))
    '2 newly failing, 7 unchanged'
    """
    words = {"other answer": "with another answer and the same scores"}
    return ", ".join(f"{n:,} {words.get(kind, kind)}" for kind, n in comparison.n_by_kind.items() if n)


def describe_tested(comparison: Comparison) -> str:
    """Which metrics count, and why these; nothing where all that are shown do."""
    if not comparison.tested or all(each.gated for each in comparison.metrics):
        return ""
    why = {
        "gates": "the metrics with gates",
        "named": "as asked for",
        "all": "no gate says which matter: all but informational ones and clock time",
        "all beside gates": "no metric with a gate can be compared: all but informational ones and clock time",
    }[comparison.tested_by]
    return f"tested: {', '.join(comparison.tested)} ({why}); the others are described"


def describe_scores(difference: CaseDifference) -> str:
    """How the counted scores of a case changed.

    >>> from agentunit.engine.comparison import ScoreChange
    >>> describe_scores(CaseDifference("q1", "worse", (ScoreChange("m", 1.0, 0.5),)))
    'm 1.00 → 0.50'
    """
    return ", ".join(
        f"{each.metric} {number(each.baseline, each.unit)} → {number(each.candidate, each.unit)}"
        for each in difference.scores
    )


def describe_answers(difference: CaseDifference) -> list[tuple[str, str]]:
    """The two answers of a case, or the one that both runs gave; nothing where they are not known."""
    sides = (("before", difference.baseline), ("now", difference.candidate))
    texts = [(when, _answer_text(answer)) for when, answer in sides if answer is not None]
    if len(texts) == 2 and texts[0][1] == texts[1][1]:
        return [("same answer", texts[0][1])]
    return texts


def _answer_text(answer: CaseAnswer) -> str:
    if answer.error is not None:
        return f"the agent failed: {answer.error}"
    return "(no answer)" if answer.text is None else answer.text


def describe_tool_changes(comparison: Comparison) -> list[tuple[str, str]]:
    """How the tools of two runs differ: what changed, with the names of the tools and what is known about each."""
    by_kind: dict[str, list[str]] = {}
    for each in comparison.tools:
        if each.change == "called only now":
            known = f" ({each.candidate})"
        elif each.change == "no longer called":
            known = f" ({each.baseline} before)"
        else:
            known = "" if each.baseline is None else f" ({each.baseline} → {each.candidate})"
        by_kind.setdefault(_CHANGED.get(each.change, each.change), []).append(each.name + known)
    for names in by_kind.values():
        if len(names) > _TOOLS_NAMED:
            names[_TOOLS_NAMED:] = [f"and {len(names) - _TOOLS_NAMED} more"]
    return [(kind, ", ".join(names)) for kind, names in by_kind.items()]
