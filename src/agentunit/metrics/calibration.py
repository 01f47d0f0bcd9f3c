"""A judge fitted to people's labels: the examples it is shown, how its scores are read, and how well that agrees.

``agentunit label RUN --calibrate FILE`` writes such a file. It is data: texts, numbers and nothing that runs.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import msgspec
from msgspec import Struct

from agentunit.backends.quality import SERVICES, RubricExample
from agentunit.backends.services import configured
from agentunit.formulas.statistics import Knot, mapped
from agentunit.metrics.base import MetricInfo

CALIBRATION_VERSION = 1


class ShownExample(Struct, omit_defaults=True):
    """A labeled answer that the judge is shown; ``value`` is what people said of it, on the metric's scale."""

    answer: str
    value: float
    question: str | None = None
    note: str | None = None


class Figure(Struct, omit_defaults=True):
    """How scores agree with labels: the share on the same side of 0.5 with its 95 % interval, and how far off they are.

    ``bias`` is the mean of score less label.
    """

    n: int
    agreement: float | None = None
    low: float | None = None
    high: float | None = None
    auroc: float | None = None
    bias: float | None = None


class Calibration(Struct, omit_defaults=True):
    """What a judge learned from labels, and what it is worth on labels that it did not see.

    ``knots`` map its scores to what people would say; without any they stay as they are. Everything was learned from
    the share ``shown_share`` of the labels, chosen by what they are about, and measured on the others: ``before`` is
    the judge without it, ``with_examples`` its scores before they are mapped, ``measured`` the whole. ``crossed`` says
    that labels were few, so that each part was measured with what was learned from the other.
    """

    metric: str
    metric_version: str
    backend: str
    models: list[str]
    made_at: float
    n_labels: int
    shown_share: float
    measured: Figure
    before: Figure
    with_examples: Figure
    examples: list[ShownExample] = []
    knots: list[Knot] = []
    crossed: bool = False
    v: int = CALIBRATION_VERSION

    @property
    def digest(self) -> str:
        """What tells scores of this calibration from those of another."""
        learned = [self.examples, self.knots]
        return hashlib.sha256(msgspec.json.encode(learned)).hexdigest()[:8]

    @property
    def threshold(self) -> float | None:
        """The lowest score, of those that were seen, that people would more likely than not call good."""
        return next((knot.score for knot in self.knots if knot.value >= 0.5), None)

    def value_of(self, score: float) -> float:
        """What people would say of an answer with this score."""
        return min(1.0, max(0.0, mapped(score, self.knots)))

    def trust(self) -> str:
        """What the trust column says: a word by the lower end of the interval, and what it rests on."""
        figure = self.measured
        if figure.agreement is None or figure.low is None:
            return "not measured"
        word = "strong" if figure.low >= 0.8 else "useful" if figure.low >= 0.65 else "weak"
        return f"{word}, agreement {figure.agreement:.2f} on {figure.n} labels not shown"


def calibration_of(received: str | Calibration | None, owner: str, metric: str) -> Calibration | None:
    """The calibration that a metric was given, if any; ``ValueError`` when it is none of this metric."""
    try:
        found = load_calibration(received) if isinstance(received, str) else received
    except ValueError as error:
        raise ValueError(f"{owner}: {error}") from None
    if found is not None and found.metric != metric:
        raise ValueError(f"{owner}: calibration must be of {metric!r}; received one of {found.metric!r}")
    return found


def load_calibration(path: str) -> Calibration:
    """The calibration in a file; ``ValueError`` with one sentence when it is none."""
    try:
        changed = os.stat(path).st_mtime_ns
    except OSError as error:
        where = os.path.abspath(path)
        raise ValueError(f"calibration must be a file of 'validity --calibrate'; {where}: {error.strerror}") from None
    return _read(path, changed)


@lru_cache(maxsize=16)
def _read(path: str, _changed: int) -> Calibration:
    try:
        with open(path, "rb") as file:
            found = msgspec.json.decode(file.read(), type=Calibration)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ValueError(f"calibration must be a file of 'validity --calibrate'; {path}: {error}") from None
    if found.v > CALIBRATION_VERSION:
        raise ValueError(f"calibration {path} was written by a newer version ({found.v}); update agentunit")
    return found


def as_examples(shown: list[ShownExample]) -> list[RubricExample]:
    """Labeled answers as a rubric shows them."""
    return [RubricExample(each.answer, (), each.question, each.note, overall=each.value) for each in shown]


def calibrated_info(info: MetricInfo, found: Calibration, models: Sequence[str]) -> MetricInfo:
    """The facts of a calibrated metric: a version of its own, and what it is worth with the models it was made for."""
    is_same = not models or sorted(models) == sorted(found.models)
    told = found.trust() if is_same else f"calibrated for {', '.join(found.models)}"
    trust = {**info.trust, found.backend: told}
    return replace(info, version=f"{info.version}+{found.digest}", trust=trust, shown_share=found.shown_share)


def models_asked(backend: str) -> list[str]:
    """The models that a judge would be asked with now; none where none is configured, or for another backend."""
    try:
        settings = configured() if backend in SERVICES else None
    except ValueError:
        return []
    return [] if settings is None else settings.models
