"""Where the agents of a team stand: on a circle, far enough apart that no two touch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import cos, degrees, hypot, pi, sin

from agentunit.addons.drawing._shapes import (
    UNIT_PX,
    Curve,
    Element,
    Key,
    Point,
    arrow_head,
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
from agentunit.multiagent.team import Link, Network

_NODE_RADIUS = ((6, 20.0), (12, 17.0), (24, 12.0), (48, 9.0))
_SMALLEST_NODE = 7.0
# The least radius of the circle, so that labels of a few agents do not stand in each other's way.
_ROOM = ((2, 130.0), (5, 120.0), (12, 165.0))
_LEAST_ROOM = 200.0
_GAP_PX = 6.0
UPRIGHT_LABELS = 12
"""Up to so many agents labels stand upright; beyond, they point outwards like the rays of a star."""


@dataclass(frozen=True)
class Spot:
    """Where a label goes: its beginning or end, which of the two, and how far it is turned."""

    at: Point
    anchor: str
    turned_deg: float = 0.0


@dataclass(frozen=True)
class Circle:
    """The places of ``n`` agents, clockwise from the top; two stand side by side. The center is the origin."""

    n: int

    @property
    def node_radius(self) -> float:
        """The radius of an agent's own circle."""
        return next((radius for most, radius in _NODE_RADIUS if self.n <= most), _SMALLEST_NODE)

    @property
    def reach(self) -> float:
        """How far the mark of a bottleneck reaches around an agent: a diamond outside its circle."""
        return self.node_radius * 2**0.5 + 4

    @property
    def radius(self) -> float:
        """The radius of the circle on which all stand.

        >>> Circle(1).radius, Circle(2).radius
        (0.0, 130.0)
        """
        if self.n < 2:
            return 0.0
        room = next((radius for most, radius in _ROOM if self.n <= most), _LEAST_ROOM)
        return max(room, (self.reach + _GAP_PX / 2) / sin(pi / self.n))

    def centre(self, place: int) -> Point:
        """The center of an agent's circle."""
        x, y = self._direction(place)
        return self.radius * x, self.radius * y

    def label(self, place: int) -> Spot:
        """Where an agent's label goes."""
        x, y = self._direction(place) if self.n > 1 else (0.0, 1.0)
        away = self.radius + self.reach + 6
        if self.n > UPRIGHT_LABELS:
            turned = degrees(self._angle(place))
            # On the left, labels are turned round so that nobody has to read them upside down.
            flipped = 90 < turned % 360 < 270
            return Spot((x * away, y * away), "end" if flipped else "start", turned - 180 if flipped else turned)
        if abs(x) < 0.3 or self.n == 2:
            # Side by side, two labels hang below their circles.
            at = (x * self.radius, self.reach + 16) if self.n == 2 else (x * away, y * away + 4 + 8 * y)
            return Spot(at, "middle")
        return Spot((x * away, y * away + 4), "start" if x > 0 else "end")

    def _angle(self, place: int) -> float:
        start = pi if self.n == 2 else -pi / 2
        return start + 2 * pi * place / self.n

    def _direction(self, place: int) -> Point:
        return cos(self._angle(place)), sin(self._angle(place))


MOST_AGENTS = 80
MOST_ARROWS = 600
_LABEL_UNITS = 24
_TITLE_UNITS = 160
_COUNTED_LINKS = 24
_NUMBERED_RADIUS = 12
_MARGIN = 18.0
_LEAST_WIDTH = 460.0


