"""Gates as expressions: what one says, and how its text is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import lru_cache
from math import isclose, isfinite
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Literal

from agentunit.core.said import Said
from agentunit.metrics.base import MetricInfo

DEFAULT_MIN_COVERAGE = 0.8
Verdict = Literal["pass", "fail", "error", "cannot tell"]

_COMPARE: dict[str, Callable[[float, float], bool]] = {">=": ge, "<=": le, ">": gt, "<": lt, "==": eq, "!=": ne}
_MEANT_OPERATOR = {"=>": ">=", "=<": "<=", "=": "==", "<>": "!=", "≥": ">=", "≤": "<=", "≠": "!=", "!": "!="}
_TURNED_ROUND = {">=": "<=", "<=": ">=", ">": "<", "<": ">"}
LABELED = "labeled"
"""The aggregate that asks people: the labeled rate."""
_NAMED_AGGREGATES = ("mean", "median", "min", "max", "sum", "all", "any", LABELED)
_MEANT_AGGREGATE = {"total": "sum", "avg": "mean", "average": "mean", "every": "all", "each": "all", "minimum": "min"}
_MEANT_AGGREGATE["maximum"] = "max"
_SHAPE = "METRIC [AGGREGATE] OPERATOR NUMBER [coverage SHARE], such as 'cost p95 <= 0.02'"
# Gates also come from files: nothing here is read twice, however long the text is.
_TOKEN = re.compile(r"([<>=!≥≤≠]+)|((?:[^\s<>=!≥≤≠\[]|\[[^\[\]]*\])+)|(\S)")
_MOST_TOKENS_MEANT = 16
_LONGEST_SHOWN = 200


class GateError(ValueError):
    """An expression that is no gate; the message names it, the place and the nearest right form."""


@dataclass(frozen=True)
class Gate:
    """One condition on a run. ``aggregate`` is one of mean, median, min, max, sum, all, any, pNN, pass^k, pass@k,
    labeled.

    The mean and pass^k, pass@k are over cases, the repeats of a case counting as one; all others are over every
    scored record. ``labeled`` is the rate that people would give, from their labels and the scores. ``backend`` picks
    one of several that scored the metric.
    """

    metric: str
    operator: str
    threshold: float
    aggregate: str = "mean"
    backend: str | None = None
    coverage: float | None = None

    def __str__(self) -> str:
        aggregate = "" if self.aggregate == "mean" else f" {self.aggregate}"
        coverage = "" if self.coverage is None else f" coverage {self.coverage:g}"
        return f"{self.subject}{aggregate} {self.condition}{coverage}"

    @property
    def condition(self) -> str:
        """The operator and the number."""
        whole = self.threshold.is_integer() and abs(self.threshold) < 1e15
        return f"{self.operator} {int(self.threshold) if whole else repr(self.threshold)}"

    @property
    def subject(self) -> str:
        """The metric, with the backend where one is named."""
        return self.metric if self.backend is None else f"{self.metric}[{self.backend}]"

    @property
    def repeats_needed(self) -> int:
        """How often each case must have been run for this gate to be answered."""
        return int(self.aggregate[5:]) if self.aggregate.startswith(("pass^", "pass@")) else 1

    def holds(self, value: float) -> bool:
        """Whether a value meets the threshold; one that differs from it by rounding alone counts as equal."""
        if isclose(value, self.threshold, rel_tol=1e-9, abs_tol=1e-12):
            return self.operator in (">=", "<=", "==")
        return _COMPARE[self.operator](value, self.threshold)


def nearest_name(name: str, known: Iterable[str]) -> str:
    """What someone may have meant who wrote a name that is not known.

    >>> nearest_name("exact_mach", ["cost", "exact_match"]), nearest_name("x", ["cost"]), nearest_name("x", [])
    ("did you mean 'exact_match'?", 'it has cost', 'it has none')
    """
    names = list(known)
    close = get_close_matches(name, names, n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else f"it has {', '.join(names) or 'none'}"


def stored_gates(settings: Mapping[str, Any]) -> list[Gate]:
    """The gates that a run was kept with; one that cannot be read is left to its decision to report."""
    stored = settings.get("gates")
    found = []
    for each in stored if isinstance(stored, (list, tuple)) else ():
        with suppress(GateError):
            found.append(parse_gate(each))
    return found


def parse_gate(text: str) -> Gate:
    """A gate from its expression: ``METRIC [AGGREGATE] OPERATOR NUMBER [coverage SHARE]``.

    >>> parse_gate("task_success[state] pass^3 >= 0.7 coverage 0.9")
    Gate(metric='task_success', operator='>=', threshold=0.7, aggregate='pass^3', backend='state', coverage=0.9)
    >>> parse_gate("cost p95 => 0.02")
    Traceback (most recent call last):
    agentunit.engine.deciding.gate_expressions.GateError: gate 'cost p95 => 0.02', at '=>' (column 10): the operator
    must be one of >= <= > < == !=; did you mean 'cost p95 >= 0.02'?
    """
    if not isinstance(text, str):
        raise GateError(f"gate: must be a text like 'faithfulness >= 0.8'; received {text!r:.80}")
    try:
        return _read(text)
    except GateError as error:
        meant = _nearest_right_form([token for token, _ in _tokens(text)])
        hint = f"did you mean {_shown(str(meant))}?" if meant else f"a gate reads {_SHAPE}"
        raise GateError(f"{error}; {hint}") from None


def _tokens(text: str) -> list[tuple[str, int]]:
    return [(match.group(match.lastindex or 0), match.start(match.lastindex or 0)) for match in _TOKEN.finditer(text)]


# A gate is asked for when its metric is chosen, when it is decided by and when it is shown.
@lru_cache(maxsize=256)
def _read(text: str) -> Gate:
    rest = _tokens(text)

    def wrong(token: tuple[str, int] | None, rule: str) -> GateError:
        place = "at the end" if token is None else f"at {_shown(token[0])} (column {token[1] + 1})"
        return GateError(f"gate {_shown(text)}, {place}: {rule}")

    def next_token() -> tuple[str, int] | None:
        return rest.pop(0) if rest else None

    first = next_token()
    named = first and re.fullmatch(r"([^\[\]]+)(?:\[([^\[\]]+)\])?", first[0])
    if first is None or not named or _is_operator(first[0]) or _number(first[0]) is not None:
        raise wrong(first, "it must begin with a metric's name, or METRIC[backend]")
    operator = next_token()
    aggregate = "mean"
    if operator is not None and not _is_operator(operator[0]):
        read = _aggregate(operator[0])
        if read is None:
            raise wrong(
                operator,
                "an aggregate (mean median min max sum all any labeled p95 pass^3 pass@3) or an operator must follow",
            )
        aggregate, operator = read, next_token()
    if operator is None or operator[0] not in _COMPARE:
        raise wrong(operator, f"the operator must be one of {' '.join(_COMPARE)}")
    number = next_token()
    threshold = None if number is None else _number(number[0])
    if threshold is None:
        raise wrong(number, "the threshold must be a finite number")
    coverage = None
    if (keyword := next_token()) is not None:
        if keyword[0] != "coverage":
            raise wrong(keyword, "only 'coverage SHARE' may follow the number")
        share = next_token()
        coverage = None if share is None else _number(share[0])
        if coverage is None or not 0.0 <= coverage <= 1.0:
            raise wrong(share, "the coverage must be a number from 0 to 1")
    if rest:
        raise wrong(rest[0], "nothing may follow here")
    return Gate(named[1], operator[0], threshold, aggregate, named[2], coverage)


def _shown(text: str) -> str:
    return repr(text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…")


def _is_operator(token: str) -> bool:
    return token[0] in "<>=!≥≤≠"


def _number(token: str) -> float | None:
    try:
        number = float(token)
    except ValueError:
        return None
    return number if isfinite(number) else None


def _aggregate(token: str) -> str | None:
    if token in _NAMED_AGGREGATES:
        return token
    if token == "total":
        return "sum"
    if match := re.fullmatch(r"p(\d+(?:\.\d+)?)", token):
        return token if 0.0 <= float(match[1]) <= 100.0 else None
    return token if re.fullmatch(r"pass[\^@][1-9]\d{0,8}", token) else None


def _nearest_right_form(tokens: Sequence[str]) -> Gate | None:
    """What someone may have meant who wrote an operator, an aggregate or a number another way, or in another order."""
    if len(tokens) > _MOST_TOKENS_MEANT:
        return None
    words: list[str] = []
    operators: list[tuple[str, bool]] = []
    numbers: list[float] = []
    aggregate, coverage = "mean", None
    for place, token in enumerate(tokens):
        number = _number(re.sub(r"^\$|s$|%$", "", token))
        meant = _aggregate(token.lower()) or _meant_aggregate(token.lower())
        if _is_operator(token):
            operators.append((_MEANT_OPERATOR.get(token, token), bool(numbers)))
        elif number is not None:
            number = number / 100.0 if token.endswith("%") else number
            if place and tokens[place - 1] == "coverage":
                coverage = number
            else:
                numbers.append(number)
        elif meant is not None:
            aggregate = meant
        elif token != "coverage":
            words.append(token)
    if len(words) != 1 or len(operators) != 1 or not numbers or operators[0][0] not in _COMPARE:
        return None
    operator, number_came_first = operators[0]
    if number_came_first:
        operator = _TURNED_ROUND.get(operator, operator)
    gate = Gate(words[0], operator, numbers[0], aggregate, coverage=coverage)
    try:
        return _read(str(gate))
    except GateError:
        return None


def _meant_aggregate(word: str) -> str | None:
    if match := re.fullmatch(r"(?:p|perc|percentile|q)?[-_]?(\d{1,2})(?:th|%ile)?", word):
        return f"p{match[1]}"
    if match := re.fullmatch(r"pass([\^@]|_at_|_hat_|-)?(\d+)", word):
        return f"pass{'@' if match[1] in ('@', '_at_') else '^'}{match[2]}"
    close = get_close_matches(word, [*_NAMED_AGGREGATES, *_MEANT_AGGREGATE], n=1, cutoff=0.8)
    return _MEANT_AGGREGATE.get(close[0], close[0]) if close else None


@dataclass(frozen=True)
class GateVerdict:
    """What became of a gate: "error" means that the run cannot answer it, "cannot tell" that its scores are no ground
    to decide by: all are informational, or they are of several backends, and the gate names none, or the evidence of a
    run until decided leaves it open.

    ``value`` is the number compared (for all and any: the share of values that meet the condition), ``low`` and
    ``high`` its 95 % interval where there is one. ``near`` says that the interval holds the threshold: another run
    could fall on the other side. ``n_scored`` of ``n_expected`` is the coverage, in records (for pass^k and pass@k
    in cases, those with k tries): those to which the metric does not apply are not expected. ``cases`` break the gate
    by themselves: by a check that fails, or as the least or the greatest value. A mean, a rate or a percentile speaks
    of the run and never of a case. ``note`` is a warning about the score, or about a gate that runs against the
    metric's direction.
    """

    gate: Gate
    verdict: Verdict
    reason: Said
    value: float | None = None
    low: float | None = None
    high: float | None = None
    near: bool = False
    n_scored: int = 0
    n_expected: int = 0
    backend: str | None = None
    unit: str = "score"
    cases: tuple[str, ...] = ()
    note: Said | None = None

    @property
    def coverage(self) -> float:
        """The share of what should have a score that has one."""
        return self.n_scored / self.n_expected if self.n_expected else 0.0


def refuse_impossible(gate: Gate, info: MetricInfo) -> None:
    """Raise where a metric's range is known and the threshold is outside of it: no value or every value would meet it.

    The end of a range is allowed: ``contains >= 0`` asks that there are scores.
    """
    low, high = info.range
    if gate.aggregate.startswith("pass"):
        low, high = 0.0, 1.0
    if low is None or high is None or gate.aggregate in ("sum", LABELED):
        return
    threshold = gate.threshold
    unreachable = (gate.operator == ">" and threshold == high) or (gate.operator == "<" and threshold == low)
    if low <= threshold <= high and not unreachable:
        return
    meant = None
    if unreachable:
        meant = replace(gate, operator=f"{gate.operator}=")
    elif (low, high) == (0.0, 1.0) and 1.0 < threshold <= 100.0:
        meant = replace(gate, threshold=threshold / 100.0)
    hint = f"; did you mean {str(meant)!r}?" if meant else ""
    subject = gate.metric if gate.aggregate == "mean" else f"{gate.metric} {gate.aggregate}"
    raise GateError(f"gate {str(gate)!r}: values of {subject} lie between {low:g} and {high:g}{hint}")
