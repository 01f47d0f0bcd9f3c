"""Interactions and networks that are made up, the same every time."""

from __future__ import annotations

import random
from itertools import pairwise, permutations

from agentunit.core.trace import AgentInteraction

Edges = list[tuple[str, str]]

_TYPES = ("request", "response", "negotiation", "collaboration", "delegation")
_MESSAGE_TYPES = ("plan", "code", "test", "report")


def mesh(n_agents: int) -> Edges:
    """Everybody addresses everybody."""
    return list(permutations(_names(n_agents), 2))


def sparse(n_agents: int, n_edges: int) -> Edges:
    """Connections between agents picked at random."""
    picked = random.Random(6)
    names = _names(n_agents)
    edges: dict[tuple[str, str], None] = {}
    while len(edges) < n_edges:
        sender, receiver = picked.choice(names), picked.choice(names)
        if sender != receiver:
            edges[sender, receiver] = None
    return list(edges)


def chain(n_agents: int) -> Edges:
    """Each agent talks with the next one, and back."""
    names = _names(n_agents)
    pairs = list(pairwise(names))
    return [*pairs, *((receiver, sender) for sender, receiver in pairs)]


def interactions(n: int, n_agents: int) -> list[AgentInteraction]:
    """Messages between agents picked at random, with all that the measures read."""
    picked = random.Random(6)
    names = _names(n_agents)
    return [
        AgentInteraction(
            *picked.sample(names, 2),
            interaction_type=picked.choice(_TYPES),
            message_type=picked.choice(_MESSAGE_TYPES),
            timestamp=picked.uniform(0.0, 3600.0),
            success=picked.random() > 0.1,
            response_time=picked.uniform(0.0, 20.0),
        )
        for _ in range(n)
    ]


def one_message_each(edges: Edges) -> list[AgentInteraction]:
    """A message along every connection."""
    return [
        AgentInteraction(sender, receiver, timestamp=float(at), response_time=1.0)
        for at, (sender, receiver) in enumerate(edges)
    ]


def _names(n: int) -> list[str]:
    return [f"agent {number}" for number in range(n)]
