"""Claims of summaries that people wrote: true of their own document, not of another, and false after a small edit."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agentunit_local.grounding.evidence import Context
from agentunit_local.grounding.segments import split_sentences

from training.groundedness.edits import Editor, Made, Source, wrong_places
from training.groundedness.groups import MADE, Group, Pair, number_of, rows_of
from training.groundedness.removed import content_of, evidence_of, with_and_without

WEIGHT = 0.8
# What share of a claim's words the evidence must hold to call it supported: people leave out, and reword.
COVERED = {"multilexsum_doc": 0.6, "qmsum_span": 0.6, "aci_bench": 0.55, "squality_summary": 0.7}
_MOST_CLAIMS = {"multilexsum_doc": 3, "qmsum_span": 3, "aci_bench": 25, "squality_summary": 1}
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]+")
_CUT = re.compile(
    r"^\W|\b(?:Cal|U\.S\.C|U\. S\. C|Mr|Mrs|Ms|Dr|No|v|vs|Inc|Co|St|U\.S|Jan|Feb|Mar|Apr|Aug|Sept|Oct|Nov|Dec)\.$"
)
_HEADING = re.compile(r"^[A-Z\s/&]+$|^[\w /]{3,40}:$")


@dataclass
class Told:
    """A document, and what people wrote about it. ``about`` tells documents apart that are about the same."""

    source: str
    document: str
    summary: str
    about: str


def told_documents(folder: Path) -> list[Told]:
    """Documents with a summary; a summary of a story is told by what others wrote about it and by the story."""
    found: list[Told] = []
    stories: dict[str, list[str]] = {}
    summaries: dict[tuple[str, str], list[str]] = {}
    for number, row in enumerate(rows_of(folder / "train" / "texts.jsonl.gz")):
        source = row["source"].split("|")[0]
        if row.get("summary"):
            found.append(Told(source, row["text"], row["summary"], row.get("id") or str(number)))
        elif source == "squality_story":
            stories.setdefault(row["id"], []).append(row["text"])
        elif source == "squality_summary":
            summaries.setdefault((row["id"], row["question"]), []).append(row["text"])
    for (story, _), told in summaries.items():
        for number, summary in enumerate(told):
            others = "\n".join(told[:number] + told[number + 1 :])
            if others:
                found.append(Told("squality_summary", others, summary, story))
    return found


def claims_of_summary(summary: str) -> list[str]:
    """The sentences of a summary that say something."""
    lines = [line for line in summary.splitlines() if line.strip() and not _HEADING.match(line.strip())]
    sentences = [each.text.strip().lstrip("•-* ") for line in lines for each in split_sentences(line)]
    return [
        each for each in sentences
        if 6 <= len(each.split()) <= 45 and each[-1:] in ".!" and each.count("(") == each.count(")") and not _CUT.search(each)
    ]  # fmt: skip


def covered(claim: str, evidence: str) -> float:
    """The share of a claim's words that evidence holds; 0 where a number or a name of the claim is lacking."""
    wanted = content_of(claim)
    lacking = [
        each for each in (*_NUMBER.findall(claim), *_NAME.findall(claim)) if each.lower() not in evidence.lower()
    ]
    return 0.0 if lacking or not wanted else len(wanted & content_of(evidence)) / len(wanted)


def summary_groups(told: list[Told], editor: Editor, rng: random.Random) -> Iterator[Group]:
    """Claims of each summary with their document, with another, and edited with their document."""
    words = [content_of(each.document) for each in told]
    holding: dict[str, list[int]] = {}
    for number, each in enumerate(words):
        for word in each:
            holding.setdefault(word, []).append(number)
    for number, each in enumerate(told):
        context = Context([each.document])
        source = Source.of([sentence.text for sentence in split_sentences(each.document)])
        claims = claims_of_summary(each.summary)
        for claim in rng.sample(claims, min(len(claims), _MOST_CLAIMS[each.source])):
            evidence = evidence_of(context, claim)
            if covered(claim, evidence) < COVERED[each.source]:
                continue
            kind, document = f"{MADE}{each.source}", number_of(f"{number} {claim}")
            yield Group([Pair(evidence, claim, [])], 1.0, WEIGHT, kind, document=document, maker="summary")
            yield from with_and_without(each.document, claim, each.source, rng, "sentence removed")
            other = _other(number, claim, told, words, holding, rng)
            if other is not None:
                shown = evidence_of(Context([told[other].document]), claim)
                pair = Pair(shown, claim, [(0, len(claim))])
                yield Group([pair], 0.0, WEIGHT, kind, document=document, maker="summary")
            made = Made.of(claim)
            wrong = editor.retold(made, source)
            if wrong is not None and not _is_true(wrong, evidence):
                group = Group([Pair(evidence, wrong.text, wrong_places(wrong))], 0.0, WEIGHT, kind)
                group.document, group.maker = document, "summary edited"
                yield group
                yield Group(
                    [Pair(evidence, made.text, [])], 1.0, WEIGHT, kind, document=document, maker="summary edited"
                )


def _other(
    number: int,
    claim: str,
    told: list[Told],
    words: list[frozenset[str]],
    holding: dict[str, list[int]],
    rng: random.Random,
) -> int | None:
    """Another document of the same kind that shares many words with the claim, and does not say it."""
    mine = told[number]
    shared: dict[int, float] = {}
    wanted = content_of(claim)
    for word in wanted:
        numbers = holding.get(word, [])
        for other in numbers:
            shared[other] = shared.get(other, 0.0) + 1.0 / len(numbers)
    near = [n for n in shared if told[n].source == mine.source and told[n].about != mine.about]
    near.sort(key=lambda n: (-shared[n], n))
    close = [n for n in near[:6] if len(wanted & words[n]) <= 0.75 * len(wanted)]
    return rng.choice(close) if close else None


def _is_true(wrong: Made, evidence: str) -> bool:
    """Whether the words around an edit stand in the evidence just so."""
    at = [n for n, is_wrong in enumerate(wrong.wrong) if is_wrong]
    around = " ".join(wrong.tokens[max(0, at[0] - 2) : at[-1] + 3]).lower()
    return around in " ".join(Made.of(evidence).tokens).lower()
