"""What came in is sent on to an OTLP backend, from the spool: a backend that is down for a while misses nothing."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from msgspec import Struct, field

from agentunit.addons.watch.collector.spool import Outgoing, SpanSpool, SpoolError
from agentunit.backends.http_client import (
    PORTS,
    HttpClient,
    HttpFailure,
    Response,
    ascii_host,
    basic_authorization,
)
from agentunit.traces.otlp.masked_requests import MaskTexts, mask_request
from agentunit.traces.otlp.stored_requests import JSON, PACKAGES, PROTOBUF

_AT_ONCE = 4
_LOOK_EVERY_S = 0.2
_TRY_FOR_S = 30.0
_JOIN_S = 0.05
_FIRST_PAUSE_S, _LONGEST_PAUSE_S, _LONGEST_ASKED_S = 0.5, 60.0, 300.0
_LARGEST_ANSWER_BYTES = 1 << 20
_LONGEST_REASON = 200
# Worth another try: the backend is busy or away, or its user can mend it (a login, an address that has moved).
_WAITED_FOR = (408, 429, 502, 503, 504, 401, 403, *range(300, 400))
# There is no place for this signal.
_NOT_SERVED = (404, 405, 501)
# It may be the request or the server: after so many tries the next one gets its turn.
_FAULT = 500
_MOST_TRIES = 8
_MOST_LINES = 20


class Backend(NamedTuple):
    """Where requests are forwarded to: ``base`` is the path before ``/v1/traces``. ``shown`` has no password."""

    host: str
    port: int
    is_tls: bool
    base: str
    shown: str
    headers: Mapping[str, str]


def parse_backend(url: str, headers: str = "") -> Backend:
    """A backend by its address and its headers (as in OTEL_EXPORTER_OTLP_HEADERS); ``ValueError`` says what is wrong.

    >>> parse_backend("http://10.0.0.5:4318/otlp/", "api-key=a%20b").base
    '/otlp'
    """
    try:
        parts = urlsplit(url.strip())
        port = parts.port
        host = ascii_host(parts.hostname or "")
    except ValueError:
        raise ValueError(f"must be an address such as http://host:4318; received {_without_secrets(url)}") from None
    if parts.scheme in ("grpc", "grpcs"):
        raise ValueError("must begin with http:// or https://: name the backend's OTLP/HTTP port, usually 4318")
    if parts.scheme not in PORTS or not host or parts.query or parts.fragment:
        raise ValueError(
            f"must be an address such as http://host:4318, without a query; received {_without_secrets(url)}"
        )
    base = parts.path.rstrip("/")
    for signal in ("traces", "logs", "metrics"):
        base = base.removesuffix(f"/v1/{signal}")
    sent = _parse_headers(headers)
    login = basic_authorization(parts)
    if login is not None:
        sent["Authorization"] = login
    shown = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    return Backend(host, port or PORTS[parts.scheme], parts.scheme == "https", base, shown, sent)


def _without_secrets(url: str) -> str:
    """An address that cannot be used, as a log may show it: without its login and its query."""
    _, at, after = url.rpartition("@")
    address, query, _ = after.partition("?")
    return repr(("…@" if at else "") + address + ("?…" if query else ""))


def _parse_headers(text: str) -> dict[str, str]:
    headers = {}
    for number, pair in enumerate(filter(str.strip, text.split(",")), 1):
        name, found, value = (unquote(part).strip() for part in pair.partition("="))
        is_token = name.isascii() and name.replace("-", "").replace("_", "").replace(".", "").isalnum()
        if not found or not is_token or not value.isprintable() or not value.isascii():
            # Without its equals sign a pair may be nothing but the secret, so it is not shown.
            raise ValueError(f"OTEL_EXPORTER_OTLP_HEADERS must be name=value pairs with commas; see pair {number}")
        headers[name] = value
    return headers


class ForwardCounts(Struct):
    """Requests that the backend accepted, those it refused for good, and by signal those it has no place for."""

    sent: int = 0
    refused: int = 0
    not_served: Counter[str] = field(default_factory=Counter)


class _Trouble(NamedTuple):
    """Why a request has to wait, and for how long the backend asked to be left alone."""

    reason: str
    retry_after_s: float = 0.0


class _Queue(Struct):
    """What waits of one signal: backends that take spans may take no metrics, and must get their spans all the same."""

    signal: str
    trouble: str | None = None
    pause_s: float = 0.0
    is_done: bool = False


class Forwarder:
    """Sends what waits in a spool, oldest first, in a thread of its own; ``report`` gets each new trouble as a line.

    Each signal has a queue of its own, so that trouble with one holds up no other. A request leaves the spool when the
    backend has accepted it, or has refused it for good. ``mask`` replaces personal data in the texts of those requests
    that came in to be forwarded masked, and with ``masks_all`` in whatever the spool holds.
    """

    def __init__(
        self,
        spool: SpanSpool,
        backend: Backend,
        *,
        mask: MaskTexts,
        masks_all: bool = False,
        report: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.counts = ForwardCounts()
        self.backend = backend
        self._spool, self._mask, self._masks_all, self._report = spool, mask, masks_all, report
        self._tries: dict[int, int] = {}
        self._reported: set[str] = set()
        self._queues = [_Queue(signal) for signal in PACKAGES]
        self._is_ending = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._serve, name="agentunit-forward", daemon=True)

    @property
    def trouble(self) -> str | None:
        """Why something has to wait, if it has to."""
        return next((queue.trouble for queue in self._queues if queue.trouble is not None), None)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def stop(self, patience_s: float = 5.0) -> None:
        """Send what waits, unless that takes longer than this; the rest stays in the spool."""
        self._is_ending = True
        ends_at = time.monotonic() + patience_s
        # A backend that is in trouble is not waited for.
        while any(not queue.is_done and queue.trouble is None for queue in self._queues) and (
            self._thread.is_alive() and time.monotonic() < ends_at
        ):
            self._thread.join(_JOIN_S)
        if self._thread.is_alive() and self._loop is not None:
            with suppress(RuntimeError):  # it has just ended
                self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join()

    def _serve(self) -> None:
        with suppress(asyncio.CancelledError):
            asyncio.run(self._run())

    async def _run(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._task, self._loop = task, asyncio.get_running_loop()
        clients = {
            media_type: HttpClient(
                self.backend.host,
                self.backend.port,
                is_tls=self.backend.is_tls,
                headers={**self.backend.headers, "Content-Type": media_type},
                max_bytes=_LARGEST_ANSWER_BYTES,
            )
            for media_type in (PROTOBUF, JSON)
        }
        try:
            await asyncio.gather(*(self._send_until_the_end(clients, queue) for queue in self._queues))
        finally:
            for client in clients.values():
                client.close()
            await asyncio.sleep(0)  # connections close in the loop's next turn

    async def _send_until_the_end(self, clients: Mapping[str, HttpClient], queue: _Queue) -> None:
        while True:
            # Asked before the spool is: what came in before the end was announced is found.
            is_ending = self._is_ending
            try:
                waiting = self._spool.outgoing(_AT_ONCE, queue.signal)
                results = await asyncio.gather(*(self._send(clients, *each) for each in waiting))
            except Exception as error:  # noqa: BLE001  # what waits is still in the spool
                results = [_Trouble(str(error))]
            if results:
                await self._rest(queue, [trouble for trouble in results if trouble is not None])
            elif is_ending:
                queue.is_done = True
                return
            else:
                await asyncio.sleep(_LOOK_EVERY_S)

    async def _rest(self, queue: _Queue, troubles: list[_Trouble]) -> None:
        """After a round in which something went wrong, wait, each time longer."""
        before, others = queue.trouble, [each.trouble for each in self._queues if each is not queue]
        if not troubles:
            queue.trouble, queue.pause_s = None, 0.0
            if before is not None and self.trouble is None:
                self._report(f"forwarding to {self.backend.shown} continues")
            return
        queue.trouble = troubles[0].reason
        if queue.trouble != before and queue.trouble not in others:
            self._report(f"forwarding to {self.backend.shown} waits, and is tried again: {queue.trouble}")
        queue.pause_s = min(max(2 * queue.pause_s, _FIRST_PAUSE_S), _LONGEST_PAUSE_S)
        asked_s = min(max(trouble.retry_after_s for trouble in troubles), _LONGEST_ASKED_S)
        await asyncio.sleep(max(queue.pause_s, asked_s))

    async def _send(self, clients: Mapping[str, HttpClient], number: int, request: Outgoing) -> _Trouble | None:
        """Send one request, which then leaves the spool unless there is trouble."""
        body = request.body
        if request.is_masked or self._masks_all:
            try:
                body = await asyncio.to_thread(
                    mask_request, request.signal, request.media_type, request.body, self._mask
                )
            except Exception as error:  # noqa: BLE001  # whatever goes wrong, nothing is sent unmasked
                return self._give_up(number, f"it cannot be masked ({type(error).__name__}: {error})")
        try:
            target = f"{self.backend.base}/v1/{request.signal}"
            response = await asyncio.wait_for(_exchange(clients[request.media_type], target, body), _TRY_FOR_S)
        except HttpFailure as failure:
            return _Trouble(str(failure))
        except asyncio.TimeoutError:
            return _Trouble(f"no answer within {_TRY_FOR_S:g} s")
        if 200 <= response.status < 300:
            trouble = self._finish(number)
            self.counts.sent += trouble is None
            return trouble
        reason = _described(response)
        if response.status in _NOT_SERVED:
            return self._drop(number, request.signal, reason)
        is_fault = response.status == _FAULT
        self._tries[number] = self._tries.get(number, 0) + is_fault
        if response.status in _WAITED_FOR or (is_fault and self._tries[number] < _MOST_TRIES):
            return _Trouble(reason, _retry_after_s(response))
        return self._give_up(number, reason)

    def _finish(self, number: int) -> _Trouble | None:
        try:
            self._spool.remove_outgoing(number)
        except SpoolError as error:
            # It is sent once more then, after a pause; backends can tell by its span ids.
            return _Trouble(f"a request that is done stays in the spool: {error}")
        self._tries.pop(number, None)
        return None

    def _give_up(self, number: int, reason: str) -> _Trouble | None:
        self._report_once(f"a request was not accepted by {self.backend.shown} and is not sent again: {reason}")
        trouble = self._finish(number)
        self.counts.refused += trouble is None
        return trouble

    def _drop(self, number: int, signal: str, reason: str) -> _Trouble | None:
        self._report_once(f"{self.backend.shown} takes no {signal}, which are dropped and counted: {reason}")
        trouble = self._finish(number)
        self.counts.not_served[signal] += trouble is None
        return trouble

    def _report_once(self, line: str) -> None:
        # Lines hold what the backend answers, so their number is limited.
        if line not in self._reported and len(self._reported) < _MOST_LINES:
            self._reported.add(line)
            self._report(line)


async def _exchange(client: HttpClient, target: str, body: bytes) -> Response:
    try:
        return await client.send(target, body)
    except HttpFailure as failure:
        if not failure.was_stale:
            raise
    # The backend had closed a connection that was kept open.
    return await client.send(target, body, on_new=True)


def _described(response: Response) -> str:
    if 300 <= response.status < 400:
        place = response.headers.get("location", "another place")
        return f"it answers {response.status}, a redirect to {place[:_LONGEST_REASON]}, which is not followed"
    text = " ".join(response.body[:_LONGEST_REASON].decode("utf-8", "replace").split())
    shown = f": {text}" if text.isprintable() and text else ""
    return f"it answers {response.status} {response.reason}{shown}"


def _retry_after_s(response: Response) -> float:
    text = response.headers.get("retry-after", "").strip()
    return float(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0.0
