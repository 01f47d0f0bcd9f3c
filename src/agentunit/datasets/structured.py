"""Datasets in JSON and YAML: one case a line, or one document that lists them."""

from __future__ import annotations

import functools
import io
import re
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct

from agentunit.core.case import DatasetCase
from agentunit.core.codec import RecordError, decode_record
from agentunit.core.records import RECORD_VERSION
from agentunit.core.results import decode_json
from agentunit.datasets.rows import CaseCollector, one_line
from agentunit.traces.compressed import bounded_lines, read_whole
from agentunit.traces.limits import (
    DEEPEST_YAML,
    LimitExceeded,
    check_nodes,
    check_yaml_depth,
    item_too_long,
    read_limits,
    too_deep,
    too_many_nodes,
)

_YAML_NODES_FREE = 1 << 20
_BOM = b"\xef\xbb\xbf"


class _RecordLine(Struct, forbid_unknown_fields=True):
    """A record of which only the case is read; the rest is skipped without being built."""

    case: DatasetCase
    trace: msgspec.Raw = msgspec.Raw(b"null")
    outcome: msgspec.Raw = msgspec.Raw(b"null")
    v: int = RECORD_VERSION


_case_decoder = msgspec.json.Decoder(DatasetCase)
_record_decoder = msgspec.json.Decoder(_RecordLine)
_list_decoder = msgspec.json.Decoder(list[msgspec.Raw])


class _Document(Struct):
    """A JSON object that lists its cases; what else it says is not about them."""

    cases: list[msgspec.Raw]


_document_decoder = msgspec.json.Decoder(_Document)


def collect_lines(stream: io.BufferedIOBase, cases: CaseCollector) -> None:
    """One JSON case or record a line."""
    most_nodes = read_limits().nodes
    for number, line in bounded_lines(stream):
        if isinstance(line, str):
            cases.refuse(number, line)
        else:
            _collect(number, line, cases, most_nodes)


def collect_json(stream: io.BufferedIOBase, cases: CaseCollector) -> None:
    """A JSON list of cases, or an object whose ``cases`` is one."""
    text = read_whole(stream).removeprefix(_BOM).strip()
    if not text:
        return
    if text.startswith(b"{") and _is_lines(text):
        cases.unit = "line"
        collect_lines(io.BufferedReader(io.BytesIO(text)), cases)
        return
    most_nodes = read_limits().nodes
    if text.count(b",") > most_nodes:
        raise too_many_nodes(most_nodes)
    try:
        items = _list_decoder.decode(text) if text.startswith(b"[") else _document_decoder.decode(text).cases
    except msgspec.ValidationError:
        cases.refuse(None, "must be a list of cases, or an object whose 'cases' is one")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        cases.refuse(None, _why_not_json(text))
    else:
        for number, item in enumerate(items, 1):
            _collect(number, bytes(item), cases, most_nodes)


def _is_lines(text: bytes) -> bool:
    """Whether a file that calls itself JSON holds one object a line, as many exports do."""
    first, newline, _ = text.partition(b"\n")
    try:
        return bool(newline) and isinstance(decode_json(first), dict)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def _collect(number: int, text: bytes, cases: CaseCollector, most_nodes: float) -> None:
    try:
        check_nodes(text, most_nodes)
        case = _case_decoder.decode(text)
    except LimitExceeded as error:
        cases.refuse(number, str(error))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        _collect_leniently(number, text, cases)
    else:
        if case.turns is None and case.user is None:
            cases.add(number, case)
        else:
            # Fields of these names may be the dataset's own.
            _collect_leniently(number, text, cases)


