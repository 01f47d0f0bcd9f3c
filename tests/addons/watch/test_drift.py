"""The drift detector: few false alarms, changes noticed and dated, state that survives being written."""

from __future__ import annotations

import random

import msgspec
import pytest

from agentunit.addons.watch.drift import BOUNDS_WRONG, DriftDetector
from agentunit.formulas.bounded_mean import weighted_mean_bound


def fed(detector, values, *, rate=1_000, start=0):
    """The first change that values show, with its place."""
    for case, value in enumerate(values, start=start):
        if (change := detector.add(value, case * 86_400 / rate, share=0.5)) is not None:
            return case, change
    return None


def passes(source, share, n):
    return [float(source.random() < share) for _ in range(n)]


@pytest.mark.parametrize(("after", "direction"), [(0.6, "fell"), (1.0, "rose")])
def test_a_change_is_noticed_and_dated(after, direction):
    source = random.Random(1)
    detector = DriftDetector()
    assert fed(detector, passes(source, 0.9, 2_000)) is None
    case, change = fed(detector, passes(source, after, 1_000), start=2_000)
    assert change.direction == direction
    assert 2_000 < case < 2_400
    assert abs(change.since_s / 86.4 - 2_000) < 50
    assert change.before == pytest.approx(0.9, abs=0.03)
    assert change.after == pytest.approx(after, abs=0.15)


def test_after_a_change_the_new_level_is_usual():
    source = random.Random(2)
    detector = DriftDetector()
    fed(detector, passes(source, 0.9, 2_000))
    case, _ = fed(detector, passes(source, 0.5, 500), start=2_000)
    assert not detector.is_watching
    assert fed(detector, passes(source, 0.5, 3_000), start=case) is None
    assert detector.baseline_mean == pytest.approx(0.5, abs=0.05)


def test_a_level_that_stays_raises_no_alarm():
    for seed in range(8):
        source = random.Random(seed)
        assert fed(DriftDetector(), passes(source, source.choice((0.5, 0.9, 0.99, 1.0)), 3_000)) is None


def test_the_capital_that_is_staked_is_the_time_that_passes():
    # However often somebody looks: ten times as many values in the same time bring no more capital.
    staked = []
    for rate in (100, 1_000):
        detector = DriftDetector(lower=0.5, upper=0.5, size=0)
        for case in range(rate + 1):
            detector.add(0.5, case * 86_400 / rate)  # at the bound itself bets neither gain nor lose
        staked.append(detector.fell.capital[0])
    assert staked == pytest.approx([1.0, 1.0])


def test_values_out_of_order_bring_no_time():
    detector = DriftDetector(lower=0.5, upper=0.5, size=0)
    for at_s in (0.0, 86_400.0, 0.0, 86_400.0, 0.0):
        detector.add(0.5, at_s)
    assert detector.fell.capital[0] == pytest.approx(1.0)


def test_amounts_of_any_size_are_watched_by_their_ranks():
    source = random.Random(3)
    detector = DriftDetector(low=0.0, high=None)
    assert fed(detector, [source.lognormvariate(0, 1) for _ in range(2_500)]) is None
    assert detector.add(1e130, 2_500 * 86.4, share=0.5) is None  # one value cannot show anything
    found = fed(detector, [3.0 * source.lognormvariate(0, 1) for _ in range(500)], start=2_501)
    assert found is not None
    assert found[1].direction == "rose"


def test_the_state_survives_being_written():
    source = random.Random(4)
    values = [*passes(source, 0.9, 1_800), *passes(source, 0.5, 300)]
    whole = fed(DriftDetector(), values)
    detector = DriftDetector()
    for case, value in enumerate(values):
        detector = msgspec.json.decode(msgspec.json.encode(detector), type=DriftDetector)
        change = detector.add(value, case * 86_400 / 1_000, share=0.5)
        if change is not None:
            break
    assert (case, change) == whole


def test_bounds_of_the_baseline_are_gaffkes():
    detector = DriftDetector(size=100)
    values = [0.2, 0.4] * 50
    fed(detector, values)
    alpha = 0.01 * 0.5 / 2
    assert detector.lower == pytest.approx(weighted_mean_bound(values, lowest=0.0, alpha=alpha))
    assert detector.upper == pytest.approx(
        1 - weighted_mean_bound([1 - each for each in values], lowest=0.0, alpha=alpha)
    )


