"""Endpoints as profiles: for each kind of server its address, headers, request, reply and limits.

A profile is chosen by its name or recognized from the address. What servers of one kind differ in (the format of
replies, the name of the limit of tokens) is found out as they answer: see ``Dialect``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, NamedTuple
from urllib.parse import SplitResult, quote

from agentunit.addons.judge._completions import Completion, completed, error_message, text_parts, token_count
from agentunit.addons.judge._level_chances import TOP, positions_of

FORMATS = ("json_schema", "json_object", "plain")
"""From the most to the least that a server can promise about the shape of a reply."""
_PATH_SAFE = "/%:@!$&'()*+,;=~"


class Wanted(NamedTuple):
    """A question as it is to be put: ``reply_format`` is one of ``FORMATS``, a temperature of ``None`` is not sent."""

    model: str
    system: str
    user: str
    schema: dict[str, Any] | None
    purpose: str
    max_tokens: int
    tokens_name: str
    reply_format: str
    temperature: float | None
    seed: int | None
    effort: str | None
    logprobs: bool = False


class Profile:
    """Any OpenAI-compatible server; the base of the others, which change what differs.

    ``formats`` are those of ``FORMATS`` that make a difference to such a server. ``batches`` names the batch API.
    """

    name = "compatible"
    summary = "any OpenAI-compatible server: llama.cpp, LM Studio, OpenRouter, Groq, Together, …"
    url_example = "http://127.0.0.1:8000/v1"
    key_header = "Authorization: Bearer"
    endpoint = "/chat/completions"
    tokens_name = "max_tokens"
    formats: tuple[str, ...] = FORMATS
    batches: Literal["openai", "anthropic"] | None = "openai"
    batch_endpoint = "/v1/chat/completions"

    def base_path(self, path: str) -> str:
        """A path as the user wrote it, without the endpoint."""
        return path.rstrip("/").removesuffix(self.endpoint)

    def target(self, path: str, query: list[tuple[str, str]], model: str) -> tuple[str, list[tuple[str, str]]]:
        """Path and query of a request for a completion, from a base path."""
        return path + self.endpoint, query

    def beside(self, path: str, query: list[tuple[str, str]]) -> tuple[str, list[tuple[str, str]]]:
        """Path and query below which files and batches are, from a base path."""
        return path, query

    def headers(self, key: str | None) -> dict[str, str]:
        """The headers of this kind of server, with the key where there is one."""
        return {} if key is None else {"Authorization": f"Bearer {key}"}

    def body(self, wanted: Wanted) -> dict[str, Any]:
        """A request."""
        found: dict[str, Any] = {
            "model": wanted.model,
            "messages": [{"role": "system", "content": wanted.system}, {"role": "user", "content": wanted.user}],
            wanted.tokens_name: wanted.max_tokens,
        }
        if wanted.temperature is not None:
            found["temperature"] = wanted.temperature
        if wanted.seed is not None:
            found["seed"] = wanted.seed
        if wanted.effort is not None:
            found["reasoning_effort"] = wanted.effort
        if wanted.logprobs:
            found |= {"logprobs": True, "top_logprobs": TOP}
        if wanted.schema is not None and wanted.reply_format == "json_schema":
            shape = {"name": wanted.purpose, "schema": wanted.schema, "strict": True}
            found["response_format"] = {"type": "json_schema", "json_schema": shape}
        elif wanted.schema is not None and wanted.reply_format == "json_object":
            found["response_format"] = {"type": "json_object"}
        return found

    def completion(self, data: dict[str, Any]) -> Completion:
        """The reply in a response of success."""
        usage = data.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        details = usage.get("prompt_tokens_details")
        model = data.get("model")
        stated: dict[str, Any] = {
            "model": model if isinstance(model, str) else None,
            "prompt_tokens": token_count(usage.get("prompt_tokens")),
            "completion_tokens": token_count(usage.get("completion_tokens")),
            "cached_tokens": token_count(details.get("cached_tokens") if isinstance(details, dict) else None) or 0,
        }
        choices = data.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        message = choice.get("message") if isinstance(choice, dict) else None
        if not isinstance(message, dict) or not isinstance(choice, dict):
            return self.nothing_in(data, "the response has no choice with a message", stated)
        text = text_parts(message.get("content"))
        stated["positions"] = positions_of(choice)
        return completed(text, choice.get("finish_reason"), refusal=message.get("refusal"), stated=stated)

    def nothing_in(self, data: dict[str, Any], what: str, stated: Mapping[str, Any]) -> Completion:
        """A response that is none of this profile; where it is one of another, it says of which."""
        other = spoken_by(data)
        hint = "" if other in (None, self.name) else f" (it looks like one of the profile {other!r}: set profile)"
        return Completion(unreadable=error_message(data) or f"{what}{hint}", **stated)


class OpenAi(Profile):
    """OpenAI itself, where one name of the limit of tokens serves all models."""

    name = "openai"
    summary = "OpenAI, chat completions"
    url_example = "https://api.openai.com/v1"
    tokens_name = "max_completion_tokens"


class Vllm(Profile):
    """vLLM's own server."""

    name = "vllm"
    summary = "vLLM"
    batches = None


