"""Tool success against the reward of the whole task, on customer-service agents of tau-bench and tau2."""

from __future__ import annotations

from agentunit.addons.review.labeling.label_files import Label
from agentunit.metrics.registry import resolve_metrics
from benchmarks.validity.at_threshold import agreement_figure
from benchmarks.validity.baselines import ALWAYS_GOOD, Baseline
from benchmarks.validity.data import LabelledData
from benchmarks.validity.family import Family
from benchmarks.validity.measure import LabelledCase, mean_figure, score_sets, set_figure

SOURCES = ("taubench_airline_gpt4o", "tau2_sims")
METRICS = ("tool_success", "tool_trajectory")
FEW_CALLS = Baseline(
    "few tool calls",
    "the fewer tool calls, the better",
    lambda record: -float(sum(event.type == "tool_call" for event in record.trace.events)),
)
BASELINES = (FEW_CALLS, ALWAYS_GOOD)


def measure(data: LabelledData) -> Family:
    """Score the runs; one whose task earned the full reward is a good one."""
    sets: dict[str, list[LabelledCase]] = {}
    for source in SOURCES:
        for record in data.records(source):
            metadata = record.case.metadata
            domain = metadata.get("domain")
            name = f"{source}, {domain}" if domain else source
            label = Label(float(getattr(record.outcome, "success", False)), str(metadata["task_id"]))
            sets.setdefault(name, []).append((record, label))
    names = sorted(sets)
    scored = {
        scorer: rows_of
        for scorer, rows_of in score_sets(sets, [resolve_metrics(METRICS)], BASELINES).items()
        # A run without tool calls is judged by its outcome, which is the very reward.
        if scorer.backend != "outcome"
    }
    figures = []
    headline = []
    for scorer, rows_of in scored.items():
        here = [name for name in names if name in rows_of]
        if scorer.name != ALWAYS_GOOD.name:
            figures += [set_figure(scorer, name, rows_of[name]) for name in here]
            headline.append(mean_figure(scorer, {name: rows_of[name] for name in here}))
        if scorer.name != FEW_CALLS.name:
            figures += [agreement_figure(scorer, name, rows_of[name]) for name in here]
    return Family(
        key="tool_success",
        title="Tool success and the reward of the task",
        measured=(
            "Agents served customers of an airline, a shop and a telephone company (tau-bench with GPT-4o, tau2 with "
            "GPT-4.1); in the end the state of the database was compared with what the task asks for. The question is "
            "whether tool calls that went through mean a task that was done."
        ),
        can=(
            "`tool_success` counts exactly what the trace says: which calls failed. `tool_trajectory` says how far the "
            "calls are those that the task lists, and so comes nearer to the reward."
        ),
        cannot=(
            "`tool_success` does not tell whether the task was done: nearly all calls go through whether or not they "
            "were the right ones. For wrong decisions use `task_success` with a check of the final state."
        ),
        baselines=BASELINES,
        headline=headline,
        figures=figures,
        trust=(),
        remarks=(
            "Runs of one task are resampled together. Runs without tool calls are left out of `tool_success`, which "
            "judges them by their outcome, and of `tool_trajectory` where their task lists none.",
            "The trust column of tables still says *exact*: that is about the count, this page about the reward.",
        ),
        unit="runs",
    )
