"""How a conversation went: turns of two agents, one that does everything, requests without answer, steps done again."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from itertools import groupby
from math import ceil, fsum, isfinite
from typing import NamedTuple

from agentunit.formulas.text import words


class Alternation(NamedTuple):
    """A stretch in which two agents take turns with nobody else: where it begins, and how many turns it lasts."""

    start: int
    n_turns: int
    agents: tuple[Hashable, ...]


class SentMessage(NamedTuple):
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


def unanswered_requests(messages: Sequence[SentMessage]) -> tuple[list[int], int]:
    """Positions of the requests that no receiver answered later, and how many requests there are.

    A message to somebody who waits for one answers it; it counts as a request of its own only when it answers nothing.
    Of two requests in a row to the same receiver, one answer answers both. A message without stated receivers answers
    whoever waits for its sender, but not a request that was repeated in a later turn; the first message to its sender
    afterwards reports back, and is not a request. A request that is the very last message is left out: nobody can
    tell. Messages to oneself are not requests.

    >>> Message = SentMessage
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


SHINGLE_WORDS = 3
NEAR = 0.8
LONGEST_PERIOD = 12
# Guards ceil(0.8 · 5) = 4 against a product that rounds to 4.000000000000001.
_ROUNDING = 1e-9

Shingles = frozenset[tuple[str, ...]]


class Loop(NamedTuple):
    """A sequence that comes again without a break: where it begins, its length in steps, how often it is run."""

    start: int
    period: int
    rounds: int

    @property
    def n_wasted(self) -> int:
        """Steps beyond the first round."""
        return self.period * (self.rounds - 1)


def shingles(text: str) -> Shingles:
    """The distinct runs of three words of a text; all its words in one run when it has fewer; none without words.

    >>> sorted(shingles("To be or not"))
    [('be', 'or', 'not'), ('to', 'be', 'or')]
    """
    found = words(text)
    if not found:
        return frozenset()
    return frozenset(tuple(found[at : at + SHINGLE_WORDS]) for at in range(max(1, len(found) - SHINGLE_WORDS + 1)))


def first_alike(texts: Sequence[str], threshold: float = NEAR) -> list[int | None]:
    """For each text the earliest earlier one that is nearly the same (similarity of at least ``threshold``), or None.

    A text without words repeats nothing. Only texts that share one of their rarest shingles are compared: two sets with
    Jaccard index t share at least one of the first n − ceil(t · n) + 1 members, in any order that both follow. So the
    cost grows with the repetition that is there, not with the square of the number of texts.

    >>> first_alike(["Let me search for it.", "Found nothing.", "Let me search for it!"])
    [None, None, 0]
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"first_alike: threshold must be above 0 and at most 1; received {threshold!r}")
    sets = [shingles(text) for text in texts]
    frequency = Counter(shingle for each in sets for shingle in each)
    holders: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    same: dict[Shingles, int] = {}
    alike: list[int | None] = []
    for place, each in enumerate(sets):
        alike.append(same.get(each) if each else None)
        if not each or alike[-1] is not None:
            continue
        rarest = sorted(each, key=lambda shingle: (frequency[shingle], shingle))
        prefix = rarest[: len(rarest) - ceil(threshold * len(rarest) - _ROUNDING) + 1]
        candidates = sorted({earlier for shingle in prefix for earlier in holders[shingle]})
        alike[-1] = next((earlier for earlier in candidates if _near(sets[earlier], each, threshold)), None)
        same[each] = place if alike[-1] is None else alike[-1]
        for shingle in prefix:
            holders[shingle].append(place)
    return alike


def repetition_share(alike: Sequence[int | None]) -> float | None:
    """The share of the steps that nearly repeat an earlier one: repeats / (steps − 1), since the first cannot.

    From 0 to 1. Fewer than two steps: None.

    >>> repetition_share([None, None, 0, 1, 0])
    0.75
    """
    return sum(each is not None for each in alike) / (len(alike) - 1) if len(alike) > 1 else None


def loops(sequence: Sequence[Hashable], longest_period: int = LONGEST_PERIOD) -> list[Loop]:
    """The stretches of a sequence that repeat themselves at least once without a break, from left to right.

    Where stretches overlap, the one with more repeated steps counts; of equal ones the shorter period, then the
    earlier one: a a a a is one step four times, not a pair twice.

    >>> loops(["plan", "search", "read", "search", "read", "search", "read", "stop"])
    [Loop(start=1, period=2, rounds=3)]
    """
    found = []
    n = len(sequence)
    for period in range(1, min(longest_period, n // 2) + 1):
        start = 0
        while start + 2 * period <= n:
            end = start
            while end + period < n and sequence[end] == sequence[end + period]:
                end += 1
            rounds = (end - start) // period + 1
            if rounds > 1:
                found.append(Loop(start, period, rounds))
            start = max(start + 1, end)
    chosen: list[Loop] = []
    taken = [False] * n
    for loop in sorted(found, key=lambda each: (-each.n_wasted, each.period, each.start)):
        reach = range(loop.start, loop.start + loop.period * loop.rounds)
        if not any(taken[place] for place in reach):
            chosen.append(loop)
            for place in reach:
                taken[place] = True
    return sorted(chosen)


def _near(left: Shingles, right: Shingles, threshold: float) -> bool:
    smaller, larger = sorted((len(left), len(right)))
    if smaller < threshold * larger - _ROUNDING:
        return False
    shared = len(left & right)
    return shared >= threshold * (smaller + larger - shared) - _ROUNDING
