"""The durable side of the receiver: what is in the spool, and what becomes a record file of it."""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentunit.addons.watch.collector import recorder as recorder_module
from agentunit.addons.watch.collector.recorder import TraceRecorder, file_name
from agentunit.addons.watch.collector.spool import SpanSpool, SpoolError
from agentunit.core.codec import decode_record
from agentunit.traces.spans import LogEvent, Span, SpanEvent

A, B = "a" * 32, "b" * 32
DAY = "2001-09-09"
NOW = 1_000_000_000.0


def span(trace_id: str = A, span_id: str = "1", parent_id: str | None = None, **fields: object) -> Span:
    name = str(fields.pop("name", "step"))
    attributes = {"gen_ai.operation.name": "invoke_agent", "output.value": "Done.", **fields.pop("attributes", {})}
    return Span(trace_id, span_id, parent_id, name, start_s=1.0, end_s=2.0, attributes=attributes, **fields)


def log(trace_id: str = A, span_id: str = "1", text: str = "hello") -> LogEvent:
    return LogEvent(trace_id, span_id, SpanEvent("gen_ai.user.message", 1.5, {"content": text}))


@pytest.fixture
def spool(tmp_path: Path):
    with SpanSpool(tmp_path) as opened:
        yield opened


def write_all(writer: TraceRecorder) -> int:
    before = writer.counts.written + writer.counts.rewritten
    writer.write_all()
    return writer.counts.written + writer.counts.rewritten - before


def recorder(spool: SpanSpool, **options: object) -> TraceRecorder:
    return TraceRecorder(spool.folder.parent, spool, **options)


def records(out: Path) -> dict[str, object]:
    return {path.relative_to(out).as_posix(): decode_record(path.read_bytes()) for path in out.glob("*/*.jsonl")}


def test_a_retry_adds_nothing_and_is_no_reason_to_write_again(spool):
    spans, logs = [span(), span(span_id="2", parent_id="1")], [log(), log(), log(text="other")]
    assert spool.add(spans, logs) == (2, 0, 3)
    writer = recorder(spool)
    assert write_all(writer) == 1
    assert spool.add(spans, logs) == (0, 0, 0)
    assert spool.n_open() == 0
    assert write_all(writer) == 0


def test_the_newer_of_two_spans_with_one_id_is_kept_and_counted(spool):
    spool.add([span(name="unfinished"), span(span_id="2", parent_id="1")])
    assert spool.add([span(name="finished")]) == (0, 1, 0)
    assert [each.name for each in spool.trace(A).spans] == ["finished", "step"]
    assert spool.add([span(name="once"), span(name="twice")]) == (0, 2, 0)


def test_log_records_join_their_span_whichever_comes_first(spool):
    spool.add([], [log(), log(span_id="9")])
    assert write_all(recorder(spool)) == 0  # no span, no record
    spool.add([span(events=[SpanEvent("own", 1.7)])])
    spool.add([], [log(text="later")])
    trace = spool.trace(A)
    assert [event.attributes.get("content") for event in trace.spans[0].events] == ["hello", "later", None]
    assert trace.n_loose_logs == 1


@pytest.mark.parametrize(
    "odd", [2**70, -(2**70), "half \ud800 a pair", {"deep": [1, {"n": 2**65}]}, float("inf"), b"\0"]
)
def test_odd_values_are_kept_as_they_are(spool, odd):
    spool.add([span(attributes={"odd": odd})], [LogEvent(A, "1", SpanEvent("gen_ai.choice", 1.0, {"odd": odd}))])
    (kept,) = spool.trace(A).spans
    assert (kept.attributes["odd"], kept.events[0].attributes["odd"]) == (odd, odd)


def test_a_trace_in_which_no_agent_worked_makes_no_record(spool, tmp_path):
    spool.add([Span(A, "1", name="GET /", attributes={"http.request.method": "GET"})])
    writer = recorder(spool)
    assert write_all(writer) == 0
    assert (spool.n_open(), records(tmp_path)) == (0, {})
    assert sum(writer.notes().problems.values()) == 1
    spool.add([span(A, "2", "1")])  # the agent's span comes late
    assert write_all(writer) == 1


