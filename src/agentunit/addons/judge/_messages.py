"""What the judge is asked, what comes back, and the totals of a run."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import msgspec

from agentunit.addons.judge._level_chances import Position

_VERSION = 1


@dataclass(frozen=True)
class JudgeRequest:
    """One question to the judge.

    ``purpose`` names the kind of question in one word, for transcripts and totals. ``schema`` is the JSON Schema of the
    wanted reply, sent where the server takes one. ``sample`` is the number of the repeat: each has a reply of its own.
    ``mark`` is the text that only a reply to this question can hold; it comes from the question, so it adds nothing to
    its digest. A question with a ``seed`` is no judgment: its reply is drawn, by that seed where the server
    knows seeds.
    """

    purpose: str
    system: str
    user: str
    schema: dict[str, Any] | None
    max_tokens: int = 1024
    sample: int = 0
    mark: str | None = None
    seed: int | None = None

    def digest(self, place: str, model: str) -> bytes:
        """What stands for this question to this model at this place in the cache; not its purpose."""
        parts = [_VERSION, place, model, self.system, self.user, self.schema, self.max_tokens, self.sample]
        parts += [] if self.seed is None else [self.seed]
        return hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).digest()


@dataclass(frozen=True)
class JudgeReply:
    """The judge's reply, or the problem why there is none.

    A reply that was cut off at its limit of tokens has both, its text as far as it goes. ``cached`` says that no call
    was made for it (kept from before, or the same question was under way); its tokens are those of the original call,
    its cost is 0. ``attempts`` counts the requests that were sent, ``unstated`` those among them that the server may
    have billed without saying so. ``transcript`` is there if the settings ask for it, ``positions``
    (the tokens with their chances) if they ask for these and the server tells.
    """

    text: str | None
    problem: str | None
    model: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost_usd: float | None = None
    cached: bool = False
    attempts: int = 0
    unstated: int = 0
    elapsed_s: float = 0.0
    positions: tuple[Position, ...] | None = None
    transcript: dict[str, Any] | None = None


def transcript(request: JudgeRequest, reply: JudgeReply, attempts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Plain data for a run's record. No header and no address is in it, so no key either."""
    asked = ("purpose", "sample", "system", "user", "schema", "max_tokens")
    came = ("problem", "model", "prompt_tokens", "completion_tokens", "cost_usd", "cached")
    return {
        **{name: getattr(request, name) for name in asked},
        "reply": reply.text,
        **{name: getattr(reply, name) for name in came},
        "elapsed_s": round(reply.elapsed_s, 4),
        "attempts": list(attempts),
    }


@dataclass
class JudgeUsage:
    """Running totals of one run.

    ``calls`` counts every request that was sent, ``retries`` those among them that repeated one. ``cached`` counts
    questions answered without a call, ``failures`` those that got no text. Tokens and ``cost_usd`` are what the
    server stated; ``cost_usd`` is ``None`` once a call had no known price. ``unstated`` counts requests that the server
    may have billed without saying so (broken off, unreadable): their cost is not in ``cost_usd``, but the spend cap
    counts it at its most. ``problems`` are sentences about the run as a whole, such as a cache that cannot be written.
    """

    questions: int = 0
    calls: int = 0
    cached: int = 0
    retries: int = 0
    failures: int = 0
    unstated: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = 0.0
    purposes: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def described(self) -> dict[str, Any]:
        """As plain data, for reports and records."""
        return asdict(self)

    def add_problem(self, sentence: str) -> None:
        """Note a sentence about the run, once."""
        if sentence not in self.problems:
            self.problems.append(sentence)
