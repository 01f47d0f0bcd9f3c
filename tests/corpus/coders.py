"""Coding agents run against a model whose replies are written down, and their recordings made small enough to keep.

The first reply runs a command that fails, the second writes a file, the third hands a task to a sub-agent where there
is a tool for it, the last one answers. How far a conversation is, is told by the results in it. Needs Node.js and the
agents' packages from npm; ``make.py`` of each folder names the version. Model and agent run on this machine only.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PROMPT = "Write hello.txt, and say what is in the folder missing."
ANSWER = "hello.txt is written; the folder missing is not there."
SUBTASK = "Count the letters of hello."
LOOK = {"command": "ls missing", "description": "Look"}
PATCH = "*** Begin Patch\n*** Add File: hello.txt\n+hello\n*** End Patch\n"
SHORTEST_CUT, KEPT = 400, 120


def record(command: list[str], settings: dict[str, str], environment: dict[str, str], recording: str) -> dict[str, str]:
    """Run an agent in an empty folder; give what it printed and what its recordings (a glob below its home) hold."""
    with tempfile.TemporaryDirectory() as scratch:
        home, work = Path(scratch, "home"), Path(scratch, "repo")
        work.mkdir()
        server = ThreadingHTTPServer(("127.0.0.1", 0), _Model)
        server.folder, server.n_replies = str(work), 0  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        for name, text in settings.items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(text.replace("ADDRESS", address), encoding="utf-8")
        given = {name: value.replace("ADDRESS", address) for name, value in environment.items()}
        done = subprocess.run(
            command, cwd=work, env={**os.environ, **given, "HOME": str(home)}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=True, timeout=300,
        )  # fmt: skip
        server.shutdown()
        found = {path.name: path.read_text("utf-8") for path in sorted(home.glob(recording))}
        return {name: _small(text, scratch) for name, text in {"printed": done.stdout, **found}.items()}


def _small(text: str, scratch: str) -> str:
    """JSON lines without the paths of the machine, and with long texts cut: they are the agent's instructions."""
    lines = []
    for line in text.replace(f"{scratch}/repo", "/repo").replace(f"{scratch}/home", "/home/user").splitlines():
        try:
            lines.append(json.dumps(_cut(json.loads(line)), ensure_ascii=False, separators=(",", ":")))
        except ValueError:
            continue
    return "\n".join(lines) + "\n"


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) < SHORTEST_CUT else f"{value[:KEPT]} …"
    if isinstance(value, list):
        return [_cut(each) for each in value]
    return {name: _cut(each) for name, each in value.items()} if isinstance(value, dict) else value


class _Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._send("application/json", "")

    def do_GET(self) -> None:
        self._send("application/json", json.dumps({"data": [], "models": []}))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        self.server.n_replies += 1  # type: ignore[attr-defined]
        n, folder = self.server.n_replies, self.server.folder  # type: ignore[attr-defined]
        if "count_tokens" in self.path or "countTokens" in self.path:
            self._send("application/json", json.dumps({"input_tokens": 10, "totalTokens": 10}))
        elif self.path.startswith("/v1/messages"):
            self._stream(_anthropic(body, n, folder))
        elif "responses" in self.path:
            self._stream(_openai(body, n))
        else:
            reply = _gemini(body, folder)
            self._stream([(None, reply)]) if "stream" in self.path else self._send(
                "application/json", json.dumps(reply)
            )

    def _stream(self, events: Any) -> None:
        lines = ((f"event: {name}\n" if name else "") + f"data: {json.dumps(data)}\n\n" for name, data in events)
        self._send("text/event-stream", "".join(lines))

    def _send(self, kind: str, text: str) -> None:
        data = text.encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _anthropic(body: dict[str, Any], n: int, folder: str) -> Iterator[tuple[str, Any]]:
    parts = _anthropic_parts(body, folder)
    stop = "tool_use" if parts[-1]["type"] == "tool_use" else "end_turn"
    usage = {"input_tokens": 100, "cache_creation_input_tokens": 30, "cache_read_input_tokens": 50, "output_tokens": 20}
    message = {"id": f"msg_{n:04}", "type": "message", "role": "assistant", "model": body["model"], "content": [],
               "stop_reason": None, "stop_sequence": None, "usage": {**usage, "output_tokens": 1}}  # fmt: skip
    yield "message_start", {"type": "message_start", "message": message}
    for index, part in enumerate(parts):
        start, delta = (
            {**part, "input": {}},
            {"type": "input_json_delta", "partial_json": json.dumps(part.get("input"))},
        )
        if part["type"] == "text":
            start, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": part["text"]}
        yield "content_block_start", {"type": "content_block_start", "index": index, "content_block": start}
        yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": index}
    ending = {"stop_reason": stop, "stop_sequence": None}
    yield "message_delta", {"type": "message_delta", "delta": ending, "usage": usage}
    yield "message_stop", {"type": "message_stop"}


