"""Requests to the collector from somebody who means harm, and a backlog that must not leave it unmasked."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import json
import os
import random
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from benchmarks.torture.children import BOUND_S, Child, agentunit, wait_for
from benchmarks.torture.ledger import Lost, Trial

MOST_CPU_S = 10.0
"""What a refused request may cost the collector. One that was read message by message took 51 s."""
MOST_BYTES = 1 << 30

_JSON, _PROTOBUF = {"Content-Type": "application/json"}, {"Content-Type": "application/x-protobuf"}
_PACKED = {"Content-Encoding": "gzip"}
_LISTENING = re.compile(r"^(?:  |or )?OTEL_EXPORTER_OTLP_ENDPOINT=http://(\S+)\n", re.MULTILINE)
_TOKEN = re.compile(r"^ *OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20(\S+)", re.MULTILINE)
# Of dense requests: so many messages of a few bytes.
_N_MESSAGES = 32_000_000
_N_OTHERS = 60


@contextlib.contextmanager
def _collecting(folder: Path, *arguments: str) -> Iterator[tuple[Child, str]]:
    """A collector that listens, and its address."""
    child = Child(agentunit("collect", "--out", "traces", "--quiet-s", "0", "--port", "0", *arguments), folder)
    try:
        wait_for(lambda: child.is_over or _LISTENING.search(child.out) is not None, "the collector does not listen")
        found = _LISTENING.search(child.out)
        if found is None:
            raise Lost(f"the collector ended: {child.errors[-500:]}")
        yield child, found[1].replace("0.0.0.0", "127.0.0.1")
    finally:
        child.clear()


def _post(address: str, body: bytes, headers: Mapping[str, str]) -> int | None:
    """The status of the answer; none where there was no answer."""
    connection = http.client.HTTPConnection(address, timeout=BOUND_S)
    with contextlib.closing(connection):
        try:
            connection.request("POST", "/v1/traces", body, dict(headers))
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return None


def _post_as_exporter(address: str, body: bytes) -> int | None:
    """Post, and again a moment later where that is asked for."""
    for _ in range(20):
        status = _post(address, body, _JSON)
        if status != 503:
            break
        time.sleep(0.1)
    return status


def _span(number: int, attributes: Sequence[Mapping[str, object]] = ()) -> bytes:
    ids = {"traceId": f"{number + 1:032x}", "spanId": f"{number + 1:016x}"}
    tool = {"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}}
    span = {**ids, "name": f"step {number}", "attributes": [tool, *attributes]}
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()


def _field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    written = bytearray()
    while value > 127:
        written.append(value & 127 | 128)
        value >>= 7
    return bytes([*written, value])


def _dense(kind: str, n: int) -> tuple[Mapping[str, str], bytes]:
    """A request of very many messages of next to no bytes."""
    ids = _field(1, b"\1" * 16) + _field(2, b"\2" * 8)
    bodies: dict[str, Callable[[], bytes]] = {
        "resources": lambda: b"\x0a\0" * n,
        "scopes": lambda: _field(1, b"\x12\0" * n),
        "spans": lambda: _field(1, _field(2, b"\x12\0" * n)),
        "attributes": lambda: _field(1, _field(2, _field(2, ids + b"\x4a\0" * n))),
        "events": lambda: _field(1, _field(2, _field(2, ids + b"\x5a\0" * n))),
        "unknown fields": lambda: b"\x08\1" * n,
        "objects": lambda: b'{"resourceSpans":[' + b"{}," * n + b"{}]}",
        "nulls": lambda: b'{"resourceSpans":[' + b"null," * (n // 2) + b"null]}",
        "names": lambda: b"{" + b'"a":1,' * (n // 2) + b'"b":1}',
        "documents": lambda: b"{}\n" * n,
        "levels": lambda: b'{"resourceSpans":' + b"[" * n,
        "zeros": lambda: b"\0" * n,
    }
    body = bodies[kind]()
    return {**(_JSON if body[:1] == b"{" else _PROTOBUF), **_PACKED}, gzip.compress(body, 6)


_DENSE = (
    *("resources", "scopes", "spans", "attributes", "events", "unknown fields"),
    *("objects", "nulls", "names", "documents", "levels", "zeros"),
)


def dense_requests(trial: Trial, n_requests: int) -> None:
    """Two small requests at a time that are very long inside: refused at little cost, and others are answered."""
    kinds = [_DENSE[at % len(_DENSE)] for at in range(n_requests)]
    trial.chance.shuffle(kinds)
    with _collecting(trial.place("dense")) as (child, address), ThreadPoolExecutor(3) as pool:
        for first, second in zip(kinds[::2], kinds[1::2], strict=False):
            requests = [_dense(first, _N_MESSAGES), _dense(second, _N_MESSAGES)]
            before_s = _cpu_s(child)
            sent = [pool.submit(_post, address, body, headers) for headers, body in requests]
            others = [_post_as_exporter(address, _span(trial.times * 1000 + number)) for number in range(_N_OTHERS)]
            statuses = [each.result() for each in sent]
            cpu_s = (_cpu_s(child) - before_s) / 2
            trial.times += 2
            what = f"requests of many {first} and {second}"
            trial.require(not child.is_over, f"{what} ended the collector: {child.errors[-300:]}")
            trial.require(others == [200] * _N_OTHERS, f"beside {what} others got {sorted(set(map(str, others)))}")
            trial.require(all(each is None or each >= 400 for each in statuses), f"{what} were taken: {statuses}")
            trial.require(cpu_s < MOST_CPU_S, f"{what} took {cpu_s:.0f} s of the processor each")
        trial.require(_peak_bytes(child) < MOST_BYTES, f"the collector took {_peak_bytes(child) / 1e6:,.0f} MB")


def _cpu_s(child: Child) -> float:
    numbers = Path("/proc", str(child.process.pid), "stat").read_text().rpartition(")")[2].split()
    return (int(numbers[11]) + int(numbers[12])) / os.sysconf("SC_CLK_TCK")


def _peak_bytes(child: Child) -> int:
    status = Path("/proc", str(child.process.pid), "status").read_text()
    found = re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
    return 1024 * int(found[1]) if found else 0


_FORGED: tuple[tuple[str, dict[str, str]], ...] = (
    ("Host of another name", {"Host": "rebound.example:4318"}),
    ("Host that begins as ours", {"Host": "127.0.0.1.example"}),
    ("Host with a user", {"Host": "127.0.0.1@rebound.example"}),
    ("Host that is empty", {"Host": ""}),
    ("Origin of a page", {"Origin": "http://rebound.example"}),
    ("Origin of another port", {"Origin": "http://127.0.0.1:3000"}),
    ("Origin null", {"Origin": "null"}),
)


def forged_requests(trial: Trial, n_rounds: int) -> None:
    """What a page in a browser, or somebody on the network without the token, sends: refused, and never a record."""
    folder = trial.place("forged")
    with _collecting(folder) as (child, address):
        for number in range(n_rounds):
            for what, headers in trial.chance.sample(_FORGED, len(_FORGED)):
                status = _post(address, _span(number), {**_JSON, **headers})
                trial.times += 1
                trial.require(status in (400, 401, 403), f"{what}: the answer is {status}")
            trial.require(_post(address, _span(10_000 + number), _JSON) == 200, "a plain request is refused")
        # Its last words come when it has written what it holds.
        child.signal(signal.SIGINT)
        child.end()
        _must_hold(trial, folder, n_rounds)
    with _collecting(folder, "--host", "0.0.0.0") as (child, address):
        told = _TOKEN.search(child.out)
        trial.require(told, f"no token is told: {child.out}")
        assert told is not None
        for given in ("", "Bearer ", "Bearer x", f"Bearer {told[1][:-1]}", f"Basic {told[1]}", f"bearer{told[1]}"):
            status = _post(address, _span(0), {**_JSON, **({"Authorization": given} if given else {})})
            trial.times += 1
            trial.require(status == 401, f"with the token {given!r} the answer is {status}")
        good = _post(address, _span(20_000), {**_JSON, "Authorization": f"Bearer {told[1]}"})
        trial.require(good == 200, f"with its token the answer is {good}")
        child.signal(signal.SIGINT)
        child.end()
        _must_hold(trial, folder, n_rounds + 1)


def _must_hold(trial: Trial, folder: Path, n: int) -> None:
    found = sum(path.read_bytes().count(b"\n") for path in folder.glob("traces/*/*.jsonl"))
    trial.require(found == n, f"{found} traces were written, not {n}")


_NUMBERS = {"ssn": 536221234, "customer.phone": 4155552671, "credit_card_number": 4111111111111111}
_TEXTS = {
    "input.value": "write to mia.lindqvist@example.com or call +1 415 555 2671",
    "gen_ai.prompt": '{"email": "mia.lindqvist@example.com", "ssn": "536-22-1234"}',
    "note": "card 4111 1111 1111 1111",
}
_SECRETS = (
    *(b"mia.lindqvist", b"415 555 2671", b"536-22-1234", b"4111 1111 1111 1111"),
    *(str(number).encode() for number in _NUMBERS.values()),
    *(_varint(number) for number in _NUMBERS.values()),
)


class _Backend(ThreadingHTTPServer):
    """Takes whatever is sent, and keeps it."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, port: int) -> None:
        self.bodies: list[bytes] = []
        super().__init__(("127.0.0.1", port), _Taking)
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()


