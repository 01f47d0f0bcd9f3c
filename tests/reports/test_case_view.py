from __future__ import annotations

import io
import unicodedata

from agentunit import DatasetCase, Outcome, Record, TraceEvent, TraceLog
from agentunit.core.results import MetricResult, Score
from agentunit.core.trace import AgentInteraction, ConflictEvent
from agentunit.reports.case_console import print_case
from agentunit.reports.case_view import view_case, worst_repeat
from agentunit.reports.reported_run import ReportedCase
from agentunit.reports.terminal import Terminal
from agentunit.reports.timeline import timeline_of


def reported(record: Record, *, failed: bool = False, repeat: int = 0, **values: float | None) -> ReportedCase:
    scores = {
        name: Score(MetricResult(name, value, {"why": "because"}), "ok", "trace", "1", 0.0)
        for name, value in values.items()
    }
    return ReportedCase(0, repeat, record.case.id, failed, 2.0, record, scores)


def printed(view, infos=None, *, width: int = 120, full: bool = False, colour: bool = False) -> str:
    stream = io.StringIO()
    console = Terminal(file=stream, width=width, styled=colour)
    print_case(view, infos or {}, console, run_id="run-1", full=full)
    return stream.getvalue()


def test_a_demo_case_shows_everything_that_explains_it(demo_run):
    (case,) = demo_run.case("desk-001")
    text = printed(view_case(case), demo_run.infos, width=200)
    for part in (
        "My tracking page shows nothing at all",  # the question
        "arrives on 11 October",  # the answer
        "a colleague will find out",  # the expected answer
        "last seen at the Reno depot",  # the context
        '✗  track_parcel(parcel_id="NB-12M")',
        "error: carrier timeout after 8 s",
        '"total_usd": 79.0',  # a tool's result
        "+10.42 s  tool_call",
        "triage, summit-small, 271 → 23 tokens",
        "tool_success",
        "0.33",
        'basis "tool_calls"',
        "$0.0169",
        "informational",
    ):
        assert part in text, part


def test_details_do_not_repeat_what_the_case_shows(demo_run):
    (case,) = demo_run.case("desk-001")
    scores = {score.metric: score for score in view_case(case).scores}
    assert case.scores["answer_correctness"].result.detail.keys() == {"expected", "answer", "backend"}
    assert scores["answer_correctness"].detail == {}
    assert scores["tool_success"].detail == {"basis": "tool_calls", "partial": False, "without_status": []}


def test_a_failed_case_says_how_and_what_was_printed(demo_run):
    (case,) = demo_run.case("hung")
    view = view_case(case)
    assert (view.failure, view.error, view.attempts, view.earlier_failures) == (
        "timeout",
        "no answer within 5 s",
        2,
        ["ValueError"],
    )
    assert view.printed == {"stdout": "asking\nthe carrier"}
    assert view.trace_metadata == {}
    text = printed(view, demo_run.infos)
    for part in ("the agent failed (timeout)", "no answer within 5 s", "attempt 1: ValueError", "Printed (stdout)"):
        assert part in text
    assert "(none)" in text  # there is no answer


def test_differences_are_marked_by_signs_or_colours():
    record = Record(DatasetCase("q", "When?", "due on 20 October"), TraceLog(), Outcome(output="due on 11 October"))
    view = view_case(reported(record))
    plain = printed(view)
    assert "due on [-11-] October" in plain
    assert "due on {+20+} October" in plain
    coloured = printed(view, colour=True)
    assert "[-" not in coloured
    assert "\x1b[1;31m11" in coloured
    assert "\x1b[1;32m20" in coloured


def test_answer_and_expected_stand_beside_each_other_where_there_is_room():
    record = Record(DatasetCase("q", "?", "alpha beta"), TraceLog(), Outcome(output="alpha beta"))
    assert any(line.count("alpha beta") == 2 for line in printed(view_case(reported(record))).splitlines())
    assert all(line.count("alpha beta") < 2 for line in printed(view_case(reported(record)), width=60).splitlines())


def test_several_acceptable_answers_are_all_shown():
    record = Record(DatasetCase("q", "?", ["4", "four"]), TraceLog(), Outcome(output="five"))
    text = printed(view_case(reported(record)))
    assert "or  four" in text


def test_a_recorded_conversation_is_shown_as_turns_if_its_messages_hold_the_answer():
    said = [("user", "Hi"), ("assistant", "Hello!"), ("user", "Rain?"), ("assistant", "No.")]
    trace = TraceLog([TraceEvent("message", {"role": role, "content": text}) for role, text in said])
    text = printed(view_case(reported(Record(DatasetCase("q", "Hi"), trace, Outcome(output="No.")))))
    assert [line.split() for line in text.split("Conversation\n")[1].splitlines()[:4]] == [
        ["1", "user", "Hi"],
        ["agent", "Hello!"],
        ["2", "user", "Rain?"],
        ["agent", "No."],
    ]
    assert "Answer" not in text
    other = printed(view_case(reported(Record(DatasetCase("q", "Hi"), trace, Outcome(output="Sunny.")))))
    assert "Sunny." in other
    assert "Conversation" not in other


