"""A shop's desk that talks: a script, a function that plays the user, and a bug that only the second turn shows."""

from agentunit import Suite

ORDERS = {"A-1001": "arrives on Monday", "A-1002": "was sent back"}


def desk(query, history, trace):
    """Remembers the order number that was named earlier, unless the user names another one: then it mixes them up."""
    said = [each["content"] for each in history if each["role"] == "user"]
    named = [number for text in [*said, query] for number in ORDERS if number in text]
    if not named:
        return "Which order is it?"
    number = named[0]  # the bug: it should be the last one
    trace.record(
        "tool_call", name="look_up_order", arguments={"number": number}, status="success", result=ORDERS[number]
    )
    return f"Order {number} {ORDERS[number]}."


def impatient(messages, case):
    """Names the order when asked for it, and leaves with the first answer that says something about it."""
    last = messages[-1]["content"]
    if "Which order" in last:
        return case.metadata["order"]
    return None


suite = Suite(
    dataset=[
        {
            "id": "remembers",
            "turns": [
                {"query": "Where is A-1001?", "expected_output": "Order A-1001 arrives on Monday."},
                {"query": "Are you sure?", "expected_output": "Order A-1001 arrives on Monday."},
            ],
        },
        {
            "id": "another-order",
            "turns": [
                {"query": "Where is A-1001?", "expected_output": "Order A-1001 arrives on Monday."},
                {"query": "And A-1002?", "expected_output": "Order A-1002 was sent back."},
            ],
        },
        {
            "id": "impatient",
            "query": "Where is my order?",
            "user": impatient,
            "metadata": {"order": "A-1002"},
            "expected_output": "Order A-1002 was sent back.",
        },
    ],
    agent=desk,
    metrics=["exact_match", "tool_success", "response_time"],
    gates=["exact_match all == 1"],
    grader_fields=["order"],  # for the user alone: the agent must ask for it
)
