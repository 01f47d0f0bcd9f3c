"""The catalog's multimodal metrics, under the path it gives them, and that of an answer's coherence."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentunit.core.results import MetricResult
from agentunit.formulas.text import keywords_found, modality_coherence
from agentunit.metrics.base import ItemMetric
from agentunit.metrics.inputs import Item, no_answer
from agentunit.metrics.sentences import quoted
from agentunit.multimodal.clip_metric import CrossModalGroundingMetric
from agentunit.multimodal.reference_texts import AudioTranscriptionMetric, ImageCaptionAccuracyMetric, multimodal_info
from agentunit.multimodal.video import VideoResponseRelevanceMetric

__all__ = [
    "AudioTranscriptionMetric",
    "CrossModalGroundingMetric",
    "ImageCaptionAccuracyMetric",
    "MultimodalCoherenceMetric",
    "VideoResponseRelevanceMetric",
]


_KEYWORD_LINES = {
    "image": "image images picture pictures photo photos photograph photographs screenshot screenshots drawing diagram "
    "illustration figure chart scan depicts depicted pictured visible visually",
    "audio": "audio sound sounds recording recordings voice voices speech spoken speaker speakers song music noise "
    "heard hear hears listen listening podcast audible",
    "video": "video videos clip clips footage film filmed frame frames scene scenes animation movie",
    "text": "text texts question document documents passage passages paragraph sentence sentences article written "
    "wording description transcript report page pages",
}
KEYWORDS = {modality: tuple(line.split()) for modality, line in _KEYWORD_LINES.items()}
# "image", "images", "image_path", "video_urls", "audio_1": the thing itself or where it is, not what it measures.
_PLACES = "paths?|urls?|uris?|files?|data|base64|bytes|frames?|inputs?|contents?|refs?"
_INPUT_KEY = re.compile(rf"(image|audio|video|text)s?(?:[ _-]?(?:{_PLACES}|\d+))?", re.IGNORECASE)
TRANSITIONS = (
    "also", "additionally", "furthermore", "moreover", "besides", "however", "although", "whereas", "while",
    "meanwhile", "both", "together", "combined", "similarly", "likewise", "therefore", "thus", "consequently", "hence",
    "accordingly", "in addition", "as well as", "in contrast", "by contrast", "on the other hand", "at the same time",
    "compared with", "compared to", "consistent with", "as a result",
)  # fmt: skip


@dataclass(frozen=True)
class MultimodalCoherenceMetric(ItemMetric):
    """0.6 · share of the input's modalities that the answer refers to + 0.4 · (1 if it has a transition word).

    Modalities are entries of the case's metadata such as ``image``, ``images``, ``video_url`` or ``text``; its
    query is text as well. A modality is referred to when one of its keywords ("picture", "hear", "document", …) is
    in the answer as a whole word. English only; it looks at words, not sense.

    >>> case = {"id": "q1", "query": "What is this?", "metadata": {"image_path": "cat.jpg"}}
    >>> MultimodalCoherenceMetric().evaluate(case, None, "The image shows a cat, while the question asks why.").value
    1.0
    """

    info = multimodal_info(
        name="multimodal_coherence",
        version="2",
        summary="Whether the answer refers to every kind of input it was given, and joins them.",
        inputs=(
            "case.query or case.metadata.image_path or case.metadata.image_paths or case.metadata.images "
            "or case.metadata.audio_path or case.metadata.video_path or case.metadata.text",
            "outcome.output",
        ),
        metadata_inputs=dict.fromkeys(
            ("image_path", "image_paths", "images", "audio_path", "video_path", "text"), "shared"
        ),
        detail_keys=("modalities", "referenced", "keywords", "transitions", "coverage", "coherence"),
        backend="words",
        trust={"words": "descriptive"},
    )

    def score_item(self, item: Item) -> MetricResult:
        """Look for each modality's keywords, and for words that join."""
        present = _modalities(item)
        if not present:
            return self.unscored(
                "no modality: no query, and no image, audio, video or text in case.metadata", modalities=[]
            )
        if item.answer is None:
            return self.unscored(no_answer(item), modalities=present)
        answer = item.answer
        found = {modality: keywords_found(KEYWORDS[modality], answer) for modality in present}
        referenced = [modality for modality in present if found[modality]]
        transitions = keywords_found(TRANSITIONS, answer)
        detail = {
            "modalities": present,
            "referenced": referenced,
            "keywords": {modality: words for modality, words in found.items() if words},
            "transitions": transitions,
            "coverage": len(referenced) / len(present),
            "coherence": 1.0 if transitions else 0.0,
            "backend": self.info.backend,
            "why": _why(present, referenced, transitions),
        }
        value = modality_coherence(len(referenced), len(present), bool(transitions))
        return MetricResult(self.name, value, detail)


def _why(present: Sequence[str], referenced: Sequence[str], transitions: Sequence[str]) -> str:
    ignored = [modality for modality in present if modality not in referenced]
    refers = f"no word about {', '.join(ignored)}" if ignored else f"refers to {', '.join(present)}"
    linking = f"a linking word ({quoted(transitions[0])})" if transitions else 'no linking word, such as "while"'
    return f"{refers}; {linking}"


def has_media(case_metadata: Mapping[str, Any]) -> bool:
    """Whether a case is about an image, a recording or a video: it holds one, or what people wrote about one.

    >>> has_media({"image_path": "cat.jpg"}), has_media({"transcript": "Good day."}), has_media({"text": "Hello."})
    (True, True, False)
    """
    keys = [key for key, value in case_metadata.items() if _is_input(key, value)]
    found = [_INPUT_KEY.fullmatch(key) for key in keys]
    return any(match is not None and match[1].lower() != "text" for match in found) or not _WRITTEN.isdisjoint(keys)


# What people wrote about an image or a recording.
_WRITTEN = frozenset(("caption", "captions", "transcript", "transcripts"))


def _modalities(item: Item) -> list[str]:
    """The kinds of input the case has, text last."""
    found = [_INPUT_KEY.fullmatch(key) for key, value in item.case_metadata.items() if _is_input(key, value)]
    present = {match[1].lower() for match in found if match is not None}
    query = item.case.query
    if isinstance(query, str) and query.strip():
        present.add("text")
    return [kind for kind in KEYWORDS if kind in present]


def _is_input(key: object, value: object) -> bool:
    """Whether an entry may be an input: a size, a count or a switch is none."""
    return isinstance(key, str) and not isinstance(value, (int, float)) and bool(value)
