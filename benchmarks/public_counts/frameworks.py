"""Dumps of frameworks: what is known of the one run that they were all made of, and of the few made by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

# A fact of the run is compared where its words are in the file, since some dumps hold only a part of it.
_QUESTION = "Where is order A-1042? Also refund it."
_ANSWER = "Order A-1042 was sent on Monday; the refund failed."
_TOOLS = ("look_up_order", "refund")
# Those that state in a field of their own that the refund failed, and those that state the tokens of all three calls.
_STATING_FAILURE = ("agno", "haystack", "strands", "langgraph")
_STATING_TOKENS = (
    "adk_session", "agno", "autogen", "crewai_result", "haystack", "langgraph", "mlflow", "openai_agents_raw",
    "pydantic_ai", "strands",
)  # fmt: skip
_LANGCHAIN = {
    "question": "Where is order A-1042?", "answer": "It was sent on Monday.", "tools": ["look_up_order"], "failures": 0,
    "tokens_in": 220, "tokens_out": 29,
}  # fmt: skip
_LANGSMITH = {
    "question": "Where?", "answer": "done", "tools": ["look_up_order"], "tokens_in": 210, "tokens_out": 41,
}  # fmt: skip
_SHORT: dict[str, Any] = {"question": "q", "answer": "done", "tools": ["f"]}
_BY_HAND: dict[str, dict[str, Any]] = {
    "aisdk": {**_SHORT, "failures": 1},
    "aisdk_ui": {**_SHORT, "tools": ["getWeather"], "failures": 1},
    "bedrock_converse": {**_SHORT, "failures": 1},
    "lc_anthropic": _SHORT,
    "lc_v1": {**_SHORT, "failures": 0},
    "lc_dumpd": _LANGCHAIN,
    "lc_messages_to_dict": _LANGCHAIN,
    "lc_model_dump": _LANGCHAIN,
    "ls_no_tool": _LANGSMITH,
    "ls_with_tool": _LANGSMITH,
    "oa_both": _SHORT,
    "oa_err": {**_SHORT, "tools": ["bash"]},
    "oa_exit": {**_SHORT, "tools": ["bash"]},
}


def count(path: Path) -> dict[str, Any]:
    """The facts of a dump under the names of counts.jsonl; a fact that is left out is not compared."""
    if path.stem in _BY_HAND:
        return _BY_HAND[path.stem]
    text = path.read_text("utf-8")
    facts: dict[str, Any] = {}
    if f'"{_QUESTION}"' in text:
        facts["question"] = _QUESTION
    if _ANSWER in text:
        facts["answer"] = _ANSWER
    if all(f'"{tool}' in text for tool in _TOOLS):
        facts["tools"] = ["look_up_order", "refund_soft" if '"refund_soft"' in text else "refund"]
    if path.stem.startswith("smolagents"):
        # It tried the refund again, and was stopped after three steps.
        return {**facts, "tools": [*_TOOLS, "refund"], "tokens_in": 430, "tokens_out": 83}
    if path.stem.startswith(_STATING_FAILURE):
        facts["failures"] = 1
    if path.stem.startswith(_STATING_TOKENS):
        facts |= {"tokens_in": 330, "tokens_out": 63}
    return facts
