"""One judgment's questions to the judge: asked, read, asked once more if unreadable, and counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol, TypeVar, cast

from agentunit.addons.judge._prompts import DATA_RULE
from agentunit.addons.judge.client import JudgeReply, JudgeRequest
from agentunit.addons.judge.replies import UnprovenReply, own_object
from agentunit.backends.asking import Fenced, JudgeFailed, UnreadableReply, readable_text

T = TypeVar("T")

_ASKED_AGAIN = (
    "\n\nAn earlier reply to this could not be used: {error}. Reply with the JSON described above and nothing else."
)


class Judge(Protocol):
    """What a measure needs of the client."""

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        """A reply, or the reason why there is none."""
        ...

    def forget(self, request: JudgeRequest) -> None:
        """Keep no reply to this request in the cache."""
        ...


class Asking:
    """The questions of one judgment, and what they took.

    ``sample`` is the number of the repeat: a repeat is asked anew and not answered from the replies of another.
    ``seed`` is for questions whose replies are drawn.
    """

    def __init__(self, judge: Judge, sample: int = 0, seed: int | None = None) -> None:
        self._judge = judge
        self._sample = sample
        self._seed = seed
        self._replies: list[JudgeReply] = []

    async def read(
        self,
        purpose: str,
        task: str,
        data: Fenced,
        schema: dict[str, Any],
        reader: Callable[[dict[str, Any]], T],
        *,
        max_tokens: int = 1024,
    ) -> T:
        """What ``reader`` makes of the reply: of the one JSON object that carries the mark of ``data``.

        A reply that it cannot read is asked for once more, with its reason. One that lacks evidence too; it stays in
        the cache, because the second reply decides what it is worth.
        """
        system = f"{task}\n\n{DATA_RULE}"
        request = JudgeRequest(purpose, system, data.message, schema, max_tokens, self._sample, data.mark, self._seed)
        reply = await self._reply(request)
        try:
            return reader(own_object(reply.text or "", data.mark, data.judged))
        except UnreadableReply as error:
            if not isinstance(error, UnprovenReply):
                self._judge.forget(request)
            asked_again = _ASKED_AGAIN.format(error=readable_text(str(error)))
        request = replace(request, user=request.user + asked_again)
        reply = await self._reply(request)
        try:
            return reader(own_object(reply.text or "", data.mark, data.judged))
        except UnprovenReply as error:
            return cast(T, error.otherwise)
        except UnreadableReply as error:
            self._judge.forget(request)
            raw = readable_text(reply.text or "")
            raise JudgeFailed(f"the judge's reply cannot be read, asked twice: {error}", raw) from None

    async def _reply(self, request: JudgeRequest) -> JudgeReply:
        reply = await self._judge.ask(request)
        self._replies.append(reply)
        if reply.text is None:
            raise JudgeFailed(reply.problem or "the judge gave neither a reply nor a reason")
        if reply.problem is not None:
            # Cut off, after the client has given it all the room there is: asking once more would be paid in vain.
            raise JudgeFailed(reply.problem, readable_text(reply.text))
        return reply

    @property
    def replies(self) -> list[JudgeReply]:
        """All replies so far, failed ones included."""
        return list(self._replies)


def spent_on(replies: list[JudgeReply]) -> dict[str, Any]:
    """What replies took, for ``detail["judge"]``: calls, retries included, and apart from them answers of the cache.

    Tokens and cost are those of the calls; unknown (``None``) as soon as one call does not tell them. ``unstated`` is
    there when the server may have billed requests without saying so.

    >>> spent_on([])
    {'model': None, 'calls': 0, 'cached': 0, 'prompt_tokens': 0, 'completion_tokens': 0, 'cost_usd': 0.0}
    """
    called = [reply for reply in replies if reply.attempts]
    models = [reply.model for reply in replies if reply.model]
    spent = {
        "model": models[-1] if models else None,
        "calls": sum(reply.attempts for reply in called),
        "cached": sum(reply.cached for reply in replies),
        "prompt_tokens": _total([reply.prompt_tokens for reply in called], 0),
        "completion_tokens": _total([reply.completion_tokens for reply in called], 0),
        "cost_usd": _total([reply.cost_usd for reply in called], 0.0),
    }
    unstated = sum(reply.unstated for reply in replies)
    if unstated:
        spent["unstated"] = unstated
    transcripts = [reply.transcript for reply in replies if reply.transcript is not None]
    return {**spent, "transcripts": transcripts} if transcripts else spent


def _total(amounts: list[Any], start: Any) -> Any:
    return None if any(amount is None for amount in amounts) else sum(amounts, start)
