"""Recording: an agent on every case of a dataset, each case durable the moment it ends."""

from __future__ import annotations

import asyncio
import hashlib
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import agentunit
from agentunit.adapters.base import Agent, AgentResult, as_agent
from agentunit.core.case import DatasetCase
from agentunit.core.codec import RecordError, decode_record, encode_record
from agentunit.core.outcome import Outcome
from agentunit.core.records import Record
from agentunit.core.trace import TraceLog
from agentunit.datasets.readers import fingerprint, load_dataset
from agentunit.engine.suite import Suite, SuiteError
from agentunit.metrics.inputs import InputProblem, Item
from agentunit.metrics.registry import resolve_metrics
from agentunit.metrics.usage import recorded_cost
from agentunit.store.sqlite import RunHeader, Store

_TICK_S = 0.25
_RETRIED = ("raised", "timeout", "died", "exit")


@dataclass
class Plan:
    """What a run has to do: its cases, and which of their repeats are still open."""

    suite: Suite
    header: RunHeader
    agent: Agent
    cases: list[DatasetCase]
    open: list[tuple[int, int]]


@dataclass
class Recording:
    """How recording stands. ``spend_usd`` adds up what the traces say they cost; ``stopped`` means by the user."""

    n_planned: int
    n_before: int = 0
    n_done: int = 0
    n_failed: int = 0
    spend_usd: float = 0.0
    stopped: bool = False
    failures: dict[str, int] = field(default_factory=dict)


def plan_run(
    suite: Suite,
    store: Store,
    *,
    resume: str | None = None,
    retry_failed: bool = False,
    suite_path: str | None = None,
    limit: int | None = None,
) -> Plan:
    """Begin a run, or take one up where it stopped: no finished case is repeated, none is lost."""
    header = store.find_run(resume) if resume is not None else None
    if header is not None:
        limit = header.settings.get("limit")
    cases = load_dataset(suite.dataset, folder=suite.folder)[:limit]
    if not cases:
        raise SuiteError("the dataset holds no cases")
    # Before the run exists: an agent that cannot be called must not leave an empty run behind.
    agent = as_agent(suite.agent, workers=suite.concurrency)
    wanted = [(position, repeat) for repeat in range(suite.repeats) for position in range(len(cases))]
    settings = {
        "suite": suite_path,
        "metrics": [metric.name for metric in resolve_metrics(suite.metrics)],
        "gates": list(suite.gates),
        "min_coverage": suite.min_coverage,
        "max_errors": suite.max_errors,
        "repeats": suite.repeats,
        "seed": suite.seed,
        "timeout_s": suite.timeout_s,
        "retries": suite.retries,
        "concurrency": suite.concurrency,
        "limit": limit,
        "dataset": str(suite.dataset) if isinstance(suite.dataset, str) else type(suite.dataset).__name__,
        "dataset_fingerprint": fingerprint(cases),
        "agent": getattr(suite.agent, "__qualname__", None) or str(suite.agent)[:200],
    }
    if header is None:
        header = store.create_run(
            suite.name, agentunit_version=agentunit.__version__, settings=settings, n_planned=len(wanted)
        )
        return Plan(suite, header, agent, cases, wanted)
    if header.settings.get("dataset_fingerprint") != settings["dataset_fingerprint"]:
        raise SuiteError(
            f"run {header.id} was recorded on another dataset: resuming it would mix the two "
            "(begin a new run, or restore the dataset)"
        )
    done = store.finished(header.id, failed=False if retry_failed else None)
    store.update_run(header.id, settings, n_planned=len(wanted))
    store.set_status(header.id, "running")
    return Plan(suite, header, agent, cases, [each for each in wanted if each not in done])


def record(
    plan: Plan,
    store: Store,
    *,
    on_progress: Callable[[Recording], None] = lambda recording: None,
    stop: threading.Event | None = None,
) -> Recording:
    """Run the agent on every open case of a plan. Ctrl-C stops cleanly and keeps everything that was finished."""
    recording = Recording(n_planned=len(plan.open), n_before=(plan.header.n_planned or 0) - len(plan.open))
    if plan.open:
        asyncio.run(_record(plan, store, recording, on_progress, stop or threading.Event()))
    store.set_status(plan.header.id, "stopped" if recording.stopped else "finished")
    return recording


