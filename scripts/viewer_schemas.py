"""The shapes of viewer/src/types.ts as JSON Schema, for the OpenAPI document and the tests of the API.

``python -m scripts.viewer_schemas`` writes them, with ``--check`` it says whether they are up to date. The reader knows
the part of TypeScript that types.ts is written in: interfaces, unions, literals, arrays, tuples, records.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "viewer" / "src" / "types.ts"
TARGET = ROOT / "src" / "agentunit" / "addons" / "viewer" / "static" / "schemas.json"
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[A-Za-z_]\w*|\?:|\d+|[{}\[\]()<>|;:,=])')
_PLAIN = {
    "string": {"type": "string"},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "null": {"type": "null"},
    "unknown": {},
    "true": {"const": True},
    "false": {"const": False},
}
# The interface of sources has functions, and is no data.
_NO_DATA = ("Source",)


class _Reader:
    def __init__(self, text: str) -> None:
        self.tokens = _TOKEN.findall(text)
        self.at = 0

    def next(self, wanted: str | None = None) -> str:
        token: str = self.tokens[self.at]
        if wanted is not None and token != wanted:
            raise ValueError(
                f"types.ts: {wanted!r} expected, {token!r} found near {self.tokens[self.at - 8 : self.at + 3]}"
            )
        self.at += 1
        return token

    def is_next(self, token: str) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at] == token

    def type(self) -> dict[str, Any]:
        if self.is_next("|"):
            self.next()
        parts = [self.array()]
        while self.is_next("|"):
            self.next()
            parts.append(self.array())
        return parts[0] if len(parts) == 1 else {"anyOf": parts}

    def array(self) -> dict[str, Any]:
        found = self.one()
        while self.is_next("["):
            self.next()
            self.next("]")
            found = {"type": "array", "items": found}
        return found

    def one(self) -> dict[str, Any]:
        token = self.next()
        if token == "(":
            found = self.type()
            self.next(")")
            return found
        if token == "{":
            return self.fields()
        if token == "[":
            return self.tuple()
        if token.startswith('"'):
            return {"const": json.loads(token)}
        if token == "Record":
            self.next("<")
            self.type()
            self.next(",")
            values = self.type()
            self.next(">")
            return {"type": "object", "additionalProperties": values}
        return _PLAIN.get(token, {"$ref": f"#/components/schemas/{token}"})

    def tuple(self) -> dict[str, Any]:
        parts = [self.type()]
        while self.is_next(","):
            self.next()
            parts.append(self.type())
        self.next("]")
        return {"type": "array", "prefixItems": parts, "minItems": len(parts), "maxItems": len(parts)}

    def fields(self) -> dict[str, Any]:
        properties, required = {}, []
        while not self.is_next("}"):
            name = self.next()
            if self.next() == ":":
                required.append(name)
            properties[name] = self.type()
            if self.is_next(";") or self.is_next(","):
                self.next()
        self.next("}")
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def schemas_of(source: str) -> dict[str, Any]:
    """The shapes of a source, by name."""
    text = _COMMENT.sub("", source)
    found = {}
    for match in re.finditer(r"export (?:interface (\w+)\s*(?=\{)|type (\w+) =)", text):
        name = match[1] or match[2]
        if name not in _NO_DATA:
            found[name] = _Reader(text[match.end() :]).type()
    return found


def main(arguments: list[str]) -> int:
    """Write the schemas, or check them."""
    made = json.dumps(schemas_of(SOURCE.read_text(encoding="utf-8")), indent=1, ensure_ascii=False) + "\n"
    if "--check" in arguments:
        if not TARGET.exists() or TARGET.read_text(encoding="utf-8") != made:
            print(f"{TARGET.relative_to(ROOT)} is not up to date: python -m scripts.viewer_schemas")
            return 1
        return 0
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
