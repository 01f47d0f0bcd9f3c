"""What labels say about a run: the labeled rate, gates on it, differences by it, and what they say of the scorer."""

from __future__ import annotations

from pathlib import Path

import pytest
from kept_records import add_record
from labeled_runs import METRIC, add_run, label_of, record
from msgspec import structs

from agentunit.addons.review.labeling.rating import LabelSession
from agentunit.addons.review.labeling.scorer_validity import rater_agreement, scorer_validity
from agentunit.addons.review.labeling.second_look import second_look
from agentunit.core.results import MetricResult, Score
from agentunit.core.score_block import ScoreRow
from agentunit.engine.deciding.compare import compare_runs
from agentunit.engine.deciding.comparison import MetricComparison
from agentunit.engine.deciding.decision import decide
from agentunit.engine.deciding.gates import evaluate_gates
from agentunit.engine.scoring.labeled_rates import LabeledSample, labeled_sample, labeled_summary
from agentunit.engine.scoring.scored_run import ScoredRun, run_from_file, run_from_store
from agentunit.store.labels import subject_of
from agentunit.store.portable import export_run, import_run
from agentunit.store.runs import RunHeader
from agentunit.store.sqlite import Store

# The scorer is too low by 0.3 on every case, and orders them well: people find 24 of 40 good.
SCORES = [0.6 if position < 24 else 0.1 for position in range(40)]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "runs.db")


def labels_for(run_id: str, positions: range, n_good: int = 24) -> list[object]:
    return [label_of(each, float(each < n_good), run_id=run_id, draw="d") for each in positions]


def labeled(store: Store, run_id: str, positions: range, n_good: int = 24) -> ScoredRun:
    store.add_labels(labels_for(run_id, positions, n_good))  # type: ignore[arg-type]
    return run_from_store(store, run_id)


def test_the_rate_is_of_all_cases_the_metric_is_about(store: Store) -> None:
    run_id = add_run(store, [*SCORES, None])
    assert run_from_store(store, run_id).summary().metrics[0].labeled is None
    run = labeled(store, run_id, range(40))
    row = run.summary().metrics[0]
    assert row.mean_of == "support"
    assert row.share_from_half == pytest.approx(0.6)
    assert row.labeled is not None
    assert (row.labeled.rate, row.labeled.n_labels, row.labeled.n_cases) == (pytest.approx(0.6), 40, 40)
    assert not row.labeled.assumed_random


def test_the_rate_stands_once_beside_scores_of_two_kinds(store: Store) -> None:
    run_id = add_run(store, SCORES)
    run = labeled(store, run_id, range(0, 40, 2))
    run.metrics[METRIC] = [
        structs.replace(row, status="informational") if row.position < 3 else row for row in run.metrics[METRIC]
    ]
    rows = run.summary().metrics
    assert [(row.n_scored, row.labeled is not None) for row in rows] == [(37, True), (3, False)]


def test_labels_of_another_question_or_without_a_word_do_not_count(store: Store) -> None:
    run_id = add_run(store, SCORES)
    other = label_of(0, 1.0)
    other.metric = "answer_correctness"
    store.add_labels([other, label_of(1, None)])
    found = labeled_summary(run_from_store(store, run_id), METRIC)
    assert found is not None
    assert (found.rate, found.n_labels, found.n_skipped) == (None, 0, 1)
    assert "skipped" in (found.reason or "")


def test_raters_who_disagree_count_by_their_mean_and_it_is_said(store: Store) -> None:
    run_id = add_run(store, SCORES)
    run = labeled(store, run_id, range(40))
    store.add_labels([label_of(0, 0.0, "ben"), label_of(1, 1.0, "ben")])
    found = labeled_summary(run_from_store(store, run_id), METRIC)
    assert found is not None
    assert found.rate == pytest.approx(23.5 / 40)
    assert (found.raters, found.n_disagreed) == (["ana", "ben"], 1)
    assert run.summary().metrics[0].labeled is not None


