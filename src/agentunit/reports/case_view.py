"""One case as a person reads it: what was asked, what came out, what happened, and what every metric says about it.

The view is plain data; the terminal, the HTML page and ``--json`` all show the same one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct, field, to_builtins

from agentunit.core.conversation import exchanges_of, script_of, user_failure, user_kind
from agentunit.core.records import Outcome, Record, outcome_text
from agentunit.core.results import RETURNED_BOOL, Score, explained, json_fallback
from agentunit.core.trace import tool_status
from agentunit.engine.deciding.cut_offs import is_low, own_threshold
from agentunit.metrics.base import MetricInfo
from agentunit.metrics.inputs import InputProblem, Item, acceptable_answers
from agentunit.reports.reported_run import ReportedCase
from agentunit.reports.timeline import TimelineEntry, timeline_of
from agentunit.store.labels import StoredLabel
from agentunit.store.runs import FIRST_AGAIN, is_again

if TYPE_CHECKING:
    from agentunit.multiagent.team import AgentRow, Lanes, Network

Part = tuple[str, bool]
"""A piece of text, and whether the other text has it too."""

_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
# The comparison takes time that grows with the square of the length: past this nobody would read the marks anyway.
_MOST_WORDS = 3_000
# Two texts that share less than this are different as a whole: marks on every word would say nothing.
_LEAST_SHARED = 0.2
_CANDIDATES = 8


def marked_differences(answer: str, expected: str) -> tuple[list[Part], list[Part]]:
    """Both texts cut into parts that are shared and parts that are not; nothing when they share too little to tell.

    >>> marked_differences("due on 11 October", "due on 20 October")[0]
    [('due on ', True), ('11', False), (' October', True)]
    >>> marked_differences("yes", "the parcel is lost")
    ([], [])
    """
    left, right = _WORDS.findall(answer), _WORDS.findall(expected)
    if not left or not right or len(left) + len(right) > _MOST_WORDS:
        return [], []
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    if _shared(matcher, left, right) < _LEAST_SHARED:
        return [], []
    mine: list[Part] = []
    theirs: list[Part] = []
    for kind, start, end, other_start, other_end in matcher.get_opcodes():
        text = "".join(left[start:end])
        # A space between two words that differ belongs to the difference.
        same = kind == "equal" and not text.isspace()
        _append(mine, text, same)
        _append(theirs, "".join(right[other_start:other_end]), same)
    return mine, theirs


def closest(answer: str, candidates: Sequence[str]) -> str:
    """The candidate most like the answer, the first where they tie.

    >>> closest("about four", ["4", "four"])
    'four'
    """
    if len(candidates) == 1 or len(answer) > _MOST_WORDS:
        return candidates[0]
    return max(
        candidates[:_CANDIDATES],
        key=lambda each: SequenceMatcher(None, answer, each[:_MOST_WORDS], autojunk=False).quick_ratio(),
    )


def _shared(matcher: SequenceMatcher[str], left: list[str], right: list[str]) -> float:
    # Spaces are in every text and say nothing about likeness.
    words = sum(not each.isspace() for each in left) + sum(not each.isspace() for each in right)
    same = sum(
        not each.isspace() for block in matcher.get_matching_blocks() for each in left[block.a : block.a + block.size]
    )
    return 2 * same / words if words else 0.0


def _append(parts: list[Part], text: str, same: bool) -> None:
    if not text:
        return
    if parts and parts[-1][1] == same:
        text = parts.pop()[0] + text
    parts.append((text, same))


_View = TypeVar("_View")
_PRINTED_KEYS = ("stdout", "stderr", "printed", "prints", "logs")


class ToolCallView(Struct, omit_defaults=True):
    """One call of a tool. ``ok`` is ``None`` when the trace does not say how it ended."""

    name: str
    arguments: Any = None
    result: Any = None
    error: str | None = None
    status: str | None = None
    ok: bool | None = None
    agent: str | None = None


class TurnView(Struct, omit_defaults=True):
    """One turn of a conversation: what the user said, what the agent did, and its answer."""

    number: int
    query: str
    answer: str | None = None
    expected: list[str] = field(default_factory=list)
    tool_calls: list[ToolCallView] = field(default_factory=list)


class ScoreView(Struct, omit_defaults=True):
    """One score; ``detail`` without what the case shows elsewhere. ``elapsed_s`` is the metric's own time.

    ``why`` is the proof of the value, and ``reason`` what to show of a score: its proof, or why it has no value.

    ``judge_calls`` are the transcripts of what a judge was asked for it, where they were kept.
    """

    metric: str
    value: float | None
    status: str
    backend: str
    version: str
    elapsed_s: float
    reason: str | None = None
    detail: dict[str, Any] = field(default_factory=dict)
    judge_calls: list[dict[str, Any]] = field(default_factory=list)
    why: str | None = None


class CaseView(Struct, omit_defaults=True):
    """Everything about one case. ``repeat`` counts from 1. ``agents``, ``network`` and ``lanes`` are there when several
    took part, ``turns`` when it is a conversation. ``user_failure`` says why its simulated user failed. One that is not
    ``recorded`` comes from a score table, which has the scores and not the record.

    ``answer_parts`` and ``expected_parts`` are the two texts cut where they differ, each part with whether both share
    it; they are absent when there is nothing to compare.
    """

    case_id: str
    repeat: int
    position: int
    failed: bool
    elapsed_s: float
    query: str | None = None
    answer: str | None = None
    expected: list[str] = field(default_factory=list)
    answer_parts: list[Part] = field(default_factory=list)
    expected_parts: list[Part] = field(default_factory=list)
    context: list[str] = field(default_factory=list)
    tool_calls: list[ToolCallView] = field(default_factory=list)
    timeline: list[TimelineEntry] = field(default_factory=list)
    agents: list[AgentRow] = field(default_factory=list)
    network: Network | None = None
    lanes: Lanes | None = None
    printed: dict[str, str] = field(default_factory=dict)
    failure: str | None = None
    error: str | None = None
    attempts: int | None = None
    earlier_failures: list[str] = field(default_factory=list)
    scores: list[ScoreView] = field(default_factory=list)
    state: dict[str, Any] | None = None
    case_metadata: dict[str, Any] = field(default_factory=dict)
    trace_metadata: dict[str, Any] = field(default_factory=dict)
    turns: list[TurnView] = field(default_factory=list)
    user_failure: str | None = None
    labels: list[StoredLabel] = field(default_factory=list)
    recorded: bool = True


def view_case(case: ReportedCase, *, brief: bool = False) -> CaseView:
    """The view of one case. A ``brief`` one is quicker: it leaves out where answers differ and the agents."""
    # A run of which no case is viewed needs nothing of teams.
    from agentunit.multiagent.team import agents_table, lanes_of, network_of

    record = case.record
    agents = _read_or_none(agents_table, record) or []
    if len(agents) < 2:
        agents = []
    answer = outcome_text(record.outcome)
    expected = acceptable_answers(record.case.expected_output) if record.case.expected_output is not None else []
    context = _context(record)
    calls = [tool_call_of(event.payload) for event in record.trace.events if event.type == "tool_call"]
    shown_elsewhere = _shown_elsewhere(record, answer, context)
    metadata = dict(record.trace.metadata)
    outcome = record.outcome if isinstance(record.outcome, Outcome) else Outcome()
    view = CaseView(
        case_id=case.case_id,
        repeat=case.repeat + 1,
        position=case.position,
        failed=case.failed,
        elapsed_s=case.elapsed_s,
        query=record.case.query,
        answer=answer,
        expected=expected,
        context=context,
        tool_calls=calls,
        timeline=timeline_of(record.trace),
        agents=agents,
        network=_read_or_none(network_of, record) if agents and not brief else None,
        lanes=_read_or_none(lanes_of, record) if agents and not brief else None,
        printed=_printed(record, metadata),
        failure=_text_or_none(metadata.pop("failure", None)),
        error=outcome.error,
        attempts=metadata.pop("attempts", None),
        earlier_failures=[str(each) for each in _as_list(metadata.pop("earlier_failures", None))],
        scores=[_score_view(metric, score, shown_elsewhere) for metric, score in case.scores.items()],
        state=outcome.state,
        case_metadata=record.case.metadata,
        trace_metadata=metadata,
        turns=_turns(record, answer),
        user_failure=user_failure(record.trace),
        labels=case.labels,
        recorded=case.recorded,
    )
    if not brief and answer is not None and expected:
        reference = closest(answer, expected)
        view.answer_parts, view.expected_parts = marked_differences(answer, reference)
    return view


def plain(value: Any) -> Any:
    """Data of a view as JSON knows it."""
    return to_builtins(value, enc_hook=json_fallback, str_keys=True)


def describe_own_threshold(score: ScoreView, info: MetricInfo | None) -> str | None:
    """On which side of the threshold that it names a score is."""
    threshold = None if info is None else own_threshold(info, score.detail)
    if info is None or threshold is None or score.value is None:
        return None
    worse, better = ("above", "at or below") if info.direction == "lower" else ("below", "at or above")
    kind = score.detail.get("kind")
    of_kind = f" ({kind})" if isinstance(kind, str) else ""
    return f"{worse if is_low(info, score.value, threshold) else better} its threshold {threshold:.3g}{of_kind}"


def worst_repeat(repeats: Sequence[ReportedCase], infos: Mapping[str, MetricInfo]) -> ReportedCase:
    """The repeat of a case to look at: one in which the agent failed, else the one with the lowest scores.

    Tries again only where there are no others.
    """

    def goodness(case: ReportedCase) -> tuple[bool, float]:
        values = []
        for metric, score in case.scores.items():
            info = infos.get(metric)
            if info and info.unit == "score" and score.status == "ok" and score.result.value is not None:
                values.append(-score.result.value if info.direction == "lower" else score.result.value)
        return not case.failed, sum(values) / len(values) if values else 0.0

    planned = [case for case in repeats if not is_again(case.repeat)]
    return min(planned or repeats, key=goodness)


def repeat_name(repeat: int) -> str:
    """What a repeat, counted from 0, is called.

    >>> repeat_name(1), repeat_name(FIRST_AGAIN)
    ('repeat 2', 'tried again 1')
    """
    return f"tried again {repeat - FIRST_AGAIN + 1}" if is_again(repeat) else f"repeat {repeat + 1}"


def _score_view(metric: str, score: Score, shown_elsewhere: list[Any]) -> ScoreView:
    reason = explained(score)
    detail: dict[str, Any] = {}
    for key, value in score.result.detail.items():
        is_elsewhere = key == "backend" or value == reason or _is_among(value, shown_elsewhere)
        if not is_elsewhere and (key, value) != RETURNED_BOOL:
            detail[key] = value
    if "sources" in detail:
        # The texts of the evidence stand on the page as context, documents and tool calls.
        detail.pop("references", None)
    calls = []
    judge = detail.get("judge")
    if isinstance(judge, dict) and isinstance(judge.get("transcripts"), list):
        calls = [call for call in judge["transcripts"] if isinstance(call, dict)]
        detail["judge"] = {key: value for key, value in judge.items() if key != "transcripts"}
    return ScoreView(
        metric,
        score.result.value,
        score.status,
        score.backend,
        score.version,
        score.elapsed,
        reason,
        detail,
        calls,
        score.why,
    )


def _shown_elsewhere(record: Record, answer: str | None, context: list[str]) -> list[Any]:
    payloads = [event.payload for event in record.trace.events if event.type == "tool_call"]
    output = record.outcome.output if isinstance(record.outcome, Outcome) else record.outcome
    parts: list[Any] = [answer, output, record.case.expected_output, record.case.query, context, payloads]
    return [part for part in parts if isinstance(part, (str, list, dict)) and part]


def _is_among(value: Any, parts: list[Any]) -> bool:
    try:
        return isinstance(value, (str, list, dict)) and bool(value) and any(value == part for part in parts)
    except RecursionError:
        return False


def _context(record: Record) -> list[str]:
    try:
        return list(Item(record.case, record.trace, None).context)
    except InputProblem:
        # A context that metrics refuse is still worth seeing.
        return [str(each) for each in _as_list(record.case.context)]


def _turns(record: Record, answer: str | None) -> list[TurnView]:
    """The turns of a conversation; nothing where there was one question only, or the messages lack the answer."""
    turns = exchanges_of(record.trace.events)
    kind = user_kind(record.case)
    if not turns or (kind is None and (len(turns) < 2 or turns[-1].answer != answer)):
        return []
    script = script_of(record.case) if kind == "script" else []
    return [
        TurnView(
            turn.number,
            turn.query,
            turn.answer,
            acceptable_answers(script[turn.number - 1].expected_output) if turn.number <= len(script) else [],
            [tool_call_of(event.payload) for event in turn.events if event.type == "tool_call"],
        )
        for turn in turns
    ]


def conversation_text(turns: Sequence[TurnView]) -> str:
    """A conversation as plain text."""
    lines = []
    for turn in turns:
        lines.append(f"user: {turn.query}")
        lines += [f"  tool {call.name}: {call.error or call.status}" for call in turn.tool_calls if call.ok is False]
        lines.append(f"agent: {'(no answer)' if turn.answer is None else turn.answer}")
        lines += [f"expected: {' | '.join(turn.expected)}"] if turn.expected else []
    return "\n".join(lines)


def _read_or_none(read: Callable[[Record], _View], record: Record) -> _View | None:
    """What a reader makes of a record; ``None`` when it refuses one that cannot be right. The scores say why."""
    try:
        return read(record)
    except InputProblem:
        return None


def tool_call_of(payload: dict[str, Any]) -> ToolCallView:
    """A call of a tool, from the payload of its event."""
    status = _text_or_none(tool_status(payload))
    error = _text_or_none(payload.get("error"))
    return ToolCallView(
        name=_text_or_none(payload.get("name")) or "(unnamed)",
        arguments=payload.get("arguments"),
        result=payload.get("result"),
        error=error,
        status=status,
        ok=False if error else None if status is None else status == "success",
        agent=_text_or_none(payload.get("agent")),
    )


def _printed(record: Record, metadata: dict[str, Any]) -> dict[str, str]:
    printed = {}
    for key in _PRINTED_KEYS:
        text = _text_or_none(metadata.pop(key, None))
        if text:
            printed[key] = text
    for event in record.trace.events:
        if event.type in _PRINTED_KEYS:
            text = _text_or_none(event.payload.get("text", event.payload.get("content")))
            if text:
                printed[event.type] = "\n".join(filter(None, (printed.get(event.type), text)))
    return printed


def _text_or_none(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return "\n".join(value)
    return outcome_text(Outcome(output=value)) or str(value)


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]
