"""An agent with three tools that changes orders. What counts is the state it leaves behind, not what it says."""

from agentunit import Outcome, Suite

TOOLS = [
    {"name": "find_order", "parameters": {"type": "object", "required": ["number"]}},
    {"name": "cancel", "parameters": {"type": "object", "required": ["number"]}},
    {
        "name": "refund",
        "parameters": {
            "type": "object",
            "required": ["number", "amount"],
            "properties": {"amount": {"type": "number"}},
        },
    },
]


def agent(query, trace):
    """Find the order, cancel it, pay the money back."""
    orders = {"A-1": {"status": "open", "paid": 20.0}, "A-2": {"status": "shipped", "paid": 35.0}}

    def call(name, **arguments):
        trace.record("tool_call", name=name, arguments=arguments, status="success")

    number = query.split()[1].strip(".")
    call("find_order", number=number)
    order = orders[number]
    if order["status"] == "shipped":
        return Outcome(output=f"{number} is on its way and cannot be canceled.", state={"orders": orders})
    call("cancel", number=number)
    order["status"] = "canceled"
    amount = str(order["paid"]) if "all" in query else order["paid"]  # planted bug: a text where a number belongs
    call("refund", number=number, amount=amount)
    if "all" not in query:
        order["paid"] = 0.0
    return Outcome(output=f"{number} is canceled and the money is on its way.", state={"orders": orders})


def expecting(status, paid, *tools):
    """What only graders read: the state of A-1 afterwards, and the tools that were needed."""
    number = "A-2" if status == "shipped" else "A-1"
    return {
        "expected_state": {"orders": {number: {"status": status, "paid": paid}}},
        "expected_tool_calls": [{"name": name} for name in tools],
    }


suite = Suite(
    dataset=[
        {
            "id": "cancel",
            "query": "Cancel A-1.",
            "tools": TOOLS,
            "metadata": expecting("canceled", 0.0, "find_order", "cancel", "refund"),
        },
        {
            "id": "too-late",
            "query": "Cancel A-2.",
            "tools": TOOLS,
            "metadata": expecting("shipped", 35.0, "find_order"),
        },
        {
            "id": "money-back",
            "query": "Cancel A-1 and pay all of it back.",
            "tools": TOOLS,
            "metadata": expecting("canceled", 0.0, "find_order", "cancel", "refund"),
        },
    ],
    agent=agent,
    metrics=["task_success", "tool_trajectory", "tool_argument_validity"],
    gates=["task_success all == 1", "tool_argument_validity all == 1", "tool_trajectory >= 0.9"],
)
