"""One line of the table for each figure of a metric: what it was measured on, the best plain baseline, and others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from benchmarks.validity.family import Family, published_figures
from benchmarks.validity.measure import Figure


class Line(Struct, frozen=True):
    """A figure with what belongs beside it, in words."""

    figure: Figure
    unit: str
    sign: str
    plain: list[str]
    others: str

    @property
    def best_plain(self) -> str:
        """The best plain baseline in the same place."""
        return self.plain[0] if self.plain else "–"

    @property
    def shown(self) -> str:
        """The figure, its sign and its interval."""
        return number(self.figure.value) + (f" {self.sign}" if self.sign else "") + interval(self.figure)


def lines_of(family: Family, figures: Iterable[Figure]) -> list[Line]:
    """The lines of a family for the metrics among these figures; baselines are taken from the same place."""
    everything = [*family.figures, *family.headline]
    return [
        Line(
            figure,
            family.unit,
            family.marks.get((figure.scorer, figure.dataset, figure.statistic), ""),
            _plain(figure, everything),
            _others(family.key, figure),
        )
        for figure in figures
        if figure.scorer.kind == "metric"
    ]


def text_table(families: Sequence[Family]) -> str:
    """Everything that was measured as one table for a terminal: each set, then the means."""
    rows = [["metric", "backend", "data", "n", "statistic", "figure (95 %)", "plain baselines", "others report"]]
    for family in families:
        figures = dict.fromkeys([*family.figures, *family.headline])
        for line in lines_of(family, figures):
            each = line.figure
            named = [each.scorer.name, each.scorer.backend, each.dataset, f"{each.n:,}", each.statistic]
            rows.append([*named, line.shown, ", ".join(line.plain) or "–", line.others])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in rows
    )


def number(value: float | None) -> str:
    """A figure of ours."""
    return "–" if value is None else f"{value:.3f}".replace("-", "−")


def interval(figure: Figure) -> str:
    """The interval behind a figure, where there is one."""
    return "" if figure.low is None or figure.high is None else f" ({number(figure.low)} to {number(figure.high)})"


def as_given(value: float) -> str:
    """A figure of others, with two digits where they report two: a third would be invented."""
    return f"{value:.3f}".removesuffix("0")


def _plain(figure: Figure, everything: Iterable[Figure]) -> list[str]:
    """The baselines in the same place, the best one first."""
    rivals = {
        rival.scorer.name: rival.value
        for rival in everything
        if rival.scorer.kind == "baseline"
        and rival.statistic == figure.statistic
        and rival.dataset == figure.dataset
        and rival.value is not None
    }
    return [f"{name} {number(value)}" for name, value in sorted(rivals.items(), key=lambda each: -each[1])]


def _others(family: str, figure: Figure) -> str:
    beside = [
        each
        for each in published_figures(family)
        if each.beside == figure.dataset and each.statistic == figure.statistic
    ]
    told = [
        f"{each.system} {as_given(each.value)}" + (f" to {as_given(each.high)}" if each.high is not None else "")
        for each in beside
    ]
    return ", ".join(told) or "–"
