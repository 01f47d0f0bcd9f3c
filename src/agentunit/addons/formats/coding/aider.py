"""Chat histories of Aider (``.aider.chat.history.md``): each chat that was started in the folder is a session."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentunit.addons.formats.chats.chat_records import CaseIds, RowContext
from agentunit.addons.formats.coding._session import Session, names, usage_of
from agentunit.core.records import Record
from agentunit.core.results import InputError
from agentunit.traces.compressed import bounded_lines
from agentunit.traces.formats_base import Source, TraceFormat
from agentunit.traces.spans import ReadingNotes

_START = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)")
# Aider ends what was typed and what it printed itself with two spaces, so that a heading or a quotation in an answer
# is not taken for them. Editors take spaces at the ends of lines away.
_TYPED, _PRINTED = re.compile(r"#### ?(.*?)(  )?$"), re.compile(r"> ?(.*?)(  )?$")
_MODEL = re.compile(r"(?:Main model|Model): (\S+) with ")
_SPENT = re.compile(r"Tokens: (\S+) sent, (?:.*, )?(\S+) received\.(?: Cost: \$(\d+(?:\.\d+)?) message)?")
_EDITED = re.compile(r"Applied edit to (.+)")
# Commands that put a question to the model; the others are for Aider itself.
_ASKING = names("/ask /code /architect /context /help /ok")
# What Aider itself asks, with the reply that was typed.
_ASKED_BACK = "? (Y)es/(N)o"
_ROUNDED = "Aider rounds token counts above 999; they were left out"
_UNASKED = "a chat of Aider in which nothing was asked; it was left out"


class _AiderChat(Session):
    """One chat as it is read, block by block: what was typed, what Aider printed, and what the model answered."""

    def __init__(self, notes: ReadingNotes, started: str) -> None:
        super().__init__(notes, "aider")
        self.started = started
        self._kind, self._lines = "", list[str]()
        self._model: str | None = None

    def add(self, line: str, marked: bool, blank: int) -> None:
        """One line, after blank ones; where typed lines are marked by spaces at their ends, only such were typed."""
        self._lines += [""] * blank
        typed, printed = _TYPED.match(line), _PRINTED.match(line)
        if typed and (typed[2] or not marked):
            self._put("typed", typed[1])
        elif printed and (printed[2] or not marked):
            self._put("printed", printed[1])
        else:
            self._put("answered", line)

    def _put(self, kind: str, text: str) -> None:
        if kind != self._kind:
            self.end_block()
            self._kind = kind
        self._lines.append(text)

    def end_block(self) -> None:
        """What the lines of one kind add together."""
        text, kind = "\n".join(self._lines).strip(), self._kind
        self._lines = []
        if kind == "typed":
            command = text.split(maxsplit=1)
            is_command = text.startswith("/") and (command[0] not in _ASKING or len(command) == 1)
            self.say("system" if is_command or _ASKED_BACK in text else "user", text)
        elif kind == "answered":
            self.say("assistant", text, agent=self.main)
        for line in text.splitlines() if kind == "printed" else ():
            self._printed(line)

    def _printed(self, line: str) -> None:
        if found := _MODEL.match(line):
            self._model = found[1]
        elif found := _SPENT.match(line):
            exact = found[1].isdecimal() and found[2].isdecimal()
            if not exact:
                self.notes.problems[_ROUNDED] += 1
            usage = usage_of(int(found[1]), int(found[2])) if exact else None
            self.model_call(usage, model=self._model, cost=float(found[3]) if found[3] else None)
        elif found := _EDITED.match(line):
            self._files[found[1].strip()] = None


def _records(source: Source, notes: ReadingNotes) -> Iterator[Record | InputError]:
    context = RowContext(CaseIds(), notes, "aider", {})
    chat: _AiderChat | None = None
    marked, before = False, 0
    for number, line in bounded_lines(source.stream):
        if isinstance(line, str):
            yield InputError(source.name, number, line)
            continue
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        blank, before = number - before - 1, number
        if found := _START.match(text):
            yield from _ended(chat, context)
            chat = _AiderChat(notes, f"{found[1]}T{found[2]}")
        elif chat is not None:
            marked = marked or (text.startswith(("#### ", "> ")) and text.endswith("  "))
            chat.add(text, marked, blank)
    yield from _ended(chat, context)


def _ended(chat: _AiderChat | None, context: RowContext) -> Iterator[Record]:
    if chat is None:
        return
    chat.end_block()
    if chat.first_asked is None:
        context.notes.problems[_UNASKED] += 1
        return
    yield chat.record(context, AIDER.name, case_id=chat.started, session_id=chat.started)


AIDER = TraceFormat(
    "aider",
    "chat histories of Aider (.aider.chat.history.md): each chat is a case",
    lambda opening: _START.match(opening.head[:80].decode("utf-8", "replace")) is not None,
    _records,
)
