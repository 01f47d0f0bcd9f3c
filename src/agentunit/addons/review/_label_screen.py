"""The screen on which a rater labels: a page that scrolls, one question, and one key for an answer."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol

import click
from msgspec import Struct, field

from agentunit.addons.review.labeling.rating import FEWEST_LABELS, CaseToLabel, LabelSession, Standing
from agentunit.core.records import outcome_text
from agentunit.metrics.base import MetricInfo
from agentunit.reports.case_view import Part, ToolCallView, conversation_text, view_case
from agentunit.reports.detail_text import doubted_claims
from agentunit.reports.figures import counted, with_interval
from agentunit.reports.printable import printable, printable_line
from agentunit.reports.reported_run import Mask, ReportedCase, ReportedRun
from agentunit.reports.terminal import Terminal, Text
from agentunit.store.labels import StoredLabel, subject_of

# One case as a rater sees it: what was asked, what came out, and the evidence.
#
# No score is on the page, and no doubtful word is marked before the rater asks for it or has answered: a rater who
# knows what the scorer says would agree with it too often.

_VALUE_LENGTH = 400


class LabelPage(Struct):
    """What a rater reads of one case; ``answer`` is cut into parts, each with whether nothing in it is doubted."""

    case_id: str
    question: str
    answer: list[Part]
    expected: list[str] = field(default_factory=list)
    criteria: list[str] = field(default_factory=list)
    evidence: list[tuple[str, str]] = field(default_factory=list)


def label_page(recorded: ReportedCase, info: MetricInfo, mask: Mask, *, marked: bool = False) -> LabelPage:
    """The page of one case for one metric, masked; what the metric does not look at is left out.

    ``marked``: with what the scorer doubts in the answer.
    """
    case = mask.case(recorded)
    view = view_case(case, brief=True)
    score = case.scores.get(info.name)
    detail = {} if score is None else score.result.detail
    answer = view.answer or ""
    reads = " ".join(info.inputs)
    texts, sources = _texts(detail.get("references")), _texts(detail.get("sources"))
    if not texts and "expected_output" not in reads:
        texts, sources = view.context, []
        calls = [(f'tool "{call.name}"', _result_of(call)) for call in view.tool_calls]
    else:
        calls = []
    named = [sources[at] if at < len(sources) else f"passage {at}" for at in range(len(texts))]
    return LabelPage(
        case.case_id,
        conversation_text(view.turns) if view.turns else view.query or "",
        marked_doubts(answer, detail if marked else {}, outcome_text(recorded.record.outcome), info.direction),
        view.expected if "expected_output" in reads or info.name == "task_success" else [],
        _texts(detail.get("criteria")),
        [*zip(named, texts, strict=True), *calls],
    )


def marked_doubts(
    answer: str, detail: Mapping[str, Any], scored: str | None = None, direction: str = "higher"
) -> list[Part]:
    """The answer cut where the scorer doubts it: its doubtful words, or a whole claim that nothing supports.

    ``scored`` and ``direction`` are those of ``doubted_claims``.

    >>> claim = {"text": "It costs 9 €.", "probability": 0.2, "doubtful": [{"start": 14, "end": 17}]}
    >>> marked_doubts("Yes. It costs 9 €.", {"claims": [claim]})
    [('Yes. It costs ', True), ('9 €', False), ('.', True)]
    """
    doubted = bytearray(len(answer))
    for claim in doubted_claims(answer, detail, direction, scored):
        for start, end in [(each.start, each.end) for each in claim.words] or [(claim.start, claim.end)]:
            doubted[start:end] = b"\1" * (end - start)
    parts: list[Part] = []
    start = 0
    for at in range(1, len(answer) + 1):
        if at == len(answer) or doubted[at] != doubted[start]:
            parts.append((answer[start:at], not doubted[start]))
            start = at
    return parts


def page_lines(page: LabelPage, console: Terminal) -> list[str]:
    """The page as lines of the console's width, to scroll through; without colors doubts are put in [? ?]."""
    signs = not console.shows_colors
    lines: list[str] = []

    def section(title: str, body: Text) -> None:
        before = [""] if lines else []
        lines.extend([*before, *console.rendered(title, style="bold"), *console.rendered(body, indent=2)])

    section("Question", Text(printable(page.question) or "(none)"))
    answer = Text()
    for part, is_sure in page.answer:
        shown = printable(part)
        if is_sure or not shown.strip():
            answer.append(shown)
        else:
            answer.append(f"[?{shown}?]" if signs else shown, style="" if signs else "bold yellow underline")
    section("Answer", answer or Text("(none)", style="dim"))
    if page.expected:
        section("Expected", Text("\nor  ".join(map(printable, page.expected)), style="green"))
    if page.criteria:
        section("Criteria", Text("\n".join(map(printable, page.criteria))))
    for source, text in page.evidence:
        section(f"Evidence: {printable_line(source, 60)}", Text(printable(text)))
    return lines


def _texts(value: Any) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, (list, tuple)) else []


def _result_of(call: ToolCallView) -> str:
    if call.error:
        return f"error: {call.error}"
    return printable_line(str(call.result if call.result is not None else call.status or "?"), _VALUE_LENGTH)


