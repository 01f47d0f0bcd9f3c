"""The processes that questions 6 and 7 measure: one run of an agent, or a part of it.

    python -m benchmarks.speed.one_run load DATASET             read the dataset and do nothing with it
    python -m benchmarks.speed.one_run record DATASET           record an agent on it, in the current folder
    python -m benchmarks.speed.one_run interrupt SUITE STORE N  a run of the suite that lacks its last N cases
    python -m benchmarks.speed.one_run resume SUITE STORE       take it up again, until the agent ends the process

The first three print their figures as one JSON object; what the last one prints is the agent's affair.
"""

from __future__ import annotations

import json
import sys
import time
from os import _exit as end_of_process
from pathlib import Path
from typing import Any

import agentunit
from agentunit.core.codec import encode_record
from agentunit.datasets.readers import load_dataset
from agentunit.engine.recording.runner import plan_run, record
from agentunit.engine.recording.suite import load_suite
from agentunit.store.sqlite import Store
from benchmarks.speed.peak_memory import peak_bytes
from benchmarks.speed.recordings import recordings

DISTINCT = 500
"""How many different records a long run is made of, over and over."""


def quote(case: agentunit.DatasetCase, trace: agentunit.TraceLog) -> str:
    """An agent that reads its passages and repeats the first: records about as large as their cases."""
    passages = case.context or [""]
    trace.record("retrieval", query=case.query, documents=[{"text": passage} for passage in passages])
    trace.record("tool_call", name="read", arguments={"passage": 1}, status="success", result=passages[0])
    return passages[0]


def load(dataset: str) -> dict[str, Any]:
    """What it takes to hold the dataset."""
    n_cases = len(load_dataset(dataset))
    return {"n_cases": n_cases, "peak_bytes": peak_bytes()}


def record_all(dataset: str) -> dict[str, Any]:
    """What it takes to record an agent on all of it."""
    with Store("runs.db") as store:
        recording = record(plan_run(agentunit.Suite(dataset=dataset, agent=quote), store), store)
        (kept,) = store.runs()
    if kept.n_done != recording.n_planned or kept.n_failed:
        raise SystemExit(f"every case must be recorded; {kept.n_done} of {recording.n_planned} were")
    return {"n_cases": kept.n_done, "peak_bytes": peak_bytes()}


def interrupt(suite_path: str, store_path: str, n_open: int) -> dict[str, Any]:
    """Put all but the last cases into a store, as a run that was stopped would have left them.

    Cases that bring passages get a whole trace each, the others an answer and nothing else.
    """
    short = [(agentunit.TraceLog(), agentunit.Outcome(output="answer", elapsed_s=0.001))]
    long = [(each.trace, each.outcome) for each in map(agentunit.decode_record, map(json.dumps, recordings(DISTINCT)))]
    with Store(store_path) as store:
        plan = plan_run(load_suite(suite_path), store, suite_path=suite_path)
        work = long if plan.cases[0].context else short
        for position, repeat in plan.open[:-n_open]:
            case = plan.cases[position]
            line = encode_record(agentunit.Record(case, *work[position % len(work)]))
            store.add_lines([(plan.header.id, position, repeat, case.id, 0, 0.001, line)])
        store.set_status(plan.header.id, "stopped")
        (kept,) = store.runs()
    return {"n_cases": len(plan.cases), "n_done": kept.n_done}


def resume(suite_path: str, store_path: str) -> None:
    """Go on with the newest run."""
    with Store(store_path) as store:
        record(plan_run(load_suite(suite_path), store, resume="last", suite_path=suite_path), store)


def first_case_reached(case: agentunit.DatasetCase, note: Path) -> None:
    """The agent of a resumed run: note when it was asked first, and end the process, so that the case stays open."""
    note.write_text(json.dumps({"reached_at": time.time(), "case": case.id}), encoding="utf-8")
    # The runner turns os._exit into an error; here the end is what is measured.
    end_of_process(0)


if __name__ == "__main__":
    action, *given = sys.argv[1:]
    if action == "load":
        print(json.dumps(load(*given)))
    elif action == "record":
        print(json.dumps(record_all(*given)))
    elif action == "interrupt":
        print(json.dumps(interrupt(given[0], given[1], int(given[2]))))
    else:
        resume(*given)
