"""Spans as Phoenix's API returns them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

OUTCOMES = {"ERROR": "error"}


def count(path: Path) -> list[dict[str, Any]]:
    spans = sorted(json.loads(path.read_text("utf-8")), key=lambda span: span["start_time"])
    root = next(span for span in spans if not span["parent_id"])["attributes"]
    kinds = {kind: [span for span in spans if span["span_kind"] == kind] for kind in ("TOOL", "LLM")}
    inputs = [span["attributes"].get("llm.token_count.prompt") for span in kinds["LLM"]]
    outputs = [span["attributes"].get("llm.token_count.completion") for span in kinds["LLM"]]
    stated = any(value is not None for value in inputs + outputs)
    return [
        {
            "question": root["input.value"],
            "answer": root["output.value"],
            "tool_calls": [
                [span["attributes"].get("tool.name", span["name"]), OUTCOMES.get(span["status_code"], "success")]
                for span in kinds["TOOL"]
            ],
            "tokens": {"input": sum(filter(None, inputs)), "output": sum(filter(None, outputs))} if stated else None,
        }
    ]
