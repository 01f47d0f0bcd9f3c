"""The judge as a quality backend: questions in, verdicts out, as many calls under way as the settings allow."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import replace
from functools import partial
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, TypeVar

from agentunit.addons.judge._claims import answer_correctness, faithfulness
from agentunit.addons.judge._pairwise import pairwise
from agentunit.addons.judge._panel import Member, Vote, members_of, quorum_of, together
from agentunit.addons.judge._rubric import rubric
from agentunit.addons.judge._useful_passages import retrieval_quality
from agentunit.addons.judge.client import JudgeClient, JudgeReply, why_not_ready
from agentunit.addons.judge.injection import suspicions
from agentunit.addons.judge.questions import Asking, Judge, spent_on
from agentunit.addons.judge.settings import JudgeSettings, configured
from agentunit.backends.asking import JudgeFailed, all_of
from agentunit.backends.quality import PairQuestion, QualityQuestion, RubricQuestion, Verdict
from agentunit.backends.services import why_not_configured
from agentunit.public import publish

if TYPE_CHECKING:
    from agentunit.engine.scoring.judging import Sending

T = TypeVar("T")


def over_repeats(verdicts: Sequence[Verdict]) -> Verdict:
    """The mean of the values there are. The detail is that of the first with a value, and of the first failure.

    ``judge_values`` has a place for each repeat, ``None`` where there is no value; ``judge_sd`` is their standard
    deviation (of a sample; ``None`` for fewer than two), ``n_failed`` counts the repeats that failed. Without any value
    the verdict is that of a repeat that did not fail, if there is one.

    >>> made = over_repeats([Verdict(0.5), Verdict(1.0)])
    >>> made.value, made.detail["judge_values"], round(made.detail["judge_sd"], 3)
    (0.75, [0.5, 1.0], 0.354)
    """
    values = [verdict.value for verdict in verdicts if verdict.value is not None]
    failures = [verdict for verdict in verdicts if "error" in verdict.detail]
    unfailed = [verdict for verdict in verdicts if "error" not in verdict.detail]
    scored = [verdict for verdict in unfailed if verdict.value is not None]
    shown = (scored or unfailed or failures)[0]
    detail = {
        **shown.detail,
        "judge_values": [verdict.value for verdict in verdicts],
        "judge_sd": stdev(values) if len(values) > 1 else None,
        "n_failed": len(failures),
    }
    if values and failures:
        detail["failed_repeat"] = {key: failures[0].detail.get(key) for key in ("reason", "raw")}
    return Verdict(fmean(values) if values else None, detail)


Measure = Callable[[Any, Asking], Awaitable[Verdict]]

MEASURES: dict[str, Measure] = {
    "faithfulness": faithfulness,
    "answer_correctness": answer_correctness,
    "retrieval_quality": retrieval_quality,
    "rubric": rubric,
    "pairwise": pairwise,
}


class JudgeBackend:
    """Asks the configured judge. ``client`` takes the place of one made from the settings."""

    name = "judge"
    measures = frozenset(MEASURES)
    first_passage = 1

    def __init__(self, client: JudgeClient | None = None) -> None:
        self._own_client = client
        self._made: list[tuple[Member, JudgeClient]] = []
        self._made_for: JudgeSettings | None = None
        self._lock = threading.Lock()

    def unready(self) -> str | None:
        """Why it cannot run now: no judge was configured, a setting is wrong, or a spend cap could not be kept."""
        if self._own_client is not None:
            return None
        try:
            settings = configured()
        except ValueError as error:
            return str(error)
        if settings is None:
            return why_not_configured()
        return next((why for each in members_of(settings) if (why := why_not_ready(each.settings))), None)

    @property
    def client(self) -> JudgeClient:
        """The client for the settings as they are now; of a panel, that of its first judge."""
        return self._own_client or self._panel()[0][1]

    @property
    def clients(self) -> list[JudgeClient]:
        """The clients of all judges."""
        return [self._own_client] if self._own_client is not None else [client for _, client in self._panel()]

    def close(self) -> None:
        """Close the clients that were made from settings; the next question makes new ones."""
        with self._lock:
            made, self._made, self._made_for = self._made, [], None
        for _, client in made:
            client.close()

    def _panel(self) -> list[tuple[Member, JudgeClient]]:
        settings = configured()
        if settings is None:
            raise JudgeFailed(why_not_configured())
        with self._lock:
            if self._made_for != settings:
                for _, client in self._made:
                    client.close()
                self._made = [(member, JudgeClient(member.settings)) for member in members_of(settings)]
                self._made_for = settings
            return self._made

    def judge(self, measure: str, questions: Sequence[QualityQuestion]) -> list[Verdict]:
        """A verdict per question; one that fails says why and leaves the others alone."""
        verdicts = self.start(measure, questions)
        try:
            return verdicts.result()
        except CancelledError:
            return [failed("the judge was stopped before it gave a verdict") for _ in questions]
        except BaseException:
            verdicts.cancel()
            raise

    def start(self, measure: str, questions: Sequence[QualityQuestion]) -> Future[list[Verdict]]:
        """Begin to judge all questions at once; the future's result is what ``judge`` returns."""
        ask = partial(judge_all, MEASURES[measure], questions)
        panel = [] if self._own_client is not None else self._panel()
        if not panel or self._made_for is None or not self._made_for.judges:
            client = self.client
            return client.submit(ask(client, client.settings.repeats))
        # A tie is no vote for either side, so choices between two answers are averaged.
        vote: Vote = "mean" if measure == "pairwise" else self._made_for.vote
        decide = partial(together, quorum=quorum_of(self._made_for), vote=vote)
        return panel[0][1].submit(_panel_verdicts(ask, panel, decide))

    def start_own(self, measure: Measure, questions: Sequence[QualityQuestion]) -> Future[list[Verdict]]:
        """The same with a measure that somebody else brings; the first judge of a panel is asked."""
        client = self.client
        return client.submit(judge_all(measure, questions, client, client.settings.repeats))

    def ask(self, question: Callable[[Asking], Coroutine[Any, Any, T]]) -> T:
        """What comes of a question that is for no verdict on an answer; ``JudgeFailed`` without a usable reply."""
        client = self.client
        return client.submit(question(Asking(client))).result()

    def estimate(self, **asked: Any) -> Sending:
        """What so many calls would send (``estimated_sending``)."""
        from agentunit.addons.judge.sending import estimated_sending

        return estimated_sending(configured() or self.client.settings, **asked)

    def embeddings(self, model: str) -> Callable[[str], Coroutine[Any, Any, list[float]]]:
        """What gives the numbers of a text, by a model of the judge's server."""
        from agentunit.addons.judge.embeddings import ServerEmbeddings

        return ServerEmbeddings(self.client.settings, model).embed


