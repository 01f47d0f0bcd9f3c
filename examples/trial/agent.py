"""A shop's desk, in two versions. TRIAL_VERSION=2 in the environment chooses the second.

Its tool fails in 8 % of the calls, by the seed that AgentUnit hands to each case. Version 1 does not find orders that
are written in lower case. Version 2 cuts the cents off prices in euros as well.
"""

import os
import random

TOOL_FAILURES = 0.08


def cases(n=66, in_lower_case=10, in_euros=9):
    """The dataset: the first cases meet the bug of both versions, the next ones that of version 2."""
    made = []
    for i in range(n):
        number = f"A-{1000 + i}"
        pays_euros = in_lower_case <= i < in_lower_case + in_euros
        made.append(
            {
                "id": f"order-{i + 1:03}",
                "query": f"What does {number.lower() if i < in_lower_case else number} cost?",
                "metadata": {
                    "currency": "EUR" if pays_euros else "USD",
                    "contains": f"{number} costs {look_up(number)}",
                },
            }
        )
    return made


def look_up(number):
    """The tool: what an order costs. A real one would ask a database."""
    return f"{int(number[2:]) - 980}.{10 + int(number[2:]) % 90}"


def answer(query, metadata, trace, seed, version=None):
    """Say what an order costs, or why that cannot be said."""
    version = version or os.environ.get("TRIAL_VERSION", "1")
    number = query.split()[2]
    if random.Random(seed).random() < TOOL_FAILURES:
        trace.record("tool_call", name="look_up", arguments={"number": number}, status="error", error="timed out")
        return "I could not look that up."
    trace.record("tool_call", name="look_up", arguments={"number": number}, status="success")
    if number.islower():
        return f"There is no order {number}."
    price = look_up(number)
    if version == "2" and metadata["currency"] == "EUR":
        price = price.split(".")[0]
    return f"{number} costs {price} {metadata['currency']}."
