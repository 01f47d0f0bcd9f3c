"""How good a caption is, against captions that people wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from agentunit.backends.sentences import (
    LONGEST_TEXT,
    SHIPPED_MODEL,
    TextSimilarity,
    check_model_name,
    is_shipped,
    sentences_unready,
    similarity_on_this_machine,
    text_similarity,
)
from agentunit.core.results import MetricResult
from agentunit.formulas.text import token_overlap
from agentunit.metrics.base import ItemMetric
from agentunit.metrics.inputs import InputProblem, Item, no_answer
from agentunit.metrics.parameters import TRUE_OR_FALSE, check_parameters
from agentunit.multimodal.references import check_length, multimodal_info, references_of

KEYWORDS = "keywords"
SEMANTIC_WEIGHT = 0.7
KEYWORD_WEIGHT = 0.3
_PLACES = ("references", "captions")


@dataclass(frozen=True)
class ImageCaptionAccuracyMetric(ItemMetric):
    """0.7 · semantic similarity + 0.3 · F1 of the words, against the reference that fits best.

    References are ``case.expected_output`` (a text, or a list of texts), else ``case.metadata["references"]`` or
    ``["captions"]``. Semantic similarity is the cosine of sentence embeddings (below 0 counts as 0) by
    ``all-MiniLM-L6-v2`` of the package agentunit-local; ``model_name`` may also be the folder of an encoder exported to
    ONNX or, where sentence-transformers is installed, any name or folder that it knows. Without an encoder, or with
    ``use_semantic=False``, the value is the F1 of the words alone, and the backend is ``keywords``.

    The weights are the catalog's. Meaning alone, ``detail["semantic_similarity"]``, agrees better with people: its rank
    correlation with their grades is 0.294, that of the value 0.265 (THumB, held-out rows).

    >>> case = {"id": "q1", "expected_output": ["A dog runs.", "A brown dog runs across a lawn."]}
    >>> ImageCaptionAccuracyMetric(use_semantic=False).evaluate(case, None, "A dog runs fast.").detail["precision"]
    0.75
    """

    use_semantic: bool = True
    model_name: str = SHIPPED_MODEL

    info = multimodal_info(
        name="image_caption_accuracy",
        summary="How close a caption is to captions that people wrote, in meaning and in words.",
        inputs=("case.expected_output or case.metadata.references or case.metadata.captions", "outcome.output"),
        metadata_inputs={"references": "answer_key", "captions": "answer_key"},
        detail_keys=("semantic_similarity", "precision", "recall", "f1", "reference", "n_references", "caption"),
        backend=SHIPPED_MODEL,
        extra="local",
    )

    def __post_init__(self) -> None:
        check_parameters(self, use_semantic=TRUE_OR_FALSE)
        check_model_name(self.model_name, "ImageCaptionAccuracyMetric")
        if self.use_semantic and not is_shipped(str(self.model_name)):
            text_similarity(str(self.model_name))

    @cached_property
    def _similarity(self) -> TextSimilarity | None:
        name = str(self.model_name)
        if not self.use_semantic:
            return None
        lacking = is_shipped(name) and sentences_unready() is not None
        return similarity_on_this_machine() if lacking else text_similarity(name)

    @property
    def current_backend(self) -> str:
        """The name of what scores, known also when it fails."""
        return KEYWORDS if self._similarity is None else self._similarity.name

    @property
    def gains_from_batches(self) -> bool:
        """Whether the engine should hand over many items at once."""
        return self._similarity is not None

    def score_item(self, item: Item) -> MetricResult:
        """Compare the caption with each reference, and keep the best."""
        backend = self.current_backend
        references = [text for text in references_of(item, _PLACES) if text.strip()]
        known: dict[str, Any] = {"caption": item.answer, "n_references": len(references), "backend": backend}
        if not references:
            return self.unscored("no reference: neither case.expected_output nor case.metadata.references", **known)
        if item.answer is None:
            return self.unscored(no_answer(item), **known)
        for text in (item.answer, *references):
            check_length("a caption", text, LONGEST_TEXT)
        best = max((self._compared(item.answer, reference) for reference in references), key=lambda each: each[0])
        return MetricResult(self.name, best[0], {**best[1], **known})

    def evaluate_batch(self, items: Sequence[Item]) -> list[MetricResult]:
        """Score many items; every distinct text is encoded once, together with the others."""
        similarity = self._similarity
        if similarity is not None:
            similarity.remember([text for item in items for text in _texts(item)])
        return [self.measure(item) for item in items]

    def _compared(self, caption: str, reference: str) -> tuple[float, dict[str, Any]]:
        precision, recall, f1 = token_overlap(reference, caption) or (0.0, 0.0, 0.0)
        detail = {"precision": precision, "recall": recall, "f1": f1, "reference": reference}
        if self._similarity is None:
            return f1, {"semantic_similarity": None, **detail}
        semantic = self._similarity.similarity(caption, reference)
        value = SEMANTIC_WEIGHT * max(0.0, semantic) + KEYWORD_WEIGHT * f1
        return min(1.0, value), {"semantic_similarity": semantic, **detail}


def _texts(item: Item) -> list[str]:
    """The texts of an item that will be compared; one that cannot be scored has none."""
    try:
        texts = [text for text in references_of(item, _PLACES) if text.strip()]
    except InputProblem:
        return []
    if not texts or item.answer is None or any(len(text) > LONGEST_TEXT for text in (item.answer, *texts)):
        return []
    return [item.answer, *texts]
