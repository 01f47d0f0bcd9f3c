"""Six questions, three times each. The gate is a floor; what changed is for the comparison with main to say."""

from agent import PRICES, answer

from agentunit import Suite

suite = Suite(
    dataset=[
        {"id": thing, "query": f"What is the price of the {thing}?", "metadata": {"contains": price}}
        for thing, price in PRICES.items()
    ],
    agent=answer,
    metrics=["contains", "tool_success"],
    gates=["contains >= 0.5"],
    repeats=3,
)
