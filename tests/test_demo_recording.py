"""The bundled demo recording is what its script writes, and has the shape that a record promises."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
BUNDLED = ROOT / "src" / "agentunit" / "datasets" / "bundled" / "demo.jsonl.gz"
INTERACTION_TYPES = {
    "request",
    "response",
    "delegation",
    "handoff",
    "notification",
    "negotiation",
    "collaboration",
}


@pytest.fixture(scope="module")
def records() -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(BUNDLED.read_bytes()).splitlines()]


def record_again(target: Path, hash_seed: str) -> bytes:
    # Another hash seed would show any dependence on the order of a set.
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-m", "scripts.record_demo", str(target)]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
    return target.read_bytes()


def test_the_script_writes_the_bundled_recording(tmp_path: Path) -> None:
    first = record_again(tmp_path / "first.gz", hash_seed="1")
    assert record_again(tmp_path / "second.gz", hash_seed="2") == first
    # Compared unpacked: builds of zlib differ in how they pack the same text.
    assert gzip.decompress(first) == gzip.decompress(BUNDLED.read_bytes())


def test_the_file_stays_small_and_carries_no_date() -> None:
    packed = BUNDLED.read_bytes()
    assert len(packed) <= 60_000
    assert packed[4:8] == b"\0\0\0\0"  # the header's modification time


def test_case_ids_are_unique(records: list[dict[str, Any]]) -> None:
    ids = [record["case"]["id"] for record in records]
    assert len(set(ids)) == len(ids) >= 60


def test_time_never_runs_backwards(records: list[dict[str, Any]]) -> None:
    for record in records:
        for part in ("events", "interactions", "handoffs"):
            times = [entry["timestamp"] for entry in record["trace"][part]]
            assert times == sorted(times), (record["case"]["id"], part)


def test_totals_equal_the_sum_of_the_model_calls(records: list[dict[str, Any]]) -> None:
    for record in records:
        calls = [e["payload"] for e in record["trace"]["events"] if e["type"] == "llm_call"]
        usage = record["trace"]["metadata"].get("usage")
        assert usage == record["outcome"]["usage"]
        if usage is None:
            assert not any("prompt_tokens" in call for call in calls)
            continue
        assert usage["prompt_tokens"] == sum(call["prompt_tokens"] for call in calls)
        assert usage["completion_tokens"] == sum(call["completion_tokens"] for call in calls)
        assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]


def test_agents_and_interactions_are_known(records: list[dict[str, Any]]) -> None:
    for record in records:
        trace = record["trace"]
        for entry in trace["interactions"] + trace["handoffs"]:
            assert {entry["from_agent"], entry["to_agent"]} <= set(trace["agent_roles"])
        assert {entry["interaction_type"] for entry in trace["interactions"]} <= INTERACTION_TYPES


def test_the_story_has_what_a_demo_needs(records: list[dict[str, Any]]) -> None:
    """A few leaks, one crash without an answer, unknown costs, and a desk that can be wrong about itself."""
    outcomes = [record["outcome"] for record in records]
    leaks = [o for o in outcomes if re.search(r"@example\.com|555-01\d\d", o["output"] or "")]
    crashes = [o for o in outcomes if o["error"]]
    wrongly_believed = [r for r in records if r["outcome"]["success"] and not state_reached(r)]
    assert 1 <= len(leaks) <= 3
    assert [o["output"] for o in crashes] == [None]
    assert 2 <= sum(o["cost"] is None for o in outcomes) <= 8
    assert any(o["cost"] is None and o["usage"] is None for o in outcomes)
    assert wrongly_believed


def state_reached(record: dict[str, Any]) -> bool:
    wanted = record["case"]["metadata"].get("expected_state", {"orders": {}})
    held = record["outcome"]["state"] or {"orders": {}}
    return all(fields.items() <= held["orders"].get(key, {}).items() for key, fields in wanted["orders"].items())
