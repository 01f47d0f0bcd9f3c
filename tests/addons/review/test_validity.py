"""Agreement with labels: hand-checked figures, the reference implementations, and what cannot be told."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score

from agentunit.addons.review.labeling.label_files import Label
from agentunit.addons.review.labeling.scorer_agreement import (
    LabelJoin,
    ScoredRow,
    measure_agreement,
    score_labeled,
    threshold_for,
    verdict_of,
)
from agentunit.core.case import DatasetCase
from agentunit.core.records import Record
from agentunit.core.results import InputError, MetricResult
from agentunit.metrics.base import MetricInfo

GOOD = [0.9, 0.8, 0.7, 0.6, 0.3]
BAD = [0.5, 0.4, 0.3, 0.2, 0.1]
# Of 25 pairs, the first four good ones win 20; 0.3 loses to 0.5 and 0.4, ties with 0.3, beats 0.2 and 0.1: 2.5.
HAND_AUROC = 22.5 / 25
HAND_ROWS = [ScoredRow(1, value) for value in GOOD] + [ScoredRow(0, value) for value in BAD]


def measured(rows, **options):
    return measure_agreement(rows, metric="m", backend="b", **options)


def random_rows(seed, n=200, grades=False):
    draw = random.Random(seed)
    labels = [draw.random() if grades else draw.randrange(2) for _ in range(n)]
    return [ScoredRow(label, round(0.5 * label + draw.random(), 1)) for label in labels]


def test_two_classes_by_hand():
    found = measured(HAND_ROWS)
    assert (found.metric, found.backend, found.statistic, found.n, found.n_good) == ("m", "b", "AUROC", 10, 5)
    assert found.value == HAND_AUROC
    # At 0.5 or above: four of five good ones, and one of five bad ones.
    assert found.balanced_accuracy == pytest.approx((4 / 5 + 4 / 5) / 2)
    assert found.agreement == 8 / 10
    assert found.threshold == 0.5
    assert found.low < HAND_AUROC < found.high <= 1.0
    assert found.reason is None


def test_a_lower_is_better_metric_is_turned_round():
    mirrored = [row._replace(value=1 - row.value) for row in HAND_ROWS]
    found, mirror = measured(HAND_ROWS), measured(mirrored, direction="lower")
    assert mirror.value == found.value
    assert (mirror.low, mirror.high) == (found.low, found.high)
    # 0.5 counts as good on both sides of the mirror.
    assert (mirror.balanced_accuracy, mirror.agreement) == (found.balanced_accuracy, found.agreement)


def test_labels_that_mean_bad_are_turned_round():
    flipped = [row._replace(label=1 - row.label) for row in HAND_ROWS]
    assert measured(flipped, label_means="bad") == measured(HAND_ROWS)
    assert measured(flipped).value == pytest.approx(1 - HAND_AUROC)
    grades = random_rows(3, grades=True)
    assert measured(grades, label_means="bad").value == pytest.approx(-measured(grades).value)


@pytest.mark.parametrize("seed", range(3))
def test_two_classes_against_scikit_learn(seed):
    rows = random_rows(seed)
    labels, values = [row.label for row in rows], [row.value for row in rows]
    found = measured(rows, threshold=0.7)
    predictions = [value >= 0.7 for value in values]
    assert found.value == pytest.approx(roc_auc_score(labels, values))
    assert found.balanced_accuracy == pytest.approx(balanced_accuracy_score(labels, predictions))
    assert found.agreement == pytest.approx(accuracy_score(labels, predictions))


def test_grades_against_scipy():
    rows = random_rows(5, grades=True)
    found = measured(rows)
    assert found.statistic == "Spearman"
    assert found.value == pytest.approx(spearmanr([row.label for row in rows], [row.value for row in rows])[0])
    assert found.low < found.value < found.high
    assert (found.n_good, found.threshold, found.balanced_accuracy, found.agreement) == (None, None, None, None)
    lower = measured([row._replace(value=-row.value) for row in rows], direction="lower")
    assert lower.value == found.value


def test_groups_widen_the_interval():
    # Each of 40 independent rows stands there ten times: ten times the rows, no more knowledge.
    rows = [row._replace(group=f"document {index}") for index, row in enumerate(random_rows(1, n=40))]
    grouped = measured(rows * 10)
    alone = measured([row._replace(group=None) for row in rows * 10])
    assert grouped.value == alone.value
    assert grouped.high - grouped.low > 2 * (alone.high - alone.low)


def test_rows_without_a_group_stand_for_themselves():
    rows = random_rows(1, n=60)
    own_groups = [row._replace(group=index) for index, row in enumerate(rows)]
    half = [row if index % 2 else row._replace(group=None) for index, row in enumerate(own_groups)]
    assert measured(half) == measured(own_groups)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([], "0 rows are labeled and scored; at least 10 are needed"),
        (HAND_ROWS[:1], "1 row is labeled and scored"),
        (HAND_ROWS[:9], "9 rows are labeled and scored"),
        ([ScoredRow(1, value / 10) for value in range(12)], "all 12 labels are good"),
        ([ScoredRow(0, value / 10) for value in range(12)], "all 12 labels are bad"),
        ([ScoredRow(0.5, value / 10) for value in range(12)], "all 12 labels are 0.5"),
    ],
)
def test_what_labels_cannot_tell(rows, words):
    found = measured(rows)
    assert found.verdict == "cannot tell"
    assert words in found.reason
    assert found.value is found.low is found.high is found.balanced_accuracy is None


def test_a_constant_score_is_a_coin_toss():
    two_classes = measured([row._replace(value=0.0) for row in HAND_ROWS])
    assert (two_classes.value, two_classes.low, two_classes.high) == (0.5, 0.5, 0.5)
    assert two_classes.verdict == "no better than chance"
    grades = measured([row._replace(value=0.0) for row in random_rows(1, grades=True)])
    assert (grades.value, grades.verdict) == (None, "no better than chance")
    assert "all 200 scores are the same" in grades.reason


def test_a_perfect_ranking_of_few_rows_is_no_proof():
    rows = [ScoredRow(label, float(label)) for label in (0, 1) for _ in range(5)]
    found = measured(rows)
    # Five of five: Wilson's lower bound is 5 / (5 + 1.96²) = 5 / 8.8415.
    assert (found.value, found.high) == (1.0, 1.0)
    assert found.low == pytest.approx(0.5655, abs=1e-4)
    assert found.verdict == "weak"
    assert measured(rows * 10).verdict == "strong"
    # The same fifty rows a class, but from two documents each.
    clustered = [row._replace(group=index % 2) for index, row in enumerate(rows * 10)]
    assert measured(clustered).low < 0.5
    assert measured([row._replace(value=-row.value) for row in rows * 10]).verdict == "backwards"


@pytest.mark.parametrize(
    ("statistic", "low", "high", "verdict"),
    [
        ("AUROC", 0.80, 0.90, "strong"),
        ("AUROC", 0.65, 0.99, "useful"),
        ("AUROC", 0.64, 0.99, "weak"),
        ("AUROC", 0.51, 0.56, "weak"),
        ("AUROC", 0.51, 0.54, "no better than chance"),
        ("AUROC", 0.40, 0.64, "no better than chance"),
        ("AUROC", 0.40, 0.66, "too few labels to tell"),
        ("AUROC", 0.46, 0.49, "no better than chance"),
        ("AUROC", 0.30, 0.49, "backwards"),
        ("AUROC", None, None, "too few labels to tell"),
        ("Spearman", 0.60, 0.70, "strong"),
        ("Spearman", 0.30, 0.70, "useful"),
        ("Spearman", 0.05, 0.70, "weak"),
        ("Spearman", -0.10, 0.20, "no better than chance"),
        ("Spearman", -0.10, 0.40, "too few labels to tell"),
        ("Spearman", -0.50, -0.20, "backwards"),
    ],
)
def test_the_interval_decides_the_verdict(statistic, low, high, verdict):
    assert verdict_of(statistic, low, high) == verdict


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(-5, 5)), min_size=10, max_size=40))
def test_turning_both_sides_changes_nothing(pairs):
    rows = [ScoredRow(label, float(value)) for label, value in pairs]
    turned = [ScoredRow(1 - label, -float(value)) for label, value in pairs]
    plain = measured(rows, threshold=None)
    assert measured(turned, label_means="bad", direction="lower", threshold=None) == plain
    if plain.value is not None:
        assert 0.0 <= plain.low <= plain.high <= 1.0
        assert measured(rows, direction="lower", threshold=None).value == pytest.approx(1 - plain.value)


@pytest.mark.parametrize(
    ("bounds", "asked", "threshold"),
    [
        ((0.0, 1.0), None, 0.5),
        ((None, None), None, 0.5),
        ((0.0, None), None, None),
        ((0.0, None), 3.0, 3.0),
        ((0.0, 1.0), 0.0, 0.0),
    ],
)
def test_a_threshold_is_drawn_where_there_is_a_scale(bounds, asked, threshold):
    assert threshold_for(MetricInfo("m", "custom", "", range=bounds), asked) == threshold


def record(case_id, answer="4"):
    return Record(DatasetCase(case_id, expected_output="4"), outcome=answer)


def test_join_by_case_id():
    broken = InputError("runs.jsonl", 2, "not JSON")
    labels = {"a": Label(1.0), "b": Label(0.0, "g"), "gone": Label(1.0)}
    join = LabelJoin([record("b"), broken, record("x"), record(""), record("a"), record("b", "again")], labels)
    joined = list(join)
    assert joined[1] is broken
    assert [(each[0].case.id, each[1]) for each in joined if each is not broken] == [
        ("b", Label(0.0, "g")),
        ("a", Label(1.0)),
    ]
    assert join.n_records_without_label == 2
    assert join.n_repeated_records == 1
    assert join.labels_without_record == ["gone"]


class TwoBackends:
    """Scores the length of the answer, and says that long answers went another way."""

    name = "two_backends"

    def evaluate(self, case, trace, outcome):
        if not outcome.output:
            return MetricResult(self.name, None, {"reason": "no answer"})
        length = len(outcome.output)
        return MetricResult(self.name, float(length), {"backend": "long" if length > 2 else "short"})


def test_labels_stay_with_their_records():
    labeled = [
        (record("a", "1"), Label(1.0, "g")),
        InputError("runs.jsonl", 2, "not JSON"),
        ("no record at all", Label(0.25)),
        (record("b", ""), Label(0.5)),
        (record("c", "12"), Label(0.75)),
        (record("d", "1234"), Label(0.125)),
    ]
    scored = score_labeled(labeled, [TwoBackends()], batch_size=2)
    assert scored.rows == {
        ("two_backends", "short"): [ScoredRow(1.0, 1.0, "g"), ScoredRow(0.75, 2.0)],
        ("two_backends", "long"): [ScoredRow(0.125, 4.0)],
    }
    assert scored.summary.n_input_errors == 2
    assert [(entry.reason, entry.n_cases) for entry in scored.summary.unscored] == [("no answer", 1)]
    assert {(each.metric, each.backend, each.n) for each in scored.agreements()} == {
        ("two_backends", "short", 2),
        ("two_backends", "long", 1),
    }


def test_agreements_follow_each_metrics_direction():
    labeled = [(record(f"q{i}", "4" if i % 2 else "5"), Label(float(i % 2))) for i in range(20)]
    for labeled_record, _ in labeled:
        labeled_record.case.context = ["4"]
    scored = score_labeled(labeled, ["hallucination_rate", "faithfulness"])
    found = scored.agreements()
    assert [each.metric for each in found] == ["hallucination_rate", "faithfulness"]
    assert [each.value for each in found] == [1.0, 1.0]
    assert [each.balanced_accuracy for each in found] == [1.0, 1.0]
