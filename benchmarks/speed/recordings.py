"""Recorded runs to measure with: made up by seeded code, the same bytes on every machine.

One record is the work of a warehouse agent on one question: three passages of about sixty words, twenty events
(messages, a retrieval, model calls with token counts, tool calls with arguments and results), an answer of about
sixty words, and totals of tokens and money.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SEED = 20
EVENTS_PER_RECORD = 20
_PASSAGE_WORDS = 60
_ROUNDS = 7

_PARTS = ("bearing", "gasket", "hinge", "pulley", "valve", "spindle", "bracket", "coupling", "filter", "sensor")
_PLACES = ("aisle four", "the cold room", "dock two", "the north shelf", "the return bay", "the mezzanine")
_SUBJECTS = ("the night shift", "a supplier", "the stock count", "every pallet", "the picking robot", "an inspector")
_VERBS = ("moves", "records", "reserves", "rejects", "repacks", "measures", "orders", "labels", "weighs", "returns")
_TAILS = ("before noon", "after each delivery", "once a week", "when the seal is broken", "without a second signature")
_TOOLS = ("find_part", "count_stock", "reserve_part", "open_ticket", "check_delivery")
_MODELS = (("gpt-4o-mini", 0.15e-6), ("gpt-4o", 2.5e-6))


def write_recordings(path: Path, n_records: int, *, totals: bool = True) -> None:
    """Write this many records to a JSONL file; without ``totals``, tokens and money stand in the single calls only."""
    with path.open("w", encoding="utf-8") as file:
        for record in recordings(n_records):
            if not totals:
                record["trace"]["metadata"] = {}
            file.write(json.dumps(record, separators=(",", ":")) + "\n")


def recordings(n_records: int, seed: int = SEED) -> Iterator[dict[str, Any]]:
    """Records as plain data, one after the other."""
    rng = random.Random(seed)
    for number in range(n_records):
        yield _record(rng, number)


def _record(rng: random.Random, number: int) -> dict[str, Any]:
    part, place = rng.choice(_PARTS), rng.choice(_PLACES)
    question = f"How many of part {part} {number % 997} lie in {place}, and {_sentence(rng).lower()}?"
    passages = [_passage(rng) for _ in range(3)]
    # One answer in five quotes a passage in full, so that looking for passages both finds and misses them.
    answer = rng.choice(passages) if number % 5 == 0 else _passage(rng)
    expected = answer if number % 7 == 0 else _passage(rng)
    events, usage, cost_usd = _events(rng, question, passages, answer)
    return {
        "v": 1,
        "case": {
            "id": f"stock-{number:06d}",
            "query": question,
            "expected_output": expected,
            "tools": list(_TOOLS),
            "context": passages,
            "metadata": {"category": part, "difficulty": rng.randint(1, 5)},
        },
        "trace": {"events": events, "metadata": {"usage": usage, "cost": cost_usd}},
        "outcome": {"success": rng.random() < 0.8, "output": answer, "elapsed_s": round(rng.uniform(2, 40), 3)},
    }


def _events(
    rng: random.Random, question: str, passages: list[str], answer: str
) -> tuple[list[dict[str, Any]], dict[str, int], float]:
    clock_s = 1_760_000_000.0 + rng.random() * 1e6
    events: list[dict[str, Any]] = []
    prompt_tokens = completion_tokens = 0
    cost_usd = 0.0

    def happened(kind: str, payload: dict[str, Any]) -> None:
        nonlocal clock_s
        clock_s += rng.uniform(0.05, 1.5)
        events.append({"type": kind, "payload": payload, "timestamp": round(clock_s, 3)})

    def model_call() -> None:
        nonlocal prompt_tokens, completion_tokens, cost_usd
        model, usd_per_token = rng.choice(_MODELS)
        prompt, completion = rng.randint(300, 4000), rng.randint(10, 300)
        prompt_tokens += prompt
        completion_tokens += completion
        cost_usd += (prompt + 4 * completion) * usd_per_token
        happened("llm_call", {"model": model, "prompt_tokens": prompt, "completion_tokens": completion})

    happened("message", {"role": "user", "content": question})
    documents = [{"id": f"doc-{rng.randint(1, 9999)}", "text": text, "score": rng.random()} for text in passages]
    happened("retrieval", {"query": question, "documents": documents})
    for _ in range(_ROUNDS):
        model_call()
        happened("tool_call", _tool_call(rng))
    for _ in range(2):
        happened("message", {"role": "assistant", "content": _sentence(rng)})
    model_call()
    happened("message", {"role": "assistant", "content": answer})
    usage = {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
    }
    return events, usage, round(cost_usd, 6)


def _tool_call(rng: random.Random) -> dict[str, Any]:
    part_id = f"P-{rng.randint(1000, 9999)}"
    call: dict[str, Any] = {
        "name": rng.choice(_TOOLS),
        "arguments": {"part_id": part_id, "place": rng.choice(_PLACES), "limit": rng.randint(1, 50)},
    }
    if rng.random() < 0.9:
        found = {"part_id": part_id, "count": rng.randint(0, 400), "reserved": rng.random() < 0.2}
        return {**call, "status": "success", "result": {**found, "note": _sentence(rng)}}
    return {**call, "status": "error", "error": "the shelf scanner did not answer within 5 s"}


def _passage(rng: random.Random) -> str:
    sentences: list[str] = []
    n_words = 0
    while n_words < _PASSAGE_WORDS - 4:
        sentence = _sentence(rng)
        sentences.append(sentence)
        n_words += sentence.count(" ") + 1
    return " ".join(sentences)


def _sentence(rng: random.Random) -> str:
    subject = rng.choice(_SUBJECTS)
    amount = rng.randint(2, 90)
    return (
        f"{subject.capitalize()} {rng.choice(_VERBS)} {amount} of the {rng.choice(_PARTS)} parts "
        f"from {rng.choice(_PLACES)} {rng.choice(_TAILS)}."
    )
