"""Tokens in Inspect logs: what the agent used, apart from what its graders used, and in names metrics read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from agentunit.traces.chats.plain_data import as_amount, as_dict, as_list, as_name
from agentunit.traces.chats.token_counts import add_counts, token_counts
from agentunit.traces.spans import ReadingNotes

_GRADING = ("scorer", "scorers")
_COUNTS = (
    "input_tokens", "output_tokens", "total_tokens", "input_tokens_cache_read", "input_tokens_cache_write",
    "reasoning_tokens",
)  # fmt: skip

_GRADERS_ABOVE_TOTAL = "the graders' logged calls use more tokens than the sample states; its total was kept whole"


class Place(NamedTuple):
    """Where in a transcript something stands: within the scoring of the sample or not, and within which agent."""

    by_grader: bool = False
    agent: str | None = None

    def within(self, begun: dict[str, Any]) -> Place:
        """The place within a span or step that begins here."""
        kind = begun.get("type")
        agent = as_name(begun.get("name")) if kind == "agent" else None
        return Place(self.by_grader or kind in _GRADING, agent or self.agent)


class LoggedEvent(NamedTuple):
    """An event of a sample's transcript, and its place in it."""

    event: dict[str, Any]
    by_grader: bool
    agent: str | None


def logged_events(events: Any, around: Place | None = None) -> Iterator[LoggedEvent]:
    """The events of a transcript, nested ones too. Their place is told by spans, or by steps in logs of before 2025."""
    outside = around or Place()
    spans: dict[str, Place] = {}
    steps = [outside]
    for value in as_list(events):
        event = as_dict(value)
        kind = event.get("event")
        if kind == "span_begin":
            spans[_span(event, "id")] = spans.get(_span(event, "parent_id"), outside).within(event)
        elif kind == "step" and event.get("action") == "begin":
            steps.append(steps[-1].within(event))
        elif kind == "step" and len(steps) > 1:
            steps.pop()
        place = spans.get(_span(event, "span_id"), steps[-1])
        yield LoggedEvent(event, place.by_grader or event.get("role") == "grader", place.agent)
        yield from logged_events(event.get("events"), place)


def usage_counts(usage: Any, notes: ReadingNotes) -> dict[str, Any] | None:
    """Inspect's counts of one call under OpenAI's names.

    Whether its input includes what came from a cache depends on the provider and the version of Inspect; the total
    that stands beside it tells.

    >>> cached = {"input_tokens": 102, "output_tokens": 12, "total_tokens": 178, "input_tokens_cache_read": 64}
    >>> usage_counts(cached, ReadingNotes())
    {'prompt_tokens': 166, 'completion_tokens': 12, 'total_tokens': 178, 'prompt_tokens_details': {'cached_tokens': 64}}
    """
    named = as_dict(usage)
    counts = token_counts({name: named.get(name) for name in _COUNTS}, notes)
    if counts is None:
        return None
    prompt, completion, total = (counts.get(name) for name in _COUNTS[:3])
    cached = counts.get("input_tokens_cache_read") or 0
    beside = cached + (counts.get("input_tokens_cache_write") or 0)
    if prompt is not None and completion is not None and total == prompt + completion + beside:
        prompt += beside
    read = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total}
    known = {name: count for name, count in read.items() if count is not None}
    return {**known, "prompt_tokens_details": {"cached_tokens": cached}} if cached else known


class SampleUsage(NamedTuple):
    """What a sample's log states in all, and what of it its graders used."""

    agent: dict[str, Any] | None
    graders: dict[str, Any] | None
    agent_cost: float | None


def sample_usage(sample: dict[str, Any], events: list[LoggedEvent], notes: ReadingNotes) -> SampleUsage:
    """The sample's stated total over all models, divided between the agent and the graders.

    Graders are charged with the calls logged while the sample was scored; what is left of the total is the agent's.
    """
    stated: dict[str, int] = {}
    graded: dict[str, int] = {}
    costs = []
    for usage in as_dict(sample.get("model_usage")).values():
        # Model by model: each counts its cached tokens in its own way.
        add_counts(stated, _flat(usage_counts(usage, notes)))
        costs.append(as_amount(as_dict(usage).get("total_cost")))
    grading_cost = 0.0
    for logged in events:
        if logged.by_grader and logged.event.get("event") == "model":
            usage = as_dict(as_dict(logged.event.get("output")).get("usage"))
            add_counts(graded, _flat(usage_counts(usage, notes)))
            grading_cost += as_amount(usage.get("total_cost")) or 0.0
    if any(graded.get(name, 0) > count for name, count in stated.items()):
        notes.problems[_GRADERS_ABOVE_TOTAL] += 1
        graded = {}
    own = {name: count - graded.get(name, 0) for name, count in stated.items()}
    known_costs = [cost for cost in costs if cost is not None]
    cost = max(0.0, sum(known_costs) - grading_cost) if known_costs and len(known_costs) == len(costs) else None
    return SampleUsage(_nested(own), _nested(graded), cost)


def _flat(counts: dict[str, Any] | None) -> dict[str, Any]:
    """Counts of one level, so that they can be added."""
    known = dict(counts or {})
    return {**known, **known.pop("prompt_tokens_details", {})}


def _nested(counts: dict[str, int]) -> dict[str, Any] | None:
    known: dict[str, Any] = dict(counts)
    cached = known.pop("cached_tokens", 0)
    return {**known, "prompt_tokens_details": {"cached_tokens": cached}} if cached else known or None


def _span(event: dict[str, Any], name: str) -> str:
    return as_name(event.get(name)) or ""
