"""Builds the tokenised training and measurement data: ``python -m training.groundedness.build DATA LEXICON TOKENIZER OUT``."""

from __future__ import annotations

import gzip
import json
import multiprocessing
import os
import random
import sys
import time
from pathlib import Path

import numpy as np
from agentunit_local.grounding.pairs import PairTokens
from tokenizers import Tokenizer

from training.groundedness import balance, examples, removed, summaries
from training.groundedness.edits import Editor
from training.groundedness.groups import LENGTH, Group, Pair, rows_of

SEED = 20261115
BOOKED_TEXTS = 4000


def main(data: Path, lexicon_file: Path, tokenizer_file: Path, out: Path) -> None:
    """Make every group, tokenise it, and write a file of flat arrays."""
    started = time.monotonic()
    groups = groups_of(data, lexicon_file)
    parts = [groups[start : start + 4000] for start in range(0, len(groups), 4000)]
    with multiprocessing.Pool() as pool:
        tokenised = pool.map(tokenize, [(part, str(tokenizer_file)) for part in parts], chunksize=1)
    write(groups, [pair for part in tokenised for pair in part], out)
    print(f"{len(groups)} groups, {time.monotonic() - started:.0f} s")


def groups_of(data: Path, lexicon_file: Path) -> list[Group]:
    """Every group, balanced so that the words of claims do not tell their labels."""
    started = time.monotonic()
    rng = random.Random(SEED)
    with gzip.open(lexicon_file, "rt") as file:
        lexicon = json.load(file)
    texts = examples.texts_of(data)
    rng.shuffle(texts)
    # Dialogues with a booking system are half of all texts, and much alike.
    booked = set([text for text in texts if text[0] == "sgd_dialogue"][BOOKED_TEXTS:])
    texts = [text for text in texts if text not in booked]
    per_text = int(os.environ.get("PER_TEXT", "1"))
    names = [name for _, text in texts[:300] for name in _names(text)]
    jobs = [(texts[start : start + 200], lexicon, names, SEED + start, per_text) for start in range(0, len(texts), 200)]
    groups = list(examples.entailment_pairs(data, rng))
    print(len(groups), "entailment pairs")
    groups += examples.relevance_pairs(data, rng)
    print(len(groups), "with questions and passages")
    groups += removed.supported_pairs(data, rng)
    groups += removed.unanswered(data, rng)
    print(len(groups), "with evidence removed")
    editor = Editor(lexicon, rng, names)
    groups += examples.halved_groups(data, editor, rng)
    groups += summaries.summary_groups(summaries.told_documents(data), editor, rng)
    print(len(groups), f"with people's summaries, {time.monotonic() - started:.0f} s")
    with multiprocessing.Pool() as pool:
        made = [group for part in pool.imap(_make, jobs) for group in part]
        print(len(made), f"made sentences, {time.monotonic() - started:.0f} s")
        groups += made
        rows = list(rows_of(data / "dev" / "faithfulness.jsonl.gz"))
        trainable = [row for row in rows if row["dataset"].startswith(examples.TRAINABLE)]
        groups += removed.supported_answers(trainable, rng)
        answers = pool.map(examples.answer_group, rows, chunksize=64)
        correctness = [examples.correctness_group(row) for row in rows_of(data / "dev/answer_correctness.jsonl.gz")]
        relevance = [
            examples.relevance_group(row["question"], row["passage"], float(row["relevant"]), row["dataset"], row["id"])
            for row in rows_of(data / "dev/retrieval.jsonl.gz") if row.get("relevant") is not None
        ]  # fmt: skip
        relevance += [
            examples.relevance_group(
                row["question"], "\n".join(row["context"]), float(row["context_relevant"]), row["dataset"], row["id"]
            )
            for row in rows_of(data / "dev/rag_triad.jsonl.gz")
        ]
    groups = balance.balanced(groups)
    groups += [*answers, *correctness, *relevance]
    print(balance.table(groups))
    return groups


def _names(text: str) -> list[str]:
    return examples.Source.of(text.split("\n")[:5]).names[:2]


def _make(job: tuple) -> list[Group]:  # type: ignore[type-arg]
    texts, lexicon, names, seed, per_text = job
    rng = random.Random(seed)
    editor = Editor(lexicon, rng, names)
    groups = []
    for kind, text in texts:
        most = 1 if kind == "sgd_dialogue" else per_text * (2 if kind.startswith(examples.TRAINABLE) else 1)
        groups += examples.made_groups(kind, text, editor, rng, most)
    return groups


def tokenize(job: tuple[list[Group], str]) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """The ids, types and marks of wrong tokens of each pair of some groups."""
    groups, tokenizer_file = job
    encoder = PairTokens(Tokenizer.from_file(tokenizer_file), LENGTH)
    found = []
    for group in groups:
        for pair in group.pairs or [Pair("", "")]:
            tokens = encoder.encode(pair.evidence, pair.claim)
            wrong = np.full(len(tokens.ids), -1, dtype=np.int8)
            if pair.wrong is not None:
                for place, (start, end) in tokens.claim_places:
                    wrong[place] = any(start < stop and begin < end for begin, stop in pair.wrong)
            found.append((np.array(tokens.ids, np.uint16), np.array(tokens.types, np.uint8), wrong))
    return found


def write(groups: list[Group], pairs: list[tuple[np.ndarray, np.ndarray, np.ndarray]], out: Path) -> None:
    """Groups and their tokens as flat arrays."""
    sizes = np.array([max(1, len(group.pairs)) for group in groups])
    np.savez(
        out,
        ids=np.concatenate([pair[0] for pair in pairs]),
        types=np.concatenate([pair[1] for pair in pairs]),
        wrong=np.concatenate([pair[2] for pair in pairs]),
        lengths=np.array([len(pair[0]) for pair in pairs]),
        group_of_pair=np.repeat(np.arange(len(groups)), sizes),
        label=np.array([group.label for group in groups], np.float32),
        weight=np.array([group.weight for group in groups], np.float32),
        fold=np.array([group.fold for group in groups]),
        document=np.array([group.document for group in groups]),
        kind=np.array([group.kind for group in groups]),
        maker=np.array([group.maker for group in groups]),
        key=np.array([group.key for group in groups]),
    )


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
