"""What asking a judge would send where, and about what it would cost, before anything is sent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import ceil
from typing import Any

from msgspec import structs

from agentunit.addons.judge._panel import members_of
from agentunit.addons.judge._prompts import (
    ANSWER_BUDGET,
    MOST_CLAIMS,
    MOST_PASSAGES,
    OVERLAP,
    PASSAGE_BUDGET,
    batches,
    pieces,
)
from agentunit.addons.judge.settings import JudgeSettings, configured
from agentunit.backends.quality import QualityQuestion, RubricQuestion
from agentunit.core.case import DatasetCase
from agentunit.core.codec import RecordError, as_record
from agentunit.core.conversation import DEFAULT_MAX_TURNS, persona_of, script_of, user_kind
from agentunit.core.records import Outcome
from agentunit.engine.scoring.judging import PLAYED_USERS, Sending
from agentunit.metrics.inputs import InputProblem, Item
from agentunit.metrics.turns import turn_items

"""What stands in place of a metric where a judge is asked to play users."""
# What an answer is taken to be like before the agent has given one.
_ASSUMED_ANSWER = "x" * 600
_ASSUMED_RESULTS = "x" * 2000
_CHARACTERS_A_TOKEN = 4.0
_CHARACTERS_A_CLAIM = 100.0
# Tokens of the fixed part of a prompt with its schema, of one claim or fact in a reply, of one passage's verdict.
_PROMPT, _RAGAS_PROMPT = 400, 1300
_CLAIM_REPLY, _VERDICT_REPLY, _PASSAGE_REPLY, _CRITERION_REPLY = 45, 50, 40, 80
_MESSAGE_REPLY = 60
_ANY_NUMBER = 1 << 30
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|[。！？]")


def plan_sending(
    judged: Sequence[Any], sample: Sequence[Any], *, n_cases: int | None, exact: bool, answered: bool = True
) -> Sending | None:
    """What the core's ``plan_sending`` says for metrics that ask a judge."""
    settings = configured()
    if settings is None or n_cases == 0:
        return None
    read = [found for received in sample if (found := _items(received, answered))]
    items = [(number, item) for number, of_case in enumerate(read) for item in of_case]
    # Every case was looked at, or every case of which there are several repeats to come.
    is_whole = n_cases is not None and (
        len(sample) == n_cases or (not answered and bool(sample) and n_cases % len(sample) == 0)
    )
    # Metrics with the same measure ask the same questions, which are sent once.
    different = {
        (getattr(each, "measure_asked", each.name), getattr(each, "current_backend", "")): each for each in judged
    }
    asked: list[tuple[Any, QualityQuestion]] = []
    costs: list[tuple[float, float, float]] = []
    sent, sure = set(), set()
    for each in different.values():
        # A rubric is asked once about a conversation, the quality metrics about each of its turns.
        is_rubric = getattr(each, "measure_asked", "rubric") == "rubric"
        for number, item in [(number, of_case[-1]) for number, of_case in enumerate(read)] if is_rubric else items:
            question = _question(each, item, answered)
            cost = None if question is None else _expected(each, question)
            if question is None or cost is None or not cost[0]:
                continue  # nothing to ask, or an answer that needs no judge
            asked.append((each, question))
            costs.append(cost)
            sent.add(number)
            if answered or not _lacks(each, item):
                sure.add(number)
    if exact and is_whole and not asked:
        return None
    calls, prompt, completion = (sum(column) for column in zip(*costs, strict=True)) if costs else (0, 0, 0)
    share = None if n_cases is None or not items else n_cases / len(read) * settings.repeats
    n_judges = len(settings.judges) or 1
    return Sending(
        metrics=tuple(metric.name for metric in judged),
        **whom_asked(settings),
        fields=_fields(asked),
        n_cases=n_cases if n_cases is None or not items else round(n_cases * len(sent) / len(read)),
        exact=exact and is_whole and len(read) == len(sample),
        at_most=len(sure) < len(sent),
        n_calls=None if share is None else round(calls * share * n_judges),
        n_tokens=None if share is None else round((prompt + completion) * share * n_judges),
        cost_usd=None if share is None else _cost(settings, prompt * share, completion * share),
        repeats=settings.repeats,
        is_cached=settings.cache is not None,
        max_spend_usd=settings.max_spend_usd,
        is_batch=settings.batch,
    )


def estimated_sending(
    settings: JudgeSettings,
    *,
    metrics: tuple[str, ...],
    fields: tuple[str, ...],
    n_cases: int,
    n_calls: int,
    n_characters: int,
) -> Sending:
    """What so many calls with texts of this length altogether would send, each with a short reply."""
    prompt = (n_calls * _PROMPT + n_characters / _CHARACTERS_A_TOKEN) * settings.repeats
    completion = float(n_calls * _CRITERION_REPLY) * settings.repeats
    n_judges = len(settings.judges) or 1
    return Sending(
        metrics=metrics,
        **whom_asked(settings),
        fields=fields,
        n_cases=n_cases,
        exact=True,
        n_calls=n_calls * settings.repeats * n_judges,
        n_tokens=round((prompt + completion) * n_judges),
        cost_usd=_cost(settings, prompt, completion),
        repeats=settings.repeats,
        is_cached=settings.cache is not None,
        max_spend_usd=settings.max_spend_usd,
        is_batch=settings.batch,
    )


