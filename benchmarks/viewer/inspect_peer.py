"""Inspect's viewer on the same cases: its own log format, its own server."""

from __future__ import annotations

import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from agentunit.core.codec import decode_record
from agentunit.core.records import outcome_text
from agentunit.core.results import encode_json
from agentunit.store.sqlite import Store

_PORT = 7678
# Run by the Python that has inspect-ai: the cases become a log as one of its own runs writes it.
_WRITE = """
import json, sys
from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSample, EvalSpec, write_eval_log
from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, ModelOutput
from inspect_ai.scorer import Score

samples = []
for line in open(sys.argv[1]):
    case = json.loads(line)
    samples.append(EvalSample(
        id=case["id"], epoch=1, input=case["query"], target=case["expected"],
        messages=[ChatMessageUser(content=case["query"]), ChatMessageAssistant(content=case["answer"])],
        output=ModelOutput.from_content("bench", case["answer"]),
        scores={name: Score(value=value) for name, value in case["scores"].items()},
    ))
began = "2026-01-01T00:00:00+00:00"
spec = EvalSpec(created=began, task="bench", dataset=EvalDataset(), model="bench", config=EvalConfig())
write_eval_log(EvalLog(status="success", eval=spec, samples=samples), sys.argv[2])
"""


def inspect_rows(python: str, path: Path, n_cases: int) -> Iterator[tuple[str, str, str]]:
    """What Inspect's server takes to hand out the same run."""
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "cases.jsonl"
        lines.write_bytes(b"\n".join(_cases(path)))
        log = Path(folder) / "logs" / "2026-01-01T00-00-00_bench_x.eval"
        log.parent.mkdir()
        subprocess.run([python, "-c", _WRITE, str(lines), str(log)], check=True)
        name = f"Inspect's viewer, {n_cases:,} cases without traces"
        yield f"{name}: its log", f"{log.stat().st_size / 1e6:.1f} MB", ""
        command = [python, "-m", "inspect_ai", "view", "start", "--log-dir", str(log.parent), "--port", str(_PORT)]
        began = time.perf_counter()
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _wait(f"http://127.0.0.1:{_PORT}/api/logs")
            yield f"{name}: from the command to its list of logs", f"{time.perf_counter() - began:.1f} s", ""
            took, n_bytes = _summaries(log)
            yield f"{name}: the summaries that its table needs", f"{took * 1000:,.0f} ms, {n_bytes / 1e6:.1f} MB", ""
        finally:
            server.terminate()
            server.wait(30)


def _cases(path: Path) -> Iterator[bytes]:
    with Store(path, read_only=True) as store:
        run_id = store.runs()[0].id
        values: dict[int, dict[str, float | None]] = {}
        for metric, row in store.score_rows(run_id):
            values.setdefault(row.position, {})[metric] = row.value
        for _, position, _, case_id, _, _, line in store.lines(run_id):
            record = decode_record(line)
            case = {"id": case_id, "query": record.case.query, "expected": record.case.expected_output}
            yield encode_json({**case, "answer": outcome_text(record.outcome), "scores": values[position]})


def _wait(address: str) -> None:
    while True:
        try:
            urllib.request.urlopen(address, timeout=60).close()
            return
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.05)


def _summaries(log: Path) -> tuple[float, int]:
    """The part of the log that the page reads for its table: the file of summaries within it, by the server."""
    began = time.perf_counter()
    address = f"http://127.0.0.1:{_PORT}/api/log-size/{log}"
    with urllib.request.urlopen(address, timeout=600) as reply:
        n_bytes = int(reply.read())
    address = f"http://127.0.0.1:{_PORT}/api/log-bytes/{log}?start=0&end={n_bytes - 1}"
    with urllib.request.urlopen(address, timeout=600) as reply:
        content = reply.read()
    return time.perf_counter() - began, len(content)
