"""A model on the loopback address for the examples of the documentation, which name real models of real providers.

It speaks what the examples' clients speak: OpenAI's chat completions and responses, and Gemini's generateContent. It
asks for the tool ``look_up_order`` once, and answers when it was told the result.
"""

from __future__ import annotations

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from scripted_openai import stream_of

ORDER = "A-1042"
FOUND = "sent on Monday"
ANSWER = f"Order {ORDER} was {FOUND}."


class Handler(BaseHTTPRequestHandler):
    """Answers one request after the other; nothing is remembered."""

    def do_POST(self) -> None:
        """Reply in the language in which it was asked."""
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        told = FOUND in body
        # How smolagents wants to be answered.
        name = "final_answer" if told and '"final_answer"' in body else None if told else "look_up_order"
        arguments = {"answer": ANSWER} if told else {"number": ORDER}
        if self.path.endswith("/chat/completions"):
            reply = _chat(name, arguments)
        elif self.path.endswith("/responses"):
            reply = _response(name, arguments)
        else:
            reply = _gemini(name, arguments)
        data, kind = json.dumps(reply).encode(), "application/json"
        if json.loads(body).get("stream"):
            data, kind = stream_of(reply), "text/event-stream"
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def serve() -> None:
    """Start it, and lead the providers' clients to it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    os.environ.update(OPENAI_API_KEY="none", OPENAI_BASE_URL=f"{address}/v1", OPENAI_API_BASE=f"{address}/v1")
    os.environ.update(GOOGLE_API_KEY="none", GOOGLE_GEMINI_BASE_URL=address)


def _chat(name: str | None, arguments: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": ANSWER if name is None else None}
    if name is not None:
        function = {"name": name, "arguments": json.dumps(arguments)}
        message["tool_calls"] = [{"id": f"call_{name}", "type": "function", "function": function}]
    finish = "stop" if name is None else "tool_calls"
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1750000000,
        "model": "gpt-4o-mini",
        "choices": [{"index": 0, "finish_reason": finish, "message": message}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    }


def _response(name: str | None, arguments: dict[str, Any]) -> dict[str, Any]:
    text = {"type": "output_text", "text": ANSWER, "annotations": []}
    item: dict[str, Any] = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    item["content"] = [text]
    if name is not None:
        item = {"type": "function_call", "id": "fc_1", "call_id": f"call_{name}", "name": name, "status": "completed"}
        item["arguments"] = json.dumps(arguments)
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1750000000,
        "status": "completed",
        "model": "gpt-4o-mini",
        "output": [item],
        "tools": [],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "usage": {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110, **details},
    }


def _gemini(name: str | None, arguments: dict[str, Any]) -> dict[str, Any]:
    part: dict[str, Any] = {"text": ANSWER} if name is None else {"functionCall": {"name": name, "args": arguments}}
    return {
        "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110},
        "modelVersion": "gemini-2.5-flash",
    }