def plan_playing(cases: Sequence[DatasetCase], n_runs: float) -> Sending | None:
    """What playing the users of these cases would send, each ``n_runs`` times on average; ``None`` when nothing would.

    Users are taken to say all that they may: calls and tokens are the most, for answers as long as usual.
    """
    settings = configured()
    if not cases or settings is None:
        return None
    personas = [persona_of(case.user) for case in cases]
    n_calls = sum(each.max_turns for each in personas)
    said = _tokens(_ASSUMED_ANSWER) + _MESSAGE_REPLY
    prompt = sum(
        each.max_turns * (_PROMPT + _tokens(each.persona + each.goal) + said * (each.max_turns - 1) / 2)
        for each in personas
    )
    completion = float(n_calls * _MESSAGE_REPLY)
    # One judge plays a user, also where a panel is configured: its first.
    settings = members_of(settings)[0].settings
    return Sending(
        metrics=(PLAYED_USERS,),
        **whom_asked(settings),
        fields=("persona", "goal", "conversation"),
        n_cases=len(cases),
        exact=True,
        n_calls=round(n_calls * n_runs),
        n_tokens=round((prompt + completion) * n_runs),
        cost_usd=_cost(settings, prompt * n_runs, completion * n_runs),
        repeats=1,
        is_cached=settings.cache is not None,
        max_spend_usd=settings.max_spend_usd,
    )


def whom_asked(settings: JudgeSettings) -> dict[str, Any]:
    """Who is asked and where, as ``Sending`` tells it; the judges of a panel by their addresses."""
    members = members_of(settings)
    models: dict[str, list[str]] = {}
    for each in members:
        models.setdefault(each.settings.address.shown, []).append(each.settings.model)
    *others, (place, last) = models.items()
    named = [f"{', '.join(listed)} at {where}" for where, listed in others]
    addresses = [each.settings.address for each in members]
    local = ("localhost", "127.0.0.1", "::1")
    return {
        "place": place,
        "model": " and ".join([*named, ", ".join(last)]),
        "is_encrypted": all(each.is_tls or each.host in local for each in addresses),
    }


def _items(received: Any, answered: bool) -> list[Item]:
    """What a record is scored by: itself, or the turns of a conversation; of one to come, as many as it may have."""
    try:
        record = as_record(received)
    except RecordError:
        return []
    item = Item(record.case, record.trace, record.outcome if answered else Outcome(output=_ASSUMED_ANSWER))
    kind = user_kind(item.case)
    if answered or kind is None:
        return turn_items(item) or [item]
    turns = script_of(item.case) if kind == "script" else []
    n_turns = len(turns) or (persona_of(item.case.user).max_turns if kind == "judge" else DEFAULT_MAX_TURNS)
    expected = [turn.expected_output for turn in turns] or [None] * n_turns
    expected[-1] = item.case.expected_output if expected[-1] is None else expected[-1]
    assumed = structs.replace(item.case, turns=None, user=None)
    return [Item(structs.replace(assumed, expected_output=each), item.trace, item.outcome) for each in expected]


def _question(metric: Any, item: Item, answered: bool) -> QualityQuestion | None:
    """What a metric would ask about an item; ``None`` when it has nothing to ask.

    Before the agent has run, it is taken to call tools whose results are evidence.
    """
    awaits_results = not answered and "tools" in getattr(metric, "evidence_kinds", ())
    try:
        if _lacks(metric, item) and not awaits_results:
            return None
        question: QualityQuestion = metric.question(item)
    except (InputProblem, AttributeError):
        return None
    if awaits_results:
        context, sources = [*question.context, _ASSUMED_RESULTS], [*question.sources, "tool results"]
        question = replace(question, context=context, sources=sources)
    return question if question.answer and getattr(question, "criteria", True) else None


def _lacks(metric: Any, item: Item) -> bool:
    """Whether an item lacks what a metric asks about."""
    missing = getattr(metric, "missing", None)
    return callable(missing) and bool(missing(item))


