"""Which rows a shipped model was trained on, and what it scores on them when they are left out of its training."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.validity.data import DataProblem
from benchmarks.validity.measure import Figure, Scorer, tidy

ROOT = Path(__file__).resolve().parents[2]
_TRAINED_ON = ("frank_", "summedits_", "wice", "begin_", "halueval_", "evouna_")
TRAINED_ON = {"local": _TRAINED_ON, "local-large": _TRAINED_ON}
"""The sets of each backend's training, by how their names begin."""

# Written by the training; each holds {"datasets": {NAME: {"n": …, "auroc": …, "auroc_low": …, "auroc_high": …}}}.
_LEFT_OUT_FILES = {
    "local": (
        "packages/agentunit-local/src/agentunit_local/weights/card.json",
        "training/groundedness/measured.json",
        "training/answer_correctness/measured.json",
    ),
    "local-large": ("training/groundedness/left_out_sets_large.json",),
}
LEFT_OUT = ", rows left out of training"
_KEYS = {"auroc": "AUROC", "balanced_accuracy": "balanced accuracy", "agreement": "agreement", "spearman": "Spearman"}


def was_seen(backend: str, dataset: str) -> bool:
    """Whether rows of a set were in the backend's training."""
    return dataset.startswith(TRAINED_ON.get(backend, ()))


def left_out_figures(metric: str, backend: str, datasets: Iterable[str]) -> list[Figure]:
    """What the training measured on rows that it had left out, for the sets that it used."""
    known: dict[str, Mapping[str, Any]] = {}
    for name in _LEFT_OUT_FILES.get(backend, ()):
        for dataset, entry in _datasets(ROOT / name).items():
            known.setdefault(dataset, entry)
    scorer = Scorer(metric, "metric", backend + LEFT_OUT)
    return [
        Figure(scorer, dataset, statistic, entry["n"], tidy(entry[key]),
               tidy(entry.get(f"{key}_low")), tidy(entry.get(f"{key}_high")))
        for dataset in datasets
        if was_seen(backend, dataset)
        for entry in [known.get(dataset, {})]
        for key, statistic in _KEYS.items()
        if entry.get(key) is not None
    ]  # fmt: skip


def plain_mean(scorer: Scorer, figures: Sequence[Figure], dataset: str) -> Figure:
    """The mean of figures whose rows are not at hand; without rows there is no interval."""
    value = sum(figure.value or 0.0 for figure in figures) / len(figures)
    n = sum(figure.n for figure in figures)
    return Figure(scorer, dataset, figures[0].statistic, n, tidy(value), None, None, n_sets=len(figures))


def _datasets(path: Path) -> dict[str, Mapping[str, Any]]:
    if not path.is_file():
        return {}
    try:
        card = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        found: dict[str, Mapping[str, Any]] = card.get("datasets", {})
        return {name: {**entry, "n": int(entry["n"])} for name, entry in found.items()}
    except (KeyError, TypeError, ValueError, AttributeError, msgspec.MsgspecError) as error:
        raise DataProblem(f"{path}: {type(error).__name__}: {error}") from None
