"""What each attribute of a span states, found by one look into a table, and how its value is read.

The table is checked when this module is loaded: a row that nobody would read is an error, not a lost score.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, get_args

from agentunit.traces.places import require_known
from agentunit.traces.vocabularies._contents import entity, shown
from agentunit.traces.vocabularies._table import (
    ABOUT_TRACE,
    FIRST,
    OPERATIONS,
    OURS,
    PLAIN_DATA,
    PLAIN_KINDS,
    REQUEST_TYPES,
    SPAN_NAMES,
    TOKEN_NAMES,
    TOKENS,
    UNUSED_FAMILIES,
    UNUSED_TOKENS,
    UNUSED_WORDS,
    VOCABULARIES,
)
from agentunit.traces.vocabularies.values import (
    SpanKind,
    as_amount,
    as_count,
    as_number,
    as_text,
    from_json,
    unquoted,
)

Reader = Callable[[Any], Any]

_UNUSED = frozenset(UNUSED_WORDS.split())
_UNUSED_PREFIXES = tuple(UNUSED_FAMILIES.split())


class AttributeRow(NamedTuple):
    """What an attribute states. Without a ``fact`` it is deliberately unused, or not ``known`` at all.

    ``rank`` says whose word counts, the lowest first: that of the vocabulary that is first for the fact, then by the
    place of the vocabulary, then by that of the attribute in it. ``place`` is where a numbered attribute stands: its
    family, its number, and what is left of its name.
    """

    fact: str | None
    vocabulary: str
    attribute: str
    rank: tuple[int, int, int] = (0, 0, 0)
    read: Reader = from_json
    place: tuple[str, int, str] | None = None
    ours: bool = False
    known: bool = True


def _plain_text(value: Any) -> str | None:
    return as_text(unquoted(value)) if value.__class__ is str and value[:1] == '"' else as_text(value)


def _model(value: Any) -> str | None:
    name = _plain_text(value)
    return None if name == "unknown" else name


def cost_in(value: Any) -> float | None:
    """An amount, or the total of a mapping of amounts by what they were paid for."""
    value = from_json(value)
    if not isinstance(value, dict):
        return as_amount(value)
    for name in ("total", "total_cost"):
        if as_amount(value.get(name)) is not None:
            return as_amount(value[name])
    parts = [part for each in value.values() if (part := as_number(each)) is not None]
    return sum(parts) if parts else None


def _expectation(assessments: Any) -> Any:
    """The expected answer among a trace's assessments: the one of that name, else the only one."""
    found = {}
    rows = from_json(assessments)
    for each in rows if isinstance(rows, list) else ():
        if isinstance(each, dict) and isinstance(each.get("expectation"), dict):
            found[str(each.get("assessment_name"))] = each["expectation"].get("value")
    if "expected_response" in found:
        return found["expected_response"]
    return next(iter(found.values())) if len(found) == 1 else None


def _vercel_kind(operation: Any) -> SpanKind:
    name = str(operation)
    if name == "ai.toolCall":
        return "tool"
    called = name.endswith((".doGenerate", ".doStream", ".doEmbed"))
    return "embedding" if "mbed" in name else "llm" if called else "chain"


def _haystack_kind(component: Any) -> SpanKind:
    """The kind of a component by the name of its class: OpenAIChatGenerator, InMemoryBM25Retriever, Agent."""
    kinds: dict[str, SpanKind] = {
        "Agent": "agent",
        "Generator": "llm",
        "Retriever": "retrieval",
        "Embedder": "embedding",
    }
    return next((kind for ending, kind in kinds.items() if str(component).endswith(ending)), "chain")


def _member(*names: str) -> Reader:
    """A reader of the first of these members that an object in JSON has."""

    def read(value: Any) -> Any:
        value = from_json(value)
        return next((value[name] for name in names if value.get(name)), None) if isinstance(value, dict) else None

    return read


def _kind_reader(words: Mapping[str, SpanKind], other: SpanKind | None) -> Reader:
    """A reader of words for kinds; another word is of the kind ``other``."""
    require_known("words for kinds of spans: a kind", words.values(), get_args(SpanKind))
    for word in words:
        if word != word.lower():
            raise ValueError(f"words for kinds of spans: a word must be in lower case; received {word!r}")

    def read(value: Any) -> Any:
        word = _plain_text(value)
        return other if word is None else words.get(word.lower(), other)

    return read


def _as_it_is(value: Any) -> Any:
    return value


