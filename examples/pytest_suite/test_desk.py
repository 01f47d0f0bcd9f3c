"""Every case of cases.yaml is a test. One of them finds a bug."""

import re

import pytest

ORDERS = {"A-1001": "arrives on Tuesday", "A-1002": "was delivered on 3 March"}


def desk(query, trace):
    """Look up the order that the question names. It does not find numbers in lower case."""
    number = re.search(r"[A-Za-z]-\d{4}", query).group()
    status = ORDERS.get(number)
    trace.record("tool_call", name="look_up", arguments={"number": number}, status="success" if status else "error")
    return f"Order {number} {status}." if status else f"I cannot find {number}."


@pytest.mark.agentunit(dataset="cases.yaml")
def test_desk(case, agentunit_eval):
    """The answer holds what it must, and no tool call fails."""
    result = agentunit_eval(desk, case, metrics=["contains", "tool_success"])
    result.check("contains == 1", "tool_success == 1")
