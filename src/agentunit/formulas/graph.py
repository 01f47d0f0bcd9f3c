"""Measures of a communication graph: who talks to whom, and what holds it together.

All-pairs measures use integers as bit sets, in blocks of nodes so that memory grows with the nodes and not with their
square. Loops and repeated edges do not count. Names come out sorted, so that the order of the input does not matter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import fsum

_BLOCK_BITS = 4096
# Bit sets pay off while many nodes are reached in each step; along longer paths walking from node to node is faster.
_MOST_STEPS_BY_BITS = 50


class Graph:
    """A directed graph without loops or repeated edges; its nodes are ``nodes`` and those that edges name.

    >>> graph = Graph(["idle"], [("a", "b"), ("a", "b"), ("b", "b")])
    >>> graph.names, graph.n_edges
    (['a', 'b', 'idle'], 1)
    """

    __slots__ = ("n_edges", "names", "neighbors", "predecessors")

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
        self.neighbors = [list(out.union(back)) for out, back in zip(after, self.predecessors, strict=True)]

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
    return {name: len(near) / others for name, near in zip(graph.names, graph.neighbors, strict=True)}


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
    degrees = [len(near) for near in graph.neighbors]
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
    """How many of a node's neighbors know each other: the mean over all nodes, edges without direction.

    A node with d neighbors among which there are e edges has 2e / (d(d − 1)), and 0 with fewer than two neighbors.
    From 0 to 1; ``None`` without nodes. Source: Watts and Strogatz, Nature 393 (1998).

    >>> clustering_coefficient(Graph([], [("a", "b"), ("b", "c"), ("c", "a")]))
    1.0
    """
    n = len(graph)
    if not n:
        return None
    # Each edge among the neighbors of a node is met from both of its ends.
    edge_ends = [0] * n
    for first, last in _blocks(n):
        bits = _bits_within(graph.neighbors, first, last)
        for node, near in enumerate(graph.neighbors):
            own = bits[node]
            if own and len(near) > 1:
                edge_ends[node] += sum([(own & bits[each]).bit_count() for each in near])
    shares = (
        ends / (len(near) * (len(near) - 1))
        for ends, near in zip(edge_ends, graph.neighbors, strict=True)
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


@dataclass(frozen=True)
class WorstLoss:
    """The node whose loss hurts most, and the share of the other nodes that stay connected with each other."""

    node: str
    share_connected: float


def articulation_points(graph: Graph) -> list[str]:
    """The nodes whose loss parts others that were connected: single points of failure, sorted.

    A star has one, a chain all but its ends, a ring and a full mesh none.
    Source: Hopcroft and Tarjan, Communications of the ACM 16 (1973).

    >>> articulation_points(Graph([], [("a", "bridge"), ("bridge", "c")]))
    ['bridge']
    """
    pieces, _, _ = _pieces_without(graph)
    return [name for name, sizes in zip(graph.names, pieces, strict=True) if len(sizes) > 1]


def worst_single_loss(graph: Graph) -> WorstLoss | None:
    """The node after whose loss the largest connected part of the rest is smallest.

    ``share_connected`` is that part over the n − 1 nodes that are left, from 1 / (n − 1) to 1. Of several nodes that
    hurt alike it is the first by name. ``None`` with fewer than three nodes: one node left is always connected.

    >>> worst_single_loss(Graph([], [("a", "hub"), ("b", "hub"), ("c", "hub"), ("d", "hub")]))
    WorstLoss(node='hub', share_connected=0.25)
    >>> worst_single_loss(Graph([], [("a", "b"), ("b", "c"), ("c", "a")])).share_connected
    1.0
    """
    n = len(graph)
    if n < 3:
        return None
    pieces, component, sizes = _pieces_without(graph)
    two_largest = sorted(sizes, reverse=True)[:2]

    def largest_left(node: int) -> int:
        own = sizes[component[node]]
        # Which component is taken away does not matter where two are equally large.
        elsewhere = two_largest[0] if own < two_largest[0] else (two_largest[1] if len(two_largest) > 1 else 0)
        return max(elsewhere, *pieces[node]) if pieces[node] else elsewhere

    worst = min(range(n), key=largest_left)
    return WorstLoss(graph.names[worst], largest_left(worst) / (n - 1))


def fault_tolerance(graph: Graph) -> float | None:
    """The catalog's fault tolerance: 0.6 · density + 0.4 · (1 − share of nodes that are articulation points).

    From 0 to 1. It describes the topology: whether a system survives a loss depends on more than its edges.
    ``None`` without any edge, where there is nothing that could hold or break.

    >>> fault_tolerance(Graph([], [("a", "b"), ("b", "c")]))  # density 2/6, one of three
    0.4666666666666667
    """
    present = density(graph)
    if not present:
        return None
    return 0.6 * present + 0.4 * (1 - len(articulation_points(graph)) / len(graph))


def _pieces_without(graph: Graph) -> tuple[list[list[int]], list[int], list[int]]:
    """For each node the sizes of the pieces its component falls into without it, and its component; their sizes.

    One walk in depth, without recursion: a subtree that no edge joins to what was met before its parent is a piece.
    """
    neighbors = graph.neighbors
    n = len(graph)
    met_at = [0] * n
    earliest = [0] * n
    parent = [-1] * n
    subtree = [1] * n
    component = [0] * n
    pieces: list[list[int]] = [[] for _ in range(n)]
    sizes: list[int] = []
    clock = 0
    for root in range(n):
        if met_at[root]:
            continue
        clock += 1
        met_at[root] = earliest[root] = clock
        members = [root]
        path = [(root, iter(neighbors[root]))]
        while path:
            node, following = path[-1]
            for each in following:
                if not met_at[each]:
                    clock += 1
                    met_at[each] = earliest[each] = clock
                    parent[each] = node
                    members.append(each)
                    path.append((each, iter(neighbors[each])))
                    break
                if met_at[each] < earliest[node] and each != parent[node]:
                    earliest[node] = met_at[each]
            else:
                path.pop()
                above = parent[node]
                if above >= 0:
                    subtree[above] += subtree[node]
                    earliest[above] = min(earliest[above], earliest[node])
                    if earliest[node] >= met_at[above]:
                        pieces[above].append(subtree[node])
        for node in members:
            component[node] = len(sizes)
            rest = len(members) - 1 - sum(pieces[node])
            if rest:
                pieces[node].append(rest)
        sizes.append(len(members))
    return pieces, component, sizes
