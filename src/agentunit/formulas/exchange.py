"""Who talks with whom: back-and-forth between two, one agent doing everything, requests that nobody answers."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import groupby
from math import fsum, isfinite
from typing import NamedTuple


class Alternation(NamedTuple):
    """A stretch in which two agents take turns with nobody else: where it begins, and how many turns it lasts."""

    start: int
    n_turns: int
    agents: tuple[Hashable, ...]


class Message(NamedTuple):
    """One message: its sender, its receivers (none where nobody stated them), and whether it may want an answer."""

    sender: Hashable
    receivers: tuple[Hashable, ...]
    wants_answer: bool = True


def longest_alternation(speakers: Sequence[Hashable]) -> Alternation | None:
    """The longest stretch of turns of two agents only; the first of equally long ones. ``None`` below two agents.

    A turn is a run of messages of one speaker, so a monologue is one turn. ``start`` counts messages.

    >>> longest_alternation(["boss", "coder", "tester", "coder", "tester", "tester", "coder", "boss"])
    Alternation(start=1, n_turns=5, agents=('coder', 'tester'))
    """
    turns: list[tuple[Hashable, int]] = []
    place = 0
    for speaker, run in groupby(speakers):
        turns.append((speaker, place))
        place += sum(1 for _ in run)
    if len(turns) < 2:
        return None
    best: Alternation | None = None
    start = 0
    for end in range(1, len(turns) + 1):
        if end < len(turns) and (end - start < 2 or turns[end][0] == turns[end - 2][0]):
            continue
        if best is None or end - start > best.n_turns:
            best = Alternation(turns[start][1], end - start, (turns[start][0], turns[start + 1][0]))
        start = end - 1
    return best


def dominance(amounts: Mapping[str, float]) -> float | None:
    """How far one agent does it all: (largest share − 1/n) / (1 − 1/n) for n agents.

    0 when all do the same, 1 when one does everything. Idle agents count, with an amount of 0. Fewer than two agents,
    or nothing done: None.

    >>> dominance({"lead": 6, "coder": 2, "tester": 0, "writer": 0})   # (0.75 − 0.25) / 0.75
    0.6666666666666666
    """
    for agent, amount in amounts.items():
        if not (isfinite(amount) and amount >= 0):
            raise ValueError(f"dominance: amounts must be finite and 0 or more; received {amount!r} for {agent!r}")
    n, total = len(amounts), fsum(amounts.values())
    if n < 2 or not total:
        return None
    largest = max(amounts.values()) / total
    return min(1.0, max(0.0, (largest - 1 / n) / (1 - 1 / n)))


def unanswered_requests(messages: Sequence[Message]) -> tuple[list[int], int]:
    """Positions of the requests that no receiver answered later, and how many requests there are.

    A message to somebody who waits for one answers it; it counts as a request of its own only when it answers nothing.
    Of two requests in a row to the same receiver, one answer answers both. A message without stated receivers answers
    whoever waits for its sender, but not a request that was repeated in a later turn; the first message to its sender
    afterwards reports back, and is no request. A request that is the very last message of all is left out: nobody can
    tell. Messages to oneself are no requests.

    >>> unanswered_requests([Message("a", ("b",)), Message("b", ("a",)), Message("a", ("c",)), Message("a", ("b",))])
    ([2], 2)
    >>> unanswered_requests([Message("a", ("b",)), Message("b", ()), Message("c", ("b",))])   # c reports to b
    ([], 1)
    """
    waiting: dict[tuple[Hashable, Hashable], list[int]] = {}
    askers: dict[Hashable, set[Hashable]] = {}
    answered: set[int] = set()
    requests: list[int] = []
    spoke_to_all: set[Hashable] = set()
    turn_of: list[int] = []
    for place, (sender, receivers, wants_answer) in enumerate(messages):
        is_new_turn = place == 0 or messages[place - 1].sender != sender
        turn_of.append(place if is_new_turn else turn_of[-1])
        if not receivers:
            for asker in askers.pop(sender, ()):
                asked = waiting.pop((asker, sender), [])
                answered.update(request for request in asked if turn_of[request] == turn_of[asked[-1]])
            spoke_to_all.add(sender)
            continue
        replied_to = [waiting.pop((other, sender)) for other in receivers if (other, sender) in waiting]
        answered.update(request for each in replied_to for request in each)
        reports_back = not spoke_to_all.isdisjoint(receivers)
        spoke_to_all.difference_update(receivers)
        others = [other for other in receivers if other != sender]
        if wants_answer and others and not replied_to and not reports_back and place < len(messages) - 1:
            requests.append(place)
            for other in others:
                waiting.setdefault((sender, other), []).append(place)
                askers.setdefault(other, set()).add(sender)
    return [place for place in requests if place not in answered], len(requests)
