"""Records chats of AG2's ConversableAgent: ``python ag2_chats.py FOLDER``, with ``ag2[openai]`` before 1.0."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def lock(door: int) -> int:
    """Lock a door."""
    raise ValueError(f"door {door} is stuck")


def _is_last(message: dict[str, Any]) -> bool:
    return "TERMINATE" in (message.get("content") or "")


def _settings(base_url: str) -> dict[str, Any]:
    model = {"model": "gpt-4o-mini", "api_key": "none", "base_url": base_url, "price": [0.001, 0.002]}
    return {"config_list": [model], "cache_seed": None}


def record(folder: Path) -> None:
    from autogen import AssistantAgent, GroupChat, GroupChatManager, UserProxyAgent, register_function
    from scripted_openai import ScriptedOpenAI

    boss = UserProxyAgent(
        "boss",
        human_input_mode="NEVER",
        code_execution_config=False,
        is_termination_msg=_is_last,
        default_auto_reply="Go on.",
    )
    replies: list[dict[str, Any]] = [
        {"calls": [("add", {"a": 2, "b": 2})], "usage": (100, 10, 0)},
        {"calls": [("lock", {"door": 1})], "usage": (101, 11, 0)},
        {"text": "It is 4.", "usage": (102, 12, 0)},
        {"text": "TERMINATE", "usage": (103, 13, 0)},
    ]
    with ScriptedOpenAI(replies) as server:
        coder = AssistantAgent("coder", llm_config=_settings(server.base_url))
        for function in (add, lock):
            register_function(function, caller=coder, executor=boss, name=function.__name__, description="A tool.")
        result = boss.initiate_chat(coder, message="Sum 2 and 2, then lock door 1.", max_turns=6, silent=True)
    kept = {name: getattr(result, name) for name in ("chat_id", "chat_history", "summary", "cost")}
    (folder / "ag2_chat_result.json").write_text(json.dumps(kept, indent=1) + "\n")

    texts = ["A draft.", "Too long.", "Shorter.", "TERMINATE"]
    with ScriptedOpenAI([{"text": text, "usage": (100, 10, 0)} for text in texts]) as server:
        writer, critic = (AssistantAgent(name, llm_config=_settings(server.base_url)) for name in ("writer", "critic"))
        group = GroupChat([boss, writer, critic], [], max_round=6, speaker_selection_method="round_robin")
        manager = GroupChatManager(group, llm_config=False, is_termination_msg=_is_last)
        boss.initiate_chat(manager, message="Write a haiku.", silent=True)
    (folder / "ag2_group_chat.json").write_text(json.dumps(group.messages, indent=1) + "\n")


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[4] / "frameworks")
    record(Path(sys.argv[1]))
