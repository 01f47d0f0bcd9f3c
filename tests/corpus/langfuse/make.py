"""Write the scenario (``../scenario.py``) as Langfuse's API returns a trace, with the types of langfuse 3.15.0.

The usage is divided as Langfuse's server divides that of OpenAI: cached and reasoning tokens beside the rest, which add
up to the total. The generations cost 0.0001, 0.0002 and 0.0003 dollars.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    from datetime import datetime, timedelta, timezone

    import scenario
    from langfuse.api import ObservationsView, TraceWithFullDetails

    began = datetime(2026, 3, 9, 12, tzinfo=timezone.utc)
    observations: list[Any] = []

    def observe(kind: str, name: str, parent: str | None, **more: Any) -> None:
        number = len(observations) + 1
        fields = {
            "id": f"{number:016x}",
            "traceId": "9f1c7d0a5b3e4c21",
            "type": kind,
            "name": name,
            "startTime": began + timedelta(seconds=number),
            "endTime": began + timedelta(seconds=number + 0.5),
            "parentObservationId": parent,
            "usage": {"input": 0, "output": 0, "total": 0, "unit": "TOKENS"},
            "usageDetails": {},
            "costDetails": {},
            "level": "DEFAULT",
            "environment": "default",
        }
        observations.append(ObservationsView(**{**fields, **more}))

    root = f"{1:016x}"
    observe("AGENT", scenario.AGENT, None, input=scenario.QUESTION, output=scenario.ANSWER)
    messages: list[Any] = [{"role": "user", "content": scenario.QUESTION}]
    results = iter([(scenario.CHARGES, False), (scenario.REFUSED, True)])
    for number, reply in enumerate(scenario.REPLIES, start=1):
        prompt, completion, cached, reasoning = reply["usage"]
        calls = [
            {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for name, arguments in reply.get("calls", ())
        ]
        said = {"role": "assistant", "content": reply.get("text"), **({"tool_calls": calls} if calls else {})}
        observe(
            "GENERATION",
            "OpenAI-generation",
            root,
            model="gpt-4o-mini-2024-07-18",
            input=list(messages),
            output=said,
            usage={"input": prompt, "output": completion, "total": prompt + completion, "unit": "TOKENS"},
            usageDetails={
                "input": prompt - cached,
                "input_cached_tokens": cached,
                "output": completion - reasoning,
                "output_reasoning_tokens": reasoning,
                "total": prompt + completion,
            },
            costDetails={"total": number / 10_000},
            calculatedTotalCost=number / 10_000,
        )
        messages.append(said)
        for name, arguments in reply.get("calls", ()):
            text, failed = next(results)
            ended = {"level": "ERROR", "statusMessage": text} if failed else {"output": text}
            observe("TOOL", name, root, input=arguments, **ended)
            messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": text})
    trace = TraceWithFullDetails(
        id="9f1c7d0a5b3e4c21",
        timestamp=began,
        name="support run",
        input=scenario.QUESTION,
        output=scenario.ANSWER,
        tags=[],
        public=False,
        environment="default",
        htmlPath="/project/p1/traces/9f1c7d0a5b3e4c21",
        latency=6.5,
        totalCost=0.0006,
        observations=observations,
        scores=[],
    )
    text = json.dumps(json.loads(trace.json(by_alias=True)), indent=1)
    Path(__file__).with_name("trace.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
