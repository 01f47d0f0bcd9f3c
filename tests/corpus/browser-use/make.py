"""browser-use: a history that browser-use 0.13.14 (PyPI) saves itself (``AgentHistoryList.save_to_file``)."""

from pathlib import Path

from browser_use.agent.views import ActionResult, AgentHistory, AgentHistoryList, AgentOutput, StepMetadata
from browser_use.browser.views import BrowserStateHistory
from browser_use.tools.service import Tools

Output = AgentOutput.type_with_custom_actions(Tools().registry.create_action_model())
ANSWER = "The cheapest ticket costs 42 EUR."


def step(number, actions, results):
    output = Output(evaluation_previous_goal="Fine.", memory="m", next_goal="g", action=actions) if actions else None
    state = BrowserStateHistory(url="https://example.com", title="Tickets", tabs=[], interacted_element=[None])
    times = StepMetadata(step_start_time=100.0 + number, step_end_time=100.5 + number, step_number=number)
    return AgentHistory(model_output=output, result=results, state=state, metadata=times)


AgentHistoryList(
    history=[
        step(1, [{"navigate": {"url": "https://example.com"}}], [ActionResult(extracted_content="Opened")]),
        step(2, [{"click": {"index": 7}}, {"scroll": {"down": True, "pages": 1.0}}],
             [ActionResult(error="Element 7 is gone"), ActionResult(extracted_content="Scrolled")]),
        step(3, [{"done": {"text": ANSWER, "success": True}}],
             [ActionResult(is_done=True, success=True, extracted_content=ANSWER)]),
    ]
).save_to_file(Path(__file__).with_name("history.json"))  # fmt: skip
