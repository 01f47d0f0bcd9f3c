"""The transcript of a case: its events in order of time, page by page, so that 100,000 of them open at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from agentunit.addons.viewer._case_columns import beginning
from agentunit.addons.viewer._media import Media, MediaFinder
from agentunit.core.records import Outcome, outcome_text
from agentunit.core.results import encode_json, json_fallback
from agentunit.core.trace import AgentInteraction, ConflictEvent, HandoffEvent, TraceEvent, TraceLog, tool_status
from agentunit.reports.case_view import tool_call_of
from agentunit.reports.reported_run import Mask
from agentunit.reports.timeline import FAULTS, entry_of_event, timeline_of

MOST_EVENTS = 500
FIRST_EVENTS = 100
MOST_FOUND = 1_000
_TEXT_LENGTH, _ENTRIES, _MOST_DEPTH = 20_000, 500, 60
_MEDIA_AN_EVENT = 1_000
_NUMBERS = frozenset((float, int, bool, type(None)))
_DURATIONS = (("duration_s", 1.0), ("elapsed_s", 1.0), ("duration_ms", 1e-3), ("latency_ms", 1e-3), ("latency_s", 1.0))
_TOOL_KEYS = ("name", "arguments", "result", "error", "status", "agent")
_Happened = TraceEvent | AgentInteraction | HandoffEvent | ConflictEvent


class Transcript:
    """The events of one record. Nothing is masked or taken apart before it is asked for."""

    def __init__(self, trace: TraceLog, media_root: Path | None = None) -> None:
        self._media_root = media_root
        happened: list[tuple[float | None, _Happened]] = [(event.timestamp, event) for event in trace.events]
        for others in (trace.interactions, trace.handoffs, trace.conflicts):
            happened += [(each.timestamp, each) for each in others]
        times = [time for time, _ in happened if time is not None]
        self._start = min(times, default=0.0)
        latest = self._start
        keyed: list[tuple[float, float | None, _Happened]] = []
        for time, each in happened:
            # What has no time stays behind what was recorded before it; the sort is stable.
            latest = latest if time is None else time
            keyed.append((latest, time, each))
        self._entries = [(time, each) for _, time, each in sorted(keyed, key=lambda entry: entry[0])]

    def __len__(self) -> int:
        return len(self._entries)

    def page(self, offset: int, limit: int, mask: Mask) -> list[dict[str, Any]]:
        """Events from ``offset`` on, long texts cut (``TraceEvent`` of types.ts)."""
        numbers = range(len(self))[max(0, offset) : max(0, offset) + max(0, limit)]
        if not numbers:
            return []
        events: list[dict[str, Any]] = mask.data([self._event(number)[0] for number in numbers])
        for event in events:
            size = _size(event)
            cut: dict[str, Any] = shortened(event)
            if cut != event:
                cut["cut"] = size
            event.clear()
            event.update(cut)
        return events

    def event(self, number: int, mask: Mask) -> dict[str, Any]:
        """One event whole."""
        masked: list[dict[str, Any]] = mask.data([self._event(number)[0]])
        return masked[0]

    def media(self, number: int) -> Media | None:
        """The medium of this number of an event; ``None`` where there is none."""
        event, at = divmod(number, _MEDIA_AN_EVENT)
        if not 0 < event <= len(self):
            return None
        found = self._event(event - 1)[1]
        return found[at] if at < len(found) else None

    def all_media(self) -> Iterator[Media]:
        """The media of all events."""
        for number in range(len(self)):
            yield from self._event(number)[1]

    def find(self, text: str) -> list[int]:
        """The numbers of the first events that hold a text, whatever its case."""
        wanted = text.casefold()
        found = []
        for number, (_, each) in enumerate(self._entries):
            held = each.payload if isinstance(each, TraceEvent) else each
            if wanted in encode_json(held).decode("utf-8", "replace").casefold():
                found.append(number)
                if len(found) == MOST_FOUND:
                    break
        return found

    def outline(self, mask: Mask) -> dict[str, Any]:
        """All events in columns (``Outline`` of types.ts)."""
        kinds, agents, names = _Numbers(), _Numbers(), _Numbers()
        columns: dict[str, list[Any]] = {key: [] for key in ("kind", "at_s", "duration_s", "agent", "size", "name")}
        failed = []
        for number, (time, each) in enumerate(self._entries):
            payload = each.payload if isinstance(each, TraceEvent) else {}
            kind = _kind(each)
            name = payload.get("name") if kind == "tool_call" else payload.get("role")
            if _failed(each):
                failed.append(number)
            columns["kind"].append(kinds.of(kind))
            columns["at_s"].append(None if time is None else round(time - self._start, 6))
            columns["duration_s"].append(_duration(payload))
            columns["agent"].append(agents.of(_agent(each)))
            columns["name"].append(names.of(name if isinstance(name, str) else None))
            columns["size"].append(_rough_size(payload) if payload else 80)
        return {
            "n_events": len(self),
            "kinds": mask.data(kinds.names),
            "agents": mask.data(agents.names),
            "names": mask.data(names.names),
            "failed": failed,
            **columns,
        }

    def _event(self, number: int) -> tuple[dict[str, Any], list[Media]]:
        time, each = self._entries[number]
        finder = MediaFinder((number + 1) * _MEDIA_AN_EVENT, self._media_root)
        facts: dict[str, Any] = {"n": number, "kind": _kind(each)}
        if time is not None:
            facts["at_s"] = round(time - self._start, 6)
        if _failed(each):
            facts["failed"] = True
        if isinstance(each, TraceEvent):
            plain = msgspec.to_builtins(each.payload, enc_hook=json_fallback, str_keys=True)
            facts.update(_of_event(each, finder.replaced(plain)))
        else:
            facts.update(_of_others(each, finder))
        if finder.found:
            facts["media"] = [media.data() for media in finder.found]
        return facts, finder.found


def _of_event(event: TraceEvent, payload: dict[str, Any]) -> dict[str, Any]:
    """The facts of an event, and what is left of its payload."""
    facts: dict[str, Any] = {}
    taken: tuple[str, ...] = ("agent",)
    if isinstance(payload.get("agent"), str):
        facts["agent"] = payload["agent"]
    if (duration := _duration(payload)) is not None:
        facts["duration_s"] = duration
    if type(payload.get("turn")) is int:
        facts["turn"] = payload["turn"]
    if event.type == "tool_call":
        facts["tool"] = msgspec.to_builtins(tool_call_of(payload), enc_hook=json_fallback, str_keys=True)
        for key, default in (("arguments", None), ("result", None), ("error", None), ("status", None), ("ok", None)):
            facts["tool"].setdefault(key, default)
        facts["tool"].setdefault("agent", None)
        taken = _TOOL_KEYS
    elif event.type == "message":
        facts["role"] = str(payload.get("role") or "")
        facts["text"] = _message_text(payload.get("content"))
        taken = ("role", "agent", "content") if isinstance(payload.get("content"), str) else ("role", "agent")
    elif event.type == "retrieval" and isinstance(payload.get("documents"), list):
        facts["documents"] = payload["documents"]
        facts["label"] = entry_of_event(TraceEvent(event.type, payload)).label
        taken = ("agent", "documents")
    else:
        facts["label"] = entry_of_event(TraceEvent(event.type, payload)).label
    left = {key: value for key, value in payload.items() if key not in taken}
    return {**facts, "payload": left} if left else facts


def _of_others(each: AgentInteraction | HandoffEvent | ConflictEvent, finder: MediaFinder) -> dict[str, Any]:
    plain = finder.replaced(msgspec.to_builtins(each, enc_hook=json_fallback, str_keys=True))
    if isinstance(each, ConflictEvent):
        log = TraceLog(conflicts=[each])
        return {"to": list(each.agents_involved), "label": timeline_of(log)[0].label, "payload": plain}
    log = TraceLog(interactions=[each]) if isinstance(each, AgentInteraction) else TraceLog(handoffs=[each])
    to = each.to_agent if isinstance(each.to_agent, list) else [each.to_agent]
    return {"agent": each.from_agent, "to": to, "label": timeline_of(log)[0].label, "payload": plain}


def _message_text(content: Any) -> str:
    """What a message says: its text, the texts of its parts, or its data."""
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, list):
        parts = [
            each if isinstance(each, str) else each.get("text") if isinstance(each, dict) else None for each in content
        ]
        texts = [part for part in parts if isinstance(part, str)]
        if texts:
            return "\n".join(texts)
    return outcome_text(Outcome(output=content)) or str(content)


def _kind(each: _Happened) -> str:
    if isinstance(each, TraceEvent):
        return each.type
    if isinstance(each, AgentInteraction):
        return each.interaction_type
    return "handoff" if isinstance(each, HandoffEvent) else "conflict"


def _agent(each: _Happened) -> str | None:
    if isinstance(each, TraceEvent):
        agent = each.payload.get("agent")
        return agent if isinstance(agent, str) else None
    return None if isinstance(each, ConflictEvent) else each.from_agent


def _failed(each: _Happened) -> bool:
    if isinstance(each, TraceEvent):
        payload = each.payload
        status = tool_status(payload) if each.type == "tool_call" else payload.get("status")
        return bool(payload.get("error")) or status in FAULTS
    return each.resolved is False if isinstance(each, ConflictEvent) else each.success is False


def _duration(payload: dict[str, Any]) -> float | None:
    for key, factor in _DURATIONS:
        value = payload.get(key)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0:
            return float(value) * factor
    return None


def _rough_size(value: Any, depth: int = 0) -> int:
    """About how many characters data shows; a long list is not counted to its end."""
    if isinstance(value, str):
        return len(value)
    if depth > 4:
        return 10
    if isinstance(value, dict):
        return sum(len(str(key)) + _rough_size(each, depth + 1) for key, each in value.items())
    if isinstance(value, list):
        some: Sequence[Any] = value[:50]
        return sum(_rough_size(each, depth + 1) for each in some) * max(1, len(value) // 50)
    return 8


def _size(value: Any) -> int:
    return len(encode_json(value))


class _Numbers:
    """Texts by number, in order of appearance."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._known: dict[str, int] = {}

    def of(self, name: str | None) -> int:
        if name is None:
            return -1
        if name not in self._known:
            self._known[name] = len(self.names)
            self.names.append(name)
        return self._known[name]


def shortened(value: Any, depth: int = 0) -> Any:
    """Data with overlong texts and lists cut, each with a word about what is missing."""
    if value.__class__ in _NUMBERS or (value.__class__ is str and len(value) <= _TEXT_LENGTH):
        return value
    if isinstance(value, str):
        kept = beginning(value, _TEXT_LENGTH)
        return value if kept == value else f"{kept}… ({len(value) - len(kept):,} more characters)"
    if isinstance(value, (dict, list)) and depth > _MOST_DEPTH:
        return "… (nested deeper)"
    if isinstance(value, dict):
        return {key: shortened(each, depth + 1) for key, each in value.items()}
    if isinstance(value, list):
        entries = [shortened(each, depth + 1) for each in value[:_ENTRIES]]
        return entries if len(value) <= _ENTRIES else [*entries, f"… ({len(value) - _ENTRIES:,} more)"]
    return value
