"""What was fitted with a model: how signals are put together, and what makes probabilities of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from agentunit_local.grounding.cross_encoder import SHIPPED
from agentunit_local.grounding.support import Mix
from agentunit_local.text_model import ModelFilesError

_FILE = "calibration.json"


@dataclass(frozen=True)
class Calibration:
    """The fitted numbers of each measure."""

    faithfulness: Mix
    correctness: dict[str, float]


def shipped_calibration() -> Calibration:
    """The numbers that belong to the weights of this package."""
    return calibration_of(SHIPPED)


def relevance_weights(*, with_answer: bool) -> dict[str, float]:
    """The numbers for relevance. They are those of this package: its sentence encoder stands beside every model."""
    found: dict[str, float] = _fitted(SHIPPED)["answered_relevance" if with_answer else "relevance"]
    return found


def calibration_of(weights: Path) -> Calibration:
    """The numbers that belong to the weights of a folder (``training/groundedness/calibrate.py`` writes them)."""
    fitted = _fitted(weights)
    return Calibration(Mix(**fitted["faithfulness"]), fitted["correctness"])


@lru_cache(maxsize=4)
def _fitted(weights: Path) -> dict[str, Any]:
    try:
        fitted: dict[str, Any] = json.loads((weights / _FILE).read_text(encoding="utf-8"))
    except OSError:
        raise ModelFilesError(f"{weights}: a model of AgentUnit must come with {_FILE}; there is none") from None
    return fitted
