"""JSON Schemas of the replies that measures want, in the subset that servers with structured output take."""

from __future__ import annotations

from typing import Any

MARK = "mark"
"""The field of a reply that says which question it answers. Its value is not in schemas, which servers compile."""


def list_schema(key: str, length: int | None = None, **properties: Any) -> dict[str, Any]:
    """An object with a mark and one list of objects, of a given length where it is known.

    Every property is required and no other allowed, as strict servers want it.

    >>> list_schema("scores", 2, score={"type": "integer"})["properties"]["scores"]["maxItems"]
    2
    """
    listed: dict[str, Any] = {"type": "array", "items": _object(**properties)}
    if length is not None:
        listed |= {"minItems": length, "maxItems": length}
    return _object(**{MARK: {"type": "string"}, key: listed})


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
