"""The sentence in which a metric says why a score is what it is: ``detail["why"]``, one line of at most 120 characters.

It names the fact that decided, in words that a stranger understands. What it quotes of an answer may hold personal
data: it is masked with the detail, wherever details are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agentunit.formulas.text import shortened
from agentunit.metrics.inputs import acceptable_answers

LONGEST = 120
"""How many characters a sentence may have."""
_LONGEST_QUOTE = 48
_MOST_LISTED = 3
# Of a text, which may be megabytes long, so many times the wanted length are read: it may be full of blanks.
_READ_TIMES = 4
_NOTHING_LEFT = "…"


def sentence(text: str) -> str:
    r"""A text as a sentence that may be shown anywhere: on one line, and cut between words where it is too long.

    >>> sentence("failed:\n  no such city")
    'failed: no such city'
    """
    return text if len(text) <= LONGEST and text.isprintable() else on_one_line(text, LONGEST)


def on_one_line(text: str, most: int) -> str:
    """The beginning of a text on one line, of at most ``most`` characters, without half a word at its end."""
    if text[:most].isprintable():
        return shortened(text, most)
    read = text[: _READ_TIMES * most]
    line = " ".join(read.split())
    if len(read) < len(text):
        # The last word may be half a word, and half an address is found by no detector: it is cut with the rest.
        line += "x" * most
    return shortened(line, most)


def quoted(text: str, most: int = _LONGEST_QUOTE) -> str:
    """A text in quotation marks, cut where it is long; of one long word only how long it is.

    >>> quoted("24 months"), quoted("Paris is the capital of France.", 20), quoted("x" * 200)
    ('"24 months"', '"Paris is the …"', 'a text of 200 characters')
    """
    if len(text) > most:
        # Most long texts are cut here, in a quarter of the time: after a word of letters, where a space follows.
        begin, _, _ = text[: most - 1].rpartition(" ")
        if begin.isprintable() and begin.rpartition(" ")[2].isalpha():
            return f'"{begin} …"'
    elif text.isprintable():
        return f'"{text}"'
    shown = on_one_line(text, most)
    return f'"{shown}"' if shown != _NOTHING_LEFT else f"a text of {len(text):,} characters"


def listed(texts: Iterable[str], between: str = ", ") -> str:
    """The first three of some texts, in quotation marks.

    >>> listed(["Paris", "Rome"], " or "), listed(["a", "b", "c", "d"])
    ('"Paris" or "Rome"', '"a", "b", "c", …')
    """
    shown = [quoted(text) for text in texts]
    if len(shown) > _MOST_LISTED:
        shown[_MOST_LISTED:] = ["…"]
    return between.join(shown)


def why_equal(is_equal: bool, answer: str | None, expected: Any) -> str:
    """Why a comparison with the expected answer came out as it did.

    >>> why_equal(True, "4", "4"), why_equal(False, "5", ["4", "four"])
    ('equals the expected answer', '"5", expected "4" or "four"')
    """
    if is_equal:
        return "equals the expected answer"
    if expected.__class__ is str:
        return f"{quoted(answer or '')}, expected {quoted(expected)}"
    return sentence(f"{quoted(answer or '')}, expected {listed(acceptable_answers(expected), ' or ')}")


def shown_value(value: Any) -> str:
    """A value of JSON in a few words.

    >>> shown_value(24.5), shown_value("Paris"), shown_value({"id": 1}), shown_value([1, 2]), shown_value(None)
    ('24.5', '"Paris"', 'an object of 1 field', 'a list of 2 entries', 'null')
    """
    if isinstance(value, str):
        return quoted(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, dict):
        return f"an object of {counted(len(value), 'field')}"
    if isinstance(value, (list, tuple)):
        return f"a list of {counted(len(value), 'entry', 'entries')}"
    if not isinstance(value, (int, float)):
        return f"a {type(value).__name__}"
    try:
        number = str(value)
    except ValueError:  # Python refuses to spell out integers of thousands of digits
        return "a number of thousands of digits"
    return number if len(number) <= _LONGEST_QUOTE else f"a number of {len(number)} digits"


def amount(value: float) -> str:
    """A number as people read it.

    >>> amount(0.00321), amount(2.5), amount(1575), amount(123456.7)
    ('0.00321', '2.5', '1,575', '123,457')
    """
    if -999.95 < value < 999.95:
        return f"{value:.4g}"
    return f"{value:,.0f}" if -1e15 < value < 1e15 else f"{value:.4g}"


def part_of(number: int, total: int, noun: str) -> str:
    """Some of several things in words.

    >>> part_of(1, 1, "tool call"), part_of(1, 3, "tool call"), part_of(0, 3, "tool call")
    ('the tool call', '1 of 3 tool calls', 'no tool call')
    """
    if not number:
        return f"no {noun}"
    return f"the {noun}" if total == 1 else f"{number:,} of {counted(total, noun)}"


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number of things in words.

    >>> counted(1, "step"), counted(1200, "step"), counted(2, "entry", "entries")
    ('1 step', '1,200 steps', '2 entries')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
