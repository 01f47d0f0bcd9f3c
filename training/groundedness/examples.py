"""The training examples: entailment pairs, made sentences, and labelled answers, as groups of (evidence, claim) pairs.

A group has one label. A pair of premise and hypothesis is a group of one; an answer of several sentences is a group that
is supported only if all its sentences are.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentunit_local.grounding.claims import claims_of
from agentunit_local.grounding.evidence import Context
from agentunit_local.grounding.segments import split_sentences

from training.groundedness.dialogues import SPOKEN, dialogue_groups
from training.groundedness.edits import Editor, Made, Source, wrong_places
from training.groundedness.groups import MADE, Group, Pair, first_of_two, fold_of, number_of, rows_of
from training.groundedness.removed import content_of, defined, evidence_of

# The labelled sets whose licences allow training shipped weights; the others are for measurement only.
TRAINABLE = ("frank_", "summedits_", "wice", "begin_", "halueval_")
# How many of each source's pairs are used in one epoch, and what each counts.
PAIR_SOURCES: dict[str, tuple[int, float]] = {
    "mnli_dev": (20000, 1.0), "snli_dev": (5000, 0.5), "cf_snli": (6000, 0.5), "fever_dev_pairs": (13200, 1.0),
    "fever_symmetric": (1400, 1.0), "fm2_devtest": (2600, 1.0), "paws_wiki_devtest": (16000, 1.0),
    "scitail_dev": (2200, 0.7), "scifact_rte": (800, 1.0), "pubmedqa_lt": (1900, 0.7),
    "conjnli_adv_train": (8000, 0.7), "conjnli_devtest": (700, 0.7), "hans_generated": (4000, 0.4),
    "dnc_megaveridicality": (2000, 0.4), "dnc_function_words": (1500, 0.5), "help_conj": (3000, 0.5), "med": (3000, 0.5),
    "wikisplit_pos": (4000, 0.7), "qnli_dev": (5700, 1.0), "condaqa_yesno": (8000, 0.7), "ares_synth_qa": (4000, 1.0),
    "narrativeqa_lt": (8000, 0.7), "boolq_lt": (12000, 0.7), "cg2c_doc": (2068, 1.0),
}  # fmt: skip


# Sets of questions about passages, and how many of each are asked of the right and of a wrong passage.
ASKED_SOURCES = {"boolq_lt": 6000, "narrativeqa_lt": 3000, "ares_synth_qa": 2000, "condaqa_yesno": 1500}
_LINE_BREAK = re.compile(r"(?<![\n.!?”\"])\n(?!\n)")
_QUESTION = re.compile(r'^The answer to the question "(.{8,}?)" is |^Question: (.{8,}?) Answer: ')


def entailment_pairs(folder: Path, rng: random.Random) -> Iterator[Group]:
    """The pairs of ``train/``: supported if entailed, else not."""
    for source, (most, weight) in PAIR_SOURCES.items():
        rows = list(rows_of(folder / "train" / f"{source}.jsonl.gz"))
        if source == "wikisplit_pos":
            rows = [row for row in rows if _is_half(row)]
        rng.shuffle(rows)
        for row in rows[:most]:
            label = float(row["label"] == "entailment")
            yield Group([Pair(row["premise"], row["hypothesis"])], label, weight, source)


def _is_half(row: dict[str, Any]) -> bool:
    """Whether a half says what the whole does: some halves were given details of their own."""
    half = content_of(row["hypothesis"])
    return len(half & content_of(row["premise"])) >= 0.85 * len(half)


def halved_groups(folder: Path, editor: Editor, rng: random.Random, most: int = 2500) -> Iterator[Group]:
    """Halves of split sentences, which are all true, with one thing changed in the half, in the whole, or in both."""
    rows = [row for row in rows_of(folder / "train" / "wikisplit_pos.jsonl.gz") if _is_half(row)]
    for row in rng.sample(rows, min(most, len(rows))):
        whole, half = Made.of(row["premise"]), Made.of(row["hypothesis"])
        change = editor.changed(Source.of([half.text]), 0)
        if change is None or change.step == "detail":
            continue
        other_half, other_whole = change.made_in(half), change.made_in(whole)
        if other_half is None or other_whole is None:
            continue
        document = first_of_two(f"halved {half.text}")
        for place, said in enumerate((whole, other_whole)):
            true, false = (half, other_half) if not place else (other_half, half)
            for claim, label in ((true.right(), 1.0), (false.unlike(true), 0.0)):
                pair = Pair(said.text, claim.text, wrong_places(claim))
                yield Group([pair], label, 0.6, f"{MADE}wikisplit_pos", document=document + place, maker="halved")


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
            for word in content_of(passage):
                holding.setdefault(word, set()).add(number)
        for question_text, passage in chosen:
            found.append(relevance_group(question_text, passage, 1.0, f"relevance:{source}", "", -1))
            shared: dict[int, float] = {}
            for word in content_of(question_text):
                numbers = holding.get(word, set())
                for number in numbers if len(numbers) < 200 else ():
                    shared[number] = shared.get(number, 0.0) + 1.0 / len(numbers)
            others = sorted((n for n in shared if passages[n] != passage), key=lambda n: (-shared[n], n))[:3]
            other = passages[rng.choice(others)] if others else rng.choice(passages)
            if other != passage:
                found.append(relevance_group(question_text, other, 0.0, f"relevance:{source}", "", -1))
    return found


def texts_of(folder: Path) -> list[tuple[str, str]]:
    """Plain texts to make sentences from, each with its kind: those of ``train/texts`` and the contexts of trainable sets."""
    texts = []
    for row in rows_of(folder / "train" / "texts.jsonl.gz"):
        source = row["source"].split("|")[0]
        # Stories were printed in lines: without joining them, half sentences would become claims.
        text = _LINE_BREAK.sub(" ", row["text"]) if source == "squality_story" else row["text"]
        texts.append((source, text))
    seen = set()
    for row in rows_of(folder / "dev" / "faithfulness.jsonl.gz"):
        if row["dataset"].startswith(TRAINABLE):
            text = "\n".join(row["context"])
            if hash(text) not in seen and len(text) > 300:
                seen.add(hash(text))
                texts.append((row["dataset"], text))
    return texts


def made_groups(kind: str, text: str, editor: Editor, rng: random.Random, most: int) -> Iterator[Group]:
    """Supported and unsupported claims made from one text, each maker's in both labels."""
    if kind in SPOKEN:
        yield from dialogue_groups(kind, text, editor, rng, most)
        return
    yield from defined(text, kind, rng)
    sentences = [each.text for each in split_sentences(text)]
    usable = [n for n, each in enumerate(sentences) if _is_statement(each)]
    if len(usable) < 3:
        return
    source = Source.of(sentences)
    context = Context([text])
    bridged = editor.bridged(source)
    if bridged is not None:
        bridge, claim = bridged
        rest = Context([" ".join([*sentences[:bridge], *sentences[bridge + 1 :]])])
        if not _is_said(claim, rest):
            yield _made_group(claim, context, 1.0, kind, "bridge removed")
            yield _made_group(claim, rest, 0.0, kind, "bridge removed", everything=True)
    numbers = rng.sample(usable, min(len(usable), most))
    denied = editor.denied(source, numbers[0])
    if denied is not None:
        yield from _four(denied[0], denied[1], denied[2], source, numbers[0], context, kind, "denied")
    for number in numbers:
        mirrored = editor.mirrored(source, number)
        if mirrored is not None and mirrored[2].step != "detail":
            made, wrong, change = mirrored
            yield from _four(wrong, made, change.sentence, source, number, context, kind, "mirrored")
        elif mirrored is not None:
            _, longer, change = mirrored
            said = Context([" ".join([*sentences[:number], change.sentence, *sentences[number + 1 :]])])
            yield _made_group(longer.right(), said, 1.0, kind, "detail")
            yield _made_group(longer, context, 0.0, kind, "detail")
        made = editor.supported(source, number)
        absent = Context([" ".join([*sentences[:number], *sentences[number + 1 :]])])
        if len(sentences) > 4 and not _is_said(made, absent):
            # True, but not said here: the sentence was taken out of the text.
            yield _made_group(made, context, 1.0, kind, "reworded")
            yield _made_group(made, absent, 0.0, kind, "reworded", everything=True)
        wrong_ending = editor.unsupported(source, number)
        if wrong_ending is not None and rng.random() < 0.5:
            yield _made_group(editor.supported(source, number), context, 1.0, kind, "edited")
            yield _made_group(wrong_ending, context, 0.0, kind, "edited")


