"""Decides for RAGAS' own prompts, from the texts that it receives: what is not in them cannot be known.

A statement is supported by a text that has all of its words. ``decide`` is a function for ``JudgeServer``.
"""

from __future__ import annotations

import json
import re
from typing import Any

from judge_decisions import mark_of

_EMPTY_WORDS = {"a", "an", "and", "are", "by", "in", "is", "it", "of", "on", "or", "the", "to", "was", "were", "with"}
_BEGIN = "Now perform the same with the following input"


def decide(body: dict[str, Any]) -> dict[str, Any]:
    """The reply to one of RAGAS' prompts."""
    decided = _decided(input_of(body))
    # RAGAS by itself puts no mark into its prompts.
    return {"mark": mark_of(body), **decided} if "mark of this message" in body["messages"][-1]["content"] else decided


def _decided(given: dict[str, Any]) -> dict[str, Any]:
    if "statements" in given:
        return {"statements": [_inferred(each, given["context"]) for each in given["statements"]]}
    if "ground_truth" in given:
        return _sorted_out(given["answer"], given["ground_truth"])
    if "context" in given:
        wanted, found = words(given["answer"]), words(given["context"])
        shared = sorted(wanted & found)
        return {"reason": f"shared words: {shared}", "verdict": int(2 * len(shared) >= len(wanted))}
    return {"statements": sentences(given["answer"])}


def input_of(body: dict[str, Any]) -> dict[str, Any]:
    """The texts under judgment that a request holds, wherever in its last message they stand."""
    prompt = body["messages"][-1]["content"]
    rest = prompt[prompt.index(_BEGIN) :]
    given: dict[str, Any]
    given, _ = json.JSONDecoder().raw_decode(rest[rest.index("{") :])
    return given


def sentences(text: str) -> list[str]:
    """The sentences of a text; not knowing states nothing."""
    found = [each.strip() for each in re.split(r"(?<=[.!?])\s+", text) if each.strip()]
    return [each for each in found if "not know" not in each.lower()]


def words(text: str) -> set[str]:
    """The words of a text that say something."""
    return set(re.findall(r"\w+", text.lower())) - _EMPTY_WORDS


def _inferred(statement: str, context: str) -> dict[str, Any]:
    missing = sorted(words(statement) - words(context))
    return {"statement": statement, "reason": f"missing words: {missing}", "verdict": int(not missing)}


def _sorted_out(answer: list[str], truth: list[str]) -> dict[str, Any]:
    def stands_in(statement: str, others: list[str]) -> bool:
        return any(words(statement) <= words(other) for other in others)

    def shown(statements: list[str]) -> list[dict[str, str]]:
        return [{"statement": each, "reason": "by its words"} for each in statements]

    return {
        "TP": shown([each for each in answer if stands_in(each, truth)]),
        "FP": shown([each for each in answer if not stands_in(each, truth)]),
        "FN": shown([each for each in truth if not stands_in(each, answer)]),
    }
