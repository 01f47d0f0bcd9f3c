"""What the runner knows of an agent: it is asked a case and gives a result, whatever happens inside it."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
import threading
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

from agentunit.core.case import DatasetCase
from agentunit.core.outcome import Outcome
from agentunit.core.trace import TraceLog

FailureKind = Literal["raised", "timeout", "wrong_type", "exit", "died"]
"""``raised`` an error, gave no answer in time, answered with something that is no answer, called ``sys.exit``, or its
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
    the kind of failure also in ``trace.metadata["failure"]``.
    """

    outcome: Outcome
    trace: TraceLog
    elapsed_s: float
    failure: FailureKind | None = None


class Agent(Protocol):
    """Anything that answers cases. ``concurrency_hint`` is how many at once it can use; ``None``: no limit of its own.

    ``run`` raises nothing but cancellation and ``KeyboardInterrupt``: what goes wrong inside is in the result.
    """

    concurrency_hint: int | None

    async def run(self, case: DatasetCase, *, timeout_s: float | None = None, seed: int | None = None) -> AgentResult:
        """Ask one case, and end the call when the time is up."""
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
    if not inspect.isclass(agent) and _is_agent(agent):
        return agent  # type: ignore[return-value]
    if inspect.isclass(agent):
        raise TypeError(f"as_agent: agent must be an instance, not a class; received the class {agent.__name__}")
    if callable(agent):
        from agentunit.adapters.callable import CallableAgent

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
    from agentunit.adapters.parameters import is_async

    own = (threading.main_thread(), threading.current_thread())
    others = [each for each in threading.enumerate() if each not in own and not each.name.startswith("agentunit-")]
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    on_gpu = cuda is not None and cuda.is_initialized()
    return can_fork_safely() and not others and not on_gpu and (workers <= MAX_ASYNC_WORKERS or not is_async(agent))


def _imported(module: str, path: str) -> Any:
    try:
        target: Any = _module(module)
    except ImportError as error:
        raise ImportError(f"as_agent: agent '{module}:{path}' cannot be imported: {error}") from error
    for part in path.split("."):
        if not hasattr(target, part):
            raise AttributeError(f"as_agent: agent must name something in its module; '{module}' has no '{path}'")
        target = getattr(target, part)
    if isinstance(target, str):
        raise TypeError(f"as_agent: agent '{module}:{path}' must be a callable or an Agent; received a string")
    return target


def _module(name: str) -> Any:
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


def _is_agent(agent: object) -> bool:
    return (
        inspect.iscoroutinefunction(getattr(agent, "run", None))
        and inspect.iscoroutinefunction(getattr(agent, "close", None))
        and hasattr(agent, "concurrency_hint")
    )
