"""Made-up OTLP/JSON files of agent runs, of any size, the same ones every time."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_N_DISTINCT = 60
_TRACE_MARK = "f" * 32
_START_NANO = 1_700_000_000_000_000_000
_SYLLABLES = ("ka", "lo", "mi", "ren", "tas", "vo", "quil", "ter", "an", "es", "por", "du")

Attributes = dict[str, Any]


def _words(dice: random.Random, n_words: int) -> str:
    """A text with the quotes, lines and characters that make JSON escape."""
    words = ("".join(dice.choices(_SYLLABLES, k=dice.randint(1, 4))) for _ in range(n_words))
    ends = dice.choices(("", ".", ",", ".\n", ' "so"', " é"), weights=(40, 3, 3, 2, 1, 1), k=n_words)
    return " ".join(word + end for word, end in zip(words, ends, strict=True))


def openinference_run(dice: random.Random) -> list[tuple[str, Attributes]]:
    """An agent with its calls, tools and retrieval; each call repeats the conversation, as instrumentations do."""
    question = _words(dice, 30)
    messages = [("system", _words(dice, 150)), ("user", question)]
    spans: list[tuple[str, Attributes]] = []
    documents = [_words(dice, 120) for _ in range(4)]
    retrieval: Attributes = {"openinference.span.kind": "RETRIEVER", "input.value": question}
    for place, text in enumerate(documents):
        retrieval[f"retrieval.documents.{place}.document.content"] = text
        retrieval[f"retrieval.documents.{place}.document.id"] = f"doc-{place}"
        retrieval[f"retrieval.documents.{place}.document.score"] = dice.random()
    spans.append(("retrieve", retrieval))
    for step in range(dice.randint(2, 5)):
        answer = _words(dice, 60)
        call: Attributes = {
            "openinference.span.kind": "LLM",
            "llm.model_name": "gpt-4o",
            "llm.token_count.prompt": 900 + 40 * step,
            "llm.token_count.completion": 80,
            "llm.token_count.total": 980 + 40 * step,
            "llm.invocation_parameters": '{"temperature": 0.1}',
            "output.value": answer,
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.content": answer,
        }
        for place, (role, text) in enumerate(messages):
            call[f"llm.input_messages.{place}.message.role"] = role
            call[f"llm.input_messages.{place}.message.content"] = text
        result = _words(dice, 80)
        tool: Attributes = {
            "openinference.span.kind": "TOOL",
            "tool.name": "search",
            "input.value": json.dumps({"query": _words(dice, 5)}),
            "input.mime_type": "application/json",
            "output.value": result,
        }
        messages += [("assistant", answer), ("tool", result)]
        spans += [("ChatOpenAI", call), ("search", tool)]
    root: Attributes = {"openinference.span.kind": "AGENT", "input.value": question, "output.value": messages[-2][1]}
    return [("agent", root), *spans]


def genai_run(dice: random.Random) -> list[tuple[str, Attributes]]:
    """An agent by the conventions of OpenTelemetry GenAI, with its messages as JSON in attributes."""
    question = _words(dice, 30)
    messages: list[dict[str, Any]] = [{"role": "user", "parts": [{"type": "text", "content": question}]}]
    spans: list[tuple[str, Attributes]] = []
    for step in range(dice.randint(2, 5)):
        call_id, answer = f"call_{step}", _words(dice, 60)
        asked = {"type": "tool_call", "id": call_id, "name": "search", "arguments": {"query": _words(dice, 5)}}
        said = {
            "role": "assistant",
            "parts": [{"type": "text", "content": answer}, asked],
            "finish_reason": "tool_call",
        }
        result = _words(dice, 120)
        spans.append(
            (
                "chat gpt-4o",
                {
                    "gen_ai.operation.name": "chat",
                    "gen_ai.provider.name": "openai",
                    "gen_ai.request.model": "gpt-4o",
                    "gen_ai.response.model": "gpt-4o-2024-08-06",
                    "gen_ai.usage.input_tokens": 900 + 40 * step,
                    "gen_ai.usage.output_tokens": 80,
                    "gen_ai.system_instructions": json.dumps([{"type": "text", "content": _words(dice, 150)}]),
                    "gen_ai.input.messages": json.dumps(messages),
                    "gen_ai.output.messages": json.dumps([said]),
                },
            )
        )
        spans.append(
            (
                "execute_tool search",
                {
                    "gen_ai.operation.name": "execute_tool",
                    "gen_ai.tool.name": "search",
                    "gen_ai.tool.call.id": call_id,
                    "gen_ai.tool.call.arguments": json.dumps(asked["arguments"]),
                    "gen_ai.tool.call.result": result,
                },
            )
        )
        messages += [
            said,
            {"role": "tool", "parts": [{"type": "tool_call_response", "id": call_id, "response": result}]},
        ]
    return [("invoke_agent helper", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper"}), *spans]


def dense_run(dice: random.Random) -> list[tuple[str, Attributes]]:
    """Spans of 60 small attributes each: the worst case, for a reader's work is by attribute."""
    return [
        (f"step {number}", {f"app.measure.{place}": dice.randint(0, 9999) for place in range(60)})
        for number in range(8)
    ]


RUNS: dict[str, Callable[[random.Random], list[tuple[str, Attributes]]]] = {
    "openinference": openinference_run,
    "genai": genai_run,
    "dense": dense_run,
}


def write_file(path: Path, kind: str, n_bytes: int) -> int:
    """Write a file of about so many bytes and say how many spans it holds; runs repeat under new trace ids."""
    dice = random.Random(4)
    runs = [_spans(RUNS[kind](dice)) for _ in range(_N_DISTINCT)]
    one_a_line = kind == "genai"
    resource = {"attributes": _typed({"service.name": "helper", "telemetry.sdk.language": "python"})}
    before = b'{"resourceSpans":[{"resource":%s,"scopeSpans":[{"scope":{"name":"made.up"},"spans":[' % _json(resource)
    after = b"]}]}]}\n"
    n_written = n_spans = 0
    with path.open("wb") as file:
        file.write(b"" if one_a_line else before)
        for number, spans in _repeated(runs):
            trace_id = b"%032x" % (number + 1)
            data = b",".join(spans).replace(_TRACE_MARK.encode(), trace_id)
            n_written += file.write(before + data + after if one_a_line else (b"," if number else b"") + data)
            n_spans += len(spans)
            if n_written >= n_bytes:
                break
        file.write(b"" if one_a_line else after)
    return n_spans


def _repeated(runs: list[list[bytes]]) -> Iterator[tuple[int, list[bytes]]]:
    number = 0
    while True:
        yield number, runs[number % len(runs)]
        number += 1


def _spans(run: list[tuple[str, Attributes]]) -> list[bytes]:
    rows = []
    for number, (name, attributes) in enumerate(run):
        start = _START_NANO + number * 1_000_000_000
        rows.append(
            _json(
                {
                    "traceId": _TRACE_MARK,
                    "spanId": f"{number + 1:016x}",
                    "parentSpanId": "" if number == 0 else f"{1:016x}",
                    "name": name,
                    "kind": 1,
                    "startTimeUnixNano": str(start),
                    "endTimeUnixNano": str(start + 900_000_000),
                    "attributes": _typed(attributes),
                    "status": {"code": 1},
                }
            )
        )
    return rows


def _typed(attributes: Attributes) -> list[dict[str, Any]]:
    kinds = {str: "stringValue", int: "intValue", float: "doubleValue"}
    return [
        {"key": key, "value": {kinds[type(value)]: str(value) if isinstance(value, int) else value}}
        for key, value in attributes.items()
    ]


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
