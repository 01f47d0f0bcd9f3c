"""A plain function as a metric: what it names as parameters is what it gets, and what it returns is the score."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import replace
from hashlib import sha256
from textwrap import dedent
from types import CodeType
from typing import Any

from agentunit.core.records import Outcome
from agentunit.core.results import RETURNED_BOOL, MetricResult, Score
from agentunit.metrics.base import ItemMetric, MetricInfo
from agentunit.metrics.inputs import Item, no_answer, nothing_expected
from agentunit.metrics.parameters import refuse_unknown
from agentunit.metrics.turns import messages_of

_READINGS: dict[str, Callable[[Item], Any]] = {
    "answer": lambda item: item.answer,
    "query": lambda item: item.case.query or None,
    "expected": lambda item: item.case.expected_output,
    "context": lambda item: item.context or None,
    "tool_calls": lambda item: item.tool_calls,
    "case": lambda item: item.case,
    "trace": lambda item: item.trace,
    "outcome": lambda item: None if item.outcome == Outcome() else item.outcome,
    "messages": messages_of,
}
NAMES = tuple(_READINGS)
"""What a metric function may ask for by naming a parameter."""

_MISSING: dict[str, Callable[[Item], str]] = {
    "answer": no_answer,
    "query": lambda _: "no question: case.query is missing",
    "expected": nothing_expected,
    "context": lambda _: "no context: case.context is missing, and the trace recorded no retrieved documents",
    "outcome": lambda _: "no outcome",
    "messages": lambda _: "no conversation: neither messages in the trace nor a question",
}
_INPUTS = {
    "answer": "outcome.output",
    "query": "case.query",
    "expected": "case.expected_output",
    "context": "case.context or retrieval events",
}
CHECK_FACTS: Mapping[str, Any] = {"direction": "higher", "range": (0.0, 1.0), "check": True}
"""What a function that returns a bool says about itself."""


class FunctionMetric(ItemMetric):
    """A metric made of a function that returns a number, a bool, ``None`` (does not apply) or a ``MetricResult``.

    It may say why, in one sentence: ``return value, why``.

    Its parameters are filled by name: ``answer``, ``query``, ``expected``, ``context``, ``tool_calls``, ``case``,
    ``trace``, ``outcome``, ``messages`` (the conversation, as mappings with ``role`` and ``content``). What a record
    does not have gets the parameter's default; without a default, the function is not called, and the score is ``None``
    with the reason. Further parameters need a default, and can be set by name. One that returns a bool is a check. Its
    version is its attribute ``version``, or else a hash of its source.

    >>> def brevity(answer, most_words=3):
    ...     return len(answer.split()) <= most_words
    >>> FunctionMetric(brevity).evaluate({"id": "q1"}, None, "On Monday.").value
    1.0
    >>> FunctionMetric(brevity).evaluate({"id": "q1"}, None, None).detail["reason"]
    'no answer: outcome.output is missing'
    >>> def polite(answer):
    ...     return "please" in answer, "it never says please"
    >>> FunctionMetric(polite).evaluate({"id": "q1"}, None, "Wait.").detail["why"]
    'it never says please'
    """

    @property
    def function(self) -> Callable[..., Any]:
        """The function that it calls."""
        return self._function

    def __init__(
        self, function: Callable[..., Any], name: str | None = None, parameters: Mapping[str, Any] | None = None
    ) -> None:
        self.name = name or _defined_name(function)
        self._function = function
        asked = _parameters(function)
        self._read = {each.name: each.default for each in asked if each.name in _READINGS}
        self._positional = [each.name for each in asked if each.kind is each.POSITIONAL_ONLY]
        options = {each.name: each.default for each in asked if each.name not in _READINGS}
        refuse_unknown(parameters or {}, list(options), f"metric {self.name!r}")
        self.options = {**options, **(parameters or {})}
        lacking = [each for each, value in self.options.items() if value is inspect.Parameter.empty]
        if lacking:
            raise TypeError(
                f"metric {self.name!r}: parameters of a metric function must be among {', '.join(NAMES)}, or have a "
                f"default; received {lacking[0]!r}"
            )
        if inspect.iscoroutinefunction(inspect.unwrap(_innermost(function))):
            raise TypeError(f"metric {self.name!r}: a metric function must not be async; received {function!r:.80}")
        self.__doc__ = inspect.getdoc(_innermost(function))
        self.info = _info(self.name, function, self._read)  # type: ignore[misc]  # its facts are the function's

    def with_parameters(self, parameters: Mapping[str, Any]) -> FunctionMetric:
        """The same metric with some of its parameters changed."""
        refuse_unknown(parameters, list(self.options), f"metric {self.name!r}")
        return FunctionMetric(self._function, self.name, {**self.options, **parameters})

    def score_item(self, item: Item) -> MetricResult:
        """Call the function with what it asks for."""
        arguments = dict(self.options)
        for name, default in self._read.items():
            value = _READINGS[name](item)
            if value is None and default is inspect.Parameter.empty:
                return self.unscored(_MISSING[name](item))
            arguments[name] = default if value is None else value
        positional = [arguments.pop(name) for name in self._positional]
        return self._result(self._function(*positional, **arguments))

    def _result(self, returned: Any) -> MetricResult:
        if isinstance(returned, MetricResult):
            return MetricResult(self.name, returned.value, returned.detail)
        value, why = returned, None
        if isinstance(returned, tuple) and len(returned) == 2 and isinstance(returned[1], (str, type(None))):
            value, why = returned
        if value is None:
            return self.unscored(why or f"{self.name} returned None: it does not apply to this case")
        # Numbers of other libraries offer __float__, and so does their kind of bool.
        if isinstance(value, (str, bytes)) or not hasattr(value, "__float__"):
            raise TypeError(
                f"{self.name}: a metric function must return a number, a bool, None or a MetricResult, "
                f"or (value, why) with a sentence that says why; received {returned!r:.80}"
            )
        number = float(value)
        is_bool = isinstance(value, bool) or getattr(getattr(value, "dtype", None), "kind", None) == "b"
        shown = bool(number) if is_bool else f"{number:.6g}"
        detail = {"backend": self.info.backend, "why": (why or "").strip() or f"returned {shown}"}
        if is_bool:
            detail.update([RETURNED_BOOL])
        return MetricResult(self.name, number, detail)


def note_checks(infos: dict[str, MetricInfo], scores: Mapping[str, Score]) -> list[str]:
    """Make a check of each function that returned a bool, whatever its annotation; which ones were none before."""
    new = []
    for name, score in scores.items():
        if RETURNED_BOOL in score.result.detail.items() and not infos[name].check:
            infos[name] = replace(infos[name], **CHECK_FACTS)
            new.append(name)
    return new


def is_metric_function(source: Any, parameters: Container[str] = ()) -> bool:
    """Whether a callable scores by itself, because it asks for part of a record; a class or a factory does not.

    >>> is_metric_function(lambda answer: 1.0), is_metric_function(lambda: 1.0), is_metric_function(dict)
    (True, False, False)
    """
    if isinstance(source, type) or not callable(source) or hasattr(source, "evaluate"):
        return False
    try:
        asked = _parameters(source)
    except (TypeError, ValueError):  # a callable of C, which does not say what it takes
        return False
    # Required and of an unknown name: what was meant as a metric function, and is refused with the names there are.
    # A factory with such a parameter gets it by name.
    return any(each.name in _READINGS or (each.default is each.empty and each.name not in parameters) for each in asked)


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters that are filled by name; what a partial has filled stays as its author chose."""
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    settled = function.keywords if isinstance(function, functools.partial) else {}
    found = inspect.signature(function).parameters.values()
    return [each for each in found if each.kind not in variable and each.name not in settled]


