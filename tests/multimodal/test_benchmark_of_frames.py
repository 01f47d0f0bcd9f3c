"""The benchmark of frames measures, and says what it must leave out; no figure is judged here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.multimodal import __main__

    return __main__


def test_eight_frames_beside_all_of_them(benchmark: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page = tmp_path / "results.md"
    assert benchmark.main(["frames", "--seconds", "20", "--rounds", "1", "--write-results", str(page)]) == 0
    shown = capsys.readouterr().out
    assert "8 frames of 20 s of video" in shown
    assert "a keyframe every 2 s" in page.read_text(encoding="utf-8")


def test_what_cannot_be_measured_is_left_out_and_said(
    benchmark: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(benchmark, "find_spec", lambda name: None if name in ("torch", "av") else 1)
    assert benchmark.main([]) == 2
    told = capsys.readouterr().err
    assert "encoding is left out: torch cannot be imported here" in told
    assert "frames is left out: av cannot be imported here" in told
