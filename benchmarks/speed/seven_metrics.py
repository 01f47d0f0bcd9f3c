"""The process that question 4 measures: decode a file of records, or score it with the catalog's seven core metrics.

    python -m benchmarks.speed.seven_metrics time FILE ROUNDS
    python -m benchmarks.speed.seven_metrics memory FILE REPEATS

Prints its figures as one JSON object.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

import agentunit
from agentunit.metrics.builtin import (
    AnswerCorrectnessMetric,
    FaithfulnessMetric,
    HallucinationRateMetric,
    RetrievalQualityMetric,
)
from agentunit.metrics.usage import prices_installed
from benchmarks.speed.peak_memory import peak_bytes

_WARM_UP_RECORDS = 100


def seven_metrics() -> list[Any]:
    """The seven metrics; the quality ones without a model, whatever is installed."""
    quality = (FaithfulnessMetric, AnswerCorrectnessMetric, HallucinationRateMetric, RetrievalQualityMetric)
    return [*(metric(backend="lexical") for metric in quality), "tool_success", "cost", "token_usage"]


def decode(path: str) -> int:
    """Read every record and do nothing with it."""
    return sum(1 for _ in agentunit.read_records(path))


def score(records: Iterator[Any]) -> int:
    """Score every record, look at each case once, and make the summary."""
    run = agentunit.score(records, seven_metrics())
    for _ in run:
        pass
    summary = run.summary()
    # Only a cost may be unknown: without recorded totals it takes the optional price table.
    unscored = [entry for entry in summary.unscored if entry.metric != "cost"]
    if summary.n_input_errors or summary.n_score_errors or unscored:
        raise SystemExit(f"every record must be scored by every metric; it was not: {unscored[:1]}")
    return summary.n_cases


def time_both(path: str, rounds: int) -> dict[str, Any]:
    """Seconds of decoding and of scoring, in turn, so that both meet the same noise."""
    score(islice(agentunit.read_records(path), _WARM_UP_RECORDS))
    decode_s: list[float] = []
    score_s: list[float] = []
    n_records = 0
    for _ in range(rounds):
        start = time.perf_counter()
        n_records = decode(path)
        middle = time.perf_counter()
        score(agentunit.read_records(path))
        decode_s.append(middle - start)
        score_s.append(time.perf_counter() - middle)
    return {"n_records": n_records, "decode_s": decode_s, "score_s": score_s, "prices": prices_installed()}


def peak_memory(path: str, repeats: int) -> dict[str, Any]:
    """The largest resident size of this process after scoring the file several times over as one stream."""
    n_records = score(agentunit.read_records(*[path] * repeats))
    return {"n_records": n_records, "peak_bytes": peak_bytes()}


if __name__ == "__main__":
    action, file, count = sys.argv[1:]
    print(json.dumps(time_both(file, int(count)) if action == "time" else peak_memory(file, int(count))))
