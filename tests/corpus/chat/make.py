"""Write the scenario (``../scenario.py``) as chat logs, with the message types of each vendor's SDK.

Versions: openai 3.49.0, anthropic 2.8.0, google-genai 3.1.0, langchain-core 1.7.2; ``python make.py openai`` and so on,
in an environment that has it. Anthropic's and LangChain's messages state their usage, the others do not.
LangChain's are written by ``model_dump`` (langchain) and by ``messages_to_dict`` (langchain_dict).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def openai() -> dict[str, Any]:
    import scenario
    from openai import OpenAI

    with scenario.scripted_model() as server:
        client = OpenAI(base_url=server.base_url, api_key="none", max_retries=0)
        messages: list[Any] = [
            {"role": "system", "content": scenario.INSTRUCTIONS},
            {"role": "user", "content": scenario.QUESTION},
        ]
        results = iter([scenario.CHARGES, f"Error: {scenario.REFUSED}"])
        for _ in scenario.REPLIES:
            reply = client.chat.completions.create(model="gpt-4o-mini", messages=messages, tools=scenario.TOOLS)
            message = reply.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            messages += [
                {"role": "tool", "tool_call_id": call.id, "content": next(results)} for call in message.tool_calls or ()
            ]
    return {"messages": messages}


def anthropic() -> dict[str, Any]:
    import scenario
    from anthropic.types import Message, TextBlock, ToolUseBlock, Usage

    messages: list[Any] = [{"role": "user", "content": scenario.QUESTION}]
    results = iter([(scenario.CHARGES, False), (scenario.REFUSED, True)])
    for number, reply in enumerate(scenario.REPLIES, start=1):
        prompt, completion, cached, _ = reply["usage"]
        content: list[Any] = [
            ToolUseBlock(id=f"toolu_{number}", name=name, input=arguments, type="tool_use")
            for name, arguments in reply.get("calls", ())
        ]
        message = Message(
            id=f"msg_{number}",
            content=content or [TextBlock(text=reply["text"], type="text")],
            model="claude-sonnet-4-5",
            role="assistant",
            stop_reason="tool_use" if content else "end_turn",
            type="message",
            usage=Usage(input_tokens=prompt - cached, output_tokens=completion, cache_read_input_tokens=cached),
        )
        messages.append(message.model_dump(exclude_none=True))
        answers = [
            {"type": "tool_result", "tool_use_id": call.id, "content": text, "is_error": failed}
            for call, (text, failed) in zip(content, results)  # noqa: B905  # as many as there are calls
        ]
        if answers:
            messages.append({"role": "user", "content": answers})
    return {"system": scenario.INSTRUCTIONS, "messages": messages}


def gemini() -> dict[str, Any]:
    import scenario
    from google.genai import types

    contents = [types.Content(role="user", parts=[types.Part(text=scenario.QUESTION)])]
    results = iter([{"result": scenario.CHARGES}, {"error": scenario.REFUSED}])
    for reply in scenario.REPLIES:
        called = [types.FunctionCall(name=name, args=arguments) for name, arguments in reply.get("calls", ())]
        calls = [types.Part(function_call=call) for call in called]
        contents.append(types.Content(role="model", parts=calls or [types.Part(text=reply["text"])]))
        for name, _ in reply.get("calls", ()):
            response = types.FunctionResponse(name=name, response=next(results))
            contents.append(types.Content(role="user", parts=[types.Part(function_response=response)]))
    return {"contents": [json.loads(each.model_dump_json(by_alias=True, exclude_none=True)) for each in contents]}


def langchain() -> dict[str, Any]:
    return {"messages": [message.model_dump() for message in langchain_messages()]}


def langchain_dict() -> dict[str, Any]:
    from langchain_core.messages import messages_to_dict

    return {"messages": messages_to_dict(langchain_messages())}


def langchain_messages() -> list[Any]:
    import scenario
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

    messages: list[Any] = [SystemMessage(scenario.INSTRUCTIONS), HumanMessage(scenario.QUESTION)]
    results = iter([(scenario.CHARGES, "success"), (scenario.REFUSED, "error")])
    for number, reply in enumerate(scenario.REPLIES, start=1):
        prompt, completion, cached, reasoning = reply["usage"]
        calls = [{"id": f"call_{number}", "name": name, "args": args} for name, args in reply.get("calls", ())]
        usage = {
            "input_tokens": prompt,
            "output_tokens": completion,
            "total_tokens": prompt + completion,
            "input_token_details": {"cache_read": cached},
            "output_token_details": {"reasoning": reasoning},
        }
        messages.append(AIMessage(reply.get("text", ""), tool_calls=calls, usage_metadata=usage))
        for call in calls:
            content, status = next(results)
            messages.append(ToolMessage(content, tool_call_id=call["id"], name=call["name"], status=status))
    return messages


def main() -> None:
    sys.path.append(str(HERE.parent))
    for name in sys.argv[1:]:
        row = globals()[name]()
        (HERE / f"{name}.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
