"""What was fitted with a model: how signals are put together, and what makes probabilities of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from agentunit_local.grounding.cross_encoder import SHIPPED
from agentunit_local.grounding.support import Mix
from agentunit_local.text_model import ModelFilesError

_FILE = "calibration.json"


@dataclass(frozen=True)
class Calibration:
    """The fitted numbers of each measure."""

    faithfulness: Mix
    correctness: dict[str, float]
    relevance: dict[str, float]
    answered_relevance: dict[str, float]


def shipped_calibration() -> Calibration:
    """The numbers that belong to the weights of this package."""
    return calibration_of(SHIPPED)


@lru_cache(maxsize=4)
def calibration_of(weights: Path) -> Calibration:
    """The numbers that belong to the weights of a folder (``training/groundedness/calibrate.py`` writes them)."""
    try:
        fitted = json.loads((weights / _FILE).read_text(encoding="utf-8"))
    except OSError:
        raise ModelFilesError(f"{weights}: a model of AgentUnit must come with {_FILE}; there is none") from None
    # Files of larger models lack the last one: relevance is judged by the numbers of this package.
    answered = fitted.get("answered_relevance", {})
    return Calibration(Mix(**fitted["faithfulness"]), fitted["correctness"], fitted["relevance"], answered)
