"""Metrics of answers about pictures, videos and sound.

The names below load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentunit.public import lazy_names

if TYPE_CHECKING:
    from agentunit.multimodal.metrics import (
        AudioTranscriptionMetric,
        CrossModalGroundingMetric,
        ImageCaptionAccuracyMetric,
        MultimodalCoherenceMetric,
        VideoResponseRelevanceMetric,
    )

__all__ = [
    "AudioTranscriptionMetric",
    "CrossModalGroundingMetric",
    "ImageCaptionAccuracyMetric",
    "MultimodalCoherenceMetric",
    "VideoResponseRelevanceMetric",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, {".metrics": " ".join(__all__)})
