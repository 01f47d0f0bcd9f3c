"""A real server on loopback in every dialect, whose replies come from a function, with scripted faults.

>>> import json, urllib.request
>>> with JudgeServer(lambda body: {"echo": body["messages"][-1]["content"]}) as server:
...     request = urllib.request.Request(
...         server.url + "/chat/completions",
...         data=json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode(),
...         headers={"Content-Type": "application/json"},
...     )
...     reply = json.load(urllib.request.urlopen(request))
>>> reply["choices"][0]["message"]["content"]
'{"echo": "hi"}'
>>> len(server.calls)
1

``python tests/support/judge_server.py --decide module:function --latency-s 0.2`` serves in a process of its own; it
prints its URL, and ends when its standard input does.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import ssl
import sys
import threading
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from judge_batches import BatchShelf
from judge_dialects import as_messages, dialect_of, limit_of, reply_in
from judge_faults import Fault, failing
from judge_numbers import embeddings_reply, n_tokens

_ROUNDS_TO_A_HANDLER = 10
# So long that the client has taken the copy for its response.
_AFTER_A_COPY_S = 0.05

Decide = Callable[[dict[str, Any]], "str | dict[str, Any]"]


@dataclass(frozen=True)
class Received:
    """A request as it came in; ``number`` counts the requests for completions from 0 (others: -1)."""

    number: int
    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    at_s: float


Faults = Mapping[int, Fault] | Callable[[Received], "Fault | None"]


class JudgeServer:
    """Serves ``/v1/chat/completions``, the paths of other dialects, ``/v1/models`` and ``/v1/embeddings`` in a thread.

    ``decide`` makes the reply from the body of the request: a text, or a dict that is sent as JSON text. ``faults``
    maps numbers of chat requests to faults, or is a function of the request. ``structured`` is the most that the server
    takes as ``response_format``; a request for more is refused with status 400, as is one with ``max_tokens`` where
    ``needs_max_completion_tokens`` is set, or with a ``temperature`` where ``refuses_temperature`` is. With an
    ``needs_tokens`` cuts replies off whose limit is lower, ``most_tokens`` refuses limits above it. With an
    ``api_key``, other keys get status 401; with ``tls``, the address is ``https://localhost``. ``requests`` holds all
    that came in, ``calls`` those for chat completions, ``most_at_once`` how many were under way together, ``errors``
    what ``decide`` raised.
    """

    def __init__(
        self,
        decide: Decide,
        *,
        faults: Faults | None = None,
        latency_s: float = 0.0,
        structured: Literal["json_schema", "json_object", "none"] = "json_schema",
        needs_max_completion_tokens: bool = False,
        refuses_temperature: bool = False,
        needs_tokens: int = 0,
        most_tokens: int | None = None,
        batches: BatchShelf | None = None,
        api_key: str | None = None,
        keep_requests: bool = True,
        tls: ssl.SSLContext | None = None,
        port: int = 0,
    ) -> None:
        self.decide = decide
        self.faults: Faults = {} if faults is None else faults
        self.latency_s = latency_s
        self.structured = structured
        self.needs_max_completion_tokens = needs_max_completion_tokens
        self.refuses_temperature = refuses_temperature
        self.needs_tokens = needs_tokens
        self.most_tokens = most_tokens
        self.batches = batches
        self.api_key = api_key
        self.keep_requests = keep_requests
        self.tls = tls
        self.port = port
        self.requests: list[Received] = []
        self.errors: list[Exception] = []
        self.n_calls = 0
        self.n_connections = 0
        self.most_at_once = 0
        self.url = ""
        self._at_once = 0
        self._copies: dict[asyncio.StreamWriter, bytes] = {}
        self._loop = asyncio.new_event_loop()
        self._handlers: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._serve, name="judge-server", daemon=True)
        self._started = threading.Event()
        self._stop: asyncio.Event | None = None

    @property
    def calls(self) -> list[Received]:
        """The requests for chat completions."""
        return [request for request in self.requests if request.number >= 0]

    def __enter__(self) -> JudgeServer:
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._until_stopped())
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    async def _until_stopped(self) -> None:
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1", self.port, backlog=1024, ssl=self.tls)
        place = "http://127.0.0.1" if self.tls is None else "https://localhost"
        self.url = f"{place}:{server.sockets[0].getsockname()[1]}/v1"
        self._started.set()
        await self._stop.wait()
        # Connections made last take some rounds of the loop to get a handler, which closes them.
        for _ in range(_ROUNDS_TO_A_HANDLER):
            await asyncio.sleep(0)
        server.close()
        for task in list(self._handlers):
            task.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)
        await server.wait_closed()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._handlers.add(task)
        self.n_connections += 1
        try:
            while await self._answer(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        except asyncio.CancelledError:
            pass  # The server closes; asyncio would log a handler that ends as canceled.
        finally:
            self._handlers.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request of a connection; whether another may follow."""
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ", 2)
        pairs = (line.split(":", 1) for line in lines if line)
        headers = {name.strip().lower(): value.strip() for name, value in pairs}
        data = await reader.readexactly(int(headers.get("content-length", 0)))
        path = urlsplit(target).path
        is_call = dialect_of(path) is not None
        number, self.n_calls = (self.n_calls, self.n_calls + 1) if is_call else (-1, self.n_calls)
        is_json = bool(data) and not headers.get("content-type", "").startswith("multipart/")
        body = json.loads(data) if is_json else {}
        request = Received(number, method, target, headers, body, time.monotonic())
        if self.keep_requests:
            self.requests.append(request)
        self._at_once += is_call
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            fault = self._fault_for(request) if is_call else Fault()
            if fault.hang:
                await asyncio.Event().wait()
            wait_s = fault.wait_s + (self.latency_s if is_call else 0.0)
            if wait_s:
                await asyncio.sleep(wait_s)
            if (copy := self._copies.pop(writer, None)) is not None:
                writer.write(copy)
                await writer.drain()
                await asyncio.sleep(_AFTER_A_COPY_S)
            shelved = self._shelved(method, target, data)
            status, body = shelved or self._reply(path, request, fault)
            if fault.again_first:
                self._copies[writer] = _whole(status, body, fault)
            return await _send(writer, status, body, fault)
        finally:
            self._at_once -= is_call

    def _shelved(self, method: str, target: str, data: bytes) -> tuple[int, bytes] | None:
        """What the batches say; in them, every request gets the reply it would get by itself."""
        if self.batches is None:
            return None
        complete = {name: partial(self._completed, name) for name in ("openai", "anthropic")}
        return self.batches.handle(method, target, data, complete)

    def _completed(self, dialect: str, body: dict[str, Any]) -> dict[str, Any]:
        decided = self.decide(as_messages(dialect, body))
        text = decided if isinstance(decided, str) else json.dumps(decided, ensure_ascii=False)
        n_prompt = n_tokens("".join(each["content"] for each in as_messages(dialect, body)["messages"]))
        limit = limit_of(dialect, body)
        reason = "length" if limit is not None and limit < self.needs_tokens else "stop"
        model = body.get("model", "judge-1")
        return reply_in(dialect, text if reason == "stop" else None, reason, n_prompt, n_tokens(text), model)

    def _fault_for(self, request: Received) -> Fault:
        found = self.faults(request) if callable(self.faults) else self.faults.get(request.number)
        return found or self._objection(request) or Fault()

    def _objection(self, request: Received) -> Fault | None:
        body = request.body
        sent = (request.headers.get(name, "") for name in ("authorization", "api-key", "x-api-key", "x-goog-api-key"))
        if self.api_key is not None and self.api_key not in {each.removeprefix("Bearer ") for each in sent}:
            return failing(401, "Incorrect API key provided")
        limit = limit_of(dialect_of(urlsplit(request.path).path) or "", body)
        if self.most_tokens is not None and limit is not None and limit > self.most_tokens:
            return failing(
                400, f"max_tokens is too large: {limit}. This model supports at most {self.most_tokens} tokens"
            )
        kinds = ("none", "json_object", "json_schema")
        wanted = (body.get("response_format") or {}).get("type", "none")
        if wanted in kinds and kinds.index(wanted) > kinds.index(self.structured):
            return failing(400, f"response_format type {wanted} is not supported by this server")
        if self.needs_max_completion_tokens and "max_tokens" in body:
            return failing(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
        if self.refuses_temperature and body.get("temperature", 1) != 1:
            return failing(400, "Unsupported value: 'temperature' does not support 0 with this model.")
        return None

    def _reply(self, path: str, request: Received, fault: Fault) -> tuple[int, bytes]:
        if fault.body is not None:
            return fault.status, fault.body
        if path == "/v1/models":
            return 200, json.dumps({"object": "list", "data": [{"id": "judge-1", "object": "model"}]}).encode()
        if path == "/v1/embeddings":
            return 200, json.dumps(embeddings_reply(request.body)).encode()
        if request.number < 0:
            return 404, b'{"error": {"message": "no such path", "type": "not_found"}}'
        dialect = dialect_of(path) or "openai"
        is_plain = fault.message is None and not fault.choice and not fault.top
        try:
            if dialect not in ("openai", "azure") or (is_plain and self.needs_tokens):
                return 200, json.dumps({**self._completed(dialect, request.body), **fault.top}).encode()
            return 200, json.dumps(self._completion(request, fault)).encode()
        except Exception as error:  # noqa: BLE001  # the test reads it from `errors`
            self.errors.append(error)
            return 500, json.dumps({"error": {"message": f"decide raised {error!r}", "type": "test"}}).encode()

    def _completion(self, request: Received, fault: Fault) -> dict[str, Any]:
        body = request.body
        choices = []
        for index in range(body.get("n") or 1):
            message = fault.message
            if message is None:
                decided = self.decide(body)
                content = decided if isinstance(decided, str) else json.dumps(decided, ensure_ascii=False)
                message = {"role": "assistant", "content": content}
            choices.append({"index": index, "message": message, "finish_reason": "stop", **fault.choice})
        prompt = sum(n_tokens(_text_of(message.get("content"))) for message in body["messages"])
        completion = sum(n_tokens(choice["message"]["content"] or "") for choice in choices)
        usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
        return {
            "id": f"chatcmpl-{request.number}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": body.get("model", "judge-1"),
            "choices": choices,
            "usage": usage,
            **fault.top,
        }


def _whole(status: int, body: bytes, fault: Fault) -> bytes:
    headers = {"Content-Type": fault.content_type}
    if fault.encoding is not None:
        headers["Content-Encoding"] = fault.encoding.removeprefix("raw-")
        packing = zlib.compressobj(wbits={"gzip": 31, "deflate": 15, "raw-deflate": -15}[fault.encoding])
        body = packing.compress(body) + packing.flush()
    if fault.trickle_s is not None or fault.chunked:
        headers["Transfer-Encoding"] = "chunked"
    elif fault.has_length:
        headers["Content-Length"] = str(len(body))
    headers |= fault.headers
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    whole = fault.before + f"{fault.version} {status} Scripted\r\n{lines}".encode("latin-1") + b"\r\n"
    if fault.trickle_s is not None:
        return whole
    return whole + (_chunks(body, fault.trailers) if fault.chunked else body)


async def _send(writer: asyncio.StreamWriter, status: int, body: bytes, fault: Fault) -> bool:
    whole = _whole(status, body, fault)
    if fault.trickle_s is not None:
        writer.write(whole)
        while True:
            writer.write(b"1\r\n \r\n")
            await writer.drain()
            await asyncio.sleep(fault.trickle_s)
    if fault.drop_after is not None:
        whole = whole[: int(len(whole) * fault.drop_after)]
    writer.write(whole * 2 if fault.twice else whole)
    await writer.drain()
    return fault.drop_after is None and not fault.then_close and fault.has_length


def _chunks(body: bytes, trailers: bytes, size: int = 1 << 14) -> bytes:
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n" + trailers + b"\r\n"


def _text_of(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""


def main() -> None:
    """Serve until standard input ends; print how many calls there were."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--decide", required=True, help="module:function, looked up beside this file too")
    parser.add_argument("--latency-s", type=float, default=0.0)
    options = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parent))
    module, _, function = options.decide.partition(":")
    decide = getattr(import_module(module), function)
    with JudgeServer(decide, latency_s=options.latency_s, keep_requests=False) as server:
        print(server.url, flush=True)
        for _ in sys.stdin:  # A line asks for the counts so far.
            print(json.dumps({"n_calls": server.n_calls, "most_at_once": server.most_at_once}), flush=True)


if __name__ == "__main__":
    main()
