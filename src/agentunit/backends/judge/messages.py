"""What the judge is asked, and what comes back."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import msgspec

_VERSION = 1


@dataclass(frozen=True)
class JudgeRequest:
    """One question to the judge.

    ``purpose`` names the kind of question in one word, for transcripts and totals. ``schema`` is the JSON Schema of the
    wanted reply, sent where the server takes one. ``sample`` is the number of the repeat: each has a reply of its own.
    ``mark`` is the text that only a reply to this question can hold; it comes from the question, so it adds nothing to
    its digest.
    """

    purpose: str
    system: str
    user: str
    schema: dict[str, Any] | None
    max_tokens: int = 1024
    sample: int = 0
    mark: str | None = None

    def digest(self, place: str, model: str) -> bytes:
        """What stands for this question to this model at this place in the cache; not its purpose."""
        parts = [_VERSION, place, model, self.system, self.user, self.schema, self.max_tokens, self.sample]
        return hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).digest()


@dataclass(frozen=True)
class JudgeReply:
    """The judge's reply, or the problem why there is none.

    A reply that was cut off at its limit of tokens has both, its text as far as it goes. ``cached`` says that no call
    was made for it (kept from before, or the same question was under way); its tokens are those of the original call,
    its cost is 0. ``attempts`` counts the requests that were sent, ``unstated`` those among them that the server may
    have billed without saying so. ``transcript`` is there if the settings ask for it.
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
    transcript: dict[str, Any] | None = None
