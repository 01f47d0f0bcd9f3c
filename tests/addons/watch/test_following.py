"""The follower: what is counted, sampled, kept and noticed, and what is left after it was killed."""

from __future__ import annotations

import gzip
import json
import os
import random
from pathlib import Path

import pytest
from followed_traces import record_line, span_line

from agentunit.addons.watch.collector.spool import SpanSpool
from agentunit.addons.watch.followed_table import Followed
from agentunit.addons.watch.following.follower import TraceFollower
from agentunit.addons.watch.following.sampling import fraction_of, has_failed, identity_of
from agentunit.addons.watch.following.series import SeriesKey
from agentunit.addons.watch.following.state import MOST_SLICES, OTHER, FollowSettings, Retention
from agentunit.core.codec import decode_record
from agentunit.metrics.registry import resolve_metrics
from agentunit.store.erasure import erase_from, whom
from agentunit.store.sqlite import Store

DAY = 86_400.0
START = 1_700_000_000.0
TOOLS = SeriesKey("tool_success", "trace")


class Place:
    """A folder that is followed, with a clock that stands where the test puts it."""

    def __init__(self, folder: Path) -> None:
        self.source = folder / "in"
        self.source.mkdir()
        self.now = START + 100 * DAY
        self.folder = folder
        self.store = Store(folder / "runs.db")
        self.spool = SpanSpool(folder)
        self.alerts: list = []

    def write(self, *lines: str, name: str = "a.jsonl") -> None:
        path = self.source / name
        with path.open("a", encoding="utf-8") as stream:
            stream.writelines(lines)
        os.utime(path, (self.now, self.now))

    def follower(self, metrics=("tool_success",), **settings) -> TraceFollower:
        return TraceFollower(
            self.store,
            [str(self.source)],
            resolve_metrics(list(metrics)),
            FollowSettings(**settings),
            self.spool,
            on_alert=self.alerts.append,
            now=lambda: self.now,
        )

    def close(self) -> None:
        self.store.close()
        self.spool.close()


@pytest.fixture
def place(tmp_path):
    made = Place(tmp_path)
    yield made
    made.close()


def test_each_trace_counts_once_also_after_a_restart(place):
    place.write(*(record_line(number, passed=number % 4 > 0) for number in range(300)))
    assert place.follower().step() == 300
    follower = place.follower()
    assert follower.step() == 0
    place.write(record_line(299), record_line(300), name="b.jsonl")  # one of them is known
    assert follower.step() == 1
    assert follower.state.counts == {"arrived": 301, "scored": 301, "repeated": 1}
    series = follower.series[TOOLS]
    assert (series.n, series.total) == (301, 226.0)
    assert series.statuses == {"ok": 301}
    assert sum(series.histogram) == 301


def test_a_transaction_that_is_not_finished_leaves_nothing(place, monkeypatch):
    place.write(*(record_line(number) for number in range(40)))
    follower = place.follower(keep=Retention(False))
    keep = follower._followed.keep

    def fail(changes):
        keep(changes)
        raise RuntimeError("the power is gone")

    monkeypatch.setattr(follower._followed, "keep", fail)
    with pytest.raises(RuntimeError):
        follower.step()
    again = place.follower(keep=Retention(False))
    assert (again.state.counts, again.series) == ({}, {})
    assert place.store.runs() == []
    assert again.step() == 40
    assert again.series[TOOLS].n == 40
    assert place.store.runs()[0].n_done == 40


def test_spans_of_a_trace_are_scored_when_it_is_quiet(place):
    place.write(span_line(1, "agent", "search"), name="a.jsonl")
    place.write(span_line(1, "book", root=False, first=3), span_line(2, "search", root=False), name="b.jsonl")
    follower = place.follower()
    assert follower.step() == 0
    assert follower.n_open == 2
    place.now += 10
    assert follower.step() == 1  # the other one has no root yet
    place.now += 60
    assert follower.step() == 1
    place.write(span_line(1, "late", root=False, first=4))
    place.now += 100
    assert follower.step() == 0
    assert follower.state.counts == {"arrived": 2, "scored": 2, "late_spans": 1}


def test_a_kill_between_store_and_spool_doubles_nothing(place, monkeypatch):
    place.write(span_line(1, "agent", "search"))
    place.now += 100
    follower = place.follower()

    def die(trace_id, revision):
        raise RuntimeError("killed")

    monkeypatch.setattr(place.spool, "mark_written", die)
    with pytest.raises(RuntimeError):
        follower.step()
    monkeypatch.undo()
    again = place.follower()
    assert again.n_open == 1
    assert again.step() == 0
    assert again.n_open == 0
    assert again.state.counts == {"arrived": 1, "scored": 1}


