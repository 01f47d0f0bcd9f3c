"""A loopback server that speaks the OpenAI chat completions API and answers from a script: no network needed."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODEL = "gpt-4o-mini-2024-07-18"


class ScriptedOpenAI:
    """Serves the replies in order, one a request, on a free port of 127.0.0.1 while the ``with`` block runs.

    A reply holds ``text`` or ``calls`` (pairs of a tool's name and its arguments), and ``usage``: prompt, completion
    and cached prompt tokens. ``requests`` keeps the body of every request. A request beyond the script is answered
    with status 400, which clients do not retry. A request for a stream gets its reply in chunks: what the model says,
    why it ended, and its tokens.
    """

    def __init__(self, replies: Sequence[dict[str, Any]]) -> None:
        self.requests: list[dict[str, Any]] = []
        bodies = iter([_completion(number, **reply) for number, reply in enumerate(replies, start=1)])
        requests = self.requests

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                body = next(bodies, None)
                payload = json.dumps(body or {"error": {"message": "the script has no further reply"}}).encode()
                kind = "application/json"
                if body and requests[-1].get("stream"):
                    payload, kind = stream_of(body), "text/event-stream"
                self.send_response(200 if body else 400)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)

            def log_message(self, *_: Any) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.base_url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> ScriptedOpenAI:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _completion(
    number: int,
    *,
    usage: tuple[int, ...],
    text: str | None = None,
    calls: Sequence[tuple[str, dict[str, Any]]] = (),
) -> dict[str, Any]:
    # A fourth number is the reasoning tokens.
    prompt_tokens, completion_tokens, cached_tokens, *reasoning_tokens = usage
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {
                "id": f"call_{number}_{position}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for position, (name, arguments) in enumerate(calls)
        ]
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1750000000,
        "model": MODEL,
        "choices": [{"index": 0, "finish_reason": "tool_calls" if calls else "stop", "message": message}],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
            "prompt_tokens_details": {"cached_tokens": cached_tokens},
            **({"completion_tokens_details": {"reasoning_tokens": sum(reasoning_tokens)}} if reasoning_tokens else {}),
        },
    }


def stream_of(body: dict[str, Any]) -> bytes:
    """The same reply as server-sent events."""
    (choice,) = body["choices"]
    delta = dict(choice["message"])
    if "tool_calls" in delta:
        delta["tool_calls"] = [{"index": index, **call} for index, call in enumerate(delta["tool_calls"])]
    head = {name: body[name] for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    says = {"index": 0, "delta": delta, "finish_reason": None}
    ends = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
    chunks = [{"choices": [says]}, {"choices": [ends]}, {"choices": [], "usage": body["usage"]}]
    lines = [json.dumps(head | chunk) for chunk in chunks]
    return "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]).encode()
