"""Does a JSON value obey a JSON Schema? Validation by the package ``jsonschema``, made safe for schemas from files.

Nothing is fetched: a reference out of the document is an error. Patterns run in linear time (RE2). A schema that would
take too many steps is refused, and so is one with a misspelled keyword: a validator that skips what it does not know
would say "valid" without having looked.
"""

from __future__ import annotations

import difflib
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from typing import Any

from agentunit.formulas.patterns import PatternError, linear_pattern

MOST_REFERENCES = 20_000
"""References that double at each level make a small schema cost more steps than can ever be taken."""
_LONGEST_MESSAGE = 200
_MOST_UNKNOWN = 100
_IN_MAPPINGS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_IN_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
_SINGLE = (
    "items", "additionalItems", "additionalProperties", "unevaluatedItems", "unevaluatedProperties", "contains",
    "propertyNames", "not", "if", "then", "else", "contentSchema",
)  # fmt: skip
_OTHER_KEYWORDS = (
    "$schema", "$id", "$ref", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor",
    "$vocabulary", "$comment", "id", "type", "enum", "const", "multipleOf", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems", "minContains",
    "maxContains", "required", "minProperties", "maxProperties", "dependentRequired", "dependencies", "format",
    "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "contentEncoding",
    "contentMediaType", "nullable", "discriminator", "example", "externalDocs", "xml", "strict", "name",
)  # fmt: skip
# Assertions that some drafts lack: a validator of such a draft would pass over them.
_BY_DRAFT = (
    "prefixItems", "dependentRequired", "dependentSchemas", "unevaluatedItems", "unevaluatedProperties", "dependencies",
    "$dynamicRef", "$recursiveRef",
)  # fmt: skip
_KEYWORDS = frozenset((*_IN_MAPPINGS, *_IN_LISTS, *_SINGLE, *_OTHER_KEYWORDS))
_steps = threading.local()


class SchemaError(ValueError):
    """The schema itself cannot be used; the message says where and why."""


@dataclass(frozen=True)
class Violation:
    """One place where a value breaks its schema: its path (``$.items[0].price``), the keyword, and what is wrong."""

    path: str
    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


def check_schema(schema: Any) -> None:
    """Raise ``SchemaError`` unless the schema is well formed and everything in it can be checked.

    >>> check_schema({"type": "object", "required": ["age"]})
    >>> check_schema({"type": "object", "requird": ["age"]})
    Traceback (most recent call last):
    agentunit.backends.json_schema.SchemaError: 'requird' is not a keyword of JSON Schema; did you mean 'required'?
    """
    _validator(schema)