def test_records_without_ids_and_times_are_all_counted(place):
    line = '{"v":1,"case":{"id":"q"},"outcome":"4"}\n'
    place.write(line, line)
    timed = '{"v":1,"case":{"id":"q"},"trace":{"events":[{"type":"x","timestamp":1700000000}]},"outcome":"4"}\n'
    place.write(timed, timed, name="b.jsonl")
    follower = place.follower()
    assert follower.step() == 3
    assert follower.state.counts["repeated"] == 1


def test_the_sample_is_chosen_by_ids_and_holds_all_failures(place):
    place.write(*(record_line(number, failed=number % 50 == 0) for number in range(1_000)))
    follower = place.follower(sample=0.1)
    follower.step()
    chosen = {f"t{number}" for number in range(1_000) if fraction_of(f"t{number}") < 0.1}
    failed = {f"t{number}" for number in range(0, 1_000, 50)}
    counts = follower.state.counts
    assert counts["scored"] == len(chosen | failed)
    assert counts["not_sampled"] == 1_000 - counts["scored"]
    assert counts["failed"] == 20
    # The mean is that of a random sample; failures beside it are only counted.
    assert follower.series[TOOLS].n == len(chosen)
    assert follower.series[TOOLS].statuses["ok"] == counts["scored"]
    assert follower.series[SeriesKey("failed", "trace")].mean == 0.02  # of all traces


def test_rare_slices_are_sampled_as_a_whole_and_do_not_move_the_mean(place):
    lines = [record_line(number, kind="rare" if number % 100 == 0 else "usual") for number in range(1_000)]
    place.write(*lines)
    follower = place.follower(sample=0.05, by="metadata.kind")
    follower.step()
    assert follower.series[SeriesKey("tool_success", "trace", "rare")].n == 10
    chosen = sum(fraction_of(f"t{number}") < 0.05 for number in range(1_000))
    assert follower.series[TOOLS].n == chosen


def test_slices_have_a_bound(place):
    place.write(*(record_line(number, user=f"u{number}") for number in range(200)))
    follower = place.follower(by="metadata.user")
    follower.step()
    slices = {key.slice for key in follower.series if key.slice}
    assert len(slices) == MOST_SLICES + 1
    assert OTHER in slices


def test_a_change_is_told_with_its_time_and_its_cases(place):
    source = random.Random(0)
    first = START + 10 * DAY
    lines = []
    for number in range(2_300):
        passed = source.random() < (0.95 if number < 2_000 else 0.5)
        lines.append(record_line(number, passed=passed, at=first + number * 600))
    place.write(*lines)
    follower = place.follower()
    follower.step()
    (alert,) = place.alerts
    assert (alert.metric, alert.kind, alert.direction, alert.is_worse) == ("tool_success", "value", "fell", True)
    assert alert.before == pytest.approx(0.95, abs=0.02)
    assert alert.after < 0.8
    assert abs((alert.since - first) / 600 - 2_000) < 40
    assert alert.cases
    assert all(int(case[1:]) > 1_900 for case in alert.cases)
    assert [each.number for each in place.follower().undelivered()] == [1]
    place.follower().mark_delivered([1])
    assert place.follower().undelivered() == []


def test_a_metric_that_loses_its_scores_is_noticed(place):
    lines = [record_line(number, at=START + number * 600) for number in range(1_000)]
    nothing = [
        f'{{"v":1,"case":{{"id":"n{number}"}},"trace":{{"events":[{{"type":"x","timestamp":{START + number * 600}}}],'
        f'"metadata":{{"trace_id":"n{number}"}}}},"outcome":{{"output":"?"}}}}\n'
        for number in range(1_000, 1_100)
    ]
    place.write(*lines, *nothing)
    place.follower().step()
    assert [(alert.metric, alert.kind, alert.direction) for alert in place.alerts] == [
        ("tool_success", "scored", "fell")
    ]


def test_a_stored_run_is_a_baseline(place):
    place.write(*(record_line(number, passed=number % 2 > 0, at=START + number * 600) for number in range(100)))
    follower = place.follower(baseline={("tool_success", "trace"): [1.0] * 300}, baseline_name="run")
    follower.step()
    assert [alert.direction for alert in place.alerts] == ["fell"]
    assert place.alerts[0].before == 1.0


