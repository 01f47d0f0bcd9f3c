"""A conversation turn by turn: each answer as an item of its own, and the case's value made of its turns' values.

A case's value is the mean over the turns that can be scored. Only cases that are conversations by themselves (``turns``
or ``user``) are taken apart: the value of any other record is that of its last answer, as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import fmean
from typing import Any

import msgspec

from agentunit.core.case import DatasetCase
from agentunit.core.conversation import Exchange, exchanges_of, script_of, user_kind
from agentunit.core.records import Outcome
from agentunit.core.results import EVIDENCE_NOTE, INFORMATIONAL_NOTE, MetricResult
from agentunit.core.trace import TraceLog, tool_status
from agentunit.metrics.evidence import readable_text
from agentunit.metrics.inputs import Item, payload_of
from agentunit.metrics.sentences import sentence

Worst = Callable[..., Any]
"""``min``, or ``max`` for a metric of which less is better."""
_AMOUNTS = ("prompt_tokens", "completion_tokens", "cost_usd")


def is_single(item: Item) -> bool:
    """Whether a case is no conversation, as one look tells: it has neither turns nor a user."""
    case = item.case
    return not isinstance(case, DatasetCase) or (case.turns is None and case.user is None)


def turn_items(item: Item, *, so_far: bool = True) -> list[Item]:
    """One item a turn, in order; nothing for a case that is no conversation.

    The question is the user's message, the answer what the agent said to it, the expected output that of the turn (of
    the last turn: the case's, if it has none of its own). The events are all up to the end of the turn, because the
    agent may use what it saw earlier; without ``so_far`` those of the turn alone.
    """
    kind = None if is_single(item) else user_kind(item.case)
    if kind is None:
        return []
    cached: dict[bool, list[Item]] = item.turns if item.turns is not None else {}
    if so_far not in cached:
        turns = exchanges_of(item.events)
        expected = _expected(item.case, kind, len(turns))
        cached[so_far] = [_turn_item(item, turn, expected.get(turn.number), so_far) for turn in turns]
        item.turns = cached
    return cached[so_far]


def _expected(case: DatasetCase, kind: str, n_turns: int) -> dict[int, Any]:
    """The expected output of each turn that has one. That of the case is about the end of the conversation."""
    if kind != "script":
        return {n_turns: case.expected_output}
    script = script_of(case)
    found = {number: turn.expected_output for number, turn in enumerate(script, 1)}
    if found[len(script)] is None:
        found[len(script)] = case.expected_output
    return found


def _turn_item(item: Item, turn: Exchange, expected: Any, so_far: bool) -> Item:
    case = msgspec.structs.replace(item.case, query=turn.query, expected_output=expected, turns=None, user=None)
    events = list(item.events[: turn.end] if so_far else turn.events)
    return Item(case, TraceLog(events), Outcome(output=turn.answer))


def messages_of(item: Item) -> list[dict[str, Any]] | None:
    """What the user and the agent said, as mappings with ``role`` and ``content``; ``None`` when nothing was said.

    >>> messages_of(Item({"query": "2 + 2?"}, None, "4"))
    [{'role': 'user', 'content': '2 + 2?'}, {'role': 'assistant', 'content': '4'}]
    """
    turns: list[tuple[Any, str | None]] = [(turn.query, turn.answer) for turn in exchanges_of(item.events)]
    said = turns or [(item.case.query, item.answer)]
    return [
        {"role": role, "content": text}
        for pair in said
        for role, text in zip(("user", "assistant"), pair, strict=True)
        if text is not None
    ] or None


def transcript(item: Item) -> str | None:
    """What was said before the last answer of a conversation, for a judge; ``None`` for a case that is none."""
    turns = turn_items(item)
    if len(turns) < 2:
        return None
    said = [f"user: {turn.case.query}\nassistant: {turn.answer or '(no answer)'}" for turn in turns[:-1]]
    return "\n".join([*said, f"user: {turns[-1].case.query}"])


class Expanded:
    """Items of which conversations are replaced by their turns, and the way back.

    >>> case = {"turns": ["2 + 2?", {"query": "And 3 more?", "expected_output": "7"}]}
    >>> said = [("user", "2 + 2?"), ("assistant", "4"), ("user", "And 3 more?"), ("assistant", "7")]
    >>> events = [{"type": "message", "payload": {"role": role, "content": text}} for role, text in said]
    >>> expanded = Expanded([Item(case, {"events": events}, "7")])
    >>> [each.case.expected_output for each in expanded.items]
    [None, '7']
    >>> expanded.together([MetricResult("m", None, {"reason": "none"}), MetricResult("m", 0.5, {})])[0].value
    0.5
    """

    def __init__(self, items: Sequence[Item], *, so_far: bool = True, worst: Worst = min) -> None:
        self._worst = worst
        self._turns = [turn_items(item, so_far=so_far) for item in items]
        self.items = [part for item, turns in zip(items, self._turns, strict=True) for part in (turns or [item])]

    def together(self, results: Sequence[MetricResult]) -> list[MetricResult]:
        """One result an item, of one result for each of ``items``."""
        left = iter(results)
        together = []
        for turns in self._turns:
            own = [next(left) for _ in turns or (None,)]
            together.append(_joined(turns, own, self._worst) if turns else own[0])
        return together


def by_turn(item: Item, score: Callable[[Item], MetricResult]) -> MetricResult | None:
    """The result of a conversation whose turns are scored one by one; ``None`` for a case that is none."""
    turns = turn_items(item)
    return _joined(turns, [score(turn) for turn in turns]) if turns else None


def _joined(items: Sequence[Item], results: Sequence[MetricResult], worst: Worst = min) -> MetricResult:
    """The turns' results as the case's: the mean of the values there are, and each turn in the detail.

    A turn without an answer leaves the case without a value, as a case without one is left; so does a turn whose
    scoring failed.
    """
    turns = [_shown(number, *each) for number, each in enumerate(zip(items, results, strict=True), 1)]
    scored = [each for each in results if each.value is not None]
    failed = next((at for at, each in enumerate(results) if each.value is None and "error" in each.detail), None)
    silent = next((at for at, item in enumerate(items) if item.answer is None), None)
    without = failed if failed is not None else silent
    shown = results[without] if without is not None else (scored or results)[-1]
    detail = {key: value for key, value in shown.detail.items() if key not in ("judge_values", "judge_sd")}
    spent = [each.detail["judge"] for each in results if isinstance(each.detail.get("judge"), dict)]
    if spent:
        detail["judge"] = _spent(spent)
    detail |= _panel(results)
    for note in (EVIDENCE_NOTE, INFORMATIONAL_NOTE):
        if noted := next((each for each in scored if note in each.detail), None):
            detail[note] = noted.detail[note]
    if shown.value is not None:
        # It speaks of one turn only.
        detail.pop("why", None)
    detail["turns"] = turns
    if without is not None:
        detail["reason"] = f"turn {without + 1}: {shown.detail.get('reason') if failed is not None else 'no answer'}"
        return MetricResult(shown.name, None, detail)
    if not scored:
        return MetricResult(shown.name, None, detail)
    detail["scored_turns"] = len(scored)
    if (why := _why(results, worst)) is not None:
        detail["why"] = why
    return MetricResult(shown.name, fmean(float(each.value) for each in scored if each.value is not None), detail)


def _why(results: Sequence[MetricResult], worst: Worst) -> str | None:
    """What the turn with the worst value says of it, or all turns alike."""
    values = {number: result.value for number, result in enumerate(results, 1) if result.value is not None}
    number = worst(values, key=values.__getitem__)
    why = results[number - 1].detail.get("why")
    if not isinstance(why, str):
        return None
    are_alike = len(values) > 1 and all(results[place - 1].detail.get("why") == why for place in values)
    return sentence(f"all {len(values)} scored turns: {why}" if are_alike else f"turn {number}: {why}")


def _shown(number: int, item: Item, result: MetricResult) -> dict[str, Any]:
    kept = {key: value for key, value in result.detail.items() if key not in ("backend", "judge", "references")}
    return {"turn": number, "value": result.value, "query": item.case.query, **kept, "answer": item.answer}


def _panel(results: Sequence[MetricResult]) -> dict[str, Any]:
    """What each judge of a panel said over the turns, by the mean; nothing where one judge was asked."""
    said: dict[str, list[float]] = {}
    weights: dict[str, Any] = {}
    for result in results:
        for row in result.detail.get("judges") or ():
            weights[row["judge"]] = row.get("weight")
            said.setdefault(row["judge"], []).extend([] if row["value"] is None else [row["value"]])
    if not said:
        return {}
    rows = [
        {"judge": name, "value": fmean(values) if values else None, "weight": weights[name]}
        for name, values in said.items()
    ]
    return {"judges": rows, "judges_disagree": any(result.detail.get("judges_disagree") for result in results)}


def _spent(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    models = [part["model"] for part in parts if part.get("model")]
    total: dict[str, Any] = {"model": models[-1] if models else None}
    if any("models" in part for part in parts):
        total["models"] = list(dict.fromkeys(model for part in parts for model in part.get("models") or ()))
    total |= {name: sum(part.get(name) or 0 for part in parts) for name in ("calls", "cached")}
    for name in _AMOUNTS:
        amounts = [part.get(name) for part in parts]
        total[name] = None if None in amounts else sum(amount or 0 for amount in amounts)
    if unstated := sum(part.get("unstated") or 0 for part in parts):
        total["unstated"] = unstated
    transcripts = [each for part in parts for each in part.get("transcripts") or ()]
    return {**total, "transcripts": transcripts} if transcripts else total


# What the agent did on its way to an answer, step by step, as texts for a judge.

_AGENTS = ("assistant", "agent", "ai", "model")


def step_texts(item: Item) -> list[str]:
    """Messages of the agent, tool calls with what came back, and retrievals, in their order.

    >>> call = {"type": "tool_call", "payload": {"name": "find", "arguments": {"id": 7}, "result": "sent"}}
    >>> step_texts(Item({"id": "q1"}, {"events": [call]}, "It is sent."))
    ['calls the tool find with id: 7\\nresult: sent']
    """
    return list(_steps(item))


def _steps(item: Item) -> Iterator[str]:
    for event in item.events:
        if event.type == "tool_call":
            yield _call(payload_of(event))
        elif event.type == "retrieval":
            payload = payload_of(event)
            documents = payload.get("documents")
            n_documents = len(documents) if isinstance(documents, (list, tuple)) else int(bool(documents))
            yield f"retrieves for {readable_text(payload.get('query'))!r}: {n_documents} documents"
        elif event.type == "message":
            payload = payload_of(event)
            text = readable_text(payload.get("content"))
            if payload.get("role") in _AGENTS and text:
                by = payload.get("agent")
                yield f"{by if isinstance(by, str) and by else 'the agent'} says: {text}"


def _call(payload: dict[str, Any]) -> str:
    lines = [f"calls the tool {payload.get('name') or 'without a name'}"]
    if payload.get("arguments"):
        lines[0] += f" with {readable_text(payload['arguments'])}"
    if payload.get("result") is not None:
        lines.append(f"result: {readable_text(payload['result'])}")
    if payload.get("error"):
        lines.append(f"error: {readable_text(payload['error'])}")
    elif tool_status(payload) == "error":
        lines.append("the call failed")
    return "\n".join(lines)


def tool_texts(item: Item) -> list[str]:
    """The tools that the agent was offered, as they are declared in the trace, else in the case."""
    declared = item.trace_metadata.get("tools") or item.case.tools or ()
    if isinstance(declared, dict):
        declared = [{"name": name, "declaration": each} for name, each in declared.items()]
    return [text for each in declared if (text := readable_text(each))] if isinstance(declared, (list, tuple)) else []
