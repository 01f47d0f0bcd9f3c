"""The judge as RAGAS wants its language model: a prompt and a type of reply in, a reply of that type out."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from agentunit.backends.judge.asking import Asking, JudgeFailed
from agentunit.backends.judge.fencing import fenced
from agentunit.backends.judge.replies import UnreadableReply
from agentunit.backends.judge.tolerant_json import NotJson, json_values
from agentunit.backends.ragas.installed import RAGAS_EXTRA

_TASK = "You carry out the task that the user describes, as its examples show. Reply with JSON only."
# A prompt of RAGAS ends with the texts under judgement as JSON between these two. JSON has no bare line break within a
# text, so no text can contain the first.
_BEFORE_INPUT = "\nNow perform the same with the following input\ninput: "
_AFTER_INPUT = "\nOutput: "
_LEAST_TOKENS, _MOST_TOKENS = 1024, 8192


class JudgeModel:
    """Asks the judge on behalf of one metric object of RAGAS and one case; ``replies`` keeps what came back."""

    def __init__(self, asking: Asking, purpose: str) -> None:
        self._asking = asking
        self._purpose = purpose
        self.replies: list[Any] = []

    async def agenerate(self, prompt: str, response_model: Any) -> Any:
        """The reply to a prompt as an instance of ``response_model``; ``JudgeFailed`` when there is none to be had."""
        task, given = _parted(prompt)
        shown = fenced([("input", given)])
        asked = json.loads(given)

        def read(text: str) -> Any:
            reply = _read(text, response_model)
            _check(reply, asked)
            return reply

        # A reply repeats the texts that it is about, except the context.
        length = len(given) - len(str(asked.get("context", "")))
        reply = await self._asking.read(
            self._purpose,
            _TASK,
            f"{task}{_BEFORE_INPUT}\n{shown}\n{_AFTER_INPUT}",
            _schema_of(response_model),
            read,
            max_tokens=min(_LEAST_TOKENS + length, _MOST_TOKENS),
        )
        self.replies.append(reply)
        return reply


def _parted(prompt: str) -> tuple[str, str]:
    """The task, and the texts under judgement as JSON."""
    task, mark, rest = prompt.partition(_BEFORE_INPUT)
    given, end, _ = rest.rpartition(_AFTER_INPUT)
    if not mark or not end:
        raise JudgeFailed(
            f"the prompts of this version of RAGAS are laid out in an unknown way; {RAGAS_EXTRA} adds one that fits"
        )
    return task, given


def _read(text: str, response_model: Any) -> Any:
    """The one reply of the wanted type in a text, however it is wrapped."""
    try:
        values = json_values(text)
    except NotJson as error:
        raise UnreadableReply(str(error)) from None
    rule = "the reply must be a JSON object that follows the schema"
    found: list[Any] = []
    for value in (each for outer in values for each in _unwrapped(outer, response_model)):
        try:
            found.append(response_model.model_validate(value))
        except ValueError as error:
            rule = f"the reply must follow the schema: {_broken_rule(error)}"
    if not found:
        raise UnreadableReply(rule)
    if any(each != found[0] for each in found):
        raise UnreadableReply("the reply must be one JSON object; it holds several that differ")
    return found[0]


def _unwrapped(value: Any, response_model: Any) -> list[Any]:
    """The value itself, and what it may stand for: the object in a wrapper, or the list that is all of the object."""
    names = list(_schema_of(response_model).get("properties", ()))
    if isinstance(value, list):
        return [{names[0]: value}] if len(names) == 1 else []
    inside = [each for each in value.values() if isinstance(each, dict)]
    return inside if len(value) == len(inside) == 1 and not set(value) & set(names) else [value]


def _broken_rule(error: ValueError) -> str:
    found = error.errors()[:3] if hasattr(error, "errors") else []
    said = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in found)
    return said or str(error)


def _check(reply: Any, asked: dict[str, Any]) -> None:
    """What RAGAS does not look at: left out verdicts, numbers that are no verdict, and statements that are not sorted.

    It would count a missing verdict as if there were no such statement, and no statement at all as full marks.
    """
    statements = asked.get("statements")
    verdicts = reply.statements if statements is not None else [reply] if hasattr(reply, "verdict") else []
    if statements is not None and len(verdicts) != len(statements):
        raise UnreadableReply(
            f"there must be one verdict for each of {len(statements)} statements; received {len(verdicts)}"
        )
    for each in verdicts:
        if each.verdict not in (0, 1):
            raise UnreadableReply(f"a verdict must be 0 or 1; received {each.verdict!r:.40}")
    if "ground_truth" in asked and asked["answer"] and not (reply.TP or reply.FP):
        raise UnreadableReply("every statement of the answer must be in TP or FP; none is")


@lru_cache(maxsize=64)
def _schema_of(response_model: Any) -> dict[str, Any]:
    """Made once for a type: pydantic takes a millisecond for it."""
    return strict_schema(response_model.model_json_schema())


def strict_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema as servers with strict structured output want it: all properties required, and no others allowed.

    >>> strict_schema({"type": "object", "properties": {"verdict": {"type": "integer", "default": 0}}})
    {'type': 'object', 'properties': {'verdict': {'type': 'integer'}}, 'required': ['verdict'],
     'additionalProperties': False}
    """
    made = {name: _strict(value) for name, value in schema.items() if name != "default"}
    if isinstance(made.get("properties"), dict):
        made |= {"required": list(made["properties"]), "additionalProperties": False}
    return made


def _strict(value: Any) -> Any:
    if isinstance(value, dict):
        return strict_schema(value)
    return [_strict(each) for each in value] if isinstance(value, list) else value