def _is_statement(sentence: str) -> bool:
    """Whether a sentence says something: no question, heading, or half of a sentence."""
    whole = (
        sentence.rstrip("\"”') ")[-1:] in (".", "!") and "?" not in sentence and not sentence.endswith(("U.S.C.", "v."))
    )
    return whole and 5 <= len(sentence.split()) <= 60 and len(content_of(sentence)) >= 3


def _four(
    other: Made, made: Made, changed: str, source: Source, number: int, context: Context, kind: str, maker: str
) -> Iterator[Group]:
    """A claim and another that says otherwise, with the text as it is and with the sentence that says otherwise.

    Neither the words of a claim nor those of a text tell alone which is which.
    """
    sentences = source.sentences
    if _is_said(made, Context([" ".join([*sentences[:number], *sentences[number + 1 :]])])):
        return
    said = Context([" ".join([*sentences[:number], changed, *sentences[number + 1 :]])])
    document = first_of_two(f"{maker}{changed}{made.text}")
    for place, (true, false, where) in enumerate(((made, other, context), (other, made, said))):
        for claim, label in ((true, 1.0), (false, 0.0)):
            group = _made_group(claim.right() if label else claim.unlike(true), where, label, kind, maker)
            group.document = document + place
            yield group


def _is_said(claim: Made, context: Context) -> bool:
    """Whether one sentence of a context holds most words of a claim: it may be supported there after all."""
    words = content_of(claim.text)
    return max((len(words & each.content) / max(1, len(words)) for each in context.sentences), default=0) >= 0.6


