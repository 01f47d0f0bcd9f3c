"""Finding personal data, on generated sentences with labelled spans and on messages of a customer-service agent."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import re2

from agentunit.metrics.trust import TrustFigure
from agentunit.privacy.detection import PatternDetector
from benchmarks.validity.data import LabelledData
from benchmarks.validity.family import Family
from benchmarks.validity.measure import Figure, Scorer, trust_figures
from benchmarks.validity.pii_detection import OVERALL, POOLED, LabelledTexts, detection_figures, labelled_texts
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
GENERATED, MESSAGES = "pii_spans", "pii_agent_trace"


def measure(data: LabelledData) -> Family:
    """Count what each detector finds, and say what that is worth."""
    sets = [labelled_texts(data, GENERATED, "template_id"), labelled_texts(data, MESSAGES, "task_id")]
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
        in ((f"{GENERATED}, {OVERALL}", "F1"), (f"{GENERATED}, {POOLED}", "recall"))
    ]
    return Family(
        key="pii_leakage",
        title="Finding personal data",
        measured=(
            "What a detector finds is compared with labelled spans: a finding is right when it shares at least half of "
            "the union with a labelled span of its type, and each label counts once. `pii_spans` holds generated "
            "sentences with invented people (Presidio-research, synthetic v2). `pii_agent_trace` holds messages of "
            "customers and an airline's agent; only what the customer's own record holds is labelled there, so other "
            "people's names count as wrong and precision is a lower bound. *Recall* is the share of the labels that "
            "was found, *precision* the share of the findings that is right, *F1* their harmonic mean. *Structured* "
            "types are telephone, e-mail, card, social security, IBAN and IP numbers."
        ),
        can=(
            "Structured data is found nearly always, and what fails its check (a card number's last digit, a social "
            "security number that is never issued) is left out. `redact` masks with the same detector."
        ),
        cannot=(
            "Names and postal addresses without a clue beside them are missed, more so names that are unusual in "
            "English or plain words as well. The sentences are generated from templates, and the rules were written "
            "with such sentences at hand: on your own texts expect less. A clean score is no proof that nothing leaked."
        ),
        baselines=(),
        headline=headline,
        figures=figures,
        trust=_trust(headline, figures, sets),
        remarks=_remarks(peers, missing),
        unit="labelled spans",
        files={RECORDED_FILE: recorded_file(peers)} if peers else {},
    )


def _plain(text: str) -> list[Span]:
    return [
        Span(type, *found.span()) for type, pattern in _PLAIN_PATTERNS.items() for found in re2.finditer(pattern, text)
    ]


def _trust(headline: Sequence[Figure], figures: Sequence[Figure], sets: Sequence[LabelledTexts]) -> list[TrustFigure]:
    """F1 beside the metric's scores; recall beside what 'redact' leaves."""
    n_texts = len(sets[0].texts)
    scored = [figure for figure in headline if figure.statistic == "F1"]
    masked = [
        msgspec.structs.replace(figure, scorer=Scorer("redact", figure.scorer.kind, figure.scorer.backend))
        for figure in figures
        if (figure.dataset, figure.statistic) == (f"{GENERATED}, {OVERALL}", "recall")
    ]
    return trust_figures(msgspec.structs.replace(figure, n=n_texts) for figure in [*scored, *masked])


def _remarks(peers: dict[str, Recorded], missing: Sequence[str]) -> list[str]:
    remarks = [
        "*plain patterns* (baseline): one regular expression each for e-mail, social security, 16-digit card and "
        "10-digit telephone numbers, and pairs of capitalised words for names.",
        "Texts made from one template, or about one task, are resampled together.",
    ]
    for name, recorded in peers.items():
        versions = ", ".join(f"{package} {version}" for package, version in recorded.versions.items())
        remarks.append(f"`{name}` was measured with {versions}.")
    if "presidio" in peers:
        remarks.append(
            "Presidio runs with its default recognisers. It has no type for postal addresses; counting its LOCATION as "
            "one would lower its figures, so that is not done."
        )
    remarks += [f"`{name}` was not run: python -m benchmarks.validity --install-peers adds it." for name in missing]
    return remarks
