"""What the runner knows of an agent: it is asked a case and gives a result, whatever happens inside it.

The bytes that ``sealed`` makes of a result are what a worker process sends. In one process the round trip is made all
the same: a result is the same wherever the agent ran, can be read again from disk, and shares nothing that an agent
still running could change.
"""

from __future__ import annotations

import importlib
import inspect
import os
import struct
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

import msgspec

from agentunit.adapters.failures import describe_error
from agentunit.core.case import DatasetCase
from agentunit.core.codec import RecordError, as_outcome, as_trace, decode_record, encode_record
from agentunit.core.records import Outcome, Record
from agentunit.core.results import encode_json
from agentunit.core.trace import TraceLog
from agentunit.public import publish

FailureKind = Literal["raised", "timeout", "wrong_type", "exit", "died"]
"""``raised`` an error, gave no answer in time, returned something that is not an answer, called ``sys.exit``, or its
process died."""
Isolation = Literal["auto", "process", "thread"]
"""Where a Python function runs: in worker processes, in this process, or (``auto``) by what it is."""
ISOLATIONS: tuple[Isolation, ...] = get_args(Isolation)
MAX_ASYNC_WORKERS = 16
"""An asynchronous agent that answers more cases at once stays in one event loop: each worker answers one."""


@dataclass(slots=True)
class AgentResult:
    """What came of one call. ``failure`` is ``None`` when the agent answered, even if it says it did not succeed.

    A failed call has ``outcome.success = False``, one sentence in ``outcome.error``, the trace as far as it got, and
    the kind of failure also in ``trace.metadata["failure"]``. ``read_back`` says that outcome and trace were written
    and read back already, so that a record of them is known to be readable.
    """

    outcome: Outcome
    trace: TraceLog
    elapsed_s: float
    failure: FailureKind | None = None
    read_back: bool = False


class Agent(Protocol):
    """Anything that answers cases. ``concurrency_hint`` is how many at once it can use; ``None``: no limit of its own.

    ``run`` raises nothing but cancellation and ``KeyboardInterrupt``: what goes wrong inside is in the result.
    """

    concurrency_hint: int | None

    async def run(self, case: DatasetCase, *, timeout_s: float | None = None, seed: int | None = None) -> AgentResult:
        """Ask one case, and end the call when the time is up. In a conversation it is an ``AskedCase``, once a turn."""
        ...

    async def close(self) -> None:
        """Let go of processes, threads and connections."""
        ...


def as_agent(agent: object, *, workers: int = 4, isolation: Isolation = "auto") -> Agent:
    """An agent of whatever a user names.

    ``agent`` is a callable, ``"module:function"``, ``"command: …"``, an ``http(s)://`` address, or an ``Agent``
    already. ``workers`` is how many cases a synchronous callable works on at once. ``isolation`` says where a callable
    runs: ``"process"``, ``"thread"``, or ``"auto"``: one that is named ``"module:function"`` in worker processes where
    that is safe, one that is passed as an object in this process unless it has a timeout. A callable that could never
    be called with a case raises here, before a run starts.

    >>> as_agent(lambda question: question.upper()).concurrency_hint
    4
    """
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise ValueError(f"as_agent: workers must be a whole number of at least 1; received {workers!r}")
    if isolation not in ISOLATIONS:
        raise ValueError(f"as_agent: isolation must be auto, process or thread; received {isolation!r}")
    if isinstance(agent, str):
        return _named_agent(agent.strip(), workers, isolation)
    if inspect.isclass(agent):
        raise TypeError(f"as_agent: agent must be an instance, not a class; received the class {agent.__name__}")
    methods = (getattr(agent, "run", None), getattr(agent, "close", None))
    if all(map(inspect.iscoroutinefunction, methods)) and hasattr(agent, "concurrency_hint"):
        return agent  # type: ignore[return-value]
    if callable(agent):
        from agentunit.adapters._callable import CallableAgent

        return CallableAgent(agent, workers=workers, isolation=isolation)
    raise TypeError(f"as_agent: agent must be {_ACCEPTED}; received {type(agent).__name__}")


_ACCEPTED = "a callable, 'module:function', 'command: …', an http(s) address or an Agent"


def _named_agent(name: str, workers: int, isolation: Isolation) -> Agent:
    if name.startswith("command:"):
        from agentunit.adapters.command import CommandAgent

        return CommandAgent(name.removeprefix("command:").strip())
    if name.lower().startswith(("http://", "https://")):
        from agentunit.adapters.http import HttpAgent

        return HttpAgent(name)
    module, colon, path = name.partition(":")
    if not colon or not module or not all(part.isidentifier() for part in (*module.split("."), *path.split("."))):
        raise ValueError(f"as_agent: agent must be {_ACCEPTED}; received {name!r}")
    found = _imported(module, path)
    if isolation == "auto" and _may_be_forked(found, workers):
        isolation = "process"
    return as_agent(found, workers=workers, isolation=isolation)


def can_fork_safely() -> bool:
    """Whether this system's own libraries survive a fork; those of macOS do not."""
    return hasattr(os, "fork") and sys.platform != "darwin"


def _may_be_forked(agent: Any, workers: int) -> bool:
    """Whether a fork of this process has all that an imported agent needs.

    A fork has neither the threads of its parent (of a client or an exporter that the agent's module started) nor its
    connection to a GPU. An asynchronous agent that answers many cases at once would need as many processes.
    """
    from agentunit.adapters.bound_function import is_async

    own = (threading.main_thread(), threading.current_thread())
    others = [each for each in threading.enumerate() if each not in own and not each.name.startswith("agentunit-")]
    uses_gpu = getattr(getattr(sys.modules.get("torch"), "cuda", None), "is_initialized", lambda: False)
    return can_fork_safely() and not others and not uses_gpu() and (workers <= MAX_ASYNC_WORKERS or not is_async(agent))


