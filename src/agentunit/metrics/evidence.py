"""What the agent saw: the texts that an answer may rest on, each with where it came from."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from math import log
from typing import Any, NamedTuple

from agentunit.core.results import json_within
from agentunit.core.trace import tool_status
from agentunit.metrics.inputs import Item, case_passages, retrieved_by_query

KINDS = ("context", "retrieved", "tools")
"""What may count as evidence: the case's context, documents of retrieval events, results of tool calls."""
MOST_CHARACTERS = 32_000
"""How much of documents and tool results is taken beside the context, which is always taken whole."""
PART_CHARACTERS = 2_000
"""Longer documents and results are cut into parts of about this size, so that the part that matters can be taken."""
NOT_MEASURED = "what this score is worth was measured with given context, not with tool results"

_LONGEST_QUERY = 60
_DEEPEST = 20
_WORD = re.compile(r"\d+(?:[.,:]\d+)*|\w{2,}")


class EvidencePart(NamedTuple):
    """A text that the agent saw. ``source`` says where it stands: ``context[2]``, ``tool "search" call 3``."""

    text: str
    source: str
    kind: str


class Evidence(NamedTuple):
    """What an answer is held against; ``n_left_out`` parts were less relevant and did not fit."""

    pieces: tuple[EvidencePart, ...]
    n_left_out: int = 0

    @property
    def texts(self) -> list[str]:
        """The texts in order."""
        return [piece.text for piece in self.pieces]

    @property
    def sources(self) -> list[str]:
        """Where each text came from."""
        return [piece.source for piece in self.pieces]


def evidence_kinds(received: Any, owner: str) -> tuple[str, ...]:
    """The kinds that a parameter ``evidence`` names: ``"all"``, one kind, or several.

    >>> evidence_kinds("all", "Metric"), evidence_kinds(["tools", "context"], "Metric")
    (('context', 'retrieved', 'tools'), ('context', 'tools'))
    """
    named = (received,) if isinstance(received, str) else received
    if named == ("all",):
        return KINDS
    if not isinstance(named, (list, tuple, set, frozenset)) or not named or not all(each in KINDS for each in named):
        kinds = ", ".join(map(repr, KINDS))
        raise ValueError(f"{owner}: evidence must be 'all', one of {kinds}, or a list of them; received {received!r}")
    return tuple(kind for kind in KINDS if kind in named)


def evidence_of(item: Item, kinds: Sequence[str] = KINDS) -> Evidence:
    """What the agent saw, within bounds: the context whole, then documents and tool results, most relevant first.

    A text that was seen twice counts once. Relevance is how many of the answer's words a part holds, rare ones counting
    more; it decides what is taken where not all of it fits.

    >>> item = Item({"id": "q1"}, {"events": [{"type": "tool_call", "payload": {"name": "find", "result": "7"}}]}, "7")
    >>> evidence_of(item).pieces
    (EvidencePart(text='7', source='tool "find" call 1', kind='tools'),)
    """
    if item.evidence is None:
        item.evidence = {}
    key = tuple(kinds)
    if key not in item.evidence:
        item.evidence[key] = _gathered(item, key)
    found: Evidence = item.evidence[key]
    return found


def _gathered(item: Item, kinds: tuple[str, ...]) -> Evidence:
    given = [EvidencePart(text, f"context[{at}]", "context") for at, text in case_passages(item.case)]
    given = given if "context" in kinds else []
    seen = {_plain(piece.text) for piece in given}
    parts: list[EvidencePart] = []
    for kind, read in (("retrieved", _retrieved), ("tools", _tool_results)):
        for piece in read(item) if kind in kinds else ():
            if (plain := _plain(piece.text)) and plain not in seen:
                seen.add(plain)
                parts += _parts(piece)
    taken: list[EvidencePart] = []
    left = MOST_CHARACTERS
    for piece in _most_relevant_first(parts, item.answer or ""):
        if len(piece.text) <= left:
            taken.append(piece)
            left -= len(piece.text)
    return Evidence((*given, *taken), len(parts) - len(taken))


def _retrieved(item: Item) -> Iterator[EvidencePart]:
    for query, at, text in retrieved_by_query(item.trace):
        shown = " ".join(str(query).split()) if query else ""
        shown = shown if len(shown) <= _LONGEST_QUERY else shown[: _LONGEST_QUERY - 1] + "…"
        yield EvidencePart(
            text, f'retrieval "{shown}" document {at}' if shown else f"retrieval document {at}", "retrieved"
        )


