"""Record the scenario (``../scenario.py``) with TruLens: trulens-core 2.16.0, openai 3.49.0 and a scripted model.

The app is a class whose methods are decorated with ``instrument``; the file holds the events that TruLens's exporter
makes of its spans, one a line. Tokens and price (one dollar for a million tokens) are stated under the names that
TruLens's own providers use; it has none for cached tokens.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def event_of(event: Any) -> dict[str, Any]:
    """The columns of an event as JSON."""
    columns = ("event_id", "record", "record_attributes", "record_type", "resource_attributes", "trace")
    row = {name: getattr(event, name) for name in columns}
    row |= {name: str(getattr(event, name)) for name in ("start_timestamp", "timestamp")}
    plain = {name: dict(value) if isinstance(value, Mapping) else value for name, value in row.items()}
    return {**plain, "record_type": event.record_type.value}


def main() -> None:
    os.environ["TRULENS_OTEL_TRACING"] = "1"
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    import scenario
    from openai import OpenAI
    from spans import without_paths
    from trulens.apps.app import TruApp
    from trulens.core import TruSession
    from trulens.core.otel.instrument import instrument
    from trulens.experimental.otel_tracing.core.exporter import connector
    from trulens.otel.semconv.trace import SpanAttributes

    events: list[Any] = []
    made = connector.construct_event

    def kept(span: Any) -> Any:
        event = made(span)
        events.append(event)
        return event

    connector.construct_event = kept
    kinds, cost = SpanAttributes.SpanType, SpanAttributes.COST

    def usage_of(returned: Any, *_: Any) -> dict[str, Any]:
        usage = returned.usage
        return {
            cost.MODEL: returned.model,
            cost.NUM_PROMPT_TOKENS: usage.prompt_tokens,
            cost.NUM_COMPLETION_TOKENS: usage.completion_tokens,
            cost.NUM_TOKENS: usage.total_tokens,
            cost.NUM_REASONING_TOKENS: usage.completion_tokens_details.reasoning_tokens,
            cost.COST: usage.total_tokens / 1_000_000,
            cost.CURRENCY: "USD",
        }

    class Support:
        @instrument()
        def answer(self, query: str) -> str:
            messages: list[Any] = [{"role": "user", "content": query}]
            while True:
                message = self.ask(messages).choices[0].message
                if not message.tool_calls:
                    return str(message.content)
                messages.append(message.model_dump(exclude_none=True))
                for call in message.tool_calls:
                    arguments = json.loads(call.function.arguments)
                    try:
                        result = getattr(self, call.function.name)(**arguments)
                    except ValueError as error:
                        result = f"Error: {error}"
                    messages.append({"role": "tool", "tool_call_id": call.id, "content": result})

        @instrument(
            span_type=kinds.GENERATION,
            attributes=lambda returned, error, *args, **kwargs: usage_of(returned),
        )
        def ask(self, messages: list[Any]) -> Any:
            return client.chat.completions.create(model="gpt-4o-mini", messages=messages, tools=scenario.TOOLS)

        @instrument(span_type=kinds.TOOL)
        def lookup_order(self, order_id: str) -> str:
            return scenario.lookup_order(order_id)

        @instrument(span_type=kinds.TOOL)
        def refund(self, charge_id: str, amount: float) -> str:
            return scenario.refund(charge_id, amount)

    session = TruSession(database_url=f"sqlite:///{tempfile.mkdtemp()}/trulens.db")
    app = Support()
    recorder = TruApp(app, app_name="support_desk", app_version="1", main_method=app.answer)
    with scenario.scripted_model() as server:
        client = OpenAI(base_url=server.base_url, api_key="none", max_retries=0)
        with recorder:
            assert app.answer(scenario.QUESTION) == scenario.ANSWER
    session.force_flush()
    lines = [json.dumps(event_of(event)) for event in events]
    Path(__file__).with_name("events.jsonl").write_text(without_paths("\n".join(lines)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
