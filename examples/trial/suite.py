"""66 cases, three times each. README.md tells what to compare."""

from agent import answer, cases

from agentunit import Suite

suite = Suite(
    dataset=cases(),
    agent=answer,
    metrics=["contains", "tool_success"],
    # A floor, not a goal: ten cases are known to be wrong. What changed is for the comparison to say.
    gates=["contains >= 0.5"],
    repeats=3,
    seed=1,
)
