"""The screen on which a rater labels: a page that scrolls, one question, and one key for an answer."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol

import click
from rich.console import Console

from agentunit.cli.terminal_keys import TerminalKeys
from agentunit.engine.labeling import FEWEST_LABELS, Asked, LabelSession, Standing
from agentunit.metrics.base import MetricInfo
from agentunit.reports.figures import counted, with_interval
from agentunit.reports.label_page import LabelPage, label_page, rendered_lines
from agentunit.reports.printable import printable_line
from agentunit.reports.reported_run import Mask, ReportedRun
from agentunit.store.labels import StoredLabel, subject_of

_DOWN, _UP = ("\x1b[B", "\x1bOB", "j", " "), ("\x1b[A", "\x1bOA", "k")
_SMALLEST_PAGE = 5


class RaterInput(Protocol):
    """Where a rater reads and answers."""

    def screen(self) -> AbstractContextManager[object]:
        """What the whole session happens in."""
        ...

    def ask(self, page: LabelPage, heading: str, question: str, keys: str) -> str:
        """Show a page and wait for one answer: the key, in lower case."""
        ...

    def text(self, prompt: str) -> str:
        """A line that the rater writes."""
        ...


class ScreenInput:
    """A terminal: keys are read one by one, and the page scrolls under a fixed question."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._keys = TerminalKeys()

    @contextmanager
    def screen(self) -> Iterator[None]:
        """The terminal's other screen, so that what was on it comes back, and keys as they are pressed."""
        with self._console.screen(hide_cursor=False), self._keys.single():
            yield

    def ask(self, page: LabelPage, heading: str, question: str, keys: str) -> str:
        """Show the page from its top; arrows, space and k scroll it, any other key is the answer."""
        top = 0
        while True:
            top, step = self._draw(page, heading, question, keys, top)
            key = self._keys.read()
            if key in _DOWN:
                top += step if key == " " else 1
            elif key in _UP:
                top -= 1
            elif not key.startswith("\x1b"):
                return key.lower()

    def text(self, prompt: str) -> str:
        """A line, edited by the terminal itself."""
        click.echo()
        with self._keys.lines():
            return str(click.prompt(prompt, default="", show_default=False))

    def _draw(self, page: LabelPage, heading: str, question: str, keys: str, top: int) -> tuple[int, int]:
        console = self._console
        lines = rendered_lines(page, console)
        said, _, where = heading.rpartition("\n")
        above = [*(self._wrapped(said, "green") if said else []), *self._wrapped(where, "dim")]
        below = [*self._wrapped(question, "bold"), *self._wrapped(keys, "dim")]
        room = max(_SMALLEST_PAGE, console.height - len(above) - len(below) - 2)
        top = max(0, min(top, len(lines) - room))
        hidden = len(lines) - top - room
        shown = lines[top : top + room] + [""] * (room - len(lines))
        more = f"── {counted(hidden, 'more line')}: ↓ or space ".ljust(console.width, "─") if hidden > 0 else ""
        rule = more or "─" * console.width
        console.clear()
        click.echo("\n".join([*above, "", *shown, rule, *below]), nl=False)
        return top, room - 1

    def _wrapped(self, text: str, style: str) -> list[str]:
        with self._console.capture() as captured:
            self._console.print(text, style=style, markup=False, highlight=False)
        return captured.get().rstrip("\n").split("\n")


