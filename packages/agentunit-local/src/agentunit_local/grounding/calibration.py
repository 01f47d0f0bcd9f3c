"""What was fitted with the shipped model: how signals are put together, and what makes probabilities of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from agentunit_local.grounding.support import Mix


@dataclass(frozen=True)
class Calibration:
    """The fitted numbers of each measure."""

    faithfulness: Mix
    correctness: dict[str, float]
    relevance: dict[str, float]


@lru_cache(maxsize=1)
def shipped_calibration() -> Calibration:
    """The numbers that belong to the shipped weights (``training/groundedness/calibrate.py`` writes them)."""
    text = (files("agentunit_local") / "weights" / "groundedness" / "calibration.json").read_text(encoding="utf-8")
    fitted = json.loads(text)
    return Calibration(Mix(**fitted["faithfulness"]), fitted["correctness"], fitted["relevance"])
