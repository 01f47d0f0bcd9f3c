"""What became of one record: by the run's gates, and by metrics that only know pass and fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan

from agentunit.engine.gate_expressions import LABELED, Gate, stored_gates
from agentunit.engine.known_failures import set_aside_on
from agentunit.metrics.base import MetricInfo
from agentunit.store.protocol import RunStore
from agentunit.store.runs import RunHeader

PASS, FAIL, ERROR, ASIDE, UNKNOWN = "pfea-"
WORDS = {PASS: "pass", FAIL: "fail", ERROR: "error", ASIDE: "aside", UNKNOWN: None}
_PASS, _FAIL, _ERROR, _UNKNOWN = map(ord, (PASS, FAIL, ERROR, UNKNOWN))
LETTERS = {word: letter for letter, word in WORDS.items()}
# A sum, a share of passes or the labeled rate says nothing about a single case.
_NOT_BY_CASE = ("sum", "pass", LABELED)


@dataclass(frozen=True)
class CaseRule:
    """Whether one value of a metric is good enough."""

    metric: str
    passes: Callable[[float], bool]
    informational: bool


class CaseRules:
    """The rules of a run: those of its gates; where it has none, every score that only knows pass and fail."""

    def __init__(self, store: RunStore, header: RunHeader, infos: Mapping[str, MetricInfo]) -> None:
        gates = stored_gates(header.settings)
        self.aside = frozenset(set_aside_on(header.created_at, header.settings))
        self.rules: dict[str, CaseRule] = {}
        gated = {gate.metric for gate in gates}
        for metric, info in infos.items():
            if info.direction == "none" or (gates and metric not in gated):
                continue
            # A metric that only describes decides nothing, even where its values happen to be 0 and 1.
            decides = metric in gated or "descriptive" not in info.trust.values()
            if decides and info.unit == "score" and store.is_pass_fail(header.id, metric):
                self.rules[metric] = CaseRule(
                    metric, _low_is_good if info.direction == "lower" else _high_is_good, False
                )
                continue
            by_case = [g for g in gates if g.metric == metric and not g.aggregate.startswith(_NOT_BY_CASE)]
            if by_case:
                named = any(gate.backend is not None for gate in by_case)
                self.rules[metric] = CaseRule(metric, _all_hold(by_case), named)

    def passed(self, metric: str, value: float | None, status: str) -> bool | None:
        """Whether one score is good enough; ``None`` where nothing says so."""
        rule = self.rules.get(metric)
        counts = status == "ok" or (status == "informational" and rule is not None and rule.informational)
        return None if rule is None or value is None or not counts else rule.passes(value)

    def letters(self, columns: Sequence[tuple[CaseRule, Sequence[float], bytes]], n_rows: int) -> bytearray:
        """The verdicts by scores alone on all records at once, from the columns of each rule's metric."""
        found = bytearray(UNKNOWN.encode() * n_rows)
        for rule, values, statuses in columns:
            counts = b"oi" if rule.informational else b"o"
            passes = rule.passes
            for at, (value, status) in enumerate(zip(values, statuses, strict=True)):
                if status in counts:
                    if value != value:
                        continue
                    if not passes(value):
                        if found[at] != _ERROR:
                            found[at] = _FAIL
                    elif found[at] == _UNKNOWN:
                        found[at] = _PASS
                elif status == _ERROR:
                    found[at] = _ERROR
        return found

    def letter(self, case_id: str, failed: bool, scores: Sequence[tuple[str, float, str]]) -> str:
        """The verdict on a record, from metric, value (NaN: none) and letter of status of each of its scores."""
        if case_id in self.aside:
            return ASIDE
        if failed:
            return ERROR
        found = UNKNOWN
        for metric, value, status in scores:
            rule = self.rules.get(metric)
            if rule is None:
                continue
            if status == "e":
                return ERROR
            if isnan(value) or (status != "o" and not (status == "i" and rule.informational)):
                continue
            if not rule.passes(value):
                found = FAIL
            elif found == UNKNOWN:
                found = PASS
        return found


def _low_is_good(value: float) -> bool:
    return value <= 0.5


def _high_is_good(value: float) -> bool:
    return value >= 0.5


def _all_hold(gates: Sequence[Gate]) -> Callable[[float], bool]:
    return lambda value: all(gate.holds(value) for gate in gates)
