"""The local server: Starlette and uvicorn around the API, loaded only where someone looks (extra ``viewer``)."""

from __future__ import annotations

import socket
import sys
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from agentunit.addons.viewer._api import Api, Request, Route
from agentunit.addons.viewer._guard import LOOPBACK, App, Guard
from agentunit.addons.viewer._library import UnknownRun
from agentunit.addons.viewer._media import Media
from agentunit.addons.viewer._page import ViewerError, content_policy, live_page
from agentunit.addons.viewer.filters import FilterError
from agentunit.core.codec import RecordError
from agentunit.core.results import encode_json
from agentunit.installation import install_command
from agentunit.store.opening import shown_address
from agentunit.store.schema import StoreError

if TYPE_CHECKING:
    from starlette.requests import Request as HttpRequest
    from starlette.responses import Response
import asyncio
import re
from collections.abc import Iterable

from h11 import SEND_BODY
from uvicorn.protocols.http.h11_impl import H11Protocol

import agentunit
from agentunit.addons.viewer._page import static_text

DEFAULT_PORT = 7575
_MOST_BODY_BYTES = 64 * 1024
_MOST_DIGITS = 18
_MISSING = "the live viewer needs Starlette and uvicorn"


def make_app(api: Api, *, token: str | None = None, hosts: tuple[str, ...] = LOOPBACK) -> App:
    """The whole server as an ASGI application, guarded."""
    try:
        from starlette.applications import Starlette
        from starlette.responses import Response
        from starlette.routing import Route as HttpRoute
    except ImportError:
        raise ViewerError(f"{_MISSING}: {install_command('viewer')}") from None

    routes = api.routes()
    document = encode_json(openapi_document(routes))

    def page(request: HttpRequest) -> Response:
        policy = f"{content_policy('live')}; frame-ancestors 'none'"
        return Response(live_page(), media_type="text/html", headers={"Content-Security-Policy": policy})

    def openapi(request: HttpRequest) -> Response:
        return Response(document, media_type="application/json")

    app = Starlette(
        routes=[
            HttpRoute("/", page),
            HttpRoute("/api/openapi.json", openapi),
            *(HttpRoute(each.path, _endpoint(each), methods=[each.method]) for each in routes),
        ]
    )
    return Guard(app, token=token, hosts=hosts)


def _endpoint(route: Route) -> Callable[[HttpRequest], Any]:
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import ClientDisconnect

    async def endpoint(http: HttpRequest) -> Response:
        body = bytearray()
        if route.method == "POST":
            try:
                async for part in http.stream():
                    body += part
                    if len(body) > _MOST_BODY_BYTES:
                        return _problem(413, f"a body has at most {_MOST_BODY_BYTES:,} bytes")
            except ClientDisconnect:
                return _problem(400, "the request ended before its body")
        request = Request(dict(http.path_params), dict(http.query_params), bytes(body))
        return await run_in_threadpool(_answered, route, request, http.headers.get("range"))

    return endpoint


def _answered(route: Route, request: Request, range_header: str | None) -> Response:
    from starlette.responses import Response

    try:
        answer = route.answer(request)
    except FilterError as error:
        return _problem(400, str(error), at=error.at)
    except UnknownRun as error:
        return _problem(404, str(error.args[0]))
    except (StoreError, RecordError) as error:
        return _problem(500, shown_address(str(error)))
    except (ValueError, msgspec.MsgspecError) as error:
        return _problem(400, str(error))
    except Exception as error:  # noqa: BLE001  # a fault of ours must not end the server
        traceback.print_exc(file=sys.stderr)
        return _problem(500, f"{type(error).__name__} (the terminal of 'agentunit view' shows where)")
    if isinstance(answer, Media):
        return _media(answer, range_header)
    return Response(encode_json(answer), media_type="application/json")


def _problem(status: int, error: str, **more: Any) -> Response:
    from starlette.responses import Response

    return Response(encode_json({"error": error, **more}), status, media_type="application/json")


def _media(media: Media, range_header: str | None) -> Response:
    """Bytes of a known kind, or the part of them that a player asks for."""
    from starlette.responses import Response

    content, n_bytes = media.content, len(media.content)
    headers = {"Accept-Ranges": "bytes", "Content-Disposition": "inline"}
    if range_header is None or not range_header.startswith("bytes=") or "," in range_header:
        return Response(content, media_type=media.type, headers=headers)
    first, last = map(_offset, range_header.removeprefix("bytes=").partition("-")[::2])
    if first is not None:
        start, end = first, n_bytes if last is None else min(n_bytes, last + 1)
    else:
        start, end = max(0, n_bytes - (last or 0)), n_bytes
    if start >= end:
        return Response(b"", 416, headers={"Content-Range": f"bytes */{n_bytes}"})
    headers["Content-Range"] = f"bytes {start}-{end - 1}/{n_bytes}"
    return Response(content[start:end], 206, media_type=media.type, headers=headers)


