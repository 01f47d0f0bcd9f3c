"""Transcription quality, on pairs of French transcripts of which people chose the better one (HATS)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from agentunit.addons.review.labeling.agreement import bootstrap_statistic_interval
from agentunit.addons.review.labeling.scorer_agreement import verdict_of
from agentunit.core.case import DatasetCase
from agentunit.core.records import Record
from agentunit.engine.scoring.records import score
from agentunit.multimodal.metrics import AudioTranscriptionMetric
from benchmarks.validity.data import LabelledData
from benchmarks.validity.family import Family
from benchmarks.validity.measure import DECIMALS, Figure, Scorer, trust_figures

STATISTIC = "pairwise agreement"
# The shares of the annotators who chose the same transcript at which the paper reports.
CERTAINTIES = {"hats, all annotators agree": 1.0, "hats, at least 70 % agree": 0.7, "hats, all pairs": 0.0}
UNANIMOUS = next(iter(CERTAINTIES))
METRIC = Scorer(AudioTranscriptionMetric.info.name, "metric", AudioTranscriptionMetric.info.backend)
WORDS, CHARACTERS = Scorer("WER of jiwer", "baseline"), Scorer("CER of jiwer", "baseline")


class _Transcript(NamedTuple):
    """One of two transcripts: how many people chose it, and how good each scorer says it is."""

    votes: int
    goodness: dict[Scorer, float]


Pair = tuple[_Transcript, _Transcript]


def measure(data: LabelledData) -> Family:
    """Choose the transcript with the better score, and count how often people chose it too."""
    pairs = _scored(data.rows("asr_hats"))
    figures = [
        _figure(scorer, name, [pair for pair in pairs if _certainty(pair) >= least])
        for scorer in (METRIC, WORDS, CHARACTERS)
        for name, least in CERTAINTIES.items()
    ]
    headline = [figure for figure in figures if figure.dataset == UNANIMOUS]
    return Family(
        key="audio_transcription_quality",
        title="Audio transcription quality",
        measured=(
            "HATS: seven people saw a French reference transcript and two transcripts by speech recognizers, and chose "
            "the better one. *Pairwise agreement* is the share of pairs in which the score is strictly better for the "
            "transcript that most chose; a tie is wrong, as in the paper. The error rates are exact; what is measured "
            "is whether people mind the errors that they count."
        ),
        can=(
            "WER is the share of wrong words, exactly. Over many recordings it ranks recognizers whose quality "
            "differs clearly."
        ),
        cannot=(
            "Of two transcripts of one recording it often cannot name the better one: in more than a quarter of the "
            "pairs both have as many wrong words. The character error rate in the detail (`cer`) agrees with people "
            "far more often."
        ),
        baselines=(),
        headline=headline,
        figures=figures,
        trust=trust_figures(headline),
        remarks=(
            "The verdict's scale is that of AUROC: 0.5 is a coin toss, though ties make less possible.",
            "The columns of jiwer repeat the paper's protocol (no normalization) on a part of its pairs; what it "
            "reports for unanimous pairs, 0.63 and 0.77, lies within their intervals. The metric, which normalizes, "
            "ties less often: hyphens part words.",
        ),
        unit="pairs",
    )


def _scored(rows: Sequence[dict[str, str]]) -> list[Pair]:
    records = [
        Record(DatasetCase(f"{row['id']}:{key}", expected_output=row["reference"]), outcome=row[key])
        for row in rows
        for key in ("hypA", "hypB")
    ]
    ours, jiwers = (
        [case.scores[METRIC.name].result for case in score(records, [AudioTranscriptionMetric(normalize=normalize)])]
        for normalize in (True, False)
    )
    goodness = [
        {METRIC: own.value or 0.0, WORDS: -plain.detail["wer"], CHARACTERS: -plain.detail["cer"]}
        for own, plain in zip(ours, jiwers, strict=True)
    ]
    return [
        (_Transcript(int(row["nbrA"]), first), _Transcript(int(row["nbrB"]), second))
        for row, first, second in zip(rows, goodness[0::2], goodness[1::2], strict=True)
    ]


def _certainty(pair: Pair) -> float:
    votes = [each.votes for each in pair]
    return max(votes) / sum(votes)


def _figure(scorer: Scorer, dataset: str, pairs: Sequence[Pair]) -> Figure:
    hits = []
    for first, second in pairs:
        chosen, other = (first, second) if first.votes > second.votes else (second, first)
        hits.append(float(chosen.goodness[scorer] > other.goodness[scorer]))
    interval = bootstrap_statistic_interval(_mean, (hits,))
    low, high = (interval.low, interval.high) if interval else (None, None)
    verdict = verdict_of("AUROC", low, high)
    return Figure(scorer, dataset, STATISTIC, len(hits), _tidy(_mean(hits)), _tidy(low), _tidy(high), verdict)


def _mean(hits: Sequence[float]) -> float | None:
    return sum(hits) / len(hits) if hits else None


def _tidy(value: float | None) -> float | None:
    return None if value is None else round(value, DECIMALS)