def _expected(metric: Any, question: QualityQuestion) -> tuple[float, float, float]:
    """About how many calls, prompt tokens and completion tokens one question takes."""
    measure = getattr(metric, "measure_asked", "rubric")
    fixed = _RAGAS_PROMPT if getattr(metric, "current_backend", "") == "ragas" else _PROMPT
    asked, answer = _tokens(str(question.question or "")), _tokens(question.answer)
    context = sum(_tokens(text) for text in question.context)
    if measure == "faithfulness":
        return _claims_against(fixed, asked, question.answer, question.context)
    if measure == "answer_correctness":
        answers = [text for text in question.expected if text.strip()]
        if any(text.strip() == question.answer.strip() for text in answers):
            return 0, 0, 0
        both = [(question.answer, text) for text in answers] + [(text, question.answer) for text in answers]
        return _added(_claims_against(fixed, asked, one, [other]) for one, other in both)
    expected = sum(_tokens(text) for text in question.expected)
    if measure == "retrieval_quality":
        n_passages = len(question.context)
        calls = n_passages if fixed == _RAGAS_PROMPT else _passage_batches(question.context, MOST_PASSAGES)
        return calls, calls * (fixed + asked + (expected or answer)) + context, n_passages * _PASSAGE_REPLY
    criteria = getattr(question, "criteria", ())
    length = sum(_tokens(text) for text in criteria)
    if isinstance(question, RubricQuestion):
        length += sum(_tokens(text) for text in _rubric_texts(question))
    return 1, fixed + asked + answer + context + expected + length, _CRITERION_REPLY * len(criteria)


def _rubric_texts(question: RubricQuestion) -> list[str]:
    """What a rubric sends beside question, answer, context and criteria."""
    levels = [text for each in question.scored_by for _, text in each.levels]
    said = [text for _, text in question.messages]
    shown = [each.answer + (each.question or "") for each in question.examples]
    return [*levels, *said, *question.steps, *question.tools, *shown]


def _claims_against(fixed: int, asked: float, text: str, passages: Sequence[str]) -> tuple[float, float, float]:
    """What it takes to split a text into claims and to check them against passages, in as many calls as that needs."""
    n_claims = _claims(text)
    n_pieces = len(pieces(text, ANSWER_BUDGET))
    n_claim_batches = ceil(n_claims / MOST_CLAIMS)
    n_passage_batches = max(1, _passage_batches(passages, _ANY_NUMBER))
    calls = n_pieces + n_claim_batches * n_passage_batches
    length, claims = _tokens(text), _tokens(text) + 10 * n_claims
    read = n_claim_batches * sum(map(_tokens, passages)) + n_passage_batches * claims
    said = n_claims * (_CLAIM_REPLY + n_passage_batches * _VERDICT_REPLY) + claims
    return calls, calls * (fixed + asked) + length + read, said


def _passage_batches(passages: Sequence[str], most: int) -> int:
    cut = [piece for passage in passages for piece in pieces(passage, PASSAGE_BUDGET, OVERLAP)]
    return sum(1 for _ in batches(cut, len, PASSAGE_BUDGET, most))


def _added(costs: Iterable[tuple[float, float, float]]) -> tuple[float, float, float]:
    calls, prompt, completion = zip(*costs, strict=True)
    return sum(calls), sum(prompt), sum(completion)


def _claims(text: str) -> float:
    """About how many claims a text has: one a sentence, and more where sentences are long."""
    return max(1.0, len(text) / _CHARACTERS_A_CLAIM, float(len(_SENTENCE_END.findall(text))))


def _tokens(text: str) -> float:
    return len(text) / _CHARACTERS_A_TOKEN


def _cost(settings: JudgeSettings, prompt: float, completion: float) -> float | None:
    from agentunit.addons.judge._call_limits import Tariff

    costs = []
    for each in members_of(settings):
        # Priced as one call of average size would be, then taken many times: a tier for long prompts does not apply.
        prices = [Tariff(each.settings).cost_usd(*tokens) for tokens in ((1000, 0), (0, 1000))]
        if prices[0] is None or prices[1] is None:
            return None
        costs.append((prompt * prices[0] + completion * prices[1]) / 1000)
    return sum(costs)


_FIELDS = ("question", "answer", "conversation", "context", "tool results", "steps", "expected output")


def _fields(asked: Sequence[tuple[Any, QualityQuestion]]) -> tuple[str, ...]:
    if not asked:
        return _FIELDS
    sent = {name for metric, question in asked for name in _sent(metric, question)}
    return tuple(name for name in _FIELDS if name in sent)


def _sent(metric: Any, question: QualityQuestion) -> list[str]:
    """The parts of a case that a measure sends, of those that the case has."""
    measure = getattr(metric, "measure_asked", "rubric")
    has_expected = any(text.strip() for text in question.expected)
    n_results = sum(source.startswith("tool ") for source in question.sources)
    sent = {
        "question": bool(question.question),
        # Passages are judged by what they should lead to; the answer stands in where that is not known.
        "answer": measure != "retrieval_quality" or not has_expected,
        "context": len(question.context) > n_results and measure != "answer_correctness",
        "tool results": n_results > 0,
        "expected output": has_expected and measure != "faithfulness",
    }
    if isinstance(question, RubricQuestion):
        sent |= {"conversation": bool(question.messages), "steps": bool(question.steps)}
        sent["answer"] = not question.messages
    return [name for name, is_sent in sent.items() if is_sent]
