"""Texts that were recorded in pieces, as a model streamed them: a value may begin in one piece and end in another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from agentunit.privacy.detection.gazetteer import word_set

_LISTS = word_set("chunks deltas tokens stream parts pieces fragments segments partials stream_chunks")
_MARKS = ("delta", "chunk", "token", "stream", "partial")
_TEXTS = word_set("content text delta token chunk output_text partial_json arguments part value data")
_SENTENCE_ENDS = (".", "!", "?", ":", ";", "\n", "}", "]")
_SHORT = 40
_DEEPEST = 5


class _Piece(NamedTuple):
    """Where a piece stands: in a field (or at an index) of its holder."""

    holder: Any
    field: Any

    @property
    def text(self) -> str:
        return str(self.holder[self.field])


def joined(pieces: Sequence[_Piece]) -> str:
    """The whole text that pieces are of."""
    return "".join(piece.text for piece in pieces)


def mask_across_pieces(data: Any, spans_in: Callable[[str], Sequence[tuple[int, int, str]]]) -> int:
    """Replace in place what reaches from one piece of a text into the next; returns how many pieces changed.

    ``spans_in`` gives, for a whole text, spans and what stands for each. The first piece gets that; the others
    lose their part of the value.

    >>> pieces = ["my mail is ada@ex", "ample.org", " thanks"]
    >>> mask_across_pieces({"chunks": pieces}, lambda text: [(11, 26, "<EMAIL_1>")]), pieces
    (2, ['my mail is <EMAIL_1>', '', ' thanks'])
    """
    n_changed = 0
    for pieces in list(streams_of(data)):
        texts = [piece.text for piece in pieces]
        edges = [0, *accumulate(map(len, texts))]
        changed = list(texts)
        for start, end, mark in sorted(spans_in("".join(texts)), reverse=True):
            inside = [n for n in range(len(texts)) if edges[n] < end and start < edges[n + 1]]
            if len(inside) < 2:
                continue
            for n in inside:
                left, right = max(start - edges[n], 0), min(end - edges[n], len(texts[n]))
                changed[n] = changed[n][:left] + (mark if n == inside[0] else "") + changed[n][right:]
        for piece, old, new in zip(pieces, texts, changed, strict=True):
            if new != old:
                piece.holder[piece.field] = new
                n_changed += 1
    return n_changed


def streams_of(data: Any) -> Iterator[list[_Piece]]:
    """The texts that data holds in pieces: lists called so, and lists of objects with short texts at one place."""
    pending: list[tuple[str, Any]] = [("", data)]
    while pending:
        name, each = pending.pop()
        if isinstance(each, dict):
            pending += [(str(key), child) for key, child in each.items()]
        elif isinstance(each, list):
            if all(isinstance(child, str) for child in each):
                if name.lower() in _LISTS and len(each) > 1:
                    yield [_Piece(each, place) for place in range(len(each))]
                continue
            yield from _streams_in(name, each)
            pending += [(name, child) for child in each if isinstance(child, (dict, list))]


def _streams_in(name: str, items: list[Any]) -> Iterator[list[_Piece]]:
    by_path: dict[str, list[_Piece]] = {}
    for item in items:
        for path, piece in _texts_in(item):
            by_path.setdefault(path, []).append(piece)
    for path, pieces in by_path.items():
        if len(pieces) > 1 and (name.lower() in _LISTS or _looks_streamed(path, [piece.text for piece in pieces])):
            yield pieces


def _looks_streamed(path: str, texts: list[str]) -> bool:
    if any(mark in path for mark in _MARKS):
        return True
    is_short = len(texts) > 3 and sum(map(len, texts)) <= _SHORT * len(texts)
    return is_short and sum(text.rstrip(" ").endswith(_SENTENCE_ENDS) for text in texts[:-1]) < len(texts) / 2


def _texts_in(item: Any) -> Iterator[tuple[str, _Piece]]:
    """The texts of an item that a piece may stand in, with the path to each; the kind of an event is part of it."""
    pending: list[tuple[str, Any, int]] = [("", item, 0)]
    while pending:
        path, each, depth = pending.pop()
        if isinstance(each, dict) and depth < _DEEPEST:
            kind = each.get("type")
            path += f"({kind})" if isinstance(kind, str) and len(kind) < _SHORT else ""
            role = each.get("role")
            path += f"({role})" if isinstance(role, str) and len(role) < _SHORT else ""
            for key, child in each.items():
                if isinstance(child, str) and str(key).lower() in _TEXTS:
                    yield f"{path}.{str(key).lower()}", _Piece(each, key)
                elif isinstance(child, (dict, list)):
                    pending.append((f"{path}.{str(key).lower()}", child, depth + 1))
        elif isinstance(each, list) and len(each) == 1 and depth < _DEEPEST:
            pending.append((f"{path}[]", each[0], depth + 1))
