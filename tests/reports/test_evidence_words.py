"""What is said of calls and sentences that are named as evidence."""

from __future__ import annotations

import pytest

from agentunit.engine.deciding.causes import failure_of, sentence_kind


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ({"status": "error", "error": "no such order"}, "no such order"),
        ({"result": "Error: no such user"}, "Error: no such user"),
        ({"result": {"isError": True, "content": []}}, "{'isError': True, 'content': []}"),
        ({"status": "success", "result": "Error rates went down"}, None),
        ({"result": "fine"}, None),
        ({}, None),
    ],
)
def test_failed_calls(payload, said):
    assert failure_of(payload) == said


def test_kinds_of_sentences():
    assert sentence_kind("Your refund has been issued.") == "something said to be done"
    assert sentence_kind("Have a great trip!") == "a statement"
