"""``python -m training.answer_correctness``: measure by cross-validation, fit on all, write coefficients and report."""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

import numpy as np
from agentunit_local.answer_matching.features import NAMES, match_features

from training.answer_correctness.fitting import Fit, fit, recentred, table
from training.answer_correctness.labelled import (
    Row,
    data_file,
    made_up_rows,
    may_train,
    namesake_rows,
    read_rows,
    sentence_rows,
    twisted_rows,
)
from training.answer_correctness.report import Measured, report_page

ROOT = Path(__file__).resolve().parents[2]
COEFFICIENTS = ROOT / "packages/agentunit-local/src/agentunit_local/answer_matching/coefficients.json"
REPORT = Path(__file__).with_name("report.md")
SEED = 20240610
FOLDS, SPLITS = 5, 3
MADE_UP_WEIGHT, SENTENCE_WEIGHT = 0.2, 0.5
MOST_TWISTED = 2000

Signal = Callable[[Sequence[Row]], Sequence[float]]


class Prepared:
    """Rows with their features, labels and the weight of each group in the fit."""

    def __init__(self, rows: list[Row], group_weight: float, signals: dict[str, Signal]) -> None:
        self.rows = rows
        self.group_weight = group_weight
        self.names = (*NAMES, *signals)
        columns = [np.asarray(signal(rows), dtype=float).reshape(-1, 1) for signal in signals.values()]
        matched = table([match_features(row.question, row.expected, row.answer) for row in rows])
        self.features = np.hstack([matched, *columns])
        self.labels = np.array([row.correct for row in rows])


def fit_without(groups: Sequence[Prepared], left_out: Callable[[Row], bool]) -> Fit:
    """Fit on every row that is not left out; the first group has weight 1, each other one its share of it.

    The constant is set by the first group alone: rows made up by us must not shift what people would say.
    """
    kept = [np.array([not left_out(row) for row in group.rows]) for group in groups]
    first = kept[0].sum()
    weights = [
        np.full(mask.sum(), group.group_weight * first / max(mask.sum(), 1))
        for group, mask in zip(groups, kept, strict=True)
    ]
    features = np.vstack([group.features[mask] for group, mask in zip(groups, kept, strict=True)])
    labels = np.concatenate([group.labels[mask] for group, mask in zip(groups, kept, strict=True)])
    names = groups[0].names
    fitted = fit(features, labels, np.concatenate(weights), names)
    return recentred(fitted, groups[0].features[kept[0]], groups[0].labels[kept[0]], names)


def cross_validate(groups: Sequence[Prepared], seed: int) -> list[np.ndarray]:
    """The score of every row by a fit that saw no row of its question."""
    questions = sorted({row.question_id for row in groups[0].rows})
    random.Random(seed).shuffle(questions)
    fold_of = {name: place % FOLDS for place, name in enumerate(questions)}
    scores = [np.zeros(len(group.rows)) for group in groups]
    for fold in range(FOLDS):
        fitted = fit_without(groups, lambda row, fold=fold: fold_of[row.question_id] == fold)
        for group, given in zip(groups, scores, strict=True):
            mask = np.array([fold_of[row.question_id] == fold for row in group.rows])
            given[mask] = fitted.probabilities(group.features[mask], group.names)
    return scores


def score_unseen_models(groups: Sequence[Prepared], seed: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Scores by fits that saw neither the model nor the question, and by fits that saw one model only, by its name."""
    rows, labelled = groups[0].rows, groups[0]
    questions = sorted({row.question_id for row in rows})
    random.Random(seed).shuffle(questions)
    half = set(questions[: len(questions) // 2])
    models = sorted({row.model for row in rows})
    of_model = np.array([row.model for row in rows])
    in_half = np.array([row.question_id in half for row in rows])
    unseen = np.zeros(len(rows))
    by_one = {model: np.zeros(len(rows)) for model in models}
    for model in models:
        for tested in (True, False):
            others = fit_without(
                groups,
                lambda row, tested=tested, model=model: (row.question_id in half) == tested or row.model == model,
            )
            alone = fit_without(
                groups[:2],
                lambda row, tested=tested, model=model: (
                    (row.question_id in half) == tested or (row.model != model and row.model in models)
                ),
            )
            mask = in_half == tested
            by_one[model][mask] = alone.probabilities(labelled.features[mask], labelled.names)
            mask &= of_model == model
            unseen[mask] = others.probabilities(labelled.features[mask], labelled.names)
    return unseen, by_one


def main() -> None:
    """Measure, fit and write."""
    parser = argparse.ArgumentParser(prog="python -m training.answer_correctness", description=__doc__)
    parser.add_argument(
        "--signal", action="append", default=[], metavar="NAME=MODULE:FUNCTION",
        help="a signal beyond matching: the function takes rows and gives a number for each; repeat for several",
    )  # fmt: skip
    options = parser.parse_args()
    signals = {name: _load(place) for name, place in (text.split("=", 1) for text in options.signal)}
    rows = [row for row in read_rows(data_file(ROOT)) if may_train(row)]
    twisted = twisted_rows(rows, SEED)
    made_up = made_up_rows(rows, SEED) + namesake_rows(rows, SEED)
    made_up += random.Random(SEED).sample(twisted, min(MOST_TWISTED, len(twisted)))
    groups = [
        Prepared(rows, 1.0, signals),
        Prepared(made_up, MADE_UP_WEIGHT, signals),
        Prepared(sentence_rows(rows, SEED), SENTENCE_WEIGHT, signals),
    ]
    scores = [cross_validate(groups, SEED + split) for split in range(SPLITS)]
    unseen, by_one = score_unseen_models(groups, SEED)
    measured = [
        Measured(group.rows, group.labels, [split[place] for split in scores]) for place, group in enumerate(groups)
    ]
    fitted = fit_without(groups, lambda row: False)
    name = " + ".join(("matching", *signals))
    _store(name, sorted(signals), fitted)
    page = report_page(name, measured, unseen, by_one)
    report = REPORT if not signals else REPORT.with_name(f"report_{'_'.join(signals)}.md")
    report.write_text(page, encoding="utf-8")
    print(page)


def _load(place: str) -> Signal:
    module, _, function = place.partition(":")
    signal: Signal = getattr(import_module(module), function)
    return signal


def _store(name: str, signals: list[str], fitted: Fit) -> None:
    """Put one set of coefficients into the file, beside those of other combinations of signals."""
    content = json.loads(COEFFICIENTS.read_text(encoding="utf-8")) if COEFFICIENTS.exists() else {}
    sets = content.get("sets", {})
    weights = {feature: round(weight, 4) for feature, weight in fitted.weights.items() if abs(weight) >= 5e-5}
    sets[name] = {"extra": signals, "constant": round(fitted.constant, 4), "weights": weights}
    content = {"fitted_on": "EVOUNA (Apache-2.0), and rows made from it: see training/answer_correctness", "sets": sets}
    COEFFICIENTS.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
