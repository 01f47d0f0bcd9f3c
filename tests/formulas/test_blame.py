"""The two rankings: order, shares, and what they refuse."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentunit.formulas.blame import SIGNS, early_sign, length_sign, rank_agents, rank_steps

signs = st.dictionaries(st.sampled_from(sorted(SIGNS)), st.floats(0, 1))
marked = st.lists(st.tuples(st.sampled_from("abc"), signs), min_size=1, max_size=8).map(
    lambda steps: [(number, agent, found) for number, (agent, found) in enumerate(steps)]
)


def test_steps_by_the_sum_of_their_signs_the_earlier_first():
    ranked = rank_steps([(0, "a", {"early": 1.0}), (3, "b", {"failed": 1.0}), (5, "a", {"failed": 1.0, "early": 0.5})])
    assert [(each.step, each.agent) for each in ranked] == [(5, "a"), (0, "a"), (3, "b")]
    assert ranked[0].suspicion == 1.5 / len(SIGNS)
    assert ranked[0].signs == {"failed": 1.0, "early": 0.5}


def test_agents_by_their_worst_step_not_by_how_much_they_did():
    busy = [(number, "busy", {"early": 0.5}) for number in range(9)]
    ranked = rank_agents(rank_steps([*busy, (9, "rare", {"failed": 1.0})]))
    assert [(each.agent, each.step) for each in ranked] == [("rare", 9), ("busy", 0)]
    assert [each.share for each in ranked] == pytest.approx([2 / 3, 1 / 3])


def test_without_signs_all_are_alike():
    assert [each.share for each in rank_agents(rank_steps([(0, "a", {}), (1, "b", {})]))] == [0.5, 0.5]
    assert rank_agents([]) == rank_steps([]) == []


@given(marked)
def test_suspicions_are_shares_and_fall(steps):
    ranked = rank_steps(steps)
    suspicions = [each.suspicion for each in ranked]
    assert suspicions == sorted(suspicions, reverse=True)
    assert all(0 <= each <= 1 for each in suspicions)
    agents = rank_agents(ranked)
    assert {each.agent for each in agents} == {agent for _, agent, _ in steps}
    assert sum(each.share for each in agents) == pytest.approx(1.0)
    assert agents[0].agent == ranked[0].agent


@given(marked)
def test_one_more_sign_never_helps_a_step(steps):
    number, agent, found = steps[-1]
    worse = [*steps[:-1], (number, agent, {**found, "failed": 1.0})]
    places = [[each.step for each in rank_steps(each_way)].index(number) for each_way in (steps, worse)]
    assert places[1] <= places[0]


@pytest.mark.parametrize("bad", [{"guilt": 1.0}, {"failed": 1.5}, {"failed": float("nan")}])
def test_signs_out_of_range_are_refused(bad):
    with pytest.raises(ValueError, match=r"rank_steps: signs must be among failed, .* and from 0 to 1; received"):
        rank_steps([(0, "a", bad)])


def test_length_and_earliness():
    assert [length_sign(n) for n in (0, 100, 200, 5000)] == [0.0, 0.5, 1.0, 1.0]
    assert [early_sign(place, 2) for place in (0, 1)] == [1.0, 0.5]
    with pytest.raises(ValueError, match="place must be between 0 and n_steps"):
        early_sign(2, 2)
