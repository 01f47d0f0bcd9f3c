from __future__ import annotations

import pytest

from agentunit.metrics.usage import price_usd

genai_prices = pytest.importorskip("genai_prices")

COUNTS = [
    (0, 0, 0),
    (1000, 100, 0),
    (1000, 100, 200),
    (150_000, 5_000, 149_000),
    (250_000, 10, 0),
    (250_000, 9, 90_000),
]


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-4o-mini", "claude-sonnet-4-5", "gemini-2.5-pro"])
@pytest.mark.parametrize(("prompt", "completion", "cached"), COUNTS)
def test_our_shortcut_gives_what_the_library_gives(model: str, prompt: int, completion: int, cached: int) -> None:
    usage = genai_prices.Usage(input_tokens=prompt, output_tokens=completion, cache_read_tokens=cached or None)
    expected = float(genai_prices.calc_price(usage, model_ref=model).total_price)
    assert price_usd(model, prompt, completion, cached) == pytest.approx(expected)


def test_a_model_the_table_does_not_know_has_no_price() -> None:
    assert price_usd("a-model-nobody-sells", 10, 10) is None
