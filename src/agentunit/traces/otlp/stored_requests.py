"""Export requests of OTLP as files hold them, one by one and whole, and the same file written from others."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from agentunit.traces.compressed import bounded_lines, decompressed, read_whole, replayed
from agentunit.traces.otlp.protobuf_requests import Framing, framing_of
from agentunit.urls import open_binary

PROTOBUF = "application/x-protobuf"
JSON = "application/json"

PACKAGES = {"traces": "trace", "logs": "logs", "metrics": "metrics"}
"""The signals of OTLP, each with its part in the names of the protobuf packages and messages."""

_HEAD_BYTES = 1 << 16
_REQUEST_KEY = re.compile(rb'"(?:resource_?(?:[sS]pans|[lL]ogs|[mM]etrics)|batches)"')


class StoredRequest(NamedTuple):
    """A request as it stands in a file: its media type, its body, and how it is told apart from the next."""

    media_type: str
    body: bytes
    framing: Framing

    def written(self, body: bytes) -> bytes:
        """Another body in the place of this one."""
        if self.media_type == JSON:
            return body + b"\n"
        if self.framing == "one message":
            return body
        length = _varint(len(body)) if self.framing == "varint" else len(body).to_bytes(4, "big")
        return length + body


def read_requests(path: str) -> Iterator[StoredRequest]:
    """The requests of a file: JSON, one in all or one per line, or protobuf; a ``ValueError`` comes from any other."""
    with open_binary(path) as raw:
        stream = decompressed(raw)
        start = stream.read(_HEAD_BYTES)
        whole = replayed(start, stream)
        if start.lstrip()[:1] in (b"{", b"["):
            if not _REQUEST_KEY.search(start):
                raise ValueError("it holds no resourceSpans, resourceLogs or resourceMetrics")
            yield from _json_requests(start, whole)
        else:
            yield from _protobuf_requests(read_whole(whole))


def _json_requests(start: bytes, stream: io.BufferedIOBase) -> Iterator[StoredRequest]:
    first_line = start.lstrip().partition(b"\n")[0]
    if _is_json(first_line):
        for number, line in bounded_lines(stream):
            if isinstance(line, str):
                raise ValueError(f"line {number}: {line}")
            if line.strip():
                yield StoredRequest(JSON, line, "one message")
        return
    content = read_whole(stream)
    try:
        held = json.loads(content)
    except json.JSONDecodeError:
        yield from (StoredRequest(JSON, line, "one message") for line in content.splitlines() if line.strip())
        return
    for each in held if isinstance(held, list) else [held]:
        yield StoredRequest(JSON, json.dumps(each).encode(), "one message")


def _is_json(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _protobuf_requests(content: bytes) -> Iterator[StoredRequest]:
    framing = framing_of(content[:_HEAD_BYTES])
    if framing is None:
        raise ValueError("it is not OTLP: neither JSON nor protobuf")
    if framing == "one message":
        yield StoredRequest(PROTOBUF, content, framing)
        return
    at = 0
    while at < len(content):
        if framing == "varint":
            length, at = _read_varint(content, at)
        else:
            length, at = int.from_bytes(content[at : at + 4], "big"), at + 4
        if at + length > len(content):
            raise ValueError("it is cut off inside a request")
        yield StoredRequest(PROTOBUF, content[at : at + length], framing)
        at += length


def _varint(number: int) -> bytes:
    written = bytearray()
    while number > 127:
        written.append(number & 127 | 128)
        number >>= 7
    return bytes([*written, number])


def _read_varint(content: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while at < len(content):
        byte = content[at]
        number |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return number, at
    raise ValueError("it is cut off inside a request")
