"""Counts what the trace events of a Bedrock agent hold. A tool of an action group has no flag for a failure."""

import json
from pathlib import Path

parts = [
    json.loads(line)["trace"]["trace"]["orchestrationTrace"] for line in Path("trace.jsonl").read_text().splitlines()
]
asked = [json.loads(part["modelInvocationInput"]["text"]) for part in parts if "modelInvocationInput" in part]
usage = [part["modelInvocationOutput"]["metadata"]["usage"] for part in parts if "modelInvocationOutput" in part]
seen = [part["observation"] for part in parts if "observation" in part]
calls = []
for each in seen:
    code = each.get("codeInterpreterInvocationOutput")
    if code:
        calls.append(["code_interpreter", "error" if code.get("executionError") else "success"])
    elif "actionGroupInvocationOutput" in each:
        given = [p["invocationInput"] for p in parts if p.get("invocationInput", {}).get("traceId") == each["traceId"]]
        calls.append([given[0]["actionGroupInvocationInput"]["function"], "success"])
case = {
    "question": asked[0]["messages"][0]["content"].removeprefix("[{text=").removesuffix("}]"),
    "answer": next(each["finalResponse"]["text"] for each in seen if "finalResponse" in each),
    "tool_calls": calls,
    "tokens": {"input": sum(u["inputTokens"] for u in usage), "output": sum(u["outputTokens"] for u in usage)},
}
Path("trace.expected.json").write_text(json.dumps({"cases": [case]}, indent=1) + "\n")
