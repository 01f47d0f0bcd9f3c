"""Sessions of Claude Code, Codex and Qwen Code, trajectories of SWE-agent, mini-SWE-agent, OpenHands, and ATIF."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

# Commands of SWE-agent's own tools; everything else goes to the shell.
SWE_COMMANDS = (
    "open", "goto", "scroll_up", "scroll_down", "create", "edit", "insert", "search_dir", "search_file", "find_file",
    "submit",
)  # fmt: skip
SWE_FAILURES = (
    "Your proposed edit has introduced",
    "Your bash command contained",
    "EXECUTION TIMED OUT",
    "COMMAND TIMED OUT",
)
ANTHROPIC = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")


def count(path: Path) -> list[dict[str, Any]]:
    name = f"{path.parent.name}/{path.name}"
    return next(counter for pattern, counter in COUNTERS.items() if re.match(pattern, name))(path)


def lines_of(path: Path) -> list[Any]:
    found = []
    for line in path.read_text("utf-8").splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue  # one of the files has broken lines on purpose
    return [line for line in found if isinstance(line, dict)]


def claude_code(path: Path) -> list[dict[str, Any]]:
    sessions: dict[str, list[dict[str, Any]]] = {}
    current = next((line["sessionId"] for line in lines_of(path) if line.get("sessionId")), "")
    for line in lines_of(path):
        current = line.get("sessionId") or current
        sessions.setdefault(current, []).append(line)
    return [claude_session(lines) for lines in sessions.values()]


def claude_session(lines: list[dict[str, Any]]) -> dict[str, Any]:
    said = [(line, None) for line in lines if line.get("type") in ("user", "assistant")]
    if any(line.get("type") == "progress" for line in lines):
        said = []
        for line in lines:
            if line.get("type") == "progress" and line["data"].get("type") == "agent_progress":
                said.append((line["data"]["message"], line["parentToolUseID"]))
            elif line.get("type") in ("user", "assistant"):
                said.append((line, None))
    usages: dict[Any, dict[str, int]] = {}
    calls, ended, asked, answers, tasks, agents = [], {}, [], [], {}, set()
    for place, (line, parent) in enumerate(said):
        message = line["message"] if isinstance(line["message"], dict) else {}
        content = message.get("content") or []
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        blocks = [block for block in blocks if isinstance(block, dict)]
        if message.get("role") == "assistant":
            agents.add(tasks.get(parent) if parent else "claude-code")
            if message.get("usage"):
                usages[message.get("id") or place] = message["usage"]
        for block in blocks:
            if block.get("type") == "tool_use":
                calls.append((block["id"], block["name"]))
                tasks[block["id"]] = block["input"].get("subagent_type")
            elif block.get("type") == "tool_result":
                ended[block["tool_use_id"]] = "error" if block.get("is_error") else "success"
        text = "\n".join(block["text"] for block in blocks if block.get("type") == "text")
        if text and parent is None:
            (answers if message["role"] == "assistant" else asked).append(text)
    sums = {name: sum(usage.get(name) or 0 for usage in usages.values()) for name in ANTHROPIC}
    tokens = {"input": sum(sums[name] for name in ANTHROPIC[:3]), "output": sums["output_tokens"]}
    tokens |= {"cache_read": sums["cache_read_input_tokens"], "cache_write": sums["cache_creation_input_tokens"]}
    return {
        "question": next((text.strip() for text in asked if not text.startswith("<")), None),
        "answer": answers[-1] if answers else None,
        "agents": sorted(agents),
        "tool_calls": [[name, ended.get(call_id)] for call_id, name in calls],
        "tokens": tokens if usages else None,
        "cost": None,
    }


def codex(path: Path) -> list[dict[str, Any]]:
    lines = [(line["type"], line["payload"]) for line in lines_of(path)]
    items = [payload for kind, payload in lines if kind == "response_item"]
    codes = {each["call_id"]: each["exit_code"] for _, each in lines if each.get("type") == "exec_command_end"}
    texts = [(item["role"], item["content"][0]["text"]) for item in items if item["type"] == "message"]
    return [
        {
            "question": next(text for role, text in texts if role == "user"),
            "answer": [text for role, text in texts if role == "assistant"][-1],
            "agents": ["codex"],
            "tool_calls": [
                [item["name"], "error" if codes[item["call_id"]] else "success"]
                for item in items
                if item["type"] == "function_call"
            ],
            "tokens": None,
            "cost": None,
        }
    ]


def qwen_code(path: Path) -> list[dict[str, Any]]:
    lines = lines_of(path)
    parts = [(line["type"], part) for line in lines if "message" in line for part in line["message"]["parts"]]
    usages = [line["usageMetadata"] for line in lines if "usageMetadata" in line]
    called = [part["functionCall"]["name"] for kind, part in parts if kind == "assistant" and "functionCall" in part]
    ended = [line["toolCallResult"]["status"] for line in lines if line["type"] == "tool_result"]
    said = [part for kind, part in parts if kind == "assistant" and "text" in part and not part.get("thought")]
    return [
        {
            "question": next(part["text"] for kind, part in parts if kind == "user"),
            "answer": said[-1]["text"],
            "agents": ["qwen-code"],
            "tool_calls": [list(call) for call in zip(called, ended, strict=True)],
            "tokens": {
                "input": sum(usage["promptTokenCount"] for usage in usages),
                "output": sum(usage["candidatesTokenCount"] for usage in usages),
            },
            "cost": None,
        }
    ]


def swe_agent(path: Path) -> list[dict[str, Any]]:
    trajectory = json.loads(path.read_text("utf-8"))
    history = [message for message in trajectory["history"] if not message.get("is_demo")]
    own = [message for message in history if message["role"] == "assistant"]
    steps = trajectory.get("trajectory") or [
        {"action": message["action"], "thought": message["thought"], "observation": answer["content"]}
        for message, answer in pairwise(history)
        if message["role"] == "assistant"
    ]
    named = {each["action"]: each["tool_calls"][0]["function"]["name"] for each in own if each.get("tool_calls")}
    info, replay = trajectory.get("info") or {}, trajectory.get("replay_config") or {}
    replay = json.loads(replay) if isinstance(replay, str) else replay
    stats, submitted = info.get("model_stats"), (info.get("submission") or "").strip()
    counted = bool(stats and (stats["tokens_sent"] or not steps))
    thoughts = [step["thought"] for step in steps if step["thought"].strip()]
    first = next(message["content"] for message in history if message["role"] == "user")
    return [
        {
            "question": (replay.get("problem_statement") or {}).get("text") or first,
            "answer": submitted if submitted and "diff --git" not in submitted else thoughts[-1],
            "agents": sorted({message["agent"] for message in own}),
            "tool_calls": [swe_call(step, named) for step in steps],
            # Zeros beside a model that acted stand for what was not counted.
            "tokens": {"input": stats["tokens_sent"], "output": stats["tokens_received"]} if counted else None,
            "cost": stats["instance_cost"] if counted else None,
        }
    ]


def swe_call(step: dict[str, str], named: dict[str, str]) -> list[str]:
    word, seen = step["action"].split()[0], step["observation"].strip()
    failed = seen.startswith(SWE_FAILURES) or "was cancelled because it took more" in seen[:300]
    name = named.get(step["action"]) or (word if word in SWE_COMMANDS else "bash")
    return [name, "error" if failed else "success"]


def mini_swe_agent(path: Path) -> list[dict[str, Any]]:
    messages = json.loads(path.read_text("utf-8"))
    calls = []
    for message, answer in pairwise(messages):
        if message["role"] == "assistant":
            code = re.search(r"<returncode>(\d+)", answer["content"])
            calls.append(["bash", "error" if code and code[1] != "0" else "success"])
    said = [message["content"] for message in messages if message["role"] == "assistant"]
    case = {"question": messages[1]["content"].strip(), "answer": said[-1], "agents": ["mini-swe-agent"]}
    return [{**case, "tool_calls": calls, "tokens": None, "cost": None}]


def openhands(path: Path) -> list[dict[str, Any]]:
    if not path.stat().st_size:
        return []
    events = json.loads(path.read_text("utf-8"))
    made = [event["tool_call_metadata"]["model_response"] for event in events if event.get("tool_call_metadata")]
    usages = {each["id"]: each["usage"] for each in made}.values()
    own = [event for event in events if event["source"] == "agent" and event.get("action") in ("finish", "message")]
    called = [event for event in events if event.get("action") and event.get("tool_call_metadata")]
    return [
        {
            "question": events[0]["message"],
            "answer": own[-1]["message"],
            "agents": ["openhands"],
            "tool_calls": [[event["tool_call_metadata"]["function_name"], "success"] for event in called],
            "tokens": {
                "input": sum(usage["prompt_tokens"] for usage in usages),
                "output": sum(usage["completion_tokens"] for usage in usages),
                "cache_read": sum(usage["prompt_tokens_details"]["cached_tokens"] or 0 for usage in usages),
                "cache_write": sum(usage.get("cache_creation_input_tokens") or 0 for usage in usages),
            },
            "cost": None,
        }
    ]


def atif(path: Path) -> list[dict[str, Any]]:
    whole = json.loads(path.read_text("utf-8"))
    parts = [whole, *(whole.get("subagent_trajectories") or [])]
    calls: list[list[Any]] = []
    for step in [step for part in parts for step in part["steps"] if not step.get("is_copied_context")]:
        answered = {each.get("source_call_id") for each in (step.get("observation") or {}).get("results", [])}
        for call in step.get("tool_calls") or []:
            ended = call["tool_call_id"] in answered or None in answered
            calls.append([call["function_name"], "success" if ended else None])
    asked = [step for step in whole["steps"] if step["source"] == "user"]
    own = [step for step in asked if not step.get("is_copied_context")] or asked
    totals = [part["final_metrics"] for part in parts]
    return [
        {
            "question": words(own[0]["message"]),
            "answer": words([step["message"] for step in whole["steps"] if step["source"] == "agent"][-1]),
            "agents": sorted(part["agent"]["name"] for part in parts),
            "tool_calls": calls,
            "tokens": {
                "input": sum(total["total_prompt_tokens"] for total in totals),
                "output": sum(total["total_completion_tokens"] for total in totals),
            },
            "cost": whole["final_metrics"].get("total_cost_usd"),
        }
    ]


def words(message: Any) -> str:
    return (
        message if isinstance(message, str) else "\n".join(part["text"] for part in message if part["type"] == "text")
    )


COUNTERS: dict[str, Callable[[Path], list[dict[str, Any]]]] = {
    "sessions/claude|cclog/": claude_code,
    "sessions/codex": codex,
    "sessions/qwen": qwen_code,
    "swe/": swe_agent,
    "mini/": mini_swe_agent,
    "openhands/": openhands,
    "atif/": atif,
}
