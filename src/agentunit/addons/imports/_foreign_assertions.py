"""Assertions of promptfoo as metrics and gates: which type becomes what, as tables."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

from agentunit.backends.json_schema import SchemaError, check_schema
from agentunit.datasets.structured import YamlProblem, plain_yaml
from agentunit.formulas.patterns import PatternError, linear_pattern

_NOT = "not-"
_CHANGES_MEANING = ("transform", "contextTransform", "rubricPrompt")


class NotMapped(Exception):
    """An assertion that nothing here stands for; the message is its name, with the reason where that is not all."""


def _text(value: Any) -> str:
    if isinstance(value, bool) or value is None or isinstance(value, (dict, list)) or str(value) == "":
        raise ValueError("its value is not text")
    return str(value)


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        pieces = re.findall(r'\s*(?:"((?:[^"\\]|\\.|"")*)"|([^,]*))(?:,|$)', value)
        value = [re.sub(r'\\(["\\])|""', r"\1", quoted) or plain.strip() for quoted, plain in pieces]
        value = [each for each in value if each]
    if not isinstance(value, list) or not value:
        raise ValueError("its value is not a list of texts")
    return [_text(each) for each in value]


def _pattern(value: Any) -> str:
    pattern = _text(value)
    try:
        linear_pattern(pattern)
    except PatternError:
        raise ValueError("its pattern needs look-around or back references") from None
    return pattern


def _schema(value: Any) -> Any:
    if value is None or value == "":
        return None
    if isinstance(value, str):
        try:
            value = plain_yaml(value.encode())
        except YamlProblem:
            raise ValueError("its value is not a schema") from None
    try:
        check_schema(value)
    except SchemaError:
        raise ValueError("its value is not a usable schema") from None
    return value


def _as_is(value: Any) -> Any:
    if value is None:
        raise ValueError("it has no value")
    return value if isinstance(value, (str, dict, list)) else _text(value)


def _count(value: Any) -> Any:
    if isinstance(value, str) and value.strip().isdigit():
        value = int(value)
    bounds = value if isinstance(value, dict) else {"min": value}
    numbers = [bounds[name] for name in ("min", "max") if bounds.get(name) is not None]
    if not numbers or not all(type(each) in (int, float) and each >= 0 for each in numbers):
        raise ValueError("its value is not a number")
    return value


def _tools(value: Any) -> Any:
    if isinstance(value, dict) and value.keys() == {"name"}:
        value = value["name"]
    return [value] if isinstance(value, str) and value else _texts(value)


# How the value of a type is read that ``assertions`` checks by itself. The names are promptfoo's and ours alike.
_PLAIN: dict[str, Callable[[Any], Any]] = {
    "equals": _as_is,
    "contains": _text,
    "icontains": _text,
    "contains-all": _texts,
    "contains-any": _texts,
    "icontains-all": _texts,
    "icontains-any": _texts,
    "starts-with": _text,
    "regex": _pattern,
    "is-json": _schema,
    "contains-json": _schema,
    "word-count": _count,
    "levenshtein": _text,
    "trajectory:tool-used": _tools,
    "cost": lambda value: None,
    "latency": lambda value: None,
}
_LARGEST_DISTANCE = 5

# What a judge is asked; with a threshold it grades, without one it says pass or fail.
_JUDGED: dict[str, tuple[str, float | None]] = {
    "llm-rubric": ("{}", None),
    "agent-rubric": ("{}", None),
    "g-eval": ("{}", 0.7),
    "model-graded-closedqa": ("The answer meets this criterion: {}", None),
    "factuality": ("Nothing in the answer contradicts this reference: {}", None),
    "model-graded-factuality": ("Nothing in the answer contradicts this reference: {}", None),
}

# Scored on every case that has what it takes; their scale is promptfoo's, so that a threshold can be kept.
_WHOLE = {"context-faithfulness": "faithfulness", "context-relevance": "retrieval_quality"}

# The same limit on every case is a gate of the run: its metric, and promptfoo's unit in the metric's.
_LIMITS = {"cost": ("cost", 1), "latency": ("response_time", 0.001)}


class Assertions:
    """Turns the assertions of one test after another into fields of its case, and keeps the books."""

    def __init__(self) -> None:
        self.became: Counter[tuple[str, str]] = Counter()
        self.unmapped: Counter[str] = Counter()
        self._n_cases = 0
        self._n_with: Counter[str] = Counter()
        self._limits: defaultdict[str, list[tuple[list[Any], dict[str, Any]]]] = defaultdict(list)
        self._thresholds: defaultdict[str, dict[int, float]] = defaultdict(dict)
        self._checked: list[list[Any]] = []
        self._rubrics: dict[str, float | None] = {}

    def add(self, assertions: list[Any], case: dict[str, Any], *, transformed: bool) -> None:
        """Give a case what its assertions become; those that become nothing are counted by name."""
        self._n_cases += 1
        plain: list[Any] = []
        metadata = case["metadata"]
        for assertion in _flat(assertions, self.unmapped):
            try:
                self._add(assertion, case, plain, transformed)
            except NotMapped as error:
                self.unmapped[str(error)] += 1
        if plain:
            metadata["assertions"] = plain
            self._checked.append(plain)
        for name in self._rubrics.keys() & metadata.keys():
            self._n_with[name] += 1

    def _add(self, assertion: Mapping[str, Any], case: dict[str, Any], plain: list[Any], transformed: bool) -> None:
        name = str(assertion.get("type"))
        negated, kind = name.startswith(_NOT), name.removeprefix(_NOT)
        known = kind in _PLAIN or (not negated and (kind in _JUDGED or kind in _WHOLE or kind == "similar"))
        if not known:
            raise NotMapped(name)
        if transformed:
            raise NotMapped(f"{name} (the test transforms the output)")
        for setting in _CHANGES_MEANING:
            if assertion.get(setting) is not None and (setting != "rubricPrompt" or kind in _JUDGED):
                raise NotMapped(f"{name} (with {setting})")
        if assertion.get("weight") == 0:
            raise NotMapped(f"{name} (weight 0: it decides nothing)")
        value, threshold = assertion.get("value"), _number(assertion.get("threshold"))
        if isinstance(value, str) and value.startswith("file://"):
            raise NotMapped(f"{name} (its value is code or cannot be read)")
        if isinstance(value, str) and ("{{" in value or "{%" in value):
            raise NotMapped(f"{name} (its value is a template that plain substitution does not fill)")
        try:
            if kind in _PLAIN:
                self._add_plain(name, kind, value, threshold, plain)
            elif kind in _JUDGED:
                self._add_judged(name, value, threshold, case["metadata"])
            elif kind in _WHOLE:
                if self._n_cases in self._thresholds[kind]:
                    raise ValueError("the case has one already")
                self._thresholds[kind][self._n_cases] = threshold or 0.0
            else:
                self._add_similar(value, case)
        except ValueError as error:
            raise NotMapped(f"{name} ({error})") from None

    def _add_plain(self, name: str, kind: str, value: Any, threshold: float | None, plain: list[Any]) -> None:
        made: dict[str, Any] = {"type": name.replace("trajectory:", "")}
        if (read := _PLAIN[kind](value)) is not None:
            made["value"] = read
        if kind in _LIMITS:
            if threshold is None:
                raise ValueError("it has no threshold")
            made["threshold"] = threshold * _LIMITS[kind][1]
        elif kind == "levenshtein":
            made["threshold"] = _LARGEST_DISTANCE if threshold is None else threshold
        plain.append(made)
        if name in _LIMITS:
            self._limits[name].append((plain, made))
        else:
            self.became[name, "assertions"] += 1

    def _add_judged(self, name: str, value: Any, threshold: float | None, metadata: dict[str, Any]) -> None:
        wording, usual = _JUDGED[name]
        threshold = usual if threshold is None else threshold
        metric = "rubric" if threshold is None else f"rubric_{threshold:g}"
        criteria = [wording.format(_text(each)) for each in (value if isinstance(value, list) else [value])]
        self._rubrics[metric] = threshold
        metadata.setdefault(metric, []).extend(criteria)
        self.became[name, metric] += 1

    def _add_similar(self, value: Any, case: dict[str, Any]) -> None:
        if "expected_output" in case:
            raise ValueError("the case has an expected output already")
        case["expected_output"] = _texts(value) if isinstance(value, list) else _text(value)
        self.became["similar", "answer_correctness, no gate: its threshold is of another scale"] += 1

    def finish(self) -> tuple[list[Any], list[str], bool]:
        """The metrics and gates of the suite, and whether some of them ask a judge."""
        metrics: list[Any] = []
        gates: list[str] = []
        self._settle_limits(metrics, gates)
        self._n_with["assertions"] = sum(map(bool, self._checked))
        if self._n_with["assertions"]:
            metrics.insert(0, "assertions")
            gates.insert(0, self._gate("assertions", "== 1"))
        for name, threshold in self._rubrics.items():
            scale = ["fail", "pass"] if threshold is None else [0, 10]
            metrics.append({"rubric": {**({} if name == "rubric" else {"name": name}), "scale": scale}})
            gates.append(self._gate(name, "== 1" if threshold is None else f">= {threshold:g}"))
        for kind, metric in _WHOLE.items():
            thresholds = list(self._thresholds[kind].values())
            if not thresholds:
                continue
            metrics.append({metric: {"backend": "judge"}})
            decides = len(thresholds) == self._n_cases and len(set(thresholds)) == 1 and thresholds[0] > 0
            if decides:
                gates.append(f"{metric} all >= {thresholds[0]:g}")
            why = "" if decides else ", no gate: " + _why_no_gate(thresholds, self._n_cases)
            self.became[kind, metric + why] += len(thresholds)
        if any(name == "similar" for name, _ in self.became):
            metrics.append("answer_correctness")
        return metrics, gates, bool(self._rubrics or any(self._thresholds.values()))

    def _settle_limits(self, metrics: list[Any], gates: list[str]) -> None:
        for kind, found in self._limits.items():
            limits = {made["threshold"] for _, made in found}
            metric, _ = _LIMITS[kind]
            if len(limits) == 1 and len({id(plain) for plain, _ in found}) == self._n_cases:
                for plain, made in found:
                    # By identity: an equal assertion may stand there twice.
                    plain[:] = [each for each in plain if each is not made]
                metrics.append(metric)
                gates.append(f"{metric} max <= {limits.pop():g}")
                self.became[kind, metric] += len(found)
            else:
                self.became[kind, "assertions"] += len(found)

    def _gate(self, metric: str, condition: str) -> str:
        share = self._n_with[metric] / self._n_cases
        coverage = "" if share == 1 else f" coverage {int(share * 100) / 100:g}"
        return f"{metric} all {condition}{coverage}"


def _why_no_gate(thresholds: list[float], n_cases: int) -> str:
    if len(thresholds) != n_cases:
        return f"it is on {len(thresholds)} of {n_cases} cases"
    return "it has no threshold" if set(thresholds) == {0.0} else "its thresholds differ"


def _flat(assertions: list[Any], unmapped: Counter[str]) -> list[Mapping[str, Any]]:
    """Assertions without the sets around them; a set that need not hold as a whole is counted."""
    found: list[Mapping[str, Any]] = []
    for each in assertions:
        if not isinstance(each, Mapping):
            unmapped["assertion without a type"] += 1
        elif each.get("type") == "assert-set":
            if each.get("threshold") is not None:
                unmapped["assert-set (with a threshold)"] += 1
            elif isinstance(inner := each.get("assert") or [], list):
                found += _flat(inner, unmapped)
            else:
                unmapped["assert-set (its assertions are not a list)"] += 1
        else:
            found.append(each)
    return found


def _number(value: Any) -> float | None:
    try:
        number = None if value is None or isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if number is not None and isfinite(number) else None


_IN_A_CELL = re.compile(r"(?:(not-)?([a-z][a-z:-]*))(?:\(([0-9.]+)\))?(?::\s*(.*))?", re.DOTALL)
_OF_CODE = {"fn:": "javascript", "eval:": "javascript", "javascript:": "javascript", "python:": "python"}
_CELL_TYPES = frozenset(
    [*_PLAIN, *_JUDGED, *_WHOLE, "similar", "answer-relevance", "context-recall", "is-xml", "is-sql"]
)


def assertion_of_cell(cell: str) -> dict[str, Any]:
    """An assertion as a column ``__expected`` writes it.

    >>> assertion_of_cell("not-icontains: sorry"), assertion_of_cell("Paris")
    ({'type': 'not-icontains', 'value': 'sorry'}, {'type': 'equals', 'value': 'Paris'})
    """
    for prefix, kind in _OF_CODE.items():
        if cell.startswith(prefix):
            return {"type": kind, "value": cell}
    if cell.startswith("file://"):
        return {"type": "python" if ".py" in cell else "javascript", "value": cell}
    if cell.startswith("grade:"):
        return {"type": "llm-rubric", "value": cell.removeprefix("grade:").strip()}
    match = _IN_A_CELL.fullmatch(cell)
    if match is None or match[2] not in _CELL_TYPES:
        return {"type": "equals", "value": cell}
    made: dict[str, Any] = {"type": (match[1] or "") + match[2]}
    if match[4]:
        made["value"] = match[4].strip()
    if match[3]:
        made["threshold"] = float(match[3])
    return made