def test_a_baseline_of_another_origin():
    source = random.Random(5)
    detector = DriftDetector()
    detector.learn(passes(source, 0.9, 500), share=0.5)
    assert detector.is_watching
    case, change = fed(detector, passes(source, 0.5, 200))
    assert change.direction == "fell"
    assert case < 120


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_no_number_is_refused(value):
    with pytest.raises(ValueError, match="finite"):
        DriftDetector().add(value, 0.0)


def test_a_run_of_values_without_time_can_still_be_kept() -> None:
    """All traces of a load test may have one time: nothing is staked, and nothing grows beyond what JSON can hold."""
    detector = DriftDetector()
    for value in [1.0] * 200 + [0.0] * 3_000:
        detector.add(value, 1e9)
    assert msgspec.json.decode(msgspec.json.encode(detector), type=DriftDetector) == detector


def test_the_reference_of_a_large_baseline_covers_all_of_its_values() -> None:
    detector = DriftDetector(low=None, high=None)
    detector.learn([float(number % 7_919) for number in range(20_000)])
    assert detector.lower is not None
    assert detector.upper is not None
    assert 0.4 < detector.lower < 0.5 < detector.upper < 0.6


def test_a_baseline_that_is_too_short_leaves_the_stream_to_learn_from_itself() -> None:
    detector = DriftDetector()
    detector.learn([1.0] * 30)
    for case in range(200):
        detector.add(1.0, case * 600.0)
    assert detector.is_watching


def test_values_that_take_long_to_come_do_not_stake_on_themselves() -> None:
    """Failures by timeout, one trace after the other: nearly all of the time passes before a failure.

    What is staked on a value must not depend on it, or each failure would be bet on with the time that it took.
    """
    detector = DriftDetector(lower=0.0, upper=0.01, size=0)
    for at_s, value in enumerate([0.0] * 10):
        detector.add(value, float(at_s))
    before = detector.capital
    detector.add(1.0, 43_209.0)
    assert before < 0.001
    assert detector.capital == pytest.approx(0.5, abs=0.01)


def test_an_alarm_takes_all_of_its_evidence() -> None:
    # Half of what was promised would do for one direction; bets on both are open, and each may be wrong.
    detector = DriftDetector(lower=0.5, upper=0.5, size=0)
    seen = [0.0]
    for case in range(10_000):
        # One case in five hundred seconds, one failure more than passes in eleven: capital grows by small steps.
        if detector.add(float(case % 11 < 3), case * 500.0, share=0.25, days=100.0) is not None:
            break
        seen.append(detector.evidence(share=0.25, days=100.0))
    assert 0.7 < max(seen) < 1.0


def test_all_bounds_of_a_baseline_together_are_wrong_as_rarely_as_one_may_be() -> None:
    detector = DriftDetector()
    chances = []
    for case in range(detector.size):
        before = detector.lower
        detector.add(1.0, case * 60.0)
        if detector.lower is not None and detector.lower != before:
            # So many passes in a row have this chance where the mean is the bound.
            chances.append(detector.lower ** (case + 1))
    assert len(chances) == 5
    assert sum(chances) == pytest.approx(BOUNDS_WRONG / 2.0)


def test_a_change_under_way_does_not_become_the_baseline() -> None:
    detector = DriftDetector()
    values = [float(case % 10 > 0) for case in range(360)] + [float(case % 2) for case in range(41)]
    bounds = {}
    for case, value in enumerate(values, start=1):
        assert detector.add(value, case * 600.0) is None
        bounds[case] = (detector.lower, detector.baseline_mean)
    assert detector.evidence() > 0.01
    assert bounds[401] == bounds[200]
    assert bounds[200] != bounds[100]


def test_a_long_silence_is_no_evidence() -> None:
    detector = DriftDetector()
    assert fed(detector, [float(case % 10 > 0) for case in range(400)]) is None
    before = detector.evidence()
    assert detector.add(0.0, 10_000 * 86_400.0) is None
    assert detector.add(1.0, 10_001 * 86_400.0) is None
    assert detector.evidence() < before + 0.002


def test_a_thousand_values_without_a_time_are_a_day() -> None:
    untimed, timed = (DriftDetector(lower=0.5, upper=0.5, size=0) for _ in range(2))
    for case in range(1_001):
        assert untimed.add(float(case % 2), 0.0, is_timed=False) is None
        timed.add(float(case % 2), case * 86.4)
    assert untimed.evidence() == pytest.approx(timed.evidence(), rel=0.01)
