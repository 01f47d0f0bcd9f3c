"""What a user may name as an agent, and what is refused."""

from __future__ import annotations

import asyncio
import sys
import textwrap

import pytest

from agentunit.adapters._callable import CallableAgent
from agentunit.adapters.base import AgentResult, as_agent
from agentunit.adapters.command import CommandAgent
from agentunit.adapters.http import HttpAgent
from agentunit.core.case import DatasetCase
from agentunit.core.records import Outcome
from agentunit.core.trace import TraceLog

MODULE = """
    class Answering:
        def method(self, query):
            return "from a method"

    def answer(query):
        return "from a function"

    instance = Answering()
    text = "no agent"
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module in the current folder, which is not on Python's path."""
    (tmp_path / "my_named_agent.py").write_text(textwrap.dedent(MODULE))
    (tmp_path / "my_broken_agent.py").write_text("import no_such_module_at_all")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    yield
    for name in ("my_named_agent", "my_broken_agent"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("name", "output"),
    [("my_named_agent:answer", "from a function"), (" my_named_agent:instance.method ", "from a method")],
)
def test_a_function_is_found_by_name_in_the_current_folder(module, ask, name, output):
    assert ask(name).outcome.output == output


@pytest.mark.parametrize(
    ("name", "error", "said"),
    [
        ("my_named_agent:other", AttributeError, "'my_named_agent' has no 'other'"),
        ("my_named_agent:Answering", TypeError, "must be an instance, not a class; received the class Answering"),
        ("my_named_agent:text", TypeError, "must be a callable or an Agent; received a string"),
        ("my_missing_agent:answer", ImportError, "'my_missing_agent:answer' cannot be imported: No module named"),
        ("my_broken_agent:answer", ImportError, "No module named 'no_such_module_at_all'"),
        ("my_named_agent", ValueError, "agent must be a callable, 'module:function'"),
        ("my_named_agent:", ValueError, "agent must be a callable"),
        ("what is this", ValueError, "received 'what is this'"),
        ("", ValueError, "received ''"),
        (3, TypeError, "received int"),
        (None, TypeError, "received NoneType"),
        (CallableAgent, TypeError, "must be an instance, not a class; received the class CallableAgent"),
    ],
)
def test_what_is_no_agent_is_refused_with_a_sentence(module, name, error, said):
    with pytest.raises(error, match=said) as raised:
        as_agent(name)
    assert str(raised.value).startswith("as_agent: ")


def test_kinds():
    assert isinstance(as_agent("command: echo hi"), CommandAgent)
    assert isinstance(as_agent("HTTPS://example.org/ask"), HttpAgent)
    assert isinstance(as_agent(str.upper), CallableAgent)
    assert (as_agent(str.upper, workers=7).concurrency_hint, as_agent("command: echo").concurrency_hint) == (7, None)

    async def agent(query):
        return query

    assert as_agent(agent).concurrency_hint is None


def test_an_agent_is_taken_as_it_is():
    class Own:
        concurrency_hint = None

        async def run(self, case, *, timeout_s=None, seed=None):
            return AgentResult(Outcome(output="own"), TraceLog(), 0.0)

        async def close(self):
            pass

    own = Own()
    assert as_agent(own) is own
    assert asyncio.run(as_agent(own).run(DatasetCase("q"))).outcome.output == "own"


@pytest.mark.parametrize("workers", [0, -1, True, 2.0, "4"])
def test_workers_must_be_a_whole_number(workers):
    with pytest.raises(ValueError, match="as_agent: workers must be a whole number of at least 1; received"):
        as_agent(str.upper, workers=workers)
