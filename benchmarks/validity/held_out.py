"""Figures measured on rows that are kept away from development, entered by hand with the date and the version.

``held_out.json`` holds every measurement, the newest first. Nobody can tune on those rows, so these figures stand
beside the scores of every backend that has a fitted model or hand-written rules.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from agentunit.metrics.trust import TrustFigure

FILE = Path(__file__).with_name("held_out.json")


class HeldOutFigure(Struct, frozen=True, forbid_unknown_fields=True):
    """One figure. ``beside`` names what plain baselines or others reach; ``trust`` marks the one that is shown.

    ``low`` and ``high`` are the 95 % interval, where it was computed. ``version`` is that of the metric which was
    measured; ``language`` that of all cases; ``evidence`` is what answers were held against, where runs hold them
    against more.
    """

    metrics: list[str]
    backend: str
    statistic: str
    value: float
    data: str
    beside: str
    low: float | None = None
    high: float | None = None
    n_sets: int = 1
    n_cases: int | None = None
    trust: bool = False
    version: str | None = None
    language: str | None = None
    evidence: str | None = None

    @property
    def places(self) -> set[tuple[str, str]]:
        """What was measured: each metric with its backend."""
        return {(metric, self.backend) for metric in self.metrics}


class HeldOut(Struct, frozen=True, forbid_unknown_fields=True):
    """The figures of one day, and the version that was measured."""

    date: str
    commit: str
    figures: list[HeldOutFigure]

    def trust(self) -> list[TrustFigure]:
        """What is shipped with the metrics."""
        return [
            TrustFigure(
                metric,
                each.backend,
                each.statistic,
                each.value,
                low=each.low,
                high=each.high,
                n_sets=each.n_sets,
                n_cases=each.n_cases,
                held_out=self.date,
                version=each.version,
                language=each.language,
                evidence=each.evidence,
            )
            for each in self.figures
            if each.trust
            for metric in each.metrics
        ]


def held_out() -> list[HeldOut]:
    """Every measurement of the file, the newest first."""
    return msgspec.json.decode(FILE.read_bytes(), type=list[HeldOut])


def newest_figures() -> list[tuple[HeldOut, HeldOutFigure]]:
    """The figures of now: of each metric and backend those of the last measurement that has it."""
    known: set[tuple[str, str]] = set()
    found: list[tuple[HeldOut, HeldOutFigure]] = []
    for measurement in held_out():
        found += [(measurement, each) for each in measurement.figures if not each.places <= known]
        known |= {place for each in measurement.figures for place in each.places}
    return found


def newest_trust() -> list[TrustFigure]:
    """The figure that is shown beside each score: that of the last measurement which has one."""
    shown: dict[tuple[str, str], TrustFigure] = {}
    for measurement in held_out():
        for each in measurement.trust():
            shown.setdefault((each.metric, each.backend), each)
    return list(shown.values())
