"""OpenAI: a response and lines of a batch's output, through the types of openai 2.54.0 (PyPI)."""

import json
from pathlib import Path

from openai.types.chat import ChatCompletion
from openai.types.responses import Response

HERE = Path(__file__).parent
ANSWER = "Oslo, 4 degrees."
USAGE = {
    "input_tokens": 900,
    "input_tokens_details": {"cached_tokens": 256, "cache_write_tokens": 0},
    "output_tokens": 80,
    "output_tokens_details": {"reasoning_tokens": 64},
    "total_tokens": 980,
}
MESSAGE = {"type": "output_text", "text": ANSWER, "annotations": []}
OUTPUT = [
    {"type": "reasoning", "id": "rs_1", "summary": []},
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "Oslo"}},
    {"type": "mcp_call", "id": "mcp_1", "name": "forecast", "server_label": "weather", "arguments": '{"city": "Oslo"}',
     "output": None, "error": "the server is down", "status": "failed"},
    {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "thermometer", "arguments": '{"at": "roof"}'},
    {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [MESSAGE]},
]  # fmt: skip
COMMON = {"object": "response", "created_at": 1767225600, "model": "gpt-5-mini", "parallel_tool_calls": True}
COMMON |= {"tool_choice": "auto", "tools": [], "instructions": "Be brief.", "status": "completed"}
response = Response.model_validate({"id": "resp_1", **COMMON, "output": OUTPUT, "usage": USAGE})
(HERE / "response.json").write_text(response.model_dump_json(indent=1, exclude_none=True) + "\n")

completion = ChatCompletion.model_validate(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1767225600,
        "model": "gpt-4.1-mini",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": ANSWER}}],
        "usage": {"prompt_tokens": 21, "completion_tokens": 7, "total_tokens": 28},
    }
)
answered = {"status_code": 200, "request_id": "req_1", "body": completion.model_dump(exclude_none=True)}
refused = {"status_code": 400, "request_id": "req_2", "body": {"error": {"message": "too long", "code": "bad"}}}
lines = [
    {"id": "batch_req_1", "custom_id": "q1", "response": answered, "error": None},
    {"id": "batch_req_2", "custom_id": "q2", "response": refused, "error": None},
]
(HERE / "batch_output.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
