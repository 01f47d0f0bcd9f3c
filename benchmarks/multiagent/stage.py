"""One timing in this process: ``python -m benchmarks.multiagent.stage WHAT SHAPE N [M]``, or networkx in our stead."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from agentunit.core.trace import AgentInteraction, AgentRole
from agentunit.formulas.graph import Graph
from agentunit.multiagent import MultiAgentMetricsCalculator
from agentunit.multiagent.analyzers import NetworkAnalyzer
from benchmarks.multiagent.made_up import Edges, chain, interactions, mesh, one_message_each, sparse

SHAPES = {"mesh": mesh, "sparse": sparse, "chain": chain}


def whole(messages: list[AgentInteraction]) -> dict[str, Any]:
    """All measures, from the interactions as a user holds them."""
    roles = {each.from_agent: AgentRole(each.from_agent, can_delegate=False) for each in messages[:20]}
    start, processor_start = time.perf_counter(), time.process_time()
    found = MultiAgentMetricsCalculator(messages, agent_roles=roles).calculate_all()
    elapsed_s, processor_s = time.perf_counter() - start, time.process_time() - processor_start
    return {"elapsed_s": elapsed_s, "processor_s": processor_s, "density": found["network"].density}


def ours(edges: Edges) -> dict[str, Any]:
    """The graph measures."""
    start = time.process_time()
    network = NetworkAnalyzer(Graph([], edges))
    network.find_worst_loss()
    found = [
        network.calculate_density(),
        network.calculate_centralization(),
        network.calculate_avg_path_length(),
        network.calculate_clustering_coefficient(),
        float(len(network.find_bottleneck_agents())),
    ]
    return {"processor_s": time.process_time() - start, "found": found}


def theirs(edges: Edges) -> dict[str, Any]:
    """The same numbers by networkx."""
    import networkx

    start = time.process_time()
    graph = networkx.DiGraph(edges)
    undirected = graph.to_undirected()
    degrees = [degree for _, degree in undirected.degree()]
    n = len(graph)
    steps = pairs = 0
    for _, distances in networkx.all_pairs_shortest_path_length(graph):
        steps += sum(distances.values())
        pairs += len(distances) - 1
    found = [
        networkx.density(graph),
        (n * max(degrees) - sum(degrees)) / ((n - 1) * (n - 2)),
        steps / pairs,
        networkx.average_clustering(undirected),
        float(len(list(networkx.articulation_points(undirected)))),
    ]
    return {"processor_s": time.process_time() - start, "found": found}


def main() -> None:
    """Time one thing and print what it took."""
    what, shape, *sizes = sys.argv[1:]
    numbers = [int(size) for size in sizes]
    if what == "whole":
        messages = interactions(*numbers) if shape == "talk" else one_message_each(SHAPES[shape](*numbers))
        print(json.dumps(whole(messages)))
    else:
        print(json.dumps({"ours": ours, "networkx": theirs}[what](SHAPES[shape](*numbers))))


if __name__ == "__main__":
    main()
