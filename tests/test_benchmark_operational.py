"""The validity rows of costs, tokens and tool calls, on runs whose totals are known by the way they are made."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def tau2_run(index, *, wrong_total=False):
    """Two model calls of 10 + 5 tokens and a cent each, and a tool call that fails in every second run."""
    usage = {"prompt_tokens": 10, "completion_tokens": 5}
    call = {"id": f"c{index}", "name": "look_up", "arguments": {"id": index}, "requestor": "assistant"}
    said = {"role": "assistant", "turn_idx": 0, "cost": 0.01, "usage": usage}
    return {
        "id": f"run{index}", "task_id": str(index), "trial": 0, "agent": "gpt-4.1", "domain": "shop", "duration": 1.0,
        "termination_reason": "user_stop", "agent_cost": 0.03 if wrong_total else 0.02, "user_cost": 0.0,
        "reward_info": {"reward": float(index % 2)},
        "messages": [
            {"role": "user", "content": "Hello", "turn_idx": 0, "cost": 0.0, "usage": None},
            {**said, "content": None, "tool_calls": [call]},
            {"role": "tool", "id": f"c{index}", "content": "x", "requestor": "assistant", "error": index % 2 == 0},
            {**said, "content": "Done.", "tool_calls": None},
        ],
    }  # fmt: skip


def tau_bench_run(index):
    call = {"id": "c", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
    return {
        "task_id": index, "trial": 0, "reward": float(index % 2),
        "info": {"task": {"user_id": "u", "instruction": "Ask.", "actions": [], "outputs": []}},
        "traj": [
            {"role": "system", "content": "Policy"},
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "name": "look_up", "content": "Error: no" if index % 3 else "fine"},
            {"role": "assistant", "content": "Done."},
        ],
    }  # fmt: skip


def trail_run(index):
    trace_id = f"{index + 1:032x}"

    def span(number, kind, parent=None, children=(), **attributes):
        return {
            "timestamp": "2025-03-19T16:40:25.243451Z", "trace_id": trace_id, "span_id": f"{number:016x}",
            "parent_span_id": parent, "span_name": kind.lower(), "span_kind": "Internal", "service_name": "s",
            "duration": "PT1S", "status_code": "Error" if kind == "TOOL" and index % 2 else "Unset",
            "status_message": "", "resource_attributes": {}, "events": [], "links": [], "logs": [],
            "span_attributes": {"openinference.span.kind": kind, **attributes}, "child_spans": list(children),
        }  # fmt: skip

    tokens = {"llm.token_count.prompt": "7", "llm.token_count.completion": "3", "llm.model_name": "m"}
    root = f"{1:016x}"
    children = [span(2, "LLM", root, **tokens), span(3, "TOOL", root, **{"tool.name": "look_up"})]
    return {"trace": {"trace_id": trace_id, "spans": [span(1, "AGENT", None, children)]}, "annotations": {}}


@pytest.fixture
def measured(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.validity.data import LabelledData
    from benchmarks.validity.rows import producers

    def write(name, rows):
        (tmp_path / "dev").mkdir(exist_ok=True)
        lines = "\n".join(json.dumps(row) for row in rows)
        (tmp_path / "dev" / f"{name}.jsonl.gz").write_bytes(gzip.compress(lines.encode(), mtime=0))

    def measure(family, tau2_rows):
        write("tau2_sims", tau2_rows)
        write("taubench_airline_gpt4o", [tau_bench_run(index) for index in range(12)])
        write("trail_openinference", [trail_run(index) for index in range(3)])
        found = producers()[family](LabelledData(tmp_path))
        everything = [*found.figures, *found.headline]
        return found, {(each.scorer.title, each.dataset, each.statistic): each for each in everything}

    return measure


def test_totals_are_recounted_from_the_raw_files(measured):
    _, figures = measured("operational_exactness", [tau2_run(index) for index in range(4)])
    exact = {(title, dataset): (each.value, each.n) for (title, dataset, statistic), each in figures.items()
             if statistic == "exactly right"}  # fmt: skip
    assert exact == {
        ("token_usage (recorded)", "tau2_sims"): (1.0, 4),
        ("cost (recorded)", "tau2_sims"): (1.0, 4),
        ("tool_success (trace)", "tau2_sims"): (1.0, 4),
        ("token_usage (recorded)", "trail_openinference"): (1.0, 3),
        ("tool_success (trace)", "trail_openinference"): (1.0, 3),
        ("tool_success (trace)", "taubench_airline_gpt4o"): (1.0, 12),
    }


def test_a_metric_that_is_off_is_found_out(measured, monkeypatch):
    from agentunit.metrics import builtin

    monkeypatch.setattr(
        builtin.CostMetric, "score_item", lambda self, item: self._result(0.01, "x", None, None, False, "x", "")
    )
    _, figures = measured("operational_exactness", [tau2_run(index) for index in range(4)])
    assert figures["cost (x)", "tau2_sims", "exactly right"].value == 0.0


def test_the_list_price_is_compared_with_what_was_paid(measured, monkeypatch):
    monkeypatch.setattr("agentunit.metrics.usage.price_usd", lambda *of, **more: 0.03)
    monkeypatch.setattr("benchmarks.validity.rows.operational_exactness.prices_installed", lambda: True)
    monkeypatch.setattr("agentunit.metrics.usage.prices_installed", lambda: True)
    _, figures = measured("operational_exactness", [tau2_run(index) for index in range(4)])
    # Two calls at three cents each, where one cent each was paid.
    assert figures["cost (prices)", "tau2_sims", "times what was paid, median"].value == 3.0


def test_tool_success_is_held_against_the_reward(measured):
    family, figures = measured("tool_success", [tau2_run(index) for index in range(12)])
    # In the shop calls fail exactly where the reward is missing; at the airline the two have nothing to do with it.
    assert figures["tool_success (trace)", "tau2_sims, shop", "AUROC"].value == 1.0
    assert figures["tool_success (trace)", "tau2_sims, shop", "agreement"].value == 1.0
    assert figures["tool_success (trace)", "taubench_airline_gpt4o", "AUROC"].value == 0.5
    assert figures["tool_success (trace)", "mean of 2 sets", "AUROC"].value == 0.75
    assert figures["few tool calls", "mean of 2 sets", "AUROC"].value == 0.5
    assert figures["call everything correct", "tau2_sims, shop", "agreement"].value == 0.5
    assert family.trust == ()
