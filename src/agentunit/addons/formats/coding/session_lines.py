"""Runs of coding agents that are lines by kind: one table a tool says what each line, and each part of it, adds."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from agentunit.addons.formats.chats.chat_records import RowContext, chat_format
from agentunit.addons.formats.chats.loose_values import as_amount, as_dict, as_list, as_name, as_time, text_of
from agentunit.addons.formats.coding._session import Session, count, usage_of
from agentunit.core.records import Record
from agentunit.traces.content_blocks import read_block
from agentunit.traces.formats_base import Opening, TraceFormat
from agentunit.traces.places import Paths, at, first_at, names_in, require_known

_COUNTS = "read written cached cache_written reasoning cost model"
# What each kind of step reads of a line; an agent, and the call that started it, may stand on any.
_FACTS = {
    "about": names_in("session_id model question error exit_status"),
    "prompt": names_in("text"),
    "say": names_in("text more"),
    "note": names_in("text"),
    "reason": names_in("text"),
    "call": names_in("id name arguments server"),
    "result": names_in("id name result failed succeeded status exit_code error duration_ms"),
    "model": names_in(_COUNTS),
    "total": names_in(f"{_COUNTS} of"),
    "hand_over": names_in("id to"),
    "skill": names_in("name"),
    "parts": names_in("list"),
}
_FACTS_OF_ANY = names_in("agent within")
# How a call ended, in the words of all tools; a call that still ran when the line was written has no end.
_ENDED = {
    **dict.fromkeys(("success", "completed", "ok"), False),
    **dict.fromkeys(("error", "failed", "failure", "cancelled", "canceled", "declined", "rejected", "timeout"), True),
}
_ENDINGS = names_in("result failed succeeded status exit_code error")
_RUNNING = names_in("pending running in_progress started")
_MILLISECONDS = 1e11  # seconds since 1970 come to this in the year 5138
# What stands on parts of any tool.
_BESIDE = "type cache_control signature thinkingSignature"
_OWN_TYPES = (bool, int, float, str)


class Step(NamedTuple):
    """What a line adds, where the facts of it stand, best place first, and facts that every such line states."""

    does: str
    where: Mapping[str, Paths]
    stated: Mapping[str, str]


def steps_of(text: str) -> tuple[Step, ...]:
    """The steps that a table names in one text: what each does, and the places of its facts, or what they are.

    >>> steps_of("say text=data.content|content; call name='bash' id=id")[1]
    Step(does='call', where={'id': ('id',)}, stated={'name': 'bash'})
    """
    steps = []
    for words in text.split(";"):
        does, *facts = words.split()
        require_known("a step", [does], _FACTS)
        where, stated = {}, {}
        for fact in facts:
            name, _, place = fact.partition("=")
            require_known(f"a fact of {does!r}", [name], _FACTS[does] | _FACTS_OF_ANY)
            if place.startswith("'"):
                stated[name] = place.strip("'")
            else:
                where[name] = tuple(place.split("|"))
        steps.append(Step(does, where, stated))
    return tuple(steps)


class Lines(NamedTuple):
    """The lines of a tool: names and places are texts with spaces between them.

    The kind of a line is the words at the places ``kind``, with colons between them; its steps are those of the longest
    beginning of its kind that has any. The kind of a part is the last word of its line's kind, and its own ``type``.
    Kinds in ``silent`` add nothing; one that is in neither is counted, and so are fields that no step reads and that
    are not in ``known``. ``lists`` are the places of lines in a file that is one object, whose own kind is ``file``.
    ``prepare`` turns a line that no place can describe into one that can be. A tool may count the input tokens
    without those of caches (``cache_on_top``), and the output tokens without those of reasoning.
    """

    name: str
    summary: str
    matches: Callable[[Opening], bool]
    kind: str
    steps: Mapping[str, str]
    silent: str = ""
    known: str = ""
    time: str = "timestamp"
    lists: str = ""
    session_of: str = ""
    cache_on_top: bool = False
    reasoning_on_top: bool = False
    prepare: Callable[[dict[str, Any], int], dict[str, Any]] = lambda line, place: line


class _Table:
    """The lines of a tool, with the texts of its table taken apart."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self.kind, self.time, self.lists = lines.kind.split(), lines.time.split(), lines.lists.split()
        self.session_of = lines.session_of.split()
        self.steps = {kind: steps_of(text) for kind, text in lines.steps.items()}
        self.kinds = names_in(lines.silent) | self.steps.keys()
        self.fields = {kind: self._fields_of(steps) for kind, steps in self.steps.items()}

    def _fields_of(self, steps: tuple[Step, ...]) -> frozenset[str]:
        """The outermost names in a line that these steps, or the lines as such, know."""
        places = [path for each in steps for paths in each.where.values() for path in paths]
        places += [*self.kind, *self.time, *self.lists, *self.session_of]
        return names_in(f"{_BESIDE} {self.lines.known}") | {path.partition(".")[0] for path in places}

    def listed(self, row: dict[str, Any]) -> list[Any] | None:
        """The lines within a file that is one object."""
        return next((found for path in self.lists if isinstance(found := at(row, path), list)), None)

    def fitting(self, kind: str) -> str | None:
        """The longest beginning of a kind that the table has."""
        while kind not in self.kinds:
            kind, colon, _ = kind.rpartition(":")
            if not colon:
                return None
        return kind


