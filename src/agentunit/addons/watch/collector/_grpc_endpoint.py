"""OTLP over gRPC: the three services, with the limits and answers of the HTTP side."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from agentunit.addons.watch.collector._http_body import decompress_message
from agentunit.addons.watch.collector._http_endpoint import address_of
from agentunit.addons.watch.collector._senders import TOKEN_HEADER
from agentunit.addons.watch.collector.request import grpc_failure
from agentunit.addons.watch.collector.request_limits import RefusedRequest, Reservation
from agentunit.traces.otlp.stored_requests import PACKAGES, PROTOBUF

if TYPE_CHECKING:
    from agentunit.addons.watch.collector.receiver import Receiver

# Any other status of HTTP is INTERNAL. A request that is too large is no RESOURCE_EXHAUSTED, which some
# exporters take for a reason to send it again.
_CODES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    413: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}
_WORKERS = 4
_LOOK_FOR_MEMORY_EVERY_S = 0.005
_LOOK_FOR_OTHERS_EVERY_S = 0.05
_IDLE_MS = 600_000
_MOST_INT32 = 2**31 - 1

_Result = TypeVar("_Result")


class GrpcServer:
    """The gRPC server of a receiver, in an event loop and a thread of its own; ``OSError`` when the port is taken.

    gRPC receives a message before its size is known here, so memory for the largest one is reserved first: few
    messages are received at once, in the order in which they came.
    """

    def __init__(self, receiver: Receiver, host: str, port: int) -> None:
        self._grpc = _load_grpc()
        ip = _bindable(host, port)
        self._receiver = receiver
        self._n_calls = 0
        self._workers = ThreadPoolExecutor(_WORKERS, "agentunit-grpc")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="agentunit-grpc", daemon=True)
        self._thread.start()
        try:
            bound = self._call(self._open(f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"))
        except BaseException:
            self._end_loop()
            raise
        self.address = address_of(ip, bound)

    async def _open(self, place: str) -> int:
        limits = self._receiver.limits
        largest = int(min(limits.request_bytes, _MOST_INT32))
        self._line = asyncio.Lock()
        self._server = self._grpc.aio.server(
            options=(
                ("grpc.max_receive_message_length", largest),
                # gRPC has no limit for what it decompresses: it is done here.
                ("grpc.per_message_decompression", 0),
                # With it, two collectors could share the port, each getting some of the connections.
                ("grpc.so_reuseport", 0),
                ("grpc.max_concurrent_streams", limits.calls),
                ("grpc.max_connection_idle_ms", _IDLE_MS),
            )
        )
        self._server.add_generic_rpc_handlers(
            tuple(
                self._grpc.method_handlers_generic_handler(
                    f"opentelemetry.proto.collector.{package}.v1.{package.title()}Service",
                    {"Export": self._grpc.stream_unary_rpc_method_handler(partial(self._export, signal))},
                )
                for signal, package in PACKAGES.items()
            )
        )
        try:
            return int(self._server.add_insecure_port(place))
        except RuntimeError:
            raise OSError(f"{place} cannot be used") from None

    def start(self) -> None:
        """Serve in a thread of its own."""
        self._call(self._server.start())

    def stop(self, patience_s: float) -> None:
        """Take no new calls, let those under way be answered, and close."""
        self._call(self._server.stop(patience_s))
        self._end_loop()

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._workers.shutdown(wait=False)

    def _call(self, coroutine: Coroutine[Any, Any, _Result]) -> _Result:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def _export(self, signal: str, messages: object, context: Any) -> bytes:
        """One call. The client sends one message; as a stream it can be waited for with a limit of time."""
        receiver = self._receiver
        receiver.count(requests=1, grpc_requests=1)
        self._n_calls += 1
        try:
            return await self._answer(signal, context)
        except RefusedRequest as error:
            # Its traceback would keep the message in memory until the next run of the garbage collector.
            refused = error.with_traceback(None)
        except asyncio.CancelledError:
            # Without an answer the sender tries again.
            receiver.count(busy=1)
            raise
        except Exception as error:  # noqa: BLE001  # one request must not end the others
            refused = RefusedRequest(500, f"{type(error).__name__}: {error}")
        finally:
            self._n_calls -= 1
        receiver.count_refusal(refused)
        code = self._grpc.StatusCode[_CODES.get(refused.status, "INTERNAL")]
        context.set_trailing_metadata(grpc_failure(code.value[0], refused.message, refused.retry_after_s))
        await context.abort(code, refused.message)
        raise AssertionError("abort always raises")

    async def _answer(self, signal: str, context: Any) -> bytes:
        receiver = self._receiver
        if receiver.stopping:
            raise RefusedRequest(503, "the collector is being stopped", retry_after_s=1)
        metadata = context.invocation_metadata() or ()
        receiver.senders.check_token(value for name, value in metadata if name == TOKEN_HEADER)
        if self._n_calls > receiver.limits.calls:
            raise RefusedRequest(429, "too many calls at once: try again", retry_after_s=1)
        reservation = Reservation(receiver.memory)
        try:
            message = await self._receive(context, reservation)
            accepted = self._loop.run_in_executor(self._workers, self._accept, signal, message, reservation)
        except BaseException:
            reservation.shrink_to(0)
            raise
        # A sender that goes away does not end the work, nor free its memory.
        return await asyncio.shield(accepted)

    async def _receive(self, context: Any, reservation: Reservation) -> bytes:
        limits = self._receiver.limits
        largest = min(limits.request_bytes, limits.under_way_bytes)
        # A little longer than calls before it may stall that hold the memory.
        ends_at = self._loop.time() + limits.stall_s + 4 * _LOOK_FOR_OTHERS_EVERY_S
        async with self._line:
            while True:
                try:
                    reservation.grow_to(largest)
                    break
                except RefusedRequest:
                    if self._loop.time() >= ends_at:
                        raise
                await asyncio.sleep(_LOOK_FOR_MEMORY_EVERY_S)
        message = await self._read(context)
        if message is self._grpc.aio.EOF:
            raise RefusedRequest(413, f"a gRPC message was broken off or has more than {largest:,.0f} bytes")
        reservation.shrink_to(len(message))
        return bytes(message)

    async def _read(self, context: Any) -> Any:
        """The message of a call, which has less time when others wait for the memory that it holds."""
        limits, started_at = self._receiver.limits, self._loop.time()
        # The iterator of the call would keep the message in memory until the next garbage collection.
        reading = asyncio.ensure_future(context.read())
        try:
            while not (await asyncio.wait((reading,), timeout=_LOOK_FOR_OTHERS_EVERY_S))[0]:
                waited_s = self._loop.time() - started_at
                if waited_s >= (limits.stall_s if self._line.locked() else limits.request_s):
                    raise RefusedRequest(503, "the request took too long", retry_after_s=1)
            return reading.result()
        except asyncio.CancelledError:
            # The end of a message that is too large comes together with the end of its call.
            if reading.done() and not reading.cancelled():
                return reading.result()
            raise
        finally:
            reading.cancel()

    def _accept(self, signal: str, message: bytes, reservation: Reservation) -> bytes:
        with reservation:
            body = decompress_message(message, reservation, self._receiver.limits.request_bytes)
            return self._receiver.accept(signal, PROTOBUF, body)


def _load_grpc() -> Any:
    # Otherwise gRPC writes to the terminal on its own.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    logging.getLogger("grpc").addHandler(logging.NullHandler())
    logging.getLogger("grpc").propagate = False
    import grpc
    import grpc.aio

    return grpc


def _bindable(host: str, port: int) -> str:
    """The first address of a host, where the port is free; gRPC would not say why it is not."""
    (family, *_, address), *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        if os.name == "posix":
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(address)
    return str(address[0])
