"""What every store of runs must do. Test modules import it and bring a fixture ``address``: an empty store's own.

Whoever imports it registers it for assertion rewriting first (``pytest.register_assert_rewrite``).
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kept_records import add_record

from agentunit.addons.judge.spend_table import spend_ledger
from agentunit.addons.watch.followed_table import FollowChanges, Followed, HourRow, StoredAlert
from agentunit.core.case import DatasetCase
from agentunit.core.codec import encode_record
from agentunit.core.records import Outcome, Record
from agentunit.core.results import MetricResult, Score
from agentunit.core.trace import TraceLog
from agentunit.engine.scoring import scored_run
from agentunit.engine.scoring.rescoring import score_run
from agentunit.engine.scoring.scored_run import infos_as_data, run_from_store
from agentunit.metrics.registry import resolve_metrics
from agentunit.store import open_store
from agentunit.store.erasure import erase_from, erasures_of, whom
from agentunit.store.labels import StoredLabel, labels_of_run, subject_of
from agentunit.store.portable import export_run, import_run
from agentunit.store.run_store import RunStore
from agentunit.store.runs import FIRST_AGAIN, RunSize, RunTaken, StoredDecision, WrittenRecord, is_again
from agentunit.store.schema import StoreError
from agentunit.store.score_blocks import ScoreBuffer


@pytest.fixture
def store(address: str) -> Iterator[RunStore]:
    with open_store(address) as opened:
        yield opened


def new_run(store: RunStore, name: str = "desk", **settings: object) -> str:
    return store.create_run(name, agentunit_version="1", settings=settings).id


def record(case_id: str, answer: str = "ok") -> Record:
    return Record(DatasetCase(case_id, "?"), TraceLog(), Outcome(output=answer))


def add_cases(store: RunStore, run: str, n: int, **facts: Any) -> None:
    for position in range(n):
        add_record(store, run, position, 0, record(f"q{position}"), **{"failed": False, "elapsed_s": 0.0, **facts})


def score(value: float | None, *, backend: str = "b", **detail: object) -> Score:
    status = "ok" if value is not None else "not_applicable"
    return Score(MetricResult("m", value, dict(detail)), status, backend, "1", 0.1)


def test_what_goes_in_comes_out_in_dataset_order(store: RunStore) -> None:
    run = new_run(store)
    for position in (2, 0, 1):
        add_record(store, run, position, 0, record(f"q{position}"), failed=position == 1, elapsed_s=position / 10)
    long = "again and again " * 1000
    add_record(store, run, 0, 1, record("q0", long), failed=False, elapsed_s=0.0)
    found = list(store.records(run))
    assert [(each.position, each.repeat, each.case_id, each.failed, each.elapsed_s) for each in found] == [
        (0, 0, "q0", False, 0.0), (0, 1, "q0", False, 0.0), (1, 0, "q1", True, 0.1), (2, 0, "q2", False, 0.2),
    ]  # fmt: skip
    assert found[1].record == record("q0", long)
    assert store.finished(run) == {(0, 0), (0, 1), (1, 0), (2, 0)}
    assert store.finished(run, failed=False) == {(0, 0), (0, 1), (2, 0)}
    assert [each.position for each in store.records(run, failed=True)] == [1]
    assert store.case_ids(run) == ["q0", "q1", "q2"]
    assert [(each.position, each.repeat, each.failed) for each in store.record_rows(run)] == [
        (0, 0, False), (0, 1, False), (1, 0, True), (2, 0, False),
    ]  # fmt: skip
    assert [each.repeat for each in store.case(run, "q0")] == [0, 1]
    assert store.case(run, "q0")[1].record == record("q0", long)
    assert (store.find_run(run).n_done, store.find_run(run).n_failed) == (4, 1)
    assert store.size(run) == (3, 4, 1, 2)


def test_records_that_are_known_are_not_read(store: RunStore) -> None:
    run = new_run(store)
    add_cases(store, run, 2)
    known = {(1, 0): record("q1", "of memory")}
    assert [each.record.outcome.output for each in store.records(run, known=known)] == ["ok", "of memory"]


def test_scores_come_back_with_their_detail_or_as_rows_without(store: RunStore) -> None:
    run = new_run(store)
    add_cases(store, run, 2)
    store.add_scores(run, 0, 0, {"a": score(0.5, words=3), "b": score(None, reason="no context")})
    [(place, scores)] = store.scores(run, case_id="q0")
    assert (place, list(scores)) == ((0, 0), ["a", "b"])
    first = scores["a"]
    assert (first.value, first.result.detail) == (0.5, {"words": 3})
    assert (first.status, first.backend, first.version, first.elapsed) == ("ok", "b", "1", 0.1)
    assert list(store.scores(run, case_id="q1")) == list(store.scores(run, case_id="nobody")) == []
    rows = dict(store.score_rows(run))
    assert (rows["a"].value, rows["a"].reason) == (0.5, None)
    assert (rows["b"].value, rows["b"].reason, rows["b"].status) == (None, "no context", "not_applicable")
    assert store.metrics_scored(run) == ["a", "b"]


def test_amounts_and_what_a_judge_took_are_read_without_details(store: RunStore) -> None:
    run = new_run(store)
    add_cases(store, run, 3)
    spent = {"model": "m", "calls": 2, "cached": 1, "prompt_tokens": 9}
    store.add_scores(run, 0, 0, {"e": score(0.5, kwh=2, other=7.5)})
    waiting = ScoreBuffer({"e": "kwh"})
    waiting.add(1, 0, {"e": score(0.5, kwh=3, other=8.5)})
    store.add_blocks(run, waiting.take())
    store.add_scores(run, 2, 0, {"e": score(None, reason="unknown")})
    store.add_scores(run, 0, 0, {"j": score(1.0, backend="judge", judge=spent, judge_values=[1, 0.5])})
    # Whether or not the key was known when they were written.
    for key, amounts in (("kwh", [2.0, 3.0, None]), ("other", [7.5, 8.5, None]), (None, [None] * 3)):
        assert [row.amount for row in store.metric_rows(run, "e", key)] == amounts
    (judged,) = (row.judged for row in store.metric_rows(run, "j"))
    assert judged is not None
    assert (judged.models, judged.n_calls, judged.values) == (("m",), 2, (1.0, 0.5))


def test_only_what_lacks_a_score_is_asked_for(store: RunStore) -> None:
    run = new_run(store)
    add_cases(store, run, 3)
    store.add_scores(run, 0, 0, {"a": score(1.0), "b": score(1.0)})
    store.add_scores(run, 1, 0, {"a": score(1.0)})
    assert [each.case_id for each in store.records(run, unscored_by=["a", "b"])] == ["q1", "q2"]
    assert [each.case_id for each in store.records(run, unscored_by=["a"])] == ["q2"]
    assert [store.n_records(run, unscored_by=metrics) for metrics in (["a", "b"], ["a"], ["c"], None)] == [2, 1, 3, 3]


def test_cases_that_are_recorded_anew_lose_their_old_scores(store: RunStore) -> None:
    run = new_run(store)

    def row(n: int, answer: str) -> WrittenRecord:
        return (run, n, 0, f"q{n}", 0, 0.1, encode_record(record(f"q{n}", answer)))

    rows = [row(n, "first") for n in range(70)]
    store.add_lines(rows[:2])
    for n in range(2):
        store.add_scores(run, n, 0, {"m": score(1.0), "n": score(0.0)})
    store.add_lines([row(1, "second"), *rows[2:]])
    answers = [each.record.outcome.output for each in store.records(run)]  # type: ignore[union-attr]
    assert answers == ["first", "second", *["first"] * 68]
    assert [(place, list(scores)) for place, scores in store.scores(run)] == [((0, 0), ["m", "n"])]


def test_reading_on_while_writing_sees_the_store_as_it_was(store: RunStore) -> None:
    run = new_run(store)
    store.add_lines([(run, n, 0, f"q{n}", 0, 0.0, encode_record(record(f"q{n}"))) for n in range(120)])
    seen = 0
    for each in store.records(run, unscored_by=["a"]):
        store.add_scores(run, each.position, each.repeat, {"a": score(1.0)})
        seen += 1
    assert seen == 120
    assert store.n_records(run, unscored_by=["a"]) == 0


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 600), st.integers(1, 300), st.booleans()), max_size=5), st.randoms())
def test_scores_in_any_order_are_those_of_a_dictionary(
    store: RunStore, batches: list[tuple[int, int, bool]], rng: random.Random
) -> None:
    """However scores come, are replaced or removed, what is read is what a dictionary would hold."""
    run = new_run(store)
    store.add_lines([(run, p, r, f"q{p}", 0, 0.0, b"{}") for p in range(0, 900, 3) for r in range(2)])
    held: dict[tuple[int, int], float | None] = {}
    for start, n, shuffled in batches:
        places = [(p, r) for p in range(start, start + n) if p % 3 == 0 for r in range(2)]
        if shuffled:
            rng.shuffle(places)
            places = places[: len(places) // 2]
        values = [rng.choice((None, 0.0, 1.0, rng.random())) for _ in places]
        waiting = ScoreBuffer()
        for place, value in zip(places, values, strict=True):
            waiting.add(*place, {"m": score(value, reason=f"r{place[1]}")})
        store.add_blocks(run, waiting.take())
        held.update(zip(places, values, strict=True))
        again = set(rng.sample(sorted(held), min(2, len(held))))
        store.add_lines([(run, *place, f"q{place[0]}", 0, 0.0, b"{}") for place in again])
        held = {place: value for place, value in held.items() if place not in again}
    rows = list(store.metric_rows(run, "m"))
    assert [(row.position, row.repeat) for row in rows] == sorted(held)
    assert {(row.position, row.repeat): row.value for row in rows} == held
    assert all(row.reason == (f"r{row.repeat}" if row.value is None else None) for row in rows)
    stored = list(store.scores(run))
    assert {place: scores["m"].value for place, scores in stored} == held
    assert all(scores["m"].result.detail == {"reason": f"r{place[1]}"} for place, scores in stored)
    store.delete_run(run)


def test_a_run_is_summed_up_alike_whether_it_is_held_or_read_again(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics = resolve_metrics(["exact_match", "cost", "response_time", "tool_success"])
    settings = {"metrics": [metric.name for metric in metrics], "metric_infos": infos_as_data(metrics)}
    rng = random.Random(7)
    for n_repeats in (1, 2):
        run = new_run(store, **settings)
        rows = []
        for position in range(300):
            for repeat in range(n_repeats):
                answer = rng.choice(("yes", "no", ""))
                case = DatasetCase(f"q{position}", "?", expected_output="yes" if position % 9 else None)
                outcome = Outcome(output=answer, elapsed_s=rng.random(), cost=rng.random() if position % 2 else None)
                line = encode_record(Record(case, TraceLog(), outcome))
                rows.append((run, position, repeat, case.id, int(position % 50 == 0), 0.1, line))
        store.add_lines(rows)
        score_run(store, run, metrics)
        held = run_from_store(store, run)
        with monkeypatch.context() as patch:
            patch.setattr(scored_run, "MOST_HELD", 0)
            read = run_from_store(store, run)
        assert read.summary() == held.summary()
        assert (list(read.records), read.n_repeats) == (list(held.records), n_repeats)
        for name, of_metric in held.metrics.items():
            assert (list(read.metrics[name]), len(read.metrics[name])) == (of_metric, len(of_metric))


def with_tries_again(store: RunStore, places: list[tuple[int, int]]) -> str:
    """A run of three cases, with these tries again that all fail."""
    metrics = resolve_metrics(["exact_match"])
    run = new_run(store, metrics=["exact_match"], metric_infos=infos_as_data(metrics))
    for position, repeat in [(0, 0), (1, 0), (2, 0), *((at, FIRST_AGAIN + number) for at, number in places)]:
        case = DatasetCase(f"q{position}", "?", expected_output="yes")
        answer = "no" if is_again(repeat) or position == 1 else "yes"
        made = Record(case, TraceLog(), Outcome(output=answer))
        add_record(store, run, position, repeat, made, failed=is_again(repeat), elapsed_s=0.1)
    score_run(store, run, metrics)
    assert {row.repeat for row in store.metric_rows(run, "exact_match")} == {0}
    score_run(store, run, metrics, tries_again=True)
    return run


@pytest.mark.parametrize("most_held", [0, 20_000])
def test_tries_again_enter_no_figure_of_a_run(store: RunStore, most_held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, run = with_tries_again(store, []), with_tries_again(store, [(1, 0), (1, 1), (0, 0)])
    monkeypatch.setattr(scored_run, "MOST_HELD", most_held)
    without, read = run_from_store(store, plain), run_from_store(store, run)
    assert (read.header.n_done, read.header.n_failed) == (3, 0)
    assert store.size(run) == RunSize(n_cases=3, n_records=3, n_failed=0, n_repeats=1)
    assert (read.n_cases, read.n_records, read.n_failed, read.n_repeats) == (3, 3, 0, 1)
    assert read.summary() == without.summary()
    assert list(read.records) == list(without.records)
    assert list(read.metrics["exact_match"]) == list(without.metrics["exact_match"])
    assert len(read.metrics["exact_match"]) == 3
    again = [(0, FIRST_AGAIN), (1, FIRST_AGAIN), (1, FIRST_AGAIN + 1)]
    assert [(row.position, row.repeat) for row in read.again_records] == again
    assert [(row.position, row.repeat, row.value) for row in read.again_metrics["exact_match"]] == [
        (*place, 0.0) for place in again
    ]
    assert (without.again_records, without.again_metrics) == ([], {})
    # Whoever shows cases sees every try.
    assert read.read_records is not None
    assert len(list(read.read_records())) == len(store.finished(run)) == 6
    assert len(read.to_rows()) == 6


def test_tries_again_are_deleted_with_their_scores(store: RunStore) -> None:
    run = with_tries_again(store, [(1, 0), (1, 1), (0, 0)])
    store.delete_records(run, {(1, FIRST_AGAIN), (1, FIRST_AGAIN + 1)})
    assert [(row.position, row.repeat) for row in store.record_rows(run, again=True)] == [(0, FIRST_AGAIN)]
    assert [row.repeat for row in store.metric_rows(run, "exact_match")] == [0, FIRST_AGAIN, 0, 0]
    assert erase_from(store, whom("case=q0")).n_records == 2
    assert [(row.position, row.repeat) for row in store.record_rows(run)] == [(1, 0), (2, 0)]


def test_tries_again_have_no_labels_of_the_answers_they_repeat(store: RunStore) -> None:
    run = with_tries_again(store, [(1, 0)])
    other = with_tries_again(store, [])
    (labeled,) = store.case(other, "q1")
    store.add_labels([StoredLabel(subject_of(labeled.record), "exact_match", "q1", 0.0, "ana", run_id=other)])
    found = run_from_store(store, run)
    assert [label.place for label in found.labels] == [(1, 0)]
    assert set(found.frames["exact_match"]) == {(0, 0), (1, 0), (2, 0)}


def decision(made_by: str = "run", verdict: str | None = "pass", **content: Any) -> StoredDecision:
    text = msgspec.json.encode({"verdict": verdict, **content})
    return StoredDecision(1.5, made_by, verdict, f"{verdict}: {made_by}", msgspec.Raw(text))


def test_decisions_are_kept_in_order_and_the_newest_of_the_run_for_good(store: RunStore) -> None:
    run, other = new_run(store), new_run(store, "other")
    made = [decision("run", "fail", cases=["q1"] * 2_000), decision("rerun"), decision("gate", None)]
    for each in made:
        store.add_decision(run, each)
    assert (store.decisions(run), store.n_decisions(run), store.n_decisions(other)) == (made, 3, 0)
    assert store.own_decisions() == {run: ("pass", "pass: rerun")}
    for number in range(30):
        store.add_decision(run, decision("compare", "fail", number=number))
    kept = store.decisions(run)
    assert [each.made_by for each in kept] == ["rerun", *["compare"] * 20]
    assert store.n_decisions(run) == 33
    assert msgspec.json.decode(kept[-1].decision)["number"] == 29
    assert store.own_decisions() == {run: ("pass", "pass: rerun")}
    store.add_decision(other, decision("gate"))
    store.delete_run(run)
    assert (store.decisions(run), store.own_decisions()) == ([], {})
    assert store.decisions(other) == [decision("gate")]
    assert run_from_store(store, other).decisions == [decision("gate")]


def test_decisions_that_quote_what_is_erased_go_with_it(store: RunStore) -> None:
    runs = [new_run(store, name, history={"q0": 3}) for name in ("with", "compared", "without")]
    for number, run in enumerate(runs):
        add_record(store, run, 0, 0, record(f"q{number}"), failed=False, elapsed_s=0.0)
    store.add_decision(runs[0], decision())
    store.add_decision(runs[1], decision("compare", cases=["q0"]))
    store.add_decision(runs[1], decision("gate", cases=["q01"]))
    store.add_decision(runs[2], decision())
    erase_from(store, whom("case=q0"))
    assert [[each.made_by for each in store.decisions(run)] for run in runs] == [[], ["gate"], ["run"]]
    assert [bool(run_from_store(store, run).history) for run in runs] == [False, True, True]


def test_runs_are_found_by_id_beginning_name_and_last(store: RunStore) -> None:
    first = store.create_run("desk", agentunit_version="1", settings={}, run_id="2026-aa", created_at=1.0)
    second = store.create_run("desk", agentunit_version="1", settings={}, run_id="2026-ab", created_at=2.0)
    assert store.find_run("2026-aa").id == first.id
    assert store.find_run("2026-ab").id == store.find_run("last").id == store.find_run("desk").id == second.id
    assert store.find_run("last~1").id == first.id
    with pytest.raises(StoreError, match="'2026' is a part of the ids of 2 runs"):
        store.find_run("2026")
    with pytest.raises(StoreError, match="no run is called 'nightly'; the newest is 2026-ab"):
        store.find_run("nightly")
    with pytest.raises(StoreError, match="holds 2 runs"):
        store.find_run("last~2")
    store.delete_run("2026-ab")
    assert store.find_run("last").id == "2026-aa"


def test_the_last_run_is_the_one_begun_last_whatever_the_clock_says(store: RunStore) -> None:
    for run_id, created_at in (("first", 2000.0), ("second", 1000.0), ("third", 1500.0)):
        store.create_run("desk", agentunit_version="1", settings={}, run_id=run_id, created_at=created_at)
    store.create_run("old", agentunit_version="1", settings={}, run_id="old", created_at=900.0, by_date=True)
    assert [run.id for run in store.runs()] == ["third", "second", "first", "old"]
    assert store.find_run("last").id == store.find_run("desk").id == "third"
    assert store.find_run("last~2").id == "first"


def test_what_a_run_says_can_be_changed(store: RunStore) -> None:
    run = new_run(store, gates=["cost <= 1"])
    store.update_run(run, {"tags": {"model": "x\0"}}, n_planned=7)
    store.set_status(run, "stopped")
    header = store.find_run(run)
    assert (header.status, header.n_planned, header.tags, header.finished_at) == ("stopped", 7, {"model": "x\0"}, None)
    store.set_status(run, "finished", finished_at=5.0)
    assert store.find_run(run).finished_at == 5.0


def test_deleting_a_run_takes_its_records_and_scores_along(store: RunStore) -> None:
    run, other = new_run(store), new_run(store)
    for each in (run, other):
        add_cases(store, each, 1)
        store.add_scores(each, 0, 0, {"a": score(1.0)})
    store.delete_run(run)
    assert list(store.records(run)) == list(store.scores(run)) == store.metrics_scored(run) == []
    assert len(list(store.scores(other))) == 1


def test_an_empty_store_says_so(store: RunStore) -> None:
    with pytest.raises(StoreError, match="holds no runs yet"):
        store.find_run("last")


def test_what_a_transaction_did_not_finish_is_not_there(store: RunStore) -> None:
    def stopped() -> None:
        with store.transaction():
            run = new_run(store)
            add_cases(store, run, 2)
            with store.transaction():
                store.add_scores(run, 0, 0, {"a": score(1.0)})
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert store.runs() == []


def test_a_store_that_is_only_read_changes_nothing_and_sees_what_is_written(store: RunStore, address: str) -> None:
    run = new_run(store)
    add_cases(store, run, 2)
    with open_store(address, read_only=True) as reader, store.reopened() as again:
        add_cases(store, run, 3)
        assert reader.find_run("last").n_done == again.find_run("last").n_done == 3
        with pytest.raises(StoreError, match=r"cannot be written: .*(readonly|read-only)"):
            add_cases(reader, run, 4)
        with pytest.raises(StoreError, match=r"cannot be written: .*(readonly|read-only)"):
            again.delete_run(run)
    assert store.find_run(run).n_done == 3


def test_a_running_run_that_nobody_records_was_interrupted(store: RunStore, address: str) -> None:
    run = new_run(store)
    assert store.find_run(run).status == store.runs()[0].status == "interrupted"
    with store.recording(run):
        assert store.find_run(run).status == "running"
        with open_store(address, read_only=True) as reader:
            assert reader.find_run(run).status == "running"
        with open_store(address) as other, pytest.raises(RunTaken, match="is being recorded by another process"):
            other.recording(run).__enter__()
    assert store.find_run(run).status == "interrupted"
    with store.recording(run):
        store.set_status(run, "finished")
    assert store.find_run(run).status == "finished"


def test_texts_of_any_kind_are_kept(store: RunStore) -> None:
    run = new_run(store)
    odd = "it's 100% \"é😀\\ {} ? %s $1 \u2028"
    add_record(store, run, 0, 0, record(odd, odd), failed=False, elapsed_s=0.0)
    store.add_scores(run, 0, 0, {odd: score(None, reason=odd)})
    store.add_scores(run, 0, 0, {"nul": score(None, reason="a\0b", quoted="\0")})
    assert [each.record.outcome.output for each in store.case(run, odd)] == [odd]  # type: ignore[union-attr]
    [(_, scores)] = store.scores(run, case_id=odd)
    assert scores[odd].result.detail == {"reason": odd}
    assert scores["nul"].result.detail == {"reason": "a\0b", "quoted": "\0"}
    assert [row.reason for row in store.metric_rows(run, odd)] == [odd]


def test_a_run_goes_to_a_file_and_back(store: RunStore, tmp_path: Any) -> None:
    run = new_run(store)
    add_cases(store, run, 3)
    store.add_scores(run, 1, 0, {"a": score(0.25, why="so")})
    store.set_status(run, "finished")
    assert export_run(store, run, tmp_path / "run.json.gz") == 3
    copied = import_run(store, tmp_path / "run.json.gz", run_id="copy")
    assert (copied.n_done, copied.is_foreign) == (3, True)
    assert list(store.scores("copy")) == list(store.scores(run))
    assert [each.record for each in store.records("copy")] == [each.record for each in store.records(run)]


WRITER = """
import sys
from agentunit import DatasetCase, Outcome, Record, TraceLog, encode_record
from agentunit.core.results import MetricResult, Score
from agentunit.store import open_store
from agentunit.store.erasure import whom
from agentunit.addons.watch.followed_table import FollowChanges, HourRow, StoredAlert
store = open_store(sys.argv[1])
run, start, step, count = sys.argv[2], *map(int, sys.argv[3:])
with store.recording(run + sys.argv[3]):
    for position in range(start, start + step * count, step):
        record = Record(DatasetCase(f"q{position}"), TraceLog(), Outcome(output="x"))
        store.add_lines([(run, position, 0, record.case.id, 0, 0.0, encode_record(record))])
        store.add_scores(run, position, 0, {"a": Score(MetricResult("a", 1.0, {}), "ok", "b", "1", 0.0)})
        print(position, flush=True)
    with store.transaction():
        store.create_run("unfinished", agentunit_version="1", settings={})
        print("waiting", flush=True)
        sys.stdin.readline()
