"""``agentunit_eval``: an agent run and scored in a test, and what the test may ask of the scores."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import ExitStack
from math import fsum
from typing import Any, TypeVar

import pytest
from msgspec import structs

from agentunit.adapters.base import Agent, AgentResult, as_agent
from agentunit.adapters.threads_and_processes import outside_loops
from agentunit.addons.pytest_plugin._gathering import Evaluated, Gathering
from agentunit.addons.pytest_plugin.marker import MarkerError, MarkerSettings, marker_settings, threshold
from agentunit.backends.quality import BackendUnavailable
from agentunit.core.case import DatasetCase
from agentunit.core.codec import RecordError, as_record
from agentunit.core.conversation import ConversationError, user_failure
from agentunit.core.records import LooseRecord, Record, outcome_text
from agentunit.core.results import RETURNED_BOOL, InputError, Score, encode_json, explained
from agentunit.datasets.rows import RowError, case_of_fields, with_first_message
from agentunit.engine.deciding.gate_expressions import Gate
from agentunit.engine.deciding.gates import why_undecided
from agentunit.engine.recording.agent_view import AgentView
from agentunit.engine.recording.conversations import ask_agent
from agentunit.engine.recording.probing import probe_settings
from agentunit.engine.recording.simulated_user import SimulatedUser, check_users, stored_user, user_of
from agentunit.engine.recording.suite import SuiteError, metrics_of_gates
from agentunit.engine.scoring.judging import judge_run
from agentunit.engine.scoring.records import score
from agentunit.metrics.base import MetricInfo, describe
from agentunit.metrics.functions import note_checks
from agentunit.metrics.inputs import InputProblem, Item
from agentunit.metrics.registry import resolve_metrics
from agentunit.metrics.usage import COST_PARTS, itemised_cost, recorded_cost
from agentunit.probes import probe_settings as probes
from agentunit.pytest_plugin import GATHERING
from agentunit.reports.printable import printable, printable_line
from agentunit.reports.reported_run import Mask

# One event loop for all agents of a session, called from tests that know nothing of it.

_T = TypeVar("_T")
_CANCEL_GRACE_S = 1.0


class AgentLoop:
    """Asks agents, sync or async, from sync and async tests.

    Clients that an agent keeps between calls are bound to the loop they were first used in: with a loop for each
    call, the second test of a session would meet a closed one.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lasting: dict[int, Agent] = {}

    def ask(
        self,
        agent: Agent,
        case: DatasetCase,
        *,
        timeout_s: float | None,
        seed: int | None,
        lasting: bool,
        measured: probes.ProbeSettings | None = None,
        user: SimulatedUser | None = None,
    ) -> AgentResult:
        """Ask an agent one case, in a conversation if it has a user. What it prints is printed here, for pytest.

        An agent that is ``lasting`` is closed at the end of the session, any other after this case. ``measured`` says
        how the probes that metrics ask for measure it.
        """
        if lasting:
            self._lasting[id(agent)] = agent

        async def asked() -> AgentResult:
            probes.wanted.set(measured)
            try:
                return await ask_agent(agent, case, user, timeout_s=timeout_s, seed=seed)
            finally:
                # Made for this call: a worker process that outlived it would not see what the next test patches.
                if not lasting:
                    await agent.close()

        result = self._run(asked())
        for stream, name in ((sys.stdout, "stdout"), (sys.stderr, "stderr")):
            stream.write(str(result.trace.metadata.get(name, "")))
        return result

    def close(self) -> None:
        """Let go of the agents that tests handed over ready-made, and of the loop."""
        if self._loop is None:
            return
        for agent in self._lasting.values():
            self._run(agent.close())
        self._lasting.clear()
        self._run(self._loop.shutdown_asyncgens())
        self._loop.close()
        self._loop = None

    def _run(self, work: Coroutine[Any, Any, _T]) -> _T:
        loop = self._loop = self._loop or asyncio.new_event_loop()
        return outside_loops(lambda: self._to_end(loop, work))

    def _to_end(self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, _T]) -> _T:
        try:
            return loop.run_until_complete(work)
        except BaseException:
            # Ctrl-C: the call is ended here and now, while the streams that it has captured are still there.
            loop.run_until_complete(_end_tasks())
            raise


