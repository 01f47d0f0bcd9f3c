from __future__ import annotations

import math
import random

import pytest
import scipy.stats
import sklearn.metrics
from hypothesis import given
from hypothesis import strategies as st

from agentunit.addons.review.labeling import agreement
from agentunit.addons.review.labeling.agreement import (
    accuracy,
    auroc,
    auroc_interval,
    balanced_accuracy,
    bootstrap_statistic_interval,
    cohen_kappa,
    spearman,
)
from agentunit.formulas.statistics import Interval, krippendorff_alpha

BINARY_MEASURES = [accuracy, balanced_accuracy, cohen_kappa]
# Few distinct scores make ties common, many make them rare; both must occur.
SCORES = st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.floats(-1e6, 1e6))
SCORED_ROWS = st.lists(st.tuples(st.booleans(), SCORES), max_size=30)
PREDICTED_ROWS = st.lists(st.tuples(st.booleans(), st.booleans()), max_size=30)


def columns_of(rows):
    return [row[0] for row in rows], [row[1] for row in rows]


def mean_of(values):
    return math.fsum(values) / len(values)


# AUROC


@pytest.mark.parametrize(
    ("labels", "scores", "expected"),
    [
        ([1, 0], [2, 1], 1.0),
        ([1, 0], [1, 2], 0.0),
        ([True, False, True, False], [0.5] * 4, 0.5),  # four tied pairs count half each
        ([1, 1, 0, 0, 0], [3, 1, 2, 1, 0], 4.5 / 6),  # 3 beats three; 1 loses to 2, ties with 1, beats 0
        ([1, 1], [0.1, 0.9], None),
        ([0, 0], [0.1, 0.9], None),
        ([], [], None),
    ],
)
def test_auroc_by_hand(labels, scores, expected):
    assert auroc(labels, scores) == expected


@given(SCORED_ROWS)
def test_auroc_equals_scikit_learn_and_mirrors(rows):
    labels, scores = columns_of(rows)
    value = auroc(labels, scores)
    if len(set(labels)) < 2:
        assert value is None
        return
    assert value == pytest.approx(sklearn.metrics.roc_auc_score(labels, scores), abs=1e-12)
    assert auroc([not label for label in labels], scores) == pytest.approx(1 - value, abs=1e-12)
    assert auroc(labels, [-score for score in scores]) == pytest.approx(1 - value, abs=1e-12)


# Agreement of decisions


@pytest.mark.parametrize(
    ("labels", "predictions", "expected"),
    # expected: accuracy, balanced accuracy, kappa
    [
        # TP 2, FN 1, FP 1, TN 4: 6/8; (2/3 + 4/5)/2; expected agreement (3·3 + 5·5)/64 = 34/64, (48 − 34)/30
        (
            [1, 1, 1, 0, 0, 0, 0, 0],
            [1, 1, 0, 1, 0, 0, 0, 0],
            (6 / 8, 11 / 15, 14 / 30),
        ),
        ([1, 0], [1, 0], (1.0, 1.0, 1.0)),
        # Opposite: expected agreement 1/2, (0 − 1/2)/(1/2)
        ([1, 0], [0, 1], (0.0, 0.0, -1.0)),
        # Nothing predicted: chance explains the half that agrees
        ([1, 0], [0, 0], (0.5, 0.5, 0.0)),
        # No positive label
        ([0, 0], [1, 0], (0.5, None, 0.0)),
        ([0, 0], [0, 0], (1.0, None, None)),
        ([], [], (None, None, None)),
    ],
)
def test_decisions_by_hand(labels, predictions, expected):
    flat = [measure(labels, predictions) for measure in BINARY_MEASURES]
    assert flat == [value if value is None else pytest.approx(value, abs=1e-12) for value in expected]
    as_bools = [list(map(bool, column)) for column in (labels, predictions)]
    assert [measure(*as_bools) for measure in BINARY_MEASURES] == flat