class LiteLlm(Profile):
    """The proxy of LiteLLM, in front of anything."""

    name = "litellm"
    summary = "a LiteLLM proxy"
    url_example = "http://127.0.0.1:4000/v1"


class Azure(Profile):
    """Azure OpenAI: deployments in the path with an api-version, or the newer address that ends in /openai/v1."""

    name = "azure"
    summary = "Azure OpenAI; the model is the name of the deployment"
    url_example = "https://NAME.openai.azure.com (or …/openai/deployments/NAME, or …/openai/v1)"
    key_header = "api-key:"
    batch_endpoint = "/chat/completions"
    _version = ("api-version", "2024-10-21")

    def headers(self, key: str | None) -> dict[str, str]:
        """The key in a header of its own."""
        return {} if key is None else {"api-key": key}

    def target(self, path: str, query: list[tuple[str, str]], model: str) -> tuple[str, list[tuple[str, str]]]:
        """Path and query in the style of the base path."""
        if path.endswith("/v1"):
            return path + self.endpoint, query
        if "/deployments/" not in path:
            path = f"{path.removesuffix('/openai')}/openai/deployments/{quote(model, safe='')}"
        return path + self.endpoint, self._versioned(query)

    def beside(self, path: str, query: list[tuple[str, str]]) -> tuple[str, list[tuple[str, str]]]:
        """Files and batches are not those of a deployment."""
        if path.endswith("/v1"):
            return path, query
        return f"{path.partition('/deployments/')[0].removesuffix('/openai')}/openai", self._versioned(query)

    def _versioned(self, query: list[tuple[str, str]]) -> list[tuple[str, str]]:
        known = any(name == self._version[0] for name, _ in query)
        return query if known else [*query, self._version]


@lru_cache(maxsize=1)
def _profiles() -> dict[str, Profile]:
    from agentunit.addons.judge._native_profiles import NATIVE

    listed: tuple[type[Profile], ...] = (OpenAi, Azure, *NATIVE, Vllm, LiteLlm, Profile)
    return {each.name: each() for each in listed}


def profile_named(name: str) -> Profile:
    """The profile of this name; ``KeyError`` when there is none."""
    return _profiles()[name]


def profile_names() -> list[str]:
    """The names of all profiles."""
    return list(_profiles())


def recognized(url: SplitResult) -> str:
    """The name of the profile that an address shows.

    >>> from urllib.parse import urlsplit
    >>> [recognized(urlsplit(url)) for url in ("https://api.anthropic.com", "http://127.0.0.1:11434",
    ...     "http://127.0.0.1:11434/v1", "https://me.openai.azure.com/openai/v1")]
    ['anthropic', 'ollama', 'compatible', 'azure']
    """
    host, path = (url.hostname or "").lower(), url.path.rstrip("/")
    if host.endswith((".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com")):
        return "azure"
    if host == "api.openai.com" or host.endswith(".api.openai.com"):
        return "openai"
    if host == "api.anthropic.com" or path.endswith("/v1/messages"):
        return "anthropic"
    if host == "generativelanguage.googleapis.com" and "/openai" not in path:
        return "gemini"
    if host.startswith("bedrock-runtime") and ".amazonaws.com" in host and "/openai" not in path:
        return "bedrock"
    if path.endswith("/api/chat") or (url.port == 11434 and path in ("", "/api")):
        return "ollama"
    return "compatible"


def spoken_by(data: Mapping[str, Any]) -> str | None:
    """The profile whose replies look like this; ``None`` for a shape that is not known."""
    if "candidates" in data or "promptFeedback" in data:
        return "gemini"
    if isinstance(data.get("output"), Mapping) and "stopReason" in data:
        return "bedrock"
    if data.get("type") == "message" and isinstance(data.get("content"), list):
        return "anthropic"
    if isinstance(data.get("message"), Mapping) and "done" in data:
        return "ollama"
    return "compatible" if isinstance(data.get("choices"), list) else None


def sent_path(path: str) -> str:
    """A path as it is sent."""
    return quote(path, safe=_PATH_SAFE)