def test_labels_of_another_run_speak_for_the_answers_that_both_gave(store: Store, tmp_path: Path) -> None:
    first = add_run(store, SCORES)
    labeled(store, first, range(0, 40, 2))
    same = add_run(store, SCORES)
    shared = labeled_summary(run_from_store(store, same), METRIC)
    assert shared is not None
    assert shared.rate is not None
    assert shared.n_labels == 20
    # Of two that are new, the interval allows for either label; the rate is that of the others.
    nearly = labeled_summary(run_from_store(store, add_run(store, SCORES, answers={0: "new", 1: "new"})), METRIC)
    assert nearly is not None
    assert nearly.low is not None
    assert nearly.high is not None
    assert nearly.reason == "2 of 40 answers are not in the run that was labeled"
    assert nearly.high - nearly.low > (shared.high or 0.0) - (shared.low or 0.0)
    # Ten answers are new: what the old labels say of the others says nothing about them.
    changed = add_run(store, SCORES, answers=dict.fromkeys(range(10), "something new"))
    unknown = labeled_summary(run_from_store(store, changed), METRIC)
    assert unknown is not None
    assert unknown.rate is None
    assert "10 of 40 answers are not in the run" in (unknown.reason or "")
    store.add_labels([label_of(each, 0.0, answer="something new", run_id=changed, draw="d") for each in range(10)])
    known = labeled_summary(run_from_store(store, changed), METRIC)
    assert known is not None
    assert known.rate is not None
    assert known.rate < shared.rate
    # A file says the same as the store that it came from.
    export_run(store, changed, tmp_path / "run.json")
    assert labeled_summary(run_from_file(tmp_path / "run.json"), METRIC) == known


def test_labels_of_one_question_do_not_say_whom_another_question_is_asked_about(store: Store) -> None:
    first = add_run(store, SCORES)
    labeled(store, first, range(0, 40, 2))
    second = add_run(store, SCORES, answers={0: "new"})
    others = [label_of(each, 1.0, run_id=second, draw="d") for each in range(1, 9)]
    for each in others:
        each.metric = "answer_correctness"
    store.add_labels(others)
    run = run_from_store(store, second)
    assert set(run.frames) == {METRIC}
    run.metrics["answer_correctness"] = run.metrics[METRIC]
    found = labeled_summary(run, "answer_correctness")
    assert found is not None
    assert (found.rate, found.reason) == (1.0, None)


def test_answers_belong_to_the_run_that_was_labeled_first(store: Store) -> None:
    # The younger run was labeled first, every other case; the older one was then asked about its ten own answers only.
    old = add_run(store, SCORES)
    young = add_run(store, SCORES, answers=dict.fromkeys(range(30, 40), "young"))
    store.add_labels(
        [
            label_of(each, 1.0, answer="young" if each >= 30 else None, run_id=young, draw="d", made_at=1.0)
            for each in range(0, 40, 2)
        ]
    )
    store.add_labels([label_of(each, 0.0, run_id=old, draw="d", made_at=2.0) for each in range(30, 40)])
    found = labeled_summary(run_from_store(store, add_run(store, SCORES)), METRIC)
    assert found is not None
    assert found.rate == pytest.approx(30 / 40, abs=0.02)
    # Labels of a third run on answers of both speak for those that it had, too.
    third = add_run(store, SCORES, answers=dict.fromkeys(range(20), "third"))
    store.add_labels([label_of(each, 1.0, run_id=third, rater="ben", made_at=3.0, draw="e") for each in range(20, 30)])
    frames = run_from_store(store, old).frames[METRIC]
    assert [frames[each, 0] for each in (0, 25, 35)] == [young, f"{young}+{third}", old]


