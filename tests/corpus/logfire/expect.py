"""Counts what rows of Logfire hold."""

import json
from pathlib import Path

for name in ("rows", "columns"):
    found = json.loads(Path(f"{name}.json").read_text())
    rows = found.get("rows")
    if rows is None:
        lists = [column["values"] for column in found["columns"]]
        rows = [
            dict(zip([c["name"] for c in found["columns"]], values, strict=True)) for values in zip(*lists, strict=True)
        ]
    rows.sort(key=lambda row: row["start_timestamp"])
    operations = [(row["attributes"]["gen_ai.operation.name"], row["attributes"], row) for row in rows]
    models = [attributes for operation, attributes, _ in operations if operation == "chat"]
    case = {
        "question": models[0]["gen_ai.input.messages"][0]["parts"][0]["content"],
        "answer": models[-1]["gen_ai.output.messages"][0]["parts"][0]["content"],
        "agents": [a["gen_ai.agent.name"] for operation, a, _ in operations if operation == "invoke_agent"],
        "tool_calls": [
            [a["gen_ai.tool.name"], "error" if row["otel_status_code"] == "ERROR" else "success"]
            for operation, a, row in operations
            if operation == "execute_tool"
        ],
        "tokens": {
            "input": sum(each["gen_ai.usage.input_tokens"] for each in models),
            "output": sum(each["gen_ai.usage.output_tokens"] for each in models),
            "cache_read": sum(each["gen_ai.usage.details.cache_read_tokens"] for each in models),
        },
    }
    Path(f"{name}.expected.json").write_text(json.dumps({"cases": [case]}, indent=1) + "\n")