async def _end_tasks() -> None:
    """End what was left running."""
    left_over = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left_over:
        task.cancel()
    if left_over:
        await asyncio.wait(left_over, timeout=_CANCEL_GRACE_S)


_ANSWER_LENGTH = 300
_DETAIL_LENGTH = 600
_TRACEBACK_LINES = 12

_agent_loop = pytest.StashKey[AgentLoop]()
_positions = pytest.StashKey[dict[int, int]]()


def evaluator_for(request: pytest.FixtureRequest) -> Evaluator:
    """The fixture ``agentunit_eval`` of one test. All tests of a session share one event loop and one judge's run."""
    item, config, session = request.node, request.config, request.session
    if _agent_loop not in config.stash:
        config.stash[_agent_loop] = AgentLoop()
        config.add_cleanup(config.stash[_agent_loop].close)
        # To a judge a session is one run: what it may spend, it may spend in all tests together.
        whole_session = ExitStack()
        whole_session.enter_context(judge_run())
        config.add_cleanup(whole_session.close)
    if _positions not in session.stash:
        session.stash[_positions] = {id(each): position for position, each in enumerate(session.items)}
    gathering = Gathering(
        position=session.stash[_positions].get(id(item), 0),
        keep_records=config.getoption("agentunit_report") is not None,
        properties=item.user_properties,
        show_personal_data=config.getoption("show_personal_data"),
    )
    item.stash[GATHERING] = gathering
    return Evaluator(config.stash[_agent_loop], gathering, marker_settings(item))


class Evaluation(Mapping[str, Score]):
    """The scores of one evaluation by metric, ``result["cost"].value``, and the record they were made from.

    A check that fails fails the test, unless the test or its marker has a threshold for it or looks at its score.
    """

    def __init__(
        self,
        record: Record | LooseRecord,
        evaluated: Evaluated,
        gathering: Gathering,
        infos: Mapping[str, MetricInfo],
    ) -> None:
        self.record = record
        self._evaluated = evaluated
        self._gathering = gathering
        self._unseen: dict[str, Gate] = {}
        for name, each in evaluated.scores.items():
            if infos[name].check and each.value is not None and each.status == "ok":
                self._unseen[name] = Gate(name, "==", 0.0 if infos[name].direction == "lower" else 1.0)

    @property
    def scores(self) -> dict[str, Score]:
        """The scores by metric."""
        self._unseen.clear()
        return self._evaluated.scores

    def check_unseen(self) -> None:
        """Fail the test where a check fails that nothing in the test was about."""
        __tracebackhide__ = True
        self.check_gates(list(self._unseen.values()))

    def __getitem__(self, metric: str) -> Score:
        __tracebackhide__ = True
        scores = self._evaluated.scores
        if metric not in scores:
            raise KeyError(f"{metric} was not asked for; scored: {', '.join(scores)}")
        self._unseen.pop(metric, None)
        return scores[metric]

    def __iter__(self) -> Iterator[str]:
        return iter(self._evaluated.scores)

    def __len__(self) -> int:
        return len(self._evaluated.scores)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={each.value}" for name, each in self._evaluated.scores.items())
        return f"<Evaluation of {self._evaluated.case_id!r}: {values}>"

    @property
    def answer(self) -> str | None:
        """The agent's answer as text; ``None`` when it gave none."""
        return outcome_text(self.record.outcome)

    def check(self, *thresholds: str) -> None:
        """Fail the test unless every threshold holds: ``result.check("cost <= 0.02", "task_success == 1")``.

        A metric that gave no value meets no threshold. Informational scores meet one only if it names their backend:
        ``result.check("faithfulness[lexical] >= 0.5")``.
        """
        __tracebackhide__ = True
        try:
            gates = [threshold(each) for each in thresholds]
        except MarkerError as error:
            raise ValueError(str(error)) from None
        self.check_gates(gates)

    def check_gates(self, gates: Sequence[Gate]) -> None:
        """The same for gates that are parsed already."""
        __tracebackhide__ = True
        missed = []
        for gate in gates:
            each = self[gate.metric]
            if not _meets(gate, each):
                missed.append((gate, each))
        if not missed:
            return
        for gate, _ in missed:
            self._gathering.add_failed_check(self._evaluated, gate.metric, str(gate))
        case_id = printable_line(repr(self._evaluated.case_id))
        lines = [f"{'; '.join(_describe_miss(*miss) for miss in missed)} (case {case_id})"]
        mask = self._gathering.mask
        for metric in dict.fromkeys(gate.metric for gate, _ in missed):
            lines += _describe_score(metric, self[metric], mask)
        raise AssertionError("\n".join(lines + _describe_record(self.record, mask)))


