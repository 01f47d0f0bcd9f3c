"""Count what the spans of the trace state, without AgentUnit; every attribute of MLflow's is JSON in a text."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

COUNTS = {"input": "input_tokens", "output": "output_tokens", "cache_read": "cache_read_input_tokens"}


def count(path: Path) -> list[dict[str, Any]]:
    spans = sorted(
        json.loads(path.read_text("utf-8"))["data"]["spans"], key=lambda span: int(span["start_time_unix_nano"])
    )
    stated = [{name: json.loads(value) for name, value in span["attributes"].items()} for span in spans]
    kinds = [each["mlflow.spanType"] for each in stated]
    usages = [each["mlflow.chat.tokenUsage"] for each in stated if "mlflow.chat.tokenUsage" in each]
    (question,) = stated[0]["mlflow.spanInputs"].values()
    return [
        {
            "question": question,
            "answer": stated[0]["mlflow.spanOutputs"],
            "agents": sorted({span["name"] for span, kind in zip(spans, kinds, strict=True) if kind == "AGENT"}),
            "tool_calls": [
                [span["name"], "error" if span["status"]["code"] == "STATUS_CODE_ERROR" else "success"]
                for span, kind in zip(spans, kinds, strict=True)
                if kind == "TOOL"
            ],
            "tokens": {kind: sum(usage.get(name, 0) for usage in usages) for kind, name in COUNTS.items()},
            "cost": None,
        }
    ]


if __name__ == "__main__":
    folder = Path(__file__).resolve().parent
    sys.path.append(str(folder.parent))
    from files import write_expectations

    write_expectations(folder, count)
