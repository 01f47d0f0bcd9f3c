"""How well an answer fits the pictures it is about, and what metrics of pictures share: encoder and media."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol, runtime_checkable

from agentunit import doors
from agentunit.backends.media_sources import MediaAccess, MediaProblem, confined, shown_source
from agentunit.backends.quality import BackendUnavailable
from agentunit.core.results import MetricResult
from agentunit.formulas.similarity import clipscore, cosine, similarity_score, weighted_mean
from agentunit.metrics.base import ItemMetric
from agentunit.metrics.inputs import InputProblem, Item, no_answer
from agentunit.metrics.parameters import ABOVE_0_TO_1, TRUE_OR_FALSE, Rule, check_parameters
from agentunit.metrics.sentences import quoted, sentence
from agentunit.multimodal.reference_texts import multimodal_info
from agentunit.public import publish

Vector = Sequence[float]


@dataclass(frozen=True)
class Unencodable:
    """Why a picture or text has no vector."""

    reason: str


@dataclass(frozen=True)
class EncodedText:
    """A text as one vector for each window of as many tokens as the encoder takes, and how many tokens each holds.

    ``complete`` is false when the text is longer than what is read of it at most.
    """

    vectors: tuple[Vector, ...]
    n_tokens: tuple[int, ...]
    complete: bool = True


@runtime_checkable
class ClipEncoder(Protocol):
    """Pictures and texts as vectors of one space. Both methods give one answer for each thing asked, in order.

    ``name`` says which weights these are: scores of different weights are not alike. A picture is a path, bytes, a
    data URI, a URL where ``access`` allows it, or a decoded picture of Pillow.
    """

    name: str

    def encode_images(self, sources: Sequence[Any], access: MediaAccess = ...) -> Sequence[Vector | Unencodable]:
        """A vector for each picture, or why there is none."""
        ...

    def encode_texts(self, texts: Sequence[str]) -> Sequence[EncodedText | Unencodable]:
        """The vectors of each text, or why there are none."""
        ...


class Asked(NamedTuple):
    """One answer to compare, and what it is compared with: as the case names it, and where it is read from."""

    answer: str
    sources: tuple[Any, ...]
    places: tuple[Any, ...]


class Refused(ValueError):
    """Media or text that cannot be encoded; the message names it and says why."""


@dataclass(frozen=True)
class ClipMetric(ItemMetric):
    """Reads the answer and the media of each item, has all of them encoded together, and compares.

    Relative paths start at ``media_root``, outside of which nothing is read when it is given. Without it, paths of a
    case that was read from a file stay in that file's folder; paths of a case made in Python lead anywhere. URLs are
    fetched only with ``allow_urls``. ``prompt`` is put before every answer. ``encoder`` takes one of your own in place
    of CLIP.
    """

    _: KW_ONLY
    media_root: str | os.PathLike[str] | None = None
    allow_urls: bool = False
    prompt: str = ""
    encoder: ClipEncoder | None = None

    def __post_init__(self) -> None:
        check_parameters(
            self,
            clip_model_name=Rule("a name or a folder", lambda value: isinstance(value, str) and bool(value)),
            media_root=Rule("a folder", lambda value: isinstance(value, (str, os.PathLike, type(None)))),
            allow_urls=Rule("true or false", TRUE_OR_FALSE.holds),
            prompt=Rule("a text", lambda value: isinstance(value, str)),
        )
        if self.encoder is not None and not isinstance(self.encoder, ClipEncoder):
            raise ValueError(
                f"{type(self).__name__}: encoder must have a name, encode_images and encode_texts; "
                f"received {self.encoder!r:.80}"
            )

    @property
    @abstractmethod
    def model_name(self) -> str:
        """The name of the CLIP to use, as the user gave it."""

    @property
    def current_backend(self) -> str:
        """The name of what scores, known also when it fails."""
        name = doors.part("clip_label")(self.model_name) if self.encoder is None else self.encoder.name
        return f"clip:{name}"

    @cached_property
    def _access(self) -> MediaAccess:
        # Paths were confined when the case was read, each to what its own case allows.
        return MediaAccess(None, self.allow_urls)

    def missing(self, item: Item) -> str | None:
        """Why an item cannot be scored; ``None`` when it can. Neither media nor a model are loaded for it."""
        read = self._read(item)
        if isinstance(read, MetricResult):
            return str(read.detail["reason"])
        return None if self.encoder is not None else doors.part("clip_unready")()

    def score_item(self, item: Item) -> MetricResult:
        """Score one item."""
        return self.evaluate_batch([item])[0]

    def evaluate_batch(self, items: Sequence[Item]) -> list[MetricResult]:
        """Score many items; each distinct picture and text among them is encoded once."""
        read = [self._read(item) for item in items]
        asked = [each for each in read if isinstance(each, Asked)]
        if not asked:
            return [each for each in read if isinstance(each, MetricResult)]
        try:
            encoder = self.encoder or doors.part("load_clip")(self.model_name)
            texts = encoder.encode_texts([self.prompt + each.answer for each in asked])
            results = iter(self.compare(encoder, asked, texts))
        except BackendUnavailable as error:
            return [each if isinstance(each, MetricResult) else self.refused(error, str(error), each) for each in read]
        return [each if isinstance(each, MetricResult) else next(results) for each in read]

    @abstractmethod
    def sources(self, metadata: Mapping[str, Any]) -> tuple[Any, ...]:
        """The media that a case names; ``InputProblem`` for what cannot be media."""

    @abstractmethod
    def compare(
        self, encoder: ClipEncoder, asked: Sequence[Asked], texts: Sequence[EncodedText | Unencodable]
    ) -> list[MetricResult]:
        """Encode the media and score each answer."""

    @abstractmethod
    def missing_media(self) -> str:
        """The reason when a case names no media."""

    def refused(self, error: Exception, reason: str, asked: Asked) -> MetricResult:
        """The result of an item whose media or answer cannot be used."""
        return self.unscored(reason, error=error, backend=self.current_backend)

    def _read(self, item: Item) -> Asked | MetricResult:
        try:
            sources = self.sources(item.case_metadata)
        except InputProblem as problem:
            return self.unscored(str(problem), error=problem, backend=self.current_backend)
        if not sources:
            return self.unscored(self.missing_media(), backend=self.current_backend)
        if item.answer is None:
            return self.unscored(no_answer(item), backend=self.current_backend)
        if not item.answer.strip():
            return self.unscored("the answer is blank: nothing to compare", backend=self.current_backend)
        access = MediaAccess.for_case(item.case, self.media_root, self.allow_urls)
        places = []
        for source in sources:
            try:
                places.append(confined(source, access))
            except MediaProblem as problem:
                reason = f"{shown_source(source)} {problem}"
                return self.refused(Refused(reason), reason, Asked(item.answer, sources, sources))
        return Asked(item.answer, sources, tuple(places))


def named_media(metadata: Mapping[str, Any], keys: Sequence[str]) -> tuple[Any, ...]:
    """The paths, bytes and URIs under some keys of a case's metadata, each once; one or a list of them.

    >>> named_media({"image_path": "a.png", "images": ["b.png", "a.png", ""]}, ("image_path", "images"))
    ('a.png', 'b.png')
    """
    found: dict[Any, None] = {}
    for key in keys:
        named = metadata.get(key)
        for each in named if isinstance(named, (list, tuple)) else (named,):
            if isinstance(each, (bytearray, memoryview)):
                each = bytes(each)
            if each is None or (isinstance(each, (str, bytes)) and not each.strip()):
                continue
            if not isinstance(each, (str, bytes, os.PathLike)):
                raise InputProblem(
                    f"case.metadata[{key!r}] must be a path, bytes or a data URI, or a list of them; "
                    f"received {each!r:.80}"
                )
            found[os.fspath(each)] = None
    return tuple(found)


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


IMAGE_KEYS = ("image_path", "image_paths", "images")


@dataclass(frozen=True)
class CrossModalGroundingMetric(ClipMetric):
    """Similarity of the answer and its pictures by CLIP: 1.0 from ``threshold`` on, below it in proportion.

    Pictures are in ``case.metadata["image_path"]`` (also ``image_paths``, ``images``): paths, bytes or data URIs,
    one or several. A long answer is read in windows of as many tokens as the encoder takes (77 for CLIP); each counts
    with the picture that fits it best. The detail has the raw cosine and CLIPScore; ``prompt="A photo depicts "``
    gives the published CLIPScore.

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
        images: list[dict[str, Any]] = [
            {"image": shown_source(source), "similarity": each}
            for source, each in zip(asked.sources, of_pictures, strict=True)
        ]
        detail: dict[str, Any] = {
            "similarity": similarity,
            "clipscore": clipscore(similarity),
            "threshold": self.threshold,
            "images": images,
            **text_detail(text),
            "model": model,
            "backend": self.current_backend,
            "why": _why(similarity, self.threshold, images),
        }
        return MetricResult(self.name, similarity_score(similarity, self.threshold), detail)

    def refused(self, error: Exception, reason: str, asked: Asked) -> MetricResult:
        """The result of an item whose pictures or answer cannot be used."""
        shown = [{"image": shown_source(source), "similarity": None} for source in asked.sources]
        return self.unscored(reason, error=error, threshold=self.threshold, images=shown, backend=self.current_backend)


def _why(similarity: float, threshold: float, images: Sequence[Mapping[str, Any]]) -> str:
    nearest = max(images, key=lambda image: image["similarity"])["image"]
    name = nearest if nearest.startswith("data URI") else nearest.rpartition("/")[2]
    which = f"nearest of {len(images)} pictures: " if len(images) > 1 else ""
    return sentence(f"similarity {similarity:.2f}, threshold {threshold:.2f}; {which}{quoted(name)}")


def _usable_pictures(asked: Asked, pictures: Sequence[Vector | Unencodable]) -> list[Vector]:
    usable = []
    for source, each in zip(asked.sources, pictures, strict=True):
        if isinstance(each, Unencodable):
            raise Refused(f"{shown_source(source)} {each.reason}")
        usable.append(each)
    return usable


publish("agentunit.multimodal.metrics", CrossModalGroundingMetric)
