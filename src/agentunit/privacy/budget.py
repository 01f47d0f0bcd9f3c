"""How much of a differential-privacy budget a run has left, case by case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from threading import Lock
from typing import Any, Literal

from agentunit.backends.accountant import ComposedSpending, accountant_unready
from agentunit.backends.quality import BackendUnavailable
from agentunit.core.results import MetricResult
from agentunit.formulas.privacy import budget_state
from agentunit.metrics.base import ItemMetric
from agentunit.metrics.inputs import Item, number_at, payload_of
from agentunit.metrics.parameters import FROM_0_TO_1, Rule, check_parameters, is_number
from agentunit.metrics.sentences import amount
from agentunit.privacy._passages import privacy_info
from agentunit.public import publish

_NAMES = ("epsilon", "privacy_epsilon")


@dataclass
class PrivacyBudgetMetric(ItemMetric):
    """The share of a differential-privacy budget that is left after this case and all before it, in dataset order.

    The value of a run is the last balance, not a mean. A case spends ``metadata["epsilon"]`` (of the trace, the
    outcome or the case), or the sum over its events' ``epsilon``; none recorded spends 0. In a run, cases before
    the first recorded ε have no value. ``composition="sum"`` adds ε up,
    ``"pld"`` composes the distributions of privacy losses at ``delta``, which is tighter (extra ``dp``). ``warning`` is
    true from a utilization of ``warn_threshold`` on. Each run begins with the whole budget.

    >>> budget = PrivacyBudgetMetric(total_budget=2.0)
    >>> [budget.evaluate({"id": "q", "metadata": {"epsilon": 0.5}}, None, "done").value for _ in range(3)]
    [0.75, 0.5, 0.25]
    """

    total_budget: float = 10.0
    warn_threshold: float = 0.8
    composition: Literal["sum", "pld"] = "sum"
    delta: float = 1e-6

    info = privacy_info(
        name="privacy_budget",
        summary="The share of the differential-privacy budget (ε) that is left after this case.",
        metadata_inputs=dict.fromkeys(_NAMES, "shared"),
        detail_keys=("epsilon_used", "total_spent", "remaining", "utilization", "budget_exceeded", "warning"),
        backend="sum",
        trust={"sum": "exact", "pld": "exact"},
        stateful=True,
        version="2",
        aggregate="last",
    )

    def __post_init__(self) -> None:
        check_parameters(
            self,
            total_budget=Rule("finite and above 0", lambda value: is_number(value) and 0 < value < inf),
            delta=Rule("between 0 and 1", lambda value: is_number(value) and 0 < value < 1),
            warn_threshold=Rule("a number", is_number),
            composition=Rule("sum or pld", ("sum", "pld").__contains__),
        )
        check_parameters(self, warn_threshold=FROM_0_TO_1)
        reason = accountant_unready() if self.composition == "pld" else None
        if reason is not None:
            raise BackendUnavailable(f"PrivacyBudgetMetric: composition 'pld' cannot run: {reason}")
        self._lock = Lock()
        self._in_run = False
        self._is_recorded = False
        # Exact, so that thirty times 0.1 spends 3 and not a little more.
        self._summed = Fraction(0)
        self._composed = ComposedSpending(self.total_budget, self.delta) if self.composition == "pld" else None

    def fresh(self) -> PrivacyBudgetMetric:
        """The same metric with its whole budget: what a new run begins with."""
        made = PrivacyBudgetMetric(self.total_budget, self.warn_threshold, self.composition, self.delta)
        made._in_run = True
        return made

    def score_item(self, item: Item) -> MetricResult:
        """Spend what the case says it spent."""
        epsilons = list(spent_epsilons(item))
        with self._lock:
            self._is_recorded |= bool(epsilons)
            is_unknown = self._in_run and not self._is_recorded
            self._summed += sum(map(Fraction, epsilons))
            summed = float(self._summed)
            spent = summed if self._composed is None else self._composed.spend(epsilons)
        state = budget_state(self.total_budget, spent, self.warn_threshold)
        detail: dict[str, Any] = {
            "epsilon_used": float(sum(map(Fraction, epsilons))),
            "total_spent": spent,
            "remaining": state.remaining,
            "utilization": state.utilization,
            "budget_exceeded": state.exceeded,
            "warning": state.warning,
            "backend": self.composition,
        }
        if self._composed is not None:
            detail.update(delta=self.delta, summed=summed)
        if is_unknown:
            return self.unscored(
                "no epsilon was recorded in this run so far: neither in metadata['epsilon'] nor in an event", **detail
            )
        spends = f"this case spends {amount(detail['epsilon_used'])}"
        total = f"{amount(self.total_budget)} ε"
        detail["why"] = f"{amount(state.remaining)} of {total} left; {spends}"
        if state.exceeded:
            detail["why"] = f"the budget of {total} is exceeded: {amount(spent)} spent; {spends}"
        return MetricResult(self.name, state.share_left, detail)


def spent_epsilons(item: Item) -> Iterator[float]:
    """Each ε that a run spent: the total that its metadata gives, else those of its events."""
    outcome_metadata = item.outcome.metadata
    for part, metadata in (
        ("trace", item.trace_metadata),
        ("outcome", outcome_metadata if isinstance(outcome_metadata, Mapping) else {}),
        ("case", item.case_metadata),
    ):
        for name in _NAMES:
            total = number_at(f"{part}.metadata[{name!r}]", metadata.get(name))
            if total is not None:
                yield total
                return
    for position, event in enumerate(item.events):
        payload = payload_of(event)
        for name in _NAMES:
            epsilon = number_at(f"{name} of trace.events[{position}]", payload.get(name))
            if epsilon is not None:
                yield epsilon
                break


publish("agentunit.privacy.metrics", PrivacyBudgetMetric)