def test_labels_of_a_file_for_another_run_leave_a_drawn_sample_as_it_was(store: Store, tmp_path: Path) -> None:
    drawn = add_run(store, SCORES)
    labeled(store, drawn, range(0, 40, 4))
    before = labeled_summary(run_from_store(store, drawn), METRIC)
    assert before is not None
    assert (before.n_labels, before.assumed_random) == (10, False)
    # The file says something of every answer of the other run, which shares five answers: one of them was drawn.
    other = add_run(store, SCORES, answers={each: "other" for each in range(40) if each not in range(1, 6)})
    answers = {each: None if each in range(1, 6) else "other" for each in range(40)}
    store.add_labels([label_of(each, 1.0, "file", answer, run_id=other) for each, answer in answers.items()])
    run = run_from_store(store, drawn)
    found = labeled_summary(run, METRIC)
    assert found is not None
    assert found.raters == ["ana", "file"]
    assert structs.replace(found, raters=["ana"], alpha=None) == structs.replace(before, alpha=None)
    assert set(run.frames[METRIC].values()) == {drawn}
    export_run(store, drawn, tmp_path / "run.json")
    assert labeled_summary(run_from_file(tmp_path / "run.json"), METRIC) == found
    # For the run that the file is about they all count, and a file for the drawn run itself does, too.
    of_file = labeled_summary(run_from_store(store, other), METRIC)
    assert of_file is not None
    assert of_file.n_labels == 40
    store.add_labels([label_of(39, 0.0, "file", run_id=drawn)])
    mixed = labeled_summary(run_from_store(store, drawn), METRIC)
    assert mixed is not None
    assert (mixed.n_labels, mixed.assumed_random) == (11, True)


def test_an_answer_that_a_case_gave_three_times_is_asked_about_once(store: Store) -> None:
    # Half of the cases always give the same answer, a good one; the others give three, all bad.
    answers = [(case, repeat, "same" if case < 20 else f"other {repeat}") for case in range(40) for repeat in range(3)]
    run_id = add_run(store, [])
    for case, repeat, answer in answers:
        add_record(store, run_id, case, repeat, record(case, answer), failed=False, elapsed_s=0.0)
        score = Score(MetricResult(METRIC, 0.5, {}), "ok", "local", "2", 0.0)
        store.add_scores(run_id, case, repeat, {METRIC: score})
    run = run_from_store(store, run_id)
    session = LabelSession(store, run, run.info(METRIC), "ana", backend="local", width=0.2)
    asked = []
    while (case := session.current) is not None:
        answer = next(each for *place, each in answers if tuple(place) == case.place)
        asked.append((case.place[0], answer))
        session.give(float(answer == "same"), subject_of(record(case.place[0], answer)))
    assert len(asked) == len(set(asked)) == session.n_given == 20 + 60
    # What the session shows is what the store says afterwards.
    assert session.summary() == labeled_summary(run_from_store(store, run_id), METRIC)
    assert session.standing().rate is not None
    assert session.undo() is not None
    assert session.n_given == 79


def test_a_run_that_is_imported_under_another_id_keeps_its_labeled_rate(store: Store, tmp_path: Path) -> None:
    run = labeled(store, add_run(store, SCORES), range(0, 40, 2))
    export_run(store, run.header.id, tmp_path / "run.json")
    elsewhere = Store(tmp_path / "other.db")
    import_run(elsewhere, tmp_path / "run.json", run_id="main")
    found = labeled_summary(run_from_store(elsewhere, "main"), METRIC)
    assert found == labeled_summary(run, METRIC)
    assert found is not None
    assert found.rate is not None


@pytest.mark.parametrize(
    ("gate", "verdict", "words"),
    [
        ("faithfulness labeled >= 0.5", "pass", "labeled rate 0.6 meets >= 0.5 (40 labels of 40)"),
        ("faithfulness labeled >= 0.7", "fail", "labeled rate 0.6 misses >= 0.7"),
        ("faithfulness[local] labeled > 0.59", "pass", "meets"),
    ],
)
def test_a_gate_may_ask_what_people_say(store: Store, gate: str, verdict: str, words: str) -> None:
    run = labeled(store, add_run(store, SCORES), range(40))
    (found,) = evaluate_gates(run, [gate])
    assert (found.verdict, str(found.gate)) == (verdict, gate)
    assert words in found.reason
    # It speaks of the run, never of a case.
    assert found.cases == ()


