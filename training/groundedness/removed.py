"""Claims that stay as they are while what supports them is taken out of the text.

A claim is seen with both labels, so that nothing in its own words tells which: with a sentence taken out that bears on
it, and with one taken out that does not.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from agentunit_local.grounding.evidence import Context
from agentunit_local.grounding.segments import is_content, split_sentences, stem, words_of

from training.groundedness.groups import MADE, Group, Pair, number_of, rows_of

# Sets with texts of several sentences, how many of their supported claims are tried, and what an example counts.
SUPPORTED_SOURCES = {
    "fever_dev_pairs": 4000,
    "fm2_devtest": 2000,
    "scifact_rte": 500,
    "cg2c_doc": 1500,
    "pubmedqa_lt": 900,
}
ANSWERED_SOURCES = {"ares_synth_qa": 2000, "narrativeqa_lt": 4000}
WEIGHT = 0.6
_ANSWERED = re.compile(r"^Question: (.{8,}?) Answer: (.+)$", re.S)
_DEFINED = re.compile(
    r"^(?P<name>[A-Z][\w.'’-]+(?: (?:of |the |de |von |van )?[A-Z][\w.'’-]+){0,4})(?: \([^()]{0,120}\))? (?:is|was) "
    r"(?P<what>(?:an?|the) [a-z][^.;:]{8,160})[.]$"
)
_END_OF_NAME = re.compile(
    r",| (?:who|which|that|where|when|from|in|at|on|by|and|with|for|as|since|to|known|born|based|located|founded|directed|written|released|starring|produced|published|created|developed|played|held|used|formed|is|was|during|near|between)\b"
)


def content_of(text: str) -> frozenset[str]:
    """The stems of the words of a text that say something."""
    return frozenset(stem(word) for word in words_of(text) if is_content(word))


def evidence_of(context: Context, claim: str) -> str:
    """What the model is shown of a context."""
    return " ".join(context.sentences[number].sentence.text for number in context.evidence_for(claim))


def bearing_sentence(sentences: list[str], claim: str) -> int | None:
    """The one sentence without which a claim is no longer supported; ``None`` where no single one is it.

    Either it alone holds most of the claim, or it holds words of the claim that stand nowhere else.
    """
    wanted = content_of(claim)
    if len(wanted) < 3:
        return None
    held = [content_of(sentence) & wanted for sentence in sentences]
    order = sorted(range(len(held)), key=lambda n: -len(held[n]))
    best = order[0]
    if len(held[best]) < 0.5 * len(wanted):
        return None
    rest = frozenset[str]().union(*(words for n, words in enumerate(held) if n != best))
    alone = len(held[order[1]]) <= 0.34 * len(wanted) if len(order) > 1 else True
    lost = held[best] - rest
    if (alone and len(held[best]) >= 0.7 * len(wanted) and lost) or len(lost) >= max(2, 0.34 * len(wanted)):
        return best
    return None


def with_and_without(text: str, claim: str, kind: str, rng: random.Random, maker: str) -> list[Group]:
    """A supported claim with a sentence taken out that does not bear on it, and with the one that does."""
    sentences = [each.text for each in split_sentences(text)]
    if len(sentences) < 3:
        return []
    bearing = bearing_sentence(sentences, claim)
    if bearing is None:
        return []
    wanted = content_of(claim)
    # The neighbours may say who "he" is, and the opening what all is about.
    others = [
        n for n in range(1, len(sentences))
        if abs(n - bearing) > 1 and len(content_of(sentences[n]) & wanted) <= 0.25 * len(wanted)
    ]  # fmt: skip
    true_text = sentences if not others else _without(sentences, rng.choice(others))
    return [
        _group(true_text, claim, 1.0, kind, maker),
        _group(_without(sentences, bearing), claim, 0.0, kind, maker),
    ]


def _without(sentences: list[str], number: int) -> list[str]:
    return [*sentences[:number], *sentences[number + 1 :]]


def _group(sentences: list[str], claim: str, label: float, kind: str, maker: str) -> Group:
    wrong = [] if label else [(0, len(claim))]
    pair = Pair(evidence_of(Context([" ".join(sentences)]), claim), claim, wrong)
    return Group([pair], label, WEIGHT, f"{MADE}{kind}", maker=maker)


def supported_pairs(folder: Path, rng: random.Random) -> Iterator[Group]:
    """Supported claims of the entailment sets, one sentence of their text left out."""
    for source, most in SUPPORTED_SOURCES.items():
        rows = [row for row in rows_of(folder / "train" / f"{source}.jsonl.gz") if row["label"] == "entailment"]
        rng.shuffle(rows)
        for row in rows[:most]:
            yield from with_and_without(row["premise"], row["hypothesis"], source, rng, "sentence removed")


def supported_answers(rows: Iterable[dict], rng: random.Random) -> Iterator[Group]:  # type: ignore[type-arg]
    """Claims of answers that people found supported, one sentence of their document left out."""
    for row in rows:
        if row.get("hallucinated") is False:
            claims = [each.text for each in split_sentences(row["response"]) if len(each.text.split()) >= 6]
            for claim in rng.sample(claims, min(2, len(claims))):
                text = "\n".join(row["context"])
                yield from with_and_without(text, claim, row["dataset"], rng, "sentence removed")


def unanswered(folder: Path, rng: random.Random) -> Iterator[Group]:
    """Questions and answers with their passage, and with the passage without the sentences that hold the answer."""
    for source, most in ANSWERED_SOURCES.items():
        rows = [row for row in rows_of(folder / "train" / f"{source}.jsonl.gz") if row["label"] == "entailment"]
        rng.shuffle(rows)
        for row in rows[:most]:
            found = _ANSWERED.search(row["hypothesis"])
            if found is None:
                continue
            question, answer = found[1], content_of(found[2])
            sentences = [each.text for each in split_sentences(row["premise"])]
            holding = [n for n, each in enumerate(sentences) if answer and answer <= content_of(each)]
            # One word that is met everywhere, such as the hero's name, cannot be taken out.
            if not holding or len(holding) > max(1, len(sentences) // 3) or len(sentences) < 3:
                continue
            rest = [each for n, each in enumerate(sentences) if n not in holding]
            if answer <= content_of(" ".join(rest)):
                continue
            maker = "answer removed"
            yield _group(sentences, row["hypothesis"], 1.0, source, maker)
            yield _group(rest, row["hypothesis"], 0.0, source, maker)
            asked = f"The text answers the question: {question}"
            relevant = f"relevance:{source}"
            for said, label in ((sentences, 1.0), (rest, 0.0)):
                shown = evidence_of(Context([" ".join(said)]), question)
                yield Group([Pair(shown, asked)], label, WEIGHT, relevant, maker="question without answer")


def defined(text: str, kind: str, rng: random.Random) -> list[Group]:
    """A sentence in which a name is replaced by what another sentence says it is, with and without that other sentence."""
    sentences = [each.text.strip() for each in split_sentences(text)]
    for number in rng.sample(range(len(sentences)), len(sentences)):
        found = _DEFINED.match(sentences[number])
        if found is None:
            continue
        what = _END_OF_NAME.split(found["what"], maxsplit=1)[0].strip()
        if not 3 <= len(what.split()) <= 8 or what.split()[-1] in ("of", "the", "one"):
            continue
        name = found["name"]
        sought = re.compile(rf"\b{re.escape(name)}\b(?!['’-])")
        using = [
            n for n, each in enumerate(sentences)
            if n != number and len(each.split()) >= 6 and len(sought.findall(each)) == 1 and sought.search(each).start() > 0  # type: ignore[union-attr]
            and not re.search(rf"[\w\"“] {re.escape(name)} [A-Z]|[A-Z][\w.]* {re.escape(name)}\b", each)
        ]  # fmt: skip
        rest = " ".join(each for n, each in enumerate(sentences) if n != number)
        if not using or len(content_of(what) - content_of(name) - content_of(rest)) < 2:
            continue
        using_number = rng.choice(using)
        claim = sought.sub(what, sentences[using_number])
        others = [n for n in range(len(sentences)) if n not in (number, using_number)]
        kept = _without(sentences, rng.choice(others)) if others and rng.random() < 0.5 else sentences
        document = number_of(claim)
        groups = [
            _group(kept, claim, 1.0, kind, "definition removed"),
            _group(_without(sentences, number), claim, 0.0, kind, "definition removed"),
        ]
        at = claim.find(what)
        groups[1].pairs[0].wrong = [(at, at + len(what))]
        for group in groups:
            group.document = document
        return groups
    return []
