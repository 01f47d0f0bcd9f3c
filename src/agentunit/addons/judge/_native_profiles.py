"""The profiles of servers that speak in a way of their own: Anthropic, Google Gemini, AWS Bedrock, Ollama."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from agentunit.addons.judge._completions import Completion, completed, text_parts, usage_of
from agentunit.addons.judge._profiles import Profile, Wanted

_ANTHROPIC_VERSION = "2023-06-01"
# Ollama reads a prompt as far as its window goes and says nothing about the rest, so the window is asked for.
_LEAST_WINDOW = 8192
_BYTES_A_TOKEN = 2


class Anthropic(Profile):
    """Anthropic's Messages API."""

    name = "anthropic"
    summary = "Anthropic, Messages"
    url_example = "https://api.anthropic.com"
    key_header = "x-api-key:"
    endpoint = "/v1/messages"
    formats = ("json_schema", "plain")
    batches = "anthropic"

    def base_path(self, path: str) -> str:
        """A path without the version, which is part of the endpoint."""
        return super().base_path(path).removesuffix("/v1")

    def headers(self, key: str | None) -> dict[str, str]:
        """The version of the API, and the key."""
        return {"anthropic-version": _ANTHROPIC_VERSION, **({} if key is None else {"x-api-key": key})}

    def body(self, wanted: Wanted) -> dict[str, Any]:
        """A request; the schema goes without the lengths of lists, which these servers refuse."""
        found: dict[str, Any] = {
            "model": wanted.model,
            "max_tokens": wanted.max_tokens,
            "system": wanted.system,
            "messages": [{"role": "user", "content": wanted.user}],
        }
        if wanted.temperature is not None:
            found["temperature"] = wanted.temperature
        config: dict[str, Any] = {} if wanted.effort is None else {"effort": wanted.effort}
        if wanted.schema is not None and wanted.reply_format == "json_schema":
            config["format"] = {"type": "json_schema", "schema": _without_lengths(wanted.schema)}
        return {**found, "output_config": config} if config else found

    def completion(self, data: dict[str, Any]) -> Completion:
        """The text parts of the message."""
        prompt = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        stated = usage_of(data, "usage", prompt, ("output_tokens",), "cache_read_input_tokens")
        stated["model"] = data["model"] if isinstance(data.get("model"), str) else None
        content = data.get("content")
        if not isinstance(content, list):
            return self.nothing_in(data, "the response has no content", stated)
        spoken = [part for part in content if isinstance(part, dict) and part.get("type", "text") == "text"]
        return completed(text_parts(spoken), data.get("stop_reason"), stated=stated)


class Gemini(Profile):
    """Google's generateContent."""

    name = "gemini"
    summary = "Google Gemini, generateContent"
    url_example = "https://generativelanguage.googleapis.com"
    key_header = "x-goog-api-key:"
    endpoint = ":generateContent"
    batches = None

    def base_path(self, path: str) -> str:
        """A path without the model, which is part of the endpoint."""
        return path.rstrip("/").partition("/models/")[0].removesuffix("/models")

    def target(self, path: str, query: list[tuple[str, str]], model: str) -> tuple[str, list[tuple[str, str]]]:
        """The model is in the path."""
        name = quote(model.removeprefix("models/"), safe="")
        return f"{path or '/v1beta'}/models/{name}{self.endpoint}", query

    def headers(self, key: str | None) -> dict[str, str]:
        """The key in a header of its own."""
        return {} if key is None else {"x-goog-api-key": key}

    def body(self, wanted: Wanted) -> dict[str, Any]:
        """A request."""
        config: dict[str, Any] = {"maxOutputTokens": wanted.max_tokens}
        if wanted.temperature is not None:
            config["temperature"] = wanted.temperature
        if wanted.seed is not None:
            config["seed"] = wanted.seed
        if wanted.effort is not None:
            config["thinkingConfig"] = {"thinkingLevel": wanted.effort}
        if wanted.schema is not None and wanted.reply_format != "plain":
            config["responseMimeType"] = "application/json"
            if wanted.reply_format == "json_schema":
                config["responseJsonSchema"] = wanted.schema
        return {
            "systemInstruction": {"parts": [{"text": wanted.system}]},
            "contents": [{"role": "user", "parts": [{"text": wanted.user}]}],
            "generationConfig": config,
        }

    def completion(self, data: dict[str, Any]) -> Completion:
        """The parts of the first candidate that are no thoughts."""
        spent = ("candidatesTokenCount", "thoughtsTokenCount")
        stated = usage_of(data, "usageMetadata", ("promptTokenCount",), spent, "cachedContentTokenCount")
        if stated["completion_tokens"] is None and isinstance(data.get("usageMetadata"), dict):
            # A reply that was all thought states no tokens of the candidate.
            stated["completion_tokens"] = usage_of(data, "usageMetadata", spent[1:], spent[1:])["completion_tokens"]
        stated["model"] = data["modelVersion"] if isinstance(data.get("modelVersion"), str) else None
        feedback = data.get("promptFeedback")
        if isinstance(feedback, dict) and feedback.get("blockReason"):
            return Completion(problem=f"the server refused the prompt: {feedback['blockReason']!s:.60}", **stated)
        candidates = data.get("candidates")
        first = candidates[0] if isinstance(candidates, list) and candidates else None
        if not isinstance(first, dict):
            return self.nothing_in(data, "the response has no candidate", stated)
        content = first.get("content")
        parts = content.get("parts") if isinstance(content, dict) else None
        return completed(text_parts(parts), first.get("finishReason"), stated=stated)


