"""What AutoGen prints to the console while a team works: sections headed "---------- Name ----------"."""

from __future__ import annotations

import ast
import io
import re
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import PurePath
from typing import Any, BinaryIO, cast

from agentunit.core.outcome import Outcome
from agentunit.core.records import Record
from agentunit.core.results import InputError
from agentunit.core.trace import TraceLog
from agentunit.traces.chats.conversation import HUMANS, Conversation, Turn, interactions_of
from agentunit.traces.chats.rows import CaseIds, NoConversation, file_rows, records_of_rows, row_facts
from agentunit.traces.chats.values import as_dict, as_name, without_nones
from agentunit.traces.compressed import BROKEN_STREAM, decompressed
from agentunit.traces.formats_base import Opening, Source, TraceFormat
from agentunit.traces.spans import ReadingNotes

# Newer versions print the type of the message as well: "---------- TextMessage (triage) ----------".
_HEADING = re.compile(
    r"^-{10} (?:(?P<kind>[A-Z]\w+(?:Message|Event)) \((?P<who>[^\n]+?)\)|(?P<name>[^\n]+?)) -{10}\r?$", re.M
)
_TOKENS = re.compile(r"^\[Prompt tokens: (\d+), Completion tokens: (\d+)\]\r?$", re.M)
# The summary that the console prints after the last message.
_SUMMARY = "Summary"
# agbench, AutoGen's test bed, wraps what it prints around the console's words.
_BENCH_END = re.compile(r"^SCENARIO\.PY (?:COMPLETE|EXITED)[^\n]*!#!#", re.M)
_BENCH_RUNTIME = re.compile(r"^SCENARIO\.PY RUNTIME: (\d+(?:\.\d+)?) !#!#", re.M)
_LONGEST_LOG_BYTES = 64 << 20


def _matches(opening: Opening) -> bool:
    if opening.head[:1] in (b"{", b"["):
        return "console_log" in opening.keys
    headings = _HEADING.finditer(opening.head.decode("utf-8", "replace"))
    # Other programs print such lines too; a team's first words are the user's, or are headed by their type.
    return any(heading["kind"] or heading["name"].lower() in HUMANS for heading in headings)


def _read(source: Source, notes: ReadingNotes) -> Iterator[Record | InputError]:
    ids = CaseIds()
    stem = PurePath(source.name).name.split(".")[0] or "console"
    try:
        # A stream that lets itself be looked into before it is read.
        stream = cast(io.BufferedReader, decompressed(cast(BinaryIO, source.stream)))
        is_json = stream.peek(64).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")
        log = b"" if is_json else stream.read(_LONGEST_LOG_BYTES + 1)
    except (*BROKEN_STREAM, OSError) as error:
        yield InputError(source.name, None, f"the file cannot be read to its end ({error})")
        return
    if is_json:
        rows = file_rows(Source(source.name, stream))
        yield from records_of_rows(source, rows, lambda row, _: _record(row, ids, stem, notes))
        return
    if len(log) > _LONGEST_LOG_BYTES:
        yield InputError(source.name, None, f"a console log of more than {_LONGEST_LOG_BYTES >> 20} MiB is not read")
        return
    try:
        yield _record({"console_log": log.decode("utf-8", "replace")}, ids, stem, notes)
    except NoConversation as reason:
        yield InputError(source.name, None, str(reason))


def _record(row: Any, ids: CaseIds, fallback_id: str, notes: ReadingNotes) -> Record:
    value = as_dict(row)
    log = value.get("console_log")
    if not isinstance(log, str):
        raise NoConversation(f"a row needs the text of a console as 'console_log'; received {log!r:.60}")
    talk = Conversation(notes)
    turns = _add_sections(talk, log)
    if not talk.events:
        raise NoConversation('the console log has no section headed "---------- Name ----------"')
    facts = row_facts(value, "console_log")
    runtime = _BENCH_RUNTIME.search(log)
    duration_s = float(runtime[1]) if runtime else None
    metadata = without_nones(source_format=AUTOGEN_CONSOLE.name, duration_s=duration_s)
    trace = TraceLog(talk.events, metadata, interactions_of(turns))
    outcome = Outcome(facts.success, talk.last_answer, elapsed_s=duration_s)
    return Record(facts.case(ids, fallback_id, talk.first_asked), trace, outcome)


def _add_sections(talk: Conversation, log: str) -> list[Turn]:
    turns = []
    end = _BENCH_END.search(log)
    headings = list(_HEADING.finditer(log, 0, end.start() if end else len(log)))
    for heading, following in zip_longest(headings, headings[1:]):
        until = following.start() if following else end.start() if end else len(log)
        text = log[heading.end() : until].strip()
        speaker, kind = heading["who"] or heading["name"], heading["kind"] or "TextMessage"
        if speaker == _SUMMARY:
            continue
        if tokens := _TOKENS.search(text):
            text = text[: tokens.start()].rstrip()
            usage = {"prompt_tokens": int(tokens[1]), "completion_tokens": int(tokens[2])}
            talk.model_call(usage, agent=speaker)
        if kind.endswith("Event"):
            if not _add_printed_calls(talk, text, speaker):
                talk.say("log", text, agent=speaker, kind=kind)
            continue
        talk.say("user" if speaker.lower() in HUMANS else "assistant", text, agent=speaker)
        if text:
            turns.append(Turn(speaker, text))
    return turns


def _add_printed_calls(talk: Conversation, text: str, speaker: str) -> bool:
    """Add the calls or results that a section prints as Python objects; false when it prints something else."""
    printed = _printed_objects(text)
    if not printed or {kind for kind, _ in printed} - {"FunctionCall", "FunctionExecutionResult"}:
        return False
    for kind, fields in printed:
        name, call_id = as_name(fields.get("name")), as_name(fields.get("id", fields.get("call_id")))
        if kind == "FunctionCall":
            talk.call(name or "", fields.get("arguments"), call_id=call_id, agent=speaker)
        else:
            result, failed = as_name(fields.get("content")), fields.get("is_error") is True
            talk.result(result, call_id=call_id, name=name, failed=failed, agent=speaker)
    return True


def _printed_objects(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Names and fields of a printed list of objects, taken from its syntax: nothing of it is run.

    >>> _printed_objects("[FunctionCall(id='c1', arguments='{}', name='search')]")
    [('FunctionCall', {'id': 'c1', 'arguments': '{}', 'name': 'search'})]
    >>> _printed_objects("Searching…")
    []
    """
    if not text.startswith("[Function"):
        return []
    try:
        body = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found = []
    for each in body.elts if isinstance(body, ast.List) else []:
        if not isinstance(each, ast.Call) or not isinstance(each.func, ast.Name):
            return []
        fields = {
            word.arg: word.value.value for word in each.keywords if word.arg and isinstance(word.value, ast.Constant)
        }
        found.append((each.func.id, fields))
    return found


AUTOGEN_CONSOLE = TraceFormat(
    "autogen-console",
    "console output of AutoGen and Magentic-One teams, as text or as rows with 'console_log'",
    _matches,
    _read,
)