def test_what_is_not_finite_is_no_score(place):
    def odd(case, trace, outcome):
        return float("inf") if case.id == "c1" else float("nan")

    class Odd:
        name = "odd"

        def evaluate(self, case, trace, outcome):
            from agentunit import MetricResult

            return MetricResult("odd", odd(case, trace, outcome))

    place.write(record_line(1, at=1e300), record_line(2, at=-5.0))
    place.write('{"v":1,"case":{"id":"c3"},"outcome":{"cost":NaN}}\n', '{"v":1,"case":{"id":"c4"},"outcome":1e999}\n')
    follower = place.follower(metrics=(Odd(), "cost"))
    follower.step()
    assert follower.series[SeriesKey("odd", "custom")].statuses["error"] >= 2
    assert follower.series[SeriesKey("odd", "custom")].n == 0
    follower.snapshot()
    place.follower()  # what was kept can be read again


def test_models_have_a_budget(place):
    class Model:
        name = "model"
        gains_from_batches = True

        def evaluate(self, case, trace, outcome):
            from agentunit import MetricResult

            return MetricResult("model", 1.0)

    place.write(*(record_line(number) for number in range(30)))
    follower = place.follower(metrics=(Model(), "tool_success"), budget=10)
    follower.step()
    assert follower.series[SeriesKey("model", "custom")].n == 10
    assert follower.series[SeriesKey("model", "")].statuses == {"skipped": 20}
    assert follower.series[TOOLS].n == 30
    # What was left out for the budget is not a score that got lost.
    assert follower.series[SeriesKey("model", "", kind="scored")].mean == 1.0
    place.now += DAY / 2
    place.write(*(record_line(number) for number in range(30, 60)))
    follower.step()
    assert follower.series[SeriesKey("model", "custom")].n == 15


def test_text_is_kept_masked_and_for_a_time(place):
    place.store.masking.turn_on()
    line = record_line(1).replace("Here.", "Write to ada.lovelace@example.org.")
    place.write(line)
    settings = {"keep": Retention(True, 3 * DAY)}
    follower = place.follower(metrics=("tool_success", "pii_leakage"), **settings)
    follower.step()
    (run,) = place.store.runs()
    (stored,) = place.store.records(run.id)
    assert "ada.lovelace" not in str(stored.record)
    assert {name for _, scores in place.store.scores(run.id) for name in scores} == {"tool_success", "pii_leakage"}
    for days in (2, 1, 2):
        place.now += days * DAY
        place.write(record_line(int(place.now)))
        follower.step()
    assert run.id not in {each.id for each in place.store.runs()}
    assert len(place.store.runs()) == 3
    place.store.database.compact()
    assert b"ada.lovelace" not in (place.folder / "runs.db").read_bytes()


def test_without_being_told_no_text_is_kept(place):
    place.write(record_line(1).replace("Here.", "A most unusual answer."))
    follower = place.follower()
    follower.step()
    assert place.store.runs() == []
    place.store.database.compact()
    assert b"unusual" not in (place.folder / "runs.db").read_bytes()


def test_erased_cases_leave_the_alerts(place):
    lines = [record_line(number, passed=number < 500, at=START + number * 600) for number in range(600)]
    place.write(*lines)
    place.follower().step()
    case = place.alerts[0].cases[0]
    erase_from(place.store, whom(f"case={case}"))
    again = place.follower()
    assert case not in str(again.undelivered())
    assert "(erased)" in again.undelivered()[0].cases
    place.now = 0.0  # long before the clock of the store
    erase_from(place.store, whom("older=0h"))
    assert place.follower().undelivered() == []


def test_hours_add_up(place):
    first = place.now - place.now % 3_600 - DAY
    place.write(*(record_line(number, at=first + number * 1_800) for number in range(10)))
    place.follower().step()
    rows = [row for row in Followed(place.store.database, place.follower().id).hours(0) if row.series == TOOLS.name]
    assert [(row.n, row.total) for row in rows] == [(2, 2.0)] * 5


def test_identity_and_failure():
    record = decode_record(record_line(7))
    assert identity_of(record, "x") == "t7"
    assert not has_failed(record)
    assert has_failed(decode_record('{"v":1,"case":{"id":"a"},"outcome":{"error":"boom"}}'))


def test_a_file_that_takes_the_place_of_another_is_not_taken_for_it(place):
    """Inodes are used again, and some programs write each result to the same file."""
    for output in ("one", "two"):
        line = f'{{"v": 1, "case": {{"id": "q"}}, "outcome": "{output}"}}\n'
        for name, data in (("out.jsonl.gz", gzip.compress(line.encode())), ("out.jsonl", line.encode())):
            (place.source / name).unlink(missing_ok=True)
            place.follower().step()
            (place.source / name).write_bytes(data)
            os.utime(place.source / name, (place.now, place.now))
        place.now += 100
        place.follower().step()
    assert place.follower().state.counts["arrived"] == 4
    first, second = (decode_record(f'{{"v": 1, "case": {{"id": "q"}}, "outcome": {each}}}') for each in (1, 2))
    assert identity_of(first, "5:7:0:0:1") != identity_of(second, "5:7:0:0:1")


