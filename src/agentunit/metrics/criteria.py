"""Criteria, levels and examples as users write them in Python or YAML, brought to one shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from agentunit.backends.quality import Criterion, RubricExample, Scale

_OF_A_CRITERION = ("text", "weight", "scale", "levels")
_OF_AN_EXAMPLE = ("answer", "question", "score", "scores", "reason")
_SCALE_RULE = (
    "scale must be two whole numbers (low, high), two or more different labels, worst first, or a mapping of such "
    "scores or labels to what they mean"
)


def scale_of(received: Any) -> tuple[Scale, tuple[tuple[int | str, str], ...]]:
    """A scale, and what its levels mean where that is said.

    >>> scale_of((1, 5)), scale_of({"no": "not at all", "yes": "fully"})[0], scale_of({1: "bad", 5: "good"})[0]
    (((1, 5), ()), ('no', 'yes'), (1, 5))
    """
    if isinstance(received, Mapping):
        return _described(received)
    if isinstance(received, (list, tuple)) and len(received) >= 2:
        labels = {each.strip().casefold() for each in received if isinstance(each, str)}
        if len(labels) == len(received) and "" not in labels:
            return tuple(received), ()
        if len(received) == 2 and all(_is_whole(each) for each in received) and received[0] < received[1]:
            return (received[0], received[1]), ()
    raise ValueError(f"{_SCALE_RULE}; received {received!r}")


def _described(received: Mapping[Any, Any]) -> tuple[Scale, tuple[tuple[int | str, str], ...]]:
    if len(received) >= 2 and all(isinstance(text, str) and text.strip() for text in received.values()):
        levels = tuple(received.items())
        if all(_is_whole(level) for level in received):
            numbers = sorted(received)
            return (numbers[0], numbers[-1]), tuple(sorted(levels))
        if all(isinstance(level, str) for level in received):
            return scale_of(list(received))[0], levels
    raise ValueError(f"{_SCALE_RULE}; received {dict(received)!r:.200}")


def criteria_of(received: Any, scale: Any) -> list[Criterion]:
    """The criteria of one text, of a mapping with ``text``, or of several of either; none when it is neither.

    >>> criteria_of(["It is short.", {"text": "It is polite.", "weight": 2}], (1, 5))[1].weight
    2.0
    """
    listed = [received] if isinstance(received, (str, Mapping)) else received
    if not isinstance(listed, (list, tuple)):
        return []
    found = []
    for each in listed:
        entry = {"text": each} if isinstance(each, str) else each
        if isinstance(each, Criterion):
            found.append(each)
            continue
        if not isinstance(entry, Mapping) or not isinstance(entry.get("text"), str) or not entry["text"].strip():
            return []
        found.append(_criterion(entry, scale))
    return found


def _criterion(entry: Mapping[str, Any], scale: Any) -> Criterion:
    for name in entry:
        if name not in _OF_A_CRITERION:
            raise ValueError(f"a criterion must hold only {', '.join(_OF_A_CRITERION)}; received {name!r:.60}")
    weight = entry.get("weight", 1.0)
    is_number = isinstance(weight, (int, float)) and not isinstance(weight, bool) and isfinite(weight)
    if not is_number or weight <= 0:
        raise ValueError(f"the weight of a criterion must be a number above 0; received {weight!r:.60}")
    own = entry.get("levels", entry.get("scale"))
    its_scale, levels = scale_of(scale if own is None else own)
    return Criterion(entry["text"], its_scale, levels, float(weight))


def examples_of(received: Any, criteria: Sequence[Criterion] | None) -> list[RubricExample]:
    """Examples as users write them: mappings with ``answer`` and ``score`` (``scores`` for several criteria).

    Without ``criteria`` (they come with each case) the scores are not checked here.

    >>> examples_of([{"answer": "Hi!", "score": 5}], criteria_of("It greets.", (1, 5)))[0].scores
    (5,)
    """
    if not isinstance(received, (list, tuple)):
        raise ValueError(f"examples must be a list of mappings with answer and score; received {received!r:.80}")
    return [each if isinstance(each, RubricExample) else _example(each, criteria) for each in received]


def _example(each: Any, criteria: Sequence[Criterion] | None) -> RubricExample:
    rule = "an example must be a mapping with answer and score (scores, one for each of several criteria)"
    if not isinstance(each, Mapping) or not isinstance(each.get("answer"), str):
        raise ValueError(f"{rule}; received {each!r:.80}")
    unknown = [name for name in each if name not in _OF_AN_EXAMPLE]
    if unknown or ("score" in each) == ("scores" in each):
        raise ValueError(f"{rule}, and may have question and reason; received the keys {', '.join(map(str, each))}")
    scores = each["scores"] if "scores" in each else [each["score"]]
    if not isinstance(scores, (list, tuple)) or not scores:
        raise ValueError(f"{rule}; received the scores {scores!r:.80}")
    if criteria is not None:
        if len(scores) != len(criteria):
            raise ValueError(f"{rule}; received {len(scores)} scores for {len(criteria)} criteria")
        for score, criterion in zip(scores, criteria, strict=True):
            _check_score(score, criterion.scale)
    texts = {name: each.get(name) for name in ("question", "reason")}
    for name, text in texts.items():
        if text is not None and not isinstance(text, str):
            raise ValueError(f"the {name} of an example must be a text; received {text!r:.80}")
    return RubricExample(each["answer"], tuple(scores), texts["question"], texts["reason"])


def _check_score(score: Any, scale: Scale) -> None:
    is_number = _is_whole(scale[0])
    fits = _is_whole(score) and scale[0] <= score <= scale[1] if is_number else score in scale
    if not fits:
        known = f"from {scale[0]} to {scale[1]}" if is_number else f"one of {', '.join(map(str, scale))}"
        raise ValueError(f"the score of an example must be {known}; received {score!r:.60}")


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
