"""What a model says of the claims of labelled answers, from a training run or from the shipped weights.

Asking the model takes most of the time, so its words on pairs of evidence and claim are kept in a file: a change of the
claims, of the comparison or of how they are put together asks only about pairs that are new.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from agentunit_local.grounding.claims import Claim, claims_of
from agentunit_local.grounding.cross_encoder import LARGEST_LOGIT, CrossEncoder, PairScore, opened
from agentunit_local.grounding.evidence import Context
from agentunit_local.grounding.kinds import kind_of
from agentunit_local.grounding.lexical import Compared, compared
from agentunit_local.grounding.support import Mix, is_copied, same_sentence

from training.groundedness.groups import rows_of

CERTAIN = PairScore(LARGEST_LOGIT, -LARGEST_LOGIT)


@dataclass(frozen=True)
class ScoredClaim:
    """The model's word on a claim and what the comparison says; ``verbatim``: it is a sentence of the context."""

    score: PairScore
    compared: Compared
    verbatim: bool


@dataclass(frozen=True)
class ScoredAnswer:
    """An answer with its claims. ``label`` is 1 for supported, or the share of it that is (``graded``)."""

    key: str
    dataset: str
    kind: str
    group: str
    label: float
    graded: bool
    claims: list[ScoredClaim]

    def value(self, mix: Mix) -> float:
        """The score of the answer before it is made a probability."""
        found = [mix.highest if each.verbatim else mix.claim_score(each.score, each.compared) for each in self.claims]
        return mix.answer_score(found)


class KeptScores:
    """A model whose words on pairs are kept in a file of its own."""

    def __init__(self, model: CrossEncoder, path: Path) -> None:
        self._model = model
        self._kept = sqlite3.connect(path, isolation_level=None)
        self._kept.execute("CREATE TABLE IF NOT EXISTS pairs (digest BLOB PRIMARY KEY, logit REAL, worst REAL)")

    def score(self, evidence: str, claim: str) -> PairScore:
        """The model's word on a pair, asked once."""
        digest = hashlib.sha256(f"{evidence}\0{claim}".encode("utf-8", "surrogatepass")).digest()
        known = self._kept.execute("SELECT logit, worst FROM pairs WHERE digest = ?", (digest,)).fetchone()
        if known is None:
            found = self._model.score([(evidence, claim)])[0]
            known = found.logit, found.worst_logit
            self._kept.execute("INSERT OR REPLACE INTO pairs VALUES (?, ?, ?)", (digest, *known))
        return PairScore(*known)


def scored_by_shipped(data: Path, kept: Path, most_rows: int | None = None) -> Iterator[ScoredAnswer]:
    """The labelled answers as the shipped weights read them; ``most_rows`` of each set, drawn by their ids."""
    model = KeptScores(opened(None), kept)
    for row in _chosen(data, most_rows):
        context = Context(row["context"])
        claims = claims_of(row["response"], row.get("question"))
        if claims and context.sentences:
            scores = [model.score(*_pair(context, claim)) for claim in claims]
            yield _scored(row, context, claims, scores)


def scored_by_training(data: Path, scores_file: Path, without: Mapping[str, Path]) -> Iterator[ScoredAnswer]:
    """The labelled answers as models read them that were not trained on them (``scores.jsonl.gz`` of training runs).

    ``without`` says, by how the names of sets begin, which run left them out; sets that are never trained on are read by
    the model of ``scores_file``, and rows that trained it are not read at all.
    """
    shipped = read_scores(scores_file)
    others = {path: read_scores(path) for path in set(without.values())}
    for row in _chosen(data, None):
        path = next((path for name, path in without.items() if row["dataset"].startswith(name)), None)
        scored = (shipped if path is None else others[path])[str(row["id"])]
        if path is None and scored["fold"] != -2:
            continue
        context = Context(row["context"])
        claims = claims_of(row["response"], row.get("question"))
        bounded = np.clip(scored["worst"], 1e-4, 1 - 1e-4)
        if claims and context.sentences:
            pairs = [
                PairScore(max(-LARGEST_LOGIT, min(LARGEST_LOGIT, logit)), float(worst))
                for logit, worst in zip(scored["claims"], np.log(bounded / (1 - bounded)), strict=True)
            ]
            yield _scored(row, context, claims, pairs)


def read_scores(path: Path) -> dict[str, dict[str, Any]]:
    """What a training run said of the measured rows, by their keys."""
    with gzip.open(path, "rt") as file:
        return {row["key"]: row for row in map(json.loads, file)}


def _chosen(data: Path, most_rows: int | None) -> list[dict[str, Any]]:
    rows = sorted(rows_of(data / "dev" / "faithfulness.jsonl.gz"), key=lambda row: (row["dataset"], _digest(row)))
    n_seen: dict[str, int] = {}
    chosen = []
    for row in rows:
        n_seen[row["dataset"]] = n_seen.get(row["dataset"], 0) + 1
        if most_rows is None or n_seen[row["dataset"]] <= most_rows:
            chosen.append(row)
    return chosen


def _digest(row: dict[str, Any]) -> bytes:
    return hashlib.sha256(str(row["id"]).encode()).digest()


def _pair(context: Context, claim: Claim) -> tuple[str, str]:
    chosen = context.evidence_for(claim.asked)
    return " ".join(context.sentences[number].sentence.text for number in chosen), claim.text_for_model


def _scored(
    row: dict[str, Any], context: Context, claims: Sequence[Claim], scores: Sequence[PairScore]
) -> ScoredAnswer:
    whole = frozenset(same_sentence(each.sentence.text) for each in context.sentences)
    found = []
    for claim, score in zip(claims, scores, strict=True):
        verbatim = same_sentence(claim.text) in whole
        evidence = [context.sentences[number] for number in context.evidence_for(claim.asked)]
        certain = verbatim or is_copied(claim.text, context)
        found.append(ScoredClaim(CERTAIN if certain else score, compared(claim.text, evidence), verbatim))
    graded = row.get("hallucinated") is None
    label = float(row["faithful"]) if graded else float(not row["hallucinated"])
    kind = kind_of(row.get("question"), len(claims))
    return ScoredAnswer(str(row["id"]), row["dataset"], kind, str(row["group"]), label, graded, found)
