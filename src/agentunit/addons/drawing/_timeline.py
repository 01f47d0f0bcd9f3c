"""The swim-lane timeline: one lane an agent, a mark for each thing it did, an arrow for each message."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10

from agentunit.addons.drawing._shapes import (
    UNIT_PX,
    Element,
    Key,
    counted,
    cross,
    diamond,
    group,
    label,
    legend,
    n_units,
    number,
    shape,
    sheet,
)
from agentunit.multiagent.team import Lanes, Mark

MOST_MARKS = 400
MOST_LANES = 80
_LABEL_UNITS = 24
_TITLE_UNITS = 160
_TOP = 14.0
_LEAST_WIDTH, _MOST_TIMED_WIDTH = 640.0, 2400.0
_REACH = 5.0
_WORDS = {"message": "message", "call": "tool call", "model": "model call", "handoff": "handoff"}


def draw_lanes(lanes: Lanes) -> Element:
    """The picture of what agents did: by time where all times are known, else by order.

    Beyond 400 marks or 80 lanes the first are drawn, and the picture says so.
    """
    agents = lanes.agents[:MOST_LANES]
    lane_of = {name: place for place, name in enumerate(agents)}
    fitting = [mark for mark in lanes.marks if mark.agent in lane_of]
    marks = fitting[:MOST_MARKS]
    lane_height = 36.0 if len(agents) <= 12 else 26.0 if len(agents) <= 30 else 20.0
    names = [label(name, _LABEL_UNITS) for name in agents]
    left = 24 + max((n_units(name) for name in names), default=0) * UNIT_PX
    places, width = _places(marks, left, timed=lanes.timed)
    bottom = _TOP + lane_height * len(agents)
    levels = {name: _TOP + lane_height * (place + 0.5) for name, place in lane_of.items()}
    rows = [_lane(name, levels[agent], left, width) for agent, name in zip(agents, names, strict=True)]
    axis = _axis(marks, places, bottom, width, timed=lanes.timed)
    # Arrows first: marks must stay visible where arrows of others pass over them.
    arrows = [_arrows(mark, at, levels) for mark, at in zip(marks, places, strict=True) if mark.to]
    drawn = [_mark(mark, at, levels[mark.agent]) for mark, at in zip(marks, places, strict=True)]
    notes = _notes(lanes, marks, agents)
    explained, legend_height = legend(_keys(marks), notes, width, bottom + 30)
    title, description = _words(lanes)
    parts = (*rows, axis, Element("g", {}, tuple(arrows)), Element("g", {}, tuple(drawn)), explained)
    return sheet(width, bottom + 30 + legend_height, title, description, *parts, kind="lanes")


def _places(marks: Sequence[Mark], left: float, *, timed: bool) -> tuple[list[float], float]:
    """Where each mark stands from left to right, and how wide the picture is."""
    apart = 26.0 if len(marks) <= 40 else 18.0 if len(marks) <= 120 else 13.0
    if not timed:
        return [left + apart * (at + 0.75) for at in range(len(marks))], max(
            _LEAST_WIDTH, left + apart * (len(marks) + 1)
        )
    width = max(_LEAST_WIDTH, min(_MOST_TIMED_WIDTH, left + apart * (len(marks) + 1)))
    longest = max((mark.at_s or 0.0 for mark in marks), default=0.0) or 1.0
    span = width - left - 40
    return [left + 14 + span * (mark.at_s or 0.0) / longest for mark in marks], width


def _lane(name: str, y: float, left: float, width: float) -> Element:
    line = shape("path", "line", d=f"M{number(left)} {number(y)}L{number(width - 12)} {number(y)}", stroke_width=1)
    return group(line, shape("text", "name", name, x=left - 10, y=y + 4, text_anchor="end"))


def _axis(marks: Sequence[Mark], places: Sequence[float], y: float, width: float, *, timed: bool) -> Element:
    ticks: list[tuple[float, str]] = []
    if timed and len(marks) > 1:
        longest = max(mark.at_s or 0.0 for mark in marks) or 1.0
        first = places[0]
        span = places[-1] - first
        step = _round_step(longest / max(2, span / 90))
        ticks = [(first + span * at * step / longest, _seconds(at * step)) for at in range(floor(longest / step) + 1)]
    else:
        numbered = [(at, mark.step) for at, mark in zip(places, marks, strict=True) if mark.step is not None]
        every = 5 if len(marks) <= 120 else 10
        ticks = [(at, f"{'step ' if not number_ else ''}{number_}") for at, number_ in numbered if number_ % every == 0]
    drawn = [
        group(
            shape("path", "line", d=f"M{number(x)} {number(_TOP)}L{number(x)} {number(y + 4)}", stroke_width=0.5),
            shape("text", "count", text, x=x, y=y + 18, text_anchor="middle"),
        )
        for x, text in ticks
    ]
    return Element("g", {}, tuple(drawn))


def _round_step(least: float) -> float:
    """The next of 1, 2, 5, 10, 20 … that is at least this.

    >>> _round_step(3.2), _round_step(0.07)
    (5.0, 0.1)
    """
    power = 10.0 ** floor(log10(least))
    return round(next((power * each for each in (1, 2, 5) if power * each >= least), power * 10), 12)


def _seconds(value: float) -> str:
    return f"{value:g} s" if value < 600 else f"{value / 60:g} min"


def _arrows(mark: Mark, x: float, levels: dict[str, float]) -> Element:
    y = levels[mark.agent]
    ends = [levels[name] for name in mark.to if name in levels]
    parts = []
    for reached in (min([y, *ends]), max([y, *ends])):
        if reached != y:
            way = 1 if reached > y else -1
            line = f"M{number(x)} {number(y)}L{number(x)} {number(reached - 9 * way)}"
            parts.append(shape("path", "link", d=line, stroke_width=1.6))
    for end in ends:
        way = 1 if end > y else -1
        tip = end - 3 * way
        corners = ((x, tip), (x - 4, tip - 8 * way), (x + 4, tip - 8 * way))
        parts.append(shape("polygon", "head", points=" ".join(f"{number(a)},{number(b)}" for a, b in corners)))
    undelivered = mark.failed is True and mark.kind in ("message", "handoff")
    return group(*parts, classes="au-failed" if undelivered else "")


def _mark(mark: Mark, x: float, y: float) -> Element:
    parts = [f"step {mark.step}" if mark.step is not None else "", _WORDS[mark.kind], "failed" if mark.failed else ""]
    to = ", ".join(label(name, _LABEL_UNITS) for name in mark.to[:8])
    who = label(mark.agent, _LABEL_UNITS) + (f" → {to}" if to else "")
    said = f": {label(mark.label, _TITLE_UNITS)}" if mark.label else ""
    state = "au-failed" if mark.failed else "au-unknown" if mark.failed is None else ""
    sign = _sign(mark.kind, x, y)
    return group(
        sign,
        cross(x, y, _REACH + 2) if mark.failed else None,
        classes=state,
        title=f"{', '.join(filter(None, parts))}, {who}{said}",
    )


def _sign(kind: str, x: float, y: float) -> Element:
    if kind == "call":
        return shape("rect", "call", x=x - _REACH, y=y - _REACH, width=2 * _REACH, height=2 * _REACH, rx=1)
    if kind == "handoff":
        return diamond(x, y, _REACH + 1.5, "handoff")
    return shape("circle", kind, cx=x, cy=y, r=_REACH if kind == "message" else _REACH - 1.5)


def _keys(marks: Sequence[Mark]) -> list[Key]:
    kinds = {mark.kind for mark in marks}
    keys = [Key((_sign(kind, 0, 0),), text) for kind, text in _WORDS.items() if kind in kinds and kind != "call"]
    known = {mark.failed is None for mark in marks if mark.kind == "call"}
    if False in known:
        keys.append(Key((_sign("call", 0, 0),), _WORDS["call"]))
    if True in known:
        keys.append(Key((group(_sign("call", 0, 0), classes="au-unknown"),), "tool call, outcome unknown"))
    if any(mark.to for mark in marks):
        arrow = shape("path", "link", d="M0 -8L0 2", stroke_width=1.6)
        keys.append(Key((arrow, shape("polygon", "head", points="0,9 -4,1 4,1")), "to whom"))
    if any(mark.failed for mark in marks):
        keys.append(Key((cross(0, 0, 5),), "failed"))
    return keys


def _notes(lanes: Lanes, marks: Sequence[Mark], agents: Sequence[str]) -> list[str]:
    notes = []
    if len(agents) < len(lanes.agents):
        notes.append(f"the first {len(agents):,} of {len(lanes.agents):,} agents have a lane here")
    if len(marks) < len(lanes.marks):
        notes.append(f"{len(marks):,} of {len(lanes.marks):,} marks are drawn, from the beginning on")
    if lanes.n_nameless:
        notes.append(f"steps that name no agent: {lanes.n_nameless:,}")
    if not lanes.marks:
        notes.append("No event names an agent.")
    elif not lanes.timed:
        notes.append("by order: the times of these steps are not all known")
    return notes


def _words(lanes: Lanes) -> tuple[str, str]:
    n_failed = sum(mark.failed is True for mark in lanes.marks)
    by = "by time" if lanes.timed else "by order"
    n_marks = counted(len(lanes.marks), "mark")
    title = f"What {counted(len(lanes.agents), 'agent')} did, {by}: {n_marks}, {n_failed:,} failed"
    sentences = []
    for agent in lanes.agents[:24]:
        own = [mark.kind for mark in lanes.marks if mark.agent == agent]
        counts = ", ".join(counted(own.count(kind), word) for kind, word in _WORDS.items() if kind in own)
        sentences.append(f"{label(agent, _LABEL_UNITS)}: {counts or 'nothing'}")
    return title, "; ".join(sentences) + "." if sentences else "No event names an agent."
