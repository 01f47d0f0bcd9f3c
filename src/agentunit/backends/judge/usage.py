"""What judging took: questions, calls, tokens and money."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


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
