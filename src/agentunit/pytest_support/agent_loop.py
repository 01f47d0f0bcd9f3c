"""One event loop for all agents of a session, called from tests that know nothing of it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from agentunit.adapters.base import Agent, AgentResult
from agentunit.core.case import DatasetCase
from agentunit.engine.conversations import converse
from agentunit.engine.simulated_user import SimulatedUser
from agentunit.probes import settings as probes

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
                if user is not None:
                    return await converse(agent, case, user, timeout_s=timeout_s, seed=seed)
                return await agent.run(case, timeout_s=timeout_s, seed=seed)
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
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._to_end(self._loop, work)
        # An async test: its own loop waits for us, and two loops cannot run in one thread.
        with ThreadPoolExecutor(max_workers=1) as thread:
            return thread.submit(self._to_end, self._loop, work).result()

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
