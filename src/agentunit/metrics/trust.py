"""What a score is worth: how well each metric and backend agrees with people, as measured by ``make validity``."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from msgspec import Struct, json

from agentunit.metrics.base import MetricInfo

FIGURES_FILE = "validity.json"


class TrustFigure(Struct, frozen=True, omit_defaults=True):
    """One measured figure: the mean of a statistic over labeled sets, with its 95 % interval over cases where known.

    Only figures from data that no rule or model was tuned on are shipped. ``held_out`` is the date of a measurement
    on rows that are kept away from development; such a figure holds for the version of that date.
    """

    metric: str
    backend: str
    statistic: str
    value: float
    low: float | None = None
    high: float | None = None
    n_sets: int = 1
    n_cases: int | None = None
    held_out: str | None = None

    def __str__(self) -> str:
        return f"{self.statistic} {self.value:.2f}"

    def at_length(self) -> str:
        """The figure with what it was measured on."""
        interval = "" if self.low is None or self.high is None else f" [{self.low:.2f}, {self.high:.2f}]"
        kind = "held-out" if self.held_out else "labeled"
        sets = f"1 {kind} set" if self.n_sets == 1 else f"{self.n_sets} {kind} sets"
        notes = [f"{self.n_cases:,} cases"] if self.n_cases else []
        notes += [f"measured {self.held_out}"] if self.held_out else []
        described = f" ({', '.join(notes)})" if notes else ""
        return f"{self}{interval} on {sets}{described}"


@lru_cache(maxsize=1)
def measured_figures() -> dict[tuple[str, str], TrustFigure]:
    """The figures shipped with this version, by metric and backend."""
    try:
        shipped = Path(__file__).with_name(FIGURES_FILE).read_bytes()
    except FileNotFoundError:
        return {}
    figures = json.decode(shipped, type=list[TrustFigure])
    return {(figure.metric, figure.backend): figure for figure in figures}


def describe_trust(info: MetricInfo, backend: str, *, at_length: bool = False) -> str:
    """What to print beside a score: the measured figure, the metric's own words, or that nobody has measured it.

    >>> describe_trust(MetricInfo("mine", "custom", ""), "custom")
    'not measured'
    """
    figure = measured_figures().get((info.name, backend))
    if figure is None:
        return info.trust.get(backend, "not measured")
    return figure.at_length() if at_length else str(figure)