def test_a_gate_without_labels_cannot_tell_and_says_what_to_do(store: Store) -> None:
    run_id = add_run(store, SCORES)
    (found,) = evaluate_gates(run_from_store(store, run_id), ["faithfulness labeled >= 0.5"])
    assert found.verdict == "cannot tell"
    assert f"agentunit label {run_id} --metric faithfulness" in found.reason


def test_a_gate_near_the_rate_says_that_more_labels_might_decide_otherwise(store: Store) -> None:
    run = labeled(store, add_run(store, [0.5] * 400), range(10, 34))
    (found,) = evaluate_gates(run, ["faithfulness labeled >= 0.5"])
    assert found.near
    assert "the rate of more labels might" in found.reason
    decided = decide(run, [found])
    by_the_point = "faithfulness labeled >= 0.5 by the point: its interval reaches below"
    said = f"PASS: 1 gate met; {by_the_point}; 400 cases: 400 without a check"
    assert (decided.headline, decided.exit_code) == (said, 0)
    (found,) = evaluate_gates(run, ["faithfulness labeled >= 0.1"])
    assert decide(run, [found]).headline == "PASS: 1 gate met; 400 cases: 400 without a check"


def test_runs_are_compared_by_labels_where_both_have_them(store: Store) -> None:
    before = labeled(store, add_run(store, SCORES), range(40))
    worse_id = add_run(store, SCORES, answers=dict.fromkeys(range(12), "worse"))
    assert not [
        each
        for each in compare_runs(run_from_store(store, worse_id), add_unlabeled(store)).metrics
        if "labeled" in each.metric
    ]
    store.add_labels([label_of(each, 0.0, answer="worse", run_id=worse_id, draw="d") for each in range(12)])
    worse = run_from_store(store, worse_id)
    (found,) = [each for each in compare_runs(worse, before).metrics if each.metric == "faithfulness labeled"]
    assert found.verdict == "regression"
    assert found.difference == pytest.approx(-12 / 40)
    assert not found.gated
    gated = compare_runs(worse, before, gates=["faithfulness labeled >= 0.1"])
    assert [each.metric for each in gated.regressions] == ["faithfulness labeled"]


def test_a_difference_by_labels_says_what_it_follows_from_and_which_run_lacks_labels(store: Store) -> None:
    def row(n_same: int, positions: range) -> MetricComparison:
        scores = SCORES[:33]
        before = add_run(store, scores, answers=dict.fromkeys(range(33), f"before {n_same}"))
        answers = {each: f"{'before' if each < n_same else 'after'} {n_same}" for each in range(33)}
        after = add_run(store, scores, answers=answers)
        store.add_labels(
            [
                label_of(each, float(each % 4 > 0), answer=f"before {n_same}", run_id=before, draw="d")
                for each in positions
            ]
        )
        store.add_labels(
            [label_of(each, float(each % 3 > 0), "ben", answer, run_id=after) for each, answer in answers.items()]
        )
        rows = compare_runs(run_from_store(store, after), run_from_store(store, before), margin=0.05).metrics
        (found,) = [each for each in rows if each.metric == "faithfulness labeled"]
        assert found.baseline_mean is not None
        assert found.candidate_mean is not None
        assert found.difference is not None
        adds_up = found.difference == pytest.approx(found.candidate_mean - found.baseline_mean, abs=5e-4)
        assert ("each rate is from all labels of its run" in found.reason) != adds_up
        return found

    # Eleven labels of the baseline, all of the candidate; one answer is the same and tells nothing.
    few = row(1, range(0, 33, 3))
    assert few.verdict == "cannot tell"
    assert "(from 42 labels, of answers that differ; each rate is from all labels of its run)" in few.reason
    assert few.reason.endswith(": label more cases of the baseline (22 left)")
    paired = row(0, range(20))
    assert "(from 20 cases labeled in both runs, of answers that differ" in paired.reason
    assert paired.reason.endswith("the baseline (13 left)")
    # What is labeled in full asks for nothing.
    assert "label more" not in row(2, range(33)).reason


