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


class Room:
    """How much text may still come of templates; one for a whole file, whose variables may name each other."""

    def __init__(self, file: str = "dataset") -> None:
        self._file = file
        self._left = read_limits().item_bytes

    def take(self, text: str) -> str:
        """The text, if there is room for it; ``DatasetError`` if not."""
        self._left -= len(text)
        if self._left < 0:
            raise DatasetError(f"{self._file}: {item_too_long('what the variables of its templates become')}")
        return text


def fill(value: Any, variables: Mapping[str, Any], room: Room | None = None) -> Any:
    """Plain substitution of ``{{name}}`` and ``{{name.field}}``; whatever else a template says stays as it is.

    >>> fill("{{ q }} for {{who.name}}, {{ q | upper }}", {"q": "Hi", "who": {"name": "Ann"}})
    'Hi for Ann, {{ q | upper }}'
    """
    room = room or Room()
    if isinstance(value, list):
        return [fill(each, variables, room) for each in value]
    if isinstance(value, Mapping):
        return {name: fill(each, variables, room) for name, each in value.items()}
    if not isinstance(value, str) or "{{" not in value:
        return value

    def filled(match: re.Match[str]) -> str:
        found: Any = variables
        for step in re.findall(r"\w+", match[1]):
            if isinstance(found, Mapping) and step in found:
                found = found[step]
            elif isinstance(found, list) and step.isdigit() and int(step) < len(found):
                found = found[int(step)]
            else:
                return match[0]
        return room.take(found if isinstance(found, str) else json.dumps(found, ensure_ascii=False))

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
