"""Recording: an agent on every case of a dataset, each case durable within milliseconds of its end."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from math import inf
from typing import Any, Literal, NoReturn
from urllib.parse import urlsplit, urlunsplit

from msgspec import structs

import agentunit
from agentunit.adapters.base import Agent, AgentResult, as_agent
from agentunit.adapters.bound_function import SET_PREFIX
from agentunit.adapters.threads_and_processes import outside_loops
from agentunit.backends.services import configure_judge, judge_described
from agentunit.core.case import DatasetCase
from agentunit.core.codec import RecordError, decode_record, encode_record
from agentunit.core.conversation import SIMULATED_USER, ConversationError, user_failure, user_kind
from agentunit.core.records import Outcome, Record
from agentunit.core.score_block import Place
from agentunit.core.trace import TraceLog
from agentunit.datasets.readers import fingerprint, load_dataset
from agentunit.engine.deciding.known_failures import marks_of, unmarked
from agentunit.engine.recording.agent_view import AgentView, agent_view
from agentunit.engine.recording.end_signals import heard_by
from agentunit.engine.recording.probing import probe_settings
from agentunit.engine.recording.provenance import agent_version, git_state, names_read
from agentunit.engine.recording.suite import Suite, SuiteError
from agentunit.engine.scoring.case_fields import clusters_of
from agentunit.engine.scoring.judging import judge_run, judged_metrics, spend_of_run
from agentunit.engine.scoring.scored_run import infos_as_data, is_undecided
from agentunit.metrics.base import describe_error
from agentunit.metrics.inputs import InputProblem, Item
from agentunit.metrics.registry import resolve_metrics
from agentunit.probes import probe_settings as probes
from agentunit.store.run_store import RunStore
from agentunit.store.runs import (
    DATASET_CASES,
    KNOWN_FAILURES,
    RETRIED_FAILED,
    RunHeader,
    RunTaken,
    WrittenRecord,
    is_again,
    without_tries_again,
)
from agentunit.store.schema import StoreError

_TICK_S = 0.25
_RETRIED = ("raised", "timeout", "died", "exit")
# Cases that end faster than this are written together; one that ends later is written at once.
_WRITE_EVERY_S = 0.002
_MOST_UNWRITTEN = 64
# Of the records of a run, so much (as they are written) stays in memory until they are scored.
_KEPT_BYTES = 16 << 20
_JSON_FILE = re.compile(r"\.(json|jsonl|ndjson)(\.gz|\.zst)?$", re.IGNORECASE)


@dataclass
class Plan:
    """What a run has to do: its cases, and which of their repeats are still open."""

    suite: Suite
    header: RunHeader
    agent: Agent
    cases: list[DatasetCase]
    open: list[tuple[int, int]]
    view: AgentView
    cases_are_plain: bool = False
    """Whether the cases are JSON data, so that a record that is written and read back holds the same ones."""
    probes: probes.ProbeSettings | None = None
    resumed_with: dict[str, Any] | None = None
    """The settings of a run that is taken up; written when its recording begins, and no other process has it."""
    failed_before: dict[Place, str] = field(default_factory=dict)
    """Why the agent failed at first in what is recorded once more: what passes then is flaky, not fine."""

    @property
    def plays_users(self) -> bool:
        """Whether a judge plays the user of a case."""
        return any(user_kind(case) == "judge" for case in self.cases)


@dataclass(frozen=True)
class Caps:
    """What recording may take: no case begins once the traces say that so much was spent, none goes on after the time.

    Cases that are under way when the money is spent are finished and kept, because they are paid for.
    """

    cost_usd: float | None = None
    time_s: float | None = None


@dataclass
class Recording:
    """How recording stands. ``spend_usd`` adds up what the traces say they cost.

    ``stopped`` means before all cases were done, by the user or by a cap; ``capped_by`` says which cap was reached.
    ``n_user_failed`` counts cases in which the simulated user failed, which are no failures of the agent.
    ``records`` are the first records, by position and repeat, for scoring: they need not be read again.
    """

    n_planned: int
    n_done: int = 0
    n_failed: int = 0
    spend_usd: float = 0.0
    stopped: bool = False
    capped_by: Literal["cost", "time"] | None = None
    failures: dict[str, int] = field(default_factory=dict)
    n_user_failed: int = 0
    records: dict[tuple[int, int], Record] = field(default_factory=dict)
    n_kept_bytes: int = 0


NO_CAPS = Caps()


def plan_run(
    suite: Suite,
    store: RunStore,
    *,
    resume: str | None = None,
    retry_failed: bool = False,
    suite_path: str | None = None,
    limit: int | None = None,
    name: str | None = None,
    tags: Mapping[str, str] | None = None,
    variables: Mapping[str, str] | None = None,
    changed_agent: bool = False,
    until_decided: Mapping[str, Any] | None = None,
    held_to: Mapping[str, Any] | None = None,
    only: Sequence[str] | None = None,
    before: Callable[[Sequence[DatasetCase], int], None] = lambda cases, n_open: None,
) -> Plan:
    """Begin a run, or take one up where it stopped: no finished case is repeated, none is lost.

    ``before`` is told the cases and how many runs of them are open. What it raises leaves the store as it was.
    A new run gets ``name`` in place of the suite's, ``tags``, and a note of the ``variables`` it was set to. One that
    another version of the agent has begun is taken up only with ``changed_agent``. ``until_decided`` is what a run that
    ends when its questions are answered keeps about them. ``held_to`` says which baseline it is held against and how,
    so that a run that is taken up is held to the same; ``only`` are the ids of the cases to run, where not all are.
    """
    header = store.find_run(resume) if resume is not None else None
    if header is not None:
        limit = header.settings.get("limit")
    cases = load_dataset(suite.dataset, folder=suite.folder)
    n_in_dataset = len(cases)
    cases = cases[:limit]
    if not cases:
        raise SuiteError("the dataset holds no cases")
    # Before the run exists: an agent that cannot be called must not leave an empty run behind.
    agent = _usable_agent(suite)
    if header is None:
        _refuse_unread(variables or {}, suite, agent)
    if suite.store == "masked":
        store.masking.turn_on()
    if suite.judge:
        configure_judge(**suite.judge)
    judge_plays = _check_users(cases)
    metrics = resolve_metrics(suite.metrics)
    measured = probe_settings(metrics)
    view = agent_view(suite, metrics)
    plain = isinstance(suite.dataset, str) and _JSON_FILE.search(suite.dataset) is not None
    if header is not None:
        only = header.settings.get("only")
    positions = [position for position, case in enumerate(cases) if only is None or case.id in only]
    wanted = [(position, repeat) for repeat in range(suite.repeats) for position in positions]
    marks = marks_of(cases)
    settings: dict[str, Any] = {
        "suite": None if suite_path is None else os.path.abspath(suite_path),
        "metrics": [metric.name for metric in metrics],
        "metric_infos": infos_as_data(metrics),
        "gates": list(suite.gates),
        "min_coverage": suite.min_coverage,
        "max_errors": suite.max_errors,
        "repeats": suite.repeats,
        "seed": suite.seed,
        "timeout_s": suite.timeout_s,
        "isolation": suite.isolation,
        "retries": suite.retries,
        "concurrency": suite.concurrency,
        "limit": limit,
        "dataset": str(suite.dataset) if isinstance(suite.dataset, str) else type(suite.dataset).__name__,
        DATASET_CASES: n_in_dataset,
        "dataset_fingerprint": fingerprint(map(unmarked, cases) if marks else cases),
        KNOWN_FAILURES: marks,
        "agent": describe_agent(suite.agent),
        "agent_version": suite.agent_version or agent_version(suite.agent, suite.folder),
        "git": git_state(suite.folder),
        "grader_fields": list(suite.grader_fields),
        "agent_fields": None if suite.agent_fields is None else list(suite.agent_fields),
    }
    if not suite.try_again:
        settings["try_again"] = False
    settings.update(held_to or {})
    if only is not None:
        settings["only"] = list(only)
    if suite.cluster is not None:
        numbers = clusters_of((case.metadata for case in cases), suite.cluster)
        settings["cluster"] = {"field": suite.cluster, "by_position": numbers}
    if judged_metrics(metrics) or judge_plays:
        settings["judge"] = judge_described()
    if until_decided is not None:
        settings["until_decided"] = dict(until_decided)
    users = sorted({kind for case in cases if (kind := user_kind(case)) is not None})
    if users:
        settings["users"] = users
    if header is None:
        settings["tags"] = {**(variables or {}), **(tags or {})}
        if variables:
            settings["set"] = dict(variables)
        before(cases, len(wanted))
        header = store.create_run(
            name or suite.name, agentunit_version=agentunit.__version__, settings=settings, n_planned=len(wanted)
        )
        return Plan(suite, header, agent, cases, wanted, view, plain, measured)
    if header.settings.get("dataset_fingerprint") != settings["dataset_fingerprint"]:
        raise SuiteError(
            f"run {header.id} was recorded on another dataset: resuming it would mix the two "
            "(begin a new run, or restore the dataset)"
        )
    if header.settings.get("agent") not in (None, settings["agent"]):
        raise SuiteError(
            f"run {header.id} was recorded with the agent {header.settings['agent']}, this suite has "
            f"{settings['agent']}: resuming it would mix the two (begin a new run)"
        )
    done = store.finished(header.id, failed=False if retry_failed else None)
    failed_before: dict[Place, str] = {}
    if retry_failed:
        settings[RETRIED_FAILED] = True
        for stored in store.records(header.id, failed=True):
            failed_before[stored.place] = str(getattr(stored.record.outcome, "error", None) or "failed")
    if retry_failed and users:
        done -= {
            each.place for each in store.records(header.id, failed=False) if user_failure(each.record.trace) is not None
        }
    # A run until decided, or one begun with more repeats, has runs beyond those of the suite: they are kept, too.
    planned = without_tries_again(store.finished(header.id))
    wanted += sorted(planned.difference(wanted), key=lambda place: (place[1], place[0]))
    earlier = header.settings.get("agent_version")
    if done and None not in (earlier, settings["agent_version"]) and earlier != settings["agent_version"]:
        if not changed_agent:
            raise SuiteError(
                f"run {header.id} was recorded with version {earlier} of the agent, it is {settings['agent_version']} "
                "now: resuming it would mix the two (begin a new run, or say --changed-agent)"
            )
        if all(each in done for each in wanted) and until_decided is None:
            settings["agent_version"] = earlier
        else:
            settings["earlier_agent_versions"] = _earlier_versions(header.settings)
            # Another agent makes up for nothing.
            failed_before.clear()
    # What others wrote there since, such as facts about metrics that were scored later, stays.
    infos = infos_as_data(metrics, header.settings.get("metric_infos"))
    settings = {**header.settings, **settings, "metric_infos": infos}
    if until_decided is None:
        # Evidence about the runs so far says nothing once others join them.
        settings.pop("until_decided", None)
    before(cases, sum(each not in done for each in wanted))
    header.n_planned = len(wanted)
    wanted = [each for each in wanted if each not in done]
    return Plan(suite, header, agent, cases, wanted, view, plain, measured, settings, failed_before)


def _has_user(case: DatasetCase) -> bool:
    """Whether a case is a conversation, with a user who is played."""
    return case.turns is not None or case.user is not None


def _check_users(cases: Sequence[DatasetCase]) -> bool:
    """Refuse users that cannot be played; whether a judge model plays one."""
    if not any(map(_has_user, cases)):
        return False
    from agentunit.engine.recording.simulated_user import check_users

    try:
        return check_users(cases)
    except ConversationError as error:
        raise SuiteError(str(error)) from None


def _earlier_versions(settings: Mapping[str, Any]) -> list[str]:
    """The versions of the agent that a run was recorded with, when another one goes on with it."""
    return list(dict.fromkeys([*(settings.get("earlier_agent_versions") or ()), settings["agent_version"]]))


class AgentError(SuiteError):
    """An agent that cannot be called: it is not there, or asks for what no case has."""


def _usable_agent(suite: Suite) -> Agent:
    try:
        return as_agent(suite.agent, workers=suite.concurrency, isolation=suite.isolation)
    except (TypeError, ImportError, AttributeError, ValueError) as error:
        raise AgentError(f"agent: {error}") from None
    except (Exception, SystemExit) as error:  # noqa: BLE001  # an agent's module is a user's own code
        raise AgentError(f"agent: {describe_error(error)}") from None


def _refuse_unread(variables: Mapping[str, str], suite: Suite, agent: Agent) -> None:
    """Refuse a variable that nothing reads: every value of it would give the same run.

    Only of functions and addresses one can know. A command may do what it likes with its environment.
    """
    takes: Sequence[str] | None = getattr(agent, "settable", None)
    if takes is None or all(name in takes for name in variables):
        return
    read = names_read(suite.agent, suite.folder, SET_PREFIX)
    for name in variables:
        if name in takes or "" in read or name.upper() in read:
            continue
        known = {each.lower(): each for each in (*(word.lower() for word in read), *takes)}
        near = get_close_matches(name.lower(), known, n=1)
        hint = f"; did you mean {known[near[0]]!r}?" if near else ""
        raise AgentError(
            f"--set {name}: the agent has no parameter {name!r}, and nothing reads {SET_PREFIX}{name.upper()}{hint} "
            f"(--tag {name}={variables[name]} only notes it)"
        )


def describe_agent(agent: Any) -> str:
    """What a run says about its agent: enough to know it by, and nothing that may be secret.

    >>> describe_agent("https://me:hunter2@desk.example/ask?key=sk-1"), describe_agent("command: desk --token=sk-1")
    ('https://desk.example/ask', 'command: desk')
    """
    if isinstance(agent, str):
        if agent.startswith(("http://", "https://")):
            address = urlsplit(agent)
            return urlunsplit((address.scheme, address.hostname or "", address.path, "", ""))
        if agent.startswith("command:"):
            return "command: " + next(iter(agent.removeprefix("command:").split()), "")
        return agent[:200]
    return str(getattr(agent, "__qualname__", None) or type(agent).__qualname__)


def record(
    plan: Plan,
    store: RunStore,
    *,
    on_progress: Callable[[Recording], None] = lambda recording: None,
    stop: threading.Event | None = None,
    caps: Caps = NO_CAPS,
) -> Recording:
    """Run the agent on every open case of a plan. Ctrl-C stops cleanly and keeps everything that was finished.

    So does a cap that is reached.
    """
    recording = Recording(n_planned=len(plan.open))
    is_lost = False
    with only_writer(store, plan.header.id):
        if plan.resumed_with is not None:
            store.update_run(plan.header.id, plan.resumed_with, n_planned=plan.header.n_planned)
            # Once: the next recording of the plan would undo what was noted meanwhile.
            plan.resumed_with = None
        if not plan.open:
            _set_final_status(store, plan.header.id)
            return recording
        _drop_tries_again(plan, store)
        store.set_status(plan.header.id, "running")
        stop = stop or threading.Event()
        try:
            plays_users = plan.plays_users
            with (
                _no_silent_exit(),
                judge_run([], plays_users=plays_users),
                spend_of_run(store, plan.header.id, [], plays_users=plays_users),
            ):
                recorded = partial(_record, plan, store, recording, on_progress, stop, caps)
                # Only the main thread hears signals.
                outside_loops(lambda: asyncio.run(recorded()), while_waiting=_interrupts(stop))
        except KeyboardInterrupt:
            # The second Ctrl-C does not wait for the agents, but keeps as much as the first.
            recording.stopped = recording.n_done < recording.n_planned
        except SystemExit:
            raise SuiteError(
                "the agent called sys.exit in a callback of the event loop, which ends it; what was finished is "
                "kept ('isolation: process' in the suite runs it in a process of its own)"
            ) from None
        except StoreError:
            is_lost = True
            raise
        finally:
            # Where a record cannot be written the status cannot be either: what went wrong first is what counts.
            with suppress(StoreError) if is_lost else nullcontext():
                _set_final_status(store, plan.header.id)
    return recording


def _drop_tries_again(plan: Plan, store: RunStore) -> None:
    """Delete the tries again of cases whose planned records are run anew: they confirm what goes."""
    finished = store.finished(plan.header.id)
    run_anew = without_tries_again(plan.open) & finished
    # Where the agent failed, its tries again say what became of it, whatever it answers now.
    replaced = {place[0] for place in run_anew if place not in plan.failed_before}
    dropped = {place for place in finished if is_again(place[1]) and place[0] in replaced}
    if dropped:
        store.delete_records(plan.header.id, dropped)


def _set_final_status(store: RunStore, run_id: str) -> None:
    header = store.find_run(run_id)
    whole = header.n_planned is None or header.n_done >= header.n_planned
    # Between two looks at the evidence all that is planned so far is done, and yet the run is not.
    whole = whole and not is_undecided(header.settings)
    store.set_status(run_id, "finished" if whole else "stopped")


@contextmanager
def _no_silent_exit() -> Iterator[None]:
    """An agent in this process that calls ``os._exit`` ends the run; that must not look like a run that passed."""
    leave, here = os._exit, os.getpid()

    def told(status: int) -> NoReturn:
        if os.getpid() == here:
            os.write(2, b"Error: the agent ended the whole process (os._exit); what was finished is kept. With ")
            os.write(2, b"'isolation: process' the agent runs in a process of its own, and only its case fails.\n")
            leave(3)
        leave(status)

    os._exit = told
    try:
        yield
    finally:
        os._exit = leave


@contextmanager
def only_writer(store: RunStore, run_id: str) -> Iterator[None]:
    """Hold a run for this process: two that record it at once would run every open case twice."""
    try:
        with store.recording(run_id):
            yield
    except RunTaken as error:
        raise SuiteError(str(error)) from None


async def _record(
    plan: Plan,
    store: RunStore,
    recording: Recording,
    on_progress: Callable[[Recording], None],
    stop: threading.Event,
    caps: Caps,
) -> None:
    todo = iter(plan.open)
    # The agents' calls, in whatever thread or process, find it in their context.
    probes.wanted.set(plan.probes)

    async def worker() -> None:
        for position, repeat in todo:
            if caps.cost_usd is not None and recording.spend_usd >= caps.cost_usd:
                recording.capped_by = "cost"
            if stop.is_set() or recording.capped_by is not None:
                return
            finished = await _run_case(plan, recording, position, repeat)
            # Ctrl-C reaches what agents have started too: an answer that comes after it may be half of one.
            if stop.is_set() or recording.capped_by == "time":
                return
            if keeper is None:
                _keep(plan, store, recording, [(position, repeat, finished)])
                on_progress(recording)
            else:
                await keeper.keep(position, repeat, finished)

    limit = min(plan.suite.concurrency, len(plan.open), plan.agent.concurrency_hint or plan.suite.concurrency)
    # What has ended is written before code of the agent runs again in this loop. A cap must know of every case at once.
    call_before_steps = getattr(plan.agent, "call_before_steps", None) if caps.cost_usd is None else None
    together = limit > 1 and (call_before_steps is not None or not getattr(plan.agent, "runs_in_loop", True))
    every_s = 0.0 if getattr(plan.agent, "runs_in_process", False) else _WRITE_EVERY_S
    keep, on_written = partial(_keep, plan, store, recording), partial(on_progress, recording)
    keeper = _Keeper(keep, on_written, every_s) if together else None
    if keeper is not None and call_before_steps is not None:
        call_before_steps(keeper.write_ended)
    workers = [asyncio.create_task(worker()) for _ in range(max(1, limit))]
    try:
        with _interrupts(stop):
            await _until_done(workers, stop, recording, on_progress, caps.time_s)
    finally:
        try:
            for task in workers:
                task.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            await plan.agent.close()
        finally:
            if call_before_steps is not None:
                call_before_steps(None)
            if keeper is not None:
                # A second Ctrl-C ends the run, also where the store gives no answer.
                is_ended = sys.exc_info()[0] is asyncio.CancelledError
                with suppress(StoreError) if is_ended else nullcontext():
                    keeper.finish()
    # A stop that came with the last case has stopped nothing.
    recording.stopped = recording.n_done < recording.n_planned


async def _until_done(
    workers: Sequence[asyncio.Task[None]],
    stop: threading.Event,
    recording: Recording,
    on_progress: Callable[[Recording], None],
    time_s: float | None,
) -> None:
    pending: set[asyncio.Task[None]] = set(workers)
    ends_at = inf if time_s is None else time.monotonic() + time_s
    while pending:
        wait_s = max(0.0, min(_TICK_S, ends_at - time.monotonic()))
        done, pending = await asyncio.wait(pending, timeout=wait_s, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
        on_progress(recording)
        if pending and time.monotonic() >= ends_at:
            # The stop itself is left to signals: setting it here too could meet one half way, and wait for ever.
            recording.capped_by = "time"
        if stop.is_set() or recording.capped_by == "time":
            break


@contextmanager
def _interrupts(stop: threading.Event) -> Iterator[None]:
    """Ctrl-C, a polite request to end or a closed terminal asks for a clean stop; a second one is not held back."""

    def ask(number: int, frame: Any) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    with heard_by(ask):
        yield


async def _run_case(plan: Plan, recording: Recording, position: int, repeat: int) -> AgentResult:
    """One case, tried again with a fresh trace as often as the suite allows."""
    suite, case = plan.suite, plan.cases[position]
    earlier: list[str] = []
    if (position, repeat) in plan.failed_before:
        earlier.append(plan.failed_before[position, repeat])
    most_attempts = 1 + suite.retries + len(earlier)
    earlier_users: list[Mapping[str, Any]] = []
    while True:
        seed = case_seed(suite.seed, position, repeat, len(earlier))
        asked = plan.view(case)
        if _has_user(case):
            from agentunit.engine.recording.conversations import ask_agent
            from agentunit.engine.recording.simulated_user import user_of

            users_seed = case_seed(suite.seed or 0, position, repeat, len(earlier)) or 0
            user = user_of(case, seed=users_seed, timeout_s=suite.timeout_s)
            result = await ask_agent(plan.agent, asked, user, timeout_s=suite.timeout_s, seed=seed)
        else:
            result = await plan.agent.run(asked, timeout_s=suite.timeout_s, seed=seed)
        if seed is not None:
            result.trace.metadata.setdefault("seed", seed)
        if result.failure not in _RETRIED or len(earlier) + 1 >= most_attempts:
            break
        earlier.append(result.outcome.error or result.failure or "failed")
        about = result.trace.metadata.get(SIMULATED_USER)
        earlier_users += [about["judge"]] if isinstance(about, dict) and "judge" in about else []
        recording.spend_usd += stated_cost(result.trace, result.outcome)
    if earlier:
        result.trace.metadata["attempts"] = len(earlier) + 1
        result.trace.metadata["earlier_failures"] = earlier
        if earlier_users:
            from agentunit.engine.recording.conversations import add_earlier_users

            add_earlier_users(result, earlier_users)
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


_Ended = tuple[int, int, AgentResult]
"""Position and repeat of a case that has ended, and what came of it."""


class _Keeper:
    """Writes together what ends in quick succession: a statement for each case would take longer than the cases.

    Code of an agent in the event loop could end the process first: ``write_ended`` is called before it goes on.
    """

    def __init__(self, keep: Callable[[list[_Ended]], None], on_written: Callable[[], None], every_s: float) -> None:
        self._keep = keep
        self._on_written = on_written
        self._ended: list[_Ended] = []
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._every_s = every_s
        self._written_at = -every_s
        self._error: Exception | None = None

    async def keep(self, position: int, repeat: int, result: AgentResult) -> None:
        """Keep a case, at once or with those that end in the next milliseconds; raises what an earlier write raised."""
        self._ended.append((position, repeat, result))
        if self._timer is None:
            self._timer = self._loop.call_at(self._written_at + self._every_s, self.write_ended)
        if len(self._ended) >= _MOST_UNWRITTEN:
            self.write()
        if self._error is not None:
            raise self._error

    def write_ended(self) -> None:
        """Write all that has ended; what is raised waits for somebody who can tell it."""
        if not self._ended:
            return
        try:
            self.write()
        except Exception as error:  # noqa: BLE001  # the next case that ends raises it, or the end of the run
            self._error = error

    def write(self) -> None:
        """Write all that has ended."""
        ended, self._ended = self._ended, []
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if ended:
            try:
                self._keep(ended)
            except KeyboardInterrupt:
                # The second Ctrl-C may come at any moment; what it interrupted is written at the end.
                self._ended = [*ended, *self._ended]
                raise
            self._written_at = self._loop.time()
            self._on_written()

    def finish(self) -> None:
        """Write what is left; raises what the last write raised, for there is no next case that could."""
        self.write()
        if self._error is not None:
            raise self._error


def _keep(plan: Plan, store: RunStore, recording: Recording, ended: Sequence[_Ended]) -> None:
    rows: list[WrittenRecord] = []
    failures: list[str] = []
    for position, repeat, result in ended:
        case = plan.cases[position]
        record, line, failure = _written(case, result)
        if recording.n_kept_bytes < _KEPT_BYTES and result.read_back and plan.cases_are_plain:
            recording.n_kept_bytes += len(line)
            recording.records[position, repeat] = record
        rows.append((plan.header.id, position, repeat, case.id, int(failure is not None), result.elapsed_s, line))
        failures += [failure] if failure is not None else []
    store.add_lines(rows)
    recording.n_done += len(rows)
    recording.n_user_failed += sum(user_failure(result.trace) is not None for _, _, result in ended)
    recording.n_failed += len(failures)
    for failure in failures:
        recording.failures[failure] = recording.failures.get(failure, 0) + 1
    for _, _, result in ended:
        recording.spend_usd += stated_cost(result.trace, result.outcome)


def stated_cost(trace: TraceLog, outcome: Any) -> float:
    """What a trace and an outcome say they cost, in US dollars; 0.0 where they say nothing.

    Attempts that failed were paid for too.
    """
    metadata = trace.metadata
    has_events_or_cost = trace.events or getattr(outcome, "cost", None) is not None
    if not has_events_or_cost and isinstance(metadata, dict) and "cost" not in metadata:
        return 0.0
    from agentunit.metrics.usage import recorded_cost, stated_costs

    with suppress(InputProblem):
        item = Item(None, trace, outcome)
        total = recorded_cost(item)
        return stated_costs(item) if total is None else total
    return 0.0


def _written(case: DatasetCase, result: AgentResult) -> tuple[Record, bytes, str | None]:
    """The record, as it is and as it is kept. What cannot be written is a failure of the case, not of the run."""
    outcome = result.outcome
    if outcome.elapsed_s is None:
        outcome.elapsed_s = result.elapsed_s
    if callable(case.user):
        from agentunit.engine.recording.simulated_user import stored_user

        case = structs.replace(case, user=stored_user(case))
    record = Record(case, result.trace, outcome)
    try:
        line = encode_record(record)
        if not result.read_back:
            decode_record(line)
    except (RecordError, TypeError, ValueError, RecursionError) as error:
        message = f"what the agent returned or traced cannot be written as JSON: {error}"
        failed = Outcome(success=False, error=message, elapsed_s=result.elapsed_s)
        record = Record(case, TraceLog(metadata={"failure": "wrong_type"}), failed)
        return record, encode_record(record), "wrong_type"
    unanswered = outcome.error and outcome.output is None
    return record, line, result.failure or ("reported" if unanswered else None)


def open_again(plan: Plan, case_ids: Iterable[str], store: RunStore) -> None:
    """Open some cases of a finished run again; new records will take the place of the old, and their scores go.

    Every repeat is opened that the run has or was to have. Tries again of these cases go.
    """
    wanted = set(case_ids)
    positions = {position for position, case in enumerate(plan.cases) if case.id in wanted}
    places = {(position, repeat) for repeat in range(plan.suite.repeats) for position in positions}
    planned = without_tries_again(store.finished(plan.header.id))
    places |= {place for place in planned if place[0] in positions}
    plan.open = sorted(places, key=lambda place: (place[1], place[0]))
    version = plan.suite.agent_version or agent_version(plan.suite.agent, plan.suite.folder)
    settings = plan.resumed_with or {}
    if None not in (version, settings.get("agent_version")) and settings["agent_version"] != version:
        settings |= {"earlier_agent_versions": _earlier_versions(settings), "agent_version": version}
