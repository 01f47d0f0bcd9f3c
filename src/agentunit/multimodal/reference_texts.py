"""Captions and transcripts: how close they are to the texts that people wrote for an image or a recording."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property, lru_cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from agentunit import doors
from agentunit.backends.media_sources import MediaAccess, MediaLimits, MediaProblem
from agentunit.backends.sentence_encoders import (
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
from agentunit.formulas.similarity import (
    character_error_rate,
    normalised_transcript,
    spoken_words,
    without_word_gaps,
    word_error_rate,
)
from agentunit.formulas.text import shown_share, token_overlap
from agentunit.metrics.base import ItemMetric, MetricInfo, describe_error
from agentunit.metrics.inputs import InputProblem, Item, acceptable_answers, no_answer
from agentunit.metrics.parameters import TRUE_OR_FALSE, Rule, check_parameters
from agentunit.metrics.sentences import quoted, sentence
from agentunit.public import publish

multimodal_info = partial(MetricInfo, family="multimodal", direction="higher", range=(0.0, 1.0))


def references_of(item: Item, keys: Sequence[str]) -> list[str]:
    """The case's expected output (a text, or several), else the texts at the first of some keys of its metadata.

    >>> references_of(Item({"id": "q1", "metadata": {"captions": ["A dog.", "A puppy."]}}, None, None), ["captions"])
    ['A dog.', 'A puppy.']
    """
    expected = acceptable_answers(item.case.expected_output)
    if expected:
        return expected
    metadata = item.case_metadata
    key = next((key for key in keys if metadata.get(key) not in (None, "", [])), None)
    return [] if key is None else texts_at(f"case.metadata[{key!r}]", metadata[key])


def texts_at(place: str, value: Any) -> list[str]:
    """One text or a list of them, found at a place of the record."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, (list, tuple)) or not all(isinstance(text, str) for text in texts):
        raise InputProblem(f"{place} must be a text or a list of texts; received {value!r:.80}")
    return list(texts)


def check_length(place: str, text: str, longest: int) -> None:
    """Refuse a text that would take minutes and gigabytes."""
    if len(text) > longest:
        raise InputProblem(f"{place} must have at most {longest:,} characters; received {len(text):,}")


KEYWORDS = "keywords"
SEMANTIC_WEIGHT = 0.7
KEYWORD_WEIGHT = 0.3
_CAPTION_KEYS = ("references", "captions")


