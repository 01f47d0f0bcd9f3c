"""An HTTP agent that answers badly."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

_OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def _closes(client: socket.socket) -> None:
    pass


def _garbage(client: socket.socket) -> None:
    client.sendall(b"\0\xff" * 1000)


def _wrong_length(client: socket.socket) -> None:
    client.sendall(_OK + b'Content-Length: 100\r\n\r\n{"output": "right"}')


def _length_below_zero(client: socket.socket) -> None:
    client.sendall(_OK + b'Content-Length: -5\r\n\r\n{"output": "right"}')


def _headers_without_end(client: socket.socket) -> None:
    client.sendall(_OK)
    for number in range(200_000):
        client.sendall(f"X-{number}: {'x' * 100}\r\n".encode())


def _body_without_end(client: socket.socket) -> None:
    client.sendall(_OK + b"\r\n")
    for _ in range(4_000):
        client.sendall(b"x" * 100_000)


def _one_byte_now_and_then(client: socket.socket) -> None:
    for byte in _OK * 1000:
        client.sendall(bytes([byte]))
        time.sleep(0.2)


def _says_nothing(client: socket.socket) -> None:
    client.settimeout(600)
    client.recv(1)


def _bad_chunks(client: socket.socket) -> None:
    client.sendall(_OK + b"Transfer-Encoding: chunked\r\n\r\nzzz\r\n")


def _not_utf8(client: socket.socket) -> None:
    client.sendall(_OK + b'Content-Length: 16\r\n\r\n{"output": "\xff\xfe"}')


def _redirects(client: socket.socket) -> None:
    client.sendall(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n")


def _deep(client: socket.socket) -> None:
    body = b'{"output": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    client.sendall(_OK + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)


HTTP_HARMS: dict[str, Callable[[socket.socket], None]] = {
    each.__name__.strip("_"): each
    for each in (
        _closes,
        _garbage,
        _wrong_length,
        _length_below_zero,
        _headers_without_end,
        _body_without_end,
        _one_byte_now_and_then,
        _says_nothing,
        _bad_chunks,
        _not_utf8,
        _redirects,
        _deep,
    )
}


class BadServer:
    """Answers well, and the question "evil" badly, unless it was tamed."""

    def __init__(self, harm: str, folder: Path) -> None:
        self._harm = HTTP_HARMS[harm]
        self._folder = folder
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}/"
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(client,), daemon=True).start()

    def _answer(self, client: socket.socket) -> None:
        try:
            with client, client.makefile("rb") as stream:
                while head := _read_head(stream):
                    question = json.loads(stream.read(int(head["content-length"])))
                    with open(self._folder / "started.log", "a") as log:
                        log.write(question["id"] + "\n")
                    if question["query"] == "evil" and not (self._folder / "tame").exists():
                        self._harm(client)
                        return
                    body = b'{"output": "right"}'
                    client.sendall(_OK + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        except (OSError, ValueError, KeyError):
            pass  # a client that has gone, which is what this is for


def _read_head(stream: object) -> dict[str, str]:
    head: dict[str, str] = {}
    for raw in iter(stream.readline, b""):  # type: ignore[attr-defined]
        if raw == b"\r\n":
            return head
        name, _, value = raw.decode("latin-1").partition(":")
        head[name.lower()] = value.strip()
    return {}
