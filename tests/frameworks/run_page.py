"""Run the Python of a page of the documentation in its framework's environment: ``python run_page.py PAGE``.

The models that the page names are answered by ``docs_model``. A page makes a function ``answer``: one captured call,
and a suite that runs it, must see the question, the answer, the tool and the tokens.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
QUESTION = "Where is order A-1042?"


def main(page: Path) -> None:
    """Run all blocks in one namespace and look at what they made."""
    import docs_model
    from run_live import records_of, stay_here

    import agentunit

    docs_model.serve()
    sys.addaudithook(stay_here)
    text = page.read_text(encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": "page"}
    for block in PYTHON.finditer(text):
        line = text[: block.start()].count("\n") + 1
        exec(compile("\n" * line + block.group(1), str(page), "exec"), namespace)
    answer = namespace["answer"]
    with agentunit.capture_spans() as trace:
        answer(QUESTION)
    check(trace)
    suite = agentunit.Suite(
        dataset=[{"id": "q1", "query": QUESTION, "metadata": {"contains": ["Monday"]}}],
        agent=answer,
        metrics=["contains", "tool_success", "token_usage"],
    )
    records = records_of(suite)
    for record in records:
        assert record.outcome.output == docs_model.ANSWER, record.outcome
        check(record.trace)
    for case in agentunit.score(records, suite.metrics):
        unscored = {name: score for name, score in case.scores.items() if score.result.value is None}
        assert not unscored, unscored
    print("the page runs")


def check(trace: Any) -> None:
    """Whether the trace tells what the page says it does."""
    import docs_model

    calls = [event.payload for event in trace.events if event.type == "tool_call"]
    (call,) = [call for call in calls if call["name"] == "look_up_order"]
    assert (call["arguments"], call["status"]) == ({"number": docs_model.ORDER}, "success"), call
    assert docs_model.FOUND in str(call["result"]), call
    models = [event.payload for event in trace.events if event.type == "llm_call"]
    assert len(models) == 2, models
    assert all(model["usage"]["prompt_tokens"] == 100 and model["model"] for model in models), models
    said = [event.payload["content"] for event in trace.events if event.type == "message"]
    assert any("Where is order" in text for text in said), said
    assert "problems" not in trace.metadata["spans"], trace.metadata


if __name__ == "__main__":
    main(Path(sys.argv[1]))
