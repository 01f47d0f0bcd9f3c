"""Weave: calls as weave 0.54.0 (PyPI) describes them (``Call.to_dict``), one a line as its API streams them."""

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path

from weave.trace.call import Call

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
QUESTION, ANSWER = "Why was I charged twice?", "The second charge is refunded by a supervisor."


def call(number, name, inputs, output, parent="root", kind=None, usage=None, cost=None, exception=None):
    summary = {"status_counts": {"success": 1, "error": 0}, "weave": {"status": "error" if exception else "success"}}
    if usage:
        summary["usage"] = {"gpt-4.1-mini": {"requests": 1, **usage}}
    if cost:
        parts = {"prompt_tokens_total_cost": cost[0], "completion_tokens_total_cost": cost[1]}
        summary["weave"]["costs"] = {"gpt-4.1-mini": parts}
    made = Call(
        _op_name=f"weave:///team/project/op/{name}:v{number}",
        trace_id="0197a1b2-0000-7000-8000-000000000001",
        project_id="team/project",
        parent_id=None if number == 0 else parent,
        inputs=inputs,
        id="root" if number == 0 else f"call-{number}",
        output=output,
        exception=exception,
        summary=summary,
        attributes={"weave": {"kind": kind} if kind else {"client_version": "0.54.0"}},
        started_at=START + timedelta(seconds=number),
        ended_at=START + timedelta(seconds=20 if number == 0 else number + 1),
        thread_id="thread-7",
    )
    return json.dumps(made.to_dict(), default=lambda value: value.isoformat())


asked = [{"role": "user", "content": QUESTION}]
wanted = [{"id": "c1", "type": "function", "function": {"name": "lookup", "arguments": '{"order": "A-1"}'}}]
counted = {"prompt_tokens": 211, "completion_tokens": 17, "total_tokens": 228}
more = {"prompt_tokens": 352, "completion_tokens": 31, "total_tokens": 383}
more |= {"prompt_tokens_details": {"cached_tokens": 256}, "completion_tokens_details": {"reasoning_tokens": 8}}
all_of_it = {"prompt_tokens": 563, "completion_tokens": 48, "total_tokens": 611}
MODEL = "openai.chat.completions.create"
lines = [
    call(0, "support", {"question": QUESTION}, ANSWER, kind="agent", usage=all_of_it),
    call(1, MODEL, {"model": "gpt-4.1-mini", "messages": asked},
         {"model": "gpt-4.1-mini-2025", "choices": [{"message": {"role": "assistant", "tool_calls": wanted}}]},
         usage=counted, cost=(0.001, 0.0002)),
    call(2, "lookup", {"order": "A-1"}, "ch_1, ch_2", kind="tool"),
    call(3, "refund", {"charge": "ch_2"}, None, kind="tool", exception="ValueError: refunds need a supervisor"),
    call(4, MODEL, {"model": "gpt-4.1-mini", "messages": asked},
         {"model": "gpt-4.1-mini-2025", "choices": [{"message": {"role": "assistant", "content": ANSWER}}]},
         usage=more, cost=(0.002, 0.0004)),
]  # fmt: skip
Path(__file__).with_name("calls.jsonl").write_text("\n".join(lines) + "\n")