def draw_network(network: Network) -> Element:
    """The picture of a network. Beyond 80 agents the busiest are drawn, and beyond 600 links only those get arrows.

    The picture says so.
    """
    shown = _busiest(network)
    circle = Circle(len(shown.agents))
    names = [label(name, _LABEL_UNITS) for name in shown.agents]
    widest = max((n_units(name) for name in names), default=0) * UNIT_PX
    beside = widest if circle.n > 2 else widest / 2
    half_width = max(circle.radius + circle.reach + 6 + beside + _MARGIN, _LEAST_WIDTH / 2)
    half_height = circle.radius + circle.reach + 34
    if circle.n > UPRIGHT_LABELS:
        half_height += widest
    elif circle.n <= 2:
        half_height = circle.reach + 56
    place_of = {name: place for place, name in enumerate(shown.agents)}
    most = max((link.weight for link in shown.links), default=1)
    arrows, thin = _arrows_and_thin(shown.links)
    team = _Team(circle, place_of, set(shown.bottlenecks), most, len(shown.links))
    faint = shape("path", "thin", d="".join(team.curve(link).path() for link in thin)) if thin else None
    drawn = group(faint, *(team.arrow(link) for link in reversed(arrows)), classes="au-many" * (len(arrows) > 60))
    linked = {name for link in network.links for name in (link.sender, link.receiver)}
    nodes = [
        _node(shown, circle, place, names[place], linked=agent in linked) for place, agent in enumerate(shown.agents)
    ]
    # Numbers come last, so that no arrow crosses them out.
    counts = [team.count(link) for link in arrows] if len(arrows) <= _COUNTED_LINKS else []
    middle = f"translate({number(half_width)} {number(half_height)})"
    body = Element("g", {"transform": middle}, (drawn, *nodes, *counts))
    keys, notes = _legend(
        shown, arrows, most, numbered=circle.node_radius >= _NUMBERED_RADIUS, idle=not place_of.keys() <= linked
    )
    if len(shown.agents) < len(network.agents):
        notes.append(f"the busiest {len(shown.agents):,} of {len(network.agents):,} agents are drawn")
    explained, legend_height = legend(keys, notes, 2 * half_width, 2 * half_height)
    title, description = _words(network)
    height = 2 * half_height + legend_height
    return sheet(2 * half_width, height, title, description, body, explained, kind="graph")


def _busiest(network: Network) -> Network:
    agents = network.agents
    if len(agents) > MOST_AGENTS:
        work = dict.fromkeys(agents, 0)
        for link in network.links:
            work[link.sender] += link.weight
            work[link.receiver] += link.weight
        kept = set(sorted(agents, key=lambda name: (name not in network.bottlenecks, -work[name], name))[:MOST_AGENTS])
        agents = [name for name in agents if name in kept]
    there = set(agents)
    links = [link for link in network.links if link.sender in there and link.receiver in there]
    return Network(agents, links, [name for name in network.bottlenecks if name in there], network.sent)


def _arrows_and_thin(links: list[Link]) -> tuple[list[Link], list[Link]]:
    """The links to draw as arrows, and those too many for that. Links that are equally busy are drawn alike."""
    if len(links) <= MOST_ARROWS:
        return links, []
    bar = links[MOST_ARROWS].weight
    arrows = [link for link in links if link.weight > bar or link.failed]
    return arrows, [link for link in links if not (link.weight > bar or link.failed)]


def _node(network: Network, circle: Circle, place: int, name: str, *, linked: bool) -> Element:
    agent = network.agents[place]
    x, y = circle.centre(place)
    spot = circle.label(place)
    sent = network.sent.get(agent, 0)
    bottleneck = agent in network.bottlenecks
    title = f"{label(agent, _TITLE_UNITS)}: {sent:,} sent"
    turned = (
        {"transform": f"rotate({number(spot.turned_deg)} {number(spot.at[0])} {number(spot.at[1])})"}
        if spot.turned_deg
        else {}
    )
    text = shape(
        "text", "name", name, x=spot.at[0], y=spot.at[1], text_anchor=spot.anchor,
        **turned, **({"dy": "4"} if circle.n > UPRIGHT_LABELS else {}),
    )  # fmt: skip
    inside = shape("text", "inside", f"{sent}", x=x, y=y + 4, text_anchor="middle")
    return group(
        diamond(x, y, circle.reach - 1, "bottleneck") if bottleneck else None,
        shape("circle", "node", cx=x, cy=y, r=circle.node_radius),
        inside if circle.node_radius >= _NUMBERED_RADIUS and sent < 10_000 else None,
        text,
        classes="" if linked else "au-idle",
        title=title + (", a bottleneck: without it, others cannot reach each other" if bottleneck else ""),
    )


