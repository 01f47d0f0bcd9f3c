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
from agentunit.addons.viewer._openapi import openapi_document
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

        from agentunit.addons.viewer._timed_protocol import TimedProtocol
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
