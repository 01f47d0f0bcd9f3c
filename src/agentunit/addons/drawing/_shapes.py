"""Foreign names as a drawing may show them: one line, no control characters, cut to a width."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot
from xml.sax.saxutils import escape, quoteattr

UNIT_PX = 7.0
"""The width of a usual letter at the size of labels, on the wide side: fonts differ."""

# Controls, marks that turn the direction of text, half surrogates, and what no standard has given a meaning.
_NOT_SHOWN = frozenset(("Cc", "Cf", "Cs", "Cn", "Co"))
# Persian and emoji are spelled with these two.
_JOINERS = "\u200c\u200d"


def label(text: str, most: int) -> str:
    """A text in one line of at most this many letter widths; what cannot be shown becomes a dot.

    >>> label("a\\x00 long\\n name", 8)
    'a· long…'
    """
    # Only so much of an endless name is ever looked at.
    shown = "".join(_shown(each) for each in " ".join(text[: 4 * most + 100].split()))
    if n_units(shown) <= most:
        return shown or "(no name)"
    kept, left = [], most - 1
    for each in shown:
        left -= _units(each)
        if left < 0:
            break
        kept.append(each)
    return "".join(kept) + "…"


def n_units(text: str) -> int:
    """How wide a text is, in usual letters."""
    return sum(map(_units, text))


def counted(number: int, noun: str) -> str:
    """A number of things in words.

    >>> counted(1, "link"), counted(1200, "link")
    ('1 link', '1,200 links')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _units(character: str) -> int:
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _shown(character: str) -> str:
    return character if character in _JOINERS or unicodedata.category(character) not in _NOT_SHOWN else "·"


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
        return self._blossom(share, share)

    def part(self, first: float, last: float) -> Curve:
        """The stretch between two shares."""
        # The control point of a stretch is where the tangents of its ends meet: the blossom at (first, last).
        return Curve(self.at(first), self._blossom(first, last), self.at(last))

    def _blossom(self, first: float, last: float) -> Point:
        a, b, c = (1 - first) * (1 - last), first + last - 2 * first * last, first * last
        x, y = (a * p + b * q + c * r for p, q, r in zip(self.start, self.control, self.end, strict=True))
        return x, y

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


FONT_PX = 12
# The colors of the HTML report. A picture brings its own ground, so that it can be read wherever it is put; in
# JupyterLab the theme decides, elsewhere the system.
_LIGHT = (
    "--au-paper:#ffffff;--au-ink:#1c1d1f;--au-soft:#5d6168;--au-line:#dfe0e3;--au-fill:#e6edfc;--au-link:#2f5fd0;"
    "--au-bad:#c0282d;--au-bad-fill:#fde2e1;--au-warn:#8a5a00;--au-tool:#7a4fd0"
)
_DARK = (
    "--au-paper:#1e1f23;--au-ink:#e9e9ec;--au-soft:#a3a7af;--au-line:#3a3c43;--au-fill:#2a3450;--au-link:#8fb0ff;"
    "--au-bad:#ff8f8a;--au-bad-fill:#472022;--au-warn:#f0c46a;--au-tool:#b497f5"
)
STYLE = f"""
.au-picture{{{_LIGHT};color:var(--au-ink);font-family:system-ui,-apple-system,"Segoe UI",Roboto,Arial,sans-serif}}
@media (prefers-color-scheme:dark){{.au-picture{{{_DARK}}}}}
[data-jp-theme-light="true"] .au-picture{{{_LIGHT}}}
[data-jp-theme-light="false"] .au-picture{{{_DARK}}}
.au-picture text{{fill:currentColor;font-size:{FONT_PX}px;stroke:var(--au-paper);stroke-width:3px;paint-order:stroke;\
stroke-linejoin:round}}
.au-picture .au-paper{{fill:var(--au-paper)}}
.au-picture .au-soft{{fill:var(--au-soft)}}
.au-picture .au-count{{font-size:11px;fill:var(--au-soft)}}
.au-picture .au-number{{font-size:11px;font-weight:600}}
.au-picture .au-inside{{stroke:none;font-size:11px}}
.au-picture .au-line{{stroke:var(--au-line);fill:none}}
.au-picture .au-node{{fill:var(--au-fill);stroke:var(--au-link);stroke-width:1.5}}
.au-picture .au-idle .au-node{{fill:var(--au-paper);stroke:var(--au-soft);stroke-dasharray:2 2}}
.au-picture .au-bottleneck{{fill:none;stroke:var(--au-warn);stroke-width:2}}
.au-picture .au-link{{fill:none;stroke:var(--au-link);opacity:.6}}
.au-picture .au-many .au-link{{opacity:.35}}
.au-picture .au-thin{{fill:none;stroke:var(--au-link);stroke-width:.6;opacity:.3}}
.au-picture .au-head{{fill:var(--au-link);stroke:none}}
.au-picture .au-failed .au-link{{stroke:var(--au-bad);stroke-dasharray:6 4;opacity:.9}}
.au-picture .au-failed .au-head{{fill:var(--au-bad)}}
.au-picture .au-cross{{fill:none;stroke:var(--au-bad);stroke-width:2;stroke-linecap:round}}
.au-picture .au-message{{fill:var(--au-link);stroke:var(--au-paper);stroke-width:1}}
.au-picture .au-handoff{{fill:var(--au-warn);stroke:var(--au-paper);stroke-width:1}}
.au-picture .au-failed .au-message,.au-picture .au-failed .au-handoff{{fill:var(--au-bad)}}
.au-picture .au-call{{fill:var(--au-tool);stroke:var(--au-tool);stroke-width:1.5}}
.au-picture .au-unknown .au-call{{fill:var(--au-paper)}}
.au-picture .au-failed .au-call{{fill:var(--au-bad-fill);stroke:var(--au-bad)}}
.au-picture .au-model{{fill:var(--au-paper);stroke:var(--au-soft);stroke-width:1.5}}
""".strip()
"""How the classes of all drawings look. Pages that may hold no style of their own in a drawing put it in theirs."""


