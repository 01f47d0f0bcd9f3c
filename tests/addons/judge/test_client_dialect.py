"""Servers that refuse parameters: asked without them, once for all calls."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge_asking import SCHEMA, ask_all, echo, question, settings_for
from judge_faults import Fault, failing
from judge_server import JudgeServer, Received

from agentunit.addons.judge import _calls as calls
from agentunit.addons.judge._chat_completion import Dialect
from agentunit.addons.judge.client import JudgeClient


def _asked_one_by_one(server: JudgeServer, n_questions: int = 5) -> list[str | None]:
    client = JudgeClient(settings_for(server, concurrency=1))
    replies = ask_all(client, (question(f"number {number}") for number in range(n_questions)))
    client.close()
    return [reply.problem for reply in replies]


def _formats(server: JudgeServer) -> list[str]:
    return [call.body.get("response_format", {}).get("type", "plain") for call in server.calls]


def test_what_is_sent() -> None:
    with JudgeServer(echo) as server:
        client = JudgeClient(settings_for(server, api_key="a-key-of-the-user"))
        ask_all(client, [question("so?", max_tokens=77)])
        client.close()

    (call,) = server.calls
    assert call.body == {
        "model": "judge-1",
        "messages": [{"role": "system", "content": "Judge."}, {"role": "user", "content": "so?"}],
        "max_tokens": 77,
        "temperature": 0,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "claims", "schema": SCHEMA, "strict": True},
        },
    }
    assert call.headers["authorization"] == "Bearer a-key-of-the-user"
    assert call.headers["user-agent"] == "agentunit"
    assert call.path == "/v1/chat/completions"


@pytest.mark.parametrize(
    ("structured", "formats"),
    [
        ("json_schema", ["json_schema"] * 5),
        ("json_object", ["json_schema"] + ["json_object"] * 5),
        ("none", ["json_schema", "json_object"] + ["plain"] * 5),
    ],
)
def test_the_format_of_replies_is_found_once(structured: Any, formats: list[str]) -> None:
    with JudgeServer(echo, structured=structured) as server:
        assert _asked_one_by_one(server) == [None] * 5

    assert _formats(server) == formats


def test_a_server_that_does_not_say_why_is_asked_without_a_format() -> None:
    def mute(request: Received) -> Fault | None:
        return failing(400, "bad request") if "response_format" in request.body else None

    with JudgeServer(echo, faults=mute) as server:
        assert _asked_one_by_one(server) == [None] * 5

    assert _formats(server) == ["json_schema", "json_object"] + ["plain"] * 5


def test_many_at_once_find_it_without_losing_a_question() -> None:
    with JudgeServer(echo, structured="none", latency_s=0.02) as server:
        client = JudgeClient(settings_for(server, concurrency=20, max_attempts=1))
        replies = ask_all(client, (question(f"number {number}") for number in range(200)))
        client.close()

    assert {reply.problem for reply in replies} == {None}
    assert len(server.calls) <= 200 + 2 * 20


def test_one_refused_question_does_not_change_how_others_are_asked() -> None:
    def too_long(request: Received) -> Fault | None:
        return failing(400, "too many words") if "number 2" in request.body["messages"][-1]["content"] else None

    with JudgeServer(echo, faults=too_long) as server:
        problems = _asked_one_by_one(server)

    assert problems == [None, None, "HTTP 400: too many words", None, None]
    assert set(_formats(server)) == {"json_schema"}


def test_a_refusal_of_the_first_question_is_told_as_it_was() -> None:
    with JudgeServer(echo, faults=lambda request: failing(400, "too many words")) as server:
        problems = _asked_one_by_one(server, 1)

    assert problems == ["HTTP 400: too many words"]
    assert _formats(server) == ["json_schema", "json_object", "plain"]


def test_new_names_and_fixed_temperatures_are_learnt() -> None:
    with JudgeServer(
        echo, structured="json_object", needs_max_completion_tokens=True, refuses_temperature=True
    ) as server:
        assert _asked_one_by_one(server) == [None] * 5

    last = server.calls[-1].body
    assert {"max_completion_tokens", "model", "messages", "response_format"} == set(last)
    assert len(server.calls) == 5 + 3


REFUSALS_OF_TEMPERATURE = [
    "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported.",
    "Unsupported parameter: 'temperature' is not supported with this model.",
    "Unrecognized request argument supplied: temperature",
    "temperature: Extra inputs are not permitted",
    "`temperature` is deprecated for this model",
    "invalid temperature: only 1 is allowed for this model",
    "Unknown parameter: 'temperature'.",
]
OTHER_REFUSALS = [
    "This model's maximum context length is 8192 tokens; the temperature of the message is irrelevant",
    "the content about body temperature was flagged",
    "error while sampling with temperature 0.0: out of memory",
]


@pytest.mark.parametrize("message", REFUSALS_OF_TEMPERATURE)
def test_a_refused_temperature_is_left_out_and_the_run_says_so(message: str) -> None:
    def refuse(request: Received) -> Fault | None:
        return failing(400, message) if "temperature" in request.body else None

    with JudgeServer(echo, faults=refuse) as server:
        client = JudgeClient(settings_for(server, concurrency=1))
        replies = ask_all(client, (question(f"number {number}") for number in range(5)))
        problems = client.usage.problems
        client.begin_run()
        ask_all(client, [question("in the next run")])
        client.close()

    assert [reply.problem for reply in replies] == [None] * 5
    assert len(server.calls) == 5 + 1 + 1
    assert problems == client.usage.problems == [calls.NO_TEMPERATURE]


@pytest.mark.parametrize("message", OTHER_REFUSALS)
def test_an_error_that_mentions_temperature_does_not_drop_it(message: str) -> None:
    with JudgeServer(echo, faults={2: failing(400, message)}) as server:
        client = JudgeClient(settings_for(server, concurrency=1))
        problems = [ask_all(client, [question(f"number {number}")])[0].problem for number in range(5)]
        client.close()

    assert problems == [None, None, f"HTTP 400: {message}", None, None]
    assert {call.body["temperature"] for call in server.calls} == {0}
    assert client.usage.problems == []


def test_a_temperature_whose_refusal_was_not_the_reason_is_kept() -> None:
    def refuse(request: Received) -> Fault | None:
        is_bad = "number 2" in request.body["messages"][-1]["content"]
        return failing(400, "'temperature' is not supported here") if is_bad else None

    with JudgeServer(echo, faults=refuse) as server:
        client = JudgeClient(settings_for(server, concurrency=1))
        problems = [ask_all(client, [question(f"number {number}")])[0].problem for number in range(5)]
        client.close()

    assert problems == [None, None, "HTTP 400: 'temperature' is not supported here", None, None]
    assert [call.body.get("temperature") for call in server.calls][-2:] == [0, 0]
    assert client.usage.problems == []


@given(st.sampled_from([400, 415, 422, 501]), st.text(max_size=60), st.booleans())
def test_a_dialect_can_only_get_easier_so_trying_ends(status: int, message: str, had_schema: bool) -> None:
    dialect = Dialect()
    message += "; use max_completion_tokens; unsupported parameter: temperature"
    while (found := dialect.easier(status, message, had_schema=had_schema)) is not None:
        assert found[0].ease == dialect.ease + 1
        dialect = found[0]
    assert dialect.ease <= 4
    assert dialect.tokens_name == "max_completion_tokens"
    assert not dialect.with_temperature