class Evaluator:
    """The fixture ``agentunit_eval``."""

    def __init__(self, loop: AgentLoop, gathering: Gathering, settings: MarkerSettings) -> None:
        self._loop = loop
        self._gathering = gathering
        self._settings = settings
        self._gates = settings.gates

    def __repr__(self) -> str:
        return "<agentunit_eval>"

    def __call__(
        self,
        agent: Any,
        case: DatasetCase | Mapping[str, Any],
        metrics: Any = None,
        *,
        timeout_s: float | None = None,
        seed: int | None = None,
    ) -> Evaluation:
        """Run an agent on a case, now, and score what it did; nothing is ever taken from an earlier run.

        ``agent`` is whatever a suite takes: a callable, sync or async, ``module:function``, a command, an address.
        ``metrics`` are names, classes or instances (default: those of the marker's gates, else the standard set). The
        agent does not receive what it is graded by. An agent that fails fails the test; so does a simulated user,
        and the message says that it was not the agent.
        """
        __tracebackhide__ = True
        asked = _as_case(case)
        wanted = self._metrics(metrics)
        try:
            # What a test patches or counts is in this process; only a timeout needs another one.
            adapter = as_agent(agent, workers=1, isolation="thread" if timeout_s is None else "auto")
        except (TypeError, ValueError, ImportError, AttributeError) as error:
            raise ValueError(str(error)) from None
        result = self._loop.ask(
            adapter,
            self._view(wanted)(asked),
            timeout_s=timeout_s,
            seed=seed,
            lasting=adapter is agent,
            measured=probe_settings(wanted),
            user=user_of(asked, seed=seed or 0, timeout_s=timeout_s),
        )
        record = Record(structs.replace(asked, user=stored_user(asked)), result.trace, result.outcome)
        evaluation = self._evaluated(record, wanted, failure=result.failure, spend_usd=_spend_usd(record))
        if result.failure is not None:
            mask = self._gathering.mask
            message = printable(mask.text(str(result.outcome.error)))
            lines = [
                f"the agent failed on case {printable_line(repr(asked.id))}: {message}",
                *_describe_record(record, mask),
            ]
            raise AssertionError("\n".join(lines + _describe_traceback(result.trace.metadata, mask)))
        broken_off = user_failure(result.trace)
        if broken_off is not None:
            why = printable(self._gathering.mask.text(broken_off))
            raise AssertionError(f"{why} (case {printable_line(repr(asked.id))} says nothing about the agent)")
        evaluation.check_gates(self._gates)
        return evaluation

    def score(self, record: Any, metrics: Any = None) -> Evaluation:
        """Score a recorded trace: a record, a dict in the shape of one, or ``(case, trace, outcome)``."""
        __tracebackhide__ = True
        if isinstance(record, InputError):
            raise AssertionError(f"the record cannot be read: {record}")
        try:
            read = as_record(record)
        except RecordError as error:
            raise AssertionError(f"the record cannot be read: {error}") from None
        evaluation = self._evaluated(read, self._metrics(metrics))
        evaluation.check_gates(self._gates)
        return evaluation

    def _view(self, metrics: Sequence[Any]) -> AgentView:
        """What the agent receives of the case: not what it is graded by."""
        __tracebackhide__ = True
        settings = self._settings
        try:
            return AgentView(metrics, grader_fields=settings.grader_fields, agent_fields=settings.agent_fields)
        except SuiteError as error:
            raise ValueError(str(error)) from None

    def _metrics(self, metrics: Any) -> list[Any]:
        """The metrics that were asked for, and those that the marker's gates need."""
        __tracebackhide__ = True
        try:
            wanted = [] if metrics is None and self._gates else resolve_metrics(metrics)
            return metrics_of_gates(self._gates, wanted)
        except (TypeError, ValueError, ImportError, BackendUnavailable) as error:
            raise ValueError(str(error)) from None

    def _evaluated(
        self,
        record: Record | LooseRecord,
        metrics: list[Any],
        *,
        failure: str | None = None,
        spend_usd: float | None = None,
    ) -> Evaluation:
        __tracebackhide__ = True
        run = score([record], metrics)
        made = next(iter(run), None)
        if made is None:
            raise AssertionError(f"the record cannot be read: {run.input_errors[0].reason}")
        evaluated = self._gathering.add(record, made.case_id, made.scores, failure=failure, spend_usd=spend_usd)
        infos = {metric.name: describe(metric) for metric in metrics}
        note_checks(infos, made.scores)
        evaluation = Evaluation(record, evaluated, self._gathering, infos)
        self._gathering.at_the_end.append(evaluation.check_unseen)
        return evaluation


