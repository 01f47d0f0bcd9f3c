"""How far values of groundedness are probabilities: every set as one that was left out of the fit, for both sizes.

The training writes the figures (``training/groundedness/calibrate.py``); nothing is measured here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.validity.seen_in_training import ROOT, was_seen

FILES = {
    "local": "training/groundedness/left_out_sets.json",
    "local-large": "training/groundedness/left_out_sets_large.json",
}
# Of the small one no model was kept that was trained without these sets; the large one has one for each.
_KNOWN_BY_HEART = "local"

_WORDS = (
    "## Calibration of groundedness\n\n"
    "The value of `faithfulness` is a probability for someone who expects half of the answers to be supported: every "
    "set, and in it both labels, count alike in the fit. The error is the mean distance between the value and the "
    "share of supported answers, by tenths of the scale, on sets that were left out of the fit.\n"
)


def calibration_summary(root: Path = ROOT) -> str:
    """The chapter of the short page; empty where no size has figures."""
    sizes = _figures_by_size(root)
    lines = [_WORDS, *(f"- {_errors(size, figures)}" for size, figures in sizes.items())]
    return "\n".join(lines) + "\n" if sizes else ""


def _figures_by_size(root: Path) -> dict[str, Any]:
    return {
        name: msgspec.json.decode((root / path).read_bytes()) for name, path in FILES.items() if (root / path).is_file()
    }


def calibration_chapter(root: Path = ROOT) -> str:
    """The chapter of all results, set by set; empty where no size has figures."""
    sizes = _figures_by_size(root)
    if not sizes:
        return ""
    sets = sorted(
        {name for each in sizes.values() for name, entry in each["datasets"].items() if "mean_score" in entry}
    )
    rows = [_row(name, sizes) for name in sets]
    headings = ["set", "supported", *(f"mean score, `{size}`" for size in sizes)]
    lines = ["| " + " | ".join(cells) + " |" for cells in (headings, ["---"] * len(headings), *rows)]
    return "\n".join(
        [
            _WORDS,
            *(f"- {_errors(size, figures)}" for size, figures in sizes.items()),
            "",
            *lines,
            "",
            "‡ Rows of this set trained the model, so that its mean says little. The large model's figures on such "
            "sets are of one that was trained without them. All are of the weights before version 6 of the metrics, "
            "which were trained further since.\n",
        ]
    )


def _row(name: str, sizes: Mapping[str, Any]) -> Sequence[str]:
    entries = {size: figures["datasets"].get(name) for size, figures in sizes.items()}
    supported = next(entry["supported"] for entry in entries.values() if entry)
    means = [
        "–"
        if entry is None
        else f"{entry['mean_score']:.2f}{' ‡' if size == _KNOWN_BY_HEART and was_seen(size, name) else ''}"
        for size, entry in entries.items()
    ]
    return [name, f"{supported:.2f}", *means]


def _errors(size: str, figures: Mapping[str, Any]) -> str:
    found = figures["calibration_error"]
    unseen = found["sets never trained on"]
    told = f"`{size}`: {found['pooled']:.3f} over all rows, {unseen:.3f} on sets that training never saw"
    even = figures.get("calibration_error_even_shares", {}).get("sets never trained on")
    return told + (f"; with sets and labels counting alike, {even:.3f} on those" if even is not None else "")