def _made_group(
    made: Made, context: Context, label: float, kind: str, maker: str, *, everything: bool = False
) -> Group:
    claim = made.text
    wrong = [(0, len(claim))] if everything else wrong_places(made)
    return Group([Pair(evidence_of(context, claim), claim, wrong)], label, 0.6, f"{MADE}{kind}", maker=maker)


def answer_group(row: dict[str, Any]) -> Group:
    """A labelled answer with the evidence for each of its claims."""
    context = Context(row["context"])
    pairs = []
    for claim in claims_of(row["response"], row.get("question")):
        evidence = " ".join(context.sentences[n].sentence.text for n in context.evidence_for(claim.asked))
        pairs.append(Pair(evidence, claim.text_for_model))
    label = row["faithful"] if row.get("hallucinated") is None else float(not row["hallucinated"])
    dataset = row["dataset"]
    weight = 0.4 if dataset.startswith("halueval") else 2.5
    trainable = dataset.startswith(TRAINABLE)
    return Group(
        pairs, label, weight, dataset, str(row["id"]), fold_of(row["group"]) if trainable else -2,
        number_of(f"{dataset} {row['group']}"), "answer",
    )  # fmt: skip


def correctness_group(row: dict[str, Any]) -> Group:
    """A labelled answer to a question with known answers."""
    expected = " or ".join(row["expected"][:6])
    question = row["question"].strip().rstrip("?")
    answer = " ".join(row["answer"].split()[:120])
    pair = Pair(f"Question: {question}? Answer: {expected}", f"Question: {question}? Answer: {answer}")
    return Group(
        [pair],
        float(row["correct"]),
        0.7,
        "correctness",
        str(row["id"]),
        fold_of(row["question"]),
        maker="answer to a question",
    )


def relevance_group(question: str, passage: str, label: float, dataset: str, key: str, fold: int = -2) -> Group:
    """A passage that answers a question, or not."""
    claim = f"The text answers the question: {question}"
    context = Context([passage])
    evidence = " ".join(context.sentences[n].sentence.text for n in context.evidence_for(question))
    return Group([Pair(evidence, claim)], label, 1.0, dataset, key, fold, maker="relevance")
