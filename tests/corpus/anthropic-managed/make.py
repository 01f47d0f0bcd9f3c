"""Managed agents: events as the types of anthropic 1.17.0 (PyPI) write them, one a line as the API lists them."""

from pathlib import Path

from anthropic.types.beta import sessions as types

AT = "2026-07-06T16:26:3{}Z"


def text(words):
    return [{"type": "text", "text": words}]


def event(kind, number, **fields):
    made = kind.model_validate({"id": f"sevt_{number}", "processed_at": AT.format(number), **fields})
    return made.model_dump_json(exclude_none=True)


def used(number, *counts):
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    usage = dict(zip(names, counts, strict=True))
    kind = types.BetaManagedAgentsSpanModelRequestEndEvent
    start = f"sevt_{number - 1}"
    fields = {"is_error": False, "model_request_start_id": start, "model_usage": usage}
    return event(kind, number, type="span.model_request_end", **fields)


lines = [
    event(types.BetaManagedAgentsUserMessageEvent, 0, type="user.message", content=text("What day is it, and why?")),
    event(types.BetaManagedAgentsAgentToolUseEvent, 1, type="agent.tool_use", name="bash", input={"command": "date"}),
    used(2, 2, 46, 7126, 11),
    event(types.BetaManagedAgentsAgentToolResultEvent, 3, type="agent.tool_result", tool_use_id="sevt_1",
          content=text("Mon Jul 6"), is_error=False),
    event(types.BetaManagedAgentsAgentMCPToolUseEvent, 4, type="agent.mcp_tool_use", name="search",
          mcp_server_name="exa", input={"query": "why"}),
    event(types.BetaManagedAgentsAgentMCPToolResultEvent, 5, type="agent.mcp_tool_result", mcp_tool_use_id="sevt_4",
          content=text("no such page"), is_error=True),
    event(types.BetaManagedAgentsAgentMessageEvent, 6, type="agent.message", content=text("Monday. Nobody knows.")),
    used(7, 2, 34, 7174, 25),
]  # fmt: skip
Path(__file__).with_name("events.jsonl").write_text("\n".join(lines) + "\n")
