"""Remote calls against the library itself: every model's line, and what it does not know."""

from __future__ import annotations

import logging
from math import inf

import pytest

pytest.importorskip("ecologits", reason="needs the extra sustainability")

from agentunit.sustainability.energy import footprint_method, footprint_of, footprint_unready


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("openai", "gpt-4o"),
        ("openai", "gpt-4o-mini"),
        ("mistralai", "mistral-large-latest"),
        ("anthropic", "claude-opus-4-5"),
    ],
)
@pytest.mark.parametrize("tokens", [0, 1, 137, 50_000])
def test_as_the_library_says(provider: str, model: str, tokens: int) -> None:
    from ecologits.tracers.utils import llm_impacts

    expected = llm_impacts(provider, model, tokens, inf)
    found = footprint_of(model, tokens)
    assert found is not None
    for ours, theirs in (
        (found.kwh, expected.energy.value),
        (found.carbon_kg, expected.usage.gwp.value),
        (found.hardware_kg, expected.embodied.gwp.value),
    ):
        ends = (getattr(theirs, "min", theirs), getattr(theirs, "max", theirs))
        assert ours == pytest.approx(ends, rel=1e-9)


def test_the_order_of_magnitude() -> None:
    found = footprint_of("gpt-4o", 500)
    assert found is not None
    assert 0.0002 < found.kwh[0] < found.kwh[1] < 0.005


@pytest.mark.parametrize("name", ["openai/gpt-4o", "models/openai/gpt-4o"])
def test_prefixes_of_gateways_are_seen_through(name: str) -> None:
    assert footprint_of(name, 500) == footprint_of("gpt-4o", 500)


@pytest.mark.parametrize("name", ["", "tiny-9", "/", "gpt-4o/"])
def test_an_unknown_model_is_none(name: str) -> None:
    assert footprint_of(name, 500) is None


def test_it_says_nothing_and_leaves_logging_as_it_was(caplog: pytest.LogCaptureFixture) -> None:
    before = logging.getLoggerClass()
    footprint_of.__globals__["_line"].cache_clear()
    assert footprint_of("gpt-4o", 5) is not None
    assert caplog.records == []
    assert logging.getLoggerClass() is before
    assert footprint_unready() is None
    assert footprint_method().startswith("ecologits 0.")
