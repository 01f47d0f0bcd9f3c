"""Curved arrows between two circles."""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot

from agentunit.multiagent.drawing.shapes import number

Point = tuple[float, float]
_HALVINGS = 20


@dataclass(frozen=True)
class Curve:
    """A quadratic Bézier curve."""

    start: Point
    control: Point
    end: Point

    def at(self, share: float) -> Point:
        """The point after a share of the curve, from 0 to 1.

        >>> Curve((0, 0), (5, 10), (10, 0)).at(0.5)
        (5.0, 5.0)
        """
        a, b, c = (1 - share) ** 2, 2 * share * (1 - share), share**2
        return (
            a * self.start[0] + b * self.control[0] + c * self.end[0],
            a * self.start[1] + b * self.control[1] + c * self.end[1],
        )

    def part(self, first: float, last: float) -> Curve:
        """The stretch between two shares."""
        # The control point of a stretch is where the tangents of its ends meet: the blossom at (first, last).
        a, b, c = (1 - first) * (1 - last), first + last - 2 * first * last, first * last
        control = (
            a * self.start[0] + b * self.control[0] + c * self.end[0],
            a * self.start[1] + b * self.control[1] + c * self.end[1],
        )
        return Curve(self.at(first), control, self.at(last))

    def between(self, clear_of_start: float, clear_of_end: float) -> Curve:
        """The stretch that keeps a distance from both ends."""
        first = self._leaves(self.start, clear_of_start, 0.0, 0.5)
        return self.part(first, self._leaves(self.end, clear_of_end, 1.0, 0.5))

    def _leaves(self, centre: Point, distance: float, inside: float, outside: float) -> float:
        for _ in range(_HALVINGS):
            middle = (inside + outside) / 2
            x, y = self.at(middle)
            if hypot(x - centre[0], y - centre[1]) < distance:
                inside = middle
            else:
                outside = middle
        return outside

    def path(self) -> str:
        """The curve as the ``d`` of a path."""
        (a, b), (c, d), (e, f) = self.start, self.control, self.end
        return f"M{number(a)} {number(b)}Q{number(c)} {number(d)} {number(e)} {number(f)}"


def arrow_head(tip: Point, came_from: Point, length: float) -> str:
    """The corners of an arrow head that points from one point to another.

    >>> arrow_head((10, 0), (0, 0), 4)
    '10,0 6,2 6,-2'
    """
    x, y = tip[0] - came_from[0], tip[1] - came_from[1]
    size = hypot(x, y) or 1.0
    x, y = x / size * length, y / size * length
    base = tip[0] - x, tip[1] - y
    corners = (tip, (base[0] - y / 2, base[1] + x / 2), (base[0] + y / 2, base[1] - x / 2))
    return " ".join(f"{number(a)},{number(b)}" for a, b in corners)
