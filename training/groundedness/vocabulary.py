"""Prunes the vocabulary: ``python -m training.groundedness.vocabulary DATA TOKENIZER OUT [PIECES]``.

``TOKENIZER`` is BERT's. ``OUT`` becomes a folder with ``tokenizer.json``, whose words fall apart into the pieces that are
kept, and ``kept.json``, the number in ``TOKENIZER`` of each of them. Every single character stays, so nothing that was
readable becomes unknown. Which pieces stay is decided by how often they occur in texts that may train shipped weights, and
by BERT's own order (from frequent to rare), so that other English does not fall apart for lack of training texts about it.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from training.groundedness.examples import TRAINABLE
from training.groundedness.groups import rows_of

PIECES = 16500
_FIRST_WORD = "the"
_RANK_SHARE, _SOURCE_SHARE = 0.35, 0.35


def training_texts(data: Path) -> Iterator[tuple[str, str]]:
    """Every text that may train shipped weights, with its source."""
    for path in sorted((data / "train").glob("*.jsonl.gz")):
        for row in rows_of(path):
            yield path.name, " ".join(str(row[name]) for name in ("premise", "hypothesis", "text") if name in row)
    for row in rows_of(data / "dev" / "faithfulness.jsonl.gz"):
        if row["dataset"].startswith(TRAINABLE):
            yield row["dataset"], " ".join([*row["context"], row["response"]])
    for row in rows_of(data / "dev" / "answer_correctness.jsonl.gz"):
        yield row["dataset"], f"{row['question']} {row['answer']}"


def piece_shares(tokenizer: Tokenizer, texts: Iterator[tuple[str, str]]) -> dict[str, float]:
    """How large a share of all pieces each is: over all texts, by source, and by BERT's order, put together."""
    counts: dict[str, Counter[int]] = {}
    for source, text in texts:
        counts.setdefault(source, Counter()).update(tokenizer.encode(text, add_special_tokens=False).ids)
    names = [tokenizer.id_to_token(number) for number in range(tokenizer.get_vocab_size())]
    first = names.index(_FIRST_WORD)
    ranks = {number: 1.0 / (number - first + 10) for number in range(first, len(names))}
    everything: Counter[int] = sum(counts.values(), Counter())
    parts = [(1 - _RANK_SHARE - _SOURCE_SHARE, everything), (_RANK_SHARE, ranks)]
    parts += [(_SOURCE_SHARE / len(counts), each) for each in counts.values()]
    shares: dict[str, float] = dict.fromkeys(names, 0.0)
    for weight, part in parts:
        total = sum(part.values())
        for number, count in part.items():
            shares[names[number]] += weight * count / total
    return shares


def kept_pieces(tokenizer: Tokenizer, shares: dict[str, float], n_pieces: int) -> list[int]:
    """The numbers of the pieces that stay: what the tokenizer adds itself, single characters, and the most frequent."""
    special = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
    always = special | {name for name in shares if len(name.removeprefix("##")) == 1 and _is_met(tokenizer, name)}
    others = sorted((name for name in shares if name not in always), key=lambda name: (-shares[name], name))
    chosen = always | set(others[: max(0, n_pieces - len(always))])
    return sorted(tokenizer.token_to_id(name) for name in chosen)


def _is_met(tokenizer: Tokenizer, name: str) -> bool:
    """Whether a piece ever occurs: one that goes on a word does not, if its character is always a word of its own."""
    return not name.startswith("##") or len(tokenizer.pre_tokenizer.pre_tokenize_str(f"a{name[2:]}")) == 1


def pruned(tokenizer: dict[str, Any], kept: list[int]) -> dict[str, Any]:
    """A tokenizer's JSON with the kept pieces alone, numbered in their order."""
    names = {number: name for name, number in tokenizer["model"]["vocab"].items()}
    vocabulary = {names[number]: new for new, number in enumerate(kept)}
    processor = json.loads(json.dumps(tokenizer["post_processor"]))
    for name, entry in processor["special_tokens"].items():
        entry["ids"] = [vocabulary[name]]
    return {
        **tokenizer,
        "added_tokens": [{**token, "id": vocabulary[token["content"]]} for token in tokenizer["added_tokens"]],
        "post_processor": processor,
        "model": {**tokenizer["model"], "vocab": vocabulary},
    }


def report(data: Path, before: Tokenizer, after: Tokenizer) -> dict[str, dict[str, float]]:
    """Pieces a word before and after, and the share of unknown ones, by set: those never counted are the honest ones."""
    texts: dict[str, list[str]] = {}
    for row in rows_of(data / "dev" / "faithfulness.jsonl.gz"):
        some = texts.setdefault(row["dataset"], [])
        if len(some) < 100:
            some.append(" ".join([*row["context"], row["response"]]))
    for row in rows_of(data / "dev" / "rag_triad.jsonl.gz"):
        texts.setdefault(row["dataset"], []).append(" ".join(row["context"]))
    found = {}
    for name, some in texts.items():
        n_words = sum(len(text.split()) for text in some)
        encoded = [[each.encode(text, add_special_tokens=False).ids for text in some] for each in (before, after)]
        sizes = [sum(map(len, ids)) for ids in encoded]
        unknown = [
            sum(ids.count(each.token_to_id("[UNK]")) for ids in part)
            for each, part in zip((before, after), encoded, strict=True)
        ]
        found[name] = {
            "before": round(sizes[0] / n_words, 3),
            "after": round(sizes[1] / n_words, 3),
            "more": round(sizes[1] / sizes[0] - 1, 4),
            "unknown": unknown[1] - unknown[0],
        }
    return found


def main(data: Path, tokenizer_file: Path, out: Path, n_pieces: int = PIECES) -> None:
    """Count, choose, write, and say how much more text falls apart."""
    tokenizer = Tokenizer.from_file(str(tokenizer_file))
    kept = kept_pieces(tokenizer, piece_shares(tokenizer, training_texts(data)), n_pieces)
    out.mkdir(parents=True, exist_ok=True)
    content = pruned(json.loads(tokenizer_file.read_text(encoding="utf-8")), kept)
    (out / "tokenizer.json").write_text(json.dumps(content, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
    (out / "kept.json").write_text(json.dumps(kept) + "\n", encoding="utf-8")
    print(len(kept), "pieces")
    for name, figures in sorted(report(data, tokenizer, Tokenizer.from_file(str(out / "tokenizer.json"))).items()):
        print(name, figures)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]), *map(int, sys.argv[4:]))