def _offset(digits: str) -> int | None:
    """A number of a Range header; one of more digits than any file has bytes is as good as any other such."""
    if not (digits.isascii() and digits.isdecimal()):
        return None
    return int(digits.lstrip("0")[:_MOST_DIGITS] or "0")


def bound_socket(host: str, port: int | None) -> socket.socket:
    """A socket at this port; where none is named at the usual one, or at any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for wanted in (DEFAULT_PORT, 0) if port is None else (port,):
        opened = socket.socket(family, socket.SOCK_STREAM)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            opened.bind((host, wanted))
            # Whoever opens the printed address at once waits for the server, and is not refused.
            opened.listen()
        except OSError as error:
            opened.close()
            if wanted == 0 or port is not None:
                reason = (error.strerror or str(error)).lower()
                raise ViewerError(
                    f"cannot listen at {host}, port {wanted}: {reason}; --host and --port name another place"
                ) from None
            continue
        # From now on connections wait: the address is told, and opened, before the server is up.
        opened.listen()
        return opened
    raise AssertionError("a free port is always found or refused")


def make_server(app: App) -> Any:
    """The server of an application, to be run with a socket."""
    try:
        import uvicorn

    except ImportError:
        raise ViewerError(f"{_MISSING}: {install_command('viewer')}") from None
    config = uvicorn.Config(
        app,
        http=TimedProtocol,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(config)


# Connections that wait for a request only so long: uvicorn itself waits for the rest of one for ever.


class TimedProtocol(H11Protocol):
    """Closes a connection whose request, with its body, is not there in time. Answers take as long as they take."""

    patience_s = 20.0
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Wait on, from when the wait began, or no more."""
        super().data_received(data)
        is_answering = self.cycle is not None and not self.cycle.response_complete
        if is_answering and self.conn.their_state is not SEND_BODY:
            self._wait_no_more()
        else:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for."""
        self._wait_no_more()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.patience_s, self.transport.close)

    def _wait_no_more(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


# The OpenAPI document of the viewer's API, from the table of its routes and the shapes of types.ts.


SCHEMAS = "schemas.json"
_IN_PATH = re.compile(r"\{(\w+)\}")
_WRITE = {
    "name": "X-AgentUnit",
    "in": "header",
    "required": True,
    "description": "Any value: no form of another site can send it.",
    "schema": {"type": "string"},
}


def schemas() -> dict[str, Any]:
    """The shapes of types.ts as JSON Schema, by name (``python -m scripts.viewer_schemas`` writes them)."""
    found: dict[str, Any] = msgspec.json.decode(static_text(SCHEMAS))
    return found


def openapi_document(routes: Iterable[Route]) -> dict[str, Any]:
    """The document, OpenAPI 3.1."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "AgentUnit viewer", "version": agentunit.__version__},
        "paths": paths,
        "components": {"schemas": schemas()},
    }


def _operation(route: Route) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _IN_PATH.findall(route.path)
    ]
    parameters += [
        {"name": name, "in": "query", "description": meaning, "schema": {"type": "string"}}
        for name, meaning in route.parameters.items()
    ]
    if route.method == "GET":
        shown = "1: with personal data"
        parameters.append({"name": "personal", "in": "query", "description": shown, "schema": {"type": "string"}})
    else:
        parameters.append(_WRITE)
    problem = {"description": "What is wrong", "content": {"application/json": {"schema": _schema("Problem")}}}
    operation: dict[str, Any] = {
        "summary": route.summary,
        "parameters": parameters,
        "responses": {"200": _response(route.gives), "default": problem},
    }
    if route.takes is not None:
        content = {"application/json": {"schema": _schema(route.takes)}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _response(gives: str) -> dict[str, Any]:
    if gives == "bytes":
        return {"description": gives, "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}
    return {"description": gives, "content": {"application/json": {"schema": _schema(gives)}}}


def _schema(name: str) -> dict[str, Any]:
    if name.endswith("[]"):
        return {"type": "array", "items": _schema(name[:-2])}
    plain = {"number": {"type": "number"}, "unknown": {}}
    return plain.get(name, {"$ref": f"#/components/schemas/{name}"})
