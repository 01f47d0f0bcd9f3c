"""The table of agents, and the metrics beyond the catalog, on small conversations."""

from __future__ import annotations

import pytest

from agentunit.multiagent import (
    AgentDominanceMetric,
    PingPongMetric,
    StepRepetitionMetric,
    UnansweredRequestsMetric,
    agents_table,
)


def says(agent, content="Something new.", **more):
    return {"type": "message", "payload": {"role": "assistant", "agent": agent, "content": content, **more}}


def talk(speakers):
    return {"events": [says(speaker, f"{speaker} says number {place}") for place, speaker in enumerate(speakers)]}


def judged(metric, trace):
    return metric.evaluate({"id": "q1"}, trace, None)


def test_repeated_steps_and_loops():
    words = [
        "Let me look up the page.",
        "Nothing was found there.",
        "Let me look up the page.",
        "Nothing was found there.",
    ]
    result = judged(StepRepetitionMetric(), {"events": [says("a", each) for each in words]})
    assert result.value == pytest.approx(2 / 3)
    assert result.detail["repeated_steps"] == [{"step": 2, "repeats": 0}, {"step": 3, "repeats": 1}]
    assert result.detail["loops"] == [{"start": 0, "period": 2, "rounds": 2}]
    assert result.detail["wasted_in_loops"] == 2


def test_an_echo_of_another_agent_is_no_repetition_but_the_same_call_is():
    echo = judged(StepRepetitionMetric(), {"events": [says("a", "All is well."), says("b", "All is well.")]})
    assert echo.value == 0.0
    call = {"type": "tool_call", "payload": {"name": "search", "arguments": {"q": "x", "n": 1}, "agent": "a"}}
    again = {"type": "tool_call", "payload": {"name": "search", "arguments": {"n": 1, "q": "x"}, "agent": "a"}}
    assert judged(StepRepetitionMetric(), {"events": [call, again]}).value == 1.0


@pytest.mark.parametrize("threshold", [0, 1.5, "0.8", True, float("nan")])
def test_a_threshold_that_is_none_is_refused(threshold):
    with pytest.raises(ValueError, match="StepRepetitionMetric: threshold must be above 0 and at most 1"):
        StepRepetitionMetric(threshold=threshold)


@pytest.mark.parametrize(("speakers", "value"), [("cababab", 6 / 7), ("abcabc", 2 / 6), ("abab", None), ("aaa", None)])
def test_ping_pong(speakers, value):
    assert judged(PingPongMetric(), talk(speakers)).value == value


def test_dominance_counts_the_idle():
    trace = talk("aaab")
    assert judged(AgentDominanceMetric(), trace).value == 0.5
    trace["agent_roles"] = {name: {"name": name} for name in "abcd"}
    result = judged(AgentDominanceMetric(), trace)
    assert result.value == pytest.approx(2 / 3)
    assert result.detail["dominant"] == "a"
    assert result.detail["steps"] == {"a": 3, "b": 1, "c": 0, "d": 0}
    assert judged(AgentDominanceMetric(), talk("aa")).value is None


def test_unanswered_requests():
    events = [says("a", to_agent="b"), says("a", to_agent="c"), says("c", to_agent="a"), says("c", to_agent="d")]
    result = judged(UnansweredRequestsMetric(), {"events": events})
    assert result.value == 0.5
    assert result.detail["open_requests"] == [{"from_agent": "a", "to_agent": ["b"], "position": 0}]


def test_inferred_receivers_say_nothing_about_answers():
    result = judged(UnansweredRequestsMetric(), talk("abab"))
    assert result.value is None
    assert "no request to a named agent" in result.detail["reason"]


def test_whoever_speaks_without_a_stated_receiver_answers():
    events = [says("a", to_agent="b"), says("b"), says("c", to_agent="d"), says("a"), says("b")]
    result = judged(UnansweredRequestsMetric(), {"events": events})
    assert (result.value, result.detail["requests"]) == (0.5, 2)
    assert result.detail["open_requests"] == [{"from_agent": "c", "to_agent": ["d"], "position": 2}]


def test_the_last_speaker_can_answer_too():
    assert judged(UnansweredRequestsMetric(), {"events": [says("a", to_agent="b"), says("b")]}).value == 0.0


def test_notifications_want_no_answer():
    told = {"from_agent": "a", "to_agent": "b", "interaction_type": "notification"}
    asked = {"from_agent": "a", "to_agent": ["c", "d"], "interaction_type": "request"}
    trace = {"interactions": [told, asked, {"from_agent": "d", "to_agent": "a"}]}
    assert judged(UnansweredRequestsMetric(), trace).value == 0.0


def test_the_table_of_agents():
    usage = {"prompt_tokens": 90, "completion_tokens": 10}
    events = [
        {"type": "message", "payload": {"role": "user", "agent": "user", "content": "Find it."}},
        says("a", "b, please find it"),
        {"type": "llm_call", "payload": {"agent": "b", "usage": usage}},
        {"type": "llm_call", "payload": {"agent": "b", "usage": usage}},
        {"type": "llm_call", "payload": {"agent": "a", "model": "no counts"}},
        {"type": "tool_call", "payload": {"name": "search", "agent": "b", "status": "error"}},
        {"type": "tool_call", "payload": {"name": "search", "agent": "b", "status": "success"}},
        says("b", "found it"),
    ]
    roles = {name: {"name": name} for name in ("a", "b", "idle")}
    rows = {row.agent: row for row in agents_table({"trace": {"events": events, "agent_roles": roles}})}
    assert list(rows) == ["b", "a", "idle"]
    busy = rows["b"]
    assert (busy.messages, busy.words, busy.tool_calls, busy.tokens) == (1, 2, 2, 200)
    assert (busy.failures, busy.outcomes, busy.received, busy.centrality, busy.share) == (1, 2, 1, 0.5, 0.75)
    assert rows["a"].tokens is None
    assert (rows["idle"].share, rows["idle"].centrality) == (0.0, 0.0)


def test_the_table_of_recorded_interactions_alone():
    trace = {
        "interactions": [{"from_agent": "a", "to_agent": ["b", "c"]}, {"from_agent": "a", "to_agent": "b"}],
        "handoffs": [{"from_agent": "a", "to_agent": "b", "success": False}, {"from_agent": "a", "to_agent": "c"}],
    }
    rows = agents_table(trace)
    assert [(row.agent, row.messages, row.received, row.failures, row.outcomes) for row in rows] == [
        ("a", 2, 0, 0, 0), ("b", 0, 2, 1, 1), ("c", 0, 1, 0, 1),
    ]  # fmt: skip
    assert agents_table({}) == []
