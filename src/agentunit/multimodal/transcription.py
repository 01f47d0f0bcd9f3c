"""How good a transcript of speech is."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from agentunit.backends.media.limits import MediaAccess, MediaProblem
from agentunit.backends.speech import AUDIO_LIMITS, Recogniser, checked_audio, engine_name, error_rates, recogniser_of
from agentunit.core.results import MetricResult
from agentunit.formulas.edit_distance import normalised_transcript, spoken_words
from agentunit.metrics.base import ItemMetric, describe_error
from agentunit.metrics.inputs import InputProblem, Item, no_answer
from agentunit.metrics.parameters import TRUE_OR_FALSE, Rule, check_parameters
from agentunit.multimodal.references import check_length, multimodal_info, references_of

BACKEND = "wer"
LONGEST_TRANSCRIPT = 200_000
_PLACES = ("transcript", "references")


@dataclass(frozen=True)
class AudioTranscriptionMetric(ItemMetric):
    """1 − word error rate (WER), at least 0, against the reference transcript that fits best.

    The answer is the transcript to judge. References are ``case.expected_output`` (a text, or a list of texts), else
    ``case.metadata["transcript"]`` or ``["references"]``. With ``normalize``, case, punctuation and spacing do not
    count, and each letter of a script without spaces (Chinese, Japanese, Thai) is a word; without it the rates are
    jiwer's.

    ``recognizer`` is for cases without a reference: what it hears in ``case.metadata["audio_path"]`` becomes the
    reference, and the backend names it, since agreement with a machine is other evidence than agreement with a person.
    It is a function from a path to a text, ``"module:attribute"`` of one, or ``"faster-whisper"``. Files must lie in
    ``media_root`` when it is given, else beside the file that the case was read from; relative paths start there.

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
        recogniser_of(self.recognizer, "AudioTranscriptionMetric")

    @cached_property
    def _recogniser(self) -> tuple[str, Recogniser] | None:
        return recogniser_of(self.recognizer, "AudioTranscriptionMetric")

    def score_item(self, item: Item) -> MetricResult:
        """Take the reference with the fewest errors."""
        references = references_of(item, _PLACES)
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

    def _heard(self, item: Item, name: str, recognise: Recogniser) -> str:
        path = item.case_metadata["audio_path"]
        try:
            text = recognise(checked_audio(path, MediaAccess.for_case(item.case, self.media_root, limits=AUDIO_LIMITS)))
        except MediaProblem as problem:
            raise InputProblem(f"case.metadata['audio_path'] {problem}; received {path!r:.200}") from None
        except Exception as error:  # a recogniser of the user's may raise anything
            raise InputProblem(f"recognizer {name!r} failed on {path!r:.200}: {describe_error(error)}") from error
        if not isinstance(text, str):
            raise InputProblem(f"recognizer {name!r} must give a text; received {text!r:.80}")
        return text
