"""Which tools change something and which only read: calls of the latter say nothing about what a run did."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Literal

import msgspec
from msgspec import Struct

from agentunit.core.results import json_fallback
from agentunit.metrics.tools import declared_tools

MarkWord = Literal["write", "read", "unknown"]
MarkSource = Literal["option", "suite", "recorded", "name", "results", "nothing"]

MOST_TOOLS = 10_000
"""Names come from records: however many there are, no more are kept."""
FEWEST_RESULTS = 3
"""From so few results on it is said what a tool does whose name does not tell."""
CLEAR_SHARE = 0.8

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_READING_WORDS = """
get list search find fetch read look lookup query check show view describe count calculate compute calculator think
reason plan verify validate is has can exists browse retrieve load preview estimate inspect summarize summarise
analyze analyse compare convert translate scrape crawl grep glob cat ls head tail detect classify extract parse peek
scan select ask answer finish
"""
_READING = frozenset(_READING_WORDS.split())
# What they say of a thing follows a noun: order_status, customer_info.
_READ_NOUNS_WORDS = """
status details detail info information history lookup search list balance price quote forecast weather report summary
schema stats statistics availability
"""
_READ_NOUNS = frozenset(_READ_NOUNS_WORDS.split())
_WRITING_WORDS = """
create add insert update modify edit delete remove cancel reserve send publish submit pay charge refund buy purchase
sell move rename write save upload enable disable toggle activate deactivate grant revoke assign approve reject resume
suspend reset reboot restart reschedule invite reply forward notify escalate register unregister subscribe unsubscribe
lock unlock merge deploy commit push install uninstall refuel append replace rebook upsert put patch archive withdraw
deposit terminate dispatch redeem increment decrement
"""
_WRITING = frozenset(_WRITING_WORDS.split())
# Nouns as well: they are what is done only where they come first, as in book_flight.
_WRITING_FIRST_WORDS = """
book order record log email mail message return exchange transfer change set start stop open close make apply issue
copy share store post schedule call claim file report rate review dispute block trade hold
"""
_WRITING_FIRST = frozenset(_WRITING_FIRST_WORDS.split())
_CODE_WORDS = """
bash shell terminal python code interpreter exec execute run sql command repl notebook
"""
_CODE = frozenset(_CODE_WORDS.split())
_HANDING_OVER = re.compile(
    r"(?i)(transfer|escalate|hand|forward|route|connect|switch|delegate|call).*"
    r"(human|agent|person|operator|support|supervisor|representative|staff|team|assistant|expert)"
    # What frameworks call the tool that hands over to another agent, whatever that agent is called.
    r"|^(transfer|hand_?off|delegate)_?to_(?!.*(account|bank|wallet|savings|card))"
)
# By themselves these may mean anything: open a page, or a ticket.
_NEED_A_NOUN_WORDS = """
open call file report rate review log record hold block start stop claim message copy share store change issue make
apply trade
"""
_NEED_A_NOUN = frozenset(_NEED_A_NOUN_WORDS.split())
_OPENED_TO_READ = frozenset(("file", "page", "url", "document", "browser", "website", "link", "tab", "folder"))
_DONE = re.compile(
    r"(?i)\b(ok|success\w*|done|created|updated|deleted|removed|sent|saved|booked|cancel+ed|confirmed|completed|"
    r"accepted|submitted|scheduled|added|stored)\b"
)
_LONG_RESULT = 200
_SHORT_RESULT = 80


class ToolMark(Struct, frozen=True):
    """What a tool does, and how that is known."""

    tool: str
    mark: MarkWord
    source: MarkSource
    why: str
    n_calls: int = 0


@lru_cache(maxsize=4096)
def mark_of_name(name: str) -> tuple[MarkWord, str]:
    """What the name of a tool says that it does, and the word that says it.

    >>> mark_of_name("get_order"), mark_of_name("cancelOrder"), mark_of_name("mcp__shop__order_status")
    (('read', 'get'), ('write', 'cancel'), ('read', 'status'))
    >>> mark_of_name("transfer_to_human_agents")[0], mark_of_name("transfer_money")[0], mark_of_name("bash")[0]
    ('read', 'write', 'unknown')
    """
    own = name.rsplit("__", 1)[-1].rsplit(".", 1)[-1].rsplit("/", 1)[-1]
    words = [word.lower() for word in _WORDS.findall(own)]
    if not words:
        return "unknown", "its name has no words"
    if _HANDING_OVER.search(own):
        return "read", "hands over, which changes nothing by itself"
    if words[0] in _READING:
        return "read", words[0]
    for word in words:
        if word in _WRITING:
            return "write", word
    noun = next((word for word in words if word in _READ_NOUNS), None)
    if noun is not None and words[0] != noun:
        return "read", noun
    if words[0] == "open" and not _OPENED_TO_READ.isdisjoint(words):
        return "read", "open"
    if words[0] in _WRITING_FIRST and (len(words) > 1 or words[0] not in _NEED_A_NOUN):
        return "write", words[0]
    if code := next((word for word in words if word in _CODE), None):
        return "unknown", f"{code} runs code, which may do anything"
    if reading := next((word for word in words if word in _READING or word in _READ_NOUNS), None):
        return "read", reading
    return "unknown", "its name does not say"


class ToolMarks:
    """The marks of all tools of an input: what the user says, the suite, the framework, the name, or its results."""

    def __init__(self, said: Mapping[str, MarkWord] | None = None) -> None:
        self._said = dict(said or {})
        self._declared: dict[str, tuple[MarkWord, MarkSource]] = {}
        self._n_calls: Counter[str] = Counter()
        self._results: dict[str, Counter[str]] = {}
        self._seen_lists: set[int] = set()
        self._not_kept: set[str] = set()

    def declare(self, tools: Any, source: MarkSource) -> None:
        """Take in a list of declared tools: a hint of MCP (``readOnlyHint``, ``destructiveHint``) or ``read_only``.

        What a suite says goes before what a framework recorded.
        """
        if not tools:
            return
        # Most records offer the same tools: a list that was read once is not read again.
        try:
            digest = hash((source, msgspec.json.encode(tools, enc_hook=json_fallback)))
        except (TypeError, ValueError, RecursionError):
            return
        if digest in self._seen_lists or len(self._seen_lists) >= MOST_TOOLS:
            return
        self._seen_lists.add(digest)
        for tool in declared_tools(tools):
            if tool.read_only is None or len(self._declared) >= MOST_TOOLS:
                continue
            if tool.name not in self._declared or self._declared[tool.name][1] != "suite":
                self._declared[tool.name] = ("read" if tool.read_only else "write", source)

    def may_write(self, name: str) -> bool:
        """Whether calls of a tool are to be kept: all but those of tools that are known to read."""
        if self._quick(name) != "read":
            return True
        if len(self._not_kept) < MOST_TOOLS:
            self._not_kept.add(name)
        return False

    def _quick(self, name: str) -> MarkWord:
        if name in self._said:
            return self._said[name]
        return self._declared[name][0] if name in self._declared else mark_of_name(name)[0]

    def add_call(self, name: str, result: Any) -> None:
        """Count a call that went through. What came back tells about tools whose names do not."""
        if name not in self._n_calls and len(self._n_calls) >= MOST_TOOLS:
            return
        self._n_calls[name] += 1
        if self._quick(name) == "unknown":
            self._results.setdefault(name, Counter())[_kind_of(result)] += 1

    def mark(self, name: str) -> ToolMark:
        """What a tool does, after all records were seen."""
        n_calls = self._n_calls[name]
        if name in self._said:
            return ToolMark(name, self._said[name], "option", "as you say", n_calls)
        if name in self._declared:
            mark, source = self._declared[name]
            if mark == "write" and name in self._not_kept:
                return ToolMark(name, "unknown", source, "declared to change something after calls were seen", n_calls)
            return ToolMark(name, mark, source, "its declaration says so", n_calls)
        named, why = mark_of_name(name)
        if named != "unknown":
            return ToolMark(name, named, "name", why, n_calls)
        results = self._results.get(name, Counter())
        n_results = results.total()
        if n_results >= FEWEST_RESULTS and not why.endswith("anything"):
            for kind, mark in (("done", "write"), ("data", "read")):
                if results[kind] >= CLEAR_SHARE * n_results:
                    said = "say only that it was done" if kind == "done" else "are data"
                    learnt: MarkWord = "write" if mark == "write" else "read"
                    return ToolMark(name, learnt, "results", f"{results[kind]} of {n_results} results {said}", n_calls)
        return ToolMark(name, "unknown", "nothing", why, n_calls)

    def all(self) -> list[ToolMark]:
        """Every tool that was called: those that change something first, then unknown ones, the most called first."""
        order = {"write": 0, "unknown": 1, "read": 2}
        marks = [self.mark(name) for name in self._n_calls]
        return sorted(marks, key=lambda each: (order[each.mark], -each.n_calls, each.tool))


def parse_marks(entries: Iterable[str]) -> dict[str, MarkWord]:
    """Marks as a user writes them: ``refund=write,think=read``.

    >>> parse_marks(["refund=write, think=read"])
    {'refund': 'write', 'think': 'read'}
    """
    found: dict[str, MarkWord] = {}
    for entry in (part.strip() for each in entries for part in each.split(",")):
        name, _, mark = entry.rpartition("=")
        if not name.strip() or mark.strip() not in ("read", "write"):
            raise ValueError(f"a mark must be TOOL=read or TOOL=write; received {entry!r}")
        found[name.strip()] = "read" if mark.strip() == "read" else "write"
    return found


def _kind_of(result: Any) -> str:
    """Whether a result only says that something was done, or is data."""
    if result is None or result is True or result in ("", {}, []):
        return "done"
    if isinstance(result, Mapping):
        result = str(dict(result))
    if isinstance(result, (list, tuple)):
        return "data"
    text = str(result)
    if len(text) >= _LONG_RESULT:
        return "data"
    return "done" if len(text) <= _SHORT_RESULT and _DONE.search(text) else "other"
