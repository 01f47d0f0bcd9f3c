"""True composition of differential privacy, by the accountant of the optional package dp-accounting (extra ``dp``)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

from agentunit.installation import install_command

INSTALL_HINT = install_command("dp")
_STEPS_OF_A_BUDGET = 100_000
# Above it, a mechanism as good as surely loses its whole ε: composing it gains nothing over adding it.
_LARGEST_COMPOSED = 30.0


def accountant_unready() -> str | None:
    """Why there is no accountant here, with the command that adds one; ``None`` when there is."""
    if find_spec("dp_accounting") is not None:
        return None
    return f"the package dp-accounting is not installed ({INSTALL_HINT})"


class ComposedSpending:
    """The ε of all that was spent so far, at a given δ: less than the sum, because losses rarely all add up.

    Each ε is a pure ε-private mechanism. What is spent after the budget is used up twice over is plainly added: that
    is still a bound, and it keeps the distribution of losses small.
    """

    def __init__(self, total_budget: float, delta: float) -> None:
        self._delta = delta
        self._step = total_budget / _STEPS_OF_A_BUDGET
        self._precise_up_to = 2.0 * total_budget
        self._losses: Any = None
        self._composed = 0.0
        self._composed_sum = Fraction(0)
        self._added = Fraction(0)

    def spend(self, epsilons: Sequence[float]) -> float:
        """Spend these, and return the ε of everything so far."""
        for epsilon in epsilons:
            if epsilon > _LARGEST_COMPOSED or self._composed > self._precise_up_to:
                self._added += Fraction(epsilon)
            elif epsilon:
                self._compose(epsilon)
        return float(Fraction(self._composed) + self._added)

    def _compose(self, epsilon: float) -> None:
        import numpy

        losses = _losses_of(epsilon, self._step)
        # Losses so unlikely that they cannot be told from none are nothing to warn about.
        with numpy.errstate(all="ignore"):
            self._losses = losses if self._losses is None else self._losses.compose(losses)
            bound = float(self._losses.get_epsilon_for_delta(self._delta))
        self._composed_sum += Fraction(epsilon)
        # The sum is a bound too; steps are rounded up, so that for a few small ε it is the better one.
        self._composed = min(bound, float(self._composed_sum))


@lru_cache(maxsize=256)
def _losses_of(epsilon: float, step: float) -> Any:
    from dp_accounting.pld import common, privacy_loss_distribution

    mechanism = common.DifferentialPrivacyParameters(epsilon, 0.0)
    return privacy_loss_distribution.from_privacy_parameters(mechanism, value_discretization_interval=step)
