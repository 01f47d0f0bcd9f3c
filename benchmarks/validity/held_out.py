"""Figures measured on rows that are kept away from development, entered by hand with the date and the version.

``held_out.json`` holds them. Nobody can tune on those rows, so these figures stand beside the scores of every backend
that has a fitted model or hand-written rules.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from agentunit.metrics.trust import TrustFigure

FILE = Path(__file__).with_name("held_out.json")


class HeldOutFigure(Struct, frozen=True, forbid_unknown_fields=True):
    """One figure. ``beside`` names what plain baselines or others reach; ``trust`` marks the one that is shown.

    ``version`` is that of the metric which was measured, where it has changed since; ``language`` that of all cases;
    ``evidence`` is what answers were held against, where runs hold them against more.
    """

    metrics: list[str]
    backend: str
    statistic: str
    value: float
    data: str
    beside: str
    n_sets: int = 1
    trust: bool = False
    version: str | None = None
    language: str | None = None
    evidence: str | None = None


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
                n_sets=each.n_sets,
                held_out=self.date,
                version=each.version,
                language=each.language,
                evidence=each.evidence,
            )
            for each in self.figures
            if each.trust
            for metric in each.metrics
        ]


def held_out() -> HeldOut:
    """The figures of the file."""
    return msgspec.json.decode(FILE.read_bytes(), type=HeldOut)
