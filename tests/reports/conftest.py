from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from kept_records import add_record

import agentunit
from agentunit import DatasetCase, Outcome, Record, TraceLog
from agentunit.datasets.demo import demo_records
from agentunit.reports.reported_run import ReportedRun, open_run
from agentunit.store.sqlite import Store

METRICS = ("task_success", "answer_correctness", "tool_success", "faithfulness", "cost")
HOSTILE = (
    "</script><script>alert(1)</script><!-- <b>x</b> & \"q\" 'a' | `tick` @octocat #12 \x1b[31m\x00\u202e\ufffe =1+1"
)


def keep_run(
    store: Store,
    runs: Sequence[Sequence[Record]],
    *,
    name: str = "desk",
    metrics: Sequence[object] = METRICS,
    gates: Sequence[str] = (),
    run_id: str = "run-1",
) -> str:
    """A finished run of these records; each further list holds the records of one more repeat."""
    header = store.create_run(
        name,
        agentunit_version="0.0.1",
        settings={"gates": list(gates), "agent": "desk:answer", "dataset": "cases.jsonl"},
        n_planned=sum(map(len, runs)),
        run_id=run_id,
        created_at=1_700_000_000.0,
    )
    for repeat, records in enumerate(runs):
        for position, record in enumerate(records):
            failed = record.trace.metadata.get("failure") is not None
            add_record(store, header.id, position, repeat, record, failed=failed, elapsed_s=1.5)
            for case in agentunit.score([record], list(metrics)) if metrics else ():
                store.add_scores(header.id, position, repeat, case.scores)
    store.set_status(header.id, "finished", finished_at=1_700_000_075.0)
    return header.id


def failed_record(case_id: str = "hung", text: str = "Where is it?") -> Record:
    """A case in which the agent gave no answer in time, on the second attempt."""
    metadata = {
        "failure": "timeout",
        "stdout": "asking\nthe carrier",
        "attempts": 2,
        "earlier_failures": ["ValueError"],
    }
    outcome = Outcome(success=False, error="no answer within 5 s")
    return Record(DatasetCase(case_id, text, "Tomorrow."), TraceLog(metadata=metadata), outcome)


def hostile_record() -> Record:
    """Every text of a record is one that tries to be something else."""
    trace = TraceLog()
    trace.record("tool_call", name=HOSTILE, arguments={HOSTILE: HOSTILE}, result=HOSTILE, status="error", error=HOSTILE)
    trace.record("message", role=HOSTILE, content=HOSTILE)
    trace.metadata = {"failure": HOSTILE, "stdout": HOSTILE, HOSTILE: HOSTILE}
    case = DatasetCase(HOSTILE, HOSTILE, [HOSTILE, "b"], context=[HOSTILE], metadata={HOSTILE: HOSTILE})
    return Record(case, trace, Outcome(success=False, output=HOSTILE, error=HOSTILE, state={HOSTILE: HOSTILE}))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "runs.db") as opened:
        yield opened


@pytest.fixture(scope="session")
def demo_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """The bundled recording with one more case, in which the agent failed."""
    with Store(tmp_path_factory.mktemp("demo") / "runs.db") as opened:
        records = [record for record in demo_records() if isinstance(record, Record)]
        gates = ["tool_success[trace] all == 1 coverage 0", "cost p95 <= 0.05"]
        keep_run(opened, [[*records, failed_record()]], gates=gates)
        yield opened


@pytest.fixture
def demo_run(demo_store: Store) -> ReportedRun:
    return open_run("run-1", demo_store)


@pytest.fixture
def faulty_tools(demo_run: ReportedRun) -> list[str]:
    """The cases of the demo in which a tool call failed."""
    rows = demo_run.run.metrics["tool_success"]
    return [row.case_id for row in rows if row.backend == "trace" and row.value is not None and row.value < 1]


@pytest.fixture
def hostile_run(store: Store) -> ReportedRun:
    keep_run(store, [[hostile_record()]], name=HOSTILE, metrics=[*METRICS, "contains"])
    return open_run("run-1", store)


@pytest.fixture
def hostile_text() -> str:
    return HOSTILE


@pytest.fixture
def keep() -> Callable[..., str]:
    return keep_run


@pytest.fixture
def hung() -> Callable[..., Record]:
    return failed_record