def _flag(value: Any) -> bool | None:
    return {"true": True, "false": False}.get(str(value).lower())


_TEXTS = (
    "agent agent_description agent_id entity node from_agent to_agent provider tool tool_call_id session_id user_id "
    "error status metric currency server server_version lc_agent lc_path function"
)
# What ``facts.py`` looks into by itself.
_DATA = "arguments parameters documents history noted requests system tool_version"
_WITHOUT_READER = ("usage", "tools", "keywords")
FACTS: dict[str, Reader | None] = {
    # Every vocabulary has words of its own for kinds: a row names their reader.
    "kind": None,
    **dict.fromkeys(_TEXTS.split(), _plain_text),
    **dict.fromkeys(TOKENS, as_count),
    **dict.fromkeys((*_DATA.split(), *_WITHOUT_READER), from_json),
    "model": _model,
    "cost": cost_in,
    "cost_part": as_amount,
    "trace_total_cost": cost_in,
    "input": unquoted,
    "output": unquoted,
    "result": unquoted,
    "expected": unquoted,
    "score": as_number,
    "is_error": _flag,
    "input_messages": _as_it_is,
    "output_messages": _as_it_is,
    "metadata": _as_it_is,
    "query": _as_it_is,
}
"""Every fact that a row may state, and how its attributes are read unless a row names another reader."""
KIND_READERS: dict[str, Reader] = {
    "plain_kind": _kind_reader(PLAIN_KINDS, "chain"),
    # A plain span in Langfuse may have come in by OpenTelemetry, and says more in its own words.
    "plain_kind_but_span": _kind_reader(PLAIN_KINDS, None),
    "operation": _kind_reader(OPERATIONS, None),
    "request_type": _kind_reader(REQUEST_TYPES, None),
    "mcp_method": _kind_reader({"tools/call": "tool"}, "chain"),
    "vercel_operation": _vercel_kind,
    "haystack_component": _haystack_kind,
}
"""The readers that a row of ``kind`` may name."""
READERS: dict[str, Reader] = {
    "as_it_is": _as_it_is,
    "shown": shown,
    "entity_inputs": entity("inputs"),
    "entity_outputs": entity("outputs"),
    "expectation": _expectation,
    "asked_messages": _member("messages"),
    "answered_messages": _member("message", "combined_chunk_content"),
    # FastMCP's key ends in the version: tool:greet@1.2.
    "version_after_at": lambda key: as_text(str(key).rpartition("@")[2] if "@" in str(key) else None),
}
"""The readers that any other row may name."""
# The facts that may be stated by numbered attributes, and by attributes of any name.
_FAMILY_FACTS = {"#": ("input_messages", "output_messages", "documents", "tools"), "*": ("keywords",)}

_NUMBERED = re.compile(r"(.*?\.)(\d{1,6})(?:\.(.*))?\Z", re.DOTALL)
_MOST_LEARNED = 100_000


def declared_rows(
    vocabularies: Mapping[str, Mapping[str, str]], first: Mapping[str, str]
) -> tuple[dict[str, AttributeRow], dict[str, AttributeRow]]:
    """The rows of vocabularies by attribute, and those of families by the beginning of their names.

    A row that could not be read raises ``ValueError``: it names the row, what is wrong, and what is known.
    """
    for fact, vocabulary in first.items():
        require_known(
            f"FIRST: the vocabulary that counts first for {fact!r}", [vocabulary], _stating(fact, vocabularies)
        )
    rows: dict[str, AttributeRow] = {}
    families: dict[str, AttributeRow] = {}
    for place, (vocabulary, facts) in enumerate(vocabularies.items()):
        require_known(f"vocabulary {vocabulary!r}: a fact", facts, FACTS)
        for fact, words in facts.items():
            for position, word in enumerate(words.split()):
                attribute, _, reader = word.partition(":")
                where = f"vocabulary {vocabulary!r}, {fact} in {attribute!r}"
                read = _reader(where, fact, attribute, reader)
                rank = (int(first.get(fact) != vocabulary), place, position)
                table = families if attribute[-1] in "#*" else rows
                name = attribute.rstrip("#*")
                if name in table:
                    other = table[name]
                    raise ValueError(f"{where}: {other.vocabulary!r} states {other.fact} in this attribute already")
                if attribute in _UNUSED:
                    raise ValueError(f"{where}: UNUSED_WORDS lists this attribute as unused")
                table[name] = AttributeRow(fact, vocabulary, attribute, rank, read, ours=attribute.startswith(OURS))
    return rows, families


