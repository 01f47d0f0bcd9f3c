"""How well an answer fits the pictures it is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentunit.backends.clip.encoder import ClipEncoder, EncodedText, Unencodable, Vector
from agentunit.backends.media.sources import shown_source
from agentunit.core.results import MetricResult
from agentunit.formulas.similarity import clipscore, cosine, similarity_score, weighted_mean
from agentunit.metrics.parameters import ABOVE_0_TO_1, check_parameters
from agentunit.multimodal.clip_metric import Asked, ClipMetric, Refused, named_media
from agentunit.multimodal.references import multimodal_info

IMAGE_KEYS = ("image_path", "image_paths", "images")


@dataclass(frozen=True)
class CrossModalGroundingMetric(ClipMetric):
    """Similarity of the answer and its pictures by CLIP: 1.0 from ``threshold`` on, below it in proportion.

    Pictures are in ``case.metadata["image_path"]`` (also ``image_paths``, ``images``): paths, bytes or data URIs,
    one or several. A long answer is read in windows of as many tokens as the encoder takes (77 for CLIP): each window
    counts with the picture that fits it best, and the similarity is their mean, weighted by their tokens. The detail
    has the raw cosine, CLIPScore and what each picture reaches. ``prompt="A photo depicts "`` gives the published
    CLIPScore.

    >>> case = {"id": "q1", "metadata": {"image_path": "no-such-picture.png"}}
    >>> result = CrossModalGroundingMetric(threshold=0.25).evaluate(case, None, "A cat sleeps on a sofa.")
    >>> result.value, result.detail["threshold"]  # a picture that is there gives a value from 0 to 1
    (None, 0.25)
    """

    clip_model_name: str = "ViT-B/32"
    threshold: float = 0.25

    info = multimodal_info(
        name="cross_modal_grounding",
        summary="How well the answer fits the pictures of the case, by CLIP.",
        inputs=(" or ".join(f"case.metadata.{key}" for key in IMAGE_KEYS), "outcome.output"),
        metadata_inputs=dict.fromkeys(IMAGE_KEYS, "shared"),
        detail_keys=("similarity", "clipscore", "threshold", "images", "text_windows", "model"),
        backend="clip",
        extra="multimodal",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_parameters(self, threshold=ABOVE_0_TO_1)

    @property
    def model_name(self) -> str:
        """The name of the CLIP to use, as the user gave it."""
        return self.clip_model_name

    def sources(self, metadata: Mapping[str, Any]) -> tuple[Any, ...]:
        """The pictures of a case."""
        return named_media(metadata, IMAGE_KEYS)

    def missing_media(self) -> str:
        """The reason when a case names no picture."""
        return "no picture: case.metadata['image_path'] is missing"

    def compare(
        self, encoder: ClipEncoder, asked: Sequence[Asked], texts: Sequence[EncodedText | Unencodable]
    ) -> list[MetricResult]:
        """Encode all pictures together, then score each answer."""
        vectors = iter(encoder.encode_images([place for each in asked for place in each.places], self._access))
        results = []
        for each, text in zip(asked, texts, strict=True):
            pictures = [next(vectors) for _ in each.sources]
            try:
                results.append(self._result(each, usable_text(text), _usable_pictures(each, pictures), encoder.name))
            except Refused as problem:
                results.append(self.refused(problem, str(problem), each))
        return results

    def _result(self, asked: Asked, text: EncodedText, pictures: Sequence[Vector], model: str) -> MetricResult:
        table = [[cosine(window, picture) for picture in pictures] for window in text.vectors]
        similarity = weighted_mean([max(row) for row in table], text.n_tokens)
        of_pictures = [weighted_mean(column, text.n_tokens) for column in zip(*table, strict=True)]
        detail: dict[str, Any] = {
            "similarity": similarity,
            "clipscore": clipscore(similarity),
            "threshold": self.threshold,
            "images": [
                {"image": shown_source(source), "similarity": each}
                for source, each in zip(asked.sources, of_pictures, strict=True)
            ],
            **text_detail(text),
            "model": model,
            "backend": self.current_backend,
        }
        return MetricResult(self.name, similarity_score(similarity, self.threshold), detail)

    def refused(self, error: Exception, reason: str, asked: Asked) -> MetricResult:
        """The result of an item whose pictures or answer cannot be used."""
        shown = [{"image": shown_source(source), "similarity": None} for source in asked.sources]
        return self.unscored(reason, error=error, threshold=self.threshold, images=shown, backend=self.current_backend)


def usable_text(text: EncodedText | Unencodable) -> EncodedText:
    """The vectors of an answer, or why there are none."""
    if isinstance(text, Unencodable):
        raise Refused(f"the answer {text.reason}")
    return text


def text_detail(text: EncodedText) -> dict[str, Any]:
    """What a detail says about the text that was compared."""
    detail: dict[str, Any] = {"text_windows": len(text.vectors)}
    if not text.complete:
        detail["text_cut"] = f"only the first {sum(text.n_tokens):,} tokens of the answer were read"
    return detail


def _usable_pictures(asked: Asked, pictures: Sequence[Vector | Unencodable]) -> list[Vector]:
    usable = []
    for source, each in zip(asked.sources, pictures, strict=True):
        if isinstance(each, Unencodable):
            raise Refused(f"{shown_source(source)} {each.reason}")
        usable.append(each)
    return usable
