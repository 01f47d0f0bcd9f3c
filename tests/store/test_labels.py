"""Labels are kept at once, belong to an answer and not to a run, and are never lost by an undo."""

from __future__ import annotations

from pathlib import Path

import pytest
from kept_records import add_record

from agentunit.core.case import DatasetCase
from agentunit.core.records import Record
from agentunit.store.labels import StoredLabel, label_values, labels_of_run, split_labels, subject_of
from agentunit.store.portable import export_run, import_run
from agentunit.store.sqlite import Store


def record(case_id: str, answer: str) -> Record:
    return Record(DatasetCase(case_id, f"{case_id}?"), outcome=answer)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "runs.db")


def run_of(store: Store, *answers: str) -> str:
    run_id = store.create_run("r", agentunit_version="1", settings={}).id
    for position, answer in enumerate(answers):
        add_record(store, run_id, position, 0, record(f"q{position}", answer), failed=False, elapsed_s=0.0)
    return run_id


def label(case_id: str, answer: str, value: float | None, rater: str = "ana", metric: str = "m") -> StoredLabel:
    return StoredLabel(subject_of(record(case_id, answer)), metric, case_id, value, rater)


def test_a_later_run_has_the_labels_of_the_answers_it_repeats(store: Store) -> None:
    run_of(store, "a", "b")
    later = run_of(store, "x", "b")
    store.add_labels([label("q0", "a", 1.0), label("q1", "b", 0.0)])
    assert [(each.case_id, each.place, each.value) for each in labels_of_run(store, later)] == [("q1", (1, 0), 0.0)]
    store.delete_run(later)
    assert len(store.labels()) == 2


def test_a_new_word_of_a_rater_replaces_the_old_one_and_both_are_kept(store: Store) -> None:
    run_id = run_of(store, "a")
    first, second = label("q0", "a", 1.0), label("q0", "a", 0.0)
    other = label("q0", "a", 1.0, rater="ben")
    for each in (first, second, other):
        assert store.add_labels([each]) == 1
    assert store.add_labels([second]) == 0
    assert [each.id for each in labels_of_run(store, run_id, "m")] == [second.id, other.id]
    assert label_values(labels_of_run(store, run_id), "m") == {(0, 0): 0.5}
    store.withdraw_label(other.id)
    assert [each.id for each in store.labels("m")] == [second.id]
    everything = store.labels(withdrawn=True)
    assert {each.id for each in everything} == {first.id, second.id, other.id}
    assert all(each.withdrawn_at for each in everything if each.id != second.id)


def test_who_could_not_say_counts_for_nothing_and_other_metrics_are_apart(store: Store) -> None:
    run_id = run_of(store, "a")
    store.add_labels([label("q0", "a", None), label("q0", "a", 1.0, metric="other")])
    found = labels_of_run(store, run_id)
    assert label_values(found, "m") == {}
    assert label_values(found, "other") == {(0, 0): 1.0}


def test_the_halves_of_labels_do_not_depend_on_what_else_is_there() -> None:
    labels = [label(f"q{each}", "a", 1.0, rater) for each in range(200) for rater in ("ana", "ben")]
    shown, held_out = split_labels(labels)
    assert 120 < len(shown) < 280
    assert not {each.subject for each in shown} & {each.subject for each in held_out}
    again, _ = split_labels(labels[:100])
    assert [each.id for each in again] == [each.id for each in shown if each in labels[:100]]
    assert split_labels(labels, held_out_share=0.0) == (labels, [])


def test_labels_travel_with_their_run(store: Store, tmp_path: Path) -> None:
    run_id = run_of(store, "a", "b")
    given = label("q1", "b", 0.25)
    given.note, given.probability, given.stratum, given.draw = "half right", 0.5, 2, "d1"
    store.add_labels([given, label("q9", "elsewhere", 1.0)])
    export_run(store, run_id, tmp_path / "run.json")
    with Store(tmp_path / "other.db") as other:
        import_run(other, tmp_path / "run.json")
        (found,) = labels_of_run(other, run_id)
        assert (found.value, found.note, found.probability, found.draw) == (0.25, "half right", 0.5, "d1")
        # Once more, under another id: the same label is not there twice.
        import_run(other, tmp_path / "run.json", run_id="again")
        assert len(other.labels(withdrawn=True)) == 1
