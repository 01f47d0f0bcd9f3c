"""Tokens and money, hand-checked: which record of them counts, and what each vocabulary means."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from math import isfinite
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentunit.core.records import Outcome
from agentunit.core.trace import TraceEvent, TraceLog
from agentunit.metrics import usage as usage_module
from agentunit.metrics.builtin import CostMetric, TokenUsageMetric
from agentunit.metrics.inputs import Item
from agentunit.metrics.usage import recorded_cost

TOO_LARGE = pytest.param(10**400, id="too large for a float")
USD_PER_PROMPT_TOKEN, USD_PER_CACHED_TOKEN, USD_PER_COMPLETION_TOKEN = 0.002, 0.001, 0.01


def forget_prices() -> None:
    for value in list(vars(usage_module).values()):
        if callable(getattr(value, "cache_clear", None)):
            value.cache_clear()


@pytest.fixture
def price_table(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A price table of one model, in the place of the optional package, so that sums can be done by hand."""

    def calc_price(usage: Any, model_ref: str) -> Any:
        if model_ref != "abacus-1":
            raise LookupError(model_ref)
        cached = usage.cache_read_tokens or 0
        total = (
            (usage.input_tokens - cached) * USD_PER_PROMPT_TOKEN
            + cached * USD_PER_CACHED_TOKEN
            + usage.output_tokens * USD_PER_COMPLETION_TOKEN
        )
        return SimpleNamespace(total_price=total)

    def usage_class(
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        cache_read_tokens: int | None = None,
        **_: Any,
    ) -> Any:
        return SimpleNamespace(
            input_tokens=input_tokens, output_tokens=output_tokens, cache_read_tokens=cache_read_tokens
        )

    fake: Any = ModuleType("genai_prices")
    fake.Usage, fake.calc_price = usage_class, calc_price
    monkeypatch.setitem(sys.modules, "genai_prices", fake)
    monkeypatch.setattr(usage_module, "find_spec", lambda name: object())
    forget_prices()
    yield
    forget_prices()


