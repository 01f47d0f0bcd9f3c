"""How many tokens a reply may have: little at first, more once a reply was cut off, as models that reason need."""

from __future__ import annotations

import re

from agentunit.backends.judge.completions import CUT_OFF, LIMIT_REFUSED, Completion
from agentunit.backends.judge.settings import JudgeSettings

_GROWTH = 4
_MOST = 32_768
# What a model that was asked to reason gets from the start.
_FOR_REASONING = 8_192
_NO_REASONING = (None, "none", "minimal")
_AROUND = 64
_NUMBER = re.compile(r"\d{3,7}")


class Room:
    """The limit of tokens of replies in one run. What one call needed, all later ones get from the start."""

    def __init__(self, settings: JudgeSettings) -> None:
        self._fixed = settings.max_tokens
        self._least = 0 if settings.reasoning_effort in _NO_REASONING else _FOR_REASONING
        self._most = _MOST

    def first(self, wanted: int) -> int:
        """The limit of a call's first attempt."""
        return self._fixed or max(wanted, self._least)

    def after_cut_off(self, had: int) -> int | None:
        """The limit to try after a reply reached this one; ``None`` when there is no larger one."""
        found = min(max(had * _GROWTH, self._least), self._most)
        if self._fixed is not None or found <= had:
            return None
        self._least = max(self._least, found)
        return found

    def after_refusal(self, had: int, wanted: int, message: str, cut_off: tuple[int, Completion] | None) -> int | None:
        """The limit to try after a server refused this one; ``None`` when the refusal is about something else.

        ``wanted`` is what the question asked for; ``cut_off`` the limit that is known to be too small, and its reply.
        """
        if self._fixed is not None or not LIMIT_REFUSED.search(message):
            return None
        too_small, said = cut_off or (0, Completion())
        allowed = _allowed(message, had, said.prompt_tokens or 0)
        if allowed > max(too_small, wanted):
            self._most = allowed
            self._least = min(self._least, allowed)
            return allowed
        return wanted if cut_off is None and wanted < had else None

    def why_cut_off(self, had: int) -> str:
        """Why a reply that was cut off is not asked for again, with the way out."""
        if self._fixed is not None:
            return f"{CUT_OFF} (max_tokens is set to {self._fixed:,}: set more, or none)"
        return f"{CUT_OFF}, {had:,} (the setting max_tokens gives more, if the model takes it)"


def _allowed(message: str, had: int, prompt_tokens: int) -> int:
    """The most that a server takes, by the words in which it refused more; 0 where it does not say."""
    taken = prompt_tokens + _AROUND if "context" in message.lower() else 0
    limits = [int(found) - taken for found in _NUMBER.findall(message.replace(",", ""))]
    return max((each for each in limits if each < had), default=0)
