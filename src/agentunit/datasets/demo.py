"""The bundled recording: a small customer desk of agents at an invented shop, really run by our own script."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import as_file, files

from agentunit.core.records import Record
from agentunit.core.results import InputError

DEMO = "demo"
"""What commands call the recording."""
DEMO_METRICS = (
    "task_success",
    "answer_correctness",
    "faithfulness",
    "hallucination_rate",
    "retrieval_quality",
    "tool_success",
    "pii_leakage",
    "tool_trajectory",
    "contains",
    "cost",
    "token_usage",
    "response_time",
)


def demo_records() -> Iterator[Record | InputError]:
    """The records of the demo, as ``agentunit show demo`` scores them."""
    # The list of what commands know is read without it.
    from agentunit.traces.native import RecordFile

    with as_file(files("agentunit.datasets").joinpath("bundled").joinpath("demo.jsonl.gz")) as path:
        yield from RecordFile(path)
