"""Generated sentences as numbers: tokens by their row in a table of pieces, and a label for each token."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from agentunit_local.recognizer.tokens import LABELS, PIECES, cut, pieces

from training.personal_data.generate import Generator

LONGEST = 96
"""Tokens of one example at most; the rest is cut off."""


class Examples(NamedTuple):
    """Examples one after the other: ``starts`` bounds them in ``tokens`` (rows of ``table``) and ``labels``."""

    table: Any
    tokens: Any
    labels: Any
    starts: Any


def generate(pack: str, seed: int, count: int, put_in: float = 18.0) -> Examples:
    """``count`` examples of one seed."""
    with gzip.open(Path(pack), "rt", encoding="utf-8") as stream:
        source = Generator(json.load(stream), seed, put_in)
    rows: dict[str, int] = {}
    tokens: list[int] = []
    labels: list[int] = []
    starts = [0]
    for _ in range(count):
        text, spans = source.example()
        words, tags = labeled(text, spans)
        tokens.extend(rows.setdefault(word, len(rows)) for word in words[:LONGEST])
        labels.extend(tags[:LONGEST])
        starts.append(len(tokens))
    table = np.array([pieces(word) for word in rows], np.uint16).reshape(-1, PIECES)
    return Examples(table, np.array(tokens, np.int32), np.array(labels, np.int8), np.array(starts, np.int64))


def labeled(text: str, spans: list[tuple[int, int, str]]) -> tuple[list[str], list[int]]:
    """The tokens of a text and what each is."""
    words: list[str] = []
    tags: list[int] = []
    at = 0
    for token in cut(text):
        words.append(text[token.start : token.end])
        while at < len(spans) and spans[at][1] <= token.start:
            at += 1
        if at < len(spans) and spans[at][0] < token.end:
            begins = token.start <= spans[at][0]
            tags.append(LABELS.index(f"{'B' if begins else 'I'}-{spans[at][2]}"))
        else:
            tags.append(0)
    return words, tags


def joined(parts: list[Examples]) -> Examples:
    """Examples of several seeds as one; each keeps its own rows of the table."""
    table_at = np.cumsum([0, *(len(part.table) for part in parts)])
    token_at = np.cumsum([0, *(len(part.tokens) for part in parts)])
    return Examples(
        np.concatenate([part.table for part in parts]),
        np.concatenate([part.tokens + int(at) for part, at in zip(parts, table_at, strict=False)]).astype(np.int32),
        np.concatenate([part.labels for part in parts]),
        np.concatenate([[0], *(part.starts[1:] + at for part, at in zip(parts, token_at, strict=False))]),
    )
