"""What calls cost, and a cap that holds whatever the server does."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judge_asking import ask_all, ask_one, echo, question, settings_for
from judge_faults import Fault, dropped, empty_choices, failing, no_usage, rate_limited, truncated
from judge_server import JudgeServer, Received
from virtual_time import run_virtually

from agentunit.addons.judge import _call_limits as limits
from agentunit.addons.judge import _calls as calls
from agentunit.addons.judge._call_limits import SpendCap, Tariff
from agentunit.addons.judge.client import JudgeClient
from agentunit.installation import install_command
from agentunit.metrics import usage

PRICES = {"usd_per_million_input": 2.0, "usd_per_million_output": 10.0}


@pytest.fixture(autouse=True)
def _short_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "_FIRST_BACKOFF_S", 0.01)
    monkeypatch.setattr(limits, "_LEAST_PAUSE_S", 0.01)


def test_tokens_and_cost_are_those_the_server_states() -> None:
    with JudgeServer(echo) as server:
        client = JudgeClient(settings_for(server, **PRICES))
        (reply,) = ask_all(client, [question("12345678")])
        client.close()

    # "Judge." is 2 tokens of 4 characters, the question 2, the reply '{"echo": "12345678"}' 5.
    assert (reply.prompt_tokens, reply.completion_tokens, reply.model) == (4, 5, "judge-1")
    assert reply.cost_usd == pytest.approx(4 * 2e-6 + 5 * 1e-5)
    assert client.usage.cost_usd == pytest.approx(reply.cost_usd)
    assert (client.usage.prompt_tokens, client.usage.completion_tokens) == (4, 5)


@pytest.mark.parametrize("usage", [{"prompt_tokens": 0, "completion_tokens": 0}, {"prompt_tokens": 3}])
def test_a_server_that_states_no_tokens_for_a_reply_does_not_get_past_the_cap(usage: dict[str, int]) -> None:
    with JudgeServer(echo, faults=lambda _: Fault(top={"usage": usage})) as server:
        client = JudgeClient(settings_for(server, **PRICES, max_spend_usd=0.05, concurrency=1))
        replies = ask_all(client, (question(str(number)) for number in range(10)))
        client.close()
    answered = [reply for reply in replies if reply.text is not None]
    assert 0 < len(answered) == server.n_calls == client.usage.unstated < 10
    assert all("the spend cap is reached" in (reply.problem or "") for reply in replies if reply.text is None)


def test_without_a_price_the_cost_is_unknown() -> None:
    with JudgeServer(echo) as server:
        client = JudgeClient(settings_for(server))
        (reply,) = ask_all(client, [question()])
        client.close()

    assert reply.prompt_tokens is not None
    assert (reply.cost_usd, client.usage.cost_usd) == (None, None)


def test_list_prices_are_used_for_models_that_have_one() -> None:
    pytest.importorskip("genai_prices")
    tariff = Tariff(settings_for("http://127.0.0.1:1/v1", model="gpt-4o-mini"))
    assert tariff.cost_usd(1000, 100) == usage.price_usd("gpt-4o-mini", 1000, 100) is not None
    assert tariff.cost_usd(1000, 100, 500) == usage.price_usd("gpt-4o-mini", 1000, 100, 500)


def test_every_attempt_that_states_tokens_is_counted() -> None:
    with JudgeServer(echo, faults={0: empty_choices(), 1: truncated(), 2: failing(400)}) as server:
        client = JudgeClient(settings_for(server, **PRICES))
        first, second = ask_all(client, [question("12345678", schema=None)]), ask_all(client, [question("12345678")])
        client.close()

    # The first attempt was billed and told no text, the second may have been billed, the third was refused.
    assert (first[0].attempts, first[0].prompt_tokens, first[0].text) == (3, 4, None)
    assert second[0].text == '{"echo": "12345678"}'
    assert client.usage.prompt_tokens == 8
    assert client.usage.unstated == 1


def test_a_cap_without_a_price_sends_nothing() -> None:
    with JudgeServer(echo) as server:
        client = JudgeClient(settings_for(server, max_spend_usd=1.0))
        replies = ask_all(client, [question(), question("another")])
        client.close()

    assert not server.calls
    assert {reply.text for reply in replies} == {None}
    assert all("the price of the model 'judge-1' is not known" in (reply.problem or "") for reply in replies)
    assert client.usage.failures == 2


def test_the_way_out_names_the_price_table_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_for("http://127.0.0.1:1/v1", max_spend_usd=1.0)
    monkeypatch.setattr(limits, "prices_installed", lambda: False)
    monkeypatch.setattr(limits, "price_usd", lambda *_: None)
    assert (limits.why_cap_cannot_hold(settings) or "").endswith(f"{install_command('prices')})")


def _mixed(request: Received) -> Fault | None:
    faults = (None, failing(500), dropped(0.5), rate_limited("0"), truncated(), no_usage(), failing(400), None)
    return faults[request.number % len(faults)]


@pytest.mark.parametrize("faults", [{}, _mixed], ids=["no faults", "all kinds of faults"])
@pytest.mark.parametrize("cap_usd", [0.0, 0.02, 0.04])
def test_the_cap_holds(faults: object, cap_usd: float) -> None:
    with JudgeServer(echo, faults=faults, latency_s=0.005) as server:  # type: ignore[arg-type]
        client = JudgeClient(settings_for(server, concurrency=20, max_spend_usd=cap_usd, **PRICES))
        requests = [question(f"number {number} " + "word " * 40, max_tokens=200, schema=None) for number in range(150)]
        replies = ask_all(client, requests)
        client.close()

    # What the server would have billed for every single request that reached it, failed ones included.
    billed_usd = sum(_bill(call) for call in server.calls)
    assert billed_usd <= cap_usd
    assert (client.usage.cost_usd or 0.0) <= cap_usd
    capped = [reply for reply in replies if reply.problem and reply.problem.startswith("the spend cap is reached")]
    assert capped
    if cap_usd and not faults:
        # It stops because the next call might not fit, not long before.
        assert billed_usd > 0.8 * cap_usd
        assert len(capped) + sum(reply.text is not None for reply in replies) == 150


def _bill(call: Received) -> float:
    text = "".join(message["content"] for message in call.body["messages"])
    reply = len(call.body["messages"][-1]["content"]) + 20
    return (len(text) / 4 * PRICES["usd_per_million_input"] + reply / 4 * PRICES["usd_per_million_output"]) / 1e6


def test_a_kept_reply_costs_nothing_and_passes_the_cap(tmp_path: object) -> None:
    with JudgeServer(echo) as server:
        ask_one(settings_for(server, cache=str(tmp_path), **PRICES))
        reply = ask_one(settings_for(server, cache=str(tmp_path), max_spend_usd=0.0, **PRICES))

    assert (reply.cached, reply.text) == (True, '{"echo": "is it so?"}')


@settings(max_examples=60, deadline=None)
@given(
    st.floats(0, 10),
    st.lists(st.tuples(st.floats(0, 3), st.floats(0, 1)), max_size=30),
    st.integers(0, 99),
)
def test_spent_and_set_aside_never_exceed_the_cap(cap: float, calls: list[tuple[float, float]], seed: int) -> None:
    async def spend_all() -> float:
        purse, chance = SpendCap(cap), random.Random(seed)
        aside = 0.0

        async def one(most: float, share: float) -> None:
            nonlocal aside
            await asyncio.sleep(chance.random())
            if not await purse.set_aside(most):
                return
            aside += most
            assert purse.spent_usd + aside <= cap + 1e-9
            await asyncio.sleep(chance.random())
            aside -= most
            purse.settle(most, most * share)

        await asyncio.gather(*(one(*each) for each in calls))
        return purse.spent_usd

    assert run_virtually(spend_all()) <= cap + 1e-9


def test_what_was_not_billed_cost_nothing_and_what_may_have_been_is_unknown() -> None:
    faults = {0: failing(400, "no"), 1: failing(503), 2: truncated(), 3: failing(400, "no")}
    with JudgeServer(echo, faults=faults) as server:
        client = JudgeClient(settings_for(server, concurrency=1, **PRICES))
        refused, broken = ask_all(client, [question("a", schema=None), question("b", schema=None)])
        client.close()

    assert (refused.attempts, refused.prompt_tokens, refused.cost_usd) == (1, 0, 0.0)
    assert (broken.attempts, broken.prompt_tokens, broken.cost_usd) == (3, None, None)
    assert (client.usage.unstated, client.usage.cost_usd) == (1, 0.0)


def test_a_call_that_waited_for_room_under_the_cap_is_not_made_where_it_became_pointless() -> None:
    with JudgeServer(echo, faults=lambda _: replace(failing(401, "a wrong key"), wait_s=0.1)) as server:
        # Room for one at a time.
        client = JudgeClient(settings_for(server, **PRICES, concurrency=2, max_spend_usd=0.015))
        replies = ask_all(client, [question("first"), question("second")])
        client.close()

    assert {reply.problem for reply in replies} == {"HTTP 401: a wrong key"}
    assert client.usage.calls == server.n_calls == 1