class _Taking(BaseHTTPRequestHandler):
    server: _Backend

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.bodies.append(gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def masked_backlog(trial: Trial, n_rounds: int) -> None:
    """What was collected to be sent as it is, while the backend was away, leaves masked once masking is asked for."""
    for number in range(n_rounds):
        folder = trial.place(f"backlog{number}")
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        forward = ["--forward", f"http://127.0.0.1:{port}"]
        n_sent = 0
        # Some of it by a collector that masks, some by one that does not, each ended in a way of its own.
        for mask in trial.chance.choice([[[]], [[], ["--mask"]], [["--mask"], []]]):
            with _collecting(folder, *forward, *mask) as (child, address):
                for _ in range(trial.chance.randint(3, 8)):
                    headers, body = _personal(trial.chance, n_sent)
                    status = _post(address, body, headers)
                    trial.require(status == 200, f"a request is answered with {status}")
                    n_sent += 1
                child.signal(trial.chance.choice([signal.SIGINT, signal.SIGTERM, signal.SIGKILL]))
                child.end()
        bodies = _bodies_sent_later(folder, forward, port, n_sent)
        trial.times += len(bodies)
        for body in bodies:
            left = [secret for secret in _SECRETS if secret in body]
            trial.require(not left, f"what was sent holds {left}: {body[:300]!r}")


def _bodies_sent_later(folder: Path, forward: list[str], port: int, n_sent: int) -> list[bytes]:
    """What leaves a collector that masks when its backend is there again."""
    backend = _Backend(port)
    try:
        with _collecting(folder, *forward, "--mask") as (child, _):
            wait_for(lambda: len(backend.bodies) >= n_sent, f"of {n_sent} requests some are not sent")
            child.signal(signal.SIGINT)
            child.end()
    finally:
        backend.shutdown()
        backend.server_close()
    return backend.bodies


def _personal(chance: random.Random, number: int) -> tuple[Mapping[str, str], bytes]:
    """A request with personal texts and numbers, as JSON or as protobuf, packed or not."""
    texts = [{"key": key, "value": {"stringValue": text}} for key, text in _TEXTS.items()]
    numbers = [
        {"key": key, "value": {"intValue": chance.choice([value, str(value)])}} for key, value in _NUMBERS.items()
    ]
    nested = [{"key": "user", "value": {"kvlistValue": {"values": [*texts, *numbers]}}}]
    headers, body = _JSON, _span(number, chance.choice([[*texts, *numbers], nested]))
    if chance.random() < 0.5:
        ids = _field(1, (number + 1).to_bytes(16, "big")) + _field(2, (number + 1).to_bytes(8, "big"))
        pairs = [_field(1, key.encode()) + _field(2, _field(1, text.encode())) for key, text in _TEXTS.items()]
        pairs += [_field(1, key.encode()) + _field(2, b"\x18" + _varint(value)) for key, value in _NUMBERS.items()]
        attributes = b"".join(_field(9, pair) for pair in pairs)
        headers, body = _PROTOBUF, _field(1, _field(2, _field(2, ids + attributes)))
    if chance.random() < 0.5:
        headers, body = {**headers, **_PACKED}, gzip.compress(body)
    return headers, body