def violations(instance: object, schema: Any, *, limit: int = 20) -> list[Violation]:
    """List where a value breaks a schema: at most ``limit`` violations, none when it is valid.

    ``nullable: true``, as OpenAPI writes it, allows null beside the type. ``format`` is not asserted. A value that JSON
    cannot hold (NaN, a set) breaks the rule "json".

    >>> schema = {"properties": {"price": {"type": "number", "minimum": 0}}, "required": ["name"]}
    >>> [str(each) for each in violations({"price": -1}, schema)]
    ['$.price: -1 is less than the minimum of 0', "$: 'name' is a required property"]
    """
    from referencing.exceptions import Unresolvable

    validator = _validator(schema)
    try:
        # As JSON would hold it: tuples are arrays, and nothing that JSON does not know is left.
        plain = json.loads(json.dumps(instance, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        return [Violation("$", "json", f"not a JSON value: {error}"[:_LONGEST_MESSAGE])]
    _steps.left = MOST_REFERENCES
    try:
        found = list(islice(validator.iter_errors(plain), limit))
    except RecursionError:
        raise SchemaError("the schema refers to itself without end, or the value is nested too deeply") from None
    except Unresolvable as error:
        raise SchemaError(f"a reference leads nowhere: {error}") from None
    return [Violation(each.json_path, str(each.validator), _shortened(each.message)) for each in found]


def _validator(schema: Any) -> Any:
    if not isinstance(schema, bool | Mapping):
        raise SchemaError(f"a schema must be an object, true or false; received {schema!r:.80}")
    try:
        made = _made_or_refused(json.dumps(schema, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise SchemaError(f"a schema must be JSON: {error}"[:_LONGEST_MESSAGE]) from None
    if isinstance(made, str):
        raise SchemaError(made)
    return made


@lru_cache(maxsize=256)
def _made_or_refused(text: str) -> Any:
    """A validator, or why there is none: a schema that is refused is looked at once, too."""
    try:
        return _made_validator(text)
    except SchemaError as error:
        return str(error)


def _made_validator(text: str) -> Any:
    from jsonschema import exceptions, validators
    from referencing import Registry

    schema = json.loads(text)
    parts = [part for part in _subschemas(schema) if isinstance(part, Mapping)]
    is_older = any("dependencies" in part or isinstance(part.get("items"), list) for part in parts)
    newest = validators.Draft7Validator if is_older else validators.Draft202012Validator
    base = validators.validator_for(schema, default=newest)
    try:
        base.check_schema(schema)
    except exceptions.SchemaError as error:
        raise SchemaError(f"{error.json_path}: {_shortened(error.message)}") from None
    _check_parts(parts, base)
    # An empty registry: whatever is not in the document is an error instead of a download.
    return _safe(base)(schema, registry=Registry())


@lru_cache(maxsize=8)
def _safe(base: Any) -> Any:
    from jsonschema import validators

    replaced = {
        "type": _or_nullable(base.VALIDATORS["type"]),
        "enum": _or_nullable(base.VALIDATORS["enum"]),
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "multipleOf": _multiple_of,
        "divisibleBy": _multiple_of,
    }
    for name in ("$ref", "$dynamicRef", "$recursiveRef"):
        if name in base.VALIDATORS:
            replaced[name] = _counted(base.VALIDATORS[name])
    return validators.extend(base, {name: each for name, each in replaced.items() if name in base.VALIDATORS})


def _check_parts(parts: list[Mapping[str, Any]], base: Any) -> None:
    for part in parts:
        # Comparing names takes time: an object with more unknown ones than this was never a schema.
        unknown = [name for name in part if name not in _KEYWORDS][:_MOST_UNKNOWN]
        for name in [*(name for name in part if name in _KEYWORDS), *unknown]:
            if name in _BY_DRAFT and name not in base.VALIDATORS:
                draft = base.__name__.removesuffix("Validator")
                raise SchemaError(f"{name!r} is not a keyword of {draft}; name the draft of the schema in '$schema'")
            near = difflib.get_close_matches(name, _KEYWORDS, n=1, cutoff=0.8) if name not in _KEYWORDS else []
            if near:
                raise SchemaError(f"{name!r} is not a keyword of JSON Schema; did you mean {near[0]!r}?")
        for pattern in [part.get("pattern"), *(part.get("patternProperties") or ())]:
            if isinstance(pattern, str):
                _matcher(pattern)
    used = {name for part in parts for name in part}
    # The package collects evaluated properties with patterns that may take exponential time.
    if "patternProperties" in used and "unevaluatedProperties" in used:
        raise SchemaError("'unevaluatedProperties' cannot be combined with 'patternProperties' here")


def _subschemas(schema: Any) -> Iterator[Any]:
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        yield part
        if not isinstance(part, Mapping):
            continue
        waiting += [each for name in _SINGLE if isinstance(each := part.get(name), Mapping)]
        waiting += [each for name in _IN_LISTS if isinstance(part.get(name), list) for each in part[name]]
        waiting += [
            each for name in _IN_MAPPINGS if isinstance(part.get(name), Mapping) for each in part[name].values()
        ]
        if isinstance(part.get("dependencies"), Mapping):
            waiting += [each for each in part["dependencies"].values() if isinstance(each, Mapping)]


@lru_cache(maxsize=512)
def _matcher(pattern: str) -> tuple[tuple[bool, Any], ...]:
    """A pattern as linear ones that must, or must not, be found: look-aheads at its start are taken apart."""
    rest, parts = pattern, []
    start = "^" if pattern.startswith("^") else ""
    if start:
        while (ahead := _leading_lookahead(rest[1:])) is not None:
            wanted, inner, after = ahead
            parts.append((wanted, _linear(f"^(?:{inner})", pattern)))
            rest = f"^{after}"
    return (*parts, (True, _linear(rest, pattern)))


def _leading_lookahead(text: str) -> tuple[bool, str, str] | None:
    """What a look-ahead at the start of a pattern asks for, whether it must be there, and what follows it."""
    if not text.startswith(("(?=", "(?!")):
        return None
    depth, at, in_class = 0, 0, False
    while at < len(text):
        sign = text[at]
        if sign == "\\":
            at += 1
        elif in_class:
            in_class = sign != "]"
        elif sign == "[":
            in_class = True
        elif sign == "(":
            depth += 1
        elif sign == ")":
            depth -= 1
            if not depth:
                return text[2] == "=", text[3:at], text[at + 1 :]
        at += 1
    return None


def _linear(pattern: str, whole: str) -> Any:
    try:
        return linear_pattern(pattern)
    except PatternError as error:
        raise SchemaError(f"pattern {whole!r:.80} cannot be used: {error}") from None


def _found(pattern: str, text: str) -> bool:
    return all((each.search(text) is not None) is wanted for wanted, each in _matcher(pattern))


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[Any]:
    if validator.is_type(instance, "string") and not _found(pattern, instance):
        yield _error(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Mapping[str, Any], instance: Any, schema: Any) -> Iterator[Any]:
    if validator.is_type(instance, "object"):
        for pattern, subschema in patterns.items():
            for name, value in instance.items():
                if _found(pattern, name):
                    yield from validator.descend(value, subschema, path=name, schema_path=pattern)


def _additional_properties(validator: Any, allowed: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if not validator.is_type(instance, "object"):
        return
    patterns = schema.get("patternProperties", {})
    for name, value in instance.items():
        if name in schema.get("properties", {}) or any(_found(pattern, name) for pattern in patterns):
            continue
        if allowed is False:
            yield _error(f"additional property {name!r} is not allowed")
        else:
            yield from validator.descend(value, allowed, path=name)


def _multiple_of(validator: Any, step: Any, instance: Any, schema: Any) -> Iterator[Any]:
    # By the digits as written: 0.3 is a multiple of 0.1, whatever binary fractions say.
    if validator.is_type(instance, "number") and Fraction(str(instance)) % Fraction(str(step)):
        yield _error(f"{instance!r} is not a multiple of {step}")


def _or_nullable(check: Any) -> Any:
    def checked(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if instance is None and schema.get("nullable") is True:
            return
        yield from check(validator, value, instance, schema)

    return checked


def _counted(check: Any) -> Any:
    def checked(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        _steps.left -= 1
        if _steps.left < 0:
            raise SchemaError(f"the schema must not take more than {MOST_REFERENCES:,} references to check")
        yield from check(validator, value, instance, schema)

    return checked


def _error(message: str) -> Any:
    from jsonschema.exceptions import ValidationError

    return ValidationError(message)


def _shortened(message: str) -> str:
    return message if len(message) <= _LONGEST_MESSAGE else f"{message[: _LONGEST_MESSAGE - 1]}…"
