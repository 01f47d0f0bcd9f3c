"""Rows of the vocabularies: one more changes nothing for the others, and a wrong one fails when it is loaded."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest
from spans_of import TRACE

from agentunit.traces.spans import Span
from agentunit.traces.vocabularies import _span_claims as claims
from agentunit.traces.vocabularies import _table as table
from agentunit.traces.vocabularies import attribute_rows as rows
from agentunit.traces.vocabularies import facts_of
from agentunit.traces.vocabularies.attribute_rows import FACTS, KIND_READERS, READERS, declared_rows, token_kinds

# A vocabulary that states all that others state, in words of its own, and so many of them that ranks cannot be sums.
ACME = {
    "kind": "acme.kind:plain_kind",
    "input_tokens": " ".join(f"acme.in.{number}" for number in range(150)),
    "output_tokens": "acme.out",
    "total_tokens": "acme.total",
    "usage": "acme.usage",
    "cost": "acme.cost",
    "model": "acme.model",
    "input": "acme.input",
    "output": "acme.output",
}
SPEAKING = {
    "openinference": {"openinference.span.kind": "LLM", "llm.token_count.prompt": 5, "llm.token_count.completion": 7},
    "mlflow": {"mlflow.spanType": "LLM", "mlflow.chat.tokenUsage": '{"input_tokens": 11, "output_tokens": 12}'},
    "trulens": {"ai.observability.span_type": "llm", "ai.observability.cost.num_prompt_tokens": 21},
    "vercel": {"ai.operationId": "ai.generateText.doGenerate", "ai.usage.promptTokens": 31},
    "gen_ai": {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 41, "gen_ai.usage.cost": 4.5},
    "langsmith": {"langsmith.span.kind": "llm", "langsmith.usage_metadata": '{"input_tokens": 51}'},
    "langfuse": {
        "langfuse.observation.type": "GENERATION",
        "langfuse.observation.usage_details": '{"input": 61, "output": 62}',
        "langfuse.observation.cost_details": '{"total": 0.61}',
    },
    "whole trace": {"mlflow.trace.tokenUsage": '{"input_tokens": 71}'},
}


def _counted(attributes: dict[str, Any]) -> tuple[Any, ...]:
    facts = facts_of(Span(TRACE, "a", attributes=dict(attributes)))
    origins = {fact: row.attribute for fact, row in (facts.origins or {}).items()}
    return facts.kind, facts.usage, facts.cost, origins, facts.disagreements


def _spans() -> list[dict[str, Any]]:
    alone = list(SPEAKING.values())
    pairs = [{**one, **other} for one in alone for other in alone]
    return [*pairs, {name: value for each in alone for name, value in each.items()}]


def _use(monkeypatch: pytest.MonkeyPatch, vocabularies: dict[str, dict[str, str]]) -> None:
    declared, families = declared_rows(vocabularies, table.FIRST)
    for module in (rows, claims):
        monkeypatch.setattr(module, "ROWS", declared)
    monkeypatch.setattr(rows, "_FAMILIES", families)


@pytest.mark.parametrize("place", range(len(table.VOCABULARIES) + 1))
def test_one_more_vocabulary_changes_nobody_elses_counts(place, monkeypatch):
    before = [_counted(attributes) for attributes in _spans()]
    known = list(table.VOCABULARIES.items())
    _use(monkeypatch, dict([*known[:place], ("acme", ACME), ("other", {"cost": "other.cost"}), *known[place:]]))
    assert [_counted(attributes) for attributes in _spans()] == before


def test_a_new_vocabulary_counts_at_its_place_and_langfuse_before_it(monkeypatch):
    _use(monkeypatch, {"acme": ACME, **table.VOCABULARIES})
    acme = {"acme.kind": "llm", "acme.in.149": 81, "acme.out": 82}
    assert _counted({**SPEAKING["openinference"], **acme})[1] == {"prompt_tokens": 81, "completion_tokens": 82}
    assert _counted({**SPEAKING["langfuse"], **acme})[1] == {"prompt_tokens": 61, "completion_tokens": 62}


KINDS = ", ".join(KIND_READERS)
WRONG_ROWS = {
    "a kind without a reader": (
        {"kind": "acme.kind"},
        "vocabulary 'acme', kind in 'acme.kind': the reader, written as acme.kind:NAME, must be one of "
        f"{KINDS}; received ''",
    ),
    "a kind with an unknown reader": ({"kind": "acme.kind:kinds"}, f"must be one of {KINDS}; received 'kinds'"),
    "a kind with a reader of something else": ({"kind": "acme.kind:shown"}, f"one of {KINDS}; received 'shown'"),
    "an unknown reader": (
        {"input": "acme.input:hidden"},
        f"vocabulary 'acme', input in 'acme.input': the reader must be one of {', '.join(READERS)}; received 'hidden'",
    ),
    "a reader of kinds elsewhere": ({"input": "acme.input:plain_kind"}, "received 'plain_kind'"),
    "a reader where none is used": (
        {"usage": "acme.usage:shown"},
        "vocabulary 'acme', usage in 'acme.usage': no reader can be named here, since none is used; received 'shown'",
    ),
    "an unknown fact": (
        {"imput": "acme.input"},
        f"vocabulary 'acme': a fact must be one of {', '.join(FACTS)}; received 'imput'",
    ),
    "a fact that is not stated by numbered attributes": (
        {"model": "acme.models.#"},
        "a fact of attributes that end in '#' must be one of input_messages, output_messages, documents, tools; "
        "received 'model'",
    ),
    "a fact that is not stated by attributes of any name": ({"documents": "acme.documents.*"}, "one of keywords"),
    "an attribute of another vocabulary": (
        {"model": "llm.model_name"},
        "vocabulary 'acme', model in 'llm.model_name': 'openinference' states model in this attribute already",
    ),
    "an attribute that is listed as unused": ({"input": "team_id"}, "UNUSED_WORDS lists this attribute as unused"),
}


@pytest.mark.parametrize("wrong", WRONG_ROWS)
def test_a_wrong_row_is_refused_by_name(wrong):
    row, sentence = WRONG_ROWS[wrong]
    with pytest.raises(ValueError, match="acme") as refused:
        declared_rows({**table.VOCABULARIES, "acme": row}, table.FIRST)
    assert sentence in str(refused.value)


@pytest.mark.parametrize("first", [{"cost": "acme"}, {"costs": "langfuse"}, {"agent": "langfuse"}])
def test_what_counts_first_must_be_stated_by_that_vocabulary(first):
    with pytest.raises(ValueError, match=r"FIRST: the vocabulary that counts first for '\w+' must be one of"):
        declared_rows(table.VOCABULARIES, first)


def _load_rows_again() -> None:
    spec = importlib.util.spec_from_file_location("rows_again", rows.__file__)
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))


def test_the_tables_as_they_are_load():
    _load_rows_again()


@pytest.mark.parametrize(
    ("name", "wrong", "sentence"),
    [
        ("VOCABULARIES", {**table.VOCABULARIES, "haystack": {"kind": "haystack.kind"}}, "kind in 'haystack.kind'"),
        ("FIRST", {"cost": "langfuze"}, "FIRST: the vocabulary that counts first for 'cost'"),
        ("PLAIN_KINDS", {"llm": "model"}, "a kind must be one of llm, tool"),
        ("OPERATIONS", {"Chat": "llm"}, "must be in lower case; received 'Chat'"),
        ("SPAN_NAMES", {"haystack.agent.run": "agents"}, "SPAN_NAMES: a kind"),
        ("TOKEN_NAMES", {"tokens": "n"}, "TOKEN_NAMES: a fact"),
        ("PLAIN_DATA", frozenset(("langfuze",)), "PLAIN_DATA: a vocabulary"),
        ("ABOUT_TRACE", frozenset(("langfuze",)), "ABOUT_TRACE: a vocabulary"),
    ],
)
def test_a_wrong_table_does_not_load(name, wrong, sentence, monkeypatch):
    monkeypatch.setattr(table, name, wrong)
    with pytest.raises(ValueError, match=r"received|must be") as refused:
        _load_rows_again()
    assert sentence in str(refused.value)


@pytest.mark.parametrize("names", [{"input_tokens": "in", "output_tokens": "in"}, {"input_tokens": "unit"}])
def test_a_name_of_a_token_count_has_one_meaning(names):
    with pytest.raises(ValueError, match=r"TOKEN_NAMES, \w+: '\w+' is a name of \w+ already"):
        token_kinds(names)
