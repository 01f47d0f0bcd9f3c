"""What a communication graph loses with one of its nodes, edges taken without direction."""

from __future__ import annotations

from dataclasses import dataclass

from agentunit.formulas.graph import Graph, density


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
    hurt alike the first by name is given. ``None`` with fewer than three nodes: one node left is always connected.

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
    neighbours = graph.neighbours
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
        path = [(root, iter(neighbours[root]))]
        while path:
            node, following = path[-1]
            for each in following:
                if not met_at[each]:
                    clock += 1
                    met_at[each] = earliest[each] = clock
                    parent[each] = node
                    members.append(each)
                    path.append((each, iter(neighbours[each])))
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
