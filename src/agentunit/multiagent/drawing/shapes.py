"""The parts of a drawing: elements, how they are written, and how they look in light and dark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from agentunit.multiagent.drawing.labels import UNIT_PX, n_units

FONT_PX = 12
# The colours of the HTML report. A picture brings its own ground, so that it can be read wherever it is put; in
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

    def data(self) -> list[Any]:
        """The element as plain lists, ``[tag, attributes, children]``, for a script that builds it."""
        return [
            self.tag,
            self.attributes,
            [each.data() if isinstance(each, Element) else each for each in self.children],
        ]


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
    told = (shape("title", "", title),) if title else ()
    return Element("g", attributes, (*told, *(each for each in children if each is not None)))


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
    told = (shape("title", "", title), shape("desc", "", description))
    return Element("svg", attributes, (*told, ground, *parts))


def standalone(drawn: Element) -> str:
    """A drawing as a file of its own, with its style in it."""
    attributes = {"xmlns": "http://www.w3.org/2000/svg", **drawn.attributes}
    title, description, *rest = drawn.children
    style = Element("style", {}, (STYLE,))
    return Element("svg", attributes, (title, description, style, *rest)).markup()
