"""Examine a test: every check, in the order in which its faults matter."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from agentunit.addons.review.soundness import _contradictions as contradictions
from agentunit.addons.review.soundness import _duplicates as duplicates
from agentunit.addons.review.soundness import _expectations as expectations
from agentunit.addons.review.soundness import _leaks as leaks
from agentunit.addons.review.soundness import _null_agents as null_agents
from agentunit.addons.review.soundness import _outcomes as outcomes
from agentunit.addons.review.soundness import _own_checks as own_checks
from agentunit.addons.review.soundness import _tool_keys as tool_keys
from agentunit.addons.review.soundness._grading import MOST_BY_MODEL, Grading
from agentunit.addons.review.soundness.found import (
    EVIDENCE_KEPT,
    CaseEvidence,
    HeadlineEffect,
    Hit,
    Soundness,
    SoundnessCheck,
    SoundnessWarning,
)
from agentunit.addons.review.soundness.material import Material, RunOutcomes, Try

CHECKS: tuple[SoundnessCheck, ...] = (
    SoundnessCheck(
        "infrastructure_death",
        "The infrastructure failed, and it counts as a failure of the agent",
        "run them again (agentunit rerun RUN --failed), or leave them out of the rate",
        outcomes.infrastructure_deaths,
        by_error=True,
    ),
    SoundnessCheck(
        "fails_own_check",
        "The expected answer fails the check of its own case",
        "correct the expected answer or the check: they contradict each other",
        own_checks.fails_own_check,
    ),
    SoundnessCheck(
        "impossible_check",
        "No answer can pass the checks, or they cannot be used",
        "correct the check",
        own_checks.impossible,
    ),
    SoundnessCheck(
        "unknown_tool",
        "A tool is expected that is not offered",
        "correct the name in expected_tool_calls, or offer the tool",
        tool_keys.unknown_tools,
    ),
    SoundnessCheck(
        "invalid_arguments",
        "The schema of a tool does not allow the expected arguments",
        "correct the expected arguments or the schema: an agent that obeys the schema fails",
        tool_keys.invalid_arguments,
    ),
    SoundnessCheck(
        "broken_tool_schema",
        "The schema of an offered tool contradicts itself",
        "correct the schema",
        tool_keys.broken_schemas,
    ),
    SoundnessCheck(
        "call_without_effect",
        "An expected call changes nothing",
        "correct the expected arguments",
        tool_keys.calls_without_effect,
    ),
    SoundnessCheck(
        "agreed_otherwise",
        "Most agents give the same answer, and it counts as wrong",
        "look whether the expected answer is wrong, or others are right too",
        outcomes.agreed_otherwise,
    ),
    SoundnessCheck(
        "turned_round",
        "Turned round: good agents fail and bad ones pass",
        "look whether the expected answer or the check is wrong",
        outcomes.turned_round,
    ),
    SoundnessCheck(
        "everyone_fails",
        "Every agent fails, or nearly every one",
        "look whether it can be passed at all",
        outcomes.everyone_fails,
    ),
    SoundnessCheck(
        "null_agent",
        "An agent that does nothing passes",
        "add a check that such an answer fails",
        null_agents.passed_by_nobody,
        by_sample=True,
    ),
    SoundnessCheck(
        "constant_answer",
        "One and the same answer passes a large part of the cases",
        "balance the expected answers, and compare pass rates with this one",
        null_agents.constant_answer,
        by_sample=True,
    ),
    SoundnessCheck(
        "unchecked",
        "An expectation is listed that nothing checks",
        "add the metric that reads it, or delete the field",
        expectations.unchecked,
    ),
    SoundnessCheck(
        "misnamed",
        "An expectation has a name that no metric reads",
        "rename the field",
        expectations.misnamed,
    ),
    SoundnessCheck(
        "empty_expectation",
        "Nothing is expected",
        "say what is expected, or take the case out",
        expectations.empty,
    ),
    SoundnessCheck(
        "two_answers",
        "Opposite answers are accepted, or several are compared as one text",
        "write the acceptable answers as a list",
        expectations.two_answers,
    ),
    SoundnessCheck(
        "answer_in_question",
        "The agent is handed the answer with the question",
        "take the answer out of the question or the context",
        leaks.in_question,
    ),
    SoundnessCheck(
        "answer_in_metadata",
        "The agent is handed the answer in a field",
        "name the field in grader_fields of the suite",
        leaks.in_fields,
    ),
    SoundnessCheck(
        "answer_in_id",
        "The id, which agents receive, names the answer",
        "rename the cases",
        leaks.in_id,
    ),
    SoundnessCheck(
        "contradictory_duplicates",
        "The same question expects different answers",
        "decide which answer is right, or accept both",
        duplicates.contradictory,
    ),
    SoundnessCheck(
        "against_context",
        "The context contradicts the expected answer",
        "correct the expected answer or the context",
        contradictions.against_context,
    ),
    SoundnessCheck(
        "absent_from_context",
        "The context says nothing of the expected answer",
        "add the passage that holds the answer, or correct the answer",
        contradictions.absent_from_context,
    ),
    SoundnessCheck(
        "wrong_weekday",
        "A date has the wrong weekday, or does not exist",
        "correct the date: which one is meant decides the answer",
        contradictions.wrong_weekdays,
    ),
    SoundnessCheck(
        "duplicates",
        "The case repeats another one",
        "keep one of them: the others count its result again",
        duplicates.repeated,
    ),
    SoundnessCheck(
        "near_duplicates",
        "The case nearly repeats another one",
        "keep one of them, or make them differ",
        duplicates.nearly_repeated,
    ),
    SoundnessCheck(
        "everyone_passes",
        "Every agent passes",
        "such cases do not separate agents: harder ones would",
        outcomes.everyone_passes,
    ),
)

WatchChecks = Callable[[Iterable[SoundnessCheck]], Iterable[SoundnessCheck]]


def examine_soundness(material: Material, watch: WatchChecks = iter) -> Soundness:
    """Try every check. Nothing is sent anywhere; ``watch`` is handed the checks as they pass, for progress.

    >>> from agentunit.core.case import DatasetCase
    >>> cases = [DatasetCase("q1", "Capital of France?", "Paris", metadata={"regex": "^paris$"})]
    >>> [(each.check, each.evidence[0].text) for each in examine_soundness(Material(cases)).warnings]
    [('fails_own_check', "the expected answer 'Paris' fails regex: pattern ^paris$")]
    """
    warnings = []
    for check in watch(CHECKS):
        groups: dict[str, list[Hit]] = {}
        for hit in check.find(material):
            groups.setdefault(hit.group, []).append(hit)
        warnings += [_warning(check, group, hits, material) for group, hits in groups.items()]
    rates = [rate for run in material.runs if (rate := run.rate()) is not None]
    metrics = {run.metric for run in material.runs if run.metric}
    return Soundness(
        n_cases=len(material.cases) or len({case_id for run in material.runs for case_id in run.tries}),
        n_runs=len(material.runs),
        graded_by=None if material.graded_by is None else sorted(material.graded_by),
        pass_means=", ".join(sorted(metrics)) or None,
        rate=sum(rates) / len(rates) if rates else None,
        warnings=warnings,
        not_examined=list(_not_examined(material)),
        functions_called=Grading(material).functions,
    )


def _warning(check: SoundnessCheck, group: str, hits: list[Hit], material: Material) -> SoundnessWarning:
    cases = list(dict.fromkeys(hit.case for hit in hits))
    return SoundnessWarning(
        check=check.name,
        title=f"{check.title}: {group}" if group else check.title,
        advice=check.advice,
        n_cases=len(cases),
        cases=cases,
        evidence=[CaseEvidence(hit.case, hit.text) for hit in hits[:EVIDENCE_KEPT]],
        effect=_effect(cases, material, check, group),
    )


def _effect(cases: list[str], material: Material, check: SoundnessCheck, group: str) -> HeadlineEffect:
    n_tried = len(Grading(material).sampled(material.cases)) if check.by_sample else len(material.cases)
    if n_tried < len(material.cases):
        return HeadlineEffect(len(cases) / n_tried, n_tried=n_tried)
    known = {case.id for case in material.cases} or {case_id for run in material.runs for case_id in run.tries}
    chosen = frozenset(cases)
    share = len(chosen & known) / len(known) if known else 0.0
    pairs = [_rates(run, chosen, death=group if check.by_error else None) for run in material.runs]
    usable = [(one, other) for one, other in pairs if one is not None and other is not None]
    if not usable:
        return HeadlineEffect(share, n_runs=0)
    with_all = sum(one for one, _ in usable) / len(usable)
    return HeadlineEffect(share, with_all, sum(other for _, other in usable) / len(usable), len(usable))


def _rates(run: RunOutcomes, cases: frozenset[str], *, death: str | None) -> tuple[float | None, float | None]:
    """The pass rate, and what it is without the cases; or without the tries that ended with one kind of death."""
    if death is None:
        return run.rate(), run.rate(cases)
    return run.rate(), run.rate(counts=lambda each: not _died(each, death))


def _died(each: Try, kind: str) -> bool:
    return each.counts_as_passed is False and each.error is not None and outcomes.death_in(each.error) == kind


def _not_examined(material: Material) -> Iterable[str]:
    if not material.cases:
        yield "the cases themselves: the runs do not hold them"
    elif material.graded_by is None:
        yield "what no metric reads: nothing says how the cases are graded (name the suite, or a run)"
    if material.left_out:
        named = ", ".join(material.left_out[:5])
        yield f"what an agent passes that does nothing: {named} cannot be run here"
    grading = Grading(material)
    for name, why in grading.untried.items():
        yield f"{name}: {why}"
    asked = ", ".join(grading.functions) or "what grades them"
    if grading and grading.by_model and len(material.cases) > MOST_BY_MODEL:
        yield f"null agents were tried on {MOST_BY_MODEL} of {len(material.cases):,} cases, as {asked} may ask a model"
    n_agents = len(material.agents)
    if 0 < n_agents < outcomes.FEWEST_AGENTS:
        fewest = outcomes.FEWEST_AGENTS
        of_one = f", and these are runs of {'one' if n_agents == 1 else n_agents}" if material.runs else ""
        yield f"cases that all agents pass or fail: that takes runs of {fewest} different agents{of_one}"
    elif not material.runs:
        yield "what outcomes tell: name runs or record files beside the suite"
