"""Measures of a communication graph, against hand-made tables and networkx."""

from __future__ import annotations

import random
from itertools import pairwise, permutations

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentunit.formulas import graph as graph_module
from agentunit.formulas.graph import (
    Graph,
    articulation_points,
    average_path_length,
    centralisation,
    clustering_coefficient,
    degree_centrality,
    density,
    fault_tolerance,
    worst_single_loss,
)

Edges = list[tuple[str, str]]


def both_ways(edges: Edges) -> Edges:
    return [*edges, *((end, start) for start, end in edges)]


MESH: Edges = list(permutations("abcd", 2))
STAR: Edges = both_ways([("hub", leaf) for leaf in "abc"])
CHAIN: Edges = list(pairwise("abcd"))
RING: Edges = [*CHAIN, ("d", "a")]
# Two triangles that only the bridge holds together.
BRIDGED: Edges = both_ways([("a", "b"), ("b", "bridge"), ("bridge", "a"), ("bridge", "c"), ("c", "d"), ("d", "bridge")])

# edges; density, centralisation, path length, clustering, articulation points, share after the worst loss, tolerance
HAND_CHECKED = [
    pytest.param(MESH, 1.0, 0.0, 1.0, 1.0, [], 1.0, 1.0, id="full mesh"),
    # 6 of 12; hub degree 3, leaves 1: (4·3 − 6)/(3·2); 6 pairs at 1 and 6 at 2; 0.6·0.5 + 0.4·3/4
    pytest.param(STAR, 0.5, 1.0, 1.5, 0.0, ["hub"], 1 / 3, 0.6, id="star"),
    # 3 of 12; degrees 1,2,2,1: (8 − 6)/6; pairs 1,1,1,2,2,3; losing b leaves c-d of three; 0.6·0.25 + 0.4·2/4
    pytest.param(CHAIN, 0.25, 1 / 3, 10 / 6, 0.0, ["b", "c"], 2 / 3, 0.35, id="one-way chain"),
    # every pair along the ring: 1 + 2 + 3 from each; 0.6·4/12 + 0.4
    pytest.param(RING, 1 / 3, 0.0, 2.0, 0.0, [], 1.0, 0.6, id="one-way ring"),
    # 12 of 20; degrees 4,2,2,2,2: (20 − 12)/12; 12 pairs at 1 and 8 at 2; a, b, c, d 1 and the bridge 2 of 6 pairs
    pytest.param(BRIDGED, 0.6, 2 / 3, 1.4, (4 + 1 / 3) / 5, ["bridge"], 0.5, 0.36 + 0.32, id="bridge"),
    # Losing any of the pair leaves the other alone beside nobody.
    pytest.param([("a", "b")], 0.5, None, 1.0, 0.0, [], None, 0.7, id="two agents"),
    pytest.param([], None, None, None, None, [], None, None, id="nobody"),
]


@pytest.mark.parametrize(
    ("edges", "dense", "central", "path", "clustered", "bottlenecks", "after_loss", "tolerance"), HAND_CHECKED
)
def test_hand_checked(
    edges: Edges,
    dense: float | None,
    central: float | None,
    path: float | None,
    clustered: float | None,
    bottlenecks: list[str],
    after_loss: float | None,
    tolerance: float | None,
) -> None:
    graph = Graph([], edges)
    worst = worst_single_loss(graph)
    assert density(graph) == pytest.approx(dense)
    assert centralisation(graph) == pytest.approx(central)
    assert average_path_length(graph) == pytest.approx(path)
    assert clustering_coefficient(graph) == pytest.approx(clustered)
    assert articulation_points(graph) == bottlenecks
    assert (worst and worst.share_connected) == pytest.approx(after_loss)
    assert fault_tolerance(graph) == pytest.approx(tolerance)


def test_an_idle_agent_counts_but_is_no_bottleneck() -> None:
    graph = Graph(["idle"], both_ways([("a", "b")]))
    assert density(graph) == pytest.approx(2 / 6)
    assert articulation_points(graph) == []
    assert degree_centrality(graph) == {"a": 0.5, "b": 0.5, "idle": 0.0}
    assert worst_single_loss(graph).share_connected == 0.5  # type: ignore[union-attr]  # three agents always have one


def test_without_edges_there_is_nothing_that_could_hold_or_break() -> None:
    graph = Graph(["a", "b", "c"])
    assert density(graph) == 0.0
    assert fault_tolerance(graph) is None
    assert average_path_length(graph) is None


# Absurdities that were reported of such measures.


@pytest.mark.parametrize("n", [3, 5, 40])
def test_a_full_mesh_has_no_bottleneck(n: int) -> None:
    assert articulation_points(Graph([], permutations(map(str, range(n)), 2))) == []


def test_a_sole_bridge_is_a_bottleneck_although_it_is_no_hub() -> None:
    left, right = list(permutations("abcde", 2)), list(permutations("vwxyz", 2))
    graph = Graph([], [*left, *right, ("a", "bridge"), ("bridge", "z")])
    assert "bridge" in articulation_points(graph)
    assert degree_centrality(graph)["bridge"] == min(degree_centrality(graph).values())


def test_density_never_exceeds_1_however_often_agents_talk() -> None:
    assert density(Graph([], [*MESH * 5, ("a", "a"), ("b", "b")])) == 1.0


