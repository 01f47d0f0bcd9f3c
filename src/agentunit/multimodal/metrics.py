"""The catalog's multimodal metrics, under the path it gives them."""

from __future__ import annotations

from agentunit.multimodal.captions import ImageCaptionAccuracyMetric
from agentunit.multimodal.coherence import MultimodalCoherenceMetric
from agentunit.multimodal.grounding import CrossModalGroundingMetric
from agentunit.multimodal.transcription import AudioTranscriptionMetric
from agentunit.multimodal.video import VideoResponseRelevanceMetric

__all__ = [
    "AudioTranscriptionMetric",
    "CrossModalGroundingMetric",
    "ImageCaptionAccuracyMetric",
    "MultimodalCoherenceMetric",
    "VideoResponseRelevanceMetric",
]
