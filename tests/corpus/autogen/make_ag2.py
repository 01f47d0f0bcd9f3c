"""Record the scenario (``../scenario.py``) with AG2 0.14.0: ``chat_result.json`` is the ``ChatResult`` of two agents.

AG2 states prompt and completion tokens only, and the price that its own list has for them.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> None:
    sys.path.append(str(HERE.parent))
    import scenario
    from autogen import ConversableAgent, LLMConfig, register_function

    with scenario.scripted_model() as server:
        entry = {"model": "gpt-4o-mini-2024-07-18", "base_url": server.base_url, "api_key": "none", "max_retries": 0}
        agent = ConversableAgent(
            scenario.AGENT, system_message=scenario.INSTRUCTIONS, llm_config=LLMConfig(entry, cache_seed=None)
        )
        desk = ConversableAgent("desk", human_input_mode="NEVER", llm_config=False, max_consecutive_auto_reply=2)
        for tool in (scenario.lookup_order, scenario.refund):
            register_function(tool, caller=agent, executor=desk, description=tool.__doc__)
        result = desk.initiate_chat(agent, message=scenario.QUESTION, max_turns=3)
    kept = {name: value for name, value in vars(result).items() if not name.startswith("_")}
    assert dataclasses.is_dataclass(result)
    (HERE / "chat_result.json").write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
