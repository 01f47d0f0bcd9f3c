"""An HTTP endpoint as an agent: the question as JSON in the request, the answer in the response.

Nothing but the address that the user named is contacted: no proxy of the environment (unless asked for), no redirect
to another host. A request runs in a thread of ours and is cut off when the time is up, however slowly the server goes
on sending.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from agentunit.adapters.base import AgentResult, FailureKind
from agentunit.adapters.call import MAX_ANSWER_BYTES, Call, WrongType, request_json, take_reply
from agentunit.adapters.failures import clipped, describe_error
from agentunit.adapters.http_client import (
    Endpoint,
    HttpFailure,
    Line,
    Response,
    Secrets,
    basic_authorization,
    checked_address,
    checked_headers,
    shown,
)
from agentunit.adapters.threads_and_processes import DaemonThreads
from agentunit.core.case import DatasetCase


class HttpAgent:
    """An agent behind an ``http://`` or ``https://`` address.

    The request carries the same JSON as a command gets on its standard input; the response is an outcome as JSON (with
    ``trace`` if it likes), or plain text with a ``text/…`` content type other than HTML. Values of headers, and a user
    and password in the address, appear in no error and no record. ``trust_env`` uses the proxies of the environment.
    """

    concurrency_hint: int | None = None

    def __init__(
        self, url: str, *, headers: Mapping[str, str] | None = None, method: str = "POST", trust_env: bool = False
    ) -> None:
        if method not in ("POST", "PUT", "PATCH"):
            raise ValueError(f"HttpAgent: method must be POST, PUT or PATCH; received {method!r}")
        address = checked_address(url)
        given = checked_headers(headers or {})
        login = basic_authorization(address)
        if login is not None and "authorization" not in map(str.lower, given):
            given["Authorization"] = login
        self._headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/plain;q=0.5",
            "Accept-Encoding": "identity",
            "User-Agent": "agentunit",
            **given,
        }
        self._method = method
        self._shown = shown(address)
        self._secrets = Secrets(given, address)
        self._endpoint = Endpoint(address, trust_env=trust_env)
        self._threads = DaemonThreads("agentunit-http")

    def __repr__(self) -> str:
        return f"HttpAgent({self._shown!r})"

    async def run(self, case: DatasetCase, *, timeout_s: float | None = None, seed: int | None = None) -> AgentResult:
        """Send one case, and cut the connection when the time is up."""
        call, line = Call(), Line()
        try:
            question = request_json(case, seed)
            future = self._threads.submit(lambda: self._ask(line, question, timeout_s))
        except Exception as error:  # noqa: BLE001 - a case that cannot be written, no more threads: the case says so
            self._fail(call, "raised", f"the request cannot be sent: {describe_error(error)}")
            return call.result()
        try:
            done, _ = await asyncio.wait({future}, timeout=timeout_s)
        except BaseException:
            line.cut()
            raise
        if done:
            self._take(call, future.result(), timeout_s)
        else:
            line.cut()
            call.timed_out(timeout_s or 0.0, why=f"; {self._shown} did not finish its response")
        return call.result()

    async def close(self) -> None:
        """Close connections, and send threads home."""
        self._endpoint.close()
        self._threads.close()

    def _ask(self, line: Line, question: bytes, timeout_s: float | None) -> Response | Exception:
        try:
            return self._endpoint.ask(
                line, self._method, self._headers, question, timeout_s=timeout_s, limit=MAX_ANSWER_BYTES
            )
        except Exception as error:  # noqa: BLE001 - refused, reset, no such name, no certificate, not HTTP
            return error

    def _take(self, call: Call, reply: Response | Exception, timeout_s: float | None) -> None:
        if isinstance(reply, Response):
            is_text = reply.content_type.startswith("text/") and reply.content_type != "text/html"
            try:
                take_reply(call, self._secrets.hidden_in_answer(reply.text), may_be_text=is_text)
            except WrongType as error:
                self._fail(call, "wrong_type", f"{error}; the content type is {reply.content_type}")
        elif isinstance(reply, TimeoutError) and timeout_s is not None:
            call.timed_out(timeout_s, why=f"; {self._shown} did not respond")
        elif isinstance(reply, HttpFailure):
            self._fail(call, "raised", str(reply))
        else:
            self._fail(call, "raised", f"{type(reply).__name__}: {clipped(str(reply))}")

    def _fail(self, call: Call, failure: FailureKind, sentence: str) -> None:
        call.fail(failure, self._secrets.hidden(f"{sentence} ({self._shown})"))
