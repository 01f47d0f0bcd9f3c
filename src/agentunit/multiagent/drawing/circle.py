"""Where the agents of a team stand: on a circle, far enough apart that no two touch."""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, degrees, pi, sin

from agentunit.multiagent.drawing.curves import Point

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
    """The places of ``n`` agents, clockwise from the top; two stand side by side. The centre is the origin."""

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
        """The centre of an agent's circle."""
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
