"""What a module of ``rows/`` hands back: the figures of one metric family, with the words that go with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from agentunit.metrics.trust import TrustFigure
from benchmarks.validity.baselines import Baseline
from benchmarks.validity.measure import Figure, Scorer

PUBLISHED_FILE = Path(__file__).with_name("published.json")


class Published(Struct, frozen=True, forbid_unknown_fields=True):
    """A figure that others report; ``high`` makes it a range. ``source`` says in words where it comes from.

    ``beside`` names the set (or mean of sets) of ours that it may stand beside, where the statistic is the same.
    """

    family: str
    system: str
    data: str
    statistic: str
    value: float
    source: str
    high: float | None = None
    note: str = ""
    beside: str = ""


class Family(Struct, frozen=True):
    """One chapter of the page. Texts are Markdown paragraphs.

    ``figures`` has one figure a scorer and set, ``headline`` the ones to remember, and ``outside_mean`` the sets that
    do not count in a mean, each with the reason. ``released`` are figures of other systems' released outputs on the
    same rows. ``trust`` is what is shipped with the metrics. ``unit`` says what a figure's ``n`` counts, and ``files``
    is what the family keeps besides, by its path in the repository. ``marks`` are signs behind figures, by scorer, set
    and statistic; a remark says what each means.
    """

    key: str
    title: str
    measured: str
    can: str
    cannot: str
    baselines: Sequence[Baseline]
    headline: Sequence[Figure]
    figures: Sequence[Figure]
    trust: Sequence[TrustFigure]
    outside_mean: dict[str, str] = {}
    released: Sequence[Figure] = ()
    remarks: Sequence[str] = ()
    unit: str = "cases"
    files: dict[str, bytes] = {}
    marks: Mapping[tuple[Scorer, str, str], str] = {}


def published_figures(family: str) -> list[Published]:
    """What others report for a family, in the order of the table file."""
    rows = msgspec.json.decode(PUBLISHED_FILE.read_bytes(), type=list[Published])
    return [row for row in rows if row.family == family]
