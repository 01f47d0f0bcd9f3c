"""What the metrics that compare an answer with pictures share: the encoder, and where media may come from."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, NamedTuple

from agentunit.backends.clip.encoder import ClipEncoder, EncodedText, Unencodable
from agentunit.backends.clip.loading import label_of, load_clip, resolved_name
from agentunit.backends.media.limits import MediaAccess, MediaProblem
from agentunit.backends.media.sources import confined, shown_source
from agentunit.backends.quality import BackendUnavailable
from agentunit.core.results import MetricResult
from agentunit.metrics.base import ItemMetric
from agentunit.metrics.inputs import InputProblem, Item, no_answer
from agentunit.metrics.parameters import TRUE_OR_FALSE, Rule, check_parameters


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
        name = label_of(resolved_name(self.model_name)) if self.encoder is None else self.encoder.name
        return f"clip:{name}"

    @cached_property
    def _access(self) -> MediaAccess:
        # Paths were confined when the case was read, each to what its own case allows.
        return MediaAccess(None, self.allow_urls)

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
            encoder = self.encoder or load_clip(self.model_name)
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