async def _record(
    plan: Plan,
    store: Store,
    recording: Recording,
    on_progress: Callable[[Recording], None],
    stop: threading.Event,
) -> None:
    todo = iter(plan.open)

    async def worker() -> None:
        for position, repeat in todo:
            if stop.is_set():
                return
            finished = await _run_case(plan, position, repeat)
            _keep(plan, store, recording, position, repeat, finished)
            on_progress(recording)

    limit = min(plan.suite.concurrency, len(plan.open), plan.agent.concurrency_hint or plan.suite.concurrency)
    workers = [asyncio.create_task(worker()) for _ in range(max(1, limit))]
    try:
        with _interrupts(stop):
            await _until_done(workers, stop, recording, on_progress)
    finally:
        for task in workers:
            task.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        await plan.agent.close()


async def _until_done(
    workers: Sequence[asyncio.Task[None]],
    stop: threading.Event,
    recording: Recording,
    on_progress: Callable[[Recording], None],
) -> None:
    pending: set[asyncio.Task[None]] = set(workers)
    while pending:
        done, pending = await asyncio.wait(pending, timeout=_TICK_S, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
        on_progress(recording)
        if stop.is_set():
            break
    # A stop that came with the last case has stopped nothing.
    recording.stopped = recording.n_done < recording.n_planned


@contextmanager
def _interrupts(stop: threading.Event) -> Iterator[None]:
    """Ctrl-C asks for a clean stop; a second one is not held back."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    earlier = signal.getsignal(signal.SIGINT)

    def ask(number: int, frame: Any) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, earlier)


async def _run_case(plan: Plan, position: int, repeat: int) -> AgentResult:
    """One case, tried again with a fresh trace as often as the suite allows."""
    suite = plan.suite
    earlier: list[str] = []
    while True:
        seed = case_seed(suite.seed, position, repeat, len(earlier))
        result = await plan.agent.run(plan.cases[position], timeout_s=suite.timeout_s, seed=seed)
        if seed is not None:
            result.trace.metadata.setdefault("seed", seed)
        if result.failure not in _RETRIED or len(earlier) >= suite.retries:
            break
        earlier.append(result.outcome.error or result.failure or "failed")
    if earlier:
        result.trace.metadata["attempts"] = len(earlier) + 1
        result.trace.metadata["earlier_failures"] = earlier
    return result


def case_seed(seed: int | None, position: int, repeat: int, attempt: int = 0) -> int | None:
    """A seed of its own for each case, repeat and attempt: the same in every run with the same suite seed.

    >>> case_seed(7, 0, 0) == case_seed(7, 0, 0), case_seed(7, 0, 0) == case_seed(7, 0, 1), case_seed(None, 0, 0)
    (True, False, None)
    """
    if seed is None:
        return None
    digest = hashlib.sha256(f"{seed}/{position}/{repeat}/{attempt}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def _keep(plan: Plan, store: Store, recording: Recording, position: int, repeat: int, result: AgentResult) -> None:
    line, failure = _written(plan.cases[position], result)
    store.add_line(
        plan.header.id,
        position,
        repeat,
        plan.cases[position].id,
        line,
        failed=failure is not None,
        elapsed_s=result.elapsed_s,
    )
    recording.n_done += 1
    if failure is not None:
        recording.n_failed += 1
        recording.failures[failure] = recording.failures.get(failure, 0) + 1
    with suppress(InputProblem):
        recording.spend_usd += recorded_cost(Item(None, result.trace, result.outcome)) or 0.0


def _written(case: DatasetCase, result: AgentResult) -> tuple[bytes, str | None]:
    """The record as it will be read back. What cannot be written is a failure of the case, not of the run."""
    outcome = result.outcome
    if outcome.elapsed_s is None:
        outcome.elapsed_s = result.elapsed_s
    try:
        line = encode_record(Record(case, result.trace, outcome))
        decode_record(line)
    except (RecordError, TypeError, ValueError, RecursionError) as error:
        message = f"what the agent returned or traced cannot be written as JSON: {error}"
        told = Outcome(success=False, error=message, elapsed_s=result.elapsed_s)
        return encode_record(Record(case, TraceLog(metadata={"failure": "wrong_type"}), told)), "wrong_type"
    return line, result.failure


def rerun_cases(
    plan: Plan, case_ids: Iterable[str], store: Store, *, on_progress: Callable[[Recording], None] = lambda _: None
) -> Recording:
    """Run some cases of a finished run anew; the new records take the place of the old, and their scores go."""
    wanted = set(case_ids)
    positions = [position for position, case in enumerate(plan.cases) if case.id in wanted]
    plan.open = [(position, repeat) for repeat in range(plan.suite.repeats) for position in positions]
    return record(plan, store, on_progress=on_progress)
