from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def data_folder() -> Path:
    folder = Path(os.environ.get("AGENTUNIT_DATA", ROOT.parent / "shared" / "data"))
    if not (folder / "media").is_dir():
        pytest.skip(f"no media in {folder}: set AGENTUNIT_DATA to the folder of the labeled data")
    return folder
