"""Why a run is suspected, in words: what its peers did and it did not, and what it shows by itself."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from msgspec import Struct

from agentunit.addons.review.suspects._answers import AnswerSignature
from agentunit.addons.review.suspects._effects import Effect, SpelledValue, compared, differing_arguments, spelled
from agentunit.addons.review.suspects.signatures import RunSignature, Signatures
from agentunit.engine.deciding.causes import QUOTE, tool_words
from agentunit.formulas.text import shortened

# In what two calls of a tool differ: what only one of them has, never what both have.

LONGEST_DIFFERENCE = 80
"""So many characters of what only one of two values has are shown."""

_PART_STARTS = re.compile(r"[{\[]|, |: ")


def differing_values(own: Effect, other: Effect, name: str) -> tuple[str | None, str | None]:
    """What only one and what only the other of two calls has in an argument, in short.

    ``None`` where a call does not have the argument, and nothing where it has no more than the other call.

    >>> from agentunit.addons.review.suspects._effects import EffectTable
    >>> table = EffectTable()
    >>> two, one = table.add("tag", {"names": ["x", "y"]}), table.add("tag", {"names": ["x"]})
    >>> differing_values(table[two], table[one], "names")
    ('… y', '')
    """
    mine, theirs = (
        next((value for (each, _), value in zip(call.arguments, call.kept, strict=True) if each == name), None)
        for call in (own, other)
    )
    if mine is None or theirs is None:
        left, right = (None if each is None else _joined([spelled(each)]) for each in (mine, theirs))
        return left, right
    if isinstance(mine, str) or type(mine) is not type(theirs):
        return _from_where_they_part(spelled(mine), spelled(theirs))
    only_mine, only_theirs = _only_in_one(mine, theirs)
    return _joined(only_mine, "… "), _joined(only_theirs, "… ")


def _only_in_one(mine: SpelledValue, theirs: SpelledValue) -> tuple[list[str], list[str]]:
    """What only one of two values has and what only the other has, each as texts."""
    if isinstance(mine, dict) and isinstance(theirs, dict):
        return _fields_only_in_one(mine, theirs)
    if isinstance(mine, list) and isinstance(theirs, list):
        return _items_only_in_one(mine, theirs)
    return [spelled(mine)], [spelled(theirs)]


def _fields_only_in_one(mine: dict[str, SpelledValue], theirs: dict[str, SpelledValue]) -> tuple[list[str], list[str]]:
    found: tuple[list[str], list[str]] = ([], [])
    for name in sorted(mine.keys() | theirs.keys()):
        if name not in mine or name not in theirs:
            found[name not in mine].append(f"{name}: {spelled((mine if name in mine else theirs)[name])}")
        elif compared(mine[name]) != compared(theirs[name]):
            for side, only in zip(found, _only_in_one(mine[name], theirs[name]), strict=True):
                side += [f"{name}: {each}" for each in only]
    return found


def _items_only_in_one(mine: list[SpelledValue], theirs: list[SpelledValue]) -> tuple[list[str], list[str]]:
    of_mine, of_theirs = Counter(map(compared, mine)), Counter(map(compared, theirs))
    one = [each for each in mine if compared(each) not in of_theirs]
    other = [each for each in theirs if compared(each) not in of_mine]
    # What both have, and one of them more often.
    often = {text: each for each in mine if of_theirs[text := compared(each)] not in (0, of_mine[text])}
    again = [[f"{count[text]} × {spelled(each)}" for text, each in often.items()] for count in (of_mine, of_theirs)]
    pair = _pair_only_in_one(one[0], other[0], mine, theirs) if len(one) == len(other) == 1 else None
    only_mine, only_theirs = pair or (_told_apart(one, theirs), _told_apart(other, mine))
    return [*only_mine, *again[0]], [*only_theirs, *again[1]]


def _pair_only_in_one(
    one: SpelledValue, other: SpelledValue, mine: list[SpelledValue], theirs: list[SpelledValue]
) -> tuple[list[str], list[str]] | None:
    """In what an item differs from the one in its place, unless a further item has the same."""
    only = _only_in_one(one, other)
    further = " ".join(compared(each) for each in [*mine, *theirs] if each is not one and each is not other)
    values = [compared(text.rpartition(": ")[2]) for side in only for text in side]
    return only if all(only) and not any(value in further for value in values) else None


def _told_apart(items: list[SpelledValue], others: list[SpelledValue]) -> list[str]:
    """Items that another list does not have: by their fields that no item of it has, else whole."""
    fields = {(name, compared(value)) for each in others if isinstance(each, dict) for name, value in each.items()}
    found = []
    for item in items:
        named = item.items() if fields and isinstance(item, dict) else ()
        own = [f"{name}: {spelled(value)}" for name, value in sorted(named) if (name, compared(value)) not in fields]
        found.append("{" + ", ".join(own) + "}" if len(own) > 1 else "".join(own) or spelled(item))
    return list(dict.fromkeys(found))


def _joined(texts: list[str], before: str = "") -> str:
    """As many of them as there is room for."""
    if not texts:
        return ""
    shown = [shortened(texts[0], LONGEST_DIFFERENCE)]
    for text in texts[1:]:
        if len(", ".join([*shown, text])) > LONGEST_DIFFERENCE:
            break
        shown.append(text)
    more = len(texts) - len(shown)
    return before + ", ".join([*shown, f"{more} more"] if more else shown)


def _from_where_they_part(mine: str, theirs: str) -> tuple[str, str]:
    start = 0
    if max(len(mine), len(theirs)) > LONGEST_DIFFERENCE:
        pairs = zip(mine.casefold(), theirs.casefold(), strict=False)
        parted = next((at for at, (left, right) in enumerate(pairs) if left != right), min(len(mine), len(theirs)))
        # From the beginning of a part on: half a value may be half an address.
        start = max((found.end() for found in _PART_STARTS.finditer(mine[:parted])), default=0)
    left, right = (shortened(f"…{each[start:]}" if start else each, LONGEST_DIFFERENCE) for each in (mine, theirs))
    return left, right


EvidenceKind = Literal[
    "error", "missing call", "other arguments", "further call", "no answer", "other answer", "failed call",
    "not supported", "leaves its peers", "loop",
]  # fmt: skip
MOST_LINES = 12
"""So many pieces of evidence are kept of a run: who needs more reads the trace."""
_ORDER = {kind: number for number, kind in enumerate(EvidenceKind.__args__)}  # type: ignore[attr-defined]
_NAMED_ARGUMENTS = 3
_LONGEST_ERROR = 160
_LONGEST_ANSWER = 60
_ANSWERS_TRIED = 3

AnswerDifference = Callable[[AnswerSignature, AnswerSignature], float]


class SuspectEvidence(Struct, frozen=True):
    """One piece. ``cause`` is what runs with the same fault share: a tool, a message, the names of arguments.

    ``n_agree`` of ``n_peers`` peers stand against the run, where it is about them.
    """

    kind: EvidenceKind
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
    difference: AnswerDifference,
) -> tuple[SuspectEvidence, ...]:
    """The evidence about one run, what tells most first."""
    run = signatures.runs[place]
    found: list[SuspectEvidence] = []
    if run.error:
        found.append(
            SuspectEvidence("error", f"ended with an error: {shortened(run.error, _LONGEST_ERROR)}", run.error)
        )
    missing: list[str] = []
    if basis == "effects":
        found += _effects(place, peers, signatures, changes, missing, by_name=by_name)
        found += _parting(place, peers, signatures, changes, missing)
        if run.answer is None:
            found.append(SuspectEvidence("no answer", "gave no final answer", ""))
    else:
        found += _answers(run, [signatures.runs[peer] for peer in peers], difference)
    found += _by_itself(run, signatures, missing)
    return in_order(found)


def in_order(evidence: Iterable[SuspectEvidence]) -> tuple[SuspectEvidence, ...]:
    """Pieces of evidence by what they tell: how a run ended, what its peers say against it, what it shows by itself."""

    def place(each: SuspectEvidence) -> int:
        # A call that peers made and that failed here is why it is missing.
        kind: EvidenceKind = "missing call" if each.kind == "failed call" and each.n_peers is not None else each.kind
        return _ORDER[kind]

    return tuple(sorted(evidence, key=place)[:MOST_LINES])


def _by_itself(run: RunSignature, signatures: Signatures, missing: Sequence[str]) -> Iterable[SuspectEvidence]:
    for tool, said in run.failed:
        name = signatures.tools[tool]
        if name not in missing:
            text = f"`{tool_words(name)}` failed, and no later call of it succeeded: {shortened(said, _LONGEST_ERROR)}"
            yield SuspectEvidence("failed call", text, f"{name}: {said}")
    if run.loop is not None:
        tool, period, rounds = run.loop
        name = signatures.tools[tool]
        calls = "" if period == 1 else f" and the {_counted(period - 1, 'call')} after it"
        text = f"called `{tool_words(name)}`{calls} {rounds:,} times in a row with the same arguments"
        yield SuspectEvidence("loop", text, name)


def _effects(
    place: int,
    peers: Sequence[int],
    signatures: Signatures,
    changes: Sequence[frozenset[int]],
    missing: list[str],
    *,
    by_name: bool,
) -> Iterable[SuspectEvidence]:
    """Changes that most peers made and this run did not, and the other way round. Adds to ``missing`` its tools."""
    effects, run = signatures.effects, signatures.runs[place]
    n = len(peers)
    n_with = Counter(number for peer in peers for number in changes[peer])
    tools_with = Counter(tool for peer in peers for tool in {effects.tool(number) for number in changes[peer]})
    own = changes[place]
    own_tools = {effects.tool(number) for number in own}
    failed = {signatures.tools[tool]: said for tool, said in run.failed}
    explained: set[str] = set()
    for tool, count in sorted(tools_with.items(), key=lambda each: (-each[1], each[0])):
        if 2 * count > n and tool not in own_tools:
            explained.add(tool)
            missing.append(tool)
            said = failed.get(tool)
            theirs = _majority(tool, count, n, n_with, effects.__getitem__, signatures, by_name=by_name)
            if said is not None:
                text = f"{theirs}; here it failed: {shortened(said, _LONGEST_ERROR)}"
                yield SuspectEvidence("failed call", text, f"{tool}: {said}", count, n)
            else:
                yield SuspectEvidence(
                    "missing call", f"{theirs}, this one did not call `{tool_words(tool)}`", tool, count, n
                )
    for tool in sorted(own_tools):
        count = tools_with[tool]
        if 2 * count <= n:
            explained.add(tool)
            number = min(each for each in own if effects.tool(each) == tool)
            call = tool_words(tool) if by_name else str(effects[number])
            few = f"{n - count} of {n} peers did not call `{tool_words(tool)}`" if count else "no peer did"
            tried = sum(
                tool in {signatures.tools[each] for each, _ in signatures.runs[peer].failed} and tool not in
                {effects.tool(each) for each in changes[peer]} for peer in peers
            )  # fmt: skip
            few += f" ({tried} tried and failed)" if tried else ""
            yield SuspectEvidence("further call", f"called `{call}`; {few}", tool, n - count, n)
    if not by_name:
        yield from _arguments(run, own, n, n_with, signatures, explained)


def _majority(
    tool: str,
    count: int,
    n: int,
    n_with: Counter[int],
    effect: Callable[[int], Effect],
    signatures: Signatures,
    *,
    by_name: bool,
) -> str:
    """What most peers called, in words: with the arguments that most of them gave alike."""
    name = f"{count} of {n} peers called `{tool_words(tool)}`"
    calls = [number for number in n_with if signatures.effects.tool(number) == tool]
    usual = max(calls, key=lambda each: (n_with[each], -each))
    if by_name or 2 * n_with[usual] <= n:
        return name
    if n_with[usual] == count:
        return f"{count} of {n} peers called `{effect(usual)}`"
    return f"{name}, {n_with[usual]} of them `{effect(usual)}`"


def _arguments(
    run: RunSignature,
    own: frozenset[int],
    n: int,
    n_with: Counter[int],
    signatures: Signatures,
    explained: set[str],
) -> Iterable[SuspectEvidence]:
    """Calls of tools that both this run and most peers called: those with other arguments, and those that are more."""
    effects = signatures.effects
    for number, count in sorted(n_with.items(), key=lambda each: (-each[1], each[0])):
        tool = effects.tool(number)
        if 2 * count <= n or number in own or tool in explained:
            continue
        explained.add(tool)
        effect = effects[number]
        mine = [effects[each] for each in sorted(own) if effects.tool(each) == tool and 2 * n_with[each] <= n]
        nearest = min(mine, key=lambda each: len(differing_arguments(each, effect)), default=None)
        if nearest is None:
            has_failed = tool in {signatures.tools[each] for each in run.ever_failed}
            this_one = "in this one no such call succeeded" if has_failed else "this one did not"
            text = f"{count} of {n} peers also called `{effect}`, {this_one}"
            yield SuspectEvidence("missing call", text, tool, count, n)
        else:
            yield _other_arguments(nearest, effect, count, n)
    for number in sorted(own):
        tool = effects.tool(number)
        if tool not in explained and 2 * n_with[number] <= n:
            explained.add(tool)
            effect, others = effects[number], n - n_with[number]
            if any(2 * n_with[each] > n for each in own if effects.tool(each) == tool):
                # What most peers called it called as well.
                n_more = sum(2 * n_with[each] <= n for each in own if effects.tool(each) == tool) - 1
                more = f" and {n_more} more such calls" if n_more > 1 else " and one more such call" if n_more else ""
                text = f"also called `{effect}`{more}; {others} of {n} peers did not"
                yield SuspectEvidence("other arguments", text, f"{tool} more often", others, n)
                continue
            text = f"{others} of {n} peers called `{tool_words(tool)}` otherwise or not at all"
            theirs = [effects[each] for each in sorted(n_with) if effects.tool(each) == tool and each != number]
            nearest = min(theirs, key=lambda each: len(differing_arguments(each, effect)), default=None)
            if nearest is None:
                yield SuspectEvidence("other arguments", f"called `{effect}`; {text}", f"{tool} otherwise", others, n)
                continue
            names, said = _differences(effect, nearest)
            yield SuspectEvidence(
                "other arguments", f"{text}, such as with {said}", f"{tool} with other {names}", others, n
            )


def _other_arguments(own: Effect, other: Effect, count: int, n: int) -> SuspectEvidence:
    names, said = _differences(own, other)
    text = f"{count} of {n} peers called `{tool_words(own.tool)}` with {said}"
    return SuspectEvidence("other arguments", text, f"{own.tool} with other {names}", count, n)


def _differences(own: Effect, other: Effect) -> tuple[str, str]:
    """The first arguments in which two calls differ: their names, and what each call has in them."""
    names = differing_arguments(own, other)
    said = "; ".join(_difference(name, own, other) for name in names[:_NAMED_ARGUMENTS])
    more = f"; {len(names) - _NAMED_ARGUMENTS} more differ" if len(names) > _NAMED_ARGUMENTS else ""
    return ", ".join(names[:_NAMED_ARGUMENTS]), said + more


def _difference(name: str, own: Effect, other: Effect) -> str:
    mine, theirs = (
        each if not each else f"`{each.replace('`', QUOTE)}`" for each in differing_values(own, other, name)
    )
    shown = shortened(name, _LONGEST_ANSWER).replace("`", QUOTE) or "argument"
    if mine == theirs or (mine and theirs and mine.casefold() == theirs.casefold()):
        # Of very long values only the beginning is kept.
        return f"other {shown}"
    if mine == "":
        return f"{theirs} in {shown}, this one without it"
    if theirs == "":
        return f"no {mine} in {shown}, this one with it"
    return f"{shown} {theirs or 'none'}, this one {mine or 'none'}"


def _answers(
    run: RunSignature, peers: Sequence[RunSignature], difference: AnswerDifference
) -> Iterable[SuspectEvidence]:
    own, n = run.answer, len(peers)
    answered = [peer.answer for peer in peers if peer.answer is not None]
    if own is None:
        yield SuspectEvidence(
            "no answer", f"gave no final answer; {len(answered)} of {n} peers did", "", len(answered), n
        )
        return
    against = [each for each in answered if difference(own, each) > 0.5]
    if not against:
        return
    # Answers that agree with each other count as one, under the words of the shortest. Few are tried: comparing all
    # with all takes minutes where a question was asked thousands of times.
    same = Counter(against)
    tried = sorted(same, key=lambda each: (-same[each], len(each.shown), each.shown))[:_ANSWERS_TRIED]
    agreeing = {each: [other for other in against if difference(each, other) <= 0.5] for each in tried}
    best = max(tried, key=lambda each: (len(agreeing[each]), -len(each.shown)))
    count = len(agreeing[best])
    theirs, this_one = _quoted(best), f"this one {_quoted(own)}"
    if count > 1 or len(against) == 1:
        # Words are alike, and hardly ever the same.
        as_it_is = best.stated is not None and all(each.stated == best.stated for each in agreeing[best])
        verb = ("answer" if count > 1 else "answers") + ("" if as_it_is or count == 1 else " much like")
        text = f"{count} of {n} peers {verb} {theirs}, {this_one}"
    else:
        text = f"{len(against)} of {n} peers answer otherwise, such as {theirs}; {this_one}"
    kind = "a number" if any(word.lstrip("-")[:1].isdigit() for word in own.stated or ()) else "words"
    yield SuspectEvidence("other answer", text, f"another answer ({kind})", len(against), n)


def _quoted(answer: AnswerSignature) -> str:
    return f"“{shortened(answer.shown, _LONGEST_ANSWER)}”"


def _parting(
    place: int,
    peers: Sequence[int],
    signatures: Signatures,
    changes: Sequence[frozenset[int]],
    missing: Sequence[str],
) -> Iterable[SuspectEvidence]:
    """What a run did in place of a call that most peers made, where a peer went the same way up to there.

    Elsewhere runs part because each looks around in its own way, which tells nothing.
    """
    if not missing:
        return
    own = array("H", signatures.runs[place].path)
    best: tuple[int, int] | None = None
    for peer in peers:
        path = array("H", signatures.runs[peer].path)
        shared = next((at for at, (mine, theirs) in enumerate(zip(own, path, strict=False)) if mine != theirs), None)
        if shared and signatures.tools[path[shared]] in missing and (best is None or shared > best[0]):
            best = (shared, path[shared])
    if best is None:
        return
    shared, theirs = best
    names = [tool_words(signatures.tools[each]) for each in (own[shared], theirs)]
    text = f"called `{names[0]}` (tool call {shared + 1}) where a peer, after the same tools, called `{names[1]}`"
    yield SuspectEvidence("leaves its peers", text, f"{names[0]} instead of {names[1]}")


def _counted(number: int, noun: str) -> str:
    return noun if number == 1 else f"{number} {noun}s"