# Against networkx, on graphs of any shape.

NAMES = [f"agent {n}" for n in range(9)]


@st.composite
def graphs(draw: st.DrawFn) -> networkx.DiGraph:
    nodes = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=9))
    made = networkx.DiGraph()
    made.add_nodes_from(nodes)
    if nodes:
        made.add_edges_from(draw(st.lists(st.tuples(st.sampled_from(nodes), st.sampled_from(nodes)), max_size=40)))
    return made


def random_graphs() -> list[networkx.DiGraph]:
    picked = random.Random(6)
    made = [
        networkx.gnp_random_graph(picked.randint(2, 90), picked.choice([0.01, 0.03, 0.1, 0.5]), seed=n, directed=True)
        for n in range(60)
    ]
    made += [networkx.path_graph(130).to_directed(), networkx.cycle_graph(70, create_using=networkx.DiGraph)]
    made += [networkx.barbell_graph(8, 5).to_directed(), networkx.balanced_tree(3, 4).to_directed()]
    return [networkx.relabel_nodes(each, str) for each in made]


def assert_as_networkx(reference: networkx.DiGraph) -> None:
    graph = Graph(reference.nodes, reference.edges)
    reference = reference.copy()
    reference.remove_edges_from(list(networkx.selfloop_edges(reference)))
    undirected = reference.to_undirected()
    n = len(reference)
    assert graph.n_edges == reference.number_of_edges()
    if n > 1:
        assert density(graph) == pytest.approx(networkx.density(reference))
        assert degree_centrality(graph) == pytest.approx(networkx.degree_centrality(undirected))
    if n > 2:
        degrees = networkx.degree_centrality(undirected).values()
        assert centralisation(graph) == pytest.approx(sum(max(degrees) - each for each in degrees) / (n - 2))
        left = {
            node: max(map(len, networkx.connected_components(undirected.subgraph(set(undirected) - {node}))))
            for node in undirected
        }
        worst = worst_single_loss(graph)
        assert worst is not None
        assert worst.share_connected == pytest.approx(min(left.values()) / (n - 1))
        assert left[worst.node] == min(left.values())
    if n:
        assert clustering_coefficient(graph) == pytest.approx(networkx.average_clustering(undirected))
    assert articulation_points(graph) == sorted(networkx.articulation_points(undirected))
    steps = [
        distance
        for start, distances in networkx.all_pairs_shortest_path_length(reference)
        for end, distance in distances.items()
        if start != end
    ]
    assert average_path_length(graph) == (pytest.approx(sum(steps) / len(steps)) if steps else None)


@given(graphs())
def test_any_small_graph_measures_as_in_networkx(reference: networkx.DiGraph) -> None:
    assert_as_networkx(reference)


@pytest.mark.parametrize("reference", random_graphs(), ids=lambda each: f"{len(each)}-{each.number_of_edges()}")
def test_larger_graphs_measure_as_in_networkx(reference: networkx.DiGraph) -> None:
    assert_as_networkx(reference)


@pytest.mark.parametrize(("block_bits", "most_steps"), [(1, 50), (7, 50), (64, 1), (64, 3)])
def test_blocks_and_long_paths_change_no_number(
    block_bits: int, most_steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph_module, "_BLOCK_BITS", block_bits)
    monkeypatch.setattr(graph_module, "_MOST_STEPS_BY_BITS", most_steps)
    for reference in random_graphs()[::7]:
        assert_as_networkx(reference)


def test_a_chain_deeper_than_the_stack_is_walked() -> None:
    n = 3000
    graph = Graph([], pairwise(f"{place:05d}" for place in range(n)))
    assert len(articulation_points(graph)) == n - 2


# Properties.


@given(graphs())
def test_in_range_whatever_the_graph(reference: networkx.DiGraph) -> None:
    graph = Graph(reference.nodes, reference.edges)
    worst = worst_single_loss(graph)
    shares = [density(graph), centralisation(graph), clustering_coefficient(graph), fault_tolerance(graph)]
    shares += [*degree_centrality(graph).values(), worst and worst.share_connected]
    assert all(share is None or 0.0 <= share <= 1.0 for share in shares)
    assert (average_path_length(graph) or 1.0) >= 1.0


@given(graphs(), st.permutations(NAMES))
def test_other_names_change_nothing(reference: networkx.DiGraph, names: list[str]) -> None:
    renamed = dict(zip(NAMES, names, strict=True))
    before = Graph(reference.nodes, reference.edges)
    after = Graph(map(renamed.get, reference.nodes), [(renamed[a], renamed[b]) for a, b in reference.edges])
    for measure in (density, centralisation, average_path_length, clustering_coefficient, fault_tolerance):
        assert measure(after) == pytest.approx(measure(before))
    assert set(articulation_points(after)) == {renamed[name] for name in articulation_points(before)}


@given(graphs(), st.sampled_from(NAMES), st.sampled_from(NAMES))
def test_one_more_edge_between_agents_never_makes_it_sparser(reference: networkx.DiGraph, start: str, end: str) -> None:
    edges = list(reference.edges)
    before, after = Graph(NAMES, edges), Graph(NAMES, [*edges, (start, end)])
    assert (density(after) or 0.0) >= (density(before) or 0.0)
    assert worst_single_loss(after).share_connected >= worst_single_loss(before).share_connected  # type: ignore[union-attr]