@settings(max_examples=40, deadline=None)
@given(
    batches=st.lists(
        st.lists(st.tuples(st.sampled_from([A, B]), st.sampled_from("123"), st.sampled_from(["x", "y"])), max_size=4),
        max_size=6,
    )
)
def test_the_spool_holds_the_last_of_each_id_and_reopens_to_the_same(tmp_path_factory, batches):
    out = tmp_path_factory.mktemp("out")
    kept: dict[tuple[str, str], str] = {}
    with SpanSpool(out) as spool:
        for batch in batches:
            n_before = len(kept)
            kept.update({(trace_id, span_id): name for trace_id, span_id, name in batch})
            added = spool.add([span(trace_id, span_id, name=name) for trace_id, span_id, name in batch])
            assert added.n_new == len(kept) - n_before
    with SpanSpool(out) as spool:
        found = {
            (each.trace_id, each.span_id): each.name
            for trace_id in spool.due(rooted_before=float("inf"), rootless_before=float("inf"), most=9)
            for each in spool.trace(trace_id).spans
        }
    assert found == kept


def test_a_trace_is_written_when_it_was_quiet_and_anew_when_more_comes(spool, tmp_path):
    writer = recorder(spool, quiet_s=5, rootless_quiet_s=60)
    spool.add([span(A, "1")], now=NOW)
    spool.add([span(B, "2", parent_id="1")], now=NOW)
    assert writer.write_due(NOW + 4) == 0
    assert writer.write_due(NOW + 6) == 1
    assert list(records(tmp_path)) == [f"{DAY}/{A}.jsonl"]
    first = (tmp_path / DAY / f"{A}.jsonl").read_bytes()
    late = span(A, "3", "1", attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"})
    spool.add([late], now=NOW + 200_000)  # another day by now
    assert writer.write_due(NOW + 200_006) == 2  # and the trace whose root never came
    assert sorted(records(tmp_path)) == [f"{DAY}/{A}.jsonl", f"{DAY}/{B}.jsonl"]
    assert (tmp_path / DAY / f"{A}.jsonl").read_bytes() != first
    assert (writer.counts.written, writer.counts.rewritten) == (2, 1)


def test_many_traces_are_written_in_batches(spool, tmp_path):
    spool.add([span(f"{number:032x}") for number in range(450)], now=NOW)
    writer = recorder(spool, quiet_s=0)
    assert writer.write_due(NOW + 1) == 200
    writer.write_all()
    assert (len(records(tmp_path)), spool.n_open()) == (450, 0)


def test_what_was_spooled_before_a_restart_is_written_after_it(tmp_path):
    with SpanSpool(tmp_path) as spool:
        spool.add([span(A), span(B)], now=NOW)
        spool.fix_file(A, f"{DAY}/{A}.jsonl")  # and killed right after
    with SpanSpool(tmp_path) as spool:
        assert recorder(spool).write_due(NOW + 6) == 2
    assert sorted(records(tmp_path)) == [f"{DAY}/{A}.jsonl", f"{DAY}/{B}.jsonl"]


def test_recorded_spans_leave_after_their_time_and_the_record_stays(spool, tmp_path):
    writer = recorder(spool, keep_s=100)
    spool.add([span(A)], [log()], now=NOW)
    spool.add([], [log(B)], now=NOW)
    writer.write_due(NOW + 6)
    first = (tmp_path / DAY / f"{A}.jsonl").read_bytes()
    writer.write_due(NOW + 106)
    with sqlite3.connect(spool.path) as connection:
        counts = [
            connection.execute(f"SELECT count(*) FROM {table}").fetchone() for table in ("spans", "logs", "traces")
        ]
    connection.close()
    assert counts == [(0,), (0,), (0,)]
    spool.add([span(A, "5", parent_id="1")], now=NOW + 110)
    writer.write_due(NOW + 300)
    assert (tmp_path / DAY / f"{A}.jsonl").read_bytes() == first
    assert sorted(records(tmp_path)) == [f"{DAY}/{A}-2.jsonl", f"{DAY}/{A}.jsonl"]


def test_unwritten_traces_are_never_swept(spool, monkeypatch):
    reported: list[str] = []
    writer = recorder(spool, keep_s=0, report=reported.append)
    spool.add([span(A)], now=NOW)
    monkeypatch.setattr("agentunit.addons.watch.collector.recorder.encode_record", lambda record: 1 / 0)
    assert writer.write_due(NOW + 1000) == 0
    assert writer.write_due(NOW + 2000) == 0
    assert writer.counts.failed == 1
    assert reported == [
        f"trace '{A}' cannot be made a record (ZeroDivisionError: division by zero); its spans are kept"
    ]
    monkeypatch.undo()
    spool.close()
    with SpanSpool(spool.folder.parent) as again:
        assert recorder(again).write_due(NOW + 3000) == 1


def test_a_span_that_cannot_be_read_back_does_not_end_the_collector(spool, tmp_path):
    reported: list[str] = []
    spool.add([span(A)], now=NOW)
    spool.add([span(B)], now=NOW)
    spool._connection.execute("UPDATE spans SET span = x'c1' WHERE trace_id = ?", (A,))
    recorder(spool, report=reported.append).write_all()
    assert list(records(tmp_path)) == [f"{DAY}/{B}.jsonl"]
    assert [line.split(" (")[0] for line in reported] == [f"trace '{A}' cannot be made a record"]


def test_a_spool_that_cannot_be_read_is_tried_again(spool, tmp_path):
    reported: list[str] = []
    writer = recorder(spool, report=reported.append)
    spool.add([span(A)], now=NOW)
    writer.write_due(NOW)  # sweeps
    spool._connection.execute("ALTER TABLE traces RENAME TO lost")
    assert writer.write_due(NOW + 6) == 0
    assert "spans.db cannot be read: no such table: traces; the spans are kept, and it is tried again" in reported[0]
    spool._connection.execute("ALTER TABLE lost RENAME TO traces")
    assert writer.write_due(NOW + 60) == 1


def test_a_nearly_full_spool_waits_for_the_spans_of_log_records(tmp_path, monkeypatch):
    monkeypatch.setattr("agentunit.addons.watch.collector.spool._NEARLY_FULL", 0.0)
    with SpanSpool(tmp_path, max_bytes=1 << 30) as spool:
        writer = recorder(spool, quiet_s=5)
        spool.add([], [log(A)], now=NOW)
        spool.add([span(B)], now=NOW)
        assert writer.write_due(NOW + 6) == 1
        writer.write_due(NOW + 7)  # makes room: B is recorded, A is not
        spool.add([span(A)], now=NOW + 8)
        assert writer.write_due(NOW + 14) == 1
    assert records(tmp_path)[f"{DAY}/{A}.jsonl"].case.query == "hello"


def test_what_is_noticed_takes_bounded_memory(spool, monkeypatch):
    def assemble(spans, notes):
        notes.unplaced.update([f"{spans[0].trace_id}-{number}" for number in range(400)] + ["often"] * 9)

    monkeypatch.setattr("agentunit.addons.watch.collector.recorder.assemble", assemble)
    monkeypatch.setattr("agentunit.addons.watch.collector.recorder._MOST_NOTES", 2)
    for number in range(20):
        spool.add([span(f"{number:032x}")])
    writer = recorder(spool)
    writer.write_all()
    assert len(writer.notes().unplaced) <= 500
    assert writer.notes().unplaced["often"] == 180


def test_a_trace_without_end_is_told_and_kept(spool, tmp_path, monkeypatch):
    reported: list[str] = []
    spool.add([span(A, attributes={"text": "x" * (1 << 20)})], [log(text="y" * (1 << 20))])
    monkeypatch.setattr("agentunit.addons.watch.collector.recorder.LARGEST_GROUP_BYTES", 2 << 20)
    recorder(spool, report=reported.append).write_all()
    assert reported == [f"trace '{A}' cannot be made a record (it has more than 2 MiB); its spans are kept"]
    assert records(tmp_path) == {}
    assert len(spool.trace(A).spans) == 1


def test_a_folder_that_cannot_be_written_costs_nothing_but_time(spool, tmp_path):
    reported: list[str] = []
    writer = recorder(spool, report=reported.append)
    (tmp_path / DAY).write_text("a file is in the way")
    spool.add([span(A)], now=NOW)
    assert writer.write_due(NOW + 6) == 0
    assert "the spans are kept, and it is tried again" in reported[0]
    (tmp_path / DAY).unlink()
    assert write_all(writer) == 1


@pytest.mark.parametrize(
    "trace_id",
    ["../../outside", "/etc/passwd", "..", "", "A" * 32, "a" * 31, "a" * 33, f"{'a' * 31}\n", "\ud800", "CON"],
)
def test_an_id_from_the_network_is_no_path(spool, tmp_path, trace_id):
    assert file_name(trace_id).removeprefix("id-").isalnum()
    assert file_name(trace_id).startswith("id-")
    if trace_id.isprintable():
        spool.add([span(trace_id)])
        assert write_all(recorder(spool)) == 1
        (path,) = tmp_path.rglob("*.jsonl")
        assert path.name == f"{file_name(trace_id)}.jsonl"
        assert path.parent.parent == tmp_path


def test_two_collectors_on_one_folder(spool, tmp_path):
    script = "import sys\nfrom agentunit.addons.watch.collector.spool import SpanSpool\nSpanSpool(sys.argv[1])"
    second = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False)
    assert f"another 'agentunit collect' is writing to {tmp_path}: stop it, or name another folder" in second.stderr
    with pytest.raises(SpoolError, match="another 'agentunit collect'"):
        SpanSpool(tmp_path)
    spool.close()
    SpanSpool(tmp_path).close()


