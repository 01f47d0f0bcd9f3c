"""Who spoke to whom: the messages between agents of a conversation that several of them hold."""

from __future__ import annotations

from typing import NamedTuple

from agentunit.core.interactions import AgentInteraction

HUMANS = frozenset(("user", "human"))
NEXT_SPEAKER = "the next speaker"


class Turn(NamedTuple):
    """One agent's turn. ``to`` is whom the source names as addressee; ``None`` where it names nobody."""

    speaker: str
    text: str
    at: float | None = None
    to: str | None = None


def interactions_of(turns: list[Turn]) -> list[AgentInteraction]:
    """The messages between agents; where no addressee is stated, it is taken to be the next one who speaks.

    What was inferred says so in its metadata. Whether a message was a success, no chat tells. The human is no agent,
    and the last word is to nobody in particular.

    >>> turns = [Turn("a", "Go."), Turn("b", "Done."), Turn("a", "Good.")]
    >>> [(each.from_agent, each.to_agent) for each in interactions_of(turns)]
    [('a', 'b'), ('b', 'a')]
    """
    # Read backwards, the next other speaker is one step away however long a monologue is.
    found: list[AgentInteraction] = []
    following = after_following = None
    for turn in reversed(turns):
        if turn.speaker != following:
            following, after_following = turn.speaker, following
        addressee = turn.to or after_following
        if addressee and addressee != turn.speaker and not {turn.speaker.lower(), addressee.lower()} & HUMANS:
            derived = {} if turn.to else {"derived_from": NEXT_SPEAKER}
            found.append(
                AgentInteraction(
                    turn.speaker, addressee, content=turn.text, timestamp=turn.at, success=None, metadata=derived
                )
            )
    found.reverse()
    return found
