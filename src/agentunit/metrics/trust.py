"""What a score is worth: how well each metric and backend agrees with people, as measured by ``make validity``."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

from msgspec import Struct, json

from agentunit.metrics.base import MetricInfo

FIGURES_FILE = "validity.json"


class TrustFigure(Struct, frozen=True):
    """One measured figure: the mean of a statistic over labelled sets, with its 95 % interval over cases."""

    metric: str
    backend: str
    statistic: str
    value: float
    low: float
    high: float
    n_sets: int
    n_cases: int

    def __str__(self) -> str:
        return f"{self.statistic} {self.value:.2f}"

    def at_length(self) -> str:
        """The figure with what it was measured on."""
        sets = "1 labelled set" if self.n_sets == 1 else f"{self.n_sets} labelled sets"
        return f"{self} [{self.low:.2f}, {self.high:.2f}] on {sets} ({self.n_cases:,} cases)"


@lru_cache(maxsize=1)
def measured_figures() -> dict[tuple[str, str], TrustFigure]:
    """The figures shipped with this version, by metric and backend."""
    source = files("agentunit.metrics").joinpath(FIGURES_FILE)
    if not source.is_file():
        return {}
    figures = json.decode(source.read_bytes(), type=list[TrustFigure])
    return {(figure.metric, figure.backend): figure for figure in figures}


def trust_words(info: MetricInfo, backend: str, *, at_length: bool = False) -> str:
    """What to print beside a score: the measured figure, the metric's own words, or that nobody has measured it.

    >>> trust_words(MetricInfo("mine", "custom", ""), "custom")
    'not measured'
    """
    figure = measured_figures().get((info.name, backend))
    if figure is None:
        return info.trust.get(backend, "not measured")
    return figure.at_length() if at_length else str(figure)
