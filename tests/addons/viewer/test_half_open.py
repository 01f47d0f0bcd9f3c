from __future__ import annotations

import asyncio
import socket
import threading
import time
from contextlib import contextmanager, suppress

import pytest

from agentunit.addons.viewer._api import Api
from agentunit.addons.viewer._server import TimedProtocol, bound_socket, make_app, make_server

HOST = b"Host: 127.0.0.1\r\n"
WRITE = b"Content-Type: application/json\r\nX-AgentUnit: 1\r\n"
PATIENCE_S = 0.2
# Only a server that never closes is waited for so long.
HUNG_S = 30


@contextmanager
def serving(app, monkeypatch):
    monkeypatch.setattr(TimedProtocol, "patience_s", PATIENCE_S)
    listening = bound_socket("127.0.0.1", None)
    server = make_server(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield lambda: socket.create_connection(listening.getsockname(), HUNG_S)
    finally:
        server.should_exit = True
        thread.join(HUNG_S)


def received(connection):
    """What comes until the server closes the connection."""
    said = b""
    with suppress(ConnectionResetError):
        while part := connection.recv(65_536):
            said += part
    return said


@pytest.mark.parametrize(
    "half",
    [
        b"",
        b"GET /api/index HTTP/1.1\r\n" + HOST,
        b"POST /api/runs/r/note HTTP/1.1\r\n" + HOST + WRITE + b'Content-Length: 100\r\n\r\n{"key"',
    ],
)
def test_a_request_that_does_not_come_is_not_waited_for(library, monkeypatch, capfd, half):
    with serving(make_app(Api(library)), monkeypatch) as connect, connect() as connection:
        connection.sendall(half)
        assert received(connection) == b""
    assert "Traceback" not in capfd.readouterr().err


def test_nor_is_one_that_comes_byte_by_byte(library, monkeypatch):
    with serving(make_app(Api(library)), monkeypatch) as connect, connect() as connection:
        hung_from_s = time.monotonic() + HUNG_S
        with suppress(ConnectionError):
            while time.monotonic() < hung_from_s:
                connection.sendall(b"G")
                time.sleep(0.02)
            pytest.fail("it is waited for")


def test_nor_is_a_second_one_on_the_same_connection(library, monkeypatch):
    with serving(make_app(Api(library)), monkeypatch) as connect, connect() as connection:
        connection.sendall(b"GET /api/index HTTP/1.1\r\n" + HOST + b"\r\n")
        said = b""
        while not said.endswith(b"}"):
            said += connection.recv(65_536)
        assert said.startswith(b"HTTP/1.1 200")
        connection.sendall(b"GET /api/index HTTP/1.1\r\n")
        assert received(connection) == b""


def test_an_answer_takes_as_long_as_it_takes(monkeypatch):
    async def slow(scope, receive, send):
        if scope["type"] == "lifespan":
            return
        await asyncio.sleep(4 * PATIENCE_S)
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    with serving(slow, monkeypatch) as connect, connect() as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n")
        assert received(connection).startswith(b"HTTP/1.1 204")


@pytest.mark.parametrize("header", ["Content-Length: ", "Host: 127.0.0.1:", "Sec-Fetch-Site: ", "Content-Type: "])
def test_a_header_of_thousands_of_digits_is_refused_or_ignored(library, monkeypatch, capfd, header):
    with serving(make_app(Api(library)), monkeypatch) as connect, connect() as connection:
        named = header.encode() + b"1" * 5_000 + b"\r\n"
        own = b"" if header.startswith("Host") else HOST
        connection.sendall(b"GET /api/index HTTP/1.1\r\n" + own + named + b"Connection: close\r\n\r\n")
        assert received(connection)[:12] in (b"HTTP/1.1 200", b"HTTP/1.1 400", b"HTTP/1.1 403")
    assert "Traceback" not in capfd.readouterr().err