def test_cases_that_raters_skipped_widen_a_difference(store: Store) -> None:
    def difference(n_skipped: int) -> tuple[float, float]:
        before = labeled(store, add_run(store, SCORES), range(40))
        after_id = add_run(store, SCORES, answers=dict.fromkeys(range(40), f"after {n_skipped}"))
        store.add_labels(
            [
                label_of(each, None if each < n_skipped else 1.0, answer=f"after {n_skipped}", run_id=after_id)
                for each in range(40)
            ]
        )
        rows = compare_runs(run_from_store(store, after_id), before).metrics
        (found,) = [each for each in rows if each.metric == "faithfulness labeled"]
        assert found.low is not None
        assert found.high is not None
        return found.low, found.high

    assert difference(0) == pytest.approx((16 / 40, 16 / 40))
    # Any label is possible for each of four that people found good before: from −4 to 0 of 40.
    low, high = difference(4)
    assert low <= 12 / 40 + 1e-9
    assert high >= 16 / 40 - 1e-9


def add_unlabeled(store: Store) -> ScoredRun:
    return run_from_store(store, add_run(store, SCORES, answers=dict.fromkeys(range(40), "unseen")))


def test_a_session_goes_on_where_it_was_left_and_undoes_honestly(store: Store) -> None:
    run_id = add_run(store, SCORES)

    def begin(rater: str = "ana") -> LabelSession:
        run = run_from_store(store, run_id)
        return LabelSession(store, run, run.info(METRIC), rater, backend="local", width=0.2)

    def answer(session: LabelSession, value: float | None) -> str:
        asked = session.current
        assert asked is not None
        [stored] = store.case(run_id, asked.case_id)
        session.give(value, subject_of(stored.record))
        return asked.case_id

    session = begin()
    asked = [answer(session, 1.0), answer(session, None), answer(session, 0.0)]
    assert len(set(asked)) == 3
    assert session.undo() is not None
    assert session.current is not None
    assert session.current.case_id == asked[2]
    assert session.back()
    assert session.current.case_id == asked[1]
    # Undone is the answer that is shown, not the one before it.
    undone = session.undo()
    assert undone is not None
    assert undone.case_id == asked[1] == session.current.case_id
    answer(session, None)
    again = begin()
    assert again.n_given == 1
    assert again.current is not None
    assert again.current.case_id == asked[2]
    # Another rater is asked about the same cases, in the same order.
    assert [answer(begin("ben"), 1.0) for _ in range(2)] == asked[:2]
    kept = store.labels(withdrawn=True)
    assert len(kept) == 6
    assert {each.case_id for each in kept if each.withdrawn_at} == set(asked[1:])
    assert all(each.probability and each.draw for each in kept)


def test_a_session_ends_with_the_cases(store: Store) -> None:
    run_id = add_run(store, [0.2, 0.8])
    run = run_from_store(store, run_id)
    session = LabelSession(store, run, run.info(METRIC), "ana", backend="local", width=0.2)
    for _ in range(2):
        assert session.current is not None
        session.give(1.0, label_of(session.current.place[0], 1.0).subject)
    assert session.current is None
    standing = session.standing()
    assert standing.rate is not None
    assert (standing.rate.rate, standing.rate.low, standing.rate.high) == (1.0, 1.0, 1.0)


def test_a_scorer_is_measured_by_the_labels_of_its_run(store: Store) -> None:
    run = labeled(store, add_run(store, SCORES), range(40), n_good=26)
    found = scorer_validity(run, METRIC, "local", precision=0.9)
    assert found is not None
    assert found.agreement.agreement == pytest.approx(38 / 40)
    assert found.kappa is not None
    assert 0.85 < found.kappa < 0.95
    assert found.threshold is not None
    assert (found.threshold.threshold, found.threshold.precision) == (0.6, 1.0)
    assert [(each.n, each.label_rate) for each in found.calibration] == [(16, 2 / 16), (24, 1.0)]
    by = scorer_validity(run, METRIC, "local", by="metadata.category")
    assert by is not None
    assert {each.name: each.n_too_bad for each in by.slices} == {"even": 1, "odd": 1}