def test_a_session_that_goes_on_after_a_pause_is_one_case(place):
    def line(number: int, role: str, text: str) -> str:
        message = {"role": role, "content": [{"type": "text", "text": text}]}
        at = f"2023-11-14T22:{number:02}:00.000Z"
        head = {"uuid": f"u{number}", "parentUuid": f"u{number - 1}" if number else None, "sessionId": "s1"}
        return json.dumps({**head, "type": role, "timestamp": at, "message": message}) + "\n"

    for number in range(3):
        place.write(line(2 * number, "user", "Do it."), line(2 * number + 1, "assistant", "Done."), name="s1.jsonl")
        place.now += 100
        place.follower().step()
    counts = place.follower().state.counts
    assert counts["arrived"] == 1
    assert counts["repeated"] == 2


def test_huge_numbers_are_no_score_and_can_be_read_again(place):
    event = {"type": "llm", "timestamp": START}
    for number in range(5):
        data = {"v": 1, "case": {"id": f"c{number}"}, "trace": {"events": [event]}, "outcome": {"metadata": {}}}
        place.write(json.dumps(data) + "\n")
    follower = place.follower(metrics=(Returns(lambda case: 1.7e308),))
    assert follower.step() == 5
    assert follower.series[SeriesKey("returns", "custom")].n == 0
    assert place.follower().state.counts["arrived"] == 5


class Returns:
    """A metric of the user, without a range."""

    name = "returns"

    def __init__(self, value_of) -> None:
        self._value_of = value_of

    def evaluate(self, case, trace, outcome):
        from agentunit import MetricResult

        return MetricResult("returns", self._value_of(case))


def test_a_range_that_was_guessed_by_the_first_value_is_left_with_the_first_larger_one(place):
    source = random.Random(1)
    place.write(*(record_line(number, at=START + number * 600) for number in range(900)))

    def amount(case):
        number = int(case.id[1:])
        return 1.0 if number == 0 else None if number == 1 else source.uniform(10, 20) * (1 if number < 600 else 3)

    follower = place.follower(metrics=(Returns(amount),))
    follower.step()
    assert [(alert.metric, alert.direction) for alert in place.alerts] == [("returns", "rose")]


def test_a_masked_store_has_no_personal_data_in_slices(place):
    place.store.masking.turn_on()
    place.write(*(record_line(number, user="ada@example.org") for number in range(3)))
    place.follower(by="metadata.user", keep=Retention(True)).step()
    place.store.close()
    place.store = Store(place.folder / "runs.db")
    assert b"ada@example.org" not in b"".join(each.read_bytes() for each in place.folder.glob("runs.db*"))
    assert len({key.slice for key in place.follower(by="metadata.user").series}) == 2


def test_traces_of_a_backlog_are_taken_in_the_order_of_their_times(place):
    """One file for each trace, named by chance, as ``collect`` writes them."""
    lines = [record_line(number, passed=number < 500, at=START + number * 600) for number in range(600)]
    random.Random(4).shuffle(lines)
    for number, line in enumerate(lines):
        place.write(line, name=f"{number}.jsonl")
        at = json.loads(line)["trace"]["events"][0]["timestamp"]
        os.utime(place.source / f"{number}.jsonl", (at, at))
    place.follower().step()
    assert [(alert.direction, alert.before) for alert in place.alerts] == [("fell", 1.0)]


def test_one_change_is_one_alert_that_names_its_slices(place):
    """Two slices of three fall: both are named with the whole, or say which alert they are a part of."""
    source = random.Random(8)
    lines = []
    for number in range(2_600):
        kind = "abc"[number % 3]
        level = 0.95 if number < 2_000 or kind == "c" else 0.2
        lines.append(record_line(number, passed=source.random() < level, at=START + number * 600, kind=kind))
    place.write(*lines)
    place.follower(by="metadata.kind").step()
    whole, *others = [alert for alert in place.alerts if alert.metric == "tool_success"]
    assert (whole.slice, whole.part_of) == ("", None)
    assert whole.slices
    assert "c" not in whole.slices
    assert all(alert.part_of == whole.number for alert in others)
    assert {*whole.slices, *(alert.slice for alert in others)} == {"a", "b"}
