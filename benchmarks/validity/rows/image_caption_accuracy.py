"""Caption accuracy, on captions of four systems and of people that people graded beside the image (THumB)."""

from __future__ import annotations

from agentunit.addons.review.labeling.label_files import Label
from agentunit.backends.sentence_encoders import SHIPPED_MODEL, sentences_unready, text_similarity
from agentunit.core.case import DatasetCase
from agentunit.core.records import Record, outcome_text
from agentunit.metrics.inputs import acceptable_answers
from agentunit.multimodal.metrics import ImageCaptionAccuracyMetric
from benchmarks.validity.baselines import Baseline
from benchmarks.validity.data import LabelledData
from benchmarks.validity.family import Family
from benchmarks.validity.measure import LabelledCase, score_sets, set_figure, trust_figures

ALL, BY_SYSTEMS = "thumb", "thumb, captions of systems only"
_PEOPLE = "Human"


def _meaning_alone(record: Record) -> float | None:
    """The cosine of the caption with the nearest reference."""
    caption = outcome_text(record.outcome) or ""
    similarity = text_similarity(SHIPPED_MODEL).similarity
    return max(similarity(caption, reference) for reference in acceptable_answers(record.case.expected_output))


def _length(record: Record) -> float | None:
    return float(len((outcome_text(record.outcome) or "").split()))


MEANING_ALONE = Baseline(
    "meaning alone", f"the cosine of the sentence embeddings ({SHIPPED_MODEL}), nearest reference", _meaning_alone
)
LENGTH = Baseline("length", "the number of words of the caption", _length)


def measure(data: LabelledData) -> Family:
    """Score the captions by the mix, by words alone and by meaning alone, and say what the scores are worth."""
    sets: dict[str, list[LabelledCase]] = {ALL: [], BY_SYSTEMS: []}
    for row in data.rows("caption_thumb"):
        case = DatasetCase(row["id"], "Describe the image.", expected_output=row["refs"])
        # Five captions belong to each image, so an image, not a caption, is the independent unit.
        labelled = (Record(case, outcome=row["caption"]), Label(row["human_score"], row["image"]))
        sets[ALL].append(labelled)
        if row["model"] != _PEOPLE:
            sets[BY_SYSTEMS].append(labelled)
    encoder_missing = sentences_unready()
    baselines = (LENGTH,) if encoder_missing else (MEANING_ALONE, LENGTH)
    runs = [[ImageCaptionAccuracyMetric()], [ImageCaptionAccuracyMetric(use_semantic=False)]]
    scored = score_sets(sets, runs[1:] if encoder_missing else runs, baselines)
    figures = [set_figure(scorer, name, rows_of[name]) for scorer, rows_of in scored.items() for name in sets]
    headline = [figure for figure in figures if figure.dataset == ALL]
    remarks = ["The captions of one image are resampled together."]
    if encoder_missing:
        remarks.append(f"`{SHIPPED_MODEL}` was not measured: {encoder_missing}.")
    return Family(
        key="image_caption_accuracy",
        title="Image caption accuracy",
        measured=(
            "THumB: people who saw the image graded captions of four systems and of one more person for precision and "
            "recall; the label is the mean of both. The metric sees only the caption and four captions that other "
            "people wrote."
        ),
        can=("Over many captions it ranks systems: the means of the four systems are in the order of people's grades."),
        cannot=(
            "Single captions of good systems are ranked only a little better than by chance: a wrong color or count "
            "hardly moves the score, and a right detail that no reference has lowers it. The captions of people, which "
            "people grade best, score below those of the better systems."
        ),
        baselines=baselines,
        headline=headline,
        figures=figures,
        trust=trust_figures(headline),
        remarks=remarks,
    )
