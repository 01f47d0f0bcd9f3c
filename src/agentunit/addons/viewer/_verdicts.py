"""What became of one record: by its checks, and by whether the agent failed. A gate on a mean is about runs alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan

from agentunit.engine.deciding.checks import CheckRule, check_rules
from agentunit.engine.deciding.gate_expressions import stored_gates
from agentunit.engine.deciding.known_failures import set_aside_on
from agentunit.metrics.base import MetricInfo
from agentunit.store.run_store import RunStore
from agentunit.store.runs import RunHeader

PASS, FAIL, ERROR, ASIDE, UNKNOWN = "pfea-"
WORDS = {PASS: "pass", FAIL: "fail", ERROR: "error", ASIDE: "aside", UNKNOWN: None}
_PASS, _FAIL, _UNKNOWN = map(ord, (PASS, FAIL, UNKNOWN))
LETTERS = {word: letter for letter, word in WORDS.items()}


class CaseRules:
    """The checks of a run: a record fails where one of them does, and passes where it has some and none does.

    Where the agent failed there was nothing to check: that is the verdict.
    """

    def __init__(self, store: RunStore, header: RunHeader, infos: Mapping[str, MetricInfo]) -> None:
        self.aside = frozenset(set_aside_on(header.created_at, header.settings))
        gates = stored_gates(header.settings)
        self.rules = check_rules(gates, infos, lambda metric: store.is_pass_fail(header.id, metric))

    def passed(self, metric: str, value: float | None, status: str) -> bool | None:
        """Whether one score passes; ``None`` where it is no check."""
        rule = self.rules.get(metric)
        counts = status == "ok" or (status == "informational" and rule is not None and bool(rule.backends))
        return None if rule is None or value is None or not counts else rule.passes(value)

    def letters(self, columns: Sequence[tuple[CheckRule, Sequence[float], bytes]], n_rows: int) -> bytearray:
        """The verdicts by scores alone on all records at once, from the columns of each check."""
        letters = bytearray(UNKNOWN.encode() * n_rows)
        for rule, values, statuses in columns:
            counted = _counted_statuses(rule).encode()
            passes = rule.passes
            for at, (value, status) in enumerate(zip(values, statuses, strict=True)):
                # What is not known is not equal to itself.
                if status not in counted or value != value:
                    continue
                if not passes(value):
                    letters[at] = _FAIL
                elif letters[at] == _UNKNOWN:
                    letters[at] = _PASS
        return letters

    def letter(self, case_id: str, failed: bool, scores: Sequence[tuple[str, float, str]]) -> str:
        """The verdict on a record, from metric, value (NaN: none) and letter of status of each of its scores."""
        if case_id in self.aside:
            return ASIDE
        if failed:
            return ERROR
        letter = UNKNOWN
        for metric, value, status in scores:
            rule = self.rules.get(metric)
            if rule is None or isnan(value) or status not in _counted_statuses(rule):
                continue
            if not rule.passes(value):
                return FAIL
            letter = PASS
        return letter


def _counted_statuses(rule: CheckRule) -> str:
    """The letters of the statuses that count: informational scores only where a gate names their backend."""
    return "oi" if rule.backends else "o"
