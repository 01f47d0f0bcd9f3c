"""What a store takes: microseconds of processor time a record for writing and for a run's summary, memory and size.

    python -m benchmarks.store                       10,000 and 100,000 records, in a temporary SQLite file
    python -m benchmarks.store --records 1000000     another number
    python -m benchmarks.store --store URL           a store of your own; the run is removed afterwards

A record is one question, two tool calls and an answer, about 2.5 kB; five exact metrics score it. Records and scores
are made before the clock starts. Memory is how much the peak grew while the summary was made.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import NamedTuple

import agentunit
from agentunit.core.case import DatasetCase
from agentunit.core.codec import encode_record
from agentunit.core.records import Outcome, Record
from agentunit.core.results import Score
from agentunit.core.trace import TraceLog
from agentunit.engine.scoring.records import Run
from agentunit.engine.scoring.scored_run import infos_as_data, run_from_store
from agentunit.metrics.registry import resolve_metrics
from agentunit.store import open_store
from agentunit.store.run_store import RunStore
from agentunit.store.score_blocks import BLOCK_SIZE, ScoreBuffer
from benchmarks.speed.peak_memory import peak_bytes

METRICS = ("exact_match", "tool_success", "cost", "token_usage", "response_time")
_DISTINCT = 500
_LINES_AT_ONCE = 64
_WORDS = (
    "bearing",
    "gasket",
    "hinge",
    "pulley",
    "valve",
    "shelf",
    "dock",
    "pallet",
    "weighs",
    "returns",
    "before",
    "noon",
)


class Figures(NamedTuple):
    """What was measured, for one number of records."""

    n_records: int
    write_us: float
    summary_us: float
    summary_grew_bytes: int
    bytes_a_record: float | None


def records(n: int, seed: int = 19) -> Iterator[Record]:
    """Records of a warehouse agent, the same on every machine."""
    rng = random.Random(seed)

    def text(n_words: int) -> str:
        return " ".join(rng.choice(_WORDS) for _ in range(n_words))

    for number in range(n):
        trace = TraceLog(metadata={"usage": {"prompt_tokens": rng.randrange(9000), "completion_tokens": 300}})
        for tool in ("find_part", "count_stock"):
            arguments = {"part": text(2), "place": text(3), "limit": rng.randrange(99)}
            trace.record("tool_call", name=tool, arguments=arguments, status="success", result=text(60))
        trace.record("message", role="assistant", content=text(40))
        answer = text(40)
        expected = answer if number % 3 else text(40)
        yield Record(
            DatasetCase(f"stock-{number}", text(20), expected_output=expected),
            trace,
            Outcome(success=True, output=answer, cost=rng.random() / 50, elapsed_s=rng.random()),
        )


def measure(store: RunStore, n_records: int, file: str | None) -> Figures:
    """Write a run of so many records, and make its summary."""
    metrics = resolve_metrics(list(METRICS))
    distinct = list(records(min(_DISTINCT, n_records)))
    lines = [encode_record(each) for each in distinct]
    scored = [case.scores for case in Run(iter(distinct), metrics, aggregated=False)]
    settings = {"metrics": [metric.name for metric in metrics], "metric_infos": infos_as_data(metrics)}
    run_id = store.create_run("benchmark", agentunit_version=agentunit.__version__, settings=settings).id
    try:
        began = time.process_time()
        _write(store, run_id, n_records, lines, scored)
        written = time.process_time()
        before = peak_bytes()
        summary = run_from_store(store, run_id).summary()
        summarized = time.process_time()
        if summary.n_records != n_records or any(row.n_cases != n_records for row in summary.metrics):
            raise SystemExit(f"the summary must be of {n_records} records; it is of {summary.n_records}")
        size = None if file is None else os.path.getsize(file) / n_records
        return Figures(
            n_records,
            (written - began) / n_records * 1e6,
            (summarized - written) / n_records * 1e6,
            peak_bytes() - before,
            size,
        )
    finally:
        store.delete_run(run_id)


def _write(store: RunStore, run_id: str, n: int, lines: list[bytes], scored: list[dict[str, Score]]) -> None:
    numbered = enumerate(islice(cycle(lines), n))
    while rows := [(run_id, p, 0, f"stock-{p}", 0, 0.5, line) for p, line in islice(numbered, _LINES_AT_ONCE)]:
        store.add_lines(rows)
    places = enumerate(islice(cycle(scored), n))
    waiting = ScoreBuffer()
    for position, scores in places:
        waiting.add(position, 0, scores)
        if waiting.n_cases == BLOCK_SIZE:
            store.add_blocks(run_id, waiting.take())
    store.add_blocks(run_id, waiting.take())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--records", type=int, action="append", help="how many records; may be repeated")
    parser.add_argument("--store", help="a store to measure instead of a temporary SQLite file")
    options = parser.parse_args()
    print(f"{'records':>10}{'write µs':>12}{'summary µs':>12}{'memory MB':>12}{'bytes':>10}   (a record, but memory)")
    for n_records in options.records or (10_000, 100_000):
        with tempfile.TemporaryDirectory(prefix="agentunit-store-") as folder:
            file = None if options.store else str(Path(folder) / "runs.db")
            with open_store(options.store or str(file)) as store:
                figures = measure(store, n_records, file)
        size = "" if figures.bytes_a_record is None else f"{figures.bytes_a_record:,.0f}"
        grew = figures.summary_grew_bytes / 1e6
        print(
            f"{n_records:>10,}{figures.write_us:>12.1f}{figures.summary_us:>12.1f}{grew:>12.1f}{size:>10}", flush=True
        )


if __name__ == "__main__":
    main()