def _imported(module: str, path: str) -> Any:
    try:
        target: Any = agent_module(module)
    except ImportError as error:
        raise ImportError(f"as_agent: agent '{module}:{path}' cannot be imported: {error}") from error
    for part in path.split("."):
        if not hasattr(target, part):
            raise AttributeError(f"as_agent: agent must name something in its module; '{module}' has no '{path}'")
        target = getattr(target, part)
    if isinstance(target, str):
        raise TypeError(f"as_agent: agent '{module}:{path}' must be a callable or an Agent; received a string")
    return target


def agent_module(name: str) -> Any:
    """The module that a named agent is in, imported if it is not yet: also from the current folder."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # An installed command does not look into the current folder, where a user's agent usually lives.
        here = os.getcwd()
        if error.name != name.partition(".")[0] or here in sys.path or "" in sys.path:
            raise
        sys.path.insert(0, here)
        importlib.invalidate_caches()
        return importlib.import_module(name)


MAX_REPLY_BYTES = 64 * 1024 * 1024
"""More than this from one case, and it is ended: what came in is held in memory."""
TOO_MUCH = f"{{}} passed {MAX_REPLY_BYTES // 2**20} MiB, the most that is kept of one case"

_HEAD = struct.Struct("<dB")
_FAILURES: tuple[FailureKind | None, ...] = (None, *get_args(FailureKind))
_NO_CASE = DatasetCase()
_LISTS = ("events", "interactions", "handoffs", "conflicts")
_MAPPINGS = ("agent_roles", "metadata")


def sealed(outcome: Outcome, trace: TraceLog, elapsed_s: float, failure: FailureKind | None) -> bytes:
    """A result as bytes. What cannot be written is left out, and the trace says so."""
    try:
        body = encode_record(Record(_NO_CASE, trace, outcome))
    except Exception as error:  # noqa: BLE001 - an agent's object may raise anything while it is written
        reason = describe_error(error)
        outcome_bytes = _attempt(encode_json, outcome)
        if outcome_bytes is None:
            outcome_bytes = encode_json(_unusable(reason))
            failure = failure or "wrong_type"
        trace_bytes = _attempt(encode_json, trace) or encode_json(_writable_parts(trace, reason))
        body = b'{"v":1,"case":{},"trace":' + trace_bytes + b',"outcome":' + outcome_bytes + b"}"
    return _HEAD.pack(elapsed_s, _FAILURES.index(failure)) + body


def opened(data: bytes | memoryview) -> AgentResult:
    """The result that ``sealed`` wrote."""
    elapsed_s, index = _HEAD.unpack_from(data)
    failure, body = _FAILURES[index], bytes(data[_HEAD.size :])
    try:
        record = decode_record(body)
        outcome, trace = record.outcome, record.trace
    except RecordError:
        outcome, trace = _readable_parts(body)
    if not isinstance(outcome, Outcome):
        outcome = _unusable("it is not an outcome")
    if outcome.success is False and outcome.error and outcome.error.startswith(_UNUSABLE):
        failure = failure or "wrong_type"
    if failure is not None:
        trace.metadata["failure"] = failure
    return AgentResult(outcome, trace, elapsed_s, failure, read_back=True)


_UNUSABLE = "the agent's answer cannot be kept: "


def _unusable(reason: str) -> Outcome:
    return Outcome(success=False, error=_UNUSABLE + reason)


def _readable_parts(body: bytes) -> tuple[Any, TraceLog]:
    """What fits the data model of a record that does not: an agent may put anything into its trace."""
    try:
        plain = msgspec.json.decode(body)
    except Exception as error:  # noqa: BLE001 - numbers and nesting that may be written but not read
        return _unusable(describe_error(error)), TraceLog()
    try:
        outcome = as_outcome(plain["outcome"])
    except RecordError as error:
        outcome = _unusable(str(error))
    found, trace = plain["trace"], TraceLog()
    try:
        return outcome, as_trace(found)
    except RecordError as error:
        reason = str(error)
    for name in _LISTS:
        values = found.get(name)
        parts = [_attempt(as_trace, {name: [each]}) for each in (values if isinstance(values, list) else ())]
        setattr(trace, name, [getattr(part, name)[0] for part in parts if part is not None])
    for name in _MAPPINGS:
        values = found.get(name)
        mapped = _attempt(as_trace, {name: values}) if isinstance(values, dict) else None
        setattr(trace, name, getattr(mapped, name, {}))
    trace.metadata["trace_error"] = f"parts of the trace were left out: {reason}"
    return outcome, trace


def _writable_parts(trace: TraceLog, reason: str) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name in _LISTS:
        values = getattr(trace, name)
        parts = [_attempt(encode_json, each) for each in (list(values) if isinstance(values, list) else ())]
        kept[name] = [msgspec.Raw(part) for part in parts if part is not None]
    for name in _MAPPINGS:
        values = getattr(trace, name)
        pairs = list(values.items()) if isinstance(values, dict) else []
        written = {str(key): _attempt(encode_json, value) for key, value in pairs}
        kept[name] = {key: msgspec.Raw(part) for key, part in written.items() if part is not None}
    kept["metadata"]["trace_error"] = f"parts of the trace were left out: {reason}"
    return kept


def _attempt(make: Callable[[Any], Any], value: Any) -> Any:
    try:
        return make(value)
    except Exception:  # noqa: BLE001 - the one part that cannot be kept must not cost the others
        return None


publish("agentunit.adapters", Agent, AgentResult)
