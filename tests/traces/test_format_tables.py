"""Tables of formats and settings: a row that nobody would read does not load, and every format is listed."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import Any

import pytest

from agentunit.addons.formats import chats, coding, exports
from agentunit.addons.formats.chats import event_logs
from agentunit.addons.formats.chats.event_logs import EventLog, LogStep, check_steps
from agentunit.addons.formats.exports._own_words import OPIK_WORDS, check_words
from agentunit.addons.formats.exports._span_spellings import SPELLINGS, check_spelling
from agentunit.addons.review._trace_settings import SETTINGS, check_setting
from agentunit.plugins import Plugin
from agentunit.traces import formats, otlp
from agentunit.traces.formats_base import TraceFormat
from agentunit.traces.vocabularies.attribute_rows import learn, require_attributes

WRONG_STEPS: dict[str, tuple[LogStep, str]] = {
    "does": (LogStep("tell", {"text": ("text",)}), "does must be one of say, message, call, result"),
    "part": (
        LogStep("say", {"words": ("text",)}),
        "a part of 'say' must be one of agent, model, prompt, session_id, text; received 'words'",
    ),
    "role": (LogStep("say", {}, role="robot"), "role must be one of user, assistant; received 'robot'"),
}


@pytest.mark.parametrize("wrong", WRONG_STEPS)
def test_a_step_that_adds_nothing_is_refused(wrong):
    step, sentence = WRONG_STEPS[wrong]
    log = EventLog("acme", {"acme.said": step}, frozenset(), frozenset(), ("at",))
    for check in (check_steps, lambda log: event_logs._format(log, "", bool, list)):
        with pytest.raises(ValueError, match=r"acme, step 'acme\.said': ") as refused:
            check(log)
        assert sentence in str(refused.value)


def test_an_event_is_not_silent_and_a_step():
    log = EventLog("acme", {"said": LogStep("say")}, frozenset(("said",)), frozenset(), ("at",))
    with pytest.raises(ValueError, match=r"acme, step 'said': the type is listed as silent as well"):
        check_steps(log)


WRONG_WORDS: dict[str, tuple[dict[str, Any], str]] = {
    "types": ({"types": {"search": "RETRIVER"}}, "a kind in types must be one of LLM, CHAIN, TOOL"),
    "facts": ({"facts": {"sesion.id": ("thread_id",)}}, "the attribute 'sesion.id' must be in VOCABULARIES"),
    "call_facts": ({"call_facts": {"gen_ai.request.modle": ("model",)}}, "the attribute 'gen_ai.request.modle'"),
    "field": ({"usage": ("counts.all",)}, "the field that 'counts.all' begins with must be one of"),
    "place": ({"known": {**OPIK_WORDS.known, "meta": frozenset()}}, "the place 'meta', of which fields are known,"),
}


@pytest.mark.parametrize("wrong", WRONG_WORDS)
def test_words_of_a_tool_that_would_be_lost_are_refused(wrong):
    changes, sentence = WRONG_WORDS[wrong]
    with pytest.raises(ValueError, match="opik: ") as refused:
        check_words(OPIK_WORDS._replace(**changes))
    assert sentence in str(refused.value)


def test_a_spelling_of_which_a_part_is_not_read_is_refused():
    by_name = {spelling.name: spelling for spelling in SPELLINGS}
    with pytest.raises(ValueError, match=r"spelling 'jaeger': attributes must name a place"):
        check_spelling(by_name["jaeger"]._replace(attributes=()))
    with pytest.raises(ValueError, match=r"spelling 'opik': status is not read"):
        check_spelling(by_name["opik"]._replace(status=("status",)))


@pytest.mark.parametrize(
    "change", [{"cause": "hiden"}, {"adds": ("answers",)}, {"only_with": ("x",)}, {"unless": ("x",)}]
)
def test_a_setting_that_would_never_be_shown_is_refused(change):
    with pytest.raises(ValueError, match=r"setting '.+': (cause|a lack) must be one of "):
        check_setting(SETTINGS[0]._replace(**change))


def test_an_attribute_that_was_met_in_a_file_is_not_known_for_that():
    learn("acme.met")
    with pytest.raises(ValueError, match=r"acme: the attribute 'acme\.met'"):
        require_attributes("acme", ["acme.met"])


def test_an_own_format_goes_by_its_own_name():
    plugin = Plugin("trace format", "weave", "agentunit.addons.formats.exports.span_rows:OPIK")
    with pytest.raises(ValueError, match=r"_OWN_FORMATS: .+:OPIK is called 'opik'; received it as 'weave'"):
        formats._adopted(plugin.load(), plugin)


def test_every_format_is_listed():
    written = {spelling.name for spelling in SPELLINGS}
    for package in (otlp, exports, chats, coding):
        for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            members = vars(import_module(found.name)).values()
            written |= {each.name for each in members if type(each) is TraceFormat}
    assert written <= set(formats._OWN_FORMATS)
