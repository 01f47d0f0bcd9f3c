"""``collect`` and ``label``: what was acknowledged to a sender or a person is kept."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from agentunit.core.codec import decode_record
from agentunit.store.sqlite import Store
from benchmarks.torture.children import BOUND_S, Child, agentunit, done
from benchmarks.torture.ledger import Lost, Skipped
from benchmarks.torture.made_up import add_run
from benchmarks.torture.scenarios import STORE, Scenario, check_store

_N_BATCHES = 60
_N_TRACES = 7
_GRPC_ENVIRONMENT = Path(".venv-optional", "collect", "bin", "python")


class Collect(Scenario):
    """A collector under load. A batch that was not acknowledged is sent again, as exporters do."""

    name = "collect, OTLP over HTTP"
    stopped_codes = (0, 130)
    # On a full disk every batch is refused: after so many refusals the collector is ended.
    most_refusals: int | None = None
    # Its whole line, or a part of the port could be taken for it.
    listening = re.compile(r"^  OTEL_EXPORTER_OTLP_ENDPOINT=http://(\S+)\n", re.MULTILINE)

    def prepare(self, folder: Path) -> None:
        self._acknowledged: set[int] = set()

    def start(self, folder: Path) -> Child:
        self._n_before = len(self._acknowledged)
        # Any free port, and what it says about it: one that was free a moment ago need not be free now.
        self._child = self.run(folder, "collect", "--out", "traces", "--quiet-s", "0", "--port", "0")
        self._sender = threading.Thread(target=self._send, args=(self._child,), daemon=True)
        self._sender.start()
        return self._child

    def has_begun(self, folder: Path) -> bool:
        return len(self._acknowledged) > self._n_before

    def check(self, folder: Path) -> None:
        # What it had acknowledged may lie in the spool still; the last start writes it, and the result shows it.
        self._sender.join(BOUND_S)
        for path in folder.glob("traces/*/*.jsonl"):
            decode_record(path.read_bytes())

    def is_whole(self, folder: Path) -> bool:
        return len(self._acknowledged) == _N_BATCHES

    def result(self, folder: Path) -> object:
        kept = Counter(
            event.payload["name"]
            for path in folder.glob("traces/*/*.jsonl")
            for event in decode_record(path.read_bytes()).trace.events
            if event.type == "tool_call"
        )
        # A batch whose answer was lost with the process came twice, with the same ids: it is kept once.
        return dict(kept)

    def _send(self, child: Child) -> None:
        while (found := self.listening.search(child.out)) is None:
            if child.is_over:
                return
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.process.wait(0.02)
        address = found[1]
        n_refused = 0
        for batch in range(_N_BATCHES):
            while batch not in self._acknowledged:
                if child.is_over:
                    return
                if n_refused == self.most_refusals:
                    break
                answer = self.send(batch, address)
                if answer:
                    self._acknowledged.add(batch)
                else:
                    n_refused += answer is not None
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        child.process.wait(0.02)
        with contextlib.suppress(ProcessLookupError):
            child.signal(signal.SIGINT)

    def send(self, batch: int, address: str) -> bool | None:
        """Send one batch; whether it was acknowledged. None: nobody answered."""
        connection = http.client.HTTPConnection(address, timeout=BOUND_S)
        with contextlib.closing(connection):
            try:
                connection.request(
                    "POST", "/v1/traces", json.dumps(_request(batch)), {"Content-Type": "application/json"}
                )
                return connection.getresponse().status == 200
            except (OSError, http.client.HTTPException):
                return None


def _request(batch: int) -> dict[str, object]:
    spans = [
        {
            "traceId": f"{10**30 + batch % _N_TRACES:032x}",
            "spanId": f"{batch * 100 + number + 1:016x}",
            "name": f"tool-{batch}-{number}",
            "attributes": [
                {"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}},
                {"key": "gen_ai.tool.name", "value": {"stringValue": f"tool-{batch}-{number}"}},
            ],
        }
        for number in range(1 + batch % 9)
    ]
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}


# One line in, a batch as JSON; one line out, whether it was acknowledged.
_GRPC_SENDER = """
import json, sys
import grpc
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