@given(PREDICTED_ROWS.filter(bool))
def test_decisions_equal_scikit_learn(rows):
    labels, predictions = columns_of(rows)
    assert accuracy(labels, predictions) == pytest.approx(sklearn.metrics.accuracy_score(labels, predictions))
    if len(set(labels)) == 2:
        reference = sklearn.metrics.balanced_accuracy_score(labels, predictions)
        assert balanced_accuracy(labels, predictions) == pytest.approx(reference)
    if len(set(labels + predictions)) == 2:
        reference = sklearn.metrics.cohen_kappa_score(labels, predictions)
        assert cohen_kappa(labels, predictions) == pytest.approx(reference, abs=1e-12)


@given(PREDICTED_ROWS)
def test_kappa_and_accuracy_do_not_care_who_is_the_rater(rows):
    labels, predictions = columns_of(rows)
    assert accuracy(labels, predictions) == accuracy(predictions, labels)
    assert cohen_kappa(labels, predictions) == cohen_kappa(predictions, labels)


# Rank correlation


@pytest.mark.parametrize(
    ("xs", "ys", "expected"),
    [
        ([1, 2, 3, 4], [10, 200, 3000, 40000], 1.0),
        ([1, 2, 3, 4], [4, 3, 2, 1], -1.0),
        ([1, 2, 3, 4, 5], [2, 1, 4, 3, 5], 0.8),  # differences 1, 1, 1, 1, 0: 1 − 6 · 4 / (5 · 24)
        # Ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4: shared 4.5, spreads 4.5 and 5
        ([0, 1, 1, 2], [1, 2, 3, 4], 4.5 / math.sqrt(4.5 * 5)),
        ([1, 1, 1], [1, 2, 3], None),
        ([1, 2, 3], [0, 0, 0], None),
        ([1, 2], [1, 2], None),
        ([], [], None),
    ],
)
def test_spearman_by_hand(xs, ys, expected):
    assert spearman(xs, ys) == (expected if expected is None else pytest.approx(expected, abs=1e-15))


@given(st.lists(st.tuples(SCORES, SCORES), min_size=3, max_size=30))
def test_spearman_equals_scipy(rows):
    xs, ys = columns_of(rows)
    value = spearman(xs, ys)
    if len(set(xs)) == 1 or len(set(ys)) == 1:
        assert value is None
    else:
        assert value == pytest.approx(scipy.stats.spearmanr(xs, ys).statistic, abs=1e-12)
        assert -1.0 <= value <= 1.0
        assert spearman(xs, [-y for y in ys]) == pytest.approx(-value, abs=1e-15)


def test_perfect_order_is_exactly_one_on_many_rows():
    assert spearman(range(3000), range(3000)) == 1.0


# Bootstrap of a statistic


def labeled_sample(n, seed=0):
    source = random.Random(seed)
    labels = [source.random() < 0.4 for _ in range(n)]
    return labels, [round(source.gauss(label, 1.5), 1) for label in labels]


def test_bootstrap_covers_the_estimate_with_the_width_theory_gives():
    labels, scores = labeled_sample(600)
    value, interval = auroc(labels, scores), auroc_interval(labels, scores)
    assert interval.low < value < interval.high
    # Hanley and McNeil's standard error from the value and the class sizes; it assumes exponential scores,
    # which is good to a tenth or so here.
    positives, negatives = sum(labels), 600 - sum(labels)
    above = (positives - 1) * (value / (2 - value) - value**2)
    below = (negatives - 1) * (2 * value**2 / (1 + value) - value**2)
    error = math.sqrt((value * (1 - value) + above + below) / (positives * negatives))
    assert interval.high - interval.low == pytest.approx(2 * 1.96 * error, rel=0.2)


