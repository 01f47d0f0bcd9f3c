"""The training examples: entailment pairs, made sentences, and labelled answers, as groups of (evidence, claim) pairs.

A group has one label. A pair of premise and hypothesis is a group of one; an answer of several sentences is a group that
is supported only if all its sentences are.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentunit_local.grounding.claims import claims_of
from agentunit_local.grounding.evidence import Context
from agentunit_local.grounding.segments import split_sentences

from training.groundedness.edits import Editor, Made, Source

# The labelled sets whose licences allow training shipped weights; the others are for measurement only.
TRAINABLE = ("frank_", "summedits_", "wice", "begin_", "halueval_")
FOLDS = 5
MADE = "made:"
"""How the kind of a group begins that was made from a text."""
RANKED = "ranked:"
"""How the kind of a group begins whose first claim should beat its second on the same evidence."""

# How many of each source's pairs are used in one epoch, and what each counts.
PAIR_SOURCES: dict[str, tuple[int, float]] = {
    "mnli_dev": (20000, 1.0), "snli_dev": (5000, 0.5), "cf_snli": (6000, 0.5), "fever_dev_pairs": (13200, 1.0),
    "fever_symmetric": (1400, 1.0), "fm2_devtest": (2600, 1.0), "paws_wiki_devtest": (16000, 1.0),
    "scitail_dev": (2200, 0.7), "scifact_rte": (800, 1.0), "pubmedqa_lt": (1900, 0.7),
    "conjnli_adv_train": (8000, 0.7), "conjnli_devtest": (700, 0.7), "hans_generated": (4000, 0.4),
    "dnc_megaveridicality": (2000, 0.4), "dnc_function_words": (1500, 0.5), "help_conj": (3000, 0.5), "med": (3000, 0.5),
    "wikisplit_pos": (12000, 0.7), "qnli_dev": (5700, 1.0), "condaqa_yesno": (8000, 0.7), "ares_synth_qa": (4000, 1.0),
    "narrativeqa_lt": (8000, 0.7), "boolq_lt": (12000, 0.7), "cg2c_doc": (2068, 1.0),
}  # fmt: skip


# Sets of questions about passages, and how many of each are asked of the right and of a wrong passage.
ASKED_SOURCES = {"boolq_lt": 6000, "narrativeqa_lt": 3000, "ares_synth_qa": 2000, "condaqa_yesno": 1500}
_QUESTION = re.compile(r'^The answer to the question "(.{8,}?)" is |^Question: (.{8,}?) Answer: ')


@dataclass
class Pair:
    """Evidence and claim; ``wrong`` marks the characters of the claim that are wrong, where that is known."""

    evidence: str
    claim: str
    wrong: list[tuple[int, int]] | None = None


@dataclass
class Group:
    """Pairs with one label (1.0: all supported), what it counts, where it is from, its fold, and its document's number."""

    pairs: list[Pair]
    label: float
    weight: float = 1.0
    kind: str = "pair"
    key: str = ""
    fold: int = -1
    document: int = -1


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a gzipped JSON-lines file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def fold_of(name: Any) -> int:
    """The fold of a document or question: all its rows are in the same one."""
    return zlib.crc32(str(name).encode()) % FOLDS


def entailment_pairs(folder: Path, rng: random.Random) -> Iterator[Group]:
    """The pairs of ``train/``: supported if entailed, else not."""
    for source, (most, weight) in PAIR_SOURCES.items():
        rows = list(rows_of(folder / "train" / f"{source}.jsonl.gz"))
        rng.shuffle(rows)
        for row in rows[:most]:
            label = float(row["label"] == "entailment")
            yield Group([Pair(row["premise"], row["hypothesis"])], label, weight, source)


def relevance_pairs(folder: Path, rng: random.Random) -> list[Group]:
    """Questions with the passage they were asked about, and with the one among others that has most words of theirs."""
    found: list[Group] = []
    for source, most in ASKED_SOURCES.items():
        asked: dict[str, str] = {}
        for row in rows_of(folder / "train" / f"{source}.jsonl.gz"):
            question = _QUESTION.search(row["hypothesis"])
            if question is not None and row["label"] != "not_supported":
                asked.setdefault(next(filter(None, question.groups())), row["premise"])
        chosen = rng.sample(sorted(asked.items()), min(most, len(asked)))
        passages = list(dict.fromkeys(passage for _, passage in chosen))
        holding: dict[str, set[int]] = {}
        for number, passage in enumerate(passages):
            for word in _words(passage):
                holding.setdefault(word, set()).add(number)
        for question_text, passage in chosen:
            found.append(relevance_group(question_text, passage, 1.0, f"relevance:{source}", "", -1))
            shared: dict[int, float] = {}
            for word in _words(question_text):
                numbers = holding.get(word, set())
                for number in numbers if len(numbers) < 200 else ():
                    shared[number] = shared.get(number, 0.0) + 1.0 / len(numbers)
            others = sorted((n for n in shared if passages[n] != passage), key=lambda n: (-shared[n], n))[:3]
            other = passages[rng.choice(others)] if others else rng.choice(passages)
            if other != passage:
                found.append(relevance_group(question_text, other, 0.0, f"relevance:{source}", "", -1))
    return found


def _words(text: str) -> set[str]:
    return {stem for sentence in Context([text]).sentences for stem in sentence.content}