import base64
for line in sys.stdin:
    data = json.loads(line)
    address = data.pop("address")
    for span in data["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        for key in ("traceId", "spanId"):
            span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
    body = ParseDict(data, ExportTraceServiceRequest()).SerializeToString()
    try:
        with grpc.insecure_channel(address) as channel:
            channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export")(body, timeout=300)
        print("yes", flush=True)
    except grpc.RpcError:
        print("no", flush=True)
"""


class CollectGrpc(Collect):
    """The same over gRPC, in an environment that has it."""

    name = "collect, OTLP over gRPC"
    listening = re.compile(
        r"^or OTEL_EXPORTER_OTLP_ENDPOINT=http://(\S+) OTEL_EXPORTER_OTLP_PROTOCOL=grpc\n", re.MULTILINE
    )

    def begin(self) -> None:
        if find_spec("grpc") is not None:
            self.python = sys.executable
        elif _GRPC_ENVIRONMENT.exists():
            self.python = str(_GRPC_ENVIRONMENT.absolute())
        else:
            raise Skipped("grpcio is not installed ('make optional PARTS=collect' installs it)")
        self._client: subprocess.Popen[str] | None = None

    def prepare(self, folder: Path) -> None:
        super().prepare(folder)
        self.end()
        assert self.python is not None
        self._client = subprocess.Popen(
            [self.python, "-c", _GRPC_SENDER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def send(self, batch: int, address: str) -> bool | None:
        assert self._client is not None
        assert self._client.stdin is not None
        assert self._client.stdout is not None
        self._client.stdin.write(json.dumps({**_request(batch), "address": address}) + "\n")
        self._client.stdin.flush()
        return True if self._client.stdout.readline() == "yes\n" else None

    def end(self) -> None:
        if self._client is not None:
            self._client.kill()
            self._client.communicate()
            self._client = None


_HEADING = re.compile(r"^exact_match · (c\d+) · ana$", re.MULTILINE)


class Label(Scenario):
    """A person who labels: what the screen has answered to is kept."""

    name = "label"
    stopped_codes = (0, 130)
    _n_cases = 30

    def begin(self) -> None:
        self._made = TemporaryDirectory(prefix="agentunit-torture-data-")
        folder = Path(self._made.name)
        add_run(folder / STORE, self._n_cases)
        done(agentunit("score", "last", "--metrics", "exact_match", "--max-errors", "9999"), folder)

    def end(self) -> None:
        self._made.cleanup()

    def prepare(self, folder: Path) -> None:
        shutil.copytree(self._made.name, folder, dirs_exist_ok=True)
        self._acknowledged: dict[str, float] = {}

    def start(self, folder: Path) -> Child:
        self._n_before = len(self._acknowledged)
        child = self.run(folder, "label", "last", "--rater", "ana", "-m", "exact_match", stdin=subprocess.PIPE)
        self._person = threading.Thread(target=self._answer, args=(child,), daemon=True)
        self._person.start()
        return child

    def has_begun(self, folder: Path) -> bool:
        return len(self._acknowledged) > self._n_before

    def check(self, folder: Path) -> None:
        self._person.join(BOUND_S)
        check_store(folder / STORE)
        kept = self._kept(folder)
        lacking = {case for case, value in self._acknowledged.items() if kept.get(case) != value}
        if lacking:
            raise Lost(f"labels that were acknowledged are gone: {sorted(lacking)[:5]}")

    def is_whole(self, folder: Path) -> bool:
        return "no case is left to ask about" in self._last_out

    def result(self, folder: Path) -> object:
        return self._kept(folder)

    def _kept(self, folder: Path) -> dict[str, float | None]:
        with Store(folder / STORE, read_only=True) as store:
            return {each.case_id: each.value for each in store.labels()}

    def _answer(self, child: Child) -> None:
        """Answer case after case, each when it is asked; the next question acknowledges the last answer."""
        stdin = child.process.stdin
        assert stdin is not None
        n_answered = 0
        with contextlib.suppress(OSError, ValueError):
            while not child.is_over:
                self._last_out = out = child.out
                asked = _HEADING.findall(out)
                for case_id, said in re.findall(r"^(c\d+): you said (yes|no)", out, re.MULTILINE):
                    self._acknowledged[case_id] = 1.0 if said == "yes" else 0.0
                if out.count("q quit]") > n_answered:
                    stdin.write(b"y\n" if int(asked[n_answered][1:]) % 3 else b"n\n")
                    stdin.flush()
                    n_answered += 1
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.process.wait(0.002)
        self._last_out = child.out
        with contextlib.suppress(OSError):
            stdin.close()


def receive_scenarios() -> list[Scenario]:
    """All of them."""
    return [Collect(), CollectGrpc(), Label()]
