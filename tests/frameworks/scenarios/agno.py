"""Agno: triage lets billing settle the task as a tool; variant ``team``: a team of which billing is a member.

OpenInference makes the spans; Agno's own tracing writes the same ones into a database.
"""

from __future__ import annotations

from typing import Any

import support_desk as desk

TO_MEMBER = {"member_id": "billing", "task": "Refund the double charge of order A-1042."}
EXPECTED = desk.expected(desk.TWO_AGENTS, ["triage", "billing"])
_settings = {"team": False}


def instrument(tracer_provider: Any, variant: str = "") -> None:
    """Turn OpenInference's instrumentation on."""
    from openinference.instrumentation.agno import AgnoInstrumentor

    _settings["team"] = variant == "team"
    AgnoInstrumentor().instrument(tracer_provider=tracer_provider)


def run(question: str) -> str:
    """Ask the two agents one question and return the final answer."""
    from agno.agent import Agent
    from agno.models.openai import OpenAIChat
    from agno.team import Team
    from scripted_openai import ScriptedOpenAI

    replies = list(desk.TWO_AGENTS)
    if _settings["team"]:
        replies[1] = {**replies[1], "calls": [("delegate_task_to_member", TO_MEMBER)]}
    with ScriptedOpenAI(replies) as server:

        def model() -> OpenAIChat:
            return OpenAIChat(id=desk.MODEL, api_key="none", base_url=server.base_url)

        billing = Agent(
            name="billing",
            model=model(),
            instructions="Settle questions about money.",
            tools=[desk.find_invoice, desk.refund_payment],
            telemetry=False,
        )

        if _settings["team"]:
            team = Team(name="triage", model=model(), members=[billing], tools=[desk.search_policy], telemetry=False)
            return str(team.run(question).content)

        def transfer_to_billing(task: str) -> str:
            """Let the billing agent settle a task."""
            return str(billing.run(task).content)

        triage = Agent(
            name="triage",
            model=model(),
            instructions="Send the customer to the right desk.",
            tools=[desk.search_policy, transfer_to_billing],
            telemetry=False,
        )
        return str(triage.run(question).content)
