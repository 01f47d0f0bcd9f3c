from __future__ import annotations

import pytest
from made_media import TINY_CLIP

from agentunit.addons.media.clip.encoder import CachedEncoder
from agentunit.addons.media.clip.runtime import OnnxRuntime


@pytest.fixture(scope="session")
def tiny_runtime() -> OnnxRuntime:
    return OnnxRuntime(TINY_CLIP, "tiny_clip")


@pytest.fixture
def tiny_clip(tiny_runtime: OnnxRuntime) -> CachedEncoder:
    return CachedEncoder(tiny_runtime)
