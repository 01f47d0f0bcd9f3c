"""A team of agents in the terminal: what each did, who writes to whom, and who acted when."""

from __future__ import annotations

from collections.abc import Sequence

from agentunit.formulas.text import shown_share
from agentunit.multiagent.team import AgentRow, Lanes, Link, Mark
from agentunit.reports.printable import printable_line
from agentunit.reports.terminal import Column, Text, TextTable

BOTTLENECK = "◇"
_FAILED = "✗"
_EMPTY, _PASSED = "─", "│"
_SIGNS = {"message": "●", "call": "■", "model": "○", "handoff": "◆"}
_UNKNOWN_CALL = "□"
_WORDS = {"message": "message", "call": "tool call", "model": "model call", "handoff": "handoff"}
_NAME_LENGTH = 24
_BAR_LENGTH = 16
# Narrower than this, a lane shows too little of what happened to be worth a line.
_FEWEST_COLUMNS = 20


def agents_grid(rows: Sequence[AgentRow], bottlenecks: Sequence[str]) -> TextTable:
    """One line an agent; bottlenecks are marked."""
    numbers = ("messages", "calls", "failed", "tokens", "share", "linked to")
    table = TextTable(Column(), *(Column(heading, right=True) for heading in numbers), heading_style="dim")
    for row in rows:
        mark = f" {BOTTLENECK}" if row.agent in bottlenecks else ""
        table.add_row(
            Text(printable_line(row.agent) + mark),
            str(row.messages),
            str(row.tool_calls),
            f"{row.failures} of {row.outcomes}" if row.outcomes else "–",
            "–" if row.tokens is None else f"{row.tokens:,}",
            "–" if row.share is None else shown_share(row.share),
            "–" if row.centrality is None else shown_share(row.centrality),
        )
    return table


def links_grid(links: Sequence[Link], most: int) -> TextTable:
    """One line a link: from whom to whom, how often, and what failed."""
    grid = TextTable(*(Column(right=place == 2, no_wrap=True) for place in range(5)))
    for link in links:
        bar = "━" * max(1, round(_BAR_LENGTH * link.weight / most))
        failed = Text(f"{_FAILED} {link.failed:,} failed", style="red") if link.failed else Text("")
        sender, receiver = (printable_line(name, _NAME_LENGTH) for name in (link.sender, link.receiver))
        grid.add_row(Text(sender), Text(f"→ {receiver}"), f"{link.weight:,}", Text(bar, style="blue"), failed)
    return grid


def lane_blocks(lanes: Lanes, width: int) -> list[Text]:
    """The lanes, a column for each thing that happened, cut into blocks that fit into a width.

    An arrow head stands in the lane that a message reaches; what it passes on its way is crossed by a stroke.
    """
    names = [printable_line(name, _NAME_LENGTH) for name in lanes.agents]
    widest = max(Text(name).cell_len for name in names)
    columns = max(_FEWEST_COLUMNS, width - widest - 2)
    lane_of = {name: place for place, name in enumerate(lanes.agents)}
    blocks = []
    for first in range(0, len(lanes.marks), columns):
        marks = lanes.marks[first : first + columns]
        drawn = [_column(mark, lane_of) for mark in marks]
        block = Text()
        for place, name in enumerate(names):
            padding = " " * (widest - Text(name).cell_len + 2)
            block.append(("\n" if place else "") + name + padding)
            for cells in drawn:
                sign = cells.get(place, _EMPTY)
                block.append(sign, style="red" if sign == _FAILED else "dim" if sign in (_EMPTY, _PASSED) else "blue")
        blocks.append(block)
    return blocks


def signs_used(lanes: Lanes) -> str:
    """What the signs of these lanes mean."""
    used = []
    for kind, sign in _SIGNS.items():
        states = {mark.failed for mark in lanes.marks if mark.kind == kind}
        if states - {True, None} or (None in states and kind != "call"):
            used.append(f"{sign} {_WORDS[kind]}")
        if kind == "call" and None in states:
            used.append(f"{_UNKNOWN_CALL} {_WORDS[kind]}, outcome unknown")
    if any(mark.failed for mark in lanes.marks):
        used.append(f"{_FAILED} failed")
    if any(mark.to for mark in lanes.marks):
        used.append("▲ ▼ to whom")
    order = "" if not lanes.n_nameless else f"; steps that name no agent: {lanes.n_nameless:,}"
    return "   ".join(used) + "   (by order" + order + ")"


def _column(mark: Mark, lane_of: dict[str, int]) -> dict[int, str]:
    own = lane_of[mark.agent]
    reached = [lane_of[name] for name in mark.to]
    cells = dict.fromkeys(range(min([own, *reached]), max([own, *reached]) + 1), _PASSED)
    cells |= {place: "▼" if place > own else "▲" for place in reached}
    unknown = mark.kind == "call" and mark.failed is None
    cells[own] = _FAILED if mark.failed else _UNKNOWN_CALL if unknown else _SIGNS[mark.kind]
    return cells