class Bedrock(Profile):
    """AWS Bedrock's Converse; signed with AWS keys, or with a Bedrock API key as a bearer."""

    name = "bedrock"
    summary = "AWS Bedrock, Converse; signed with the AWS keys of the environment"
    url_example = "https://bedrock-runtime.REGION.amazonaws.com"
    key_header = "AWS Signature 4, or Authorization: Bearer"
    endpoint = "/converse"
    formats = ("plain",)
    batches = None

    def base_path(self, path: str) -> str:
        """A path without the model, which is part of the endpoint."""
        return path.rstrip("/").partition("/model/")[0].removesuffix("/model")

    def target(self, path: str, query: list[tuple[str, str]], model: str) -> tuple[str, list[tuple[str, str]]]:
        """The model is in the path, its colon encoded."""
        return f"{path}/model/{quote(model, safe='')}{self.endpoint}", query

    def body(self, wanted: Wanted) -> dict[str, Any]:
        """A request."""
        config: dict[str, Any] = {"maxTokens": wanted.max_tokens}
        if wanted.temperature is not None:
            config["temperature"] = wanted.temperature
        found: dict[str, Any] = {
            "system": [{"text": wanted.system}],
            "messages": [{"role": "user", "content": [{"text": wanted.user}]}],
            "inferenceConfig": config,
        }
        if wanted.effort is not None:
            found["additionalModelRequestFields"] = {"reasoning_effort": wanted.effort}
        return found

    def completion(self, data: dict[str, Any]) -> Completion:
        """The text parts of the message; reasoning has parts of its own."""
        cached = "cacheReadInputTokens"
        stated = usage_of(data, "usage", ("inputTokens", cached, "cacheWriteInputTokens"), ("outputTokens",), cached)
        output = data.get("output")
        message = output.get("message") if isinstance(output, dict) else None
        if not isinstance(message, dict):
            return self.nothing_in(data, "the response has no message", stated)
        return completed(text_parts(message.get("content")), data.get("stopReason"), stated=stated)


class Ollama(Profile):
    """Ollama's own API, which takes the size of the window; its OpenAI-compatible one (/v1) does not."""

    name = "ollama"
    summary = "Ollama, its own API (with a window as large as the prompt)"
    url_example = "http://127.0.0.1:11434"
    endpoint = "/api/chat"
    batches = None

    def base_path(self, path: str) -> str:
        """A path without the endpoint."""
        return super().base_path(path).removesuffix("/api")

    def body(self, wanted: Wanted) -> dict[str, Any]:
        """A request."""
        n_bytes = len(wanted.system.encode("utf-8", "replace")) + len(wanted.user.encode("utf-8", "replace"))
        window = _LEAST_WINDOW
        while window < n_bytes / _BYTES_A_TOKEN + wanted.max_tokens:
            # Powers of two: each other size makes the server load the model again.
            window *= 2
        options: dict[str, Any] = {"num_predict": wanted.max_tokens, "num_ctx": window}
        if wanted.temperature is not None:
            options["temperature"] = wanted.temperature
        if wanted.seed is not None:
            options["seed"] = wanted.seed
        found: dict[str, Any] = {
            "model": wanted.model,
            "messages": [{"role": "system", "content": wanted.system}, {"role": "user", "content": wanted.user}],
            "stream": False,
            "options": options,
        }
        if wanted.effort is not None:
            # It knows levels, and no thoughts at all as false.
            found["think"] = False if wanted.effort in ("none", "minimal") else wanted.effort
        if wanted.schema is not None and wanted.reply_format != "plain":
            found["format"] = wanted.schema if wanted.reply_format == "json_schema" else "json"
        return found

    def completion(self, data: dict[str, Any]) -> Completion:
        """The content of the message; thoughts have a field of their own."""
        stated = usage_of({"usage": data}, "usage", ("prompt_eval_count",), ("eval_count",))
        stated["model"] = data["model"] if isinstance(data.get("model"), str) else None
        message = data.get("message")
        if not isinstance(message, dict):
            return self.nothing_in(data, "the response has no message", stated)
        return completed(text_parts(message.get("content")), data.get("done_reason"), stated=stated)


NATIVE: tuple[type[Profile], ...] = (Anthropic, Gemini, Bedrock, Ollama)


def _without_lengths(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {name: _without_lengths(each) for name, each in schema.items() if name not in ("minItems", "maxItems")}
    return [_without_lengths(each) for each in schema] if isinstance(schema, list) else schema
