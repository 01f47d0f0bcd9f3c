"""Mean score against true rate: what a mean hides, for every set with labels of whole cases.

``recorded_bias.json`` holds the figures, written by ``python -m benchmarks.labeled``, which scores the same sets.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from agentunit.metrics.trust import TrustFigure
from benchmarks.validity.seen_in_training import was_seen

FILE = Path(__file__).with_name("recorded_bias.json")
# Sets whose rate is nobody's, by how their names begin.
NOT_NATURAL = {
    "halueval_": "made half and half",
    "msmarco_hardneg": "made half and half",
    "privacylens": "made half and half",
    "rgb_": "labeled by a rule",
}
# Beyond the lexical backend, hallucination rate is 1 minus faithfulness: off by as much.
_MIRRORED = {"faithfulness": "hallucination_rate"}


class Bias(Struct, frozen=True):
    """The mean score of a metric on one set, and the rate that people's labels give."""

    metric: str
    backend: str
    dataset: str
    n: int
    mean: float
    rate: float

    @property
    def difference(self) -> float:
        """How far the mean is above the rate."""
        return self.mean - self.rate

    @property
    def note(self) -> str:
        """Why the figure says less than others, or nothing."""
        for beginning, reason in NOT_NATURAL.items():
            if self.dataset.startswith(beginning):
                return reason
        # Weights of relevance were fitted on it.
        fitted = self.metric == "retrieval_quality" and self.backend == "local" and self.dataset.startswith("ares_")
        return "rows of training" if fitted or was_seen(self.backend, self.dataset) else ""


def recorded_biases() -> list[Bias]:
    """The figures of the file; none where it is absent."""
    return msgspec.json.decode(FILE.read_bytes(), type=list[Bias]) if FILE.is_file() else []


def encoded(biases: Iterable[Bias]) -> bytes:
    """The file's content, one figure a line."""
    lines = [msgspec.json.encode(each).decode() for each in biases]
    return ("[\n  " + ",\n  ".join(lines) + "\n]\n").encode() if lines else b"[]\n"


def with_bias(figures: Iterable[TrustFigure], biases: Iterable[Bias]) -> list[TrustFigure]:
    """Trust figures with how far the mean was off at worst, on sets that nothing was trained on."""
    worst: dict[tuple[str, str], float] = {}
    for each in biases:
        if each.note:
            continue
        named = [each.metric]
        if each.backend != "lexical" and each.metric in _MIRRORED:
            named.append(_MIRRORED[each.metric])
        for metric in named:
            place = (metric, each.backend)
            worst[place] = max(worst.get(place, 0.0), round(abs(each.difference), 3))
    return [msgspec.structs.replace(each, mean_off=worst.get((each.metric, each.backend))) for each in figures]


def bias_summary(biases: Iterable[Bias]) -> str:
    """The chapter of the short page: how far means were off, on sets that say something; empty without figures."""
    found: dict[tuple[str, str], list[Bias]] = {}
    for each in sorted(biases, key=lambda each: (each.metric, each.backend)):
        if not each.note:
            found.setdefault((each.metric, each.backend), []).append(each)
    if not found:
        return ""
    rows = [
        f"| `{metric}` | {backend} | {len(here)} | {min(each.difference for each in here):+.2f} to "
        f"{max(each.difference for each in here):+.2f} |"
        for (metric, backend), here in found.items()
    ]
    return (
        "## Mean score and true rate\n\nA mean score is not a rate: 0.40 does not mean that 40 % of the answers are "
        "good. The table shows by how much the mean was above or below the rate that people's labels give, on sets "
        "that nothing was trained on. The trust column names the worst. To learn the rate of your own cases, "
        "[label some](labeling.md).\n\n"
        "| metric | backend | sets | mean score minus true rate |\n| --- | --- | --- | --- |\n" + "\n".join(rows) + "\n"
    )


def bias_chapter(biases: Iterable[Bias]) -> str:
    """The chapter of all results, set by set; empty where nothing is recorded."""
    shown = sorted(biases, key=lambda each: (each.metric, each.backend, each.dataset))
    if not shown:
        return ""
    rows = [
        f"| `{each.metric}` | {each.backend} | {each.dataset} | {each.n:,} | {each.mean:.2f} | {each.rate:.2f} "
        f"| {each.difference:+.2f} | {each.note or '–'} |"
        for each in shown
    ]
    return (
        "## Mean score and true rate\n\n"
        "The mean score of each set beside the rate that people's labels give, at the base rate that the set has. "
        "*Bias* is the mean minus the rate. The trust column says by how much the mean was off at worst, on sets of "
        "which no row was trained on and that have the base rate they were found with. Large sets were measured on a "
        "sample, drawn by a fixed rule.\n\n"
        "| metric | backend | set | cases | mean score | true rate | bias | remark |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- |\n" + "\n".join(rows) + "\n"
    )
