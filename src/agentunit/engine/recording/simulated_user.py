"""Who plays the user of a conversation: a script, a function of the suite's, or a judge model with a persona."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from agentunit.adapters.bound_function import function_name
from agentunit.adapters.failures import describe_error, traceback_text
from agentunit.adapters.threads_and_processes import DaemonThreads
from agentunit.core.case import DatasetCase
from agentunit.core.conversation import (
    ConversationError,
    Persona,
    ScriptedTurn,
    check_conversation,
    persona_of,
    script_of,
    user_kind,
)
from agentunit.doors import part

MOST_MESSAGES = 50
"""A function that still talks then never ends the conversation by itself."""
_PARAMETERS = ("messages", "case", "seed")
_REST = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_threads = DaemonThreads("agentunit-simulated-user")

Messages = Sequence[Mapping[str, Any]]


class UserFailed(Exception):
    """The simulated user could not go on; the message says why."""

    def __init__(self, message: str, traceback_text: str | None = None) -> None:
        super().__init__(message)
        self.traceback_text = traceback_text


class SimulatedUser(Protocol):
    """Says the next thing. ``about`` is what a record tells of it, ``None`` for a script."""

    async def next(self, messages: Messages) -> str | None:
        """What the user says after these messages; ``None`` when it has nothing more to say."""
        ...

    def about(self) -> dict[str, Any] | None:
        """Who played it, and what that took."""
        ...


def user_of(case: DatasetCase, *, seed: int, timeout_s: float | None) -> SimulatedUser | None:
    """The user of a case, afresh for one conversation; ``None`` for a case of one question.

    ``seed`` is that of the case, repeat and attempt. ``timeout_s`` is the most that a function may take for a message.
    """
    kind = user_kind(case)
    if kind is None:
        return None
    if kind == "script":
        return _Script(script_of(case))
    if kind == "function":
        return _Function(case, seed, timeout_s)
    return _Played(persona_of(case.user), case.query, seed)


def check_users(cases: Iterable[DatasetCase]) -> bool:
    """Refuse cases whose user cannot be played, by the id of the first; whether a judge model plays one of them."""
    asks_judge = False
    for case in cases:
        if case.turns is None and case.user is None:
            continue
        try:
            check_conversation(case.turns, case.user)
            if callable(case.user):
                _check_parameters(case.user)
        except ConversationError as error:
            raise ConversationError(f"case {case.id!r}: {error}") from None
        if user_kind(case) == "judge":
            asks_judge = True
            _check_judge(case)
    return asks_judge


def _check_judge(case: DatasetCase) -> None:
    from agentunit.backends.quality import load_backend

    backend: Any = load_backend("judge")
    why_not = backend.unready()
    if why_not is not None:
        raise ConversationError(f"case {case.id!r}: a judge model plays its user, and {why_not}")


def stored_user(case: DatasetCase) -> Any:
    """The user as a record keeps it: of a function only the name."""
    return {"function": function_name(case.user)} if callable(case.user) else case.user


class _Script:
    def __init__(self, turns: Sequence[ScriptedTurn]) -> None:
        self._turns = turns

    async def next(self, messages: Messages) -> str | None:
        said = len(messages) // 2
        return self._turns[said].query if said < len(self._turns) else None

    def about(self) -> dict[str, Any] | None:
        return None


class _Function:
    """A function of the suite's: it gets the messages so far and returns what the user says, or ``None`` at the end."""

    def __init__(self, case: DatasetCase, seed: int, timeout_s: float | None) -> None:
        self._case, self._seed, self._timeout_s = case, seed, timeout_s
        self._name = function_name(case.user)

    async def next(self, messages: Messages) -> str | None:
        if not callable(self._case.user):
            raise UserFailed(f"the function {self._name} is not here: only the suite that defines it can run the case")
        if not messages and self._case.query:
            return self._case.query
        if len(messages) >= 2 * MOST_MESSAGES:
            raise UserFailed(
                f"{self._name} did not end the conversation within {MOST_MESSAGES} messages: it returns None when the "
                "user is done"
            )
        said = await self._called([dict(each) for each in messages])
        if said is not None and not (isinstance(said, str) and said.strip()):
            raise UserFailed(
                f"{self._name} must return what the user says, as a text, or None at the end; received {said!r:.80}"
            )
        return said

    def about(self) -> dict[str, Any] | None:
        return {"kind": "function", "name": self._name}

    async def _called(self, messages: list[dict[str, Any]]) -> Any:
        arguments = _arguments(self._case.user, {"messages": messages, "case": self._case, "seed": self._seed})

        def call() -> tuple[Any, BaseException | None]:
            try:
                return self._case.user(*arguments[0], **arguments[1]), None
            except BaseException as error:  # noqa: BLE001  # an exit of the function's is no exit of ours
                return None, error

        async def finished() -> Any:
            said, error = await _threads.submit(call)
            if error is None and inspect.isawaitable(said):
                said, error = await _awaited(said)
            if error is not None:
                raise UserFailed(f"{self._name} raised {describe_error(error)}", traceback_text(error))
            return said

        try:
            return await asyncio.wait_for(finished(), self._timeout_s)
        except (asyncio.TimeoutError, TimeoutError):
            raise UserFailed(f"{self._name} gave no message within {self._timeout_s or 0:g} s") from None


