"""From labeled spans of personal data to figures: precision, recall and F1 of a detector, by type and pooled."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from agentunit.addons.review.labeling.agreement import bootstrap_statistic_interval
from agentunit.formulas.statistics import wilson_interval
from benchmarks.validity.measure import DECIMALS, Figure, Scorer
from benchmarks.validity.rows.pii_matching import Counts, Span, match, pooled

TYPE_OF_LABEL = {
    "PERSON": "name",
    "NAME": "name",
    "STREET_ADDRESS": "address",
    "ADDRESS": "address",
    "PHONE_NUMBER": "phone",
    "EMAIL_ADDRESS": "email",
    "EMAIL": "email",
    "CREDIT_CARD": "credit_card",
    "US_SSN": "ssn",
    "IBAN_CODE": "iban",
    "IP_ADDRESS": "ip_address",
    "DATE_OF_BIRTH": "date_of_birth",
    "PASSPORT": "passport",
    "DRIVER_LICENSE": "driver_license",
    "CREDENTIAL": "credential",
}
"""The labels that count, and our type of each. A detector that does not know a type has missed all of it."""

STRUCTURED = ("phone", "email", "credit_card", "ssn", "iban", "ip_address")
SCORED = ("name", "address", *STRUCTURED)
ALL_SCORED = (*SCORED, "date_of_birth", "passport", "driver_license", "credential")
_COUNTED_AS = dict.fromkeys(("api_key", "private_key", "jwt", "password"), "credential")
_RESAMPLES = 400
OVERALL, POOLED = "all types", "structured types pooled"

Found = Sequence[Sequence[Span]]


class LabelledTexts(Struct, frozen=True):
    """One set: texts, what is labeled in each, what source each comes from, and the types that are labeled in it."""

    name: str
    texts: list[str]
    labelled: list[list[Span]]
    sources: list[str]
    types: tuple[str, ...] = SCORED

    @property
    def fingerprint(self) -> str:
        """A digest of texts and labels: what was recorded for other data is not shown for these."""
        return hashlib.sha256(msgspec.json.encode([self.texts, self.labelled])).hexdigest()


def labelled_texts(
    rows: Sequence[Mapping[str, Any]], name: str, source: str, types: tuple[str, ...] = SCORED
) -> LabelledTexts:
    """The rows of a set; those with the same value of ``source`` are not independent."""
    return LabelledTexts(
        name,
        [row["text"] for row in rows],
        [
            [
                Span(TYPE_OF_LABEL[span["type"]], span["start"], span["end"])
                for span in row["spans"]
                if TYPE_OF_LABEL.get(span["type"]) in types
            ]
            for row in rows
        ],
        [str(row[source]) for row in rows],
        types,
    )


def detection_figures(scorer: Scorer, texts: LabelledTexts, found: Found) -> list[Figure]:
    """A detector's figures on one set: overall, the structured types together, and each type that is labeled."""
    by_source: dict[str, dict[str, Counts]] = {}
    for spans, labelled, source in zip(found, texts.labelled, texts.sources, strict=True):
        sums = by_source.setdefault(source, {})
        counted = [span._replace(type=_COUNTED_AS.get(span.type, span.type)) for span in spans]
        for span_type, counts in match([span for span in counted if span.type in texts.types], labelled).items():
            sums[span_type] = sums.get(span_type, Counts()) + counts
    labelled_types = {span.type for spans in texts.labelled for span in spans}
    kinds: dict[str, Sequence[str]] = {OVERALL: texts.types, POOLED: STRUCTURED}
    kinds |= {each: (each,) for each in texts.types if each in labelled_types}
    figures = []
    for kind, types in kinds.items():
        counts = [pooled(sums, types) for sums in by_source.values()]
        figures += _figures(scorer, f"{texts.name}, {kind}", counts)
    return figures


def _figures(scorer: Scorer, dataset: str, counts: Sequence[Counts]) -> Iterator[Figure]:
    total = sum(counts, Counts())
    n_labelled = total.n_right + total.n_missed
    for statistic, of in _STATISTICS.items():

        def resampled(drawn: Sequence[Counts], of: Callable[[Counts], float | None] = of) -> float | None:
            n_right = sum([each.n_right for each in drawn])
            n_wrong = sum([each.n_wrong for each in drawn])
            return of(Counts(n_right, n_wrong, sum([each.n_missed for each in drawn])))

        value = of(total)
        interval = bootstrap_statistic_interval(resampled, (counts,), resamples=_RESAMPLES)
        if value in (0.0, 1.0):
            # Every resample of a perfect figure is perfect, which is no proof: its sources are that many trials.
            n_sources = sum(each != Counts() for each in counts)
            interval = wilson_interval(n_sources if value else 0, n_sources)
        low, high = (interval.low, interval.high) if interval else (None, None)
        yield Figure(scorer, dataset, statistic, n_labelled, _tidy(value), _tidy(low), _tidy(high))


_STATISTICS: dict[str, Callable[[Counts], float | None]] = {
    "F1": lambda counts: counts.f1,
    "precision": lambda counts: counts.precision,
    "recall": lambda counts: counts.recall,
}


def _tidy(value: float | None) -> float | None:
    return None if value is None else round(value, DECIMALS) + 0.0
