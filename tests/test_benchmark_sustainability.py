"""The benchmark beside CodeCarbon says what it needs, and our side of it measures; no figure is judged here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("work", ["busy", "children", "waiting", "idle"])
def test_our_side_measures_every_kind_of_work(work: str) -> None:
    stage = ROOT / "benchmarks" / "sustainability" / "stage.py"
    done = subprocess.run(
        [sys.executable, str(stage), "ours", work, "0.2"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["ours"]["energy_min_kwh"] <= found["ours"]["energy_kwh"] <= found["ours"]["energy_max_kwh"]
    assert found["cpu_percent"] >= 0


def test_without_the_peer_it_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sys.path.insert(0, str(ROOT))
    try:
        from benchmarks.sustainability import __main__ as benchmark
    finally:
        sys.path.remove(str(ROOT))
    monkeypatch.setattr(benchmark, "python_of", lambda name: ROOT / "nowhere")
    assert benchmark.main([]) == 2
    assert "--install-peer" in capsys.readouterr().err
