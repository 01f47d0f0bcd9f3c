"""A judge model that plays a user: told who it is and what it wants, it says the next thing, or that it is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentunit.addons.judge.questions import Asking
from agentunit.addons.judge.replies import text_of
from agentunit.backends.asking import MARK, UnreadableReply, fenced, field_of, readable_text
from agentunit.core.conversation import Persona

_TASK = """\
You play a user who talks with an assistant, so that the assistant can be tested. Stay in your role: write what this \
user would write next, in the user's own words, one message at a time and as short as people write. Know only what the \
persona, the goal and the conversation tell you, make up no other facts, and never do the assistant's work.

Persona: {persona}

Goal: {goal}

You are done {stop}. Then reply with "done": true and an empty message.

Reply with JSON only: {{"mark": "...", "message": "...", "done": false}}"""
_STOP = "when the goal is reached, or when it is clear that this assistant will not reach it"
_WORDS = {"true": True, "yes": True, "false": False, "no": False}
_SCHEMA = {
    "type": "object",
    "properties": {MARK: {"type": "string"}, "message": {"type": "string"}, "done": {"type": "boolean"}},
    "required": [MARK, "message", "done"],
    "additionalProperties": False,
}


async def next_message(persona: Persona, messages: Sequence[Mapping[str, Any]], asking: Asking) -> str | None:
    """What the user says next; ``None`` when it is done. ``JudgeFailed`` when the judge gives no usable reply."""
    stop = _STOP if persona.stop is None else f"when this holds: {readable_text(persona.stop)}"
    task = _TASK.format(persona=readable_text(persona.persona), goal=readable_text(persona.goal), stop=stop)
    names = {"user": "you, the user", "assistant": "the assistant"}
    said = [
        (f"message {number}, by {names.get(str(each['role']), 'the assistant')}", str(each["content"]))
        for number, each in enumerate(messages, 1)
    ]
    said = said or [("conversation", "Nothing was said yet: begin it.")]
    return await asking.read("simulated_user", task, fenced(said, task), _SCHEMA, _read)


def _read(reply: dict[str, Any]) -> str | None:
    done = field_of(reply, "done")
    done = _WORDS.get(done.strip().lower(), done) if isinstance(done, str) else done
    if done is True:
        return None
    message = text_of(field_of(reply, "message"))
    if done not in (False, None):
        raise UnreadableReply(f'"done" must be true or false; received {str(done)!r:.60}')
    if message is None or not message.strip():
        raise UnreadableReply('"message" must be a text while "done" is false')
    return message
