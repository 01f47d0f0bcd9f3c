"""Plain assertions on the answer: 1.0 when it holds, 0.0 when it does not, and why.

What to look for is a parameter of the metric (the same for every case) or stands in the case's metadata under the
metric's own name. Give ``name`` to use one kind several times in a run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from agentunit.backends.json_schema import SchemaError, check_schema, violations
from agentunit.core.results import MetricResult
from agentunit.formulas.patterns import PatternError, linear_pattern
from agentunit.metrics.base import ItemMetric, MetricInfo
from agentunit.metrics.inputs import InputProblem, Item, acceptable_answers, no_answer, nothing_expected, same_data
from agentunit.metrics.sentences import listed, on_one_line, quoted, sentence, why_equal
from agentunit.metrics.turns import by_turn


def _assertion(name: str, summary: str, inputs: tuple[str, ...], detail_keys: tuple[str, ...]) -> MetricInfo:
    return MetricInfo(
        name=name,
        family="quality",
        summary=summary,
        direction="higher",
        range=(0.0, 1.0),
        inputs=inputs,
        metadata_inputs={name: "answer_key"} if name != "exact_match" else {},
        detail_keys=detail_keys,
        backend="check",
        trust={"check": "exact"},
        check=True,
    )


@dataclass(frozen=True)
class ContainsMetric(ItemMetric):
    """Whether the answer contains all (or any) of some texts: ``values``, or ``case.metadata["contains"]``.

    >>> ContainsMetric(["refund", "5 days"]).evaluate({"id": "q1"}, None, "Your refund takes 5 days.").value
    1.0
    """

    values: str | Sequence[str] | None = None
    mode: Literal["all", "any"] = "all"
    ignore_case: bool = False
    name: str = "contains"

    info = _assertion(
        "contains",
        "Whether the answer contains the given texts.",
        ("values or case.metadata.contains", "outcome.output"),
        ("expected", "missing", "mode"),
    )

    def __post_init__(self) -> None:
        if self.mode not in ("all", "any"):
            raise ValueError(f"ContainsMetric: mode must be all or any; received {self.mode!r}")
        if self.values is not None and not _texts(self.values):
            raise ValueError(f"ContainsMetric: values must be one or more texts; received {self.values!r}")

    def score_item(self, item: Item) -> MetricResult:
        """Look for each text."""
        wanted = self.values if self.values is not None else item.case_metadata.get(self.name)
        if wanted is None:
            return self.unscored(f"nothing to look for: no values given, no case.metadata[{self.name!r}]")
        texts = _texts(wanted)
        if not texts:
            raise InputProblem(f"case.metadata[{self.name!r}] must be one or more texts; received {wanted!r:.80}")
        answer = item.answer
        if answer is None:
            return self.unscored(no_answer(item), expected=texts, mode=self.mode)
        if self.ignore_case:
            answer = answer.casefold()
        missing = [text for text in texts if (text.casefold() if self.ignore_case else text) not in answer]
        holds = not missing if self.mode == "all" else len(missing) < len(texts)
        why = self._why(texts, missing)
        detail = {"expected": texts, "missing": missing, "mode": self.mode, "backend": "check", "why": why}
        return MetricResult(self.name, float(holds), detail)

    def _why(self, texts: list[str], missing: list[str]) -> str:
        if self.mode == "any":
            there = next((text for text in texts if text not in missing), None)
            return sentence(f"none of: {listed(missing)}" if there is None else f"found: {quoted(there)}")
        if missing:
            return sentence(f"missing: {listed(missing)}")
        return f"all {len(texts)} expected texts found" if len(texts) > 1 else "the expected text was found"


@dataclass(frozen=True)
class RegexMetric(ItemMetric):
    """Whether a regular expression is found in the answer: ``pattern``, or ``case.metadata["regex"]``.

    With ``full_match`` the whole answer must match. A pattern of a case is searched in linear time (RE2: no
    look-around); one given here is Python's.

    >>> RegexMetric(r"[A-Z]-[0-9]{4}").evaluate({"id": "q1"}, None, "Order A-1042 is on its way.").detail["matched"]
    'A-1042'
    """

    pattern: str | None = None
    full_match: bool = False
    ignore_case: bool = False
    name: str = "regex"

    info = _assertion(
        "regex",
        "Whether the answer matches a regular expression.",
        ("pattern or case.metadata.regex", "outcome.output"),
        ("pattern", "matched"),
    )

    def __post_init__(self) -> None:
        if self.pattern is not None:
            _own_pattern(self.pattern)

    def score_item(self, item: Item) -> MetricResult:
        """Search the answer."""
        pattern = self.pattern if self.pattern is not None else item.case_metadata.get(self.name)
        if pattern is None:
            return self.unscored(f"nothing to match: no pattern given, no case.metadata[{self.name!r}]")
        compiled = (
            _own_pattern(pattern, re.IGNORECASE if self.ignore_case else 0)
            if self.pattern is not None
            else _pattern_of_case(pattern, f"case.metadata[{self.name!r}]", self.ignore_case)
        )
        if item.answer is None:
            return self.unscored(no_answer(item), pattern=pattern)
        found = compiled.fullmatch(item.answer) if self.full_match else compiled.search(item.answer)
        matched = found.group() if found else None
        why = f"no match of /{on_one_line(pattern, 80)}/" if matched is None else f"matched: {quoted(matched)}"
        detail = {"pattern": pattern, "matched": matched, "backend": "check", "why": sentence(why)}
        return MetricResult(self.name, float(found is not None), detail)


@dataclass(frozen=True)
class JsonSchemaMetric(ItemMetric):
    """Whether the answer is JSON of a given shape: ``schema``, or ``case.metadata["json_schema"]``.

    An output that is data already is checked as it is; text must be JSON and nothing else.

    >>> schema = {"type": "object", "required": ["city"]}
    >>> JsonSchemaMetric(schema).evaluate({"id": "q1"}, None, '{"town": "Paris"}').detail["violations"]
    ["$: 'city' is a required property"]
    """

    schema: Mapping[str, Any] | bool | None = None
    name: str = "json_schema"

    info = _assertion(
        "json_schema",
        "Whether the answer is JSON of the given shape.",
        ("schema or case.metadata.json_schema", "outcome.output"),
        ("violations",),
    )

    def __post_init__(self) -> None:
        if self.schema is not None:
            try:
                check_schema(self.schema)
            except SchemaError as error:
                raise ValueError(f"JsonSchemaMetric: {error}") from None

    def score_item(self, item: Item) -> MetricResult:
        """Parse the answer and check it."""
        schema = self.schema if self.schema is not None else item.case_metadata.get(self.name)
        if schema is None:
            return self.unscored(f"nothing to check: no schema given, no case.metadata[{self.name!r}]")
        output = item.outcome.output
        if item.answer is None:
            return self.unscored(no_answer(item))
        if isinstance(output, str):
            try:
                output = msgspec.json.decode(output)
            except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
                return self._result([f"$ is not JSON ({error})"])
        try:
            found = violations(output, schema)
        except SchemaError as error:
            raise InputProblem(f"case.metadata[{self.name!r}] must be a usable JSON Schema: {error}") from None
        return self._result([str(each) for each in found])

    def _result(self, found: list[str]) -> MetricResult:
        why = sentence(found[0]) if found else "the answer has the given shape"
        return MetricResult(self.name, float(not found), {"violations": found, "backend": "check", "why": why})


@dataclass(frozen=True)
class ExactMatchMetric(ItemMetric):
    """Whether the answer equals ``case.expected_output`` (or one of its texts, if it is a list of them).

    ``strip`` trims white space at both ends; ``ignore_case`` and ``ignore_punctuation`` do what they say.

    >>> ExactMatchMetric(ignore_case=True).evaluate({"id": "q1", "expected_output": "Paris"}, None, "paris").value
    1.0
    """

    strip: bool = True
    ignore_case: bool = False
    ignore_punctuation: bool = False
    name: str = "exact_match"

    info = _assertion(
        "exact_match",
        "Whether the answer equals the expected output.",
        ("case.expected_output", "outcome.output"),
        ("expected", "answer"),
    )

    def score_item(self, item: Item) -> MetricResult:
        """Compare with each acceptable answer; in a conversation, each turn that has one with its own."""
        return by_turn(item, self._compared) or self._compared(item)

    def _compared(self, item: Item) -> MetricResult:
        expected, answer = item.case.expected_output, item.answer
        acceptable = acceptable_answers(expected)
        if not acceptable:
            return self.unscored(nothing_expected(item))
        if answer is None:
            return self.unscored(no_answer(item), expected=expected)
        normalised = self._normalised(answer)
        is_equal = False
        for text in acceptable:
            is_equal = is_equal or normalised == self._normalised(text)
        is_equal = is_equal or same_data(expected, item)
        why = why_equal(is_equal, answer, expected)
        detail = {"expected": expected, "answer": answer, "backend": "check", "why": why}
        return MetricResult(self.name, 1.0 if is_equal else 0.0, detail)

    def _normalised(self, text: str) -> str:
        if self.ignore_punctuation:
            text = re.sub(r"[^\w\s]", "", text)
        if self.ignore_case:
            text = text.casefold()
        return text.strip() if self.strip else text


def _own_pattern(pattern: Any, flags: int = 0) -> re.Pattern[str]:
    """A pattern the user wrote in code: all of Python's syntax."""
    if not isinstance(pattern, str):
        raise ValueError(f"RegexMetric: pattern must be a regular expression; received {pattern!r:.80}")
    try:
        return re.compile(pattern, flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(
            f"RegexMetric: pattern must be a regular expression ({error}); received {pattern!r:.80}"
        ) from None


def _pattern_of_case(pattern: Any, place: str, ignore_case: bool) -> Any:
    """A pattern that came with the data: searched in linear time, so that no record can stop a run."""
    if not isinstance(pattern, str):
        raise InputProblem(f"{place} must be a regular expression; received {pattern!r:.80}")
    try:
        return linear_pattern(pattern, ignore_case=ignore_case)
    except PatternError as error:
        raise InputProblem(
            f"{place} must be a regular expression without look-around ({error}); received {pattern!r:.80}"
        ) from None


def _texts(value: Any) -> list[str]:
    """A text or a list of texts as a list; empty when it is anything else. An empty text would be found anywhere."""
    if isinstance(value, str):
        return [value] if value else []
    if isinstance(value, (list, tuple)) and all(isinstance(each, str) and each for each in value):
        return list(value)
    return []
