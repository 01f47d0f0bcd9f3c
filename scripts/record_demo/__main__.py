"""Run the desk over all questions and write the recording: ``python -m scripts.record_demo [FILE]``."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from .desk import answer
from .questions import QUESTIONS, Question
from .session import Session
from .tools import TOOL_NAMES

BUNDLED = Path(__file__).parents[2] / "src" / "agentunit" / "datasets" / "bundled" / "demo.jsonl.gz"


def _clock_s(hour: int, minute: int) -> float:
    return datetime(2025, 10, 14, hour, minute, tzinfo=timezone.utc).timestamp()


OPENING_S, CLOSING_S = _clock_s(8, 30), _clock_s(12, 30)
# The price list was being replaced, then the usage meter restarted: what was not metered is unknown.
NO_PRICES_S = _clock_s(10, 2), _clock_s(10, 14)
NO_METER_S = _clock_s(10, 14), _clock_s(10, 25)


def arrivals() -> list[tuple[str, float, Question]]:
    """Case id, arrival time and question. Ordered by digest: the topics mix, the same way every time."""
    queue = sorted(QUESTIONS, key=lambda question: hashlib.sha256(question.text.encode()).digest())
    gap_s = (CLOSING_S - OPENING_S) / len(queue)
    draw = random.Random("record-demo arrivals").random
    return [
        (f"desk-{index:03d}", round(OPENING_S + gap_s * (index - 1 + 0.8 * draw()), 3), question)
        for index, question in enumerate(queue, start=1)
    ]


def run(case_id: str, start_s: float, question: Question) -> dict[str, Any]:
    """One question through the desk, as one record."""
    metered = not NO_METER_S[0] <= start_s < NO_METER_S[1]
    priced = metered and not NO_PRICES_S[0] <= start_s < NO_PRICES_S[1]
    session = Session(case_id, start_s, metered)
    output: str | None = None
    error: str | None = None
    settled = False
    try:
        reply = answer(session, question.text)
        output, settled = reply.text, reply.settled
    except Exception as failure:  # noqa: BLE001 - a crash of the desk is part of the recording
        error = f"{type(failure).__name__}: {failure}"
    usage = session.usage() if metered else None
    cost_usd = round(session.cost_usd, 6) if priced else None
    known = {"usage": usage, "cost": cost_usd}
    return {
        "v": 1,
        "case": _case(case_id, question),
        "trace": session.trace({key: value for key, value in known.items() if value is not None}),
        "outcome": {
            "success": settled,
            "output": output,
            "cost": cost_usd,
            "usage": usage,
            "error": error,
            "state": session.tools.state(),
        },
    }


def _case(case_id: str, question: Question) -> dict[str, Any]:
    metadata: dict[str, Any] = {"category": question.category}
    if question.calls:
        metadata["expected_tool_calls"] = list(question.calls)
    if question.state:
        metadata["expected_state"] = question.state
    if question.contains:
        metadata["contains"] = list(question.contains)
    return {
        "id": case_id,
        "query": question.text,
        "expected_output": question.expected,
        "context": question.context(),
        "tools": TOOL_NAMES,
        "metadata": metadata,
    }


def write(path: Path) -> list[dict[str, Any]]:
    """Run the whole morning and write it; the same code gives the same bytes."""
    records = [run(*arrival) for arrival in arrivals()]
    lines = [json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n" for record in records]
    with path.open("wb") as file, gzip.GzipFile("", "wb", compresslevel=9, fileobj=file, mtime=0) as packed:
        packed.write("".join(lines).encode())
    return records


def main(arguments: list[str]) -> None:
    """Write to the given file, or over the bundled recording."""
    path = Path(arguments[0]) if arguments else BUNDLED
    records = write(path)
    print(f"{path.name}: {len(records)} records, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
