"""Result files of HAL, after its source: the scenario (``../scenario.py``) for task 7, a short answer for task 8.

HAL is not on PyPI. It fetches calls of models from Weave and writes ``RUN_UPLOAD.json`` (``process_results`` in
hal/benchmarks/base_benchmark.py). ``raw_logging_results`` was a list of those calls (``process_weave_output`` in
hal/utils/weave_utils.py) up to April 2026; since then it is an object with the longest conversation of each task and
the usage of its calls (``get_weave_calls``). The calls are described by weave 0.54.0 (PyPI).
"""

from __future__ import annotations

import json
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from weave.trace.call import Call

sys.path.append(str(Path(__file__).resolve().parents[1]))
import scenario

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
MODEL = "gpt-4.1-2025-04-14"


def usage(prompt: int, completion: int, cached: int, reasoning: int) -> dict[str, Any]:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }


def call(number: int, task_id: str, messages: list[Any], reply: dict[str, Any], counts: dict[str, Any]) -> Any:
    """One request of OpenAI's chat API, as Weave records it."""
    return Call(
        _op_name=f"weave:///team/hal/op/openai.chat.completions.create:v{number}",
        trace_id=f"0197a1b2-0000-7000-8000-{number:012}",
        project_id="team/hal",
        parent_id=None,
        inputs={"model": MODEL, "messages": list(messages)},
        id=f"call-{number}",
        output={"model": MODEL, "choices": [{"index": 0, "message": reply}], "usage": counts},
        exception=None,
        summary={"usage": {MODEL: {"requests": 1, **counts}}, "weave": {"status": "success"}},
        attributes={"weave_task_id": task_id, "weave": {"client_version": "0.54.0"}},
        started_at=START + timedelta(seconds=number),
        ended_at=START + timedelta(seconds=number + 1),
    )


def calls_of_run() -> list[Any]:
    messages: list[Any] = [{"role": "user", "content": scenario.QUESTION}]
    results = iter([scenario.CHARGES, scenario.REFUSED])
    calls = []
    for number, reply in enumerate(scenario.REPLIES, start=1):
        wanted = [
            {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for name, arguments in reply.get("calls", ())
        ]
        said = {"role": "assistant", "content": reply.get("text"), **({"tool_calls": wanted} if wanted else {})}
        calls.append(call(number, "7", messages, said, usage(*reply["usage"])))
        messages.append(said)
        messages += [{"role": "tool", "tool_call_id": each["id"], "content": next(results)} for each in wanted]
    short = [{"role": "user", "content": "Is the shop open?"}]
    return [*calls, call(9, "8", short, {"role": "assistant", "content": "Yes."}, usage(20, 3, 0, 0))]


def whole(made: Any) -> dict[str, Any]:
    written = json.loads(json.dumps(made.to_dict(), default=lambda value: value.isoformat()))
    written["weave_task_id"] = made.attributes["weave_task_id"]
    return {**written, "created_timestamp": written["started_at"]}


def compact(calls: list[dict[str, Any]]) -> dict[str, Any]:
    longest = max(calls, key=lambda each: len(each["inputs"]["messages"]))
    times = ("started_at", "ended_at")
    return {
        "messages": [*longest["inputs"]["messages"], longest["output"]["choices"][0]["message"]],
        "call_metadata": [
            {"usage": each["output"]["usage"], **{name: each[name] for name in times}} for each in calls
        ],
        "model": MODEL,
        "call_count": len(calls),
    }  # fmt: skip


def main() -> None:
    calls = [whole(each) for each in calls_of_run()]
    tasks = {name: [each for each in calls if each["weave_task_id"] == name] for name in ("7", "8")}
    results = {
        "config": {"agent_name": "support", "benchmark_name": "shop", "run_id": "shop_1", "agent_args": {}},
        "results": {"accuracy": 0.5, "total_cost": 0.01},
        "raw_eval_results": {"7": {"reward": 1.0}, "8": {"reward": 0.0}},
        "total_usage": {},
        "total_cost": 0.01,
        "git_info": {},
    }
    for name, logged in {"calls": calls, "tasks": {name: compact(of_it) for name, of_it in tasks.items()}}.items():
        text = json.dumps({**results, "raw_logging_results": logged}, indent=1)
        Path(__file__).with_name(f"{name}_UPLOAD.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