@dataclass(frozen=True)
class Element:
    """One element of a drawing. Texts stand only in ``children``, never in markup."""

    tag: str
    attributes: dict[str, str]
    children: tuple[Element | str, ...] = ()

    def markup(self) -> str:
        """The element as XML."""
        attributes = "".join(f" {name}={quoteattr(value)}" for name, value in self.attributes.items())
        inside = "".join(each.markup() if isinstance(each, Element) else escape(each) for each in self.children)
        return f"<{self.tag}{attributes}>{inside}</{self.tag}>" if inside else f"<{self.tag}{attributes}/>"


def shape(tag: str, kind: str = "", /, *children: Element | str | None, **attributes: str | float) -> Element:
    """An element of a class. Underscores in attribute names stand for hyphens; numbers are rounded."""
    named = {"class": f"au-{kind}"} if kind else {}
    named |= {name.replace("_", "-"): number(value) for name, value in attributes.items()}
    return Element(tag, named, tuple(each for each in children if each is not None))


def number(value: str | float) -> str:
    """A coordinate with one digit: finer is not seen, and the same on every machine.

    >>> number(2), number(1 / 3), number(-0.01)
    ('2', '0.3', '0')
    """
    if isinstance(value, str):
        return value
    digits = f"{value:.1f}".removesuffix(".0")
    return "0" if digits == "-0" else digits


def group(*children: Element | None, classes: str = "", title: str = "") -> Element:
    """Elements that belong together, with a tooltip."""
    attributes = {"class": classes} if classes else {}
    labels = (shape("title", "", title),) if title else ()
    return Element("g", attributes, (*labels, *(each for each in children if each is not None)))


def cross(x: float, y: float, reach: float) -> Element:
    """The sign of failure."""
    a, b, c, d = (number(each) for each in (x - reach, y - reach, x + reach, y + reach))
    return shape("path", "cross", d=f"M{a} {b}L{c} {d}M{a} {d}L{c} {b}")


def diamond(x: float, y: float, reach: float, kind: str) -> Element:
    """A square on its corner."""
    corners = ((x, y - reach), (x + reach, y), (x, y + reach), (x - reach, y))
    return shape("polygon", kind, points=" ".join(f"{number(a)},{number(b)}" for a, b in corners))


@dataclass(frozen=True)
class Key:
    """One entry of a legend: a sign, drawn around the origin, and what it means."""

    sign: tuple[Element, ...]
    text: str


def legend(keys: Sequence[Key], notes: Sequence[str], width: float, top: float) -> tuple[Element, float]:
    """The legend below a picture, and the height that it takes; entries go into a new row when one is full."""
    x, y = 14.0, top + 10
    parts: list[Element] = []
    for key in keys:
        wide = 44 + n_units(key.text) * UNIT_PX
        if x > 14 and x + wide > width:
            x, y = 14.0, y + 20
        move = f"translate({number(x + 10)} {number(y)})"
        text = shape("text", "soft", key.text, x=18, y=4)
        parts.append(Element("g", {"transform": move}, (*key.sign, text)))
        x += wide
    for note in notes:
        y += 20
        parts.append(shape("text", "soft", note, x=14, y=y + 4))
    return Element("g", {}, tuple(parts)), y + 16 - top


def sheet(width: float, height: float, title: str, description: str, *parts: Element, kind: str) -> Element:
    """The whole drawing with its ground, and its words for those who cannot see it."""
    size = {"width": number(width), "height": number(height), "viewBox": f"0 0 {number(width)} {number(height)}"}
    attributes = {"class": f"au-picture au-{kind}", "role": "img", **size, "aria-label": title}
    ground = shape("rect", "paper", width=width, height=height, rx=6)
    labels = (shape("title", "", title), shape("desc", "", description))
    return Element("svg", attributes, (*labels, ground, *parts))


def standalone(drawn: Element) -> str:
    """A drawing as a file of its own, with its style in it."""
    attributes = {"xmlns": "http://www.w3.org/2000/svg", **drawn.attributes}
    title, description, *rest = drawn.children
    style = Element("style", {}, (STYLE,))
    return Element("svg", attributes, (title, description, style, *rest)).markup()