@given(
    st.lists(st.tuples(st.booleans(), SCORES, st.integers(0, 4)), max_size=20),
    st.booleans(),
    st.integers(0, 3),
)
def test_fast_auroc_interval_equals_the_general_one(rows, grouped, seed):
    labels, scores = columns_of(rows)
    settings = {"groups": [row[2] for row in rows] if grouped else None, "resamples": 30, "seed": seed}
    fast = auroc_interval(labels, scores, **settings)
    assert fast == bootstrap_statistic_interval(auroc, (labels, scores), **settings)


def test_fast_auroc_interval_equals_the_general_one_by_default():
    labels, scores = labeled_sample(60)
    assert auroc_interval(labels, scores) == bootstrap_statistic_interval(auroc, (labels, scores))


@pytest.mark.parametrize(
    ("n", "budget", "expected"),
    [(2, None, 1000), (5000, None, 400), (4, 2000, 500), (20, 2000, 200)],
)
def test_default_resamples_follow_the_rows(n, budget, expected, monkeypatch):
    if budget:
        monkeypatch.setattr(agreement, "ROW_BUDGET", budget)
    sizes = []
    bootstrap_statistic_interval(lambda rows: sizes.append(len(rows)), (range(n),))
    assert sizes == [n] * expected


def test_rows_travel_together_and_groups_whole():
    rows = list(range(12))
    groups = ["a"] * 5 + ["b"] * 1 + ["c"] * 4 + ["a"] * 2
    drawn = []

    def record(first, second):
        assert [value * 10 for value in first] == list(second)
        drawn.append(list(first))
        return 0.0

    bootstrap_statistic_interval(record, (rows, [row * 10 for row in rows]), groups=groups, resamples=50, seed=2)
    for resample in drawn:
        times = [resample.count(row) for row in rows]
        assert times == [times[0]] * 5 + [times[5]] + [times[6]] * 4 + [times[0]] * 2
        assert times[0] + times[5] + times[6] == 3
    assert len(set(map(tuple, drawn))) > 5


def test_copies_of_a_row_add_no_certainty_when_grouped():
    source = random.Random(5)
    values = [source.random() for _ in range(40)]
    copied, groups = (
        [value for value in values for _ in range(9)],
        [row for row in range(40) for _ in range(9)],
    )
    alone = bootstrap_statistic_interval(mean_of, (values,), resamples=400)
    grouped = bootstrap_statistic_interval(mean_of, (copied,), groups=groups, resamples=400)
    naive = bootstrap_statistic_interval(mean_of, (copied,), resamples=400)
    assert grouped.low == pytest.approx(alone.low, abs=1e-12)
    assert grouped.high == pytest.approx(alone.high, abs=1e-12)
    # Nine copies of each row would shrink the width to a third.
    assert naive.high - naive.low < 0.45 * (alone.high - alone.low)


def test_the_seed_alone_decides():
    labels, scores = labeled_sample(80)
    state = random.getstate()
    assert auroc_interval(labels, scores, seed=1) == auroc_interval(labels, scores, seed=1)
    assert auroc_interval(labels, scores, seed=1) != auroc_interval(labels, scores, seed=2)
    assert random.getstate() == state


def test_undefined_resamples_are_dropped_until_most_are_undefined():
    def defined_unless_repeated(limit):
        return lambda rows: None if max(rows.count(row) for row in range(3)) > limit else float(sum(rows))

    # Of the 27 resamples of three rows 3 repeat one row three times and 6 repeat none: dropping the former
    # loses 11 %, keeping only the latter loses 78 %.
    kept = bootstrap_statistic_interval(defined_unless_repeated(2), (range(3),), confidence=0.999)
    assert kept == Interval(1.0, 5.0, "bootstrap")  # 0 + 0 + 1 .. 1 + 2 + 2; (0, 0, 0) and (2, 2, 2) are gone
    assert bootstrap_statistic_interval(defined_unless_repeated(1), (range(3),)) is None
    assert bootstrap_statistic_interval(lambda rows: None, (range(3),)) is None


