"""Histories of browser-use agents (``AgentHistoryList``): steps, each with its actions and their results."""

from __future__ import annotations

from typing import Any

from agentunit.addons.formats.chats.chat_conversation import Conversation
from agentunit.addons.formats.chats.chat_records import RowContext, chat_format, listed_in, row_facts
from agentunit.addons.formats.chats.loose_values import (
    as_amount,
    as_dict,
    as_list,
    as_name,
    as_time,
    count_unknown,
    token_counts,
    without_nones,
)
from agentunit.core.records import Outcome, Record
from agentunit.core.trace import TraceLog
from agentunit.traces.formats_base import Opening
from agentunit.traces.places import names_in

_STEP = frozenset(("model_output", "result", "state", "metadata", "state_message"))
# Thoughts and plans are no deeds; older versions have them under current_state.
_OUTPUT = names_in(
    "action evaluation_previous_goal memory next_goal thinking current_plan_item plan_update current_state"
)
_RESULT = names_in(
    "is_done success error extracted_content long_term_memory include_in_memory attachments "
    "include_extracted_content_only_once metadata images judgement"
)
_END = "done"


def _matches(opening: Opening) -> bool:
    steps = as_list(as_dict(opening.value).get("history"))
    if opening.value is None:
        return "history" in opening.keys and b'"model_output"' in opening.head
    return bool(steps) and {"model_output", "result", "state"} <= as_dict(steps[0]).keys()


class _History(Conversation):
    success: bool | None = None
    error: str | None = None

    def add(self, number: int, step: dict[str, Any]) -> None:
        """One step: the model's actions in order, each with the result in the same place."""
        output, times = as_dict(step.get("model_output")), as_dict(step.get("metadata"))
        actions, results = as_list(output.get("action")), [as_dict(each) for each in as_list(step.get("result"))]
        for whole, known in ((step, _STEP), (output, _OUTPUT), *((each, _RESULT) for each in results)):
            count_unknown(self.notes, whole, known)
        at = as_time(times.get("step_start_time"))
        # Versions before 0.3 count what a step was told.
        n_prompt = times.get("input_tokens")
        self.model_call(token_counts({"prompt_tokens": n_prompt} if n_prompt else None, self.notes), at=at)
        for place, action in enumerate(actions):
            name, given = next(iter(as_dict(action).items()), ("", None))
            result = results[place] if place < len(results) else None
            if name == _END:
                self._end(as_dict(given), result or {}, at)
                continue
            call_id = f"{number}-{place}"  # a step that broke off leaves calls without results
            self.call(name, given, call_id=call_id, at=at)
            if result is not None:
                error = as_name(result.get("error"))
                self.result(result.get("extracted_content"), call_id=call_id, failed=error is not None, error=error)
        # A step whose model gave no action has an error alone.
        for result in results[len(actions) :]:
            self.error = as_name(result.get("error")) or self.error

    def _end(self, given: dict[str, Any], result: dict[str, Any], at: float | None) -> None:
        text = as_name(result.get("extracted_content")) or as_name(given.get("text"))
        self.say("assistant", text, at=at)
        verdict = result.get("success", given.get("success"))
        self.success = verdict if isinstance(verdict, bool) else None
        self.error = as_name(result.get("error"))


def _record(row: Any, context: RowContext) -> Record:
    value, steps = listed_in(row, "history", "a history of browser-use")
    talk = _History(context.notes)
    for number, step in enumerate(steps):
        talk.add(number, as_dict(step))
    facts, usage = row_facts(value, "history"), as_dict(value.get("usage"))
    facts.metadata.pop("usage", None)
    counts = {
        "prompt_tokens": usage.get("total_prompt_tokens"),
        "completion_tokens": usage.get("total_completion_tokens"),
        "prompt_tokens_details": {"cached_tokens": usage.get("total_prompt_cached_tokens")},
    }
    times = [as_dict(as_dict(step).get("metadata")) for step in steps]
    spent = [(as_amount(each.get("step_start_time")), as_amount(each.get("step_end_time"))) for each in times]
    durations = [end - start for start, end in spent if start is not None and end is not None]
    metadata = without_nones(
        source_format=BROWSER_USE.name,
        usage=token_counts(counts, context.notes) if usage else None,
        cost=as_amount(usage.get("total_cost")),
        duration_s=sum(durations) if durations else None,
    )
    outcome = Outcome(talk.success, talk.last_answer, error=talk.error, elapsed_s=metadata.get("duration_s"))
    return Record(facts.case(context, talk.first_asked), TraceLog(talk.events, metadata), outcome)


BROWSER_USE = chat_format(
    "browser-use", "histories of browser-use agents: {history: [{model_output, result, state}]}", _matches, _record
)
