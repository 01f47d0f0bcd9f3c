"""Bedrock agents: trace events of InvokeAgent, written after the service model that botocore 1.44.0 (PyPI) carries.

Every name is looked up in that model, so that none is invented.
"""

import json
from pathlib import Path

from botocore.loaders import Loader

SHAPES = Loader().load_service_model("bedrock-agent-runtime", "service-2")["shapes"]
QUESTION, ANSWER = "Why was I charged twice?", "The second charge is refunded by a supervisor."


def check(value, shape):
    kind = SHAPES[shape]["type"]
    if kind == "structure":
        for name, inner in value.items():
            check(inner, SHAPES[shape]["members"][name]["shape"])
    elif kind == "list":
        for inner in value:
            check(inner, SHAPES[shape]["member"]["shape"])


def event(kind, part):
    trace = {"agentId": "AGENT1", "agentAliasId": "ALIAS1", "agentVersion": "1", "sessionId": "session-1"}
    trace |= {"eventTime": f"2026-01-01T00:00:{len(events):02}Z", "trace": {kind: part}}
    check(trace, "TracePart")
    events.append({"trace": trace})


def step(name, part, number):
    event("orchestrationTrace", {name: {"traceId": f"t-{number}", **part}})


def model(number, n_in, n_out):
    prompt = json.dumps({"system": "Help.", "messages": [{"role": "user", "content": "[{text=" + QUESTION + "}]"}]})
    step(
        "modelInvocationInput",
        {"type": "ORCHESTRATION", "text": prompt, "foundationModel": "amazon.nova-pro-v1:0"},
        number,
    )
    usage = {"inputTokens": n_in, "outputTokens": n_out}
    step("modelInvocationOutput", {"rawResponse": {"content": "…"}, "metadata": {"usage": usage}}, number)


def action(number, function, parameters, text):
    given = {"actionGroupName": "billing", "function": function, "executionType": "LAMBDA"}
    given["parameters"] = [{"name": key, "type": "string", "value": value} for key, value in parameters.items()]
    step("invocationInput", {"invocationType": "ACTION_GROUP", "actionGroupInvocationInput": given}, number)
    step("observation", {"type": "ACTION_GROUP", "actionGroupInvocationOutput": {"text": text}}, number)


events = []
model(1, 211, 17)
step("rationale", {"text": "I look the order up."}, 1)
action(1, "lookup", {"order": "A-1"}, "ch_1, ch_2")
model(2, 287, 63)
code = {"invocationType": "ACTION_GROUP_CODE_INTERPRETER", "codeInterpreterInvocationInput": {"code": "1/0"}}
step("invocationInput", code, 2)
failed = {"executionError": "ZeroDivisionError", "executionTimeout": False}
step("observation", {"type": "ACTION_GROUP", "codeInterpreterInvocationOutput": failed}, 2)
found = [{"content": {"text": "Refunds above 40 EUR need a supervisor."}}]
step("observation", {"type": "KNOWLEDGE_BASE", "knowledgeBaseLookupOutput": {"retrievedReferences": found}}, 3)
model(4, 352, 31)
step("observation", {"type": "FINISH", "finalResponse": {"text": ANSWER}}, 4)
Path(__file__).with_name("trace.jsonl").write_text("".join(json.dumps(each) + "\n" for each in events))