def _as_case(case: Any) -> DatasetCase:
    __tracebackhide__ = True
    try:
        found = with_first_message(case if isinstance(case, DatasetCase) else case_of_fields(case))
        check_users([found])
        return found
    except (RowError, ConversationError) as error:
        raise TypeError(f"agentunit_eval: case must be a DatasetCase or a dict of one; {error}") from None


def _spend_usd(record: Record) -> float | None:
    """What a run cost: its own total, else the sum of its parts, unless one of them has no price."""
    item = Item(record.case, record.trace, record.outcome)
    try:
        total = recorded_cost(item)
        if total is not None:
            turns = item.trace_metadata.get(COST_PARTS)
            return None if isinstance(turns, dict) and turns.get("unpriced") else total
        parts = itemised_cost(item)
    except InputProblem:
        return None
    known = [cost for cost in (parts.tool_cost, parts.llm_cost) if cost is not None]
    return fsum(known) if known and parts.unpriced is None else None


def _meets(gate: Gate, each: Score) -> bool:
    if each.value is None or _is_undecided(gate, each):
        return False
    return gate.backend in (None, each.backend) and gate.holds(each.value)


def _is_undecided(gate: Gate, each: Score) -> bool:
    """Whether the score is no ground to decide by: a skipped test would look like a green one, so this one fails."""
    return each.status == "informational" and gate.backend is None


def _describe_miss(gate: Gate, each: Score) -> str:
    if each.value is None:
        return f"{gate.subject} has no value and cannot be {gate.operator} {gate.threshold:g}"
    if gate.backend not in (None, each.backend):
        return f"{gate.subject} has no value: it was scored by {each.backend}"
    if _is_undecided(gate, each):
        return f"cannot tell: {gate.subject} is {each.value:.6g}, but {why_undecided(gate, each.backend)}"
    return f"{gate.subject} is {each.value:.6g}, not {gate.operator} {gate.threshold:g}"


def _describe_score(metric: str, each: Score, mask: Mask) -> list[str]:
    detail = dict(mask.data(each.result.detail))
    detail.pop("backend", None)
    reason = detail.pop("reason", None)
    # The same sentence that reports show of a case.
    said = None if reason else explained(each)
    if said:
        reason = mask.text(said)
    known = {}
    for key, value in detail.items():
        # What a model computed with is no reason that a person can read.
        is_shown = (key, value) != RETURNED_BOOL and value is not None and not _is_all_numbers(value)
        if is_shown and not (key == "why" and value == reason):
            known[key] = value
    lines = [f"{metric} (backend {each.backend}): {reason}"] if reason else []
    if known:
        lines.append(f"{metric} (backend {each.backend}), detail: {encode_json(known).decode()}")
    return ["  " + printable_line(line, _DETAIL_LENGTH) for line in lines]


def _is_all_numbers(value: Any) -> bool:
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return bool(members) and all(isinstance(each, (int, float)) for each in members)


def _describe_record(record: Record | LooseRecord, mask: Mask) -> list[str]:
    read = getattr(record.case, "query", None), outcome_text(record.outcome)
    query, answer = (None if text is None else mask.text(str(text)) for text in read)
    lines = [] if query is None else [f"  query: {printable_line(str(query), _ANSWER_LENGTH)}"]
    return [*lines, f"  answer: {'none' if answer is None else printable_line(answer, _ANSWER_LENGTH)}"]


def _describe_traceback(metadata: Mapping[str, Any], mask: Mask) -> list[str]:
    """The end of the agent's own traceback: where it went wrong, without the frames that led there."""
    text = metadata.get("traceback")
    lines = printable(mask.text(text)).rstrip().splitlines()[-_TRACEBACK_LINES:] if isinstance(text, str) else []
    return [f"  | {line}" for line in lines]