@pytest.fixture
def no_price_table(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(usage_module, "find_spec", lambda name: None)
    forget_prices()
    yield
    forget_prices()


def trace_of(*events: tuple[str, dict[str, Any]], **metadata: Any) -> TraceLog:
    return TraceLog([TraceEvent(kind, payload) for kind, payload in events], metadata)


def tool(cost: Any = None, **payload: Any) -> tuple[str, dict[str, Any]]:
    return "tool_call", {"name": "t", **payload, **({} if cost is None else {"cost": cost})}


def llm(**payload: Any) -> tuple[str, dict[str, Any]]:
    return "llm_call", payload


# Token counts of one usage dict, in every vocabulary: (prompt, completion, total).
VOCABULARIES = [
    ({"prompt_tokens": 150, "completion_tokens": 75, "total_tokens": 225}, (150, 75, 225)),
    ({"prompt_tokens": 150, "completion_tokens": 75}, (150, 75, 225)),
    ({"input_tokens": 150, "output_tokens": 75}, (150, 75, 225)),
    ({"gen_ai.usage.input_tokens": 150, "gen_ai.usage.output_tokens": 75}, (150, 75, 225)),
    ({"gen_ai.usage.prompt_tokens": 150, "gen_ai.usage.completion_tokens": 75}, (150, 75, 225)),
    ({"total_tokens": 225}, (None, None, 225)),
    ({"prompt_tokens": 150, "total_tokens": 225}, (150, None, 225)),
    ({"prompt_tokens": 0, "completion_tokens": 0}, (0, 0, 0)),
    ({"prompt_tokens": 150.0, "completion_tokens": 75}, (150, 75, 225)),
    # A recorded total is taken as it is: reasoning tokens and the like may be in it.
    ({"prompt_tokens": 150, "completion_tokens": 75, "total_tokens": 300}, (150, 75, 300)),
    # Anthropic counts cached tokens beside the input: 10 + 90 + 20 = 120.
    (
        {"input_tokens": 10, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 20, "output_tokens": 5},
        (120, 5, 125),
    ),
    ({"input_tokens": 10, "cache_read_input_tokens": None, "output_tokens": 5}, (10, 5, 15)),
    # OpenAI counts them within the prompt.
    ({"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 90}}, (100, 5, 105)),
    ({"input_tokens": 100, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 90}}, (100, 5, 105)),
    # So do the OpenTelemetry names.
    (
        {
            "gen_ai.usage.input_tokens": 100,
            "gen_ai.usage.cache_read.input_tokens": 90,
            "gen_ai.usage.output_tokens": 5,
        },
        (100, 5, 105),
    ),
    # A proxy that writes OpenAI's prompt_tokens (cached ones included) with Anthropic's cache counts beside them.
    ({"prompt_tokens": 100, "completion_tokens": 5, "cache_read_input_tokens": 90}, (100, 5, 105)),
    (
        {"prompt_tokens": 100, "input_tokens": None, "completion_tokens": 5, "cache_read_input_tokens": 90},
        (100, 5, 105),
    ),
]


@pytest.mark.parametrize(("usage", "counts"), VOCABULARIES)
@pytest.mark.parametrize("place", ["trace", "outcome", "llm_call usage", "llm_call payload"])
def test_token_vocabularies_wherever_they_stand(usage: dict[str, Any], counts: Any, place: str) -> None:
    trace, outcome = TraceLog(), Outcome()
    if place == "trace":
        trace = trace_of(usage=usage)
    elif place == "outcome":
        outcome = Outcome(usage=usage)
    elif place == "llm_call usage":
        trace = trace_of(llm(model="m", usage=usage))
    else:
        trace = trace_of(llm(model="m", **usage))
    result = TokenUsageMetric().evaluate(None, trace, outcome)
    detail = result.detail
    assert (detail["prompt_tokens"], detail["completion_tokens"], detail["total_tokens"]) == counts
    assert result.value == counts[2]
    assert isinstance(result.value, float)


def test_token_usage_takes_the_first_record_and_adds_nothing() -> None:
    calls = trace_of(llm(usage={"total_tokens": 1}), usage={"total_tokens": 100})
    metric = TokenUsageMetric()
    assert metric.evaluate(None, calls, Outcome(usage={"total_tokens": 10})).value == 100.0
    calls.metadata.clear()
    assert metric.evaluate(None, calls, Outcome(usage={"total_tokens": 10})).value == 10.0
    assert metric.evaluate(None, calls, Outcome()).value == 1.0


def test_an_empty_usage_dict_is_no_record() -> None:
    trace = trace_of(llm(usage={"total_tokens": 7}), usage={})
    assert TokenUsageMetric().evaluate(None, trace, Outcome(usage={"total_tokens": 10})).value == 10.0
    assert TokenUsageMetric().evaluate(None, trace, Outcome(usage={})).value == 7.0


def test_token_usage_of_llm_calls_is_their_sum() -> None:
    trace = trace_of(
        llm(usage={"prompt_tokens": 10, "completion_tokens": 1}),
        llm(usage={"input_tokens": 20, "cache_read_input_tokens": 5, "output_tokens": 2}),
        llm(model="no tokens recorded"),
        tool(),
    )
    result = TokenUsageMetric().evaluate(None, trace, None)
    assert result.value == 38.0  # (10 + 1) + (25 + 2)
    assert (result.detail["prompt_tokens"], result.detail["completion_tokens"]) == (35, 3)
    assert result.detail["source"] == "llm_call events"


def test_an_llm_call_without_a_total_leaves_the_sum_unknown() -> None:
    trace = trace_of(llm(usage={"total_tokens": 10}), llm(usage={"prompt_tokens": 3}))
    result = TokenUsageMetric().evaluate(None, trace, None)
    assert result.value is None
    assert "total" in result.detail["reason"]


@pytest.mark.parametrize(
    ("trace", "outcome"),
    [
        (TraceLog(), None),
        (TraceLog(), "answer"),
        (trace_of(llm(model="m")), Outcome()),
        (trace_of(usage=None), Outcome(usage=None)),
        (trace_of(usage={"prompt_tokens": 5}), Outcome()),
    ],
)
def test_no_tokens_recorded_is_none_with_a_reason(trace: TraceLog, outcome: Any) -> None:
    result = TokenUsageMetric().evaluate(None, trace, outcome)
    assert result.value is None
    assert result.detail["reason"]
    assert "error" not in result.detail


def test_usage_may_be_an_object_of_a_client_library() -> None:
    usage = SimpleNamespace(prompt_tokens=3, completion_tokens=4, total_tokens=7)
    outcome = SimpleNamespace(output="x", usage=usage)
    assert TokenUsageMetric().evaluate(None, TraceLog(), outcome).value == 7.0
    assert TokenUsageMetric().evaluate(None, trace_of(usage=usage), None).value == 7.0
    assert TokenUsageMetric().evaluate(None, trace_of(llm(model="m", usage=usage)), None).value == 7.0


@pytest.mark.parametrize("bad", ["many", -1, True, [1], {"n": 1}, TOO_LARGE])
def test_a_count_that_is_no_number_is_an_error_that_names_its_place(bad: Any) -> None:
    result = TokenUsageMetric().evaluate(None, trace_of(usage={"total_tokens": bad}), None)
    assert result.value is None
    assert "trace.metadata['usage']['total_tokens']" in result.detail["reason"]
    assert result.detail["error"]["type"] == "InputProblem"


@pytest.mark.parametrize("bad", ["many", 5, [1, 2], True])
def test_a_usage_that_is_no_dict_is_an_error_that_names_its_place(bad: Any) -> None:
    result = TokenUsageMetric().evaluate(None, trace_of(usage=bad), None)
    assert result.value is None
    assert "trace.metadata['usage'] must be a dict" in result.detail["reason"]


def test_two_counts_near_the_largest_float_do_not_overflow() -> None:
    usage = {"prompt_tokens": 1.7e308, "completion_tokens": 1.7e308}
    result = TokenUsageMetric().evaluate(None, trace_of(usage=usage), None)
    assert result.value is None or isfinite(result.value)


# Cost: the first total that exists; nothing is added to it.

TOTALS = [
    # trace.metadata, outcome, tool costs, value, source
    ({"cost": 0.5}, Outcome(cost=0.25), [1.0], 0.5, "trace.metadata['cost']"),
    ({"cost": None}, Outcome(cost=0.25), [1.0], 0.25, "outcome.cost"),
    ({}, Outcome(cost=0.25), [1.0], 0.25, "outcome.cost"),
    ({"cost": 0}, Outcome(cost=0.25), [1.0], 0.0, "trace.metadata['cost']"),  # a recorded zero is a record
    ({}, Outcome(cost=0.0), [1.0], 0.0, "outcome.cost"),
    ({}, Outcome(), [1.0, 0.5], 1.5, "events"),
    ({}, "a string", [1.0, None, 0.5], 1.5, "events"),
]


@pytest.mark.parametrize(("metadata", "outcome", "tool_costs", "value", "source"), TOTALS)
def test_cost_precedence(metadata: Any, outcome: Any, tool_costs: Any, value: float, source: str) -> None:
    trace = trace_of(*map(tool, tool_costs), **metadata)
    result = CostMetric().evaluate(None, trace, outcome)
    assert result.value == value
    assert result.detail["cost"] == value
    assert result.detail["source"] == source
    assert result.detail["backend"] == "recorded"
    assert result.detail["partial"] is False
    assert result.detail["tool_cost"] == (value if source == "events" else None)


@pytest.mark.usefixtures("price_table")
def test_llm_usage_is_priced_and_added_to_tool_costs() -> None:
    trace = trace_of(
        tool(0.25),
        llm(model="abacus-1", usage={"prompt_tokens": 100, "completion_tokens": 10}),
        llm(model="abacus-1", usage={"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 10}),
    )
    result = CostMetric().evaluate(None, trace, None)
    # 100 × 0.002 + 10 × 0.01 = 0.30;  10 × 0.002 + 90 × 0.001 + 10 × 0.01 = 0.21
    assert result.detail["llm_cost"] == pytest.approx(0.51)
    assert result.detail["tool_cost"] == 0.25
    assert result.value == pytest.approx(0.76)
    assert result.detail["partial"] is False
    assert result.detail["backend"] == "prices"


@pytest.mark.usefixtures("price_table")
def test_cached_tokens_of_openai_are_within_the_prompt() -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 0, "prompt_tokens_details": {"cached_tokens": 90}}
    result = CostMetric().evaluate(None, trace_of(llm(model="abacus-1", usage=usage)), None)
    assert result.value == pytest.approx(0.11)  # 10 × 0.002 + 90 × 0.001


@pytest.mark.usefixtures("price_table")
def test_cached_tokens_of_opentelemetry_are_within_the_input_too() -> None:
    usage = {"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 0}
    cached = {"gen_ai.usage.cache_read.input_tokens": 90}
    result = CostMetric().evaluate(None, trace_of(llm(model="abacus-1", **usage, **cached)), None)
    assert result.value == pytest.approx(0.11)  # 10 × 0.002 + 90 × 0.001


@pytest.mark.usefixtures("price_table")
@pytest.mark.parametrize(
    ("unpriced", "why"),
    [
        ({"model": "unheard-of", "usage": {"prompt_tokens": 5, "completion_tokens": 5}}, "unheard-of"),
        ({"usage": {"prompt_tokens": 5, "completion_tokens": 5}}, "no model"),
        ({"model": "abacus-1", "usage": {"total_tokens": 10}}, "prompt and completion"),
    ],
)
def test_usage_that_has_no_price_makes_the_cost_partial(unpriced: dict[str, Any], why: str) -> None:
    priced = llm(model="abacus-1", usage={"prompt_tokens": 100, "completion_tokens": 10})
    for others, known in (([tool(0.25)], 0.25), ([priced], 0.3), ([tool(0.25), priced], 0.55)):
        result = CostMetric().evaluate(None, trace_of(*others, llm(**unpriced)), None)
        assert result.value == pytest.approx(known)
        assert result.detail["partial"] is True
    alone = CostMetric().evaluate(None, trace_of(llm(**unpriced)), None)
    assert alone.value is None
    assert why in alone.detail["reason"]


@pytest.mark.usefixtures("price_table")
def test_an_llm_call_without_a_recorded_cost_is_not_forgotten_beside_one_with_it() -> None:
    trace = trace_of(
        llm(cost=0.5),
        llm(model="abacus-1", usage={"prompt_tokens": 100, "completion_tokens": 10}),
    )
    result = CostMetric().evaluate(None, trace, None)
    # 0.5 as recorded, and 0.3 by list price; leaving the second out is at the least partial.
    assert result.value == pytest.approx(0.8) or result.detail["partial"] is True


@pytest.mark.usefixtures("price_table")
def test_a_priced_total_covers_calls_that_have_no_price_of_their_own() -> None:
    total = {"usage": {"prompt_tokens": 100, "completion_tokens": 10}, "model": "abacus-1"}
    result = CostMetric().evaluate(None, trace_of(llm(name="draft"), **total), None)
    assert result.value == pytest.approx(0.3)
    assert result.detail["partial"] is False


def test_cached_tokens_beside_openais_own_count_are_not_added_to_it() -> None:
    both = {"prompt_tokens": 100, "input_tokens": 100, "output_tokens": 5, "cache_read_input_tokens": 90}
    result = TokenUsageMetric().evaluate(None, trace_of(usage=both), None)
    assert (result.detail["prompt_tokens"], result.value) == (100, 105.0)


@pytest.mark.parametrize(("amount", "usable"), [(1e99, True), (1e100, False), (1e200, False)])
def test_amounts_leave_room_to_be_added_up(amount: float, usable: bool) -> None:
    result = CostMetric().evaluate(None, trace_of(cost=amount), None)
    assert result.value == (amount if usable else None)


@pytest.mark.usefixtures("no_price_table")
def test_recorded_llm_costs_are_no_list_prices() -> None:
    result = CostMetric().evaluate(None, trace_of(llm(cost=0.5), tool(0.25)), None)
    assert (result.value, result.detail["llm_cost"], result.detail["tool_cost"]) == (0.75, 0.5, 0.25)
    assert result.detail["backend"] == "recorded"


@pytest.mark.usefixtures("no_price_table")
def test_without_the_price_table_the_way_out_is_named() -> None:
    call = llm(model="abacus-1", usage={"prompt_tokens": 100, "completion_tokens": 10})
    alone = CostMetric().evaluate(None, trace_of(call), None)
    assert alone.value is None
    assert "pip install" in alone.detail["reason"]
    beside_tools = CostMetric().evaluate(None, trace_of(call, tool(0.25)), None)
    assert (beside_tools.value, beside_tools.detail["partial"]) == (0.25, True)


def test_tokens_without_a_model_are_unpriced_usage() -> None:
    alone = CostMetric().evaluate(None, TraceLog(), Outcome(usage={"prompt_tokens": 5, "completion_tokens": 5}))
    assert alone.value is None
    assert "model" in alone.detail["reason"]
    with_tools = CostMetric().evaluate(None, trace_of(tool(0.25), usage={"total_tokens": 5}), None)
    assert (with_tools.value, with_tools.detail["partial"]) == (0.25, True)
    beside_a_call = CostMetric().evaluate(None, trace_of(tool(0.25), llm(model="m"), usage={"total_tokens": 5}), None)
    assert (beside_a_call.value, beside_a_call.detail["partial"]) == (0.25, True)


@pytest.mark.parametrize("trace", [TraceLog(), trace_of(tool()), trace_of(llm(model="m")), trace_of(tool(), tool())])
def test_no_cost_recorded_is_none_not_zero(trace: TraceLog) -> None:
    result = CostMetric().evaluate(None, trace, Outcome())
    assert result.value is None
    assert "cost" in result.detail["reason"]
    assert "error" not in result.detail


@pytest.mark.parametrize("bad", ["cheap", -0.01, True, float("nan"), float("inf"), [], {}, TOO_LARGE])
@pytest.mark.parametrize(
    ("where", "named"),
    [
        (lambda bad: (trace_of(cost=bad), None), "trace.metadata['cost']"),
        (lambda bad: (TraceLog(), Outcome(cost=bad)), "outcome.cost"),
        (lambda bad: (trace_of(tool(0.5), tool(bad)), None), "tool_call 2 cost"),
        (lambda bad: (trace_of(tool(0.5), llm(cost=bad)), None), "trace.events[1].cost"),
    ],
)
def test_a_cost_that_is_no_amount_is_an_error_that_names_its_place(bad: Any, where: Any, named: str) -> None:
    trace, outcome = where(bad)
    result = CostMetric().evaluate(None, trace, outcome)
    assert result.value is None
    assert named in result.detail["reason"]
    assert result.detail["error"]["type"] == "InputProblem"


def test_costs_near_the_largest_float_do_not_become_infinite() -> None:
    result = CostMetric().evaluate(None, trace_of(tool(1.7e308), tool(1.7e308)), None)
    assert result.value is None or isfinite(result.value)


@given(st.lists(st.none() | st.floats(0, 1e6), max_size=8))
def test_tool_costs_add_up_and_unknown_ones_stay_unknown(costs: list[float | None]) -> None:
    result = CostMetric().evaluate(None, trace_of(*map(tool, costs)), None)
    known = [cost for cost in costs if cost is not None]
    assert result.value == (pytest.approx(sum(known)) if known else None)


def test_the_installed_price_table_knows_a_common_model() -> None:
    pytest.importorskip("genai_prices")
    forget_prices()
    usage = {"prompt_tokens": 1_000_000, "completion_tokens": 0}
    result = CostMetric().evaluate(None, trace_of(llm(model="gpt-4o", usage=usage)), None)
    assert result.detail["backend"] == "prices"
    assert result.value is not None
    assert 0.1 < result.value < 100  # dollars per million prompt tokens
    forget_prices()


TOKENS = {"prompt_tokens": 300, "completion_tokens": 40}


@pytest.mark.parametrize(
    ("trace", "outcome", "place"),
    [
        (trace_of(cost=0.0, usage=TOKENS), None, "trace.metadata['cost']"),
        (trace_of(usage=TOKENS), Outcome(cost=0.0), "outcome.cost"),
        (trace_of(llm(cost=0, **TOKENS)), None, "trace.events[0].cost"),
        (trace_of(tool(0.0), llm(model="no-such-model", **TOKENS), cost=0), None, "trace.metadata['cost']"),
    ],
)
def test_a_cost_of_zero_beside_tokens_is_unknown(trace: TraceLog, outcome: Any, place: str) -> None:
    result = CostMetric().evaluate(None, trace, outcome)
    assert result.value is None
    assert result.detail["reason"].startswith(f"{place} is 0 although tokens were used, which is taken as unknown; ")
    assert result.detail["recorded_zero"] is True
    assert recorded_cost(Item(None, trace, outcome)) is None


def test_a_cost_of_zero_beside_tokens_gives_way_to_the_next_source() -> None:
    result = CostMetric().evaluate(None, trace_of(cost=0.0, usage=TOKENS), Outcome(cost=0.25))
    assert (result.value, result.detail["source"]) == (0.25, "outcome.cost")
    result = CostMetric().evaluate(None, trace_of(tool(0.5), llm(cost=0.25, **TOKENS), cost=0.0), None)
    assert (result.value, result.detail["source"], result.detail["recorded_zero"]) == (0.75, "events", True)


def test_a_model_that_is_free_by_the_price_list_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentunit.metrics.usage.prices_installed", lambda: True)
    monkeypatch.setattr("agentunit.metrics.usage.price_usd", lambda *_: 0.0)
    result = CostMetric().evaluate(None, trace_of(llm(cost=0.0, model="free", **TOKENS)), None)
    assert (result.value, result.detail["backend"]) == (0.0, "prices")


def test_a_cost_of_zero_without_tokens_is_a_record() -> None:
    assert CostMetric().evaluate(None, trace_of(cost=0.0), None).value == 0.0
    assert CostMetric().evaluate(None, trace_of(cost=0.0, usage={"total_tokens": 0}), None).value == 0.0
