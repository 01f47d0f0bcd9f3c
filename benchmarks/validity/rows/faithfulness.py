"""Faithfulness and hallucination rate, on 16 sets of answers and summaries that people checked against their source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from agentunit.addons.review.labeling.label_files import Label
from agentunit.addons.review.labeling.scorer_agreement import ScoredRow
from agentunit.core.case import DatasetCase
from agentunit.core.records import Record
from agentunit.metrics.builtin import FaithfulnessMetric, HallucinationRateMetric
from benchmarks.validity.at_threshold import BALANCED_ACCURACY
from benchmarks.validity.baselines import ALWAYS_BAD, ANSWER_BIGRAMS_IN_CONTEXT, ANSWER_WORDS_IN_CONTEXT
from benchmarks.validity.data import LabelledData
from benchmarks.validity.family import Family
from benchmarks.validity.measure import Figure, LabelledCase, Scorer, score_sets, set_figure, trust_figures
from benchmarks.validity.quality_backends import Sets, beyond_lexical
from benchmarks.validity.quality_figures import (
    ABOVE_PLAIN,
    CALIBRATION,
    SMALL_EDITS,
    above_plain,
    calibration_figures,
    grounding_figures,
    mean_aurocs,
    numbered,
    score_slowly,
    small_edit_means,
    unnumbered,
)
from benchmarks.validity.rows.faithfulness_words import AS_RATE, CAN, CANNOT, MEASURED, REMARKS, SIGNS, SINCE_MEASURED
from benchmarks.validity.sampling import sampled
from benchmarks.validity.seen_in_training import left_out_figures, plain_mean, was_seen

KEY = "faithfulness"
BASELINES = (ANSWER_WORDS_IN_CONTEXT, ANSWER_BIGRAMS_IN_CONTEXT, ALWAYS_BAD)
OUTSIDE_MEAN = {
    "halueval_qa": "its wrong answers were generated, and counting shared word pairs alone finds them",
    "factscore": "its labels are grades (the share of supported facts), so it has a rank correlation instead",
}
# Outputs that the sets themselves ship, by their name there: what better-known detectors say about the same rows.
RELEASED = {
    "frank_cnndm": {"FactCC": "FactCC", "QAGS": "QAGS", "FEQA": "FEQA", "BertScore P Art": "BERTScore precision"},
    "frank_xsum": {"FactCC": "FactCC", "QAGS": "QAGS", "FEQA": "FEQA", "BertScore P Art": "BERTScore precision"},
    "faithbench": {"hhem-2.1": "HHEM-2.1", "true_nli": "TRUE (NLI)", "gpt-4-turbo": "GPT-4-turbo", "gpt_4o": "GPT-4o"},
}
# A model reads some 15 pairs of sentence and passage a second and core. Rows of its own training tell little.
MOST_ROWS, MOST_SEEN_ROWS = 250, 60
TOLERANCE = 0.02
UNSEEN = "mean of the sets unseen in training"
UNSEEN_ROWS = "rows of the sets unseen in training"


def measure(data: LabelledData) -> Family:
    """Score the faithfulness sets and say what the scores are worth."""
    rows = data.rows("faithfulness")
    sets: dict[str, list[LabelledCase]] = {}
    for row in rows:
        sets.setdefault(row["dataset"], []).append(labeled_case(row))
    in_mean = [name for name in sorted(sets) if name not in OUTSIDE_MEAN]

    def sets_for(backend: str) -> Sets:
        return {name: sampled(sets[name], _most_rows(backend, name)) for name in sorted(sets)}

    def figures_of(backend: str, samples: Sets) -> list[Figure]:
        in_step = score_slowly(backend, numbered(samples), FaithfulnessMetric, [ANSWER_WORDS_IN_CONTEXT])
        of_backend = unnumbered(in_step)
        names = [name for name in in_mean if not was_seen(backend, name)]
        ahead = above_plain(in_step, ANSWER_WORDS_IN_CONTEXT)
        found = [*grounding_figures(of_backend), *ahead, *mean_aurocs(of_backend, names, UNSEEN)]
        return [*found, *calibration_figures(of_backend, names, UNSEEN_ROWS)]

    lexical = [[FaithfulnessMetric(backend="lexical"), HallucinationRateMetric(backend="lexical")]]
    scored = score_sets(sets, lexical, BASELINES)
    figures = grounding_figures(scored)
    trusted = mean_aurocs(scored, in_mean, f"mean of {len(in_mean)} sets")
    headline = [*trusted, *small_edit_means(scored)]
    marks = _below_plain(figures, figures)
    slow = beyond_lexical(KEY, "faithfulness", sets_for, figures_of, use_recorded=data.use_recorded)
    for backend, found in slow.figures.items():
        of_sets = [figure for figure in found if figure.scorer.kind == "metric" and figure.dataset in sets]
        left_out = left_out_figures(FaithfulnessMetric.info.name, backend, sorted(sets))
        means = [figure for figure in found if figure.scorer.kind == "metric" and figure.dataset == UNSEEN]
        means += [_as_rate(figure) for figure in means]
        marks |= _below_plain(of_sets, found) | _below_plain(left_out, figures)
        seen = [figure for figure in of_sets if was_seen(backend, figure.dataset)]
        marks |= {(figure.scorer, figure.dataset, figure.statistic): "‡" for figure in seen}
        plain = {scorer: rows_of for scorer, rows_of in scored.items() if scorer.kind == "baseline"}
        headline += [*means, *mean_aurocs(plain, [name for name in in_mean if not was_seen(backend, name)], UNSEEN)]
        headline += _left_out_means(left_out, [each for each in of_sets if each not in seen], in_mean)
        figures += [*of_sets, *left_out, *(figure for figure in found if figure.statistic == CALIBRATION)]
    signs = [text for sign, text in SIGNS.items() if sign in marks.values()]
    measured = {"lexical", *slow.figures}
    compared = [figure for figure in figures if figure.statistic == ABOVE_PLAIN]
    return Family(
        key=KEY,
        title="Faithfulness and hallucination rate",
        measured=MEASURED,
        can=" ".join(text for backend, text in CAN.items() if backend in measured),
        cannot=" ".join(text for backend, text in CANNOT.items() if backend in measured),
        baselines=BASELINES,
        headline=[*headline, *(figure for figure in figures if figure.statistic == "Spearman")],
        figures=figures,
        trust=trust_figures(trusted),
        outside_mean=OUTSIDE_MEAN,
        released=_released(rows),
        remarks=(
            *signs,
            *REMARKS,
            *_against_plain(compared),
            *([SINCE_MEASURED, AS_RATE] if slow.figures else []),
            *slow.remarks,
        ),
        marks=marks,
        files=slow.files,
    )


def _most_rows(backend: str, name: str) -> int:
    return MOST_SEEN_ROWS if was_seen(backend, name) else MOST_ROWS


def _below_plain(figures: Sequence[Figure], rivals: Sequence[Figure]) -> dict[tuple[Scorer, str, str], str]:
    """A mark for each AUROC of a metric that is clearly below that of counting shared words."""
    plain = {
        rival.dataset: rival.value
        for rival in rivals
        if rival.scorer.name == ANSWER_WORDS_IN_CONTEXT.name and rival.statistic == "AUROC"
    }
    return {
        (figure.scorer, figure.dataset, figure.statistic): "▼"
        for figure in figures
        if figure.scorer.kind == "metric" and figure.statistic == "AUROC" and figure.value is not None
        if figure.value < (plain.get(figure.dataset) or 0.0) - TOLERANCE
    }


def _against_plain(figures: Sequence[Figure]) -> list[str]:
    """For each backend, on which sets it is surely worse than counting shared words, and on which surely better."""
    told = []
    for backend in dict.fromkeys(figure.scorer.backend for figure in figures):
        here = [figure for figure in figures if figure.scorer.backend == backend]
        unseen = [figure for figure in here if not was_seen(backend, figure.dataset)]
        below = [figure.dataset for figure in here if figure.high is not None and figure.high < 0]
        above = [figure.dataset for figure in unseen if figure.low is not None and figure.low > 0]
        told.append(
            f"Paired bootstrap against content-token precision (`{backend}`): of {len(here)} sets "
            f"{', '.join(below) or 'none'} surely below it; of the {len(unseen)} whose rows did not train it, "
            f"{', '.join(above) or 'none'} surely above it."
        )
    return told


def _as_rate(figure: Figure) -> Figure:
    """The same figure for the hallucination rate, which beyond the lexical backend is 1 minus faithfulness."""
    scorer = replace(figure.scorer, name=HallucinationRateMetric.info.name, direction="lower")
    return replace(figure, scorer=scorer)


def _left_out_means(left_out: Sequence[Figure], unseen: Sequence[Figure], in_mean: Sequence[str]) -> list[Figure]:
    """Means over sets of which training saw no row that counts, once every trained set has left-out rows."""
    edits = [name for name in in_mean if name.startswith(SMALL_EDITS)]
    means = []
    for statistic, names, dataset in (
        ("AUROC", in_mean, f"mean of {len(in_mean)} sets"),
        (BALANCED_ACCURACY, edits, f"mean of {len(edits)} SummEdits sets"),
    ):
        known = {figure.dataset: figure for figure in [*unseen, *left_out] if figure.statistic == statistic}
        if left_out and names and all(name in known for name in names):
            means.append(plain_mean(left_out[0].scorer, [known[name] for name in names], dataset))
    return means


def _released(rows: list[dict[str, Any]]) -> list[Figure]:
    figures = []
    for dataset, systems in RELEASED.items():
        for key, name in systems.items():
            scored = [
                ScoredRow(case[1].value, float(output), case[1].group)
                for row, case in ((row, labeled_case(row)) for row in rows if row["dataset"] == dataset)
                if (output := (row.get("baselines") or {}).get(key)) is not None
            ]
            if scored:
                figures.append(set_figure(Scorer(name, "released"), dataset, scored))
    return figures


def labeled_case(row: dict[str, Any]) -> LabelledCase:
    """An answer with what people said of it, 1 for supported."""
    case = DatasetCase(row["id"], row.get("question"), context=row["context"])
    hallucinated = row.get("hallucinated")
    label = float(row["faithful"]) if hallucinated is None else float(not hallucinated)
    return Record(case, outcome=row["response"]), Label(label, row.get("group"))