async def _panel_verdicts(
    ask: Callable[[JudgeClient, int], Coroutine[Any, Any, list[Verdict]]],
    panel: Sequence[tuple[Member, JudgeClient]],
    decide: Callable[[Sequence[Member], Sequence[Verdict]], Verdict],
) -> list[Verdict]:
    """Every question to every judge at once, each in the event loop of its own client."""
    asked = [asyncio.wrap_future(client.submit(ask(client, client.settings.repeats))) for _, client in panel]
    said = await asyncio.gather(*asked)
    members = [member for member, _ in panel]
    return [decide(members, verdicts) for verdicts in zip(*said, strict=True)]


async def judge_all(
    measure: Measure, questions: Sequence[QualityQuestion], judge: Judge, repeats: int = 1
) -> list[Verdict]:
    """A verdict per question, in their order; all are asked about at once."""
    return await all_of(judge_one(measure, each, judge, repeats) for each in questions)


async def judge_one(measure: Measure, question: QualityQuestion, judge: Judge, repeats: int = 1) -> Verdict:
    """The verdict on one question, judged ``repeats`` times, with what it took and what looked suspicious."""
    question = replace(question, question=_text_or_none(question.question))
    made = await all_of(_judge_once(measure, question, judge, sample) for sample in range(repeats))
    verdict = over_repeats([each for each, _ in made]) if repeats > 1 else made[0][0]
    suspected = suspicions(_places(question))
    if suspected:
        verdict.detail["injection_suspected"] = suspected
    verdict.detail["judge"] = spent_on([reply for _, replies in made for reply in replies])
    return verdict


async def _judge_once(
    measure: Measure, question: QualityQuestion, judge: Judge, sample: int
) -> tuple[Verdict, list[JudgeReply]]:
    asking = Asking(judge, sample)
    try:
        return await measure(question, asking), asking.replies
    except JudgeFailed as error:
        return failed(str(error), error.raw), asking.replies
    except Exception as error:  # noqa: BLE001  # one question must not take its batch along
        return failed(f"{type(error).__name__}: {error}", kind=type(error).__name__), asking.replies


def failed(reason: str, raw: str | None = None, kind: str = JudgeFailed.__name__) -> Verdict:
    """A verdict that is an error: no value, the reason, and what the judge said."""
    return Verdict(None, {"reason": reason, "error": {"type": kind, "message": reason}, "raw": raw})


def _text_or_none(query: Any) -> str | None:
    """A case's query may be data; a blank one says nothing."""
    text = query if isinstance(query, str) or query is None else str(query)
    return text if text and text.strip() else None


def _places(question: QualityQuestion) -> list[tuple[str, str]]:
    places = [("question", question.question or ""), ("answer", question.answer)]
    sources = question.sources or [f"context[{at}]" for at in range(len(question.context))]
    places += zip(sources, question.context, strict=True)
    places += [(f"expected[{at}]", text) for at, text in enumerate(question.expected)]
    if isinstance(question, PairQuestion):
        places.append(("other answer", question.other))
    if isinstance(question, RubricQuestion):
        places += [(f"criteria[{at}]", text) for at, text in enumerate(question.criteria)]
        # The last answer of a conversation stands among the places already.
        places += [
            (f"message[{at}]", text) for at, (_, text) in enumerate(question.messages) if text != question.answer
        ]
        places += [(f"step[{at}]", text) for at, text in enumerate(question.steps)]
        for at, each in enumerate(question.examples):
            places += [(f"example[{at}]", text) for text in (each.question, each.answer, each.reason) if text]
    return places


publish("agentunit.backends.judge", JudgeBackend)
