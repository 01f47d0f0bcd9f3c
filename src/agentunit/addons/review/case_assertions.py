"""Assertions that a case brings along: whatever mixture of plain checks a test had, as pass or fail."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from agentunit.backends.json_schema import SchemaError, violations
from agentunit.core.results import MetricResult
from agentunit.formulas.patterns import PatternError, linear_pattern
from agentunit.formulas.similarity import edit_distance
from agentunit.formulas.trajectory import json_equal
from agentunit.metrics.base import ItemMetric, MetricInfo
from agentunit.metrics.inputs import InputProblem, Item, no_answer, number_at
from agentunit.metrics.sentences import counted, listed, on_one_line, quoted, sentence
from agentunit.metrics.usage import recorded_cost

_NOT = "not-"
_PLACE = "case.metadata['assertions']"
_LONGEST_COMPARED = 100_000
_MOST_ATTEMPTS = 1000
_MOST_SEARCHED = 4_000_000


@dataclass(frozen=True)
class AssertionsMetric(ItemMetric):
    """Whether every assertion in ``case.metadata["assertions"]`` holds: a list of ``{"type": …, "value": …}``.

    Types: ``equals``, ``contains``, ``contains-all``, ``contains-any`` (each also with ``i`` in front, to ignore case),
    ``starts-with``, ``regex``, ``is-json`` and ``contains-json`` (``value``: a JSON Schema, if any), ``word-count`` (a
    number, or ``min`` and ``max``), ``levenshtein`` (at most ``threshold`` edits), ``tool-used`` (names of tools),
    ``cost`` and ``latency`` (at most ``threshold`` dollars, seconds). ``not-`` in front of a type turns it round.

    >>> case = {"id": "q1", "metadata": {"assertions": [{"type": "contains", "value": "Paris"},
    ...                                                 {"type": "not-contains", "value": "sorry"}]}}
    >>> AssertionsMetric().evaluate(case, None, "Sorry, I do not know.").detail["failed"]
    ["contains 'Paris'"]
    """

    info = MetricInfo(
        name="assertions",
        family="quality",
        summary="Whether all assertions of the case hold.",
        direction="higher",
        range=(0.0, 1.0),
        inputs=("case.metadata.assertions", "outcome.output"),
        metadata_inputs={"assertions": "answer_key"},
        detail_keys=("n_assertions", "failed"),
        backend="check",
        trust={"check": "exact"},
        check=True,
    )
    name = info.name

    def score_item(self, item: Item) -> MetricResult:
        """Check one after the other; all that fail are named."""
        given = item.case_metadata.get("assertions")
        if given is None or given == []:
            return self.unscored(f"no assertions: {_PLACE} is missing")
        if not isinstance(given, list):
            raise InputProblem(f"{_PLACE} must be a list of assertions; received {given!r:.80}")
        if item.answer is None:
            return self.unscored(no_answer(item), n_assertions=len(given))
        failed: list[str] = []
        unknown: list[str] = []
        why = f"all {len(given)} assertions hold" if len(given) > 1 else "the assertion holds"
        for assertion in given:
            holds = assertion_holds(assertion, item)
            if holds is None:
                unknown.append(_spoken(assertion))
            elif not holds:
                why = why if failed else _why_failed(assertion, item)
                failed.append(_spoken(assertion))
        if unknown and not failed:
            return self.unscored(f"not recorded: {', '.join(unknown)}", n_assertions=len(given), failed=failed)
        detail = {"n_assertions": len(given), "failed": failed, "backend": "check", "why": why}
        return MetricResult(self.name, float(not failed), detail)


def assertion_holds(assertion: Any, item: Item) -> bool | None:
    """Whether one assertion holds; ``None`` when the record does not say."""
    if not isinstance(assertion, Mapping) or not isinstance(assertion.get("type"), str):
        raise InputProblem(f"{_PLACE} must hold objects with a type; received {assertion!r:.80}")
    kind = assertion["type"].removeprefix(_NOT)
    if kind not in _KINDS:
        raise InputProblem(f"{_PLACE}: type must be among {', '.join(_KINDS)}; received {assertion['type']!r:.80}")
    holds = _KINDS[kind](item, assertion)
    return holds if holds is None or not assertion["type"].startswith(_NOT) else not holds


def _spoken(assertion: Mapping[str, Any]) -> str:
    value = assertion.get("value", assertion.get("threshold"))
    return assertion["type"] if value is None else f"{assertion['type']} {value!r:.80}"


def _why_failed(assertion: Mapping[str, Any], item: Item) -> str:
    """What an assertion asked for, and what it looked at."""
    return sentence(f"failed: {on_one_line(_spoken(assertion), 60)}; {_received(assertion, item)}")


def _received(assertion: Mapping[str, Any], item: Item) -> str:
    kind = assertion["type"].removeprefix(_NOT)
    if kind == "tool-used":
        names = [str(call.get("name")) for call in item.tool_calls]
        return f"received calls of {listed(names)}" if names else "received no tool calls"
    if kind == "cost":
        return f"received {recorded_cost(item) or 0.0:.6g}"
    if kind == "latency":
        return f"received {_elapsed_s(item) or 0.0:.3g}"
    if kind == "word-count":
        return f"received {counted(len((item.answer or '').split()), 'word')}"
    return f"received {quoted(item.answer or '')}"


def _equals(item: Item, assertion: Mapping[str, Any]) -> bool:
    value = assertion.get("value")
    if isinstance(value, str):
        return item.answer == value
    found, data = _data(item)
    return found and json_equal(data, value)


def _contains(quantifier: Callable[..., bool], ignore_case: bool = False) -> Callable[[Item, Mapping[str, Any]], bool]:
    def check(item: Item, assertion: Mapping[str, Any]) -> bool:
        value = assertion.get("value")
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or not texts or not all(isinstance(each, str) and each for each in texts):
            raise _unusable(assertion, "value must be one or more texts")
        answer = item.answer or ""
        if ignore_case:
            answer, texts = answer.casefold(), [each.casefold() for each in texts]
        return quantifier(each in answer for each in texts)

    return check


def _starts_with(item: Item, assertion: Mapping[str, Any]) -> bool:
    return (item.answer or "").startswith(_text(assertion))


def _regex(item: Item, assertion: Mapping[str, Any]) -> bool:
    try:
        pattern = linear_pattern(_text(assertion))
    except PatternError as error:
        raise _unusable(assertion, f"value must be a regular expression without look-around ({error})") from None
    return pattern.search(item.answer or "") is not None


def _is_json(item: Item, assertion: Mapping[str, Any]) -> bool:
    found, data = _data(item)
    return found and _fits(data, assertion)


def _contains_json(item: Item, assertion: Mapping[str, Any]) -> bool:
    found, data = _data(item)
    candidates = [data] if found else _json_within(item.answer or "")
    return any(_fits(each, assertion) for each in candidates)


def _word_count(item: Item, assertion: Mapping[str, Any]) -> bool:
    value = assertion.get("value")
    bounds = value if isinstance(value, Mapping) else {"min": value, "max": value}
    lowest, highest = (number_at(f"{_PLACE}: {name}", bounds.get(name)) for name in ("min", "max"))
    if lowest is None and highest is None:
        raise _unusable(assertion, "value must be a number, or min and max")
    n_words = len((item.answer or "").split())
    return (lowest is None or n_words >= lowest) and (highest is None or n_words <= highest)


def _levenshtein(item: Item, assertion: Mapping[str, Any]) -> bool:
    answer, wanted, most = item.answer or "", _text(assertion), _threshold(assertion)
    if abs(len(answer) - len(wanted)) > most:
        return False
    if most < 1:
        return answer == wanted
    if max(len(answer), len(wanted)) > _LONGEST_COMPARED:
        raise InputProblem(f"{_PLACE}: levenshtein compares at most {_LONGEST_COMPARED:,} letters")
    return edit_distance(answer, wanted) <= most


def _tool_used(item: Item, assertion: Mapping[str, Any]) -> bool:
    value = assertion.get("value")
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise _unusable(assertion, "value must be one or more names of tools")
    # Names come from traces, which may hold anything in their place.
    used = {name for call in item.tool_calls if isinstance(name := call.get("name"), str)}
    return all(name in used for name in names)


def _cost(item: Item, assertion: Mapping[str, Any]) -> bool | None:
    cost = recorded_cost(item)
    return None if cost is None else cost <= _threshold(assertion)


def _latency(item: Item, assertion: Mapping[str, Any]) -> bool | None:
    elapsed = _elapsed_s(item)
    return None if elapsed is None else elapsed <= _threshold(assertion)


def _elapsed_s(item: Item) -> float | None:
    elapsed = number_at("trace.metadata['duration_s']", item.trace_metadata.get("duration_s"))
    return number_at("outcome.elapsed_s", item.outcome.elapsed_s) if elapsed is None else elapsed


_KINDS: dict[str, Callable[[Item, Mapping[str, Any]], bool | None]] = {
    "equals": _equals,
    "contains": _contains(all),
    "contains-all": _contains(all),
    "contains-any": _contains(any),
    "icontains": _contains(all, ignore_case=True),
    "icontains-all": _contains(all, ignore_case=True),
    "icontains-any": _contains(any, ignore_case=True),
    "starts-with": _starts_with,
    "regex": _regex,
    "is-json": _is_json,
    "contains-json": _contains_json,
    "word-count": _word_count,
    "levenshtein": _levenshtein,
    "tool-used": _tool_used,
    "cost": _cost,
    "latency": _latency,
}


def _data(item: Item) -> tuple[bool, Any]:
    """Whether the output is data, and which."""
    output = item.outcome.output
    if not isinstance(output, str):
        return True, output
    try:
        return True, msgspec.json.decode(output)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False, None


_OPENING = re.compile(r"[{\[]")


def _json_within(text: str) -> list[Any]:
    """The objects and lists in a text that are JSON; a text full of brackets is not searched for long."""
    decoder, found, place = json.JSONDecoder(), [], 0
    n_left = _MOST_SEARCHED
    for _ in range(_MOST_ATTEMPTS):
        opening = _OPENING.search(text, place)
        if opening is None or n_left < 0:
            break
        start = opening.start()
        try:
            data, place = decoder.raw_decode(text, start)
            found.append(data)
        except (ValueError, RecursionError) as error:
            # What was read in vain may be all of the rest, from every bracket again.
            n_left -= (error.pos if isinstance(error, json.JSONDecodeError) else len(text)) - start
            place = start + 1
    return found


def _fits(data: Any, assertion: Mapping[str, Any]) -> bool:
    schema = assertion.get("value")
    if schema is None:
        return True
    try:
        return not violations(data, schema)
    except SchemaError as error:
        raise _unusable(assertion, f"value must be a usable JSON Schema: {error}") from None


def _text(assertion: Mapping[str, Any]) -> str:
    value = assertion.get("value")
    if not isinstance(value, str):
        raise _unusable(assertion, "value must be a text")
    return value


def _threshold(assertion: Mapping[str, Any]) -> float:
    threshold = number_at(f"{_PLACE}: threshold", assertion.get("threshold"))
    if threshold is None:
        raise _unusable(assertion, "threshold must be a number")
    return threshold


def _unusable(assertion: Mapping[str, Any], rule: str) -> InputProblem:
    return InputProblem(f"{_PLACE}, {assertion['type']}: {rule}; received {assertion.get('value')!r:.80}")