def _innermost(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    return function if inspect.isroutine(function) else type(function).__call__


def _defined_name(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", None) or type(function).__name__
    if name == "<lambda>":
        raise TypeError("a lambda has no name that a metric could have: register_metric('my_metric', lambda answer: …)")
    return str(name)


def _info(name: str, function: Any, read: Container[str]) -> MetricInfo:
    documentation = (inspect.getdoc(_innermost(function)) or "").strip().splitlines()
    # The return annotation is the one thing that a function says about its values.
    annotation = inspect.signature(function).return_annotation
    passes = annotation in (bool, "bool") or str(annotation).startswith("tuple[bool,")
    return MetricInfo(
        name=name,
        family="custom",
        summary=documentation[0] if documentation else "",
        # A function that reads the whole case does not say which part it needs.
        inputs=() if "case" in read else tuple(place for each, place in _INPUTS.items() if each in read),
        version=_version(function),
        **(CHECK_FACTS if passes else {}),
    )


def _version(function: Any) -> str:
    """What a function says its version is, or a hash of what it does: scores of another source are of another metric.

    The hash is the same in every process of one Python.
    """
    stated = getattr(function, "version", None)
    if stated is not None:
        return str(stated)
    innermost = inspect.unwrap(_innermost(function))
    try:
        source = dedent(inspect.getsource(innermost))
    except (OSError, TypeError, SyntaxError):  # typed in, made by a program, or not of Python
        code = getattr(innermost, "__code__", None)
        if code is None:
            return "1"
        source = _as_text(code)
    return sha256(source.encode(errors="backslashreplace")).hexdigest()[:8]


def _as_text(constant: Any) -> str:
    """A constant of compiled code without what differs from process to process: addresses, and the order of sets."""
    if isinstance(constant, CodeType):
        return _as_text((constant.co_code, constant.co_names, constant.co_consts))
    if isinstance(constant, (tuple, frozenset)):
        members: Iterable[str] = map(_as_text, constant)
        return f"({', '.join(members if isinstance(constant, tuple) else sorted(members))})"
    return repr(constant)
