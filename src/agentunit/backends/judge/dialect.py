"""What a server understands: servers call themselves OpenAI-compatible and refuse different parameters."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

# From the most to the least a server can promise about the shape of a reply.
_FORMATS = ("json_schema", "json_object", "plain")
_REFUSED = (400, 415, 422, 501)
# A refusal of the parameter itself, as servers word it; an error that merely mentions the word is about something else.
_TEMPERATURE_REFUSED = re.compile(
    r"(?:unsupported|not supported|unknown|unrecogni[sz]ed|unexpected|extra|invalid|deprecated)\b[^.;]{0,60}"
    r"['\"`]?\btemperature\b"
    r"|\btemperature\b['\"`]?[^.;]{0,40}\b(?:(?:is|are|was|be)(?: not|n't)|does(?: not|n't)|cannot|can't|may not|"
    r"not (?:supported|allowed|permitted)|unsupported|deprecated|only (?:supports|accepts|the default)|must be 1\b)"
)
_WORDS_OF_FORMAT = ("response_format", "json_schema", "json_object", "structured output", "guided", "grammar", "schema")


@dataclass(frozen=True)
class Dialect:
    """How a request is put. A server that refuses a parameter, and answers without it, is asked so from then on."""

    reply_format: str = "json_schema"
    tokens_name: str = "max_tokens"
    with_temperature: bool = True

    @property
    def ease(self) -> int:
        """How much is left out or changed."""
        renamed = self.tokens_name != "max_tokens"
        return _FORMATS.index(self.reply_format) + renamed + (not self.with_temperature)

    def body(
        self, model: str, system: str, user: str, schema: dict[str, Any] | None, purpose: str, max_tokens: int
    ) -> dict[str, Any]:
        """A request in this dialect."""
        found: dict[str, Any] = {
            "model": model,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
            self.tokens_name: max_tokens,
        }
        if self.with_temperature:
            found["temperature"] = 0
        if schema is not None and self.reply_format == "json_schema":
            wanted = {"name": purpose, "schema": schema, "strict": True}
            found["response_format"] = {"type": "json_schema", "json_schema": wanted}
        elif schema is not None and self.reply_format == "json_object":
            found["response_format"] = {"type": "json_object"}
        return found

    def easier(self, status: int, message: str, *, had_schema: bool) -> tuple[Dialect, bool] | None:
        """What to try after a refusal, and whether the server said itself that this is the reason.

        ``None``: the refusal is about something else. A server that does not say why may object to the format.
        """
        if status not in _REFUSED:
            return None
        text = message.lower()
        if self.tokens_name == "max_tokens" and "max_completion_tokens" in text:
            return replace(self, tokens_name="max_completion_tokens"), True
        if self.with_temperature and _TEMPERATURE_REFUSED.search(text):
            return replace(self, with_temperature=False), True
        if not had_schema or self.reply_format == "plain":
            return None
        lower = _FORMATS[_FORMATS.index(self.reply_format) + 1]
        return replace(self, reply_format=lower), any(word in text for word in _WORDS_OF_FORMAT)
