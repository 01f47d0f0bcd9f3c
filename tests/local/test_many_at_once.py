"""What models that read whole batches need, without torch: steps, weights of files, and cases from the engine."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("agentunit_local", reason="agentunit-local is not installed")

import numpy as np
from agentunit_local import quality
from agentunit_local.onnx_weights import read_weights
from agentunit_local.quality import GpuBackend, LocalBackend
from agentunit_local.sentences import WEIGHTS
from agentunit_local.steps import GROUP, answered, answered_together
from agentunit_local.text_model import ModelFilesError

from agentunit import score
from agentunit.backends import quality as backends
from agentunit.backends.quality import QualityQuestion
from agentunit.metrics.builtin import FaithfulnessMetric

SHIPPED = WEIGHTS / "groundedness" / "model.onnx"
PASSAGES = ["The museum opens at nine every day but Monday.", "Tickets are 12 euros. Children pay nothing."]
ANSWERS = ["It opens at ten.", "Tickets are 12 euros.", "", "Children pay 3 euros. It opens at nine."]
QUESTIONS = [QualityQuestion("When?", PASSAGES, answer, ("at nine",)) for answer in ANSWERS]


def work(number, n_rounds):
    """Asks ``n_rounds`` times, each time as many things as its number says, and gives what came back."""
    heard = []
    for round_ in range(n_rounds):
        heard += yield [(number, round_)] * number
    if number == 3:
        raise ValueError("three")
    return heard


def test_work_that_is_done_together_comes_out_as_if_done_alone():
    asked = []

    def start(things):
        asked.append(len(things))
        return lambda: [f"{thing}" for thing in things]

    pieces = [number % 6 for number in range(2 * GROUP + 5)]
    found = answered_together((work(number, number % 4) for number in pieces), start, str)
    for number, made in zip(pieces, found, strict=True):
        alone = "three" if number == 3 else answered(work(number, number % 4), lambda things: start(things)())
        assert made == alone
    # At the start, at most: each group asks once a round.
    assert max(asked) <= GROUP * 5
    assert answered_together([], start, str) == []


def test_a_group_is_prepared_while_the_model_reads_the_one_before():
    events = []

    def noted(number):
        if number % GROUP == 0:
            events.append(f"prepared {number // GROUP}")
        yield [number]
        return number

    def start(things):
        group = things[0] // GROUP
        events.append(f"started {group}")
        return lambda: events.append(f"read {group}") or things

    assert answered_together(map(noted, range(2 * GROUP)), start, str) == list(range(2 * GROUP))
    assert events == ["prepared 0", "started 0", "prepared 1", "started 1", "read 0", "read 1"]


@pytest.mark.parametrize("measure", sorted(LocalBackend.measures))
def test_batches_over_questions_give_what_each_question_gives_alone(measure, monkeypatch):
    """By the 8-bit model, which reads one text at a time: only the way is another."""
    monkeypatch.setattr(GpuBackend, "_device", lambda self: None)
    together, alone = (backend.judge(measure, QUESTIONS) for backend in (GpuBackend(), LocalBackend()))
    assert [each.value is None for each in together] == [each.value is None for each in alone]
    values = [[each.value or 0 for each in verdicts] for verdicts in (together, alone)]
    assert values[0] == pytest.approx(values[1], abs=3e-6)
    assert [each.detail.keys() for each in together] == [each.detail.keys() for each in alone]


def test_a_question_that_fails_fails_alone(monkeypatch):
    monkeypatch.setattr(GpuBackend, "_device", lambda self: None)
    monkeypatch.setattr(quality, "match_features", lambda *given: 1 / 0)
    failed, equal = GpuBackend().judge("answer_correctness", [QUESTIONS[0], QualityQuestion("Q", [], "A", ("A",))])
    assert failed.detail["error"]["type"] == "ZeroDivisionError"
    assert equal.value == 1.0


def test_weights_are_those_that_the_file_holds():
    weights = read_weights(SHIPPED)
    assert weights["layers.7.down.weight"].shape == (1536, 384)
    assert weights["words.weight"].dtype == np.float32
    assert 0.01 < np.abs(weights["words.weight"]).mean() < 0.1
    assert not [name for name in weights if name.endswith(("_quantized", "_zero_point"))]


@pytest.mark.parametrize("content", [b"", b"no model", b"\x3a\xff\xff\xff\xff\x0f", bytes(range(256))])
def test_other_files_are_refused_by_name(tmp_path: Path, content: bytes):
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(ModelFilesError, match=r"model\.onnx: no ONNX model whose weights can be read"):
        read_weights(path)
    with pytest.raises(ModelFilesError, match=r"gone\.onnx: cannot be read"):
        read_weights(tmp_path / "gone.onnx")


def test_a_cut_off_file_is_refused(tmp_path: Path):
    path = tmp_path / "model.onnx"
    path.write_bytes(SHIPPED.read_bytes()[:100_000])
    with pytest.raises(ModelFilesError, match="the file ends within a field"):
        read_weights(path)


def test_without_torch_the_backend_says_what_to_install(monkeypatch):
    monkeypatch.setattr("agentunit_local.torch_text.find_spec", lambda name: None)
    with pytest.raises(
        backends.BackendUnavailable, match="'local-gpu' cannot run: torch is not installed; pip install"
    ):
        FaithfulnessMetric(backend="local-gpu")
    # The GPUs of a cluster need no torch here.
    monkeypatch.setenv("AGENTUNIT_LOCAL_DEVICE", "cluster")
    assert FaithfulnessMetric(backend="local-gpu").current_backend == "local-gpu"


def test_the_engine_hands_over_as_many_cases_as_the_backend_wants(monkeypatch):
    monkeypatch.setenv("AGENTUNIT_LOCAL_DEVICE", "cluster")
    sizes = []

    def judge(self, measure, questions):
        sizes.append(len(questions))
        return [backends.Verdict(0.5) for _ in questions]

    monkeypatch.setattr(GpuBackend, "judge", judge)
    records = [{"case": {"id": str(n), "context": PASSAGES}, "outcome": "Yes."} for n in range(600)]
    run = score(records, [FaithfulnessMetric(backend="local-gpu")])
    assert run.summary().metrics[0].mean == 0.5
    assert sizes == [512, 88]
