"""Back-and-forth, dominance and unanswered requests, by hand and as properties."""

from __future__ import annotations

from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentunit.formulas.conversation import SentMessage, dominance, longest_alternation, unanswered_requests


@pytest.mark.parametrize(
    ("speakers", "found"),
    [
        ("", None),
        ("aaa", None),
        ("ab", (0, 2, ("a", "b"))),
        ("abc", (0, 2, ("a", "b"))),  # two stretches of two turns: the first
        ("cabab", (1, 4, ("a", "b"))),
        ("abcbcb", (1, 5, ("b", "c"))),
        ("aabbba", (0, 3, ("a", "b"))),  # a monologue is one turn
    ],
)
def test_longest_alternation_by_hand(speakers, found):
    assert longest_alternation(speakers) == found


@given(st.text("abcd", max_size=25))
def test_longest_alternation_is_the_longest_of_all_stretches(speakers):
    turns = [speaker for speaker, _ in groupby(speakers)]
    longest = max(
        (
            end - start
            for start in range(len(turns))
            for end in range(start + 2, len(turns) + 1)
            if len(set(turns[start:end])) == 2
        ),
        default=None,
    )
    found = longest_alternation(speakers)
    assert (found.n_turns if found else None) == longest


@pytest.mark.parametrize(
    ("amounts", "value"),
    [
        ({}, None),
        ({"a": 3}, None),
        ({"a": 0, "b": 0}, None),
        ({"a": 2, "b": 2}, 0.0),
        ({"a": 5, "b": 0, "c": 0}, 1.0),
        ({"a": 3, "b": 1}, 0.5),  # (0.75 − 0.5) / 0.5
    ],
)
def test_dominance_by_hand(amounts, value):
    assert dominance(amounts) == value


@given(st.lists(st.integers(0, 50), min_size=2, max_size=6).filter(any), st.randoms())
def test_dominance_is_a_share_whatever_the_agents_are_called(amounts, random):
    value = dominance({f"agent {place}": amount for place, amount in enumerate(amounts)})
    random.shuffle(amounts)
    assert 0 <= value <= 1
    assert dominance(dict(zip("zyxwvu", amounts, strict=False))) == pytest.approx(value)
    busiest = max(range(len(amounts)), key=amounts.__getitem__)
    more = [amount + (place == busiest) for place, amount in enumerate(amounts)]
    assert dominance(dict(zip("abcdef", more, strict=False))) >= value - 1e-12


@pytest.mark.parametrize("amount", [-1, float("nan"), float("inf")])
def test_dominance_refuses_what_is_no_amount(amount):
    with pytest.raises(ValueError, match=r"amounts must be finite and 0 or more; received .* for 'a'"):
        dominance({"a": amount, "b": 1})


def said(*pairs):
    return [SentMessage(pair[0], tuple(pair[1:])) for pair in pairs]


@pytest.mark.parametrize(
    ("messages", "unanswered", "n_requests"),
    [
        ([], [], 0),
        (said("ab"), [], 0),  # the last message: nobody can tell
        (said("ab", "ba"), [], 1),
        (said("ab", "ba", "ab", "ba"), [], 2),
        (said("ab", "ab", "ba"), [], 2),
        (said("ab", "ac", "ca"), [0], 2),
        (said("aa", "ab", "ba"), [], 1),
        ([SentMessage("a", ("b", "c")), SentMessage("c", ("a",))], [], 1),  # one of several receivers is enough
        ([SentMessage("a", ("b",), wants_answer=False), *said("ac", "ca")], [], 1),
        (said("ab", "b", "c"), [], 1),  # without a stated receiver, speaking is answering
        (said("ab", "c", "b"), [], 1),
        (said("ab", "c", "d"), [0], 1),
        (said("ab", "c", "ab", "b"), [0], 2),  # asked again before b spoke
        (said("ab", "ab", "b"), [], 2),  # both in one turn
        (said("p", "np", "p", "np", "p"), [], 0),  # n reports back to p each time
        (said("p", "np", "np", "p"), [], 1),
        (said("a", "b", "a"), [], 0),
    ],
)
def test_unanswered_requests_by_hand(messages, unanswered, n_requests):
    assert unanswered_requests(messages) == (unanswered, n_requests)


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from("abc")).map(lambda pair: SentMessage(pair[0], (pair[1],)))
    )
)
def test_an_answer_never_leaves_more_open(messages):
    before, n_requests = unanswered_requests([*messages, SentMessage("x", ("y",))])
    assert len(before) <= n_requests
    if before:
        asked = messages[before[0]]
        after, _ = unanswered_requests(
            [*messages, SentMessage(asked.receivers[0], (asked.sender,)), SentMessage("x", ("y",))]
        )
        assert before[0] not in after
        assert set(after) < set(before)
