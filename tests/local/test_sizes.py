"""The larger size of the local model: the same backend with a folder of weights of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from agentunit_local.grounding.cross_encoder import SHIPPED
from agentunit_local.quality import MODEL_VARIABLE, LocalBackend

from agentunit.backends.quality import QualityQuestion

LARGE = Path(__file__).parents[2] / "packages/agentunit-local-large/src"
QUESTION = QualityQuestion("When does it open?", ["The museum opens at nine."], "It opens at eleven.")


@pytest.fixture
def large(monkeypatch, tmp_path):
    """The backend of the package, with a folder of weights that the test fills."""
    monkeypatch.syspath_prepend(str(LARGE))
    import agentunit_local_large

    monkeypatch.setattr(agentunit_local_large.LargeBackend, "weights", tmp_path)
    settings = LARGE / "agentunit_local_large/weights/cross_encoder.json"
    (tmp_path / "cross_encoder.json").write_bytes(settings.read_bytes())
    return agentunit_local_large


def fill(folder, *names):
    for name in names:
        (folder / name).symlink_to(SHIPPED / name)


def test_it_reads_with_its_own_weights_and_numbers(large, tmp_path):
    fill(tmp_path, "model.onnx", "tokenizer.json")
    fitted = json.loads((SHIPPED / "calibration.json").read_text())
    fitted["faithfulness"]["intercept"] += 1.0
    (tmp_path / "calibration.json").write_text(json.dumps(fitted))
    backend = large.backend()
    assert (backend.name, backend.unready(), large.gpu_backend().name) == ("local-large", None, "local-large-gpu")
    (verdict,) = backend.judge("faithfulness", [QUESTION])
    (smaller,) = LocalBackend().judge("faithfulness", [QUESTION])
    assert verdict.detail["model"] == "agentunit-local-large"
    assert set(verdict.detail) == set(smaller.detail)
    assert verdict.value > smaller.value


def test_without_its_weights_it_says_which_file_is_missing(large, tmp_path):
    assert "must hold model.onnx" in large.backend().unready()
    fill(tmp_path, "model.onnx", "tokenizer.json")
    assert "must come with calibration.json" in large.backend().unready()


def test_a_model_of_the_users_own_is_for_the_smaller_one(large, tmp_path, monkeypatch):
    fill(tmp_path, "model.onnx", "tokenizer.json", "calibration.json")
    assert large.backend().automatic
    monkeypatch.setenv(MODEL_VARIABLE, "/nowhere")
    assert large.backend().unready() is None
    assert not large.backend().automatic
    assert LocalBackend().unready().startswith(MODEL_VARIABLE)
