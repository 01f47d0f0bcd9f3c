"""Record the scenario (``../scenario.py``) with autogen-agentchat 0.7.5, autogen-ext 0.7.5 and a scripted model.

``task_result.json`` is the ``TaskResult`` of the team. The same run printed by ``Console`` goes to
``../autogen-console``. AutoGen states prompt and completion tokens only; cached and reasoning tokens are lost there.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> None:
    sys.path.append(str(HERE.parent))
    import scenario
    from autogen_agentchat.agents import AssistantAgent
    from autogen_agentchat.teams import RoundRobinGroupChat
    from autogen_agentchat.ui import Console
    from autogen_ext.models.openai import OpenAIChatCompletionClient

    with scenario.scripted_model() as server:
        agent = AssistantAgent(
            scenario.AGENT,
            OpenAIChatCompletionClient(
                model="gpt-4o-mini-2024-07-18", base_url=server.base_url, api_key="none", max_retries=0
            ),
            tools=[scenario.lookup_order, scenario.refund],
            system_message=scenario.INSTRUCTIONS,
            max_tool_iterations=5,
        )
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            team = RoundRobinGroupChat([agent], max_turns=1)
            result = asyncio.run(Console(team.run_stream(task=scenario.QUESTION), output_stats=True))
    (HERE / "task_result.json").write_text(result.model_dump_json(indent=1) + "\n", encoding="utf-8")
    (HERE.parent / "autogen-console" / "console.txt").write_text(printed.getvalue(), encoding="utf-8")


if __name__ == "__main__":
    main()