def test_raters_who_disagree_more_than_the_scorer_are_a_warning(store: Store) -> None:
    run_id = add_run(store, SCORES)
    store.add_labels([label_of(each, float(each < 24), rater) for rater in ("ana", "cid") for each in range(40)])
    store.add_labels([label_of(each, float(each % 2), "ben") for each in range(40)])
    run = run_from_store(store, run_id)
    found = scorer_validity(run, METRIC, "local")
    assert found is not None
    assert found.warning is not None
    assert "raters agree with each other on" in found.warning
    raters = rater_agreement(run.labels)
    assert raters is not None
    assert raters.kappas["ana, cid"] == 1.0
    assert raters.alpha is not None
    assert raters.alpha < 0.5


def test_a_label_unlike_those_of_its_score_and_raters_who_disagree_are_listed(store: Store) -> None:
    run_id = add_run(store, SCORES)
    labels = [label_of(each, float(each < 24)) for each in range(40)]
    labels[3] = label_of(3, 0.0)
    store.add_labels([*labels, label_of(30, 1.0, "ben")])
    found = second_look(run_from_store(store, run_id))
    assert [(each.case_id, each.kind) for each in found] == [("q30", "raters disagree"), ("q3", "label against score")]


def test_a_case_that_good_runs_fail_is_listed(store: Store) -> None:
    runs = []
    for strength in range(6):
        values = [float(position < 2 * strength) for position in range(10)]
        values.append(float(strength < 3))
        runs.append(run_from_store(store, add_run(store, values)))
    found = second_look(runs[-1], runs[:-1])
    assert [(each.case_id, each.kind) for each in found] == [("q10", "good runs fail it")]
    assert second_look(runs[0], runs[1:3]) == []


def sample_of(n_cases: int, **facts: object) -> LabeledSample:
    scores: list[float | None] = [position % 2 / 2 for position in range(n_cases)]
    return LabeledSample([(position, 0) for position in range(n_cases)], scores, None, **facts)  # type: ignore[arg-type]


def test_what_taught_a_judge_counts_as_known_and_no_more() -> None:
    # People found the ten cases that taught it good, and the others that they saw bad.
    taught = dict.fromkeys(range(10), 1.0)
    found = sample_of(100, taught=taught, labels=dict.fromkeys(range(10, 60), 0.0)).rate()
    assert found is not None
    assert (found.rate, found.low, found.n_cases) == (pytest.approx(0.1), pytest.approx(0.1), 100)
    # Of 40 unseen cases a few may be good.
    assert 0.1 < found.high < 0.2


def test_up_to_a_quarter_of_labels_may_have_taught_a_judge_whose_scores_count() -> None:
    labels = {position: float(position % 2) for position in range(30)}
    for n_taught, n_labels in ((10, 30), (11, 41)):
        found = sample_of(100, labels=labels, taught=dict.fromkeys(range(50, 50 + n_taught), 1.0)).rate()
        assert found is not None
        assert found.n_labels == n_labels
        assert (found.method == "labels and scores") == (n_taught == 10)


@pytest.mark.parametrize(("n_new", "is_known"), [(5, True), (6, False)])
def test_a_twentieth_of_new_answers_leaves_a_rate(n_new: int, is_known: bool) -> None:
    strata = [0] * (100 - n_new) + [1] * n_new
    labels = {position: float(position % 2) for position in range(30)}
    assert (sample_of(100, labels=labels, strata=strata, unasked=n_new).rate() is not None) == is_known


def test_labels_of_repeats_of_a_case_are_not_independent() -> None:
    rows = [ScoreRow(case, repeat, f"c{case}", 0.5, "ok", "b", "1") for case in range(3) for repeat in range(2)]
    run = ScoredRun(RunHeader("r", "r", 0.0, 1.0, "finished", 6, "0", {}), 3, 6, 0, {METRIC: rows})
    assert labeled_sample(run, METRIC).clusters == [0, 0, 1, 1, 2, 2]
    run.metrics[METRIC] = rows[::2]
    assert labeled_sample(run, METRIC).clusters is None
