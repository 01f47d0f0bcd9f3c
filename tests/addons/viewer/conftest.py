from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest
from kept_records import add_record
from viewer_client import Client

from agentunit import DatasetCase, MetricResult, Outcome, Record, Score, TraceEvent, TraceLog
from agentunit.addons.viewer._api import Api
from agentunit.addons.viewer._library import Library
from agentunit.addons.viewer._server import make_app
from agentunit.engine.scoring.scored_run import infos_as_data
from agentunit.metrics.registry import resolve_metrics
from agentunit.store.sqlite import Store

GIF = b"GIF89a\x01\x00\x01\x00\x00\x00\x00;"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>'
HOSTILE = "</script><script>alert(1)</script><!-- \u2028 <img src=x onerror=alert(1)>"
METRICS = ("exact_match", "tool_success", "faithfulness", "cost")


def uri(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def records(version: int) -> list[Record]:
    """Eight cases: answers right and wrong, an e-mail address, a failure, media, hostile texts, a conversation."""
    made = []
    for n in range(6):
        trace = TraceLog(
            [
                TraceEvent("message", {"role": "user", "content": f"Where is order {n}?"}, 10.0),
                TraceEvent(
                    "tool_call", {"name": "find", "arguments": {"n": n}, "status": "success", "agent": "a"}, 11.5
                ),
                TraceEvent("llm_call", {"model": "small", "agent": "b", "duration_s": 0.5}, 12.0),
            ]
        )
        answer = f"order {n}, ask ada.lovelace@example.org" if n == 1 else f"order {n}"
        if version == 2 and n == 2:
            answer = "I do not know."
        case = DatasetCase(f"q{n}", f"Where is order {n}?", f"order {n}", metadata={"shop": "ab"[n % 2]})
        made.append(Record(case, trace, answer))
    failed = TraceLog(metadata={"failure": "KeyError"})
    error = Outcome(success=False, error=f"KeyError: 'x' {HOSTILE}")
    made.append(Record(DatasetCase(f"q6{HOSTILE}", HOSTILE, "x", metadata={"shop": HOSTILE}), failed, error))
    seen = TraceLog()
    seen.record(
        "message",
        role="user",
        content=[{"type": "text", "text": "Look"}, {"type": "image", "image": uri("image/gif", GIF)}],
    )
    media = {
        "shop": "a",
        "images": [uri("image/png", GIF), uri("image/svg+xml", SVG)],
        "image_path": "https://x.example/a.png",
    }
    made.append(Record(DatasetCase("q7", "What is it?", "a dot", metadata=media), seen, "a dot"))
    return made


def keep(store: Store, name: str, version: int, *, repeats: int = 1, status: str = "finished") -> str:
    resolved = resolve_metrics(METRICS)
    settings = {"metrics": list(METRICS), "metric_infos": infos_as_data(resolved), "gates": ["exact_match >= 0.5"]}
    run_id = store.create_run(name, agentunit_version="1", settings=settings, n_planned=8 * repeats).id
    for position, record in enumerate(records(version)):
        for repeat in range(repeats):
            failed = record.trace.metadata.get("failure") is not None
            add_record(store, run_id, position, repeat, record, failed=failed, elapsed_s=1.0 + position)
            right = record.outcome == record.case.expected_output and not (repeat and position == 3)
            claim = {"text": "I do not know.", "probability": 0.1, "evidence": "order 2", "source": "context[0]"}
            scores = {
                "exact_match": Score(MetricResult("exact_match", float(right)), "ok", "exact", "1"),
                "tool_success": Score(
                    MetricResult("tool_success", None, {"reason": "no tool"}), "not_applicable", "trace", "1"
                )
                if position > 5
                else Score(MetricResult("tool_success", 1.0), "ok", "trace", "1"),
                "faithfulness": Score(
                    MetricResult("faithfulness", 0.1 * position, {"claims": [claim]}), "ok", "local", "3"
                ),
                "cost": Score(MetricResult("cost", 0.01 * (8 - position)), "ok", "recorded", "1"),
            }
            store.add_scores(run_id, position, repeat, scores)
    store.set_status(run_id, status)
    return run_id


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
def runs(store_path: Path) -> list[str]:
    """An older and a newer run of one suite, and one with three repeats."""
    with Store(store_path) as store:
        return [keep(store, "desk", 1), keep(store, "desk", 2), keep(store, "repeated", 1, repeats=3)]


@pytest.fixture
def library(store_path: Path, runs: list[str]) -> Iterator[Library]:
    opened = Library(str(store_path))
    yield opened
    opened.close()


@pytest.fixture
def client(library: Library) -> Client:
    return Client(make_app(Api(library, rater="ana")))
