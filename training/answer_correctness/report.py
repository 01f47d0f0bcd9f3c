"""The measured numbers as a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from training.answer_correctness.agreement import (
    RULES,
    agreement_with_interval,
    best_threshold,
    calibration,
    rule_verdicts,
)
from training.answer_correctness.labelled import Row


@dataclass(frozen=True)
class Measured:
    """Rows, their labels, and the cross-validated scores of several splits."""

    rows: list[Row]
    labels: np.ndarray
    scores: list[np.ndarray]


def report_page(name: str, groups: Sequence[Measured], unseen: np.ndarray, by_one: dict[str, np.ndarray]) -> str:
    """All tables. Of ``groups`` the first holds people's labels, the others rows made from them."""
    labelled = groups[0]
    lines = [
        f"# Answer correctness: {name}",
        "",
        "Written by `python -m training.answer_correctness`. Agreement is the share of rows where score ≥ 0.5 equals",
        "people's label; in brackets the 95 % interval of a bootstrap over questions. No question is in fit and test.",
        "",
        *_main_table(labelled, unseen),
        "",
        "By split of the questions: "
        + ", ".join(f"{((score >= 0.5) == labelled.labels).mean():.4f}" for score in labelled.scores)
        + ".",
        "",
        *_transfer_table(labelled, by_one),
        "",
        *_calibration_table(labelled),
        "",
        *_made_up_tables(groups[1:]),
    ]
    return "\n".join(lines) + "\n"


def _shown(agrees: np.ndarray, rows: Sequence[Row]) -> str:
    share, low, high = agreement_with_interval(agrees, [row.question_id for row in rows])
    return f"{share:.3f} [{low:.3f}, {high:.3f}]"


def _main_table(labelled: Measured, unseen: np.ndarray) -> list[str]:
    verdicts = np.array([rule_verdicts(row) for row in labelled.rows])
    ours = (labelled.scores[0] >= 0.5) == labelled.labels
    others = (unseen >= 0.5) == labelled.labels
    lines = [
        "| data | n | " + " | ".join(RULES) + " | ours | ours, model unseen |",
        "|---|---|" + "---|" * (len(RULES) + 2),
    ]
    datasets = sorted({row.dataset for row in labelled.rows})
    parts = [
        (dataset, model) for dataset in datasets for model in ("all", *sorted({row.model for row in labelled.rows}))
    ]
    for dataset, model in parts:
        mask = np.array([row.dataset == dataset and model in ("all", row.model) for row in labelled.rows])
        rows = [row for row, kept in zip(labelled.rows, mask, strict=True) if kept]
        plain = [f"{(verdicts[mask, place] == labelled.labels[mask]).mean():.3f}" for place in range(len(RULES))]
        cells = [*plain, _shown(ours[mask], rows), _shown(others[mask], rows)]
        lines.append(f"| {dataset}, {model} | {mask.sum():,} | " + " | ".join(cells) + " |")
    return lines


def _transfer_table(labelled: Measured, by_one: dict[str, np.ndarray]) -> list[str]:
    models = sorted(by_one)
    lines = [
        "Fitted on the answers of one model (rows), tested on those of another (columns), other questions:",
        "",
        "| fitted on | " + " | ".join(models) + " |",
        "|---|" + "---|" * len(models),
    ]
    of_model = np.array([row.model for row in labelled.rows])
    for source in models:
        agrees = (by_one[source] >= 0.5) == labelled.labels
        lines.append(
            f"| {source} | " + " | ".join(f"{agrees[of_model == model].mean():.3f}" for model in models) + " |"
        )
    return lines


def _calibration_table(labelled: Measured) -> list[str]:
    score = labelled.scores[0]
    bins = calibration(score, labelled.labels)
    error = sum(count * abs(mean - share) for mean, share, count in bins) / len(score)
    threshold, best = best_threshold(score, labelled.labels)
    at_half = ((score >= 0.5) == labelled.labels).mean()
    return [
        f"Calibration error {error:.3f}. Best threshold {threshold:.2f} ({best:.4f}); at 0.5: {at_half:.4f}.",
        "",
        "| mean score | share correct | n |",
        "|---|---|---|",
        *(f"| {mean:.2f} | {share:.2f} | {count:,} |" for mean, share, count in bins),
    ]


def _made_up_tables(groups: Sequence[Measured]) -> list[str]:
    lines = [
        "Rows made from the labelled ones (right or wrong by construction, or with a sentence as the expected answer):"
    ]
    lines += ["", "| rows | n | always yes | containment | ours |", "|---|---|---|---|---|"]
    for group in groups:
        agrees = (group.scores[0] >= 0.5) == group.labels
        contained = np.array([rule_verdicts(row)[2] for row in group.rows]) == group.labels
        kinds = [row.model if row.dataset == "made_up" else row.dataset for row in group.rows]
        for kind in sorted(set(kinds)):
            mask = np.array([one == kind for one in kinds])
            cells = (group.labels[mask].mean(), contained[mask].mean(), agrees[mask].mean())
            lines.append(f"| {kind} | {mask.sum():,} | " + " | ".join(f"{cell:.3f}" for cell in cells) + " |")
    return lines
