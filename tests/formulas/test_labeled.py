"""The labeled rate: hand-checked cases, properties, and the coverage that a small simulation can see."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentunit.formulas.labeled import (
    LabeledRate,
    draw_for_labeling,
    labeled_difference,
    labeled_rate,
    labels_needed,
)
from agentunit.formulas.score_correction import corrected_labels

POPULATIONS = st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0.0, 1.0)), min_size=24, max_size=40)


def good_scorer(n_cases: int, *, rate: float = 0.6, wrong: float = 0.1, seed: int = 0):
    """Labels of all cases, and scores that are biased but mostly on the right side."""
    chance = random.Random(seed)
    labels = [float(chance.random() < rate) for _ in range(n_cases)]
    scores = [0.1 + 0.3 * (1.0 - label if chance.random() < wrong else label) for label in labels]
    return labels, scores


def drawn(labels, scores, n, seed=1):
    return {place: labels[place] for place, _, _ in draw_for_labeling(scores, n, seed=seed)}


# -- what is known without a formula


def test_all_labeled_is_the_mean_without_doubt():
    found = labeled_rate([0.9, 0.9, 0.9, 0.9], {0: 1.0, 1: 0.0, 2: 0.5, 3: 1.0})
    assert (found.rate, found.low, found.high, found.method) == (0.625, 0.625, 0.625, "all labeled")


def test_no_labels_have_no_rate():
    assert labeled_rate([0.5, 0.5], {}) is None
    assert labeled_difference([0.5], {}, [0.5], {}) is None


@pytest.mark.parametrize("score", [None, 0.5])
def test_a_constant_or_missing_score_leaves_labels_alone_with_the_exact_bounds(score):
    found = labeled_rate([score] * 100_000, {place: float(place < 45) for place in range(60)})
    # Clopper and Pearson's interval of 45 of 60, since 100,000 cases are as good as infinitely many.
    assert (found.rate, found.method, found.weight) == (0.75, "labels alone", 0.0)
    assert found.low == pytest.approx(0.6214, abs=2e-4)
    assert found.high == pytest.approx(0.8528, abs=2e-4)


@pytest.mark.parametrize("confidence", [0.4, 0.95])
def test_one_missing_label_leaves_what_it_could_be(confidence):
    found = labeled_rate([None] * 4, {0: 1.0, 1: 1.0, 2: 1.0}, confidence=confidence)
    assert (found.low, found.high) == (0.75, 1.0)


def test_a_score_says_nothing_certain_of_the_last_case():
    labels = [place % 10 / 10.0 for place in range(120)]
    found = labeled_rate([*labels, 0.5], dict(enumerate(labels)))
    assert found.method == "labels and scores"
    assert (found.low, found.high) == pytest.approx((54.0 / 121.0, 55.0 / 121.0))
    skipped = labeled_rate([*labels, 0.5], dict(enumerate(labels)), skipped=[120])
    assert (skipped.low, skipped.high) == pytest.approx((54.0 / 121.0, 55.0 / 121.0))


def test_the_rate_is_one_that_the_other_labels_can_make():
    labels, scores = good_scorer(60, wrong=0.3)
    for last in range(60):
        known = {place: label for place, label in enumerate(labels) if place != last}
        found = labeled_rate(scores, known)
        least = sum(known.values()) / 60
        assert (found.low, found.high) == pytest.approx((least, least + 1 / 60))
        assert least - 1e-9 <= found.rate <= least + 1 / 60 + 1e-9


# -- what scores do


def test_a_good_score_narrows_the_interval_and_its_bias_cancels():
    labels, scores = good_scorer(2000)
    known = drawn(labels, scores, 120)
    alone, found = labeled_rate([None] * 2000, known), labeled_rate(scores, known)
    assert found.method == "labels and scores"
    assert found.high - found.low < 0.8 * (alone.high - alone.low)
    assert found.low < sum(labels) / 2000 < found.high
    shifted = labeled_rate([score / 3.0 + 0.4 for score in scores], known)
    assert (shifted.rate, shifted.low, shifted.high) == pytest.approx((found.rate, found.low, found.high), abs=1e-6)
    assert shifted.weight == pytest.approx(3.0 * found.weight, rel=1e-6)


def test_a_useless_score_is_not_used():
    chance = random.Random(4)
    labels = [float(chance.random() < 0.8) for _ in range(1000)]
    scores = [chance.random() for _ in labels]
    found = labeled_rate(scores, drawn(labels, scores, 60))
    alone = labeled_rate([None] * 1000, drawn(labels, scores, 60))
    assert (found.low, found.high) == (alone.low, alone.high)


def test_a_score_that_is_upside_down_helps_as_much():
    labels, scores = good_scorer(1000)
    known = drawn(labels, scores, 60)
    found, turned = labeled_rate(scores, known), labeled_rate([-score for score in scores], known)
    assert turned.weight == pytest.approx(-found.weight)
    assert turned.high - turned.low == pytest.approx(found.high - found.low, abs=0.01)


def test_cases_without_a_score_count_by_their_labels():
    labels, scores = good_scorer(600)
    holes = [None if place % 3 == 0 else score for place, score in enumerate(scores)]
    known = drawn(labels, scores, 90)
    found = labeled_rate(holes, known)
    assert found.low < sum(labels) / 600 < found.high
    assert labeled_rate(scores, known).high - labeled_rate(scores, known).low < found.high - found.low


def test_no_label_is_corrected_by_a_weight_that_it_helped_to_fit():
    labels, scores = good_scorer(40)
    centered = [score - 0.25 for score in scores]
    changed = [1.0 - labels[0], *labels[1:]]
    before, after = (corrected_labels(each, centered, (-0.2, 0.2)) for each in (labels, changed))
    assert labels[0] - before.values[0] == pytest.approx(changed[0] - after.values[0])
    assert before.values[1:10] != after.values[1:10]


# -- how labels were drawn


def test_unequal_chances_are_made_up_for():
    # Every third case is bad; bad cases were four times as likely to be drawn.
    labels = {place: float(place % 3 != 0) for place in range(60)}
    chances = {place: 0.08 if label == 0.0 else 0.02 for place, label in labels.items()}
    found = labeled_rate([None] * 3000, labels, probabilities=chances)
    assert found.rate == pytest.approx(40 / (40 + 20 / 4.0))
    assert found.low < found.rate < found.high
    plain = labeled_rate([None] * 3000, labels)
    assert found.high - found.low > 0.5 * (plain.high - plain.low)


def test_strata_count_by_their_size_only_where_their_shares_differ():
    labels = {place: float(place < 20) for place in range(40)}
    even, uneven = [0, 1] * 500, [int(place % 10 > 0) for place in range(1000)]
    assert labeled_rate([None] * 1000, labels, strata=even).rate == 0.5
    first = [int(not 15 <= place < 25) * int(place >= 20) for place in range(1000)]
    assert labeled_rate([None] * 1000, labels, strata=first).rate < 0.5
    assert labeled_rate([None] * 1000, labels, strata=uneven).rate == 0.5
    # Nobody looked at the last stratum, half of all cases.
    assert labeled_rate([None] * 1000, labels, strata=[int(place >= 500) for place in range(1000)]) is None


def test_a_stratum_counts_by_its_cases_and_not_by_its_labels():
    # A tenth of all cases is good; people looked three times as often there.
    labels = {place: float(place < 100) for place in (*range(30), *range(100, 110))}
    found = labeled_rate([None] * 1000, labels, strata=[int(place >= 100) for place in range(1000)])
    assert found.rate == pytest.approx(0.1)


def test_a_draw_that_breaks_off_in_the_middle_of_a_round_still_counts():
    # Ten strata of ten cases, and the tenth has not been asked about yet.
    labels = {10 * stratum: float(stratum % 3 > 0) for stratum in range(9)}
    found = labeled_rate([None] * 100, labels, strata=[place // 10 for place in range(100)])
    assert found == labeled_rate([None] * 100, labels)


def test_cases_of_a_cluster_count_as_one():
    labels = {place: float(place // 4 % 2) for place in range(80)}
    clusters = [place // 4 for place in range(4000)]
    alone, found = labeled_rate([None] * 4000, labels), labeled_rate([None] * 4000, labels, clusters=clusters)
    assert found.rate == alone.rate
    # Twenty clusters that are all good or all bad say as much as twenty cases.
    like = labeled_rate([None] * 1000, {place: float(place % 2) for place in range(20)})
    assert found.high - found.low == pytest.approx(like.high - like.low, rel=0.03)


def test_a_stratum_that_is_labeled_whole_hides_no_doubt_about_the_others():
    # All ten cases of the small stratum have a label, and ten of 190 of the large one.
    strata = [0] * 10 + [1] * 190
    found = labeled_rate([None] * 200, {place: float(place % 2) for place in range(20)}, strata=strata)
    alone = labeled_rate([None] * 190, {place: float(place % 2) for place in range(10)})
    assert found.high - found.low > 0.8 * (alone.high - alone.low)


def test_chances_count_within_a_cluster_too():
    labels = {place: float(place % 2) for place in range(40)}
    chances = {place: 0.1 if place % 2 else 0.02 for place in range(40)}
    clusters = [place // 2 for place in range(1000)]
    found = labeled_rate([None] * 1000, labels, probabilities=chances, clusters=clusters)
    assert found.rate == pytest.approx(1 / 6)


def test_labels_of_a_large_part_leave_the_doubt_of_sampling_without_replacement():
    # Three quarters of all cases are known: the deviation of the mean is √(1 − 3/4) of that among very many cases.
    labels = {place: (0.3, 0.5, 0.7)[place % 3] for place in range(30)}
    few, many = (labeled_rate([None] * n_cases, labels) for n_cases in (40, 1_000_000))
    assert few.rate == pytest.approx(many.rate)
    assert (few.rate - few.low) / (many.rate - many.low) == pytest.approx(0.5, rel=1e-3)


def test_clusters_of_one_case_are_no_clusters():
    labels, scores = good_scorer(500)
    known = drawn(labels, scores, 40)
    assert labeled_rate(scores, known, clusters=range(500)) == labeled_rate(scores, known)


def test_skipped_cases_may_have_been_anything():
    known = {place: float(place % 4 > 0) for place in range(60)}
    found = labeled_rate([None] * 1000, known, skipped=range(60, 66))
    assert found.rate == labeled_rate([None] * 1000, known).rate
    worst, best = ({**known, **dict.fromkeys(range(60, 66), label)} for label in (0.0, 1.0))
    assert found.low == labeled_rate([None] * 1000, worst).low
    assert found.high == labeled_rate([None] * 1000, best).high
    assert found.n_labels == 60


# -- properties


@settings(max_examples=40, deadline=None)
@given(POPULATIONS, st.integers(4, 20), st.floats(0.6, 0.95))
def test_an_interval_holds_its_rate_and_grows_with_confidence(cases, n, confidence):
    labels, scores = [label for label, _ in cases], [score for _, score in cases]
    known = {place: labels[place] for place in range(n)}
    found, surer = (labeled_rate(scores, known, confidence=each) for each in (confidence, (1.0 + confidence) / 2.0))
    assert 0.0 <= found.low <= found.rate <= found.high <= 1.0
    assert surer.low <= found.low + 1e-6
    assert found.high <= surer.high + 1e-6
    assert surer.rate == found.rate
    assert found.low >= sum(known.values()) / len(cases) - 1e-9


@settings(max_examples=30, deadline=None)
@given(POPULATIONS, st.integers(4, 20))
def test_failures_mirror_passes(cases, n):
    scores = [score for _, score in cases]
    known = {place: cases[place][0] for place in range(n)}
    found = labeled_rate(scores, known)
    mirrored = labeled_rate(scores, {place: 1.0 - label for place, label in known.items()})
    assert (1.0 - mirrored.rate, 1.0 - mirrored.high, 1.0 - mirrored.low) == pytest.approx(
        (found.rate, found.low, found.high), abs=1e-6
    )
    assert mirrored.weight == pytest.approx(-found.weight, abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(POPULATIONS, st.integers(4, 20), st.randoms(use_true_random=False))
def test_neither_places_nor_their_order_matter(cases, n, chance):
    # Ties are kept in the order of their places, so scores are made distinct.
    scores = [score / 2.0 + place / 1000.0 for place, (_, score) in enumerate(cases)]
    known = {place: cases[place][0] for place in range(n)}
    order = list(range(len(cases)))
    chance.shuffle(order)
    moved_scores = [0.0] * len(cases)
    for place, target in enumerate(order):
        moved_scores[target] = scores[place]
    moved = {order[place]: label for place, label in reversed(known.items())}
    before, after = labeled_rate(scores, known), labeled_rate(moved_scores, moved)
    assert (after.rate, after.low, after.high) == pytest.approx((before.rate, before.low, before.high), abs=1e-6)


def test_it_holds_where_a_scorer_is_rarely_wrong():
    labels, scores = good_scorer(400, rate=0.85, wrong=0.04, seed=3)
    truth = sum(labels) / 400
    found = [labeled_rate(scores, drawn(labels, scores, 30, seed)) for seed in range(150)]
    assert sum(each.low <= truth <= each.high for each in found) >= 143


# -- two runs


def test_pairs_are_compared_case_by_case():
    labels, scores = good_scorer(1000)
    worse = [0.0 if place % 10 == 0 else label for place, label in enumerate(labels)]
    known = drawn(labels, scores, 100)
    before = {place: worse[place] for place in known}
    found = labeled_difference(scores, known, scores, before)
    assert found.low <= (sum(labels) - sum(worse)) / 1000 <= found.high
    apart = labeled_rate(scores, known)
    assert found.high - found.low < apart.high - apart.low
    back = labeled_difference(scores, before, scores, known)
    assert (back.rate, back.low, back.high) == pytest.approx((-found.rate, -found.high, -found.low), abs=1e-6)


def test_runs_with_labels_of_other_cases_add_up_their_doubt():
    # Rates far from one half, whose intervals reach farther to one side than to the other.
    after, before = ({place: float(place % 5 != of) for place in range(30 * of, 30 * of + 30)} for of in (0, 1))
    before[30] = 0.0
    found = labeled_difference([None] * 1000, after, [None] * 1000, before)
    ours, theirs = labeled_rate([None] * 1000, after), labeled_rate([None] * 1000, before)
    assert found.rate == pytest.approx(ours.rate - theirs.rate)
    # The difference is least where ours is low and theirs is high.
    down = ((ours.rate - ours.low) ** 2 + (theirs.high - theirs.rate) ** 2) ** 0.5
    up = ((ours.high - ours.rate) ** 2 + (theirs.rate - theirs.low) ** 2) ** 0.5
    assert down != pytest.approx(up, rel=0.01)
    assert (found.rate - found.low, found.high - found.rate) == pytest.approx((down, up))
    assert found.n_labels == 60


def test_half_of_the_labels_in_pairs_is_enough_to_compare_case_by_case():
    # In the ten pairs nothing differs; over all labels the rates would be 0.5 and 0.0.
    ours = {place: float(place < 10) for place in range(20)}
    unlabeled = [None] * 40
    exactly_half = labeled_difference(unlabeled, ours, unlabeled, dict.fromkeys(range(10, 30), 0.0))
    assert exactly_half.rate == 0.0
    less_than_half = labeled_difference(unlabeled, ours, unlabeled, dict.fromkeys(range(10, 31), 0.0))
    assert less_than_half.rate == pytest.approx(0.5)


def test_same_outputs_differ_by_nothing():
    known, before = dict.fromkeys(range(20), 1.0), {place: float(place % 2) for place in range(20)}
    everywhere = labeled_difference([None] * 400, known, [None] * 400, before)
    changed = labeled_difference([None] * 400, known, [None] * 400, before, same=range(100, 400))
    assert changed.rate == pytest.approx(everywhere.rate / 4.0)
    assert changed.high - changed.low < 0.3 * (everywhere.high - everywhere.low)
    assert labeled_difference([None], {}, [None], {}, same=[0]).high == 0.0


# -- draws


@pytest.mark.parametrize("n_cases", [3, 10, 64, 200])
def test_a_longer_draw_goes_on_where_a_shorter_one_ended(n_cases):
    scores = [random.Random(place).random() for place in range(n_cases)]
    whole = [place for place, _, _ in draw_for_labeling(scores, n_cases, seed=5)]
    assert sorted(whole) == list(range(n_cases))
    first = [place for place, _, _ in draw_for_labeling(scores, 2, seed=5)]
    rest = [place for place, _, _ in draw_for_labeling(scores, n_cases, seed=5, already=first)]
    assert first + rest == whole


def test_every_case_has_the_same_chance_and_every_round_all_strata():
    scores = [place / 64.0 for place in range(63)] + [None]
    counts = Counter(place for seed in range(1500) for place, _, _ in draw_for_labeling(scores, 16, seed=seed))
    # 1,500 draws of 16 of 64: 375 each, with a spread of 17.
    assert all(375 - 85 < counts[place] < 375 + 85 for place in range(64))
    found = draw_for_labeling(scores, 20, seed=1)
    assert sorted(stratum for _, stratum, _ in found[:10]) == list(range(10))
    assert {chance for _, _, chance in found} == {20 / 64}


def test_nothing_is_drawn_from_nothing():
    assert draw_for_labeling([], 5, seed=0) == []


# -- planning


def test_the_labels_that_a_width_needs_are_about_right():
    labels, scores = good_scorer(3000)
    first = labeled_rate(scores, drawn(labels, scores, 60))
    needed = labels_needed(first, 0.12)
    later = labeled_rate(scores, drawn(labels, scores, 60 + needed))
    assert later.high - later.low == pytest.approx(0.12, rel=0.2)


def test_a_width_that_is_there_needs_no_label_and_none_needs_all():
    found = LabeledRate(0.5, 0.4, 0.6, 100, 1000, "labels alone", 0.0)
    assert labels_needed(found, 0.2) == 0
    assert labels_needed(found, 0.0) == 900
    assert labels_needed(found, 1e-6) == 900


# -- mistakes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.5], {1: 1.0}), "labels must be of positions from 0 to 0; received 1"),
        (([0.5], {0: 1.5}), "labels must be from 0 to 1; received 1.5 at position 0"),
        (([0.5], {0: float("nan")}), "labels must be from 0 to 1; received nan at position 0"),
        (([None, float("nan")], {0: 1.0}), "scores must be finite and below 1e\\+140 in size; received nan"),
    ],
)
def test_labels_must_fit_their_cases(arguments, message):
    with pytest.raises(ValueError, match=message):
        labeled_rate(*arguments)


def test_other_mistakes_are_named():
    with pytest.raises(ValueError, match="strata must be of all 2 cases; received 1"):
        labeled_rate([0.5, 0.5], {0: 1.0}, strata=[0])
    with pytest.raises(ValueError, match="probabilities must be above 0 and at most 1"):
        labeled_rate([0.5, 0.5], {0: 1.0}, probabilities={0: 0.0})
    with pytest.raises(ValueError, match="must be of the same cases; received 1 and 2"):
        labeled_difference([0.5], {}, [0.5, 0.5], {})
    with pytest.raises(ValueError, match="width must be finite and at least 0"):
        labels_needed(LabeledRate(0.5, 0.4, 0.6, 10, 100, "labels alone", 0.0), -1.0)
    with pytest.raises(ValueError, match="n must be at least 0; received -1"):
        draw_for_labeling([0.5], -1, seed=0)
