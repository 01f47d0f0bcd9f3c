"""The ways in which servers are asked and answer, seen from the server: paths, requests read, replies written."""

from __future__ import annotations

import re
from typing import Any

# The path of a request for a completion, and the profile whose server answers there.
_PATHS = (
    (re.compile(r"/openai/deployments/[^/]+/chat/completions$"), "azure"),
    (re.compile(r"/openai/v1/chat/completions$"), "azure"),
    (re.compile(r"(?:/v1|/api|)/chat/completions$"), "openai"),
    (re.compile(r"/v1/messages$"), "anthropic"),
    (re.compile(r"/models/[^/]+:generateContent$"), "gemini"),
    (re.compile(r"/model/[^/]+/converse$"), "bedrock"),
    (re.compile(r"/api/chat$"), "ollama"),
)


def dialect_of(path: str) -> str | None:
    """The dialect that is spoken at a path; ``None``: no questions are taken there."""
    return next((name for pattern, name in _PATHS if pattern.search(path)), None)


def as_messages(dialect: str, body: dict[str, Any]) -> dict[str, Any]:
    """A request in any dialect as one of OpenAI's, for functions that decide."""
    if dialect in ("openai", "azure", "ollama"):
        return body
    if dialect == "anthropic":
        system, user = body["system"], body["messages"][0]["content"]
    elif dialect == "gemini":
        system = body["systemInstruction"]["parts"][0]["text"]
        user = body["contents"][0]["parts"][0]["text"]
    else:
        system, user = body["system"][0]["text"], body["messages"][0]["content"][0]["text"]
    return {"messages": [{"role": "system", "content": system}, {"role": "user", "content": user}]}


def limit_of(dialect: str, body: dict[str, Any]) -> int | None:
    """The limit of tokens of a request."""
    places = {
        "anthropic": body.get("max_tokens"),
        "gemini": (body.get("generationConfig") or {}).get("maxOutputTokens"),
        "bedrock": (body.get("inferenceConfig") or {}).get("maxTokens"),
        "ollama": (body.get("options") or {}).get("num_predict"),
    }
    return places.get(dialect, body.get("max_completion_tokens", body.get("max_tokens")))


def reply_in(dialect: str, text: str | None, reason: str, prompt: int, completion: int, model: str) -> dict[str, Any]:
    """A reply in a dialect; ``reason`` is "stop", "length" or "filter"."""
    if dialect == "anthropic":
        reasons = {"stop": "end_turn", "length": "max_tokens", "filter": "refusal"}
        content = [{"type": "thinking", "thinking": "Hm."}] + ([{"type": "text", "text": text}] if text else [])
        usage = {"input_tokens": prompt, "output_tokens": completion}
        return {"type": "message", "model": model, "content": content, "stop_reason": reasons[reason], "usage": usage}
    if dialect == "gemini":
        reasons = {"stop": "STOP", "length": "MAX_TOKENS", "filter": "SAFETY"}
        parts = [{"text": "Hm.", "thought": True}] + ([{"text": text}] if text else [])
        usage = {"promptTokenCount": prompt, "candidatesTokenCount": completion - 1, "thoughtsTokenCount": 1}
        candidate = {"content": {"role": "model", "parts": parts}, "finishReason": reasons[reason]}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": model}
    if dialect == "bedrock":
        reasons = {"stop": "end_turn", "length": "max_tokens", "filter": "guardrail_intervened"}
        content = [{"reasoningContent": {"reasoningText": {"text": "Hm."}}}] + ([{"text": text}] if text else [])
        usage = {"inputTokens": prompt, "outputTokens": completion}
        message = {"role": "assistant", "content": content}
        return {"output": {"message": message}, "stopReason": reasons[reason], "usage": usage}
    reasons = {"stop": "stop", "length": "length", "filter": "content_filter"}
    if dialect == "ollama":
        message = {"role": "assistant", "content": text or "", "thinking": "Hm."}
        usage = {"prompt_eval_count": prompt, "eval_count": completion}
        return {"model": model, "message": message, "done": True, "done_reason": reasons[reason], **usage}
    message = {"role": "assistant", "content": text, "reasoning_content": "Hm."}
    usage = {"prompt_tokens": prompt, "completion_tokens": completion}
    return {"model": model, "choices": [{"message": message, "finish_reason": reasons[reason]}], "usage": usage}


def error_in(dialect: str, status: int, message: str) -> dict[str, Any]:
    """An error in a dialect."""
    if dialect == "anthropic":
        return {"type": "error", "error": {"type": "scripted_error", "message": message}}
    if dialect == "gemini":
        return {"error": {"code": status, "message": message, "status": "SCRIPTED"}}
    if dialect == "bedrock":
        return {"message": message}
    return {"error": message} if dialect == "ollama" else {"error": {"message": message, "code": None}}
