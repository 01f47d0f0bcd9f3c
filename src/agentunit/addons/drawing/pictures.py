"""Pictures of a team for notebooks and files: who writes to whom, and what happened when."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from agentunit.addons.drawing._agent_positions import draw_network
from agentunit.addons.drawing._shapes import Element, standalone
from agentunit.addons.drawing._timeline import draw_lanes
from agentunit.multiagent.team import lanes_of, network_of
from agentunit.public import publish


@dataclass(frozen=True, repr=False)
class Picture:
    """A drawing that a notebook shows by itself. It is complete: no script, no font, no request."""

    drawn: Element

    @cached_property
    def svg(self) -> str:
        """The drawing as SVG; it follows the reader's choice of light or dark."""
        return standalone(self.drawn)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the drawing to an ``.svg`` file, and return where."""
        target = Path(path)
        if target.suffix.lower() != ".svg":
            raise ValueError(f"Picture.save writes .svg files; received {target.name!r}")
        target.write_text(self.svg, encoding="utf-8")
        return target

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x:auto;max-width:100%">{self.svg}</div>'

    def __repr__(self) -> str:
        return f"<Picture: {self.drawn.attributes['aria-label']}>"


def interaction_graph(record: Any) -> Picture:
    """Draw who writes to whom in a record or a trace: arrows as wide as they are busy.

    A diamond marks an agent whom others need to reach each other; a dashed arrow with a cross, a link on which
    something failed.

    >>> said = [("planner", "Find it."), ("searcher", "Here it is.")]
    >>> events = [{"type": "message", "payload": {"role": "assistant", "agent": a, "content": t}} for a, t in said]
    >>> interaction_graph({"events": events})
    <Picture: Who writes to whom: 2 agents, 1 link, 1 message>
    """
    return Picture(draw_network(network_of(record)))


def timeline(record: Any) -> Picture:
    """Draw what each agent of a record or a trace did, a lane for each: by time where all times are known.

    >>> events = [{"type": "tool_call", "payload": {"name": "pytest", "agent": "tester", "status": "error"}}]
    >>> timeline({"events": events})
    <Picture: What 1 agent did, by order: 1 mark, 1 failed>
    """
    return Picture(draw_lanes(lanes_of(record)))


publish("agentunit.multiagent", Picture)
