"""A judge without a server, for tests of what is asked and how replies are read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from agentunit.addons.judge.client import JudgeReply, JudgeRequest


def reply_of(text: str | None, problem: str | None = None, **known: Any) -> JudgeReply:
    """A reply with plain amounts in the places that do not matter."""
    amounts = {"model": "judge-1", "prompt_tokens": 100, "completion_tokens": 10, "cost_usd": 0.001}
    amounts |= {"cached": False, "attempts": 1, "elapsed_s": 0.01}
    return JudgeReply(text=text, problem=problem, **{**amounts, **known})


class ScriptedJudge:
    """Answers from a list of replies in order, or from a function of the request; keeps what it was asked.

    It can stand for a client too: ``submit`` runs a coroutine to its end.
    """

    def __init__(self, replies: Iterable[Any] | Callable[[JudgeRequest], Any], *, repeats: int = 1) -> None:
        self._replies = replies if callable(replies) else iter(list(replies))
        self.settings = SimpleNamespace(repeats=repeats)
        self.asked: list[JudgeRequest] = []
        self.forgotten: list[JudgeRequest] = []

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        """The next reply; a dict is sent as JSON with the request's mark, a ``JudgeReply`` as it is.

        ``<mark>`` in a text stands for the mark.
        """
        self.asked.append(request)
        replies = self._replies
        given = replies(request) if callable(replies) else next(replies)
        if isinstance(given, dict):
            given = json.dumps({"mark": "<mark>", **given}, ensure_ascii=False)
        reply = given if isinstance(given, JudgeReply) else reply_of(given)
        text = None if reply.text is None else reply.text.replace("<mark>", request.mark or "")
        return replace(reply, text=text)

    def forget(self, request: JudgeRequest) -> None:
        """Keep in mind what should not be cached."""
        self.forgotten.append(request)

    def submit(self, coroutine: Coroutine[Any, Any, Any]) -> Future[Any]:
        """Run a coroutine at once."""
        future: Future[Any] = Future()
        try:
            future.set_result(asyncio.run(coroutine))
        except Exception as error:  # noqa: BLE001  # whoever waits for the future gets it
            future.set_exception(error)
        return future


def body_of(request: JudgeRequest) -> dict[str, Any]:
    """A request in the shape in which a server sees it."""
    messages = [{"role": "system", "content": request.system}, {"role": "user", "content": request.user}]
    return {"model": "judge-1", "messages": messages}