def _collect_leniently(number: int, text: bytes, cases: CaseCollector) -> None:
    """Records, other spellings and unknown fields: what the exact decoder does not take."""
    try:
        record = _record_decoder.decode(text)
        if record.v == RECORD_VERSION and record.case.turns is None and record.case.user is None:
            cases.add(number, record.case)
            return
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # Not a record to the letter; the plain reading below says what it is, or what is wrong with it.
        pass
    try:
        plain = decode_json(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        cases.refuse(number, _why_not_json(text))
        return
    if isinstance(plain, list):
        cases.refuse(number, "a JSON list where a case is expected (a file that is one list is called .json)")
    else:
        cases.add_fields(number, plain)


def _why_not_json(text: bytes) -> str:
    # The codec has the words for everything that can be wrong with JSON.
    try:
        decode_record(text)
    except RecordError as error:
        return str(error)
    return "not JSON"


def collect_yaml(stream: io.BufferedIOBase, cases: CaseCollector) -> None:
    """A YAML list of cases, or a mapping whose ``cases`` is one."""
    import yaml

    try:
        loader, root = _composed(read_whole(stream))
        nodes = _case_nodes(root)
        if nodes is None:
            cases.refuse(None, "must be a list of cases, or a mapping whose 'cases' is one")
            return
        for node in nodes:
            number = node.start_mark.line + 1
            try:
                fields = loader.construct_object(node, deep=True)
            except MemoryError:
                raise
            except Exception as error:  # noqa: BLE001  # constructors of odd values raise whatever Python has
                cases.refuse(number, f"not readable: {_yaml_problem(error)}")
            else:
                cases.add_fields(number, fields)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        cases.refuse(mark.line + 1 if mark else None, f"not YAML: {_yaml_problem(error)}")
    except RecursionError:
        cases.refuse(None, "not readable: nested too deeply")


class YamlProblem(ValueError):
    """A text that is no YAML that can be read; the message says why."""


def plain_yaml(text: bytes) -> Any:
    """A YAML document as plain data, read as safely as a dataset is."""
    import yaml

    try:
        loader, root = _composed(text)
        # Unlike construct_document it refuses a value that holds itself, which nothing here could follow.
        return None if root is None else loader.construct_object(root, deep=True)
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, TypeError, RecursionError) as error:
        raise YamlProblem(f"not YAML: {_yaml_problem(error)}") from None


def _composed(text: bytes) -> tuple[Any, Any]:
    """The loader of a document and its root node, which may be ``None``."""
    # A composed node takes about a kilobyte; each but the first follows one of these.
    most_nodes = read_limits().nodes / 5
    if len(text) > _YAML_NODES_FREE and sum(map(text.count, (b"\n", b",", b": ", b"- "))) > most_nodes:
        raise too_many_nodes(most_nodes)
    check_yaml_depth(text)
    loader = _yaml_loader()(text)
    root = loader.get_single_node()
    _check_aliases(root)
    return loader, root


def _check_aliases(root: Any) -> None:
    """Refuse a document whose aliases stand for more than an item may hold."""
    limits = read_limits()
    # What each finished node stands for: values, the length of their texts, levels. ``None`` while it is being counted.
    sizes: dict[int, tuple[int, int, int] | None] = {}
    waiting = [] if root is None else [(root, False)]
    while waiting:
        node, counted = waiting.pop()
        if node.id == "scalar":
            sizes[id(node)] = (1, len(node.value), 0)
            continue
        children = [each for pair in node.value for each in pair] if node.id == "mapping" else node.value
        if counted:
            known = [sizes[id(child)] or (0, 0, 0) for child in children]
            n_values, lengths, levels = zip(*known, strict=True) if known else ((), (), (0,))
            size = (1 + sum(n_values), sum(lengths), 1 + max(levels))
            sizes[id(node)] = size
            if size[0] > limits.nodes:
                raise too_many_nodes()
            if size[1] > limits.item_bytes:
                raise LimitExceeded(item_too_long("the text behind its aliases"))
            if size[2] > DEEPEST_YAML:
                raise too_deep()
        elif id(node) not in sizes:
            sizes[id(node)] = None
            waiting.append((node, True))
            waiting.extend((child, False) for child in children)


def _case_nodes(root: Any) -> Iterable[Any] | None:
    """The nodes of the cases, which still know their lines."""
    if root is None:
        return []
    if root.id == "mapping":
        root = next((value for key, value in root.value if key.value == "cases"), None)
    return root.value if root is not None and root.id == "sequence" else None


@functools.cache
def _yaml_loader() -> Any:
    """A safe loader that reads words, times and dates as what they look like: text.

    YAML 1.1 would make ``no`` false, ``12:30`` a number and ``007`` seven, and so change what an agent is asked.
    """
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader: Any = type("CaseLoader", (base,), {"yaml_implicit_resolvers": {}})
    for name, pattern, first in (
        ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
        ("null", r"~|null|Null|NULL|", "~nN\0"),
        ("int", r"[-+]?(0|[1-9][0-9]*)", "-+0123456789"),
        ("float", r"[-+]?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?", "-+0123456789"),
        ("merge", r"<<", "<"),
    ):
        resolver = re.compile(f"^(?:{pattern})$")
        loader.add_implicit_resolver(f"tag:yaml.org,2002:{name}", resolver, ["" if c == "\0" else c for c in first])
    return loader


def _yaml_problem(error: Exception) -> str:
    parts = (getattr(error, "context", None), getattr(error, "problem", None))
    return " ".join(part for part in parts if part) or one_line(error)
