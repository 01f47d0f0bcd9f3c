"""A callable as an agent: its parameters are filled from a case by name, and whatever it does ends up in the Call."""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import aclosing
from typing import Any

from msgspec.structs import astuple

from agentunit.adapters._call import AgentCall
from agentunit.core.case import AskedCase, DatasetCase
from agentunit.core.trace import TraceLog

CANCEL_GRACE_S = 0.5
"""How long a canceled agent may take to clean up."""
_OF_EVERY_CASE = ("query", "case", "context", "trace", "seed", "tools", "metadata")
_OF_CONVERSATIONS = ("messages", "history")
NAMES = (*_OF_EVERY_CASE, *_OF_CONVERSATIONS)
"""What the parameters of an agent are filled from. ``messages`` is the conversation up to and with the query,
``history`` what was said before it."""
SET_PREFIX = "AGENTUNIT_SET_"
"""How environment variables begin that hold a value of ``agentunit run --set``."""
_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_REST = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class BoundFunction:
    """A callable together with what each of its parameters gets."""

    __slots__ = (
        *("chosen", "function", "is_async", "name", "named", "positional", "settable", "takes_all", "takes_messages"),
    )

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.name = function_name(function)
        self.is_async = is_async(function)
        # (what it gets, or None to leave it alone; the default that stands in for an unknown value)
        self.positional: list[tuple[str, Any]] = []
        self.named: list[tuple[str, str, Any]] = []
        # What ``--set`` says, for parameters of that name.
        self.chosen: dict[str, str] = {}
        # The parameters that it can be given by ``--set``.
        self.settable: list[str] = []
        # Whether it is ``function(**everything)``.
        self.takes_all = False
        self._plan()
        # Whether it is given what was said before.
        sources = {source for source, _ in self.positional} | {source for _, source, _ in self.named}
        self.takes_messages = self.takes_all or not sources.isdisjoint(_OF_CONVERSATIONS)

    def __call__(self, case: DatasetCase, trace: TraceLog, seed: int | None) -> Any:
        """Call the function on a case."""
        others: dict[str, Any] = {"case": case, "trace": trace, "seed": seed}
        is_conversation = isinstance(case, AskedCase)
        if self.takes_messages:
            said = case.messages if isinstance(case, AskedCase) else [{"role": "user", "content": case.query}]
            others |= {"messages": [dict(each) for each in said], "history": [dict(each) for each in said[:-1]]}

        def value(source: str, default: Any) -> Any:
            if source == "history" and not is_conversation and default is not None:
                return default
            found = others[source] if source in others else getattr(case, source)
            return default if found is None else found

        positional = [value(source, default) for source, default in self.positional]
        named = {name: value(source, default) for name, source, default in self.named}
        if self.takes_all and is_conversation:
            named |= {name: others[name] for name in _OF_CONVERSATIONS}
        return self.function(*positional, **named, **self.chosen)

    def _plan(self) -> None:
        try:
            parameters = list(inspect.signature(self.function).parameters.values())
        except (TypeError, ValueError):
            # A builtin that does not say what it takes.
            self.positional = [("query", None)]
            return
        settled = _settled_names(self.function)
        parameters = [each for each in parameters if each.name not in settled]
        takes_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        self.settable = [each.name for each in parameters if each.kind in takes_name and each.name not in NAMES]
        for name in self.settable:
            value = os.environ.get(f"{SET_PREFIX}{name.upper()}")
            if value is not None:
                self.chosen[name] = value
        parameters = [each for each in parameters if each.name not in self.chosen]
        single = _takes_query(parameters)
        unknown = [each.name for each in parameters if _is_required(each) and each.name not in NAMES and each != single]
        if unknown:
            raise TypeError(
                f"as_agent: the agent's parameters must be among {', '.join(NAMES)}, or a single one of another name, "
                f"which gets the query; received {', '.join(map(repr, unknown))} in {self.name}"
            )
        for each in parameters:
            default = None if each.default is inspect.Parameter.empty else each.default
            source = "query" if each == single else each.name
            if each.kind is inspect.Parameter.VAR_POSITIONAL and each == single:
                self.positional.append(("query", None))
            elif each.kind is inspect.Parameter.VAR_KEYWORD and len(parameters) == 1:
                self.named.extend((name, name, None) for name in _OF_EVERY_CASE)
                self.takes_all = True
            elif source not in NAMES or each.kind in _REST:
                continue
            elif each.kind is inspect.Parameter.POSITIONAL_ONLY:
                self.positional.append((source, default))
            else:
                self.named.append((each.name, source, default))


def _takes_query(parameters: list[inspect.Parameter]) -> inspect.Parameter | None:
    """The one parameter of another name that gets the query, if there is one and nothing else does."""
    if any(each.name in ("query", "case") and each.kind not in _REST for each in parameters):
        return None
    others = [each for each in parameters if each.name not in NAMES and each.kind is not each.VAR_KEYWORD]
    required = [each for each in others if _is_required(each)]
    if len(required) == 1:
        return required[0]
    if any(each.name == "messages" for each in parameters):
        # It has the query already: what has a default keeps it.
        return None
    plain = [each for each in others if each.kind in _BY_POSITION]
    if not required and len(plain) == 1:
        return plain[0]
    rest = [each for each in others if each.kind is each.VAR_POSITIONAL]
    return rest[0] if rest and not required and not plain else None


def _settled_names(function: Any) -> set[str]:
    """The parameters that a partial has filled already: what its author chose stays."""
    names: set[str] = set()
    while isinstance(function, functools.partial):
        names.update(function.keywords)
        function = function.func
    return names


def _is_required(parameter: inspect.Parameter) -> bool:
    return parameter.default is parameter.empty and parameter.kind not in _REST


def _without_partials(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    return function


def is_async(function: Any) -> bool:
    """Whether a callable is an ``async def`` or an asynchronous generator."""
    function = _without_partials(function)
    called = function if inspect.isroutine(function) else type(function).__call__
    return inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called)


def function_name(function: Any) -> str:
    """What to call a callable in a sentence: its own name, that of what it wraps, or its type's."""
    function = _without_partials(function)
    return getattr(function, "__qualname__", None) or type(function).__qualname__


def copied_case(case: DatasetCase) -> DatasetCase:
    """A case that an agent may change without changing the dataset. Objects that are no plain data are shared."""
    copied = DatasetCase if not isinstance(case, AskedCase) else AskedCase
    values = astuple(case)[: len(copied.__struct_fields__)]
    return copied(*[_copied(value) if isinstance(value, (dict, list)) else value for value in values])


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_copied(each) for each in value]
    return value


def perform(
    function: BoundFunction,
    case: DatasetCase,
    seed: int | None,
    call: AgentCall,
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


async def finish_async(returned: Any, call: AgentCall) -> None:
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


def _collect(pieces: Iterator[Any], call: AgentCall) -> None:
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
