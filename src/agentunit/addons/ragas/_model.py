"""The judge as RAGAS wants its language model: a prompt and a type of reply in, a reply of that type out."""

from __future__ import annotations

import json
from collections import Counter
from functools import lru_cache
from typing import Any

from agentunit.addons.ragas._installed import RAGAS_EXTRA
from agentunit.backends.asking import (
    MARK,
    Asking,
    JudgeFailed,
    UnreadableReply,
    check_nothing_beside,
    fenced,
    plain_words,
)

_TASK = "You carry out the task that the user describes, as its examples show. Reply with JSON only."
# A prompt of RAGAS ends with the texts under judgment as JSON between these two. JSON has no bare line break within a
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
        task, texts = _parted(prompt)
        shown = fenced([("input", texts)], task)
        asked = json.loads(texts)

        def read(received: dict[str, Any]) -> Any:
            reply = _read(received, response_model)
            _check(reply, asked)
            return reply

        # A reply repeats the texts that it is about, except the context.
        length = len(texts) - len(str(asked.get("context", "")))
        reply = await self._asking.read(
            self._purpose,
            _TASK,
            shown._replace(text=f"{task}{_BEFORE_INPUT}\n{shown.text}"),
            _schema_of(response_model),
            read,
            max_tokens=min(_LEAST_TOKENS + length, _MOST_TOKENS),
        )
        self.replies.append(reply)
        return reply


def _parted(prompt: str) -> tuple[str, str]:
    """The task, and the texts under judgment as JSON."""
    task, mark, rest = prompt.partition(_BEFORE_INPUT)
    texts, end, _ = rest.rpartition(_AFTER_INPUT)
    if not mark or not end:
        raise JudgeFailed(
            f"the prompts of this version of RAGAS are laid out in an unknown way; {RAGAS_EXTRA} adds one that fits"
        )
    return task, texts


def _read(received: dict[str, Any], response_model: Any) -> Any:
    """A reply as an instance of the wanted type; a wrapper around all of it does not count."""
    said = {name: value for name, value in received.items() if name != MARK}
    names = set(_schema_of(response_model)["properties"])
    if len(said) == 1 and not names & said.keys():
        (inside,) = said.values()
        said = inside if isinstance(inside, dict) else said
    try:
        reply = response_model.model_validate(said)
    except ValueError as error:
        found = error.errors()[:3] if hasattr(error, "errors") else []
        broken = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in found)
        raise UnreadableReply(f"the reply must follow the schema: {broken or error}") from None
    check_nothing_beside(said, names)
    return reply


def _check(reply: Any, asked: dict[str, Any]) -> None:
    """What RAGAS does not look at: left out or doubled verdicts, numbers that are no verdict, and unsorted statements.

    It would count a missing verdict as if there were no such statement, and no statement at all as full marks.
    """
    statements = asked.get("statements")
    verdicts = reply.statements if statements is not None else [reply] if hasattr(reply, "verdict") else []
    for each in verdicts:
        if each.verdict not in (0, 1):
            raise UnreadableReply(f"a verdict must be 0 or 1; received {each.verdict!r:.40}")
    if statements is not None:
        _check_each_once(verdicts, statements, "there must be one verdict for each of")
    if "ground_truth" in asked:
        _check_each_once([*reply.TP, *reply.FP], asked["answer"], "TP and FP together must hold each of")
        if len(reply.FN) > len(asked["ground_truth"]):
            raise UnreadableReply("FN must hold statements of the ground truth, each once; it holds more")


def _check_each_once(entries: list[Any], statements: list[str], rule: str) -> None:
    """As many entries as statements, none of them twice. A statement in other words is taken as it is."""
    if len(entries) != len(statements):
        raise UnreadableReply(f"{rule} {len(statements)} statements; received {len(entries)}")
    wanted = Counter(map(plain_words, statements))
    doubled = Counter(plain_words(each.statement) for each in entries) - wanted
    for statement in doubled:
        if statement in wanted:
            raise UnreadableReply(f"{rule} {len(statements)} statements; received one twice: {statement!r:.60}")


@lru_cache(maxsize=64)
def _schema_of(response_model: Any) -> dict[str, Any]:
    """Made once for a type: pydantic takes a millisecond for it."""
    schema = strict_schema(response_model.model_json_schema())
    marked = {MARK: {"type": "string"}, **schema.get("properties", {})}
    return {**schema, "properties": marked, "required": list(marked)}


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
