"""The spans of one trace as a tree, whatever is wrong with their parents, ids and clocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agentunit.traces.spans import ReadingNotes, Span
from agentunit.traces.vocabularies import facts_of
from agentunit.traces.vocabularies.values import Facts

_SKEW_S = 0.001
_UNKNOWN_TIME = float("inf")


class Node:
    """A span in its tree, with what it says."""

    __slots__ = ("agent", "depth", "facts", "parent", "span", "within_evaluation")

    def __init__(self, span: Span) -> None:
        self.span = span
        self.facts: Facts = facts_of(span)
        self.parent: Node | None = None
        self.depth = 0
        self.agent: str | None = None
        self.within_evaluation = False

    @property
    def start_s(self) -> float:
        """When the span began; unknown times sort last."""
        return _UNKNOWN_TIME if self.span.start_s is None else self.span.start_s

    @property
    def duration_s(self) -> float | None:
        """How long the span took, where its times make sense."""
        start, end = self.span.start_s, self.span.end_s
        return None if start is None or end is None or end < start else end - start


def grow(spans: Sequence[Span], notes: ReadingNotes) -> list[Node]:
    """The nodes of a trace, or of all traces of a session, in the order in which they began, with their parents.

    Repeated spans are left out; a span whose parent is missing, or that is its own ancestor, becomes a root. Each of
    these is counted in ``notes.problems``.
    """
    by_id: dict[tuple[str, str], Node] = {}
    without_id: list[Node] = []
    for span in spans:
        if not span.span_id:
            notes.problems["spans have no id; they count, but nothing can name them as its parent"] += 1
            without_id.append(Node(span))
            continue
        own_id = (span.trace_id, span.span_id)
        known = by_id.get(own_id)
        if known is None:
            by_id[own_id] = Node(span)
        elif known.span == span:
            notes.problems["spans came twice; the second was left out"] += 1
        else:
            notes.problems["spans share an id with another span; the one that ended later was kept"] += 1
            if (span.end_s or 0.0) > (known.span.end_s or 0.0):
                by_id[own_id] = Node(span)
    nodes = [*by_id.values(), *without_id]
    for node in nodes:
        parent_id = node.span.parent_id
        if not parent_id:
            continue
        parent = by_id.get((node.span.trace_id, parent_id))
        if parent is None:
            notes.problems["spans name a parent that is not in the file; they count as roots"] += 1
        else:
            node.parent = parent
            _note_clocks(node.span, parent.span, notes)
    _find_depths(nodes, notes)
    nodes.sort(key=_order)
    return nodes


def _order(node: Node) -> tuple[float, int, float, str]:
    """Of spans that begin together the outer one comes first, then the one that ended first, in whatever file order."""
    span = node.span
    return (node.start_s, node.depth, _UNKNOWN_TIME if span.end_s is None else span.end_s, span.span_id)


def top_down(nodes: Sequence[Node]) -> list[Node]:
    """The nodes with every parent before its children."""
    return sorted(nodes, key=lambda node: node.depth)


def nearest_above(nodes: Sequence[Node], test: Callable[[Node], bool]) -> dict[Node, Node | None]:
    """For each node the nearest one around it that passes the test."""
    try:
        return _nearest_above(nodes, test)
    except KeyError:  # a span began before its parent: clocks disagree
        return _nearest_above(top_down(nodes), test)


def _nearest_above(nodes: Sequence[Node], test: Callable[[Node], bool]) -> dict[Node, Node | None]:
    found: dict[Node, Node | None] = {}
    for node in nodes:
        parent = node.parent
        found[node] = None if parent is None else parent if test(parent) else found[parent]
    return found


def _find_depths(nodes: Sequence[Node], notes: ReadingNotes) -> None:
    """Give every node its depth; where parents go in a circle, it is cut at the span that was met first."""
    known: set[Node] = set()
    for node in nodes:
        path: dict[Node, None] = {}
        here: Node | None = node
        while here is not None and here not in known:
            if here in path:
                notes.problems["spans are their own ancestors; the circle was cut"] += 1
                here.parent = None
                break
            path[here] = None
            here = here.parent
        for each in reversed(path):
            each.depth = 0 if each.parent is None else each.parent.depth + 1
            known.add(each)


def _note_clocks(span: Span, parent: Span, notes: ReadingNotes) -> None:
    if span.start_s is None or parent.start_s is None:
        return
    if span.start_s < parent.start_s - _SKEW_S:
        notes.problems["spans begin before their parent: clocks disagree"] += 1
    if span.end_s is not None and span.end_s < span.start_s:
        notes.problems["spans end before they begin; their duration is unknown"] += 1
