"""Record the scenario (``../scenario.py``) as a session of Google's ADK: google-adk 2.13.0 and a scripted Gemini model.

``session.json`` is the session as its service returns it, as JSON. ADK counts reasoning (thoughts) beside the
candidates, so the scripted model states completion minus reasoning as candidates.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def main() -> None:
    sys.path.append(str(HERE.parent))
    import scenario
    from google.adk.agents import LlmAgent
    from google.adk.models import BaseLlm, LlmResponse
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    script = iter(enumerate(scenario.REPLIES, start=1))

    class ScriptedModel(BaseLlm):
        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[Any, None]:
            number, reply = next(script)
            prompt, completion, cached, reasoning = reply["usage"]
            parts = [
                types.Part(function_call=types.FunctionCall(id=f"call_{number}", name=name, args=arguments))
                for name, arguments in reply.get("calls", ())
            ]
            yield LlmResponse(
                content=types.Content(role="model", parts=parts or [types.Part(text=reply["text"])]),
                usage_metadata=types.GenerateContentResponseUsageMetadata(
                    prompt_token_count=prompt,
                    cached_content_token_count=cached,
                    candidates_token_count=completion - reasoning,
                    thoughts_token_count=reasoning,
                    total_token_count=prompt + completion,
                ),
                finish_reason=types.FinishReason.STOP,
                model_version="gemini-2.5-flash",
            )

    async def run() -> Any:
        agent = LlmAgent(
            name=scenario.AGENT,
            model=ScriptedModel(model="gemini-2.5-flash"),
            instruction=scenario.INSTRUCTIONS,
            tools=[scenario.lookup_order, scenario.refund],
            on_tool_error_callback=lambda tool, args, tool_context, error: {"error": str(error)},
        )
        runner = InMemoryRunner(agent, app_name="support_desk")
        session = await runner.session_service.create_session(app_name="support_desk", user_id="ada")
        question = types.Content(role="user", parts=[types.Part(text=scenario.QUESTION)])
        async for _ in runner.run_async(user_id="ada", session_id=session.id, new_message=question):
            pass
        return await runner.session_service.get_session(app_name="support_desk", user_id="ada", session_id=session.id)

    session = asyncio.run(run())
    text = session.model_dump_json(by_alias=True, exclude_none=True, indent=1)
    (HERE / "session.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
