from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from agentunit.metrics.registry import resolve_metrics
from agentunit.viewer.verdicts import CaseRules


class AllOnesAndZeros:
    def is_pass_fail(self, run_id: str, metric: str) -> bool:
        return True


def rules(**settings: Any) -> set[str]:
    header: Any = SimpleNamespace(id="r1", settings=settings, created_at=0.0)
    infos = {metric.info.name: metric.info for metric in resolve_metrics(["exact_match", "step_repetition"])}
    store: Any = AllOnesAndZeros()
    return set(CaseRules(store, header, infos).rules)


def test_a_metric_that_only_describes_decides_no_case() -> None:
    assert rules() == {"exact_match"}
    assert rules(gates=["step_repetition <= 0.5"]) == {"step_repetition"}