def lines_format(lines: Lines) -> TraceFormat:
    """The format of a tool's lines: an object or a list is a run, and so are the lines of one session."""
    table = _Table(lines)
    return chat_format(
        lines.name, lines.summary, lines.matches, partial(_record, table),
        is_part=lambda row: isinstance(row, dict) and table.listed(row) is None,
        session_of=lambda row: as_name(first_at(row, table.session_of)),
    )  # fmt: skip


def _record(table: _Table, row: Any, context: RowContext) -> Record:
    run = _LinesRun(context, table)
    lines = as_list(row)
    if isinstance(row, dict):
        lines = table.listed(row) or []
        run.take("file", row, None, None)
    for place, line in enumerate(run.objects(lines)):
        run.add(table.lines.prepare(line, place))
    run.state_totals()
    session = as_name(run.about.get("session_id"))
    question = as_name(run.about.get("question"))
    return run.record(context, table.lines.name, case_id=session, session_id=session, question=question)


class _LinesRun(Session):
    """A run as it is read, line by line."""

    def __init__(self, context: RowContext, table: _Table) -> None:
        super().__init__(context.notes, table.lines.name)
        self._table = table
        self.about: dict[str, Any] = {}
        self._agents: dict[str, str] = {}
        self._totals: dict[str, tuple[dict[str, Any] | None, float | None]] = {}
        self._says_more = False
        self._without_id: deque[dict[str, Any]] = deque()

    def add(self, line: dict[str, Any]) -> None:
        words = [str(word) for path in self._table.kind if isinstance(word := at(line, path), _OWN_TYPES)]
        self.take(":".join(words), line, _moment(first_at(line, self._table.time)), None)

    def take(self, kind: str, line: dict[str, Any], moment: float | None, agent: str | None) -> None:
        """What a line of a kind adds."""
        fitting = self._table.fitting(kind)
        if fitting is None and kind != "file":
            self.notes.count_fields([f"line of kind {kind}"])
        steps = self._table.steps.get(fitting or "", ())
        if steps:
            self.check_fields(line, self._table.fields[fitting or ""])
        for each in steps:
            facts = {fact: first_at(line, paths) for fact, paths in each.where.items()}
            facts = {**each.stated, **{fact: value for fact, value in facts.items() if value is not None}}
            who = self._agents.get(str(facts.get("within"))) or as_name(facts.get("agent")) or agent
            if each.does == "parts":
                role = kind.rpartition(":")[2]
                for part in _parts(facts.get("list")):
                    self._part(role, part, moment, who)
            elif each.where.keys() & facts.keys():
                self._do(each.does, facts, moment, None if who == "main" else who)

    def _part(self, role: str, part: dict[str, Any], moment: float | None, agent: str | None) -> None:
        """What a part of a line adds: by the table, or as the block of a message that it is."""
        kind = f"{role}:{part.get('type', '*')}"
        block = None if kind in self._table.kinds else read_block(part)
        if block is None:
            self.take(kind, part, moment, agent)
        elif block.does in ("said", "asked"):
            self._do("prompt" if role == "user" else "say", {"text": block.text}, moment, agent)
        elif block.does in ("call", "result"):
            facts = {"id": block.call_id, **block._asdict()}
            self._do(block.does, {name: fact for name, fact in facts.items() if fact is not None}, moment, agent)

    def _do(self, does: str, facts: dict[str, Any], moment: float | None, agent: str | None) -> None:
        text, call_id = text_of(facts.get("text")), as_name(facts.get("id"))
        says_more, self._says_more = self._says_more, False
        if does == "about":
            self.error = text_of(facts.pop("error", None)) or self.error
            self.metadata.update({"exit_status": facts.pop("exit_status")} if "exit_status" in facts else {})
            self.about.update(facts)
        elif does == "prompt":
            self.prompt(text, at=moment)
        elif does == "say":
            self._says_more = facts.get("more") is True
            if says_more and self._says_more and text:
                self._continue(text)
            else:
                self.say("assistant", text, agent=agent or self.main, at=moment)
        elif does == "note":
            self.say("system", text, at=moment)
        elif does == "reason":
            self.reason(text, agent=agent or self.main, at=moment)
        elif does == "call":
            if call_id is None or call_id not in self.calls:
                name = as_name(facts.get("name")) or ""
                self.call(name, facts.get("arguments"), call_id=call_id, agent=agent, at=moment)
                payload = self.events[-1].payload
                payload.update({"server": server} if (server := as_name(facts.get("server"))) else {})
                if call_id is None:
                    self._without_id.append(payload)
                elif self.handoffs and self.handoffs[-1].task_id == call_id:
                    self._agents[call_id] = self.handoffs[-1].to_agent
        elif does == "result" and facts.keys() & _ENDINGS:
            self._result(call_id, facts)
        elif does == "model":
            usage, cost = self._counted(facts)
            model = as_name(facts.get("model")) or as_name(self.about.get("model"))
            self.model_call(usage, model=model, cost=cost, agent=agent, at=moment)
        elif does == "total":
            # A total of the same thing comes again as it grows; totals of nothing in particular add up.
            self._totals[as_name(facts.get("of")) or f"part {len(self._totals)}"] = self._counted(facts)
            self.about.setdefault("model", as_name(facts.get("model")))
        elif does == "hand_over":
            target = as_name(facts.get("to")) or "subagent"
            if call_id not in self._agents:  # else the call that started it said so
                self.hand_over(call_id, target, at=moment, by=agent)
            self._agents[call_id or ""] = target
        elif does == "skill":
            self.skill(as_name(facts.get("name")), agent=agent, at=moment)

    def _continue(self, text: str) -> None:
        """More of the message before, which was written as it came."""
        payload = self.events[-1].payload
        payload["content"] += text
        self.last_answer = payload["content"]

    def _result(self, call_id: str | None, facts: dict[str, Any]) -> None:
        word = str(facts.get("status")).lower()
        if word in _RUNNING:
            return
        failed = facts.get("failed", _ENDED.get(word))
        if isinstance(facts.get("succeeded"), bool):
            failed = not facts["succeeded"]
        error = text_of(facts["error"]) if facts.get("error") else None
        code = facts.get("exit_code")
        exit_code = code if isinstance(code, int) and not isinstance(code, bool) else None
        took_ms = as_amount(facts.get("duration_ms"))
        result = facts.get("result")
        if call_id is not None and call_id not in self.calls and self._without_id:
            # Some programs give ids to results alone, in the order of the calls.
            self.calls[call_id] = self.identify(self._without_id.popleft()["name"], call_id) or {}
        self.end_call(
            call_id,
            result if isinstance(result, str) else text_of(result),
            name=as_name(facts.get("name")),
            failed=failed if isinstance(failed, bool) else True if error else None,
            exit_code=exit_code,
            error=error,
            duration_s=None if took_ms is None else took_ms / 1000,
        )

    def _counted(self, facts: dict[str, Any]) -> tuple[dict[str, Any] | None, float | None]:
        names = ("read", "written", "cached", "cache_written", "reasoning")
        read, written, cached, stored, thought = (count(facts.get(name)) for name in names)
        if self._table.lines.cache_on_top and read is not None:
            read += (cached or 0) + (stored or 0)
        if self._table.lines.reasoning_on_top and written is not None:
            written += thought or 0
        # Programs write 0 for what their provider did not send.
        known = bool(read or written)
        return usage_of(read, written, cached, stored, thought) if known else None, as_amount(facts.get("cost")) or None

    def state_totals(self) -> None:
        """What the lines state for the whole run."""
        counts: dict[str, Any] = {}
        for usage, _ in self._totals.values():
            _add(counts, usage or {})
        costs = [cost for _, cost in self._totals.values() if cost is not None]
        self.totals(counts or None, sum(costs) if costs else None)
        if model := as_name(self.about.get("model")):
            self.metadata.setdefault("model", model)


def _add(sums: dict[str, Any], usage: Mapping[str, Any]) -> None:
    """Add counts to sums, name by name, also those that are within another one."""
    for name, value in usage.items():
        if isinstance(value, dict):
            _add(sums.setdefault(name, {}), value)
        else:
            sums[name] = sums.get(name, 0) + value


def _parts(listed: Any) -> Iterator[dict[str, Any]]:
    """The parts of a line. A text is one part; objects by name are parts that state their ``name``."""
    if isinstance(listed, str):
        listed = {"type": "text", "text": listed}
    if isinstance(listed, dict):
        named = all(isinstance(value, dict) for value in listed.values())
        listed = [{"name": name, **value} for name, value in listed.items()] if named else [listed]
    before: dict[str, Any] = {}
    for part in [*map(as_dict, as_list(listed)), {}]:
        if part.get("type") == before.get("type") == "text" and "text" in part:
            # Pieces of one text.
            before = {**before, "text": f"{before.get('text', '')}{part['text']}"}
            continue
        if before:
            yield before
        before = part


def _moment(value: Any) -> float | None:
    """The time of a line, which many programs write in milliseconds."""
    seconds = as_time(value)
    return seconds / 1000 if seconds is not None and seconds > _MILLISECONDS else seconds
