"""What is derived from events when nobody recorded it, and that recorded facts come first."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentunit import AgentInteraction, AgentRole, ConflictEvent, HandoffEvent, TraceLog, read_records
from agentunit.metrics.inputs import InputProblem
from agentunit.multiagent import derived
from agentunit.multiagent.derivation import find_objection, steps_of

DATA = Path(os.environ.get("AGENTUNIT_DATA") or Path(__file__).parents[2] / ".." / "shared" / "data")


def says(agent, content, at=None, **more):
    payload = {"role": "assistant", "agent": agent, "content": content, **more}
    return {"type": "message", "payload": payload, "timestamp": at}


def calls(agent, name="search", **more):
    return {"type": "tool_call", "payload": {"name": name, "agent": agent, **more}}


def links(found):
    return [(each.from_agent, each.to_agent) for each in found.interactions]


def test_without_a_stated_receiver_the_next_speaker_is_the_receiver():
    human = {"type": "message", "payload": {"role": "user", "agent": "user", "content": "Please."}}
    found = derived(
        {"events": [human, says("a", "Go."), says("a", "Now."), says("b", "Done."), human, says("c", "!x")]}
    )
    assert links(found) == [("a", "b"), ("a", "b"), ("b", "c")]
    assert {each.metadata["derived_from"] for each in found.interactions} == {"the next speaker"}
    assert {each.success for each in found.interactions} == {None}
    assert found.derived == {"interactions", "handoffs", "agent_roles"}


def test_a_stated_receiver_counts_and_talking_to_oneself_does_not():
    events = [
        says("a", "One.", to_agent=["c", "d"]),
        says("b", "Two.", to_agent="b"),
        says("c", "Three.", to_agent="a"),
        says("d", "Last."),
    ]
    found = derived({"events": events})
    assert links(found) == [("a", ["c", "d"]), ("c", "a")]
    assert found.interactions[0].metadata["derived_from"] == "the receiver that the message names"
    # b was not addressed by a, nor c by b, nor d by c: no task was passed on.
    assert found.handoffs == []


def test_results_delivered_side_by_side_are_no_talk():
    events = [
        {"type": "task_assignment", "payload": {"agent": name, "content": "Work."}} for name in ("a", "b", "idle")
    ] + [{"type": "task_result", "payload": {"agent": name, "content": "Done."}} for name in ("a", "b")]
    found = derived({"events": events})
    assert found.interactions == found.handoffs == []
    assert sorted(found.roles) == ["a", "b", "idle"]
    assert [step.kind for step in found.steps] == ["task_result", "task_result"]


@pytest.mark.parametrize(
    ("taken", "success"),
    [
        ([says("b", "Here.")], None),
        ([calls("b", status="success")], True),
        ([calls("b", status="error")], False),
        ([calls("b")], None),
        ([calls("b", error="no such page"), calls("b", status="success")], True),
    ],
)
def test_a_handoff_failed_when_all_calls_of_the_taker_did(taken, success):
    (handoff,) = derived({"events": [says("a", "Find it."), *taken]}).handoffs
    assert (handoff.from_agent, handoff.to_agent, handoff.success) == ("a", "b", success)
    assert handoff.metadata["derived_from"] == "the order of the speakers"


def test_times_of_answers_and_handoffs_come_from_time_stamps():
    found = derived({"events": [says("a", "Go.", 10.0), says("b", "Done.", 14.5), says("a", "Good.", 15.0)]})
    assert [each.response_time for each in found.interactions] == [4.5, None]
    assert [each.handoff_time for each in found.handoffs] == [4.5, 0.5]
    assert found.interactions[0].metadata["response_time_derived_from"]


def test_recorded_facts_come_first_and_are_left_as_they_are():
    interaction = AgentInteraction("x", "y", timestamp=1.0)
    answer = AgentInteraction("y", "x", timestamp=3.0)
    trace = TraceLog(
        [],
        interactions=[interaction, answer],
        handoffs=[HandoffEvent("x", "y")],
        conflicts=[ConflictEvent(["x", "y"])],
        agent_roles={"x": AgentRole("x")},
    )
    trace.record("message", agent="a", content="Your answer is wrong.")
    trace.record("message", agent="b", content="Your answer is wrong.")
    found = derived(trace)
    assert found.derived == frozenset()
    assert (found.handoffs, found.conflicts, found.roles) == (trace.handoffs, trace.conflicts, trace.agent_roles)
    assert [each.response_time for each in found.interactions] == [2.0, None]
    assert interaction.response_time is None
    assert interaction.metadata == {}


def test_one_agent_has_nobody_to_deal_with():
    found = derived({"events": [says("a", "Hello."), says("a", "Bye."), calls("a")]})
    assert (found.interactions, found.handoffs, found.conflicts, found.roles) == ([], [], [], {})
    assert len(found.steps) == 3


@pytest.mark.parametrize(
    ("later", "resolved"),
    [
        ([], None),
        ([says("a", "You are right, I apologize.")], True),
        ([says("a", "It stays at 54.")], False),
        ([says("c", "I agree.")], None),  # a third one cannot settle it for them
    ],
)
def test_an_objection_is_a_conflict(later, resolved):
    (conflict,) = derived(
        {"events": [says("a", "7 x 8 is 54."), says("b", "Your result is wrong: 56."), *later]}
    ).conflicts
    assert conflict.agents_involved == ["a", "b"]
    assert conflict.resolved is resolved
    assert conflict.metadata["derived_from"] == "words of disagreement"
    assert conflict.description == "Your result is wrong: 56."


@pytest.mark.parametrize(
    ("text", "is_objection"),
    [
        ("I respectfully disagree.", True),
        ("However, this is not correct.", True),
        ("You have made a mistake in line 3.", True),
        ("There is a discrepancy between the two results.", True),
        ("The user reports that the matrix is incorrect.", False),
        ("I apologize for the error in the previous patch.", False),
        ("You made good progress; this is correct.", False),
        ("It is wrong to say that your answer, which I checked twice, was bad", False),
    ],
)
def test_only_outright_objections_count(text, is_objection):
    assert (find_objection(text) is not None) is is_objection


@pytest.mark.parametrize(
    "opening",
    [
        "Hello everyone. In attendance are:\n\nCoder:\n   I write code.\nTester: I test.\n",
        "To answer this request we have assembled the following team:\n\nCoder: I write code.\nTester: I test.\n\n\n"
        "Here is a plan:\nNobody: at all",
    ],
)
def test_an_introduced_team_has_its_descriptions_and_its_silent_members(opening):
    roles = derived({"events": [says("manager", opening), says("Coder", "x = 1")]}).roles
    assert {name: role.description for name, role in roles.items()} == {
        "Coder": "I write code.", "Tester": "I test.", "manager": "",
    }  # fmt: skip
    assert roles["Tester"].metadata["derived_from"] == "the introduction of the team"
    assert roles["Tester"].can_delegate is None


def test_an_executors_words_and_its_call_are_one_step():
    told = calls("terminal", "code_execution", status="error", derived_from="the executor's words")
    steps = steps_of(
        {"events": [says("coder", "```\n1/0\n```"), told, says("terminal", "exitcode: 1"), says("coder", "Oh.")]}
    )
    assert [(step.number, step.position, step.agent, step.failed, step.is_result) for step in steps] == [
        (0, 0, "coder", None, False), (1, 2, "terminal", True, True), (2, 3, "coder", None, False),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["interactions", "handoffs", "conflicts", "agent_roles"])
def test_what_cannot_be_read_is_named(name):
    trace = TraceLog()
    setattr(trace, name, "nonsense")
    with pytest.raises(InputProblem, match=rf"trace.{name} must be a (list|dict); received 'nonsense'"):
        derived(trace)


def test_real_runs_step_by_step():
    """Who&When counts messages from 0, and so do steps: the labels can be looked up."""
    path = DATA / "dev" / "whoandwhen.jsonl.gz"
    if not path.is_file():
        pytest.skip(f"no {path}: set AGENTUNIT_DATA to the folder of the shared data")
    named = [
        (record.case.metadata["mistake_agent"], steps_of(record.trace)[int(record.case.metadata["mistake_step"])].agent)
        for record in read_records(path)
    ]
    assert len(named) == 42
    assert sum(agent == found for agent, found in named) == 40  # two rows contradict themselves