class LineInput:
    """Any stream of lines, where standard input is not a terminal: the whole page is printed, then one line is read."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def screen(self) -> AbstractContextManager[object]:
        """Nothing changes."""
        return nullcontext()

    def ask(self, page: LabelPage, heading: str, question: str, keys: str) -> str:
        """Print the page and read one line; no line is the end."""
        self._console.print(heading, style="dim", markup=False, highlight=False)
        click.echo("\n".join(rendered_lines(page, self._console)))
        click.echo(f"{question} [{keys}]")
        line = sys.stdin.readline()
        return line.strip().lower() or "?" if line else "q"

    def text(self, prompt: str) -> str:
        """The next line."""
        click.echo(prompt)
        return sys.stdin.readline().strip()


def label_cases(session: LabelSession, raw: ReportedRun, mask: Mask, rater: RaterInput) -> None:
    """Ask about case after case until the rater stops or none is left."""
    said = ""
    with rater.screen():
        while (asked := session.current) is not None:
            [case] = [each for each in raw.case(asked.case_id) if (each.position, each.repeat) == asked.place]
            marked = asked.given is not None
            note = asked.given.note if asked.given else ""
            while True:
                page = label_page(case, session.info, mask, marked=marked)
                answer = _answer(session, asked, page, rater, said)
                if answer == "t":
                    note = rater.text("note")
                    said = f"note: {printable_line(note)}"
                elif answer == "d":
                    marked = not marked
                    said = _describe_marks(page, label_page(case, session.info, mask, marked=marked), marked=marked)
                else:
                    break
            value = value_of(answer, session.info)
            if answer == "q":
                return
            if answer == "b":
                said = "" if session.back() else "this is the first case of this session"
            elif answer == "u":
                undone = session.undo()
                said = (
                    "nothing to undo in this session"
                    if undone is None
                    else f"taken back: your answer to {printable_line(undone.case_id)}"
                )
            elif answer == "s" or value is not None:
                given = session.give(value, subject_of(case.record), note)
                said = describe_answer(given, asked, session.info, session.standing(), session.width)
            else:
                said = f"{answer!r} is not an answer"


def _describe_marks(before: LabelPage, now: LabelPage, *, marked: bool) -> str:
    if before == now:
        return "the scorer doubts nothing here"
    return "what the scorer doubts is marked; d hides it" if marked else ""


def value_of(key: str, info: MetricInfo) -> float | None:
    """The label that a key stands for, on the scale of the metric; ``None`` for any other key.

    >>> graded = MetricInfo("rubric", "quality", "", graded=True)
    >>> value_of("y", graded), value_of("n", graded), value_of("7", graded), value_of("7", MetricInfo("m", "", ""))
    (1.0, 0.0, 0.7, None)
    """
    if key in ("y", "n"):
        return float(key == "y")
    return int(key) / 10 if info.graded and len(key) == 1 and key in "0123456789" else None


def describe_answer(given: StoredLabel, asked: Asked, info: MetricInfo, standing: Standing, width: float) -> str:
    """What is said after an answer: the score that was hidden until now, and what all labels show."""
    words = {None: "skipped", 1.0: "yes", 0.0: "no"}.get(given.value, f"{given.value:g}" if given.value else "")
    score = "none" if asked.score.value is None else f"{asked.score.value:.2f}"
    return (
        f"{printable_line(asked.case_id)}: you {'said ' if given.value is not None else ''}{words}, "
        f"{info.name} {score} ({asked.score.backend})\n{describe_standing(standing, width)}"
    )


def describe_standing(standing: Standing, width: float) -> str:
    """How far the labels have come.

    >>> describe_standing(Standing(4, 60, None, None), 0.2)
    '4 labels of 60'
    """
    labels = f"{counted(standing.n_labels, 'label')} of {standing.n_cases:,}"
    rate = standing.rate
    if rate is None:
        return labels
    text = f"{labels}: labeled rate {with_interval(rate.rate, rate.low, rate.high, 'score')}"
    if standing.n_more is None:
        return f"{text}, {rate.high - rate.low:.2f} wide"
    if standing.n_more == 0:
        return f"{text}: narrow enough (--width {width:g}); q stops"
    return f"{text}, {rate.high - rate.low:.2f} wide; about {standing.n_more:,} more give {width:g}"


def describe_left(standing: Standing, width: float) -> str:
    """How many labels are left to give, said at the end of a session; nothing where no number of them would do.

    >>> describe_left(Standing(4, 60, None, None), 0.2)
    'from 10 labels on it is said how many more give an interval 0.2 wide (--width)'
    """
    wide = f"an interval {width:g} wide (--width)"
    if standing.n_more is None:
        few = standing.n_labels < FEWEST_LABELS
        return f"from {FEWEST_LABELS} labels on it is said how many more give {wide}" if few else ""
    return f"about {counted(standing.n_more, 'more label')} for {wide}" if standing.n_more else f"enough for {wide}"


def _answer(session: LabelSession, asked: Asked, page: LabelPage, rater: RaterInput, said: str) -> str:
    before = "" if asked.given is None else f" · you said {asked.given.value if asked.given.value is not None else '–'}"
    heading = f"{session.info.name} · {printable_line(asked.case_id)} · {printable_line(session.rater)}{before}"
    grades = "  1-9 tenths" if session.info.graded else ""
    keys = f"y yes  n no{grades}  s skip  b back  u undo  t note  d doubts  q quit"
    return rater.ask(page, f"{said}\n{heading}" if said else heading, session.info.asked, keys)