def texts_of(folder: Path) -> list[tuple[str, str]]:
    """Plain texts to make sentences from, each with its kind: those of ``train/texts`` and the contexts of trainable sets."""
    texts = [(row["source"].split("|")[0], row["text"]) for row in rows_of(folder / "train" / "texts.jsonl.gz")]
    seen = set()
    for row in rows_of(folder / "dev" / "faithfulness.jsonl.gz"):
        if row["dataset"].startswith(TRAINABLE):
            text = "\n".join(row["context"])
            if hash(text) not in seen and len(text) > 300:
                seen.add(hash(text))
                texts.append((row["dataset"], text))
    return texts


def made_groups(kind: str, text: str, editor: Editor, rng: random.Random, most: int) -> Iterator[Group]:
    """Supported and unsupported sentences made from one text."""
    sentences = split_sentences(text)
    usable = [number for number, each in enumerate(sentences) if 5 <= len(each.text.split()) <= 60]
    if len(usable) < 3:
        return
    source = Source.of([sentence.text for sentence in sentences])
    context = Context([text])
    bridged = editor.bridged(source)
    if bridged is not None:
        bridge, claim = bridged
        rest = Context([" ".join(each.text for each in [*sentences[:bridge], *sentences[bridge + 1 :]])])
        yield _made_group(claim, context, 1.0, kind)
        if not _is_said(claim, rest):
            yield _made_group(claim, rest, 0.0, kind, everything=True)
    number = rng.choice(usable)
    denied = editor.denied(source, number)
    if denied is not None:
        said = [each.text for each in sentences]
        said[number] = denied[2]
        yield _ranked_group(denied[0], denied[1], Context([" ".join(said)]), kind)
    for number in rng.sample(usable, min(len(usable), max(1, most - 1))):
        swapped = editor.swapped(source, number)
        if swapped is not None:
            yield _ranked_group(*swapped, context, kind)
    for number in rng.sample(usable, min(len(usable), most)):
        made = editor.supported(source, number)
        yield _made_group(made, context, 1.0, kind)
        wrong = editor.unsupported(source, number)
        if wrong is not None:
            yield _made_group(wrong, context, 0.0, kind)
        if rng.random() < 0.5 and len(sentences) > 4:
            # True, but not said here: the sentence and its neighbours are taken out of the text.
            left = sentences[: max(0, number)] + sentences[number + 1 :]
            rest = " ".join(sentence.text for sentence in left)
            absent = Context([rest])
            claim = editor.supported(source, number)
            if not _is_said(claim, absent):
                yield _made_group(claim, absent, 0.0, kind, everything=True)


def _is_said(claim: Made, context: Context) -> bool:
    """Whether one sentence of a context holds most words of a claim: it may be supported there after all."""
    words = {stem for sentence in Context([claim.text]).sentences for stem in sentence.content}
    return max((len(words & each.content) / max(1, len(words)) for each in context.sentences), default=0) >= 0.6


def _ranked_group(made: Made, wrong: Made, context: Context, kind: str) -> Group:
    """A true claim and the same with one small thing changed, on the evidence for the true one."""
    evidence = " ".join(context.sentences[number].sentence.text for number in context.evidence_for(made.text))
    pairs = [Pair(evidence, each.text, _wrong_places(each)) for each in (made, wrong)]
    return Group(pairs, 0.0, 0.6, f"{RANKED}{kind}")


def _made_group(made: Made, context: Context, label: float, kind: str, *, everything: bool = False) -> Group:
    claim = made.text
    evidence = " ".join(context.sentences[number].sentence.text for number in context.evidence_for(claim))
    wrong = [(0, len(claim))] if everything else _wrong_places(made)
    return Group([Pair(evidence, claim, wrong)], label, 0.6, f"{MADE}{kind}")


def _wrong_places(made: Made) -> list[tuple[int, int]]:
    """Where the wrong tokens of a made sentence stand in its text."""
    claim = made.text
    places: list[tuple[int, int]] = []
    at = 0
    for token, is_wrong in zip(made.tokens, made.wrong, strict=True):
        found = claim.find(token, at)
        if found >= 0:
            if is_wrong:
                places.append((found, found + len(token)))
            at = found + len(token)
    return places


def answer_group(row: dict[str, Any]) -> Group:
    """A labelled answer with the evidence for each of its claims."""
    context = Context(row["context"])
    pairs = []
    for claim in claims_of(row["response"], row.get("question")):
        evidence = " ".join(context.sentences[n].sentence.text for n in context.evidence_for(claim.asked))
        pairs.append(Pair(evidence, claim.asked))
    label = row["faithful"] if row.get("hallucinated") is None else float(not row["hallucinated"])
    dataset = row["dataset"]
    weight = 0.4 if dataset.startswith("halueval") else 2.5
    trainable = dataset.startswith(TRAINABLE)
    return Group(
        pairs, label, weight, dataset, str(row["id"]), fold_of(row["group"]) if trainable else -2,
        zlib.crc32(f"{dataset} {row['group']}".encode()),
    )  # fmt: skip


def correctness_group(row: dict[str, Any]) -> Group:
    """A labelled answer to a question with known answers."""
    expected = " or ".join(row["expected"][:6])
    question = row["question"].strip().rstrip("?")
    answer = " ".join(row["answer"].split()[:120])
    pair = Pair(f"Question: {question}? Answer: {expected}", f"Question: {question}? Answer: {answer}")
    return Group([pair], float(row["correct"]), 0.7, "correctness", str(row["id"]), fold_of(row["question"]))


def relevance_group(question: str, passage: str, label: float, dataset: str, key: str, fold: int = -2) -> Group:
    """A passage that answers a question, or not."""
    claim = f"The text answers the question: {question}"
    context = Context([passage])
    evidence = " ".join(context.sentences[n].sentence.text for n in context.evidence_for(question))
    return Group([Pair(evidence, claim)], label, 1.0, dataset, key, fold)
