"""Finding personal data: on templates written by someone who has not read the rules, and on sets they were tuned on."""

from __future__ import annotations

from collections.abc import Sequence

import re2

from agentunit.metrics.trust import TrustFigure
from agentunit.privacy.detectors import PatternDetector
from benchmarks.validity.data import LabelledData
from benchmarks.validity.family import Family
from benchmarks.validity.fresh_pii import rows
from benchmarks.validity.measure import Figure, Scorer
from benchmarks.validity.pii_detection import (
    ALL_SCORED,
    OVERALL,
    POOLED,
    LabelledTexts,
    detection_figures,
    labelled_texts,
)
from benchmarks.validity.pii_peers import RECORDED_FILE, Recorded, peer_figures, recorded_file
from benchmarks.validity.rows.pii_matching import Span

OURS = Scorer("pii_leakage", "metric", "patterns")
PLAIN = Scorer("plain patterns", "baseline")
# What the words of the metric's catalog entry come to, written down in the shortest way.
_PLAIN_PATTERNS = {
    "email": r"[\w.+-]+@[\w-]+\.[\w.-]+",
    "ssn": r"\b\d{3}-\d{2}-\d{4}\b",
    "credit_card": r"\b\d{4}[ -]?\d{4}[ -]?\d{4}[ -]?\d{4}\b",
    "phone": r"\b\d{3}[-. ]?\d{3}[-. ]?\d{4}\b",
    "name": r"\b[A-Z][a-z]+ [A-Z][a-z]+\b",
}
FRESH, GENERATED, MESSAGES = "fresh_pii", "pii_spans", "pii_agent_trace"
_TUNED_ON = "{} (tuned on)"


def measure(data: LabelledData) -> Family:
    """Count what each detector finds, and say what that is worth."""
    sets = [
        labelled_texts(rows(), FRESH, "template_id", ALL_SCORED),
        labelled_texts(data.rows(GENERATED), _TUNED_ON.format(GENERATED), "template_id"),
        labelled_texts(data.rows(MESSAGES), _TUNED_ON.format(MESSAGES), "task_id"),
    ]
    figures: list[Figure] = []
    for texts in sets:
        found = [[Span(*each[:3]) for each in findings] for findings in PatternDetector().find(texts.texts)]
        figures += detection_figures(OURS, texts, found)
    peers, missing = peer_figures(sets)
    for recorded in peers.values():
        figures += recorded.figures
    for texts in sets:
        figures += detection_figures(PLAIN, texts, [_plain(text) for text in texts.texts])
    figures.sort(key=lambda figure: [texts.name for texts in sets].index(figure.dataset.partition(",")[0]))
    headline = [
        figure
        for figure in figures
        if (figure.dataset, figure.statistic)
        in ((f"{FRESH}, {OVERALL}", "F1"), (f"{FRESH}, {OVERALL}", "recall"), (f"{FRESH}, {POOLED}", "recall"))
    ]
    return Family(
        key="pii_leakage",
        title="Finding personal data",
        measured=(
            "What a detector finds is compared with labeled spans: a finding is right when it shares at least half of "
            "the union with a labeled span of its type, and each label counts once. `fresh_pii` holds templates with "
            "names of 15 origins in five languages, written for this measurement by a language model that had not seen "
            "the rules; no rule may be changed because of it. Rules were written with the other two sets at hand "
            "(*tuned on*), so their figures flatter `patterns` and `ner`. "
            "`pii_spans` holds generated sentences with invented people (Presidio-research, synthetic v2). "
            "`pii_agent_trace` holds messages of customers and an airline's agent; only what the customer's own record "
            "holds is labeled there, so other people's names count as wrong and precision is a lower bound. *Recall* "
            "is the share of the labels that was found, *precision* the share of the findings that is right, *F1* "
            "their harmonic mean. *Structured* "
            "types are telephone, e-mail, card, social security, IBAN and IP numbers."
        ),
        can=("Numbers in the usual forms are found most of the time. `redact` masks with the same detector."),
        cannot=(
            "Names and postal addresses without a clue next to them are missed, more so names that are unusual in "
            "English or plain words as well. All sentences are generated from templates: your own texts may differ. A "
            "clean score does not prove that nothing leaked."
        ),
        baselines=(),
        headline=headline,
        figures=figures,
        trust=_trust(headline, sets[0]),
        remarks=_remarks(peers, missing),
        unit="labeled spans",
        files={RECORDED_FILE: recorded_file(peers)} if peers else {},
    )


def _plain(text: str) -> list[Span]:
    return [
        Span(type, *found.span()) for type, pattern in _PLAIN_PATTERNS.items() for found in re2.finditer(pattern, text)
    ]


def _trust(headline: Sequence[Figure], fresh: LabelledTexts) -> list[TrustFigure]:
    """F1 beside the metric's scores, recall beside what 'redact' leaves: on the fresh templates alone."""
    metric_of = {"F1": OURS.name, "recall": "redact"}
    return [
        TrustFigure(
            metric=metric_of[figure.statistic],
            backend=figure.scorer.backend,
            statistic=figure.statistic,
            value=figure.value,
            low=figure.low,
            high=figure.high,
            n_sets=1,
            n_cases=len(fresh.texts),
        )
        for figure in headline
        if figure.dataset == f"{FRESH}, {OVERALL}" and figure.scorer.kind == "metric"
        if figure.value is not None and figure.low is not None and figure.high is not None
    ]


def _remarks(peers: dict[str, Recorded], missing: Sequence[str]) -> list[str]:
    remarks = [
        "*plain patterns* (baseline): one regular expression each for e-mail, social security, 16-digit card and "
        "10-digit telephone numbers, and pairs of capitalized words for names.",
        "Texts made from one template, or about one task, are resampled together.",
    ]
    for name, recorded in peers.items():
        versions = ", ".join(f"{package} {version}" for package, version in recorded.versions.items())
        remarks.append(f"`{name}` was measured with {versions}.")
    if "presidio" in peers:
        remarks.append(
            "Presidio runs with its default recognizers. It has no type for postal addresses; counting its LOCATION as "
            "one would lower its figures, so that is not done."
        )
    remarks += [f"`{name}` was not run: python -m benchmarks.validity --install-peers adds it." for name in missing]
    return remarks