def test_a_full_disk_keeps_nothing_and_says_so(spool):
    spool.add([span(A)])
    spool._connection.execute("PRAGMA max_page_count = 1")
    with pytest.raises(SpoolError, match=r"spans\.db cannot be written: database or disk is full"):
        spool.add([span(A, "2", attributes={"text": "x" * 100_000}), span(B)])
    spool._connection.execute("PRAGMA max_page_count = 1000000")
    assert [each.span_id for each in spool.trace(A).spans] == ["1"]
    assert spool.add([span(A, "2"), span(B)]) == (2, 0, 0)


def test_a_file_that_is_no_spool(tmp_path):
    (tmp_path / ".spool").mkdir()
    (tmp_path / ".spool" / "spans.db").write_bytes(b"not a database, " * 100)
    with pytest.raises(SpoolError, match=r"spans\.db cannot be used as a spool: file is not a database"):
        SpanSpool(tmp_path)
    (tmp_path / ".spool" / "spans.db").unlink()
    with SpanSpool(tmp_path) as spool:
        spool._connection.execute("PRAGMA user_version = 7")
    with pytest.raises(SpoolError, match="its tables are of version 7"):
        SpanSpool(tmp_path)


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_the_spool_is_nobody_elses_business(spool):
    spool.add([span()])
    assert {stat.S_IMODE(path.stat().st_mode) for path in spool.folder.glob("spans.db*")} == {0o600}


def test_a_record_that_finds_no_room_leaves_nothing_and_is_written_later(spool, tmp_path, monkeypatch):
    def without_room(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    reported: list[str] = []
    writer = recorder(spool, report=reported.append)
    spool.add([span(A)], now=NOW)
    writer.write_due(NOW)  # sweeps
    with monkeypatch.context() as patched:
        patched.setattr(recorder_module.os, "replace", without_room)
        assert writer.write_due(NOW + 6) == 0
    assert "no space left on device; the spans are kept" in reported[0]
    assert not list(spool.folder.glob("*.part"))
    assert writer.write_due(NOW + 60) == 1