# Keys of a terminal one by one, without Enter. None that is pressed while the program works is lost.

_END_OF_INPUT = "\x04"
_ESCAPE = b"\x1b"
# The bytes of an arrow key come together; a person needs longer for two keys.
_REST_OF_KEY_S = 0.05


class TerminalKeys:
    """The keyboard. Where the system has no terminal settings (Windows), each key is read by click."""

    def __init__(self) -> None:
        self._is_single = False

    @contextmanager
    def single(self) -> Iterator[None]:
        """Within it keys come at once and are not shown; Ctrl-C still interrupts."""
        try:
            import termios
            import tty
        except ImportError:
            yield
            return
        terminal = sys.stdin.fileno()
        before = termios.tcgetattr(terminal)
        try:
            # Not click's way for each key: it throws away what was pressed since the last one.
            tty.setcbreak(terminal, termios.TCSADRAIN)
            self._is_single = True
            yield
        finally:
            self._is_single = False
            termios.tcsetattr(terminal, termios.TCSADRAIN, before)

    @contextmanager
    def lines(self) -> Iterator[None]:
        """Within it, inside of ``single``, the terminal shows and edits lines as usual."""
        if not self._is_single:
            yield
            return
        import termios
        import tty

        terminal = sys.stdin.fileno()
        settings = termios.tcgetattr(terminal)
        settings[3] |= termios.ICANON | termios.ECHO
        try:
            termios.tcsetattr(terminal, termios.TCSADRAIN, settings)
            yield
        finally:
            tty.setcbreak(terminal, termios.TCSADRAIN)

    def read(self) -> str:
        """The next key: a character, or the sequence of an arrow; "q" at the end of the input."""
        if not self._is_single:
            try:
                return click.getchar()
            except EOFError:
                return "q"
        terminal = sys.stdin.fileno()
        received = os.read(terminal, 1)
        if received == _ESCAPE:
            while len(received) < 8 and select.select([terminal], [], [], _REST_OF_KEY_S)[0]:
                received += os.read(terminal, 1)
                if len(received) > 2 and (received[-1:].isalpha() or received.endswith(b"~")):
                    break
        else:
            # The first byte of a character of UTF-8 says how many follow.
            following = (received[:1] >= b"\xc0") + (received[:1] >= b"\xe0") + (received[:1] >= b"\xf0")
            received += os.read(terminal, following) if following else b""
        key = received.decode("utf-8", "replace")
        return "q" if key in ("", _END_OF_INPUT) else key


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

    def __init__(self, console: Terminal) -> None:
        self._console = console
        self._keys = TerminalKeys()

    @contextmanager
    def screen(self) -> Iterator[None]:
        """The terminal's other screen, so that what was on it comes back, and keys as they are pressed."""
        click.echo("\x1b[?1049h", nl=False)
        try:
            with self._keys.single():
                yield
        finally:
            click.echo("\x1b[?1049l", nl=False)

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
        lines = page_lines(page, console)
        said, _, where = heading.rpartition("\n")
        above = [*(self._wrapped(said, "green") if said else []), *self._wrapped(where, "dim")]
        below = [*self._wrapped(question, "bold"), *self._wrapped(keys, "dim")]
        room = max(_SMALLEST_PAGE, console.height - len(above) - len(below) - 2)
        top = max(0, min(top, len(lines) - room))
        hidden = len(lines) - top - room
        shown = lines[top : top + room] + [""] * (room - len(lines))
        more = f"── {counted(hidden, 'more line')}: ↓ or space ".ljust(console.width, "─") if hidden > 0 else ""
        rule = more or "─" * console.width
        click.echo("\x1b[2J\x1b[H", nl=False)
        click.echo("\n".join([*above, "", *shown, rule, *below]), nl=False)
        return top, room - 1

    def _wrapped(self, text: str, style: str) -> list[str]:
        return self._console.rendered(text.rstrip("\n"), style=style)


class LineInput:
    """Any stream of lines, where standard input is not a terminal: the whole page is printed, then one line is read."""

    def __init__(self, console: Terminal) -> None:
        self._console = console

    def screen(self) -> AbstractContextManager[object]:
        """Nothing changes."""
        return nullcontext()

    def ask(self, page: LabelPage, heading: str, question: str, keys: str) -> str:
        """Print the page and read one line; no line is the end."""
        self._console.print(heading, style="dim")
        click.echo("\n".join(page_lines(page, self._console)))
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
            [case] = [each for each in raw.case(asked.case_id) if each.place == asked.place]
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


def describe_answer(given: StoredLabel, asked: CaseToLabel, info: MetricInfo, standing: Standing, width: float) -> str:
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


def _answer(session: LabelSession, asked: CaseToLabel, page: LabelPage, rater: RaterInput, said: str) -> str:
    before = "" if asked.given is None else f" · you said {asked.given.value if asked.given.value is not None else '–'}"
    heading = f"{session.info.name} · {printable_line(asked.case_id)} · {printable_line(session.rater)}{before}"
    grades = "  1-9 tenths" if session.info.graded else ""
    keys = f"y yes  n no{grades}  s skip  b back  u undo  t note  d doubts  q quit"
    return rater.ask(page, f"{said}\n{heading}" if said else heading, session.info.asked, keys)
