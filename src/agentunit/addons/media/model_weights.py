"""Models whose weights a user brings or installs: which of them can run here, told without loading any."""

from __future__ import annotations

from typing import Literal, NamedTuple

from agentunit.addons.media.clip.loading import DEFAULT_NAME, clip_unready, resolved_name
from agentunit.addons.media.speech import whisper_folder
from agentunit.backends.quality import BackendUnavailable
from agentunit.backends.sentence_encoders import SHIPPED_MODEL, sentences_unready


class ModelWeights(NamedTuple):
    """One model, and what it is for, or why it cannot run, with the way out."""

    part: str
    state: Literal["ok", "not ready"]
    note: str


def model_weights() -> list[ModelWeights]:
    """The models of the multimodal metrics."""
    clip = resolved_name(DEFAULT_NAME)
    return [
        _found("sentence encoder", f"{SHIPPED_MODEL}, for image_caption_accuracy", sentences_unready()),
        _found("CLIP", f"{clip}, for cross_modal_grounding and video_response_relevance", clip_unready()),
        _found("Whisper", "tiny.en, for audio_transcription_quality without a reference", _whisper_unready()),
    ]


def _whisper_unready() -> str | None:
    try:
        whisper_folder("", "audio_transcription_quality")
    except BackendUnavailable as error:
        return str(error)
    return None


def _found(part: str, purpose: str, unready: str | None) -> ModelWeights:
    return ModelWeights(part, "ok", purpose) if unready is None else ModelWeights(part, "not ready", unready)