def test_long_texts_are_cut_unless_all_is_asked_for():
    record = Record(DatasetCase("q", "x" * 5000), TraceLog(), Outcome(output="y"))
    view = view_case(reported(record))
    short, full = printed(view), printed(view, full=True)
    assert "(3,800 more)" in short
    assert "--why shows everything" in short
    assert short.count("x") < 1300
    assert full.count("x") == 5000
    assert "--why" not in full


def test_long_lists_are_cut_unless_all_is_asked_for():
    trace = TraceLog([TraceEvent("step", {"n": number}, float(number)) for number in range(100)])
    view = view_case(reported(Record(DatasetCase("q", "?"), trace, "a")))
    assert "… 60 more entries" in printed(view)
    assert '{"n":99}' not in printed(view)
    assert '{"n":99}' in printed(view, full=True)


def test_nothing_hostile_reaches_the_terminal(hostile_run, hostile_text):
    (case,) = hostile_run.case(hostile_text)
    for full in (False, True):
        text = printed(view_case(case), hostile_run.infos, full=full)
        assert not [each for each in text if unicodedata.category(each) == "Cc" and each != "\n"]
        assert "\u202e" not in text
        # Square brackets are rich's markup: they must come out as they went in.
        assert "·[31m" in text


def test_the_timeline_is_in_order_of_time():
    trace = TraceLog(
        [
            TraceEvent("message", {"role": "user", "content": "hi"}, 10.0),
            TraceEvent("note", {"text": "no time of its own"}),
            TraceEvent("retrieval", {"documents": ["a", "b"], "query": "x"}, 14.0),
            TraceEvent("llm_call", {"model": "m", "usage": {"input_tokens": 5, "output_tokens": 7}}, 13.0),
        ],
        interactions=[AgentInteraction("a", ["b", "c"], content={"k": 1}, timestamp=12.0, success=False)],
        conflicts=[ConflictEvent(["a", "b"], "plan", description="who goes first", timestamp=11.0)],
    )
    assert [(entry.offset_s, entry.kind, entry.label, entry.failed) for entry in timeline_of(trace)] == [
        (0.0, "message", "user: hi", False),
        (None, "note", "no time of its own", False),
        (1.0, "conflict", "a, b (plan): who goes first", True),
        (2.0, "request", 'a → b, c (generic): {"k":1}', True),
        (3.0, "llm_call", "m, 5 → 7 tokens", False),
        (4.0, "retrieval", '2 documents for "x"', False),
    ]


def test_strange_payloads_are_shown_not_fatal():
    trace = TraceLog(
        [
            TraceEvent("tool_call", {"name": 7, "arguments": [1], "status": False, "error": {"code": 5}}),
            TraceEvent("tool_call", {}),
            TraceEvent("llm_call", {"usage": {"input_tokens": "many"}}),
            TraceEvent("stdout", {"text": "said"}),
        ]
    )
    view = view_case(reported(Record(DatasetCase("q", context=["  "]), trace, 42)))
    assert [(call.name, call.error, call.ok) for call in view.tool_calls] == [
        ("7", '{"code":5}', False),
        ("(unnamed)", None, None),
    ]
    assert view.answer == "42"
    assert view.printed == {"stdout": "said"}
    assert "7([1])" in printed(view)


def test_the_worst_repeat_failed_or_scored_lowest(demo_run):
    record = Record(DatasetCase("q", "?"), TraceLog(), "a")
    good = reported(record, repeat=0, tool_success=1.0)
    poor = reported(record, repeat=1, tool_success=0.2)
    broken = reported(record, repeat=2, failed=True)
    assert worst_repeat([good, poor], demo_run.infos) is poor
    assert worst_repeat([good, poor, broken], demo_run.infos) is broken


def test_the_reason_is_taken_where_the_metric_gives_one():
    (score,) = view_case(reported(Record(DatasetCase("q"), TraceLog(), "a"), mine=0.5)).scores
    assert (score.reason, score.detail) == ("because", {})


def test_details_are_words_and_internals_wait_for_full():
    claims = [
        {"text": "It is red.", "probability": 0.91, "source": "context[0]", "evidence": "Red."},
        {"text": "It is big.", "probability": 0.1, "source": "context[0]", "evidence": "It is small."},
    ]
    detail = {"claims": claims, "features": {"exact": 0.0}, "model_logit": 1.06, "sources": ["context[0]"]}
    score = Score(MetricResult("faithfulness", 0.1, detail), "ok", "local", "3", 0.0)
    record = Record(DatasetCase("q", "?", metadata={"who": {"team": "ops"}}), TraceLog(), Outcome(output="y"))
    view = view_case(ReportedCase(0, 0, "q", False, 2.0, record, {"faithfulness": score}))
    short, full = printed(view), printed(view, full=True)
    assert short.index('0.10 "It is big." against context[0]: "It is small."') < short.index('0.91 "It is red."')
    assert "features" not in short
    assert "who team ops" in short
    assert "{" not in short
    assert "model_logit" in full
