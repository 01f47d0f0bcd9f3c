from __future__ import annotations

import errno
import tempfile
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentunit.core.results import InputError
from agentunit.traces.grouping import SpanGroup, SpanGroups, SpoolFailed
from agentunit.traces.spans import LogEvent, PackedSpan, ReadingNotes, Span, SpanEvent


def unpack(data: bytes, _: ReadingNotes) -> Span:
    trace_id, span_id, *_ = data.decode().split("/")
    return Span(trace_id, span_id)


def packed(trace_id: str, span_id: str, padding: int = 0) -> PackedSpan:
    return PackedSpan(trace_id, f"{trace_id}/{span_id}/{'x' * padding}".encode(), unpack)


def grouped(groups: SpanGroups) -> list[tuple[str, list[str]]]:
    return [(group.id, [span.span_id for span in group.spans]) for group in groups if isinstance(group, SpanGroup)]


@pytest.mark.parametrize("memory_bytes", [0, 300, 1 << 20])
def test_traces_come_whole_in_order_of_first_appearance(memory_bytes: int) -> None:
    with SpanGroups(ReadingNotes(), memory_bytes=memory_bytes) as groups:
        for trace_id, span_id in ("b1", "a1", "b2", "c1", "a2", "b3"):
            groups.add(packed(trace_id, span_id))

        assert len(groups) == 3
        assert grouped(groups) == [("b", ["1", "2", "3"]), ("a", ["1", "2"]), ("c", ["1"])]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 40))), st.integers(0, 2000))
def test_memory_changes_nothing_of_what_comes_out(spans: list[tuple[str, int]], memory_bytes: int) -> None:
    expected: dict[str, list[str]] = defaultdict(list)
    with SpanGroups(ReadingNotes(), memory_bytes=memory_bytes) as groups:
        for number, (trace_id, padding) in enumerate(spans):
            groups.add(packed(trace_id, str(number), padding))
            expected[trace_id].append(str(number))

        assert grouped(groups) == list(expected.items())


@pytest.mark.parametrize("memory_bytes", [0, 1 << 20])
@pytest.mark.parametrize(
    "value", ["text", 1 << 80, -5, 0.5, None, [1, {"a": "b"}], "half \ud83d pair"], ids=lambda value: repr(value)[:12]
)
def test_spans_that_are_decoded_already_are_kept_as_they_are(value: Any, memory_bytes: int) -> None:
    span = Span("t", "s", None, "name", 1.5, 2.5, "ok", "", {"a": value}, [SpanEvent("e", 2.0)], "scope", {"r": 1})
    with SpanGroups(ReadingNotes(), memory_bytes=memory_bytes) as groups:
        groups.add(span)
        (group,) = groups

    if isinstance(value, str):
        span.attributes["a"] = value.encode("utf-8", "replace").decode()
    assert group == SpanGroup("t", ("t",), [span])


def test_traces_of_one_session_come_together_and_others_stay_alone() -> None:
    sessions = {"a/1": ("s1", True), "b/1": None, "c/2": ("s1", False), "d/1": ("b", True)}

    def session_of(span: PackedSpan) -> tuple[str, bool] | None:
        return sessions.get(span.data.decode().rstrip("/"))

    with SpanGroups(ReadingNotes(), "session", session_of) as groups:
        for trace_id, span_id in ("a1", "b1", "c1", "c2", "d1"):
            groups.add(packed(trace_id, span_id))
        found = [(group.id, group.trace_ids) for group in groups if isinstance(group, SpanGroup)]

    # The trace b, without a session, is not the session that happens to be called b.
    assert found == [("s1", ("a", "c")), ("b", ("b",)), ("b", ("d",))]


def test_of_two_sessions_in_a_trace_the_roots_counts_and_it_is_told() -> None:
    sessions = {"a/1": ("first", False), "a/2": ("root's", True)}
    notes = ReadingNotes()

    with SpanGroups(notes, "session", lambda span: sessions[span.data.decode().rstrip("/")]) as groups:
        groups.add(packed("a", "1"))
        groups.add(packed("a", "2"))

        assert grouped(groups) == [("root's", ["1", "2"])]
    assert sum(notes.problems.values()) == 1


def test_a_session_grouping_needs_to_know_sessions() -> None:
    with pytest.raises(ValueError, match="group_by='session' needs session_of"):
        SpanGroups(ReadingNotes(), "session")


@pytest.mark.parametrize("memory_bytes", [0, 1 << 20])
def test_a_group_that_is_too_large_is_told_and_the_others_come(memory_bytes: int) -> None:
    with SpanGroups(ReadingNotes(), memory_bytes=memory_bytes, largest_group_bytes=100) as groups:
        for trace_id, padding in (("a", 10), ("b", 60), ("b", 60), ("c", 10)):
            groups.add(packed(trace_id, "1", padding))
        found = list(groups)

    assert [each.id for each in found if isinstance(each, SpanGroup)] == ["a", "c"]
    (error,) = [each for each in found if isinstance(each, InputError)]
    assert "are left out" in error.reason


def test_log_records_go_into_the_events_of_their_span() -> None:
    notes = ReadingNotes()
    by_data = {
        b"early": LogEvent("a", "1", SpanEvent("gen_ai.user.message", 1.0)),
        b"late": LogEvent("a", "1", SpanEvent("gen_ai.choice", 3.0)),
        b"lost": LogEvent("a", "9", SpanEvent("gen_ai.choice", 3.0)),
        b"alone": LogEvent("b", "1", SpanEvent("gen_ai.choice", 3.0)),
    }

    with SpanGroups(notes) as groups:
        for data in (b"late", b"lost"):
            groups.add(PackedSpan("a", data, lambda data, _: by_data[data]))
        groups.add(Span("a", "1", events=[SpanEvent("exception", 2.0)]))
        for trace_id, data in (("a", b"early"), ("b", b"alone")):
            groups.add(PackedSpan(trace_id, data, lambda data, _: by_data[data]))
        (group,) = groups

    assert isinstance(group, SpanGroup)
    assert [event.name for event in group.spans[0].events] == ["gen_ai.user.message", "exception", "gen_ai.choice"]
    assert notes.problems == {"a log record whose span is missing was left out": 2}


def test_a_full_disk_is_told_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def seek(self, *_: int) -> int:
            return 0

        def write(self, _: bytes) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        def close(self) -> None:
            pass

    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: Full())

    with (
        SpanGroups(ReadingNotes(), memory_bytes=0) as groups,
        pytest.raises(SpoolFailed, match=r"no space left on device\. Set the environment variable TMPDIR"),
    ):
        groups.add(packed("a", "1"))