def _stating(fact: str, vocabularies: Mapping[str, Mapping[str, str]]) -> list[str]:
    return [vocabulary for vocabulary, facts in vocabularies.items() if fact in facts]


def _reader(where: str, fact: str, attribute: str, name: str) -> Reader:
    """How a row is read: by the reader it names, or as its fact is."""
    family = attribute[-1] if attribute[-1] in "#*" else ""
    if family:
        require_known(f"{where}: a fact of attributes that end in {family!r}", [fact], _FAMILY_FACTS[family])
    default = FACTS[fact]
    if default is None:
        require_known(f"{where}: the reader, written as {attribute}:NAME,", [name], KIND_READERS)
        return KIND_READERS[name]
    if not name:
        return default
    if family or fact in _WITHOUT_READER:
        raise ValueError(f"{where}: no reader can be named here, since none is used; received {name!r}")
    require_known(f"{where}: the reader", [name], READERS)
    return READERS[name]


def token_kinds(names_by_fact: Mapping[str, str]) -> dict[str, str]:
    """The facts of token counts by their names in a mapping; a name of two facts, or of none, raises ``ValueError``."""
    require_known("TOKEN_NAMES: a fact", names_by_fact, TOKENS)
    kinds: dict[str, str] = {}
    for fact, names in names_by_fact.items():
        for name in names.split():
            if name in kinds or name in UNUSED_TOKENS:
                other = kinds.get(name, "UNUSED_TOKENS")
                raise ValueError(f"TOKEN_NAMES, {fact}: {name!r} is a name of {other} already")
            kinds[name] = fact
    return kinds


TOKEN_KINDS = token_kinds(TOKEN_NAMES)
require_known("SPAN_NAMES: a kind", SPAN_NAMES.values(), get_args(SpanKind))
require_known("PLAIN_DATA: a vocabulary", PLAIN_DATA, VOCABULARIES)
require_known("ABOUT_TRACE: a vocabulary", ABOUT_TRACE, VOCABULARIES)
ROWS, _FAMILIES = declared_rows(VOCABULARIES, FIRST)
"""Every attribute that was met so far, by its name; ``learn`` adds to it."""
SILENT: set[str] = set()
"""Those of them that state nothing and belong to no vocabulary: most spans of other software have no other."""
_N_DECLARED = len(ROWS)


def learn(name: str) -> AttributeRow:
    """The row of an attribute that ``ROWS`` does not have yet: numbered, deliberately unused, or not understood."""
    row = _numbered(name)
    if row is None:
        unused = name in _UNUSED or name.startswith(_UNUSED_PREFIXES)
        row = AttributeRow(None, "", name, ours=name.startswith(OURS), known=unused)
    if len(ROWS) >= _N_DECLARED + _MOST_LEARNED:
        for learned in list(ROWS)[_N_DECLARED:]:
            del ROWS[learned]
        SILENT.clear()
    ROWS[name] = row
    if row.fact is None and not row.ours:
        SILENT.add(name)
    return row


def require_attributes(what: str, names: Iterable[str]) -> None:
    """Refuse an attribute that a table of a format writes and no vocabulary knows: ``ValueError``, when it is loaded.

    >>> require_attributes("opik", ["gen_ai.tool.nam"])
    Traceback (most recent call last):
    ...
    ValueError: opik: the attribute 'gen_ai.tool.nam' must be in VOCABULARIES or UNUSED_WORDS of the vocabularies
    """
    for name in names:
        row = ROWS.get(name) or _numbered(name)
        if (row is None or row.fact is None) and name not in _UNUSED:
            raise ValueError(
                f"{what}: the attribute {name!r} must be in VOCABULARIES or UNUSED_WORDS of the vocabularies"
            )


def _numbered(name: str) -> AttributeRow | None:
    found = _NUMBERED.match(name)
    family = _FAMILIES.get(found[1]) if found else None
    if found and family is not None:
        return family._replace(place=(family.attribute, int(found[2]), _plain_rest(found[3] or "")))
    for prefix, each in _FAMILIES.items():
        if each.attribute[-1] == "*" and name.startswith(prefix):
            return each._replace(place=(each.attribute, 0, name[len(prefix) :]))
    return None


def _plain_rest(rest: str) -> str:
    """A name within a message, document or tool without the words that only repeat what it stands in."""
    for repeated in ("message.", "document.", "tool."):
        rest = rest.removeprefix(repeated)
    return rest.replace("tool_call.function.", "").replace("tool_call.", "").replace("message_content.", "")