@dataclass(frozen=True)
class _Team:
    """What the drawing of a link must know of all others."""

    circle: Circle
    place_of: dict[str, int]
    bottlenecks: set[str]
    most: int
    n_links: int

    def curve(self, link: Link) -> Curve:
        """The way of a link, from the edge of one agent's mark to that of the other's."""
        start, end = (self.circle.centre(self.place_of[name]) for name in (link.sender, link.receiver))
        clear = [
            self.circle.reach + 1 if name in self.bottlenecks else self.circle.node_radius + 3
            for name in (link.sender, link.receiver)
        ]
        return Curve(start, _control(start, end, self.circle), end).between(*clear)

    def arrow(self, link: Link) -> Element:
        whole = self.curve(link)
        widest = 6.0 if self.n_links <= 60 else 3.0
        width = 1.2 + (widest - 1.2) * (link.weight / self.most) ** 0.5
        size = hypot(whole.end[0] - whole.start[0], whole.end[1] - whole.start[1])
        head = min((7 if self.n_links <= 60 else 4) + 1.2 * width, size / 2)
        line = whole.between(0, head * 0.8)
        facts = [counted(link.messages, "message")]
        facts += [counted(link.handoffs, "handoff")] if link.handoffs else []
        facts += [f"{link.failed:,} failed"] if link.failed else []
        return group(
            shape("path", "link", d=line.path(), stroke_width=width),
            shape("polygon", "head", points=arrow_head(whole.end, line.end, head)),
            cross(*whole.at(0.5), 5 if self.n_links <= 60 else 4) if link.failed else None,
            classes="au-failed" if link.failed else "",
            title=f"{label(link.sender, _TITLE_UNITS)} → {label(link.receiver, _TITLE_UNITS)}: {', '.join(facts)}",
        )

    def count(self, link: Link) -> Element:
        """How much passed along a link, beside the cross where it has one."""
        x, y = self.curve(link).at(0.28 if link.failed else 0.42)
        return shape("text", "number", f"{link.weight:,}", x=x, y=y + 4, text_anchor="middle")


def _control(start: Point, end: Point, circle: Circle) -> Point:
    """Bend to the left of the way, so that both directions show, and inwards, so that no other agent is in the way."""
    x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
    along = end[0] - start[0], end[1] - start[1]
    # Neighbors need a shallow bow only, just deep enough to clear whoever stands between.
    near = 0.15 + 0.85 * hypot(*along) / (2 * circle.radius)
    inwards = 1 - min(0.5, 0.05 * max(0, circle.n - 2)) * near**0.5
    bend = 0.24 if circle.n == 2 else 0.13
    return x * inwards + along[1] * bend, y * inwards - along[0] * bend


def _legend(
    shown: Network, arrows: Sequence[Link], most: int, *, numbered: bool, idle: bool
) -> tuple[list[Key], list[str]]:
    if not shown.links:
        return [], ["Nothing passed between agents." if shown.agents else "No event names an agent."]
    keys = []
    if arrows:
        arrow = shape("path", "link", d="M-8 0L4 0", stroke_width=3)
        head = shape("polygon", "head", points="12,0 3,5 3,-5")
        keys.append(Key((arrow, head), f"messages: the wider, the more (most: {most:,})"))
    if any(link.failed for link in arrows):
        broken = group(shape("path", "link", d="M-10 0L12 0", stroke_width=2), classes="au-failed")
        keys.append(Key((broken, cross(1, 0, 4)), "some failed"))
    if numbered:
        example = shape("text", "inside", "n", text_anchor="middle", y=4)
        keys.append(Key((shape("circle", "node", r=8), example), "messages sent"))
    if idle:
        keys.append(Key((group(shape("circle", "node", r=7), classes="au-idle"),), "sends and receives nothing"))
    if shown.bottlenecks:
        keys.append(Key((diamond(0, 0, 9, "bottleneck"),), "bottleneck: others need it to reach each other"))
    n_thin = len(shown.links) - len(arrows)
    return keys, [f"thin lines: {counted(n_thin, 'link')}, too many to draw as arrows"] if n_thin else []


def _words(network: Network) -> tuple[str, str]:
    n_messages = sum(link.messages for link in network.links)
    counts = (len(network.agents), "agent"), (len(network.links), "link"), (n_messages, "message")
    title = "Who writes to whom: " + ", ".join(counted(*each) for each in counts)
    sentences = [
        f"{label(link.sender, _LABEL_UNITS)} to {label(link.receiver, _LABEL_UNITS)}: {link.weight:,}"
        + (f", {link.failed:,} failed" if link.failed else "")
        for link in network.links[:12]
    ]
    if len(network.links) > 12:
        sentences.append("and " + counted(len(network.links) - 12, "further link"))
    if network.bottlenecks:
        names = ", ".join(label(name, _LABEL_UNITS) for name in network.bottlenecks[:12])
        sentences.append(f"bottlenecks: {names}")
    return title, "; ".join(sentences) + "." if sentences else "Nothing passed between agents."
