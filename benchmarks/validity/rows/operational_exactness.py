"""Cost, tokens and tool success, against what the files themselves state, counted anew from their raw JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from msgspec.structs import replace

from agentunit.addons.review.labeling.agreement import bootstrap_statistic_interval
from agentunit.core.records import Record
from agentunit.engine.scoring.records import score
from agentunit.formulas.statistics import wilson_interval
from agentunit.metrics.usage import INSTALL_HINT, prices_installed
from benchmarks.validity.data import LabelledData
from benchmarks.validity.family import Family
from benchmarks.validity.measure import Figure, Scorer, tidy

Truth = dict[str, float | None]
EXACT, TIMES = "exactly right", "times what was paid, median"
TAU2, TAU_BENCH, TRAIL = "tau2_sims", "taubench_airline_gpt4o", "trail_openinference"


def measure(data: LabelledData) -> Family:
    """Compare what the metrics say with the recount, run by run."""
    tau2 = data.records(TAU2)
    stated = [_tau2_states(row) for row in data.rows(TAU2)]
    figures = [
        *_figures(TAU2, tau2, stated),
        *_figures(TRAIL, data.records(TRAIL), [_trail_states(row) for row in data.rows(TRAIL)]),
        *_figures(TAU_BENCH, data.records(TAU_BENCH), [_tau_bench_states(row) for row in data.rows(TAU_BENCH)]),
    ]
    remarks = [
        "The recount reads the raw JSON and shares no code with the readers. A run that states nothing counts as right "
        "when the metric says that it does not know.",
        "TRAIL states no costs; tau-bench states neither tokens nor the agent's cost.",
    ]
    if prices_installed():
        figures.append(_list_price(tau2, [each["cost"] for each in stated]))
        remarks.append(
            f"*{TIMES}* is the cost by list price, with every recorded cost taken out of the traces first. The "
            "provider bills tokens that it had cached at a quarter of the price, and these traces do not say how many "
            "they were, so the list price is what the runs would have cost without a cache."
        )
    else:
        remarks.append(f"The cost by list price was not measured: the price table is not installed ({INSTALL_HINT}).")
    return Family(
        key="operational_exactness",
        title="Cost, tokens and tool calls",
        measured=(
            "Runs of agents whose files state what each model call used and cost, and which tool calls failed: tau2 "
            "and tau-bench (customer service), TRAIL (OpenInference spans of agents on GAIA). What the metrics say is "
            f"compared with a recount; *{EXACT}* is the share of runs in which they are equal."
        ),
        can="The metrics say what the trace states, to the token, the cent and the call.",
        cannot=(
            "They cannot know what a trace leaves out, such as retries inside a client. A cost by list price knows "
            "only models in its table, and where a trace does not say which tokens were cached it is an upper bound: "
            "several times what was paid for long runs."
        ),
        baselines=(),
        headline=figures,
        figures=figures,
        trust=(),
        remarks=remarks,
        unit="runs",
    )


def _figures(dataset: str, records: Sequence[Record], stated: Sequence[Truth]) -> Iterator[Figure]:
    """For each metric that the file states the truth about, the share of runs in which it is right."""
    names = list(stated[0])
    hits: dict[Scorer, list[bool]] = {}
    for case, truth in zip(score(records, names), stated, strict=True):
        for name in names:
            given = case.scores[name]
            scorer = Scorer(name, "metric", given.backend)
            hits.setdefault(scorer, []).append(_equal(given.value, truth[name]))
    for scorer, right in hits.items():
        interval = wilson_interval(sum(right), len(right))
        low, high = (interval.low, interval.high) if interval else (None, None)
        yield Figure(scorer, dataset, EXACT, len(right), tidy(sum(right) / len(right)), tidy(low), tidy(high))


def _list_price(records: Sequence[Record], paid: Sequence[float | None]) -> Figure:
    """How many times what was paid the list price is, over runs that state both."""
    scores = [case.scores["cost"] for case in score(map(_without_costs, records), ["cost"])]
    times = [given.value / known for given, known in zip(scores, paid, strict=True) if given.value and known]
    found = bootstrap_statistic_interval(median, (times,))
    low, high = (found.low, found.high) if found else (None, None)
    scorer = Scorer("cost", "metric", "prices")
    return Figure(scorer, TAU2, TIMES, len(times), tidy(median(times) if times else None), tidy(low), tidy(high))


def _equal(value: float | None, truth: float | None) -> bool:
    if value is None or truth is None:
        return value is truth
    # Summing in another order may move the last digit.
    return math.isclose(value, truth, rel_tol=1e-9)


def _share(flags: Sequence[bool]) -> float | None:
    return sum(flags) / len(flags) if flags else None


def _tau2_states(row: dict[str, Any]) -> Truth:
    usages = [said["usage"] for said in row["messages"] if said["role"] == "assistant" and said.get("usage")]
    answers = [said for said in row["messages"] if said["role"] == "tool" and said["requestor"] == "assistant"]
    tokens = sum(usage["prompt_tokens"] + usage["completion_tokens"] for usage in usages)
    return {
        "token_usage": float(tokens),
        "cost": row["agent_cost"],
        "tool_success": _share([not said["error"] for said in answers]),
    }


def _tau_bench_states(row: dict[str, Any]) -> Truth:
    answers = [said["content"] for said in row["traj"] if said["role"] == "tool"]
    reward = float(row["reward"] == 1.0)
    # A run without calls is judged by its outcome.
    return {"tool_success": _share([not text.startswith("Error:") for text in answers]) if answers else reward}


def _trail_states(row: dict[str, Any]) -> Truth:
    tokens, calls = 0, []
    for span in _spans(row["trace"]["spans"]):
        attributes = span["span_attributes"]
        kind = attributes.get("openinference.span.kind")
        if kind == "LLM":
            tokens += int(attributes["llm.token_count.prompt"]) + int(attributes["llm.token_count.completion"])
        elif kind == "TOOL":
            calls.append(span["status_code"] != "Error")
    return {"token_usage": float(tokens), "tool_success": _share(calls)}


def _spans(spans: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for span in spans:
        yield span
        yield from _spans(span["child_spans"])


def _without_costs(record: Record) -> Record:
    """The same run with its token counts alone."""
    events = [
        replace(event, payload={key: value for key, value in event.payload.items() if key != "cost"})
        for event in record.trace.events
    ]
    metadata = {key: value for key, value in record.trace.metadata.items() if key != "cost"}
    return replace(record, trace=replace(record.trace, events=events, metadata=metadata))