@pytest.mark.parametrize("groups", [None, ["one document"] * 4])
def test_one_row_or_one_group_tells_nothing(groups):
    n = 4 if groups else 1
    assert bootstrap_statistic_interval(mean_of, ([0.5] * n,), groups=groups) is None
    assert auroc_interval([1, 0, 1, 0][:n], [0.1, 0.2, 0.3, 0.4][:n], groups=groups) is None


# Refusals


@pytest.mark.parametrize("measure", BINARY_MEASURES)
@pytest.mark.parametrize("bad", [2, -1, 0.5, None, "1", math.nan])
def test_only_zero_and_one_are_labels(measure, bad):
    with pytest.raises(ValueError, match=rf"^{measure.__name__}: labels must be 0 or 1; received .* position 2$"):
        measure([0, 1, bad], [0, 1, 1])
    with pytest.raises(ValueError, match=rf"^{measure.__name__}: predictions must be 0 or 1; .* position 0$"):
        measure([0, 1, 1], [bad, 1, 1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: auroc([0, 1, 2], [1, 2, 3]), "auroc: labels must be 0 or 1; received 2 at position 2"),
        (lambda: auroc([0, 1], [1.0, math.nan]), "auroc: scores must be finite; received nan at position 1"),
        (lambda: auroc([0, 1], [1.0]), "auroc: labels and scores must be equally long; received 2 and 1"),
        (
            lambda: accuracy([0], [1, 0]),
            "accuracy: labels and predictions must be equally long; received 1 and 2",
        ),
        (lambda: spearman([1, 2, 3], [1, 2]), "spearman: xs and ys must be equally long; received 3 and 2"),
        (
            lambda: spearman([1, 2, 3], [1, 2, math.inf]),
            "spearman: ys must be finite; received inf at position 2",
        ),
        (
            lambda: auroc_interval([0, 3], [1, 2]),
            "auroc_interval: labels must be 0 or 1; received 3 at position 1",
        ),
        (
            lambda: auroc_interval([0, 1], [1, 2], groups=["a"]),
            "auroc_interval: groups must be as long as the columns, 2; received 1",
        ),
        (
            lambda: auroc_interval([0, 1], [1, 2], confidence=1),
            "auroc_interval: confidence must be above 0 and below 1; received 1",
        ),
        (
            lambda: auroc_interval([0, 1], [1, 2], resamples=0),
            "auroc_interval: resamples must be at least 1; received 0",
        ),
        (
            lambda: bootstrap_statistic_interval(auroc, ([0, 1], [1])),
            "bootstrap_statistic_interval: columns[0] and columns[1] must be equally long; received 2 and 1",
        ),
        (
            lambda: bootstrap_statistic_interval(auroc, ()),
            "bootstrap_statistic_interval: columns must hold at least one column; received 0 columns",
        ),
        (
            lambda: bootstrap_statistic_interval(lambda rows: math.nan, ([1, 2],)),
            "bootstrap_statistic_interval: statistic must give a finite number or None; received nan",
        ),
    ],
)
def test_bad_parameters_say_who_what_and_why(call, message):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the whole message is compared below)
        call()
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("units", "alpha"),
    [
        ([[1, 1], [0, 0]], 1.0),
        ([[1, 0], [0, 1]], -0.5),  # D_o = 1, D_e = 2·2·2/(4·3) = 2/3
        ([[1, 1, 0], [0, 0], [1]], 1 - (2 * 2 / 2 / 5) / (2 * 2 * 3 / (5 * 4))),
        ([[0.25, 0.75], [0.0, 0.0]], 1 - (2 * 0.25 / 4) / (2 * (4 * 0.625 - 1.0) / 12)),
        ([[1, 1], [1, 1]], None),
        ([[1], [0]], None),
        ([], None),
    ],
)
def test_krippendorffs_alpha_by_hand(units: list[list[float]], alpha: float | None) -> None:
    assert krippendorff_alpha(units) == (None if alpha is None else pytest.approx(alpha))
