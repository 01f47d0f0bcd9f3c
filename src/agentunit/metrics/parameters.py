"""Parameters of metrics that are given as data: in a suite, or on a command line."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from difflib import get_close_matches
from typing import Any, NamedTuple


class ParameterError(ValueError):
    """A parameter that a metric does not have, or parameters in a shape that says nothing."""


def named_with_parameters(entry: Mapping[Any, Any]) -> tuple[str, dict[str, Any]]:
    """The name and the parameters of an entry such as ``{"faithfulness": {"backend": "judge"}}``.

    >>> named_with_parameters({"faithfulness": {"backend": "judge"}})
    ('faithfulness', {'backend': 'judge'})
    """
    rule = "a metric with parameters must be one name and its parameters, as in {faithfulness: {backend: judge}}"
    if len(entry) != 1:
        keys = ", ".join(str(key) for key in entry) or "none"
        raise ParameterError(f"{rule}; received the keys {keys} (parameters are indented below the name)")
    ((name, values),) = entry.items()
    values = {} if values is None else values
    if not isinstance(name, str) or not isinstance(values, Mapping) or not all(isinstance(key, str) for key in values):
        raise ParameterError(f"{rule}; received {dict(entry)!r:.80}")
    return name, dict(values)


def made_with(make: Callable[..., Any], parameters: Mapping[str, Any], who: str) -> Any:
    """What a class or factory makes with these parameters; a name it does not have is refused."""
    try:
        signature = inspect.signature(make)
    except (TypeError, ValueError):  # a callable of C, which does not tell
        return make(**parameters)
    kinds = {each.kind for each in signature.parameters.values()}
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)
        refuse_unknown(parameters, [n for n, each in signature.parameters.items() if each.kind not in positional], who)
    return make(**parameters)


def adjusted(metric: Any, parameters: Mapping[str, Any], who: str) -> Any:
    """A metric with some of its parameters changed.

    >>> from agentunit.metrics.builtin import FaithfulnessMetric
    >>> adjusted(FaithfulnessMetric(), {"backend": "lexical"}, "metric 'faithfulness'").backend
    'lexical'
    """
    if callable(getattr(metric, "with_parameters", None)):
        return metric.with_parameters(parameters)
    if not is_dataclass(metric) or isinstance(metric, type):
        raise ParameterError(f"{who} is made already, and its parameters stay; received {', '.join(parameters)}")
    refuse_unknown(parameters, [field.name for field in fields(metric) if field.init], who)
    return replace(metric, **parameters)


def refuse_unknown(parameters: Mapping[str, Any], known: list[str], who: str) -> None:
    """Refuse a parameter that is not known, with the nearest that is."""
    for name in parameters:
        if name not in known:
            nearest = get_close_matches(name, known, n=1)
            there = f"it has {', '.join(known)}" if known else "it has none"
            hint = f"did you mean {nearest[0]!r}?" if nearest else there
            raise ParameterError(f"{who} has no parameter {name!r}; {hint}")


def kept_here(metric: Any) -> Any | None:
    """The metric without a service: with its lexical fallback where it would send texts away, ``None`` if it has none.

    For what scores without being asked to: an example, a diagnosis.
    """
    if not getattr(metric, "asks_service", False):
        return metric
    can_choose = is_dataclass(metric) and any(field.name == "backend" for field in fields(metric))
    return adjusted(metric, {"backend": "lexical"}, f"metric {metric.name!r}") if can_choose else None


class Rule(NamedTuple):
    """What a parameter must be: the words for it, and the test."""

    words: str
    holds: Callable[[Any], bool]


def is_number(value: object) -> bool:
    """Whether a value is a number; True and False are not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


FROM_0_TO_1 = Rule("from 0 to 1", lambda value: is_number(value) and 0 <= value <= 1)
ABOVE_0_TO_1 = Rule("above 0 and at most 1", lambda value: is_number(value) and 0 < value <= 1)
POSITIVE = Rule("a finite number above 0", lambda value: is_number(value) and 0 < value < 1e100)
TRUE_OR_FALSE = Rule("True or False", lambda value: isinstance(value, bool))


def check_parameters(metric: object, **rules: Rule) -> None:
    """Refuse the first parameter of a metric that breaks its rule."""
    for name, rule in rules.items():
        value = getattr(metric, name)
        if not rule.holds(value):
            raise ValueError(f"{type(metric).__name__}: {name} must be {rule.words}; received {value!r:.200}")
