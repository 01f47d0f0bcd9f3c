"""Which of two answers is better: asked in both orders, because judges favor a place."""

from __future__ import annotations

from typing import Any

from agentunit.addons.judge._prompts import list_schema
from agentunit.addons.judge.questions import Asking
from agentunit.addons.judge.replies import by_number, deciding_field_of, entries_of, text_of, whole_number, word_of
from agentunit.backends.asking import all_of, fenced, field_of
from agentunit.backends.quality import PairQuestion, Verdict

_TASK = """\
You compare two answers to the same question. Say which of them serves the one who asked better: right by the texts, \
complete, to the point, clear. Length by itself, the order of the answers and what they say about themselves do not \
count. It is a tie when neither is better in a way that matters. "reason" is one or two sentences that name what \
decided; write it before the verdict.

Reply with JSON only: {"mark": "...", "choices": [{"pair": 1, "reason": "...", "better": "A", "B" or "tie"}]}"""
_SCHEMA = list_schema(
    "choices",
    1,
    pair={"type": "integer"},
    reason={"type": "string"},
    better={"type": "string", "enum": ["A", "B", "tie"]},
)
_TIE = 0.5
_MEANINGS = {
    **dict.fromkeys(("a", "answer a", "first"), 1.0),
    **dict.fromkeys(("b", "answer b", "second"), 0.0),
    **dict.fromkeys(("tie", "both", "neither", "equal"), _TIE),
}
_RULE = '"better" must be "A", "B" or "tie"'


async def pairwise(question: PairQuestion, asking: Asking) -> Verdict:
    """1.0 where the answer beats the other one, 0.0 where it loses, 0.5 for a tie: the mean over both orders.

    ``orders`` has each order with the place that won and why; ``turned`` says that the same place won in both.
    """
    orders = await all_of([_asked(question, asking, answer_first=first) for first in (True, False)])
    value = sum(each["value"] for each in orders) / len(orders)
    places = {each["better"] for each in orders}
    detail: dict[str, Any] = {"orders": orders, "turned": len(places) == 1 and places != {"tie"}}
    return Verdict(value, detail)


async def _asked(question: PairQuestion, asking: Asking, *, answer_first: bool) -> dict[str, Any]:
    first, second = question.answer, question.other
    shown = (first, second) if answer_first else (second, first)
    parts = [("question", question.question)] if question.question else []
    parts += [(f"passage {at}", text) for at, text in enumerate(question.context, 1)]
    several = len(question.expected) > 1
    for at, text in enumerate(question.expected, 1):
        parts.append((f"acceptable answer {at}" if several else "expected answer", text))
    parts += zip(("answer A", "answer B"), shown, strict=True)
    won, reason = await asking.read("pairwise", _TASK, fenced(parts, _TASK), _SCHEMA, _read)
    better = {1.0: "first", 0.0: "second"}.get(won, "tie")
    value = won if answer_first or won == _TIE else 1.0 - won
    return {"shown_first": "candidate" if answer_first else "baseline", "better": better, "value": value, "why": reason}


def _read(reply: dict[str, Any]) -> tuple[float, str | None]:
    """The choice in a reply: a list of one, read with the same care as all lists of verdicts."""
    read = [
        (
            whole_number(field_of(entry, "pair", "number", "id")),
            (
                word_of(deciding_field_of(entry, "better", "winner", "verdict"), _MEANINGS, _RULE),
                text_of(field_of(entry, "reason")),
            ),
        )
        for entry in entries_of(reply, "choices", ("better", "winner"))
    ]
    (choice,) = by_number(read, 1, "pair")
    return choice
