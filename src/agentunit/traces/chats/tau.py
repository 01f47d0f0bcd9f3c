"""Results of tau-bench: chats of an agent with a simulated customer, and the reward of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agentunit.core.case import DatasetCase
from agentunit.core.outcome import Outcome
from agentunit.core.records import Record
from agentunit.core.results import InputError
from agentunit.core.trace import TraceLog
from agentunit.traces.chats.conversation import Conversation
from agentunit.traces.chats.messages import add_message
from agentunit.traces.chats.rows import CaseIds, NoConversation, file_rows, records_of_rows
from agentunit.traces.chats.values import as_amount, as_dict, as_list, as_name, as_number, without_nones
from agentunit.traces.formats_base import Opening, Source, TraceFormat
from agentunit.traces.spans import ReadingNotes

# Rewards are products of floats; tau-bench itself calls a task solved from here on.
SOLVED_FROM = 1 - 1e-6


def says_error(result: str) -> bool:
    """tau-bench's convention: its tools have no error flag, a failed one answers with a text that begins "Error:".

    >>> says_error("Error: user not found"), says_error('{"error": null}')
    (True, False)
    """
    return result.startswith("Error:")


def expected_calls(actions: Any) -> list[dict[str, Any]] | None:
    """A task's actions as expected tool calls; ``None`` when none are stated."""
    if not isinstance(actions, list):
        return None
    calls = []
    for each in actions:
        action = as_dict(each)
        if name := as_name(action.get("name")):
            arguments = action.get("kwargs", action.get("arguments"))
            # No argument is compared: any will do.
            ignored = action.get("compare_args") == []
            calls.append({"name": name, **({"arguments": as_dict(arguments)} if not ignored else {})})
    return calls


def solved(reward: Any) -> bool | None:
    """Whether a reward means that the task was solved."""
    number = as_number(reward)
    return None if number is None else number >= SOLVED_FROM


def _matches(opening: Opening) -> bool:
    return {"task_id", "reward", "traj"} <= opening.keys


def _read(source: Source, notes: ReadingNotes) -> Iterator[Record | InputError]:
    ids = CaseIds()
    yield from records_of_rows(source, file_rows(source), lambda row, _: _record(row, ids, notes))


def _record(row: Any, ids: CaseIds, notes: ReadingNotes) -> Record:
    result = as_dict(row)
    trajectory = result.get("traj")
    if not isinstance(trajectory, list):
        raise NoConversation(f"a tau-bench result needs a list of messages as 'traj'; received {trajectory!r:.60}")
    talk = Conversation(notes)
    for message in trajectory:
        add_message(talk, message, says_error=says_error)
    info = as_dict(result.get("info"))
    task = as_dict(info.get("task"))
    task_id, trial = as_name(result.get("task_id")), as_name(result.get("trial"))
    case = DatasetCase(
        ids.unique(f"{task_id or 'task'}" + (f"/trial-{trial}" if trial else "")),
        talk.first_asked,
        metadata=without_nones(
            task_id=result.get("task_id"),
            trial=result.get("trial"),
            instruction=task.get("instruction"),
            user_id=task.get("user_id"),
            expected_tool_calls=expected_calls(task.get("actions")),
            expected_outputs=as_list(task.get("outputs")) or None,
        ),
    )
    metadata = without_nones(
        source_format=TAU_BENCH.name,
        user_cost=as_amount(info.get("user_cost")),
    )
    outcome = Outcome(
        solved(result.get("reward")),
        talk.last_answer,
        error=as_name(info.get("error")),
        metadata=without_nones(reward=result.get("reward"), reward_info=info.get("reward_info")),
    )
    return Record(case, TraceLog(talk.events, metadata), outcome)


TAU_BENCH = TraceFormat(
    "tau-bench", "tau-bench results: {task_id, reward, info, traj, trial}, as an array or one a line", _matches, _read
)
