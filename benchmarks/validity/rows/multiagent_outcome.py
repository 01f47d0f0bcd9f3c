"""Multi-agent scores against whether the team's answer was right."""

from __future__ import annotations

from agentunit.addons.review.labeling.label_files import Label
from agentunit.metrics.registry import resolve_metrics
from agentunit.multiagent.derivation import steps_of
from benchmarks.validity.baselines import Baseline
from benchmarks.validity.data import LabelledData
from benchmarks.validity.family import Family
from benchmarks.validity.measure import LabelledCase, mean_figure, score_sets, set_figure

DATASET = "mast_ag2_experiments"
METRICS = (
    "coordination_efficiency",
    "swarm_intelligence",
    "network_fault_tolerance",
    "step_repetition",
    "agent_dominance",
)
SHORT = Baseline("short run", "the fewer steps, the better", lambda record: -float(len(steps_of(record.trace))))


def measure(data: LabelledData) -> Family:
    """Score the conversations; a run with the right answer is a good one."""
    sets: dict[str, list[LabelledCase]] = {}
    for record in data.records(DATASET):
        label = Label(float(record.outcome.success), record.case.metadata["instance_id"])
        sets.setdefault(_condition(str(record.case.metadata["condition"])), []).append((record, label))
    names = sorted(sets)
    scored = score_sets(sets, [resolve_metrics(METRICS)], [SHORT])
    figures = [
        set_figure(scorer, name, rows_of[name])
        for scorer, rows_of in scored.items()
        for name in names
        if name in rows_of
    ]
    headline = [
        mean_figure(scorer, {name: rows_of[name] for name in names if name in rows_of})
        for scorer, rows_of in scored.items()
    ]
    wrong = sum(label.value == 0 for cases in sets.values() for _, label in cases)
    total = sum(map(len, sets.values()))
    return Family(
        key="multiagent_outcome",
        title="Multi-agent scores and the outcome",
        measured=(
            f"{total} conversations of AG2 teams on mathematics, three set-ups on the same problems (MAST); the answer "
            f"was checked, {wrong} are wrong. The question is whether a score tells runs that end right from runs that "
            "end wrong. Interactions and handoffs are derived from the order of the speakers."
        ),
        can=("They describe how a run went, and show for a team you know that something changed."),
        cannot=(
            "They do not tell whether the answer is right; counting the steps does better. `coordination_efficiency` "
            "even points the other way on two set-ups, where all that it can see is how evenly the work is spread. A "
            "run can be well coordinated and wrong."
        ),
        baselines=(SHORT,),
        headline=headline,
        figures=figures,
        trust=(),
        remarks=(
            "The mean weighs the set-ups alike and never pools them. A score that is the same in all runs of a set-up "
            "has 0.500 (0.500 to 0.500).",
        ),
        unit="runs",
    )


def _condition(name: str) -> str:
    """The set-up in words: "trajs_gpt-4_impr_prompt_orig_topology_42" is the improved prompt, original topology."""
    words = {"impr": "improved", "orig": "original"}
    parts = name.split("_")
    return (
        f"{words.get(parts[2], parts[2])} prompt, {words.get(parts[4], parts[4])} topology" if len(parts) > 4 else name
    )
