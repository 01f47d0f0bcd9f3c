"""Record the scenario with inspect-ai 0.3.285 and its model ``mockllm``; support.eval goes to ``../inspect-eval``.

The model states what ``../scenario.py`` says. A second sample is answered at once, without tools (40 tokens in, 6 out).
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> None:
    sys.path.append(str(HERE.parent))
    import scenario
    from inspect_ai import Task, eval
    from inspect_ai.agent import react
    from inspect_ai.dataset import Sample
    from inspect_ai.log import read_eval_log, write_eval_log
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import includes
    from inspect_ai.tool import Tool, ToolError, tool

    @tool
    def lookup_order() -> Tool:
        async def execute(order_id: str) -> str:
            """List the charges of an order.

            Args:
                order_id: The order.
            """
            return scenario.lookup_order(order_id)

        return execute

    @tool
    def refund() -> Tool:
        async def execute(charge_id: str, amount: float) -> str:
            """Refund a charge.

            Args:
                charge_id: The charge.
                amount: How much.
            """
            raise ToolError(scenario.REFUSED)

        return execute

    def output(reply: dict) -> ModelOutput:
        prompt, completion, cached, reasoning = reply["usage"]
        if "text" in reply:
            made = ModelOutput.from_content("mockllm/model", reply["text"])
        else:
            ((name, arguments),) = reply["calls"]
            made = ModelOutput.for_tool_call("mockllm/model", name, arguments)
        # Inspect counts cached tokens beside the input.
        made.usage = ModelUsage(
            input_tokens=prompt - cached,
            output_tokens=completion,
            total_tokens=prompt + completion,
            input_tokens_cache_read=cached,
            reasoning_tokens=reasoning,
        )
        return made

    hello = {"text": "Hello! How can I help?", "usage": (40, 6, 0, 0)}
    model = get_model("mockllm/model", custom_outputs=[output(reply) for reply in [*scenario.REPLIES, hello]])
    task = Task(
        name="support",
        dataset=[
            Sample(id="order", input=scenario.QUESTION, target="supervisor"),
            Sample(id="hello", input="Hello?", target="Hello"),
        ],
        solver=react(name=scenario.AGENT, prompt=scenario.INSTRUCTIONS, tools=[lookup_order(), refund()], submit=False),
        scorer=includes(),
    )
    (log,) = eval(task, model=model, max_samples=1, display="none", log_dir=tempfile.mkdtemp(), log_format="eval")
    assert log.status == "success", log.error
    log = read_eval_log(log.location)
    # The script of the scripted model is not part of what happened.
    log.eval.revision, log.eval.model_args = None, {}
    write_eval_log(log, str(HERE / "support.json"), "json")
    indented = json.loads((HERE / "support.json").read_text("utf-8"))
    (HERE / "support.json").write_text(json.dumps(indented) + "\n", encoding="utf-8")
    write_eval_log(log, str(HERE.parent / "inspect-eval" / "support.eval"), "eval")


if __name__ == "__main__":
    main()