def _tool_results(item: Item) -> Iterator[EvidencePart]:
    """Results of tool calls, and what failed calls said: an agent that reports the failure has it from there."""
    for number, call in enumerate(item.tool_calls, 1):
        source = f'tool "{" ".join(str(call.get("name") or "unnamed").split())}" call {number}'
        result, error = call.get("result"), call.get("error")
        failed = tool_status(call) == "error" or bool(error)
        if not _is_echo(result, call.get("arguments")):
            yield EvidencePart(readable_text(result), f"{source} (failed)" if failed else source, "tools")
        if error:
            yield EvidencePart(readable_text(error), f"{source} (failed)", "tools")


def _is_echo(result: Any, arguments: Any) -> bool:
    """Whether a tool gave back what the agent told it (its thought, its final answer): an agent cannot prove itself."""
    if result is None or arguments is None:
        return result is None
    told = json_within(arguments)
    values = [told, *(told.values() if isinstance(told, dict) else told if isinstance(told, list) else ())]
    plain = _plain(readable_text(result))
    return len(plain) > PART_CHARACTERS // 50 and any(plain == _plain(readable_text(each)) for each in values)


def readable_text(value: Any) -> str:
    """Data as lines that a model can read: one for each object, its fields beside each other. Texts stay as they are.

    >>> print(readable_text('{"order": "A-1", "items": [{"unit_price": 3}, {"unit_price": 4}]}'))
    order: A-1
    items: unit price: 3
    items: unit price: 4
    """
    data = json_within(value)
    if isinstance(data, str):
        return data.strip()
    return "" if data is None else "\n".join(_lines(data, "", _DEEPEST))


def _lines(data: Any, name: str, depth: int) -> Iterator[str]:
    data = json_within(data)
    if isinstance(data, dict) and data.get("type") == "text" and isinstance(data.get("text"), str):
        # A part of a message, as MCP and the providers write it.
        yield from _lines(data["text"], "", depth - 1) if depth else (data["text"],)
        return
    within = f"{name}: " if name else ""
    if depth <= 0 or not isinstance(data, (dict, list, tuple)):
        yield f"{within}{_scalar(data)}".strip()
        return
    named = data.items() if isinstance(data, dict) else [("", each) for each in data]
    plain = [(str(key).replace("_", " "), each) for key, each in named if not isinstance(each, (dict, list, tuple))]
    if plain:
        yield within + ", ".join(f"{key}: {_scalar(each)}" if key else _scalar(each) for key, each in plain)
    # Entries of a list are not numbered: a number that no tool gave could support one in the answer.
    for key, each in named:
        if isinstance(each, (dict, list, tuple)) and each:
            yield from _lines(each, f"{name} {str(key).replace('_', ' ')}".strip(), depth - 1)


def _scalar(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "none", True: "true", False: "false"}[value]
    return " ".join(str(value).split()) if isinstance(value, str) else str(value)


def _parts(piece: EvidencePart) -> Iterator[EvidencePart]:
    if len(piece.text) <= PART_CHARACTERS:
        yield piece
        return
    start, number = 0, 1
    while start < len(piece.text):
        end = _end_of_part(piece.text, start)
        yield EvidencePart(piece.text[start:end].strip(), f"{piece.source}, part {number}", piece.kind)
        start, number = end, number + 1


def _end_of_part(text: str, start: int) -> int:
    """Where a part ends: after a line if one ends in its second half, else after a sentence, else between words."""
    if len(text) - start <= PART_CHARACTERS:
        return len(text)
    window = text[start : start + PART_CHARACTERS]
    for mark in ("\n", ". ", " "):
        if (at := window.rfind(mark, PART_CHARACTERS // 2)) >= 0:
            return start + at + len(mark)
    return start + PART_CHARACTERS


def _most_relevant_first(parts: list[EvidencePart], answer: str) -> list[EvidencePart]:
    wanted = _words(answer)
    held = [wanted & _words(piece.text) for piece in parts]
    n_with = Counter(word for words in held for word in words)
    relevance = [sum(log(1 + len(parts) / n_with[word]) for word in sorted(words)) for words in held]
    return [parts[at] for at in sorted(range(len(parts)), key=lambda at: -relevance[at])]


def nearest_piece(text: str, pieces: Sequence[EvidencePart]) -> EvidencePart | None:
    """The piece that shares most words with a text, the shortest of equals; ``None`` when none shares any."""
    wanted = _words(text)
    shared = [(len(wanted & _words(piece.text)), -len(piece.text), piece) for piece in pieces]
    best = max(shared, key=lambda each: each[:2], default=None)
    return best[2] if best is not None and best[0] else None


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