def _anthropic_parts(body: dict[str, Any], folder: str) -> list[dict[str, Any]]:
    text, offered = json.dumps(body.get("messages")), {tool["name"] for tool in body.get("tools", [])}
    done = text.count('"tool_result"')
    if f'"text": "{SUBTASK}' in text or f'"content": "{SUBTASK}' in text:
        return [{"type": "text", "text": "Five."}]
    if done == 0 and "Bash" in offered:
        call = {"type": "tool_use", "id": "toolu_01", "name": "Bash", "input": LOOK}
        return [{"type": "text", "text": "I look first."}, call]
    if done == 1:
        written = {"file_path": f"{folder}/hello.txt", "content": "hello\n"}
        return [{"type": "tool_use", "id": "toolu_02", "name": "Write", "input": written}]
    task = next((name for name in ("Task", "Agent") if name in offered), None)
    if done == 2 and task:
        given = {"description": "Count letters", "prompt": SUBTASK, "subagent_type": "general-purpose"}
        return [{"type": "tool_use", "id": "toolu_03", "name": task, "input": given}]
    return [{"type": "text", "text": ANSWER}]


def _openai(body: dict[str, Any], n: int) -> Iterator[tuple[str, Any]]:
    done = sum(item.get("type", "").endswith("_call_output") for item in body.get("input", []))
    commands = ("ls missing", f"apply_patch <<'EOF'\n{PATCH}EOF")
    item: dict[str, Any] = {"type": "message", "id": f"msg_{n}", "role": "assistant"}
    item["content"] = [{"type": "output_text", "text": ANSWER}]
    if done < len(commands):
        arguments = json.dumps({"cmd": commands[done]})
        item = {"type": "function_call", "id": f"fc_{n}", "call_id": f"call_{done + 1}", "name": "exec_command"}
        item["arguments"] = arguments
    usage = {"input_tokens": 100 + n, "input_tokens_details": {"cached_tokens": 50}, "output_tokens": 20,
             "output_tokens_details": {"reasoning_tokens": 5}, "total_tokens": 120 + n}  # fmt: skip
    response = {"id": f"resp_{n}", "usage": usage, "output": [item]}
    yield "response.created", {"type": "response.created", "response": {"id": f"resp_{n}"}}
    yield "response.output_item.done", {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield "response.completed", {"type": "response.completed", "response": response}


def _gemini(body: dict[str, Any], folder: str) -> dict[str, Any]:
    done = json.dumps(body.get("contents")).count('"functionResponse"')
    written = {"file_path": f"{folder}/hello.txt", "content": "hello\n"}
    replies = (
        [{"text": "I look first."}, {"functionCall": {"name": "run_shell_command", "args": LOOK}}],
        [{"functionCall": {"name": "write_file", "args": written}}],
        [{"text": ANSWER}],
    )
    parts = replies[min(done, 2)] if body.get("tools") else [{"text": "{}"}]
    usage = {"promptTokenCount": 100, "candidatesTokenCount": 20, "cachedContentTokenCount": 50,
             "thoughtsTokenCount": 5, "totalTokenCount": 125}  # fmt: skip
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-2.5-pro"}
