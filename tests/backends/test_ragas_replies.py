"""What a judge replies to RAGAS, read tolerantly and checked where RAGAS would take it for a score."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from agentunit.backends.judge.asking import Asking, JudgeFailed
from agentunit.backends.judge.client import JudgeReply, JudgeRequest
from agentunit.backends.ragas.model import JudgeModel

PARIS = "Paris is in France."


class Scripted:
    """A judge that gives these replies in turn."""

    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)
        self.asked: list[JudgeRequest] = []

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        self.asked.append(request)
        return JudgeReply(self.replies.pop(0), None)

    def forget(self, request: JudgeRequest) -> None:
        pass


class Model(dict[str, Any]):
    """A stand-in for a type of pydantic; RAGAS' own are in the tests with RAGAS."""

    required: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> Any:
        if name not in self:
            raise AttributeError(name)
        return [Verdicts(each) for each in self[name]] if name == "statements" else self[name]

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        return {"type": "object", "properties": {name: {} for name in cls.required}}

    @classmethod
    def model_validate(cls, value: dict[str, Any]) -> Model:
        if missing := [name for name in cls.required if name not in value]:
            raise ValueError(f"{missing[0]}: Field required")
        return cls(value)


class Statements(Model):
    required = ("statements",)


class Verdicts(Model):
    required = ("reason", "verdict")


class Sorted(Model):
    required = ("TP", "FP", "FN")


def ask(judge: Scripted, wanted: type[Model], **given: Any) -> Any:
    prompt = f"Task.\n\nNow perform the same with the following input\ninput: {json.dumps(given)}\nOutput: "
    return asyncio.run(JudgeModel(Asking(judge), "ragas_test").agenerate(prompt, wanted))


TWO = {"context": PARIS, "statements": ["A.", "B."]}
YES, NO = {"statement": "A.", "reason": "r", "verdict": 1}, {"statement": "B.", "reason": "r", "verdict": 0}


@pytest.mark.parametrize(
    "reply",
    [
        json.dumps({"statements": [YES, NO]}),
        f"```json\n{json.dumps({'statements': [YES, NO]}, indent=2)}\n```",
        f"Here you are: {json.dumps({'statements': [YES, NO]})} I hope it helps!",
        json.dumps([YES, NO]),
        json.dumps({"output": {"statements": [YES, NO]}}),
        f"<think>Is it {{1}}?</think>{json.dumps({'statements': [YES, NO]})}",
    ],
)
def test_a_reply_is_read_however_it_is_wrapped(reply: str) -> None:
    found = ask(Scripted(reply), Statements, **TWO)
    assert [each.verdict for each in found.statements] == [1, 0]


@pytest.mark.parametrize(
    ("wanted", "given", "bad", "rule"),
    [
        (Statements, TWO, "No.", "must be a JSON object"),
        (Statements, TWO, '{"claims": []}', "statements: Field required"),
        (Statements, TWO, json.dumps({"statements": [YES]}), "one verdict for each of 2 statements; received 1"),
        (Statements, TWO, json.dumps({"statements": [YES, NO, NO]}), "each of 2 statements; received 3"),
        (Statements, TWO, json.dumps({"statements": [YES, {**NO, "verdict": 7}]}), "must be 0 or 1; received 7"),
        (Verdicts, {"context": PARIS}, '{"reason": "r", "verdict": -1}', "must be 0 or 1; received -1"),
        (Verdicts, {"context": PARIS}, '{"reason": "r", "verdict": 0} {"reason": "r", "verdict": 1}', "that differ"),
        (Sorted, {"answer": ["A."], "ground_truth": ["B."]}, '{"TP": [], "FP": [], "FN": []}', "none is"),
    ],
)
def test_a_reply_that_says_too_little_is_asked_for_once_more(
    wanted: type[Model], given: dict[str, Any], bad: str, rule: str
) -> None:
    good = {Statements: {"statements": [YES, NO]}, Verdicts: NO, Sorted: {"TP": ["A."], "FP": [], "FN": ["B."]}}[wanted]
    judge = Scripted(bad, json.dumps(good))
    assert ask(judge, wanted, **given) == good
    assert rule in judge.asked[1].user
    with pytest.raises(JudgeFailed, match="asked twice") as failure:
        ask(Scripted(bad, bad), wanted, **given)
    assert rule in str(failure.value)
    assert failure.value.raw == bad
