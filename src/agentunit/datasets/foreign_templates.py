"""Templates by plain substitution: names become values, and nothing is ever run."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from agentunit.datasets.rows import DatasetError
from agentunit.datasets.structured import plain_yaml
from agentunit.traces.limits import item_too_long, read_limits

_VARIABLE = re.compile(r"\{\{-?\s*([A-Za-z_][\w.\[\]]*)\s*-?\}\}")


def fill(value: Any, variables: Mapping[str, Any]) -> Any:
    """Plain substitution of ``{{name}}`` and ``{{name.field}}``; whatever else a template says stays as it is.

    >>> fill("{{ q }} for {{who.name}}, {{ q | upper }}", {"q": "Hi", "who": {"name": "Ann"}})
    'Hi for Ann, {{ q | upper }}'
    """
    if isinstance(value, list):
        return [fill(each, variables) for each in value]
    if isinstance(value, Mapping):
        return {name: fill(each, variables) for name, each in value.items()}
    if not isinstance(value, str) or "{{" not in value:
        return value

    room = read_limits().item_bytes

    def filled(match: re.Match[str]) -> str:
        nonlocal room
        found: Any = variables
        for step in re.findall(r"\w+", match[1]):
            if isinstance(found, Mapping) and step in found:
                found = found[step]
            elif isinstance(found, list) and step.isdigit() and int(step) < len(found):
                found = found[int(step)]
            else:
                return match[0]
        text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
        room -= len(text)
        if room < 0:
            raise DatasetError(item_too_long("a template with its variables"))
        return text

    return _VARIABLE.sub(filled, value)


def variables_of(template: str) -> set[str]:
    """The variables that a template shows.

    >>> sorted(variables_of("{{ shop }}: {{order.id}} {{ x | upper }}"))
    ['order', 'shop']
    """
    return {match.split(".")[0].split("[")[0] for match in _VARIABLE.findall(template)}


def without_comments(template: str) -> str:
    """A template without its ``{# … #}``."""
    first, *others = template.split("{#")
    # One that does not end is no comment.
    return first + "".join(rest.partition("#}")[2] if "#}" in rest else "{#" + rest for rest in others)


def chat_of(text: str) -> Any:
    """A prompt that lists messages, as JSON or YAML, is a conversation."""
    if not text.startswith(("[", "- role:")):
        return text
    try:
        found = json.loads(text) if text.startswith("[") else plain_yaml(text.encode())
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, list) and found else text
