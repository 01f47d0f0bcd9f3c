"""Measures of a communication graph: who talks to whom, and what holds it together.

All-pairs measures use integers as bit sets, in blocks of nodes so that memory grows with the nodes and not with their
square. Loops and repeated edges do not count. Names come out sorted, so that the order of the input does not matter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from math import fsum

_BLOCK_BITS = 4096
# Bit sets pay off while many nodes are reached in each step; along longer paths walking from node to node is faster.
_MOST_STEPS_BY_BITS = 50


class Graph:
    """A directed graph without loops or repeated edges; its nodes are those given and those that edges name.

    >>> graph = Graph(["idle"], [("a", "b"), ("a", "b"), ("b", "b")])
    >>> graph.names, graph.n_edges
    (['a', 'b', 'idle'], 1)
    """

    __slots__ = ("n_edges", "names", "neighbours", "predecessors")

    def __init__(self, nodes: Iterable[str] = (), edges: Iterable[tuple[str, str]] = ()) -> None:
        ends: defaultdict[str, set[str]] = defaultdict(set)
        for start_name, end_name in edges:
            ends[start_name].add(end_name)
        self.names: list[str] = sorted({*nodes, *ends}.union(*ends.values()))
        number = {name: place for place, name in enumerate(self.names)}
        self.predecessors: list[list[int]] = [[] for _ in self.names]
        after: list[set[int]] = [set() for _ in self.names]
        for name, end_names in ends.items():
            start = number[name]
            after[start] = {number[each] for each in end_names}
            after[start].discard(start)
            for end in after[start]:
                self.predecessors[end].append(start)
        self.n_edges = sum(map(len, after))
        self.neighbours = [list(out.union(back)) for out, back in zip(after, self.predecessors, strict=True)]

    def __len__(self) -> int:
        return len(self.names)


def density(graph: Graph) -> float | None:
    """The share of possible directed edges that are there: m / (n(n − 1)).

    From 0 to 1; ``None`` with fewer than two nodes, between which nothing is possible.

    >>> density(Graph(["c"], [("a", "b"), ("b", "a")]))  # 2 of 6
    0.3333333333333333
    """
    n = len(graph)
    return graph.n_edges / (n * (n - 1)) if n > 1 else None


def degree_centrality(graph: Graph) -> dict[str, float]:
    """For each node the share of the others that it has an edge with, in either direction: d / (n − 1).

    From 0 to 1; empty with fewer than two nodes.

    >>> degree_centrality(Graph([], [("a", "b"), ("a", "c")]))
    {'a': 1.0, 'b': 0.5, 'c': 0.5}
    """
    others = len(graph) - 1
    if others < 1:
        return {}
    return {name: len(near) / others for name, near in zip(graph.names, graph.neighbours, strict=True)}


def centralisation(graph: Graph) -> float | None:
    """How far one node stands out by its degree: Σ(d_max − d_i) / ((n − 1)(n − 2)), edges without direction.

    From 0 (all alike: a full mesh, a ring) to 1 (a star); ``None`` with fewer than three nodes.
    Source: Freeman, Social Networks 1 (1978).

    >>> centralisation(Graph([], [("hub", "a"), ("hub", "b"), ("c", "hub")]))
    1.0
    """
    n = len(graph)
    if n < 3:
        return None
    degrees = [len(near) for near in graph.neighbours]
    return (n * max(degrees) - sum(degrees)) / ((n - 1) * (n - 2))


def average_path_length(graph: Graph) -> float | None:
    """The mean number of steps along directed edges, over the ordered pairs where one can reach the other.

    1 or more; ``None`` when nobody reaches anybody. Pairs without a path are left out, not counted as infinite.

    >>> average_path_length(Graph([], [("a", "b"), ("b", "c")]))  # a-b 1, b-c 1, a-c 2
    1.3333333333333333
    """
    n_pairs, n_steps = _paths_by_bits(graph) or _paths_by_walking(graph)
    return n_steps / n_pairs if n_pairs else None


def clustering_coefficient(graph: Graph) -> float | None:
    """How many of a node's neighbours know each other: the mean over all nodes, edges without direction.

    A node with d neighbours among which there are e edges has 2e / (d(d − 1)), and 0 with fewer than two neighbours.
    From 0 to 1; ``None`` without nodes. Source: Watts and Strogatz, Nature 393 (1998).

    >>> clustering_coefficient(Graph([], [("a", "b"), ("b", "c"), ("c", "a")]))
    1.0
    """
    n = len(graph)
    if not n:
        return None
    # Each edge among the neighbours of a node is met from both of its ends.
    edge_ends = [0] * n
    for first, last in _blocks(n):
        bits = _bits_within(graph.neighbours, first, last)
        for node, near in enumerate(graph.neighbours):
            own = bits[node]
            if own and len(near) > 1:
                edge_ends[node] += sum([(own & bits[each]).bit_count() for each in near])
    shares = (
        ends / (len(near) * (len(near) - 1))
        for ends, near in zip(edge_ends, graph.neighbours, strict=True)
        if len(near) > 1
    )
    return fsum(shares) / n


def _blocks(n: int) -> Iterator[tuple[int, int]]:
    for first in range(0, n, _BLOCK_BITS):
        yield first, min(n, first + _BLOCK_BITS)


def _bits_within(linked: list[list[int]], first: int, last: int) -> list[int]:
    """For each node, the nodes of a block that it is linked with, as bits."""
    bits = [0] * len(linked)
    for node in range(first, last):
        bit = 1 << (node - first)
        for each in linked[node]:
            bits[each] |= bit
    return bits


def _paths_by_bits(graph: Graph) -> tuple[int, int] | None:
    """How many ordered pairs have a path, and the steps of all their shortest paths.

    ``None`` when some path is too long for this to be the fast way.
    """
    n_pairs = n_steps = 0
    for first, last in _blocks(len(graph)):
        counts = _newly_reached(graph, first, last)
        for distance in range(1, _MOST_STEPS_BY_BITS + 1):
            n_new = next(counts, 0)
            if not n_new:
                break
            n_pairs += n_new
            n_steps += n_new * distance
        else:
            return None
    return n_pairs, n_steps


def _newly_reached(graph: Graph, first: int, last: int) -> Iterator[int]:
    """How many pairs that start in a block are 1 step apart, 2 steps apart, and so on."""
    predecessors = graph.predecessors
    everyone = (1 << (last - first)) - 1
    seen = [1 << (node - first) if first <= node < last else 0 for node in range(len(graph))]
    # Which nodes of the block reach a node in exactly as many steps as have been taken.
    fresh = dict(zip(range(first, last), seen[first:last], strict=True))
    open_nodes = [node for node, before in enumerate(predecessors) if before]
    while fresh:
        arriving: dict[int, int] = {}
        still_open = []
        for node in open_nodes:
            reached = 0
            for before in predecessors[node]:
                if before in fresh:
                    reached |= fresh[before]
            new = reached & ~seen[node]
            if new:
                arriving[node] = new
            if new | seen[node] != everyone:
                still_open.append(node)
        for node, new in arriving.items():
            seen[node] |= new
        yield sum([new.bit_count() for new in arriving.values()])
        open_nodes, fresh = still_open, arriving


def _paths_by_walking(graph: Graph) -> tuple[int, int]:
    """The same, by walking back from each node in turn."""
    predecessors = graph.predecessors
    n_pairs = n_steps = 0
    for start in range(len(graph)):
        seen = {start}
        reached = [start]
        distance = 0
        while reached:
            arriving = []
            for node in reached:
                for before in predecessors[node]:
                    if before not in seen:
                        seen.add(before)
                        arriving.append(before)
            distance += 1
            n_steps += distance * len(arriving)
            reached = arriving
        n_pairs += len(seen) - 1
    return n_pairs, n_steps
