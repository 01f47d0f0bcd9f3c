"""Why a run is suspected, in words: what its peers did and it did not, and what it shows by itself."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from agentunit.engine.suspects.answers import answer_difference
from agentunit.engine.suspects.effects import Effect, differing_arguments
from agentunit.engine.suspects.signatures import RunSignature, Signatures

Kind = Literal[
    "error", "failed call", "missing call", "other arguments", "further call", "no answer", "other answer", "loop",
    "leaves its peers", "not supported",
]  # fmt: skip
MOST_LINES = 6
"""So many pieces of evidence are kept of a run: who needs more reads the trace."""
_NAMED_ARGUMENTS = 3
_LONGEST_ERROR = 160
_ANSWERS_TRIED = 3


class Evidence(Struct, frozen=True):
    """One piece. ``cause`` is what runs with the same fault share: a tool, a message, the names of arguments.

    ``n_agree`` of ``n_peers`` peers stand against the run, where it is about them.
    """

    kind: Kind
    text: str
    cause: str
    n_agree: int | None = None
    n_peers: int | None = None


def explain(
    place: int,
    peers: Sequence[int],
    signatures: Signatures,
    changes: Sequence[frozenset[int]],
    basis: str,
    *,
    by_name: bool,
) -> tuple[Evidence, ...]:
    """The evidence about one run, what tells most first."""
    run = signatures.runs[place]
    found = list(_by_itself(run, signatures))
    if basis == "effects":
        found += _effects(place, peers, signatures, changes, by_name=by_name)
        found += _parting(place, peers, signatures, changes)
    else:
        found += _answers(run, [signatures.runs[peer] for peer in peers])
    order = {kind: number for number, kind in enumerate(Kind.__args__)}  # type: ignore[attr-defined]
    return tuple(sorted(found, key=lambda each: order[each.kind])[:MOST_LINES])


def _by_itself(run: RunSignature, signatures: Signatures) -> Iterable[Evidence]:
    if run.error:
        yield Evidence("error", f"ended with an error: {run.error[:_LONGEST_ERROR]}", run.error)
    for tool, said in run.failed:
        name = signatures.tools[tool]
        yield Evidence(
            "failed call", f"`{name}` failed and was never repaired: {said[:_LONGEST_ERROR]}", f"{name}: {said}"
        )
    if run.answer is None:
        yield Evidence("no answer", "gave no final answer", "")
    if run.loop is not None:
        name = signatures.tools[run.loop]
        yield Evidence("loop", f"called `{name}` again and again with the same arguments", name)


def _effects(
    place: int, peers: Sequence[int], signatures: Signatures, changes: Sequence[frozenset[int]], *, by_name: bool
) -> Iterable[Evidence]:
    """Changes that most peers made and this run did not, and the other way round."""
    effects = signatures.effects
    n = len(peers)
    n_with = Counter(number for peer in peers for number in changes[peer])
    tools_with = Counter(tool for peer in peers for tool in {effects[number].tool for number in changes[peer]})
    own = changes[place]
    own_tools = {effects[number].tool for number in own}
    explained: set[str] = set()
    for tool, count in tools_with.most_common():
        if 2 * count > n and tool not in own_tools:
            explained.add(tool)
            which = _usual(tool, n_with, effects, n)
            of = f"`{which}`" if which is not None and not by_name else f"`{tool}`"
            yield Evidence(
                "missing call", f"{count} of {n} peers called {of}, this one did not call `{tool}`", tool, count, n
            )
    for tool in sorted(own_tools):
        count = tools_with[tool]
        if 2 * count <= n:
            explained.add(tool)
            which = next(effects[number] for number in sorted(own) if effects[number].tool == tool)
            few = f"{n - count} of {n} peers did not" if count else "no peer did" if n > 1 else "its peer did not"
            yield Evidence("further call", f"called `{tool if by_name else which}`; {few}", tool, n - count, n)
    if by_name:
        return
    for number, count in n_with.most_common():
        effect = effects[number]
        if 2 * count <= n or number in own or effect.tool in explained:
            continue
        explained.add(effect.tool)
        mine = [effects[each] for each in own if effects[each].tool == effect.tool and 2 * n_with[each] <= n]
        nearest = min(mine, key=lambda each: len(differing_arguments(each, effect)), default=None)
        if nearest is None:
            yield Evidence(
                "missing call", f"{count} of {n} peers also called `{effect}`, this one did not", effect.tool, count, n
            )
        else:
            yield _other_arguments(nearest, effect, count, n)
    for number in sorted(own):
        effect = effects[number]
        if effect.tool not in explained and 2 * n_with[number] <= n:
            explained.add(effect.tool)
            others = n - n_with[number]
            text = f"called `{effect}`; {others} of {n} peers called `{effect.tool}` otherwise or not at all"
            yield Evidence("other arguments", text, _about(effect, [], effects, n_with), others, n)


def _usual(tool: str, n_with: Counter[int], effects: Sequence[Effect], n: int) -> Effect | None:
    """The call of a tool that most peers made alike."""
    number = max((each for each in n_with if effects[each].tool == tool), key=lambda each: n_with[each], default=None)
    return effects[number] if number is not None and 2 * n_with[number] > n else None


def _other_arguments(own: Effect, other: Effect, count: int, n: int) -> Evidence:
    names = differing_arguments(own, other)
    mine, theirs = dict(own.arguments), dict(other.arguments)
    said = "; ".join(_difference(name, mine, theirs) for name in names[:_NAMED_ARGUMENTS])
    more = f"; {len(names) - _NAMED_ARGUMENTS} more differ" if len(names) > _NAMED_ARGUMENTS else ""
    text = f"{count} of {n} peers called `{own.tool}` with {said}{more}"
    return Evidence("other arguments", text, f"{own.tool} with other {', '.join(names[:_NAMED_ARGUMENTS])}", count, n)


def _about(effect: Effect, names: Sequence[str], effects: Sequence[Effect], n_with: Counter[int]) -> str:
    """What a call without a majority against it is about: the arguments in which it differs from the nearest one."""
    others = [each for each in map(effects.__getitem__, n_with) if each.tool == effect.tool and each != effect]
    nearest = min(others, key=lambda each: len(differing_arguments(each, effect)), default=None)
    names = differing_arguments(effect, nearest) if nearest is not None else names
    return f"{effect.tool} with other {', '.join(names[:_NAMED_ARGUMENTS])}" if names else f"{effect.tool} otherwise"


def _difference(name: str, mine: dict[str, str], theirs: dict[str, str]) -> str:
    own, other = _value(mine, name), _value(theirs, name)
    # Of long values only the beginning is kept.
    return f"other {name or 'arguments'}" if own == other else f"{name or 'argument'} {other}, this one {own}"


def _value(arguments: dict[str, str], name: str) -> str:
    return f"`{arguments[name].partition(chr(0))[0]}`" if name in arguments else "none"


def _answers(run: RunSignature, peers: Sequence[RunSignature]) -> Iterable[Evidence]:
    if run.answer is None:
        count = sum(peer.answer is not None for peer in peers)
        if count:
            yield Evidence(
                "other answer", f"{count} of {len(peers)} peers gave an answer", "no answer", count, len(peers)
            )
        return
    answered = [peer.answer for peer in peers if peer.answer is not None]
    against = [each for each in answered if answer_difference(run.answer, each) > 0.5]
    if not against:
        return
    # Answers that agree with each other count as one, under the words of the shortest. Few are tried: comparing all
    # with all takes minutes where a question was asked thousands of times.
    tried = sorted(Counter(against).items(), key=lambda each: (-each[1], len(each[0].shown)))[:_ANSWERS_TRIED]
    count, best = max(
        ((sum(answer_difference(each, other) <= 0.5 for other in against), each) for each, _ in tried),
        key=lambda found: (found[0], -len(found[1].shown)),
    )
    if count > 1 or len(against) == 1:
        verb = "answer" if count > 1 else "answers"
        text = f"{count} of {len(peers)} peers {verb} “{best.shown}”, this one “{run.answer.shown}”"
    else:
        otherwise = f"{len(against)} of {len(peers)} peers answer otherwise, each in its own way"
        text = f"{otherwise}; this one “{run.answer.shown}”"
    kind = "a number" if any(word.lstrip("-")[:1].isdigit() for word in run.answer.stated or ()) else "words"
    yield Evidence("other answer", text, f"another answer ({kind})", len(against), len(peers))


def _parting(
    place: int, peers: Sequence[int], signatures: Signatures, changes: Sequence[frozenset[int]]
) -> Iterable[Evidence]:
    """The step at which a run leaves the peers that end alike: the longest way that it went with one of them."""
    alike = Counter(changes[peer] for peer in peers).most_common(1)
    if not alike or alike[0][1] < 2 or alike[0][0] == changes[place]:
        return
    own = array("H", signatures.runs[place].path)
    best: tuple[int, int, int] | None = None
    for peer in peers:
        if changes[peer] != alike[0][0]:
            continue
        path = array("H", signatures.runs[peer].path)
        shared = next((at for at, (mine, theirs) in enumerate(zip(own, path, strict=False)) if mine != theirs), None)
        shared = min(len(own), len(path)) if shared is None else shared
        theirs = path[shared] if shared < len(path) else -1
        if best is None or shared > best[0]:
            best = (shared, own[shared] if shared < len(own) else -1, theirs)
    if best is None or best[1] == best[2]:
        return
    shared, mine, theirs = best
    names = [f"`{signatures.tools[each]}`" if each >= 0 else "nothing more" for each in (mine, theirs)]
    text = f"at tool call {shared + 1} it calls {names[0]} where peers that end alike call {names[1]}"
    yield Evidence("leaves its peers", text, f"{names[0]} instead of {names[1]}".replace("`", ""))
