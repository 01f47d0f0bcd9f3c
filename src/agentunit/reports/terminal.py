"""Styled texts and tables on a terminal: words wrap, columns share the width, and colors show only where they can."""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import IO

from msgspec import Struct

Line = list[tuple[str, str]]
"""The parts of a line: characters and their style."""

_ATTRIBUTES = {"bold": "1", "dim": "2", "italic": "3", "underline": "4"}
_COLORS = {"red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36", "white": "37"}
_WORD = re.compile(r"\s*\S+\s*")
# In a column that does not wrap, words up to this width are never broken.
_WHOLE_WIDTH = 20
_DEFAULT_SIZE = (80, 25)


def cell_len(text: str) -> int:
    """How many columns of a terminal a text takes.

    >>> cell_len("abc"), cell_len("日本"), cell_len("e\\u0301")
    (3, 4, 1)
    """
    return len(text) if text.isascii() else sum(map(_char_width, text))


@lru_cache(maxsize=4096)
def _char_width(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1


class Text:
    """A text whose parts have styles, such as ``bold red`` or ``not bold``."""

    def __init__(self, text: str = "", style: str = "") -> None:
        self.style = style
        self._parts: Line = []
        self.append(text)

    @classmethod
    def stacked(cls, texts: Iterable[Text]) -> Text:
        """Several texts, one below the other.

        >>> Text.stacked([Text("a"), Text("b", "red")]).plain
        'a\\nb'
        """
        found = cls()
        for number, text in enumerate(texts):
            found.append("\n" if number else "")
            for part, style in text._parts:
                found.append(part, f"{text.style} {style}")
        return found

    def append(self, text: str, style: str = "") -> Text:
        """Add a part, and give back the whole."""
        if text:
            self._parts.append((text.expandtabs(), style))
        return self

    @property
    def plain(self) -> str:
        """The characters."""
        return "".join(text for text, _ in self._parts)

    @property
    def cell_len(self) -> int:
        """How many columns it takes on one line."""
        return cell_len(self.plain)

    def __bool__(self) -> bool:
        return bool(self._parts)

    def lines(self, width: int | None, around: str = "") -> list[Line]:
        """Broken between words, and in words that are longer than a line; without a width only where lines end."""
        breaks: list[int] = []
        at = 0
        for line in self.plain.split("\n"):
            if at:
                breaks.append(at)
            if width is not None:
                breaks += [at + place for place in _breaks(line, max(1, width))]
            at += len(line) + 1
        return _cut([(text, f"{around} {self.style} {own}") for text, own in self._parts], breaks)


def _breaks(line: str, width: int) -> list[int]:
    """Where a line has to be broken."""
    if cell_len(line) <= width:
        return []
    breaks: list[int] = []
    used = 0
    for match in _WORD.finditer(line):
        word = match.group().rstrip()
        if used + cell_len(word) > width:
            if match.start():
                breaks.append(match.start())
            used = 0
            for at, char in enumerate(word, match.start()):
                if used and used + cell_len(char) > width:
                    breaks.append(at)
                    used = 0
                used += cell_len(char)
        else:
            used += cell_len(word)
        used += len(match.group()) - len(word)
    return breaks


def _cut(parts: Line, breaks: Sequence[int]) -> list[Line]:
    """The parts line by line."""
    lines: list[Line] = [[]]
    at, n_cut = 0, 0
    for text, style in parts:
        end = at + len(text)
        while n_cut < len(breaks) and breaks[n_cut] < end:
            lines[-1].append((text[: breaks[n_cut] - at], style))
            lines.append([])
            text, at = text[breaks[n_cut] - at :], breaks[n_cut]
            n_cut += 1
        lines[-1].append((text, style))
        at = end
    return [_stripped(line) for line in (*lines, *([] for _ in breaks[n_cut:]))]


def _stripped(line: Line) -> Line:
    """A line without the spaces and the line break at its end."""
    while line and not line[-1][0].rstrip():
        line.pop()
    if line:
        line[-1] = (line[-1][0].rstrip(), line[-1][1])
    return line


class Column(Struct):
    """A column of a table. One that does not wrap gives up width only when the others have none left to give."""

    heading: str = ""
    right: bool = False
    no_wrap: bool = False
    style: str = ""
    min_width: int = 1
    width: int | None = None


class TextTable:
    """Rows of texts without lines around them; the headings are left out where no column has one."""

    def __init__(self, *columns: Column, gap: int = 2, heading_style: str = "bold") -> None:
        self.columns = columns
        self._gap = " " * gap
        self._rows: list[tuple[list[Text], str]] = []
        if any(column.heading for column in columns):
            self.add_row(*(column.heading for column in columns), style=heading_style)

    def add_row(self, *cells: Text | str, style: str = "") -> None:
        """Add a row; what it lacks at the right is empty."""
        self._rows.append(([Text(cell) if isinstance(cell, str) else cell for cell in cells], style))

    def lines(self, width: int | None, around: str = "") -> list[Line]:
        """The rows, each as high as its highest cell."""
        widths = self._widths(width)
        lines: list[Line] = []
        for cells, style in self._rows:
            places = zip(cells, widths, self.columns, strict=False)
            shown = [cell.lines(room, f"{around} {style} {column.style}") for cell, room, column in places]
            lines += [self._joined(parts, widths) for parts in zip_longest(*shown, fillvalue=[])]
        return lines

    def _joined(self, parts: Iterable[Line], widths: Sequence[int]) -> Line:
        line: Line = []
        for part, width, column in zip(parts, widths, self.columns, strict=False):
            space = (" " * (width - _line_len(part)), "")
            line += [space, *part] if column.right else [*part, space]
            line.append((self._gap, ""))
        return _stripped(line)

    def _widths(self, width: int | None) -> list[int]:
        """What each column needs. Where that is too much, the widest gives first, and those that wrap before others."""
        wanted = [column.min_width for column in self.columns]
        least = list(wanted)
        for cells, _ in self._rows:
            for at, cell in enumerate(cells):
                needed = max(map(_line_len, cell.lines(None)))
                wanted[at] = max(wanted[at], needed)
                if self.columns[at].no_wrap and needed <= _WHOLE_WIDTH:
                    least[at] = max(least[at], needed)
        widths = [column.width or needed for column, needed in zip(self.columns, wanted, strict=True)]
        if width is None:
            return widths
        room = width - len(self._gap) * (len(widths) - 1)
        widths = [min(needed, max(room, 1)) for needed in widths]
        wrapping = [at for at, column in enumerate(self.columns) if not column.no_wrap and column.width is None]
        for giving in (wrapping, range(len(widths))):
            while sum(widths) > room and (able := [at for at in giving if widths[at] > least[at]]):
                widths[max(able, key=widths.__getitem__)] -= 1
        return widths


def _line_len(line: Line) -> int:
    return sum(cell_len(text) for text, _ in line)


class Terminal:
    """Where reports are printed: standard output or error as they are now, or a file. ``styled`` says that it is one
    that shows styles, or does not."""

    def __init__(
        self,
        *,
        stderr: bool = False,
        file: IO[str] | None = None,
        width: int | None = None,
        styled: bool | None = None,
    ) -> None:
        self._file, self._stderr, self._width = file, stderr, width
        shows_styles = self.is_terminal and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")
        self._styled = shows_styles if styled is None else styled
        self.shows_colors = self._styled and not os.environ.get("NO_COLOR")
        if sys.platform == "win32" and self._styled:
            # It comes with click there, and makes older terminals read styles.
            import colorama

            colorama.just_fix_windows_console()

    @property
    def file(self) -> IO[str]:
        """Where the text goes."""
        return self._file or (sys.stderr if self._stderr else sys.stdout)

    @property
    def is_terminal(self) -> bool:
        """Whether somebody looks at it, or the variable FORCE_COLOR says so."""
        return bool(os.environ.get("FORCE_COLOR")) or self.file.isatty()

    @property
    def width(self) -> int:
        """Its columns."""
        return self._width or _size_of("COLUMNS", 0)

    @property
    def height(self) -> int:
        """Its lines."""
        return _size_of("LINES", 1)

    def print(
        self, part: Text | TextTable | str = "", *, style: str = "", indent: int = 0, soft_wrap: bool = False
    ) -> None:
        """Print something; with ``soft_wrap`` its lines may be of any length."""
        lines = self.rendered(part, style=style, indent=indent, soft_wrap=soft_wrap)
        self.file.write("".join(f"{line}\n" for line in lines))
        self.file.flush()

    def rendered(
        self, part: Text | TextTable | str, *, style: str = "", indent: int = 0, soft_wrap: bool = False
    ) -> list[str]:
        """The lines that ``print`` would print."""
        shown = Text(part) if isinstance(part, str) else part
        lines = shown.lines(None if soft_wrap else self.width - indent, style)
        return [" " * indent * bool(line) + "".join(map(self._painted, line)) for line in lines]

    def _painted(self, part: tuple[str, str]) -> str:
        text, style = part
        codes = _codes(style, self.shows_colors) if self._styled and text else ""
        return f"\x1b[{codes}m{text}\x1b[0m" if codes else text


@lru_cache(maxsize=256)
def _codes(style: str, with_colors: bool) -> str:
    """What tells a terminal a style; of two words about one thing the last counts."""
    attributes: set[str] = set()
    color = ""
    words = iter(style.split())
    for word in words:
        if word == "not":
            attributes.discard(_ATTRIBUTES[next(words)])
        elif word in _ATTRIBUTES:
            attributes.add(_ATTRIBUTES[word])
        else:
            color = _COLORS[word]
    return ";".join([*sorted(attributes), *([color] if color and with_colors else [])])


def _size_of(variable: str, place: int) -> int:
    """The columns or lines that the environment states, or that one of the standard streams has."""
    stated = os.environ.get(variable, "")
    if stated.isdecimal() and int(stated):
        return int(stated)
    for stream in (sys.__stdin__, sys.__stdout__, sys.__stderr__):
        try:
            size = 0 if stream is None else os.get_terminal_size(stream.fileno())[place]
        except (OSError, ValueError):
            continue
        if size:
            return size
    return _DEFAULT_SIZE[place]
