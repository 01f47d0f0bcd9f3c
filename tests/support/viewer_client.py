"""A client for the viewer's server that needs no network and no package: it calls the application itself."""

from __future__ import annotations

import asyncio
import base64
import gzip
import html
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema

from agentunit.addons.viewer._server import schemas

_PART = re.compile(r'<script type="application/octet-stream" data-path="([^"]+)">([^<]*)</script>')


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        return json.loads(self.body)


class Client:
    """Asks an ASGI application as a browser on its own page would."""

    def __init__(self, app: Any, host: str = "127.0.0.1:7575") -> None:
        self._app = app
        self._host = host

    def ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Reply:
        sent = b"" if body is None else json.dumps(body).encode()
        named = {"host": self._host, **({"content-type": "application/json", "x-agentunit": "1"} if sent else {})}
        named.update(headers or {})
        where, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": where,
            "raw_path": where.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in named.items() if value is not None],
            "http_version": "1.1",
            "scheme": "http",
            "server": ("127.0.0.1", 7575),
            "client": ("127.0.0.1", 1),
            "root_path": "",
        }
        messages: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": sent, "more_body": False}

        async def send(message: Any) -> None:
            messages.append(message)

        asyncio.run(self._app(scope, receive, send))
        start = messages[0]
        answered = {name.decode().lower(): value.decode() for name, value in start["headers"]}
        content = b"".join(each.get("body", b"") for each in messages[1:])
        return Reply(start["status"], answered, content)

    def get(self, path: str, **headers: str) -> Any:
        reply = self.ask("GET", path, headers=headers)
        assert reply.status == 200, reply.body
        return reply.data


def check_shape(name: str, data: Any, *, many: bool = False) -> None:
    """Hold data against a type of types.ts."""
    reference = {"$ref": f"#/components/schemas/{name}"}
    schema = {"type": "array", "items": reference} if many else reference
    jsonschema.Draft202012Validator({**schema, "components": {"schemas": schemas()}}).validate(data)


def page_parts(path: Path | str) -> dict[str, Any]:
    """What an exported page holds, by the name of the part."""
    return parts_of(Path(path).read_text(encoding="utf-8"))


def parts_of(page: str) -> dict[str, Any]:
    found = {}
    for name, inside in _PART.findall(page):
        content = base64.b64decode(inside)
        found[name] = json.loads(gzip.decompress(content)) if name.endswith(".gz") else content
    return found


def unpacked_case(packed: dict[str, Any], at: int) -> dict[str, Any]:
    """One case again, as the browser puts it together."""
    row = packed["rows"][at]
    detail = {**packed["common"], **row}
    detail["scores"] = [{**packed["scores"][metric], **own} for metric, own in row["scores"]]
    return {"repeats": [detail["key"]], "subject": "", **detail}


def cases_in(part: Any) -> list[dict[str, Any]]:
    """The cases of one part of a bundle or a page."""
    return [unpacked_case(part, at) for at in range(len(part["rows"]))]


def page_text(path: Path | str) -> str:
    """Everything that an exported page says, as text."""
    parts = page_parts(path)
    parts = {name: cases_in(part) if "/cases-" in name else part for name, part in parts.items()}
    return json.dumps({name: part for name, part in parts.items() if not isinstance(part, bytes)}, ensure_ascii=False)


def folder_parts(folder: Path) -> dict[str, Any]:
    """The same of a bundle."""
    found: dict[str, Any] = {}
    for file in sorted(folder.rglob("*")):
        if file.is_file() and file.name != "index.html":
            content = file.read_bytes()
            name = file.relative_to(folder).as_posix()
            found[name] = json.loads(gzip.decompress(content)) if name.endswith(".gz") else content
    return found


def report_text(path: Path | str) -> str:
    """What a report says to people, whichever its format; of a page both its data and what needs no script."""
    if not str(path).endswith("html"):
        return Path(path).read_text(encoding="utf-8")
    return f"{_without_script(path)}\n{page_text(path)}"


def _without_script(path: Path | str) -> str:
    aside = re.search(r"<noscript>(.*?)</noscript>", Path(path).read_text(encoding="utf-8"), re.DOTALL)
    # What is escaped for Markdown is escaped once more for the page.
    return html.unescape(html.unescape(aside[1] if aside else ""))


def page_verdicts(path: Path | str) -> str:
    """What a page says was decided; a case that passes is no run that does."""
    decisions = [part["decision"] for name, part in page_parts(path).items() if name.endswith("/run.json.gz")]
    return f"{_without_script(path)}\n{json.dumps(decisions, ensure_ascii=False)}"
