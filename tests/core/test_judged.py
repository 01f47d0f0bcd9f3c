"""What a score's detail says about its judge, whatever stands in it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from agentunit.core.judged import Judged, judged_of
from agentunit.core.results import JudgeStanding

SPENT = {"model": "m", "calls": 2, "cached": 1, "prompt_tokens": 30, "completion_tokens": 4, "cost_usd": 0.5}
FREE = {"model": "m", "calls": 0, "cached": 2, "prompt_tokens": 0, "completion_tokens": 0, "cost_usd": 0.0}

TABLE: dict[str, tuple[dict[str, Any], Judged | None]] = {
    "no judge": ({"answer": "x"}, None),
    "a whole one": ({"judge": SPENT}, Judged(("m",), 2, 1, 30, 4, 0.5)),
    "repeats, one failed": (
        {"judge": SPENT, "judge_values": [0.5, None, 1]},
        Judged(("m",), 2, 1, 30, 4, 0.5, (0.5, 1)),
    ),
    "unknown price": ({"judge": {**SPENT, "cost_usd": None}}, Judged(("m",), 2, 1, 30, 4, None)),
    "nonsense": (
        {"judge": {"calls": "many", "model": 5, "cost_usd": float("nan")}, "judge_values": "1"},
        Judged((), 0, 0, None, None, None),
    ),
    "a user's own key of that name": ({"judge": "Judge Judy"}, None),
    "a mapping that is no count": ({"judge": {"name": "Judy"}}, None),
}


@pytest.mark.parametrize(("detail", "expected"), TABLE.values(), ids=TABLE.keys())
def test_one_score(detail: dict[str, Any], expected: Judged | None) -> None:
    assert judged_of(detail) == expected
    assert judged_of(detail, nested=True) == expected


def test_a_composite_adds_its_parts_up() -> None:
    detail = {"faithfulness": {"judge": SPENT}, "tone": {"judge": {**SPENT, "model": "n"}}, "cost": {"cost": 1}}
    assert judged_of(detail) is None
    assert judged_of(detail, nested=True) == Judged(("m", "n"), 4, 2, 60, 8, 1.0)


def test_a_part_without_calls_hides_nothing_and_one_without_a_price_does() -> None:
    free = {"a": {"judge": SPENT}, "b": {"judge": FREE}}
    assert judged_of(free, nested=True) == Judged(("m",), 2, 3, 30, 4, 0.5)
    unpriced = {"a": {"judge": SPENT}, "b": {"judge": {**SPENT, "cost_usd": None}}}
    assert judged_of(unpriced, nested=True) == Judged(("m",), 4, 2, 60, 8, None)


def test_a_judge_of_a_run_that_was_stored_before_labels_counted_has_none() -> None:
    stored = b'{"judge":"m","n_scored":3,"n_without_value":0,"mean":0.5}'
    standing = msgspec.json.decode(stored, type=JudgeStanding)
    assert (standing.n_labels, standing.bias, standing.agreement, standing.reason) == (0, None, None, None)


def test_quotes_and_the_judges_of_a_panel_are_counted() -> None:
    claims = [
        {"verdict": "supported", "quote_found": True},
        {"verdict": "supported", "quote_found": False},
        # Support without any quote was taken back; a claim that is refuted needs none.
        {"verdict": "unknown"},
        {"verdict": "refuted"},
        {"verdict": "refuted"},
    ]
    judges = [{"judge": "a", "value": 1.0, "reason": "fits"}, {"judge": "b", "reason": ""}, "nonsense"]
    found = judged_of({"judge": SPENT, "claims": claims, "judges": judges})
    assert found is not None
    assert (found.n_quotes, found.n_quotes_found) == (3, 1)
    assert found.by_judge == (("a", 1.0, "fits"), ("b", None, None))