@dataclass(frozen=True)
class ImageCaptionAccuracyMetric(ItemMetric):
    """0.7 · semantic similarity + 0.3 · F1 of the words, against the reference that fits best.

    References are ``case.expected_output`` (a text, or a list of texts), else ``case.metadata["references"]`` or
    ``["captions"]``. Semantic similarity is the cosine of sentence embeddings by ``all-MiniLM-L6-v2`` of the package
    agentunit-local; ``model_name`` may also be the folder of an ONNX encoder, or a name that sentence-transformers
    knows. Without an encoder, or with ``use_semantic=False``, the value is the F1 of the words alone, and the backend
    is ``keywords``.

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
        references = [text for text in references_of(item, _CAPTION_KEYS) if text.strip()]
        known: dict[str, Any] = {"caption": item.answer, "n_references": len(references), "backend": backend}
        if not references:
            return self.unscored("no reference: neither case.expected_output nor case.metadata.references", **known)
        if item.answer is None:
            return self.unscored(no_answer(item), **known)
        for text in (item.answer, *references):
            check_length("a caption", text, LONGEST_TEXT)
        best = max((self._compared(item.answer, reference) for reference in references), key=lambda each: each[0])
        return MetricResult(self.name, best[0], {**best[1], **known, "why": _why_caption(best[1])})

    def evaluate_batch(self, items: Sequence[Item]) -> list[MetricResult]:
        """Score many items; every distinct text is encoded once, together with the others."""
        similarity = self._similarity
        if similarity is not None:
            similarity.remember([text for item in items for text in _texts_of(item)])
        return [self.measure(item) for item in items]

    def _compared(self, caption: str, reference: str) -> tuple[float, dict[str, Any]]:
        precision, recall, f1 = token_overlap(reference, caption) or (0.0, 0.0, 0.0)
        detail = {"precision": precision, "recall": recall, "f1": f1, "reference": reference}
        if self._similarity is None:
            return f1, {"semantic_similarity": None, **detail}
        semantic = self._similarity.similarity(caption, reference)
        value = SEMANTIC_WEIGHT * max(0.0, semantic) + KEYWORD_WEIGHT * f1
        return min(1.0, value), {"semantic_similarity": semantic, **detail}


def _why_caption(compared: Mapping[str, Any]) -> str:
    """How much of the nearest reference the caption says, in its words and in meaning."""
    semantic = compared["semantic_similarity"]
    alike = "" if semantic is None else f"; similarity of meaning {semantic:.2f}"
    of_words = f"has {shown_share(compared['recall'])} of the words of {quoted(compared['reference'])}"
    return sentence(f"{of_words}; {shown_share(compared['precision'])} of its own are in there{alike}")


def _texts_of(item: Item) -> list[str]:
    """The texts of an item that will be compared; one that cannot be scored has none."""
    try:
        texts = [text for text in references_of(item, _CAPTION_KEYS) if text.strip()]
    except InputProblem:
        return []
    if not texts or item.answer is None or any(len(text) > LONGEST_TEXT for text in (item.answer, *texts)):
        return []
    return [item.answer, *texts]


BACKEND = "wer"
LONGEST_TRANSCRIPT = 200_000
_TRANSCRIPT_KEYS = ("transcript", "references")
_AUDIO_LIMITS = MediaLimits(most_bytes=512 * 2**20)


@dataclass(frozen=True)
class AudioTranscriptionMetric(ItemMetric):
    """1 − word error rate (WER), at least 0, against the reference transcript that fits best.

    The answer is the transcript to judge. References are ``case.expected_output`` (a text, or a list of texts), else
    ``case.metadata["transcript"]`` or ``["references"]``. With ``normalize``, case, punctuation and spacing do not
    count, and each letter of a script without spaces (Chinese, Japanese, Thai) is a word; without it the rates are
    jiwer's.

    ``recognizer`` is for cases without a reference: what it hears in ``case.metadata["audio_path"]`` becomes the
    reference, and the backend names it. It is a function from a path to a text, ``"module:attribute"`` of one, or
    ``"faster-whisper"``. Files must be in ``media_root``, or next to the file that the case was read from.

    >>> case = {"id": "q1", "expected_output": "four queen of clubs"}
    >>> AudioTranscriptionMetric().evaluate(case, None, "For Queen of Clubs.").value
    0.75
    """

    normalize: bool = True
    _: KW_ONLY
    recognizer: Callable[[str], str] | str | None = None
    media_root: str | os.PathLike[str] | None = None

    info = multimodal_info(
        name="audio_transcription_quality",
        version="2",
        summary="How few words of a transcript are wrong, against reference transcripts.",
        inputs=("case.expected_output or case.metadata.transcript or case.metadata.references", "outcome.output"),
        metadata_inputs={"transcript": "answer_key", "references": "answer_key", "audio_path": "shared"},
        detail_keys=("wer", "cer", "accuracy", "reference", "n_references", "reference_words", "engine"),
        backend=BACKEND,
    )

    def __post_init__(self) -> None:
        check_parameters(
            self,
            normalize=TRUE_OR_FALSE,
            media_root=Rule(
                "a folder",
                lambda root: root is None or (isinstance(root, (str, os.PathLike)) and Path(root).is_dir()),
            ),
        )
        if self.recognizer is not None:
            doors.part("recognizer_of")(self.recognizer, "AudioTranscriptionMetric")

    @cached_property
    def _recogniser(self) -> tuple[str, Callable[[str], str]] | None:
        if self.recognizer is None:
            return None
        found: tuple[str, Callable[[str], str]] = doors.part("recognizer_of")(
            self.recognizer, "AudioTranscriptionMetric"
        )
        return found

    def score_item(self, item: Item) -> MetricResult:
        """Take the reference with the fewest errors."""
        references = references_of(item, _TRANSCRIPT_KEYS)
        if item.answer is None:
            return self.unscored(no_answer(item), n_references=len(references))
        backend = BACKEND
        if not references:
            if self._recogniser is None or not item.case_metadata.get("audio_path"):
                return self.unscored(self._nothing_to_compare(item), n_references=0)
            references = [self._heard(item, *self._recogniser)]
            backend = f"{BACKEND}, {self._recogniser[0]}"
        return self._result(item.answer, references, backend)

    def _result(self, answer: str, references: list[str], backend: str) -> MetricResult:
        for text in (answer, *references):
            check_length("a transcript", text, LONGEST_TRANSCRIPT)
        hypothesis = self._prepared(answer)
        compared = [
            (error_rates(self._prepared(reference), hypothesis, normalised=self.normalize), reference)
            for reference in references
        ]
        rates, reference = min(compared, key=lambda each: each[0])
        accuracy = max(0.0, 1.0 - rates.wer)
        detail: dict[str, Any] = {
            **rates._asdict(),
            "accuracy": accuracy,
            "reference": reference,
            "n_references": len(references),
            "reference_words": len(spoken_words(self._prepared(reference))),
            "engine": engine_name(),
            "backend": backend,
        }
        detail["why"] = _why_transcript(rates.wer, reference)
        if backend != BACKEND:
            detail["reference_from"] = "the recognizer, from case.metadata['audio_path']"
        return MetricResult(self.name, accuracy, detail)

    def _prepared(self, text: str) -> str:
        return normalised_transcript(text) if self.normalize else text

    def _nothing_to_compare(self, item: Item) -> str:
        reason = "no reference transcript: neither case.expected_output nor case.metadata.transcript"
        if item.case_metadata.get("audio_path"):
            return f"{reason} (recognizer= makes one of case.metadata.audio_path)"
        return reason

    def _heard(self, item: Item, name: str, recognise: Callable[[str], str]) -> str:
        path = item.case_metadata["audio_path"]
        try:
            access = MediaAccess.for_case(item.case, self.media_root, limits=_AUDIO_LIMITS)
            text = recognise(doors.part("checked_audio")(path, access))
        except MediaProblem as problem:
            raise InputProblem(f"case.metadata['audio_path'] {problem}; received {path!r:.200}") from None
        except Exception as error:  # a recogniser of the user's may raise anything
            raise InputProblem(f"recognizer {name!r} failed on {path!r:.200}: {describe_error(error)}") from error
        if not isinstance(text, str):
            raise InputProblem(f"recognizer {name!r} must give a text; received {text!r:.80}")
        return text


def _why_transcript(wer: float, reference: str) -> str:
    if not wer:
        return "every word is right"
    return sentence(f"word errors are {shown_share(wer)} of the words of {quoted(reference)}")


class ErrorRates(NamedTuple):
    """Word and character error rate of one transcript."""

    wer: float
    cer: float


def error_rates(reference: str, hypothesis: str, *, normalised: bool = False) -> ErrorRates:
    """Both rates of a transcript against its reference; ``normalised``: both are normalized transcripts.

    Where a script has no spaces, those that part its letters into words are not counted as characters.
    """
    by_letter = (without_word_gaps(reference), without_word_gaps(hypothesis)) if normalised else (reference, hypothesis)
    # How empty references count has changed between versions of jiwer.
    if engine_name() == "jiwer" and spoken_words(reference):
        import jiwer

        return ErrorRates(float(jiwer.wer(reference, hypothesis)), float(jiwer.cer(*by_letter)))
    return ErrorRates(word_error_rate(reference, hypothesis), character_error_rate(*by_letter))


@lru_cache(maxsize=1)
def engine_name() -> str:
    """What computes the rates here."""
    return "jiwer" if find_spec("jiwer") else "agentunit"


publish("agentunit.multimodal.metrics", AudioTranscriptionMetric, ImageCaptionAccuracyMetric)
