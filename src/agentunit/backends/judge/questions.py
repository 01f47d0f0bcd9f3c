"""What the judge can be asked beyond the questions of every quality backend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentunit.backends.quality import QualityQuestion

Scale = tuple[int, int] | tuple[str, ...]
"""The lowest and the highest score, or labels from worst to best."""


@dataclass(frozen=True)
class RubricQuestion(QualityQuestion):
    """An answer to be scored by criteria in plain words."""

    criteria: Sequence[str] = ()
    scale: Scale = (1, 5)