"""


def writer(address: str, run: str, *, start: int, step: int, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, address, run, str(start), str(step), str(count)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_two_processes_write_at_once_and_nothing_is_lost(store: RunStore, address: str) -> None:
    run = new_run(store)
    # One writes the even cases, the other the odd ones: their scores fall into the same blocks.
    writers = [writer(address, run, start=start, step=2, count=60) for start in (0, 1)]
    for each in writers:
        assert each.stdin is not None
        each.stdin.write("go on\n")
        each.stdin.flush()
    for each in writers:
        each.communicate(timeout=120)
    assert [each.returncode for each in writers] == [0, 0]
    assert store.finished(run) == {(position, 0) for position in range(120)}
    assert [row.position for row in store.metric_rows(run, "a")] == list(range(120))


def test_a_part_of_a_run_is_read_without_the_rest(store: RunStore) -> None:
    run = new_run(store)
    assert (store.bounds(run), store.n_blocks(run), list(store.lines(run))) == (None, 0, [])
    add_cases(store, run, 300)
    for position in range(300):
        store.add_scores(run, position, 0, {"m": score(float(position % 2)), "n": score(position / 300, n=position)})
    assert store.bounds(run) == (0, 299)
    assert store.n_blocks(run) > 2
    assert (store.is_pass_fail(run, "m"), store.is_pass_fail(run, "n")) == (True, False)
    for places in ([(7, 0), (8, 0), (6, 0)], [(299, 0), (3, 0), (150, 0), (400, 0), (3, 1)]):
        lines = list(store.lines(run, places))
        assert [line[3] for line in lines] == [f"q{at}" for at, repeat in places if at < 300 and repeat == 0]
        assert lines[0][6] == encode_record(record(lines[0][3]))
    near = [place for block in store.blocks(run, "n", within=(100, 101)) for place in block.places()]
    assert {(100, 0), (101, 0)} <= set(near)
    assert len(near) < 300
    scores = store.scores_at(run, 150, 0)
    assert (list(scores), scores["n"].result.detail) == (["m", "n"], {"n": 150})


def test_labels_stand_until_they_are_replaced_or_taken_back(store: RunStore, address: str) -> None:
    run = new_run(store)
    add_cases(store, run, 2)
    subject = subject_of(record("q1"))
    first, second = (StoredLabel(subject, "m", "q1", value, "ana") for value in (1.0, 0.0))
    other = StoredLabel(subject, "m", "q1", None, "ben", note="half right")
    assert [store.add_labels([each]) for each in (first, second, other, other)] == [1, 1, 1, 0]
    with open_store(address) as elsewhere:
        assert [(each.id, each.place) for each in labels_of_run(elsewhere, run)] == [
            (second.id, (1, 0)),
            (other.id, (1, 0)),
        ]
    store.withdraw_label(other.id)
    assert [each.id for each in store.labels("m")] == [second.id]
    assert [each.withdrawn_at is None for each in store.labels(withdrawn=True)] == [False, True, False]
    assert store.labels("another") == []
    store.delete_run(run)
    assert len(store.labels(withdrawn=True)) == 3


def test_what_was_reported_survives_kill_9(store: RunStore, address: str) -> None:
    run = new_run(store)
    with writer(address, run, start=0, step=1, count=20) as killed:
        assert killed.stdout is not None
        reported = [killed.stdout.readline().strip() for _ in range(21)]
        # It is within a transaction now, and holds a lock.
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait()
    assert reported == [*map(str, range(20)), "waiting"]
    with open_store(address) as after:
        assert after.finished(run) == {(position, 0) for position in range(20)}
        assert [row.position for row in after.metric_rows(run, "a")] == list(range(20))
        assert [header.name for header in after.runs()] == ["desk"]


def test_what_is_of_a_user_is_erased_with_its_scores_and_labels(store: RunStore) -> None:
    run = store.create_run("suite", agentunit_version="0.1", settings={})
    for position, user in enumerate(("u-1", "u-2", "u-1")):
        case = DatasetCase(f"q{position}", "Hi", metadata={"user_id": user})
        record = Record(case, TraceLog(), outcome=f"answer {position}")
        add_record(store, run.id, position, 0, record, failed=False, elapsed_s=0.1)
        store.add_scores(run.id, position, 0, {"m": score(1.0)})
        store.add_labels([StoredLabel(subject_of(record), "m", case.id, 1.0, "ana")])
    erased = erase_from(store, whom("user=u-1"))
    assert (erased.n_records, erased.n_runs, erased.n_labels) == (2, 1, 2)
    assert store.case_ids(run.id) == ["q1"]
    assert [row.position for row in store.metric_rows(run.id, "m")] == [1]
    assert [label.case_id for label in store.labels(withdrawn=True)] == ["q1"]
    assert [(each.kind, each.n_records) for each in erasures_of(store)] == [("user", 2)]
    assert "u-1" not in repr(erasures_of(store))


def test_old_runs_are_erased_by_age(store: RunStore) -> None:
    old = store.create_run("old", agentunit_version="0.1", settings={}, created_at=1_000.0)
    new = store.create_run("new", agentunit_version="0.1", settings={})
    add_record(store, old.id, 0, 0, Record(DatasetCase("q", "Hi"), outcome="x"), failed=False, elapsed_s=0.1)
    assert erase_from(store, whom("older=30d"))[1:] == ("older", 1, 1, 0)
    assert [run.id for run in store.runs()] == [new.id]


def test_a_masked_store_keeps_no_personal_data(store: RunStore) -> None:
    store.masking.turn_on()
    run = store.create_run("suite", agentunit_version="0.1", settings={})
    case = DatasetCase("q", "I am Mia Lindqvist, mia@example.org")
    add_record(store, run.id, 0, 0, Record(case, outcome="Hello Mia Lindqvist"), failed=False, elapsed_s=0.1)
    (kept,) = (each.record for each in store.case(run.id, "q"))
    # Not "mia", which a pseudonym's random letters may hold.
    assert not re.search("lindqvist|mia@|Mia", f"{kept.case.query} {kept.outcome}")
    assert str(kept.outcome).removeprefix("Hello ") in str(kept.case.query)  # the same pseudonym


def test_a_masked_store_masks_what_people_write_beside_records(store: RunStore) -> None:
    store.masking.turn_on()
    tags = {"owner": "mia.lindqvist@example.org", "model": "gpt-4o"}
    run = store.create_run("for mia.lindqvist@example.org", agentunit_version="0.1", settings={"tags": tags})
    store.update_run(run.id, {"tags": tags}, n_planned=1)
    record = Record(DatasetCase("q", "Hi"), outcome="x")
    store.add_labels([StoredLabel(subject_of(record), "m", "q", 1.0, "ana", note="ask mia.lindqvist@example.org")])
    (label,) = store.labels()
    kept = store.find_run(run.id)
    quoting = decision(why="asked mia.lindqvist@example.org")
    store.add_decision(run.id, msgspec.structs.replace(quoting, headline="FAIL: mia.lindqvist@example.org"))
    (decided,) = store.decisions(run.id)
    assert "lindqvist" not in f"{decided.headline} {bytes(decided.decision).decode()}"
    assert "lindqvist" not in f"{kept.name} {kept.settings} {label.note}"
    assert kept.tags["model"] == "gpt-4o"
    assert kept.tags["owner"] == kept.name.removeprefix("for ") == label.note.removeprefix("ask ")


def test_a_masked_store_masks_the_scores_that_are_written_into_it(store: RunStore) -> None:
    store.masking.turn_on()
    run = store.create_run("suite", agentunit_version="0.1", settings={})
    record = Record(DatasetCase("q", "I am mia@example.org"), outcome="Hello mia@example.org")
    add_record(store, run.id, 0, 0, record, failed=False, elapsed_s=0.1)
    (case,) = store.case(run.id, "q")
    mask = str(case.record.outcome).removeprefix("Hello ")
    said = Score(
        MetricResult("said", 0.5, {"quote": "mia@example.org"}), "ok", "20261116", "1", 0.25, "mia@example.org"
    )
    unsaid = Score(MetricResult("unsaid", None, {"reason": "to mia@example.org"}), "not_applicable", "b", "1")
    waiting = ScoreBuffer()
    waiting.add(0, 0, {"said": said, "unsaid": unsaid})
    store.add_blocks(run.id, waiting.take())
    [(_, scores)] = store.scores(run.id)
    kept = scores["said"]
    assert (kept.value, kept.result.detail, kept.why, kept.elapsed) == (0.5, {"quote": mask}, mask, 0.25)
    assert (kept.status, kept.backend, kept.version) == ("ok", "20261116", "1")
    assert scores["unsaid"].result.detail == {"reason": f"to {mask}"}
    [block] = store.blocks(run.id, "unsaid")
    assert block.reasons == {0: f"to {mask}"}


def test_a_run_that_is_read_into_a_masked_store_is_masked_with_its_scores_and_labels(
    store: RunStore, tmp_path: Path
) -> None:
    store.masking.turn_on()
    record = Record(DatasetCase("q", "I am mia@example.org"), outcome="Hello mia@example.org")
    with open_store(tmp_path / "plain.db") as plain:
        run = plain.create_run("suite", agentunit_version="0.1", settings={})
        add_record(plain, run.id, 0, 0, record, failed=False, elapsed_s=0.1)
        quoting = score(1.0, quote="mia@example.org")
        plain.add_scores(run.id, 0, 0, {"m": quoting})
        plain.add_labels([StoredLabel(subject_of(record), "m", "q", 1.0, "ana", run_id=run.id)])
        export_run(plain, run.id, tmp_path / "run.json")
    import_run(store, tmp_path / "run.json")
    (case,) = store.case(run.id, "q")
    assert "mia@example.org" not in repr(case)
    [(_, scores)] = store.scores(run.id)
    assert scores["m"].result.detail["quote"] == str(case.record.outcome).removeprefix("Hello ")
    assert [label.subject for label in labels_of_run(store, run.id)] == [subject_of(case.record)]


def test_a_store_with_plain_text_cannot_become_a_masked_one(store: RunStore) -> None:
    run = store.create_run("suite", agentunit_version="0.1", settings={})
    add_record(store, run.id, 0, 0, Record(DatasetCase("q", "Hi"), outcome="x"), failed=False, elapsed_s=0.1)
    with pytest.raises(StoreError, match="holds runs with text as it was"):
        store.masking.turn_on()
    assert not store.masking.is_on


def test_what_is_followed_is_kept_together(store: RunStore) -> None:
    followed = Followed(store.database, "follow-1")
    assert followed.begin("traces", 1_000.0) is None
    changes = FollowChanges(
        '{"n":1}',
        files={"1:2": "{}", "1:3": "{}"},
        seen=[-(1 << 63), 5, (1 << 63) - 1],
        day=10,
        series={"a": "x"},
        hours=[HourRow("a", 100, 2, 1.5), HourRow("a", 101, 1, 1.0)],
        alerts=[StoredAlert(1, 2_000.0, '{"cases":["c1","c2"]}')],
    )
    followed.keep(changes)
    followed.keep(FollowChanges('{"n":2}', files={"1:3": None}, seen=[5], day=11, hours=[HourRow("a", 101, 1, 0.5)]))
    assert Followed(store.database, "follow-2").begin("other", 0.0) is None
    again = Followed(store.database, "follow-1")
    assert again.begin("traces", 1_001.0) == '{"n":2}'
    assert (again.files(), again.series()) == (["{}"], {"a": "x"})
    assert again.seen([5, 6, (1 << 63) - 1]) == {5, (1 << 63) - 1}
    assert [(row.hour, row.n, row.total) for row in again.hours(0)] == [(100, 2, 1.5), (101, 2, 1.5)]
    erase_from(store, whom("case=c1"))
    assert again.alerts(undelivered=True)[0].alert == '{"cases":["(erased)","c2"]}'
    again.mark_delivered([1])
    assert again.alerts(undelivered=True) == []
    again.forget(seen_before_day=11, before_hour=101)
    assert again.seen([5, (1 << 63) - 1]) == set()
    assert [row.hour for row in again.hours(0)] == [101]
    erase_from(store, whom("older=1h"))
    assert (again.alerts(), again.hours(0)) == ([], [])


def test_what_is_followed_is_kept_whole_or_not_at_all(store: RunStore) -> None:
    followed = Followed(store.database, "follow-1")
    followed.begin("traces", 1_000.0)
    with suppress(RuntimeError), store.transaction():
        followed.keep(FollowChanges('{"n":1}', seen=[5], day=10))
        raise RuntimeError("killed")
    assert Followed(store.database, "follow-1").begin("traces", 1_000.0) == ""
    assert followed.seen([5]) == set()


def test_processes_that_share_a_run_share_what_its_judge_may_cost(store: RunStore) -> None:
    run = new_run(store)
    one, other = spend_ledger(store, run, "0"), spend_ledger(store, run, "0")
    assert one.set_aside("a", 1.0, 2.0)
    assert other.set_aside("b", 1.0, 2.0)
    assert (one.set_aside("c", 1.0, 2.0), other.set_aside("c", 1.0, 2.0)) == (False, False)
    one.settle("a", 0.5)
    assert not other.set_aside("c", 1.0, 2.0)
    other.settle("b", 0.5)
    assert one.set_aside("c", 1.0, 2.0)
    assert one.total_usd == 2.0
    one.close()
    other.close()


def test_what_a_judge_may_have_cost_a_run_outlives_a_killed_process(store: RunStore) -> None:
    run, other = new_run(store), new_run(store)
    ledger = spend_ledger(store, run, "0")
    for call in ("a", "b", "c"):
        assert ledger.set_aside(call, 1.0, 3.0)
    ledger.settle("a", 0.25)
    ledger.settle("b", 0.0)
    ledger.close()
    # The process was killed while "c" was under way: it may have been billed.
    again = spend_ledger(store, run, "0")
    assert again.total_usd == 1.25
    assert not again.set_aside("d", 1.0, 2.0)
    assert again.set_aside("c", 1.0, 1.25)
    again.settle("c", 0.5)
    assert again.total_usd == 0.75
    again.close()
    for run_id, judge, total_usd in ((run, "0", 0.75), (run, "1", 0.0), (other, "0", 0.0)):
        ledger = spend_ledger(store, run_id, judge)
        assert ledger.total_usd == total_usd
        ledger.close()
    store.delete_run(run)
