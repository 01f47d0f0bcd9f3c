"""The call itself, in a thread or a worker process: whatever the agent's code does ends up in the ``Call``."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import aclosing
from typing import Any

from agentunit.adapters.call import Call
from agentunit.adapters.parameters import BoundFunction
from agentunit.core.case import DatasetCase


def perform(
    function: BoundFunction,
    case: DatasetCase,
    seed: int | None,
    call: Call,
    run_async: Callable[[Coroutine[Any, Any, None]], None] = asyncio.run,
) -> None:
    """Ask the agent and wait for all of its answer; what is asynchronous in it is run by ``run_async``."""
    process = os.getpid()
    try:
        call.begin_spans()
        call.begin_probe()
        returned = function(case, call.trace, seed)
        if isinstance(returned, Iterator):
            _collect(returned, call)
        elif isinstance(returned, AsyncIterator) or inspect.isawaitable(returned):
            # Not known beforehand: a plain function that hands back a coroutine.
            run_async(finish_async(returned, call))
        else:
            call.finish(returned)
    except BaseException as error:  # noqa: BLE001 - in here even an exit or an interrupt is the agent's own doing
        call.raised(error)
    finally:
        if os.getpid() != process:
            # The agent forked, and this is the child that came back from it: the run is its parent's.
            os._exit(0)
        call.end_probe()
        call.end_spans()


async def finish_async(returned: Any, call: Call) -> None:
    """Wait for what an asynchronous agent gave: pieces, or one answer."""
    if isinstance(returned, AsyncIterator):
        async with aclosing(_as_generator(returned)) as pieces:
            async for piece in pieces:
                call.take_piece(piece)
        call.finish_pieces()
        return
    answer = await returned if inspect.isawaitable(returned) else returned
    if isinstance(answer, AsyncIterator):
        await finish_async(answer, call)
    elif isinstance(answer, Iterator):
        _collect(answer, call)
    else:
        call.finish(answer)


def _collect(pieces: Iterator[Any], call: Call) -> None:
    try:
        while True:
            try:
                piece = next(pieces)
            except StopIteration as end:
                call.finish_pieces(end.value)
                return
            call.take_piece(piece)
    finally:
        if inspect.isgenerator(pieces):
            pieces.close()


async def _as_generator(pieces: AsyncIterator[Any]) -> Any:
    """Any asynchronous iterator as a generator, which can be closed."""
    try:
        async for piece in pieces:
            yield piece
    finally:
        if inspect.isasyncgen(pieces):
            await pieces.aclose()