async def _awaited(said: Awaitable[Any]) -> tuple[Any, BaseException | None]:
    try:
        return await said, None
    except asyncio.CancelledError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001  # the user's own code
        return None, error


def _check_parameters(function: Callable[..., Any]) -> None:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return
    unknown = [
        each.name
        for each in parameters
        if each.default is each.empty and each.kind not in _REST and each.name not in _PARAMETERS
    ]
    if len(unknown) > 1 or (unknown and any(each.name == "messages" for each in parameters)):
        raise ConversationError(
            f"user: the parameters of {function_name(function)} must be among {', '.join(_PARAMETERS)}, or a single "
            f"one of another name, which gets the messages; received {unknown[-1]!r}"
        )


def _arguments(function: Callable[..., Any], known: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """What a function is called with: its parameters by name, and the messages under any other name."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return [known["messages"]], {}
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for each in parameters:
        if each.kind in _REST or (each.name not in known and each.default is not each.empty):
            continue
        value = known.get(each.name, known["messages"])
        if each.kind is each.POSITIONAL_ONLY:
            positional.append(value)
        else:
            named[each.name] = value
    return positional, named


class _Played:
    """A persona that a judge model plays. Every reply is counted, also those of a conversation that fails."""

    def __init__(self, persona: Persona, query: str | None, seed: int) -> None:
        self._persona, self._query = persona, query
        self._seed = seed if persona.seed is None else _mixed(persona.seed, seed)
        self._replies: list[Any] = []
        self._ended = "the user was done"

    async def next(self, messages: Messages) -> str | None:
        if not messages and self._query:
            return self._query
        if len(messages) >= 2 * self._persona.max_turns:
            self._ended = f"max_turns ({self._persona.max_turns}) was reached"
            return None
        from agentunit.backends.asking import JudgeFailed
        from agentunit.backends.quality import load_backend

        backend: Any = load_backend("judge")
        asking: Any = None
        try:
            asking = part("asking")(backend.client, seed=self._seed)
            said: str | None = await part("next_message")(self._persona, messages, asking)
            return said
        except (JudgeFailed, RuntimeError) as error:
            raise UserFailed(str(error)) from None
        finally:
            self._replies += asking.replies if asking is not None else []

    def about(self) -> dict[str, Any] | None:
        return {"kind": "judge", "seed": self._seed, "ended": self._ended, "judge": part("spent_on")(self._replies)}


def _mixed(stated: int, of_case: int) -> int:
    """The seed of a persona that states one: still another for each repeat, or all of them would say the same."""
    digest = hashlib.sha256(f"{stated}/{of_case}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1
