"""Count what the files of this folder state, from their JSON alone: an id is one message, on however many lines."""

import json
from pathlib import Path

HERE = Path(__file__).resolve().parent


def tokens_of(usages, names):
    fresh, made, cached, stored = (sum(usage.get(name, 0) for usage in usages) for name in names)
    return {"input": fresh + cached + stored, "output": made, "cache_read": cached, "cache_write": stored}


def count(path):
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    talk = [line for line in lines if line["type"] in ("user", "assistant") and not line.get("parent_tool_use_id")]
    blocks = [block for line in talk for block in line["message"]["content"] if isinstance(block, dict)]
    failed = {block["tool_use_id"]: block.get("is_error", False) for block in blocks if block["type"] == "tool_result"}
    usages = {line["message"]["id"]: line["message"]["usage"] for line in talk if line["type"] == "assistant"}
    texts = [line["message"]["content"] for line in talk if isinstance(line["message"]["content"], str)]
    ending = next((line for line in lines if line["type"] == "result"), None)
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    tokens = tokens_of(usages.values(), names)
    if ending:
        names = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
        tokens = tokens_of(ending["modelUsage"].values(), names)
    return {
        "question": texts[0] if texts else None,
        "answer": [block["text"] for block in blocks if block["type"] == "text"][-1],
        "agents": sorted({line.get("attributionAgent", "claude-code") for line in talk if line["type"] == "assistant"}),
        "tool_calls": [
            [block["name"], "error" if failed[block["id"]] else "success"]
            for block in blocks
            if block["type"] == "tool_use"
        ],
        "tokens": tokens,
        "cost": ending["total_cost_usd"] if ending else None,
    }


for source in sorted(HERE.glob("*.jsonl")):
    text = json.dumps({"cases": [count(source)]}, ensure_ascii=False, indent=1) + "\n"
    (HERE / f"{source.name.split('.')[0]}.expected.json").write_text(text, encoding="utf-8")
