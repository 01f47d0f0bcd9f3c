"""Opik: a trace with its spans as ``opik export`` of opik 2.2.122 (PyPI) writes it, through its types and writer."""

from datetime import datetime, timedelta, timezone
from pathlib import Path

from opik.cli.exports.utils import write_json_data
from opik.rest_api.types.error_info_public import ErrorInfoPublic
from opik.rest_api.types.span_public import SpanPublic
from opik.rest_api.types.trace_public import TracePublic

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
TRACE = "0197a1b2-0000-7000-8000-000000000001"
QUESTION, ANSWER = "Why was I charged twice?", "The second charge is refunded by a supervisor."


def span(number, name, kind, given, returned, **more):
    return SpanPublic(
        id=f"0197a1b2-0000-7000-8000-00000000010{number}",
        trace_id=TRACE,
        name=name,
        type=kind,
        start_time=START + timedelta(seconds=number),
        end_time=START + timedelta(seconds=number + 1),
        input=given,
        output=returned,
        **more,
    )


def said(**message):
    return {"choices": [{"message": {"role": "assistant", **message}}]}


model = {"model": "gpt-4.1-mini", "provider": "openai"}
counted = {"prompt_tokens": 211, "completion_tokens": 17, "total_tokens": 228, "original_usage.prompt_tokens": 211}
more = {"prompt_tokens": 352, "completion_tokens": 31, "total_tokens": 383}
more |= {"original_usage.prompt_tokens_details.cached_tokens": 256}
more |= {"original_usage.completion_tokens_details.reasoning_tokens": 8}
asked = {"messages": [{"role": "user", "content": QUESTION}]}
calls = [{"id": "c1", "type": "function", "function": {"name": "lookup", "arguments": '{"order": "A-1"}'}}]
failed = ErrorInfoPublic(exception_type="ValueError", message="refunds need a supervisor", traceback="…")
spans = [
    span(1, "chat_completion_create", "llm", asked, said(tool_calls=calls),
         usage=counted, total_estimated_cost=0.0012, **model),
    span(2, "lookup", "tool", {"order": "A-1"}, {"output": "ch_1, ch_2"}),
    span(3, "refund", "tool", {"charge": "ch_2"}, None, error_info=failed),
    span(4, "chat_completion_create", "llm", asked, said(content=ANSWER),
         usage=more, total_estimated_cost=0.0024, **model),
]  # fmt: skip
trace = TracePublic(
    id=TRACE,
    name="support",
    start_time=START,
    end_time=START + timedelta(seconds=6),
    input={"question": QUESTION},
    output={"output": ANSWER},
    usage={"prompt_tokens": 563, "completion_tokens": 48, "total_tokens": 611},
    total_estimated_cost=0.0036,
    thread_id="thread-7",
)
export = {"trace": trace.model_dump(), "spans": [each.model_dump() for each in spans], "attachments": []}
export |= {"downloaded_at": "2026-01-02T00:00:00", "project_name": "Default Project"}
write_json_data(export, Path(__file__).with_name("trace.json"))
