"""Evidence about a mean that may be looked at after every value: stopping when it suffices does not make it wrong."""

from __future__ import annotations

import math
from collections.abc import Sequence

# Bets as shares of the largest that cannot lose everything: small ones for small differences.
_LARGEST_BET, _SMALLEST_BET, _N_BETS = 0.95, 0.02, 12
_BETS = tuple(_LARGEST_BET * (_SMALLEST_BET / _LARGEST_BET) ** (step / (_N_BETS - 1)) for step in range(_N_BETS))


class MeanEvidence:
    r"""How strongly values from ``low`` to ``high`` speak for a mean above (``side="above"``) or below a threshold.

    Capital that starts at 1 is bet on each value: with a bet λ it is multiplied by ``1 + λ (x − threshold)``. If the
    mean does not lie beyond the threshold, capital is not expected to grow, so it ever reaches 1/α with a chance of at
    most α (Ville's inequality), whenever one looks. The capital is spread evenly over twelve bets of fixed size, so
    that neither the size of the difference nor the spread of the values needs to be known beforehand. Values must come
    in an order that does not depend on them, each with the same mean given those before it.

    ``e_value`` is the capital, ``p_value`` the smallest α at which it has ever been enough.

    Waudby-Smith, Ramdas: Estimating means of bounded random variables by betting (2024).

    >>> evidence = MeanEvidence(0.5, "above")
    >>> for _ in range(8):
    ...     evidence.add(1.0)
    >>> evidence.e_value > 20, evidence.shows(0.05)
    (True, True)
    >>> evidence.add(0.0)
    >>> evidence.shows(0.05)  # what was shown stays shown
    True
    """

    def __init__(self, threshold: float, side: str, *, low: float = 0.0, high: float = 1.0) -> None:
        if not low < high:
            raise ValueError(f"MeanEvidence: low must be below high; received {low!r} and {high!r}")
        if side not in ("above", "below"):
            raise ValueError(f"MeanEvidence: side must be above or below; received {side!r}")
        self._low, self._width = low, high - low
        self._turned = side == "below"
        self._threshold = self._scaled(threshold)
        self.n = 0
        self._logs = [0.0] * _N_BETS
        self._best = 0.0

    def add(self, value: float) -> None:
        """Take one more value."""
        self.add_group([value], 1)

    def add_group(self, values: Sequence[float], largest: int) -> None:
        """Take values that depend on each other as one: groups are independent, and none has more than ``largest``.

        It counts as threshold + Σ (x − threshold) / largest, whose mean over groups lies beyond the threshold exactly
        where the mean over all values does.

        >>> evidence = MeanEvidence(0.5, "above")
        >>> evidence.add_group([1.0, 1.0, 0.0], largest=4)  # 0.5 + 0.5 / 4: one step of 0.125 above
        >>> other = MeanEvidence(0.5, "above")
        >>> other.add(0.625)
        >>> evidence.n, evidence.e_value == other.e_value
        (1, True)
        """
        if not 0 < len(values) <= largest:
            raise ValueError(f"MeanEvidence: a group must have from 1 to {largest} values; received {len(values)}")
        for value in values:
            if not -1e-9 <= self._scaled(value) <= 1.0 + 1e-9:
                high = self._low + self._width
                raise ValueError(f"MeanEvidence: value must be from {self._low:g} to {high:g}; received {value!r}")
        excess = math.fsum([self._scaled(value) - self._threshold for value in values]) / largest
        self.n += 1
        # No mean lies above the greatest value, and every mean but the least lies above that: nothing to bet on.
        if self._threshold >= 1.0:
            return
        gain = excess / max(self._threshold, 1e-12)
        self._logs = [log + math.log1p(bet * gain) for log, bet in zip(self._logs, _BETS, strict=True)]
        self._best = max(self._best, self._log_capital())

    @property
    def e_value(self) -> float:
        """The capital now."""
        return math.exp(min(self._log_capital(), 700.0))

    @property
    def p_value(self) -> float:
        """The smallest error rate at which the evidence has ever been enough."""
        return math.exp(-self._best)

    def shows(self, alpha: float) -> bool:
        """Whether the mean lies beyond the threshold; wrong with a chance of at most ``alpha``, however often asked."""
        return self._best >= -math.log(alpha)

    def values_needed(self, alpha: float) -> int | None:
        """About how many more values would do if they went on like those so far; ``None`` if none ever would."""
        if self.shows(alpha):
            return 0
        rate = max(self._logs) / self.n if self.n else 0.0
        lacking = -math.log(alpha) - self._log_capital()
        return math.ceil(lacking / rate) if rate > 1e-9 else None

    def _scaled(self, value: float) -> float:
        scaled = (value - self._low) / self._width
        return 1.0 - scaled if self._turned else scaled

    def _log_capital(self) -> float:
        most = max(self._logs)
        return most + math.log(math.fsum(math.exp(log - most) for log in self._logs) / _N_BETS)
