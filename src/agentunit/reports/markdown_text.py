"""Foreign text inside Markdown: readable as it is written, and without effect where GitHub renders it.

Ordinary text stays as it is. A sign is escaped only where Markdown or GitHub could read it as more than text.
"""

from __future__ import annotations

import html
import re

from agentunit.reports.printable import printable_line

NAME_LENGTH = 120

# Signs that a backslash turns into text. An underscore inside a word and brackets around numbers start nothing.
_ESCAPED = re.compile(
    r"""(?P<numbers>\[[-+−]?\d[-+−\d., %]*\](?![(\[:]))
    |(?P<sign>[\\`*|~\[\]]
        |(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])
        |^(?:[-+=](?![\d.])|>))""",
    re.VERBOSE,
)
_LIST_NUMBER = re.compile(r"^(\d{1,9})([.)])(?=\s|$)")
# Signs that GitHub looks for in the text itself: mentions, references, addresses, emoji, formulas, tags and entities.
_ENTITIES = re.compile(r"[@<]|#(?=[\w ]|$)|:(?![\s]|$)|\$(?!\d)|&(?=#?\w+;)|(?<=www)\.", re.IGNORECASE)
# What means nothing else inside a code span. Edges are kept apart: GitHub removes a space at each.
_CODE_SPAN = re.compile(r"(?!\s)[^`|\\]+(?<!\s)")
_ACTIVE_IN_HTML = re.compile(r"[\\`*_{}\[\]()#+!|~:@$^/]|(?<=www)\.")


def inline(text: str, most: int = NAME_LENGTH) -> str:
    """Foreign text inside a line or a table cell.

    >>> inline("tool_success: 0.64 [0.53, 0.73] at $0.02 (3 of 5)")
    'tool_success: 0.64 [0.53, 0.73] at $0.02 (3 of 5)'
    >>> inline("a|b <i>`@me`"), inline("[x](http://y)")
    ('a\\\\|b &lt;i>\\\\`&#64;me\\\\`', '\\\\[x\\\\](http&#58;//y)')
    """
    escaped = _ESCAPED.sub(lambda found: found["numbers"] or f"\\{found['sign']}", printable_line(text, most))
    escaped = _LIST_NUMBER.sub(r"\1\\\2", escaped)
    return _ENTITIES.sub(lambda found: "&lt;" if found[0] == "<" else f"&#{ord(found[0])};", escaped)


def code(text: str, most: int = NAME_LENGTH) -> str:
    """Foreign text in one line as code, where a mention or a reference is not followed.

    >>> code("order-011"), code("a|b")
    ('`order-011`', '<code>a&#124;b</code>')
    """
    shown = printable_line(text, most)
    return f"`{shown}`" if _CODE_SPAN.fullmatch(shown) else html_code(text, most)


def html_code(text: str, most: int = NAME_LENGTH) -> str:
    """The same for a line that GitHub reads as HTML, such as a summary."""
    escaped = html.escape(printable_line(text, most), quote=False)
    return f"<code>{_ACTIVE_IN_HTML.sub(lambda found: f'&#{ord(found[0])};', escaped)}</code>"
