"""The backend ``local-gpu`` on torch's processor device: the path that a GPU takes, with other kernels under it."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

pytest.importorskip("torch")

import numpy as np
import torch
from agentunit_local import torch_text
from agentunit_local.grounding.cross_encoder import opened
from agentunit_local.onnx_text import OnnxTextModel
from agentunit_local.onnx_weights import read_weights
from agentunit_local.quality import GpuBackend, LocalBackend
from agentunit_local.sentences import WEIGHTS, shipped_encoder
from agentunit_local.text_model import ModelFilesError
from agentunit_local.torch_encoder import distance_buckets
from agentunit_local.torch_text import TorchTextModel

from agentunit import score
from agentunit.backends.quality import BackendUnavailable, QualityQuestion
from agentunit.metrics.builtin import FaithfulnessMetric

pytestmark = pytest.mark.optional
ROOT = Path(__file__).resolve().parents[3]
SMALL = WEIGHTS / "groundedness"
TEXT = "The museum opens at nine every day but Monday. Tickets are 12 euros, and children pay nothing. "
PAIRS = [(TEXT * (1 + n % 4), f"A ticket is {n} euros.") for n in range(9)]
QUESTIONS = [
    QualityQuestion("When does it open?", [TEXT, "It rains."], answer, ("at nine",))
    for answer in ("It opens at ten. Tickets are 12 euros.", "At nine.", "", "Children pay 3 euros, on Mondays too.")
]


@pytest.fixture(autouse=True)
def _on_the_processor(monkeypatch):
    monkeypatch.setenv("AGENTUNIT_LOCAL_DEVICE", "cpu")
    monkeypatch.syspath_prepend(str(ROOT))


def torch_model(**given) -> TorchTextModel:
    return TorchTextModel(SMALL / "model.onnx", SMALL / "tokenizer.json", device="cpu", max_tokens=384, **given)


def logits(outputs):
    return np.array([each["claim"].ravel()[0] for each in outputs])


@pytest.mark.parametrize("path", [SMALL / "model.onnx", WEIGHTS / "sentence_encoder.onnx"])
def test_weights_are_read_as_onnx_reads_them(path):
    onnx = pytest.importorskip("onnx")
    from onnx import numpy_helper

    ours = read_weights(path)
    theirs = {each.name: numpy_helper.to_array(each) for each in onnx.load(path).graph.initializer}
    same = [name for name in theirs if name in ours]
    assert len(same) > 60
    assert all(np.array_equal(ours[name], theirs[name]) for name in same)
    matrix = "layers.3.up.weight"
    if matrix in ours:
        whole = theirs[f"{matrix}_quantized"].astype(np.float32) * theirs[f"{matrix}_scale"]
        assert np.array_equal(ours[matrix], whole)


def test_scores_are_near_those_of_the_8_bit_model_and_of_half_precision():
    exact = torch_model()
    found = exact.run(PAIRS)
    shipped = OnnxTextModel(SMALL / "model.onnx", SMALL / "tokenizer.json", max_tokens=384, batch_tokens=1).run(PAIRS)
    assert np.abs(logits(found) - logits(shipped)).max() < 0.2
    assert [each["tokens"].shape for each in found] == [each["tokens"].shape for each in shipped]
    half = torch_model()
    half._computed = half._opened(torch.float16)
    # 0.005 of a score is about 0.07 of a logit.
    assert np.abs(logits(half.run(PAIRS[:4])) - logits(found)[:4]).max() < 0.02


def test_sentence_vectors_are_those_of_the_file():
    texts = [TEXT, "A dog runs.", "", TEXT * 40]
    assert np.abs(shipped_encoder("cpu").encode(texts) - shipped_encoder().encode(texts)).max() < 1e-5


@pytest.mark.parametrize("batch_tokens", [1, 300, 100_000])
def test_batches_change_nothing_and_keep_the_order(batch_tokens):
    alone = [torch_model().run([pair])[0] for pair in PAIRS]
    together = torch_model(batch_tokens=batch_tokens).run(PAIRS)
    assert logits(together) == pytest.approx(logits(alone), abs=1e-4)
    for one, other in zip(together, alone, strict=True):
        assert one["tokens"] == pytest.approx(other["tokens"], abs=1e-3)


def test_a_batch_that_the_memory_does_not_hold_is_halved(monkeypatch):
    model = torch_model()
    expected = logits(model.run(PAIRS))
    rows = TorchTextModel._rows

    def short(self, computed, sequences):
        if len(sequences) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return rows(self, computed, sequences)

    monkeypatch.setattr(TorchTextModel, "_rows", short)
    assert logits(model.run(PAIRS)) == pytest.approx(expected, abs=1e-4)


def test_what_half_precision_cannot_hold_is_computed_again():
    model = torch_model()
    expected = logits(model.run(PAIRS[:2]))
    model._computed._encoder.words[:] = float("inf")
    assert logits(model.run(PAIRS[:2])) == pytest.approx(expected, abs=1e-4)


# The exporter that keeps the graph small is the older one, and warns of that.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("relative", [0, 32])
def test_both_forms_of_encoder_give_what_their_training_model_gives(relative, tmp_path):
    from training.groundedness.model import CrossEncoder, Shape

    shape = Shape(vocabulary=30522, positions=66, width=48, layers=2, heads=4 if relative else 12, inner=96,
                  relative=relative)  # fmt: skip
    torch.manual_seed(3)
    model = CrossEncoder(shape).eval()
    _write_weights(model, tmp_path / "model.onnx")
    (tmp_path / "tokenizer.json").write_bytes((SMALL / "tokenizer.json").read_bytes())
    ours = TorchTextModel(tmp_path / "model.onnx", tmp_path / "tokenizer.json", device="cpu", max_tokens=64)
    pairs = [("The museum opens at nine.", "It opens at ten."), ("Tickets are 12 euros. " * 5, "They are free.")]
    for pair, found in zip(pairs, ours.run(pairs), strict=True):
        tokens = ours.tokens(pair)
        ids, kinds = torch.tensor([tokens.ids]), torch.tensor([tokens.segments])
        with torch.no_grad():
            claim, each = model(ids, kinds, torch.ones_like(ids))
        assert found["claim"] == pytest.approx(claim.numpy(), abs=1e-4)
        assert found["tokens"] == pytest.approx(each[0].numpy(), abs=1e-4)


def _write_weights(model, path):
    """The weights by the names of the exporter, which evens out the large matrices."""
    onnx = pytest.importorskip("onnx")
    from onnx import helper, numpy_helper

    arrays = {}
    for name, tensor in model.state_dict().items():
        array = tensor.numpy()
        if name.startswith("layers.") and name.endswith(".weight") and array.ndim == 2:
            factors = np.linspace(0.5, 2.0, array.shape[1], dtype=np.float32)
            arrays[name] = np.ascontiguousarray((array * factors).T)
            arrays[name.replace(".weight", ".inverse")] = 1 / factors
        else:
            arrays[name] = array
    tensors = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    onnx.save(helper.make_model(helper.make_graph([], "weights", [], [], tensors)), path)


def test_distances_fall_into_the_buckets_of_training():
    from training.groundedness import model

    assert np.array_equal(distance_buckets(384, 32), model.distance_buckets(384, 32).numpy())


def test_a_model_of_another_kind_is_refused_with_the_way_out(tmp_path):
    onnx = pytest.importorskip("onnx")
    from onnx import helper, numpy_helper

    tensors = [numpy_helper.from_array(np.ones((4, 4), np.float32), "bert.embeddings")]
    onnx.save(helper.make_model(helper.make_graph([], "other", [], [], tensors)), tmp_path / "model.onnx")
    (tmp_path / "tokenizer.json").write_bytes((SMALL / "tokenizer.json").read_bytes())
    with pytest.raises(ModelFilesError, match="the backend 'local' runs any cross-encoder"):
        opened(str(tmp_path), "cpu")


@pytest.mark.parametrize("measure", sorted(GpuBackend.measures))
def test_a_holder_of_models_gives_what_a_model_here_gives(measure):
    backend = GpuBackend()
    here = backend.judge(measure, QUESTIONS)
    near = LocalBackend().judge(measure, QUESTIONS)
    assert [each.value for each in here] == pytest.approx([each.value for each in near], abs=0.02)
    hold = backend.hold_models()
    asked = []

    def transport(request):
        asked.append(request)
        answer = pickle.loads(pickle.dumps(hold(pickle.loads(pickle.dumps(request)))))
        return lambda: answer

    backend.ask_elsewhere(transport)
    try:
        assert backend.judge(measure, QUESTIONS) == here
        assert len(asked) >= 2
    finally:
        backend.ask_elsewhere(None)


def test_scoring_by_name_uses_the_batches(monkeypatch):
    records = [{"case": {"id": str(n), "context": [TEXT]}, "outcome": claim} for n, (_, claim) in enumerate(PAIRS)]
    sizes = []
    rows = TorchTextModel._rows
    monkeypatch.setattr(TorchTextModel, "_rows", lambda *given: sizes.append(len(given[2])) or rows(*given))
    (row,) = score(records, [FaithfulnessMetric(backend="local-gpu")]).summary().metrics
    assert (row.n_scored, row.backend) == (len(PAIRS), "local-gpu")
    assert max(sizes) == len(PAIRS)


@pytest.mark.parametrize(
    ("device", "said"),
    [("cuda:99", "GPU"), ("gpu", "must be a device of torch .*; received 'gpu'"), ("mps", "no GPU of Apple")],
)
def test_a_device_that_is_not_there_is_named(monkeypatch, device, said):
    if device == "mps" and torch.backends.mps.is_available():
        pytest.skip("there is one")
    monkeypatch.setenv("AGENTUNIT_LOCAL_DEVICE", device)
    with pytest.raises(BackendUnavailable, match=f"'local-gpu' cannot run: .*{said}"):
        FaithfulnessMetric(backend="local-gpu")
    assert torch_text.why_no_device("cpu") is None
