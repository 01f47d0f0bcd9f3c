"""The agent of a pull request. VERSION=main in the environment is the one before it."""

import os

PRICES = {"tent": "149", "stove": "59.50", "lamp": "19.90", "rope": "34", "boots": "119.95", "mug": "8"}


def answer(query, trace):
    """Say what a thing costs. The change: prices are shown without cents."""
    thing = query.rstrip("?").split()[-1]
    trace.record("tool_call", name="price_of", arguments={"thing": thing}, status="success")
    price = PRICES[thing]
    if os.environ.get("VERSION") != "main":
        price = price.split(".")[0]
    return f"The {thing} costs {price} dollars."
