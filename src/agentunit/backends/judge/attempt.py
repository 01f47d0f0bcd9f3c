"""One attempt: a request is sent, and what came of it is judged."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Literal

from agentunit.backends.http_client import HttpClient, HttpFailure, Response
from agentunit.backends.judge.address import Address
from agentunit.backends.judge.completion import Completion, read_completion, read_error, seconds_to_wait

_WORTH_REPEATING = (408, 409, 425)
_OVERLOADED = (429, 503, 529)
# What is wrong with every call alike: the key, the account, the address, the model's name.
_WRONG_FOR_ALL = (401, 402, 404, 405)

Kind = Literal["answered", "final", "hopeless", "again", "stale", "turned_away", "too_slow", "unreachable"]


@dataclass(frozen=True)
class Attempt:
    """What came of a request.

    ``kind``: answered; final (repeating it changes nothing); hopeless (no other request will fare better); again; stale
    (the connection had been closed); turned_away (the server has too much to do; ``wait_s`` is what it asked for);
    too_slow; unreachable (no connection could be made).
    """

    kind: Kind
    problem: str | None = None
    status: int | None = None
    completion: Completion = field(default_factory=Completion)
    wait_s: float | None = None
    may_be_billed: bool = False


async def attempt(
    client: HttpClient,
    address: Address,
    body: bytes,
    timeout_s: float,
    *,
    on_new: bool = False,
    mark: str | None = None,
) -> Attempt:
    """Send a request once (``on_new``: on a new connection); whatever the server does, it ends after ``timeout_s``."""
    try:
        response = await asyncio.wait_for(client.send(address.target, body, on_new=on_new, mark=mark), timeout_s)
    except asyncio.TimeoutError:
        return Attempt("too_slow", f"no answer within {timeout_s:.3g} s", may_be_billed=True)
    except HttpFailure as error:
        if error.is_untrusted:
            return Attempt("hopeless", str(error))
        if error.is_unreachable:
            return Attempt("unreachable", str(error))
        return Attempt("stale" if error.was_stale else "again", str(error), may_be_billed=error.was_sent)
    return _judged(response._replace(body=address.hidden(response.body)), address)


def _judged(response: Response, address: Address) -> Attempt:
    status = response.status
    if 200 <= status < 300:
        completion = read_completion(response.body)
        if completion.unreadable is not None:
            return Attempt("again", completion.unreadable, status, completion, may_be_billed=True)
        kind: Kind = "answered" if completion.problem is None else "final"
        return Attempt(kind, completion.problem, status, completion, may_be_billed=True)
    said = read_error(response.body)
    problem = f"HTTP {status}: {said}" if said else f"HTTP {status}"
    if 300 <= status < 400:
        return Attempt("hopeless", f"HTTP {status}: redirects are not followed; name the address itself", status)
    if status == 429 and "insufficient_quota" in said:
        return Attempt("hopeless", problem, status)
    if status in _OVERLOADED:
        return Attempt("turned_away", problem, status, wait_s=seconds_to_wait(response.headers.get("retry-after")))
    if status >= 500 and status != 501:
        return Attempt("again", problem, status, may_be_billed=True)
    if status in _WORTH_REPEATING:
        return Attempt("again", problem, status)
    if status in _WRONG_FOR_ALL:
        hint = "" if status not in (404, 405) or address.target.startswith("/v1/") else " (does its URL end in /v1?)"
        return Attempt("hopeless", f"{problem}{hint}", status)
    return Attempt("final", problem, status)
