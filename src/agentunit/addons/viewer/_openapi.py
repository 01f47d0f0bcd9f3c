"""The OpenAPI document of the viewer's API, from the table of its routes and the shapes of types.ts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

import agentunit
from agentunit.addons.viewer._api import Route
from agentunit.addons.viewer._page import static_text

SCHEMAS = "schemas.json"
_IN_PATH = re.compile(r"\{(\w+)\}")
_WRITE = {
    "name": "X-AgentUnit",
    "in": "header",
    "required": True,
    "description": "Any value: no form of another site can send it.",
    "schema": {"type": "string"},
}


def schemas() -> dict[str, Any]:
    """The shapes of types.ts as JSON Schema, by name (``python -m scripts.viewer_schemas`` writes them)."""
    found: dict[str, Any] = msgspec.json.decode(static_text(SCHEMAS))
    return found


def openapi_document(routes: Iterable[Route]) -> dict[str, Any]:
    """The document, OpenAPI 3.1."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "AgentUnit viewer", "version": agentunit.__version__},
        "paths": paths,
        "components": {"schemas": schemas()},
    }


def _operation(route: Route) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _IN_PATH.findall(route.path)
    ]
    parameters += [
        {"name": name, "in": "query", "description": meaning, "schema": {"type": "string"}}
        for name, meaning in route.parameters.items()
    ]
    if route.method == "GET":
        shown = "1: with personal data"
        parameters.append({"name": "personal", "in": "query", "description": shown, "schema": {"type": "string"}})
    else:
        parameters.append(_WRITE)
    problem = {"description": "What is wrong", "content": {"application/json": {"schema": _schema("Problem")}}}
    operation: dict[str, Any] = {
        "summary": route.summary,
        "parameters": parameters,
        "responses": {"200": _response(route.gives), "default": problem},
    }
    if route.takes is not None:
        content = {"application/json": {"schema": _schema(route.takes)}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _response(gives: str) -> dict[str, Any]:
    if gives == "bytes":
        return {"description": gives, "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}
    return {"description": gives, "content": {"application/json": {"schema": _schema(gives)}}}


def _schema(name: str) -> dict[str, Any]:
    if name.endswith("[]"):
        return {"type": "array", "items": _schema(name[:-2])}
    plain = {"number": {"type": "number"}, "unknown": {}}
    return plain.get(name, {"$ref": f"#/components/schemas/{name}"})
