"""The training of the groundedness model in miniature: built, packed, trained, exported and opened, on the CPU."""

from __future__ import annotations

import gzip
import json
import lzma
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.optional
torch = pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parents[3]
TOKENIZER = ROOT / "packages/agentunit-local/src/agentunit_local/weights/groundedness/tokenizer.json"
TEXT = (
    "Maren Holt opened the bakery on Monday. The bakery sold 120 loaves before noon. Tomas Reyes bought the bakery in "
    "May. Tomas Reyes hired two new bakers after the sale. The old ovens were sent to a museum in March. The shop is "
    "closed today."
)
WIDTH, HEADS, LAYERS = 48, 4, 3


@pytest.fixture(autouse=True)
def _at_root(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))


def written(folder, name, rows):
    path = folder / f"{name}.jsonl.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode(), mtime=0))


@pytest.fixture
def data(tmp_path):
    from training.groundedness.examples import PAIR_SOURCES

    folder = tmp_path / "data"
    answered = "Question: How many loaves? Answer: {} loaves."
    for source in PAIR_SOURCES:
        rows = [{"premise": TEXT, "hypothesis": answered.format(n), "label": label, "source": source}
                for n, label in ((120, "entailment"), (90, "neutral"))]  # fmt: skip
        written(folder, f"train/{source}", rows)
    written(folder, "train/texts", [{"source": "own|MIT", "text": TEXT}] * 4)
    answers = [
        {"id": f"{dataset}:{n}", "dataset": dataset, "question": None, "context": [TEXT], "group": n,
         "response": f"Maren Holt opened the bakery on Monday. It sold {120 if n % 2 else 90} loaves.",
         "hallucinated": not n % 2, "faithful": float(n % 2)}
        for dataset in ("frank_own", "wice", "cliff_own") for n in range(8)
    ]  # fmt: skip
    written(folder, "dev/faithfulness", answers)
    expected = {"question": "Who?", "expected": ["Maren"], "answer": "Maren Holt", "correct": True, "id": "a1"}
    written(folder, "dev/answer_correctness", [expected, {**expected, "id": "a2", "answer": "Bob", "correct": False}])
    written(
        folder, "dev/retrieval", [{"id": "r1", "dataset": "own", "question": "Who?", "passage": TEXT, "relevant": 1}]
    )
    triad = {"id": "t1", "dataset": "own", "question": "Who?", "context": [TEXT], "context_relevant": 1}
    written(folder, "dev/rag_triad", [triad])
    return folder


@pytest.fixture
def built(data, tmp_path):
    from training.groundedness import build

    lexicon = tmp_path / "lexicon.json.gz"
    lexicon.write_bytes(gzip.compress(json.dumps({part: {} for part in "nvar"}).encode()))
    build.main(data, lexicon, TOKENIZER, tmp_path / "built.npz")
    return tmp_path / "built.npz"


@pytest.fixture
def start(tmp_path):
    """A random MPNet of three narrow layers, in parts as the real one is."""
    from training.groundedness.start import write_parts

    rng = np.random.default_rng(1)

    def made(*shape, around=0.0):
        return (around + rng.normal(size=shape) * 0.05).astype(np.float32)

    weights = {
        "embeddings.word_embeddings.weight": made(30522, WIDTH),
        "embeddings.position_embeddings.weight": made(514, WIDTH),
        "encoder.relative_attention_bias.weight": made(32, HEADS),
        # No two norms are equal: the exporter writes equal ones once.
        "embeddings.LayerNorm.weight": made(WIDTH, around=1.0),
        "embeddings.LayerNorm.bias": made(WIDTH),
    }
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}."
        shapes = {f"attention.attn.{name}": (WIDTH, WIDTH) for name in "qkvo"}
        shapes |= {"intermediate.dense": (96, WIDTH), "output.dense": (WIDTH, 96)}
        for name, shape in shapes.items():
            weights |= {f"{at}{name}.weight": made(*shape), f"{at}{name}.bias": np.zeros(shape[0], np.float32)}
        for name in ("attention.LayerNorm", "output.LayerNorm"):
            weights |= {f"{at}{name}.weight": made(WIDTH, around=1.0), f"{at}{name}.bias": made(WIDTH)}
    parts = write_parts(weights, tmp_path / "start", part_bytes=1_600_000)
    assert len(parts) > 1
    return tmp_path / "start"


@pytest.fixture
def given(built, start, tmp_path):
    """What a lease begins with: packed, carried in pieces, and put together again."""
    from training.groundedness import travel

    there = tmp_path / "there"
    shutil.copytree(start, there / "start-large")
    shutil.copytree(start, there / "start-small")
    there.joinpath("built.npz.xz").write_bytes(lzma.compress(built.read_bytes(), preset=0))
    calls = travel.pack(there, tmp_path / "travel")
    for call in range(calls, 0, -1):  # in any order
        _, lacking = travel.join((tmp_path / f"travel/{call}").iterdir(), tmp_path / "in")
    assert not lacking
    assert (tmp_path / "in/built.npz").read_bytes() == built.read_bytes()
    return tmp_path / "in"


TINY = {"layers": 2, "small_layers": 1, "tokens": 8000, "epochs": 0.5, "small_epochs": 0.5, "made_share": 1.0}


# The exporter that keeps the graph small enough to quantize is the older one, and warns of that.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::torch.jit.TracerWarning")
def test_a_lease_from_texts_to_a_score_of_the_shipped_backend(data, built, given, tmp_path, monkeypatch):
    """Build, carry there, train, carry home, export, calibrate, and score with the backend that ships."""
    from agentunit_local.grounding.cross_encoder import opened
    from training.groundedness import calibrate, export, lease, travel

    with np.load(built) as arrays:
        kinds = set(arrays["kind"].tolist())
        makers = set(arrays["maker"].tolist())
    assert "cg2c_doc" in kinds
    assert any(kind.startswith("relevance:") for kind in kinds)
    assert makers >= {"mirrored", "reworded", "sentence removed", "answer", "relevance"}
    options = [f"{name}={value}" for name, value in TINY.items()]
    out, home = tmp_path / "out", tmp_path / "home"
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setattr(travel, "PIECE_BYTES", 300_000)
    said, calls = "", 0
    while "everything is home" not in said:
        folder = tmp_path / f"call-{calls}"
        said = lease.go(given, out, folder, 600.0, [*options, "leave_out=frank_,wice"])
        assert "failed" not in said, said
        assert len(list(folder.iterdir())) <= 8
        travel.join(folder.iterdir(), home)
        calls += 1
        assert calls < 100
    assert calls > 1
    one, other, mean = (
        torch.load(out / name / "model.pt", weights_only=True)["token_head.weight"].float()
        for name in ("large-1", "large-2", "large")
    )
    assert torch.allclose((one + other) / 2, mean, atol=1e-3)
    assert not torch.equal(one, other)
    assert (home / "large/model.pt").read_bytes() == (out / "large/model.pt").read_bytes()
    assert not (home / "large-1/model.pt").exists()
    model = tmp_path / "model"
    model.mkdir()
    export.main(home / "small/model.pt", built, model / "model.onnx")
    (model / "tokenizer.json").write_bytes(TOKENIZER.read_bytes())
    calibration = model / "calibration.json"
    calibration.write_bytes((TOKENIZER.parent / "calibration.json").read_bytes())
    before = json.loads(calibration.read_text())["faithfulness"]
    left_out = {name: home / f"small-without-{name}/scores.jsonl.gz" for name in ("frank_", "wice")}
    calibrate.main(data, home / "small/scores.jsonl.gz", calibration, tmp_path / "sets.json", left_out)
    assert json.loads(calibration.read_text())["faithfulness"] != before
    assert "frank_own" in json.loads((tmp_path / "sets.json").read_text())["datasets"]
    scores = opened(str(model)).score([(TEXT, "The bakery sold 120 loaves."), (TEXT, "It rains.")])
    assert all(np.isfinite(each.logit) and each.worst_logit is not None for each in scores)


def test_a_lost_machine_costs_only_what_was_not_home(given, tmp_path):
    from training.groundedness import lease

    plan = lease.Plan(**TINY, leave_out="wice")
    first = lease.run(given, tmp_path / "out", plan)
    assert first == ["large-1", "large-2", "large", "small", "large-without-wice", "small-without-wice"]
    # Only what was said came home, not the weights of the seeds; the last step is lacking.
    for name in ("large-1", "large-2", "large", "small", "large-without-wice"):
        folder = given / "done" / name
        folder.mkdir(parents=True)
        for each in ("scores.jsonl.gz", "logits.npy"):
            if (tmp_path / "out" / name / each).exists():
                (folder / each).write_bytes((tmp_path / "out" / name / each).read_bytes())
    assert lease.run(given, tmp_path / "again", plan) == first
    assert not (tmp_path / "again/large-1/model.pt").exists()
    assert not (tmp_path / "again/large-without-wice/model.pt").exists()
    assert (tmp_path / "again/small-without-wice/model.pt").exists()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::torch.jit.TracerWarning")
def test_the_large_form_says_the_same_when_it_is_written(tmp_path):
    """Packed words, a bias by distance, padding: what ONNX Runtime and torch read in the file, against the model."""
    import onnxruntime
    from agentunit_local.onnx_weights import read_weights
    from agentunit_local.torch_encoder import cross_encoder
    from training.groundedness import export
    from training.groundedness.model import CrossEncoder, Shape

    torch.manual_seed(3)
    shape = Shape(vocabulary=60, positions=514, width=768, layers=2, heads=12, inner=96, relative=32)
    model = CrossEncoder(shape).eval()
    for each in model.parameters():
        if each.ndim == 1:
            torch.nn.init.uniform_(each, 0.9, 1.1)
    lengths = (40, 23)
    rows = [torch.randint(5, 60, (1, length)) for length in lengths]
    sample = [(ids, (torch.arange(ids.shape[1])[None] >= 15).long(), torch.ones_like(ids)) for ids in rows]
    with torch.no_grad():
        said = [float(model(*each)[0]) for each in sample]
        export.write(model, sample, tmp_path / "model.onnx")
    names = ("input_ids", "token_type_ids", "attention_mask")
    fed = {name: np.zeros((2, max(lengths)), np.int64) for name in names}
    for row, each in enumerate(sample):
        for name, tensor in zip(names, each, strict=True):
            fed[name][row, : lengths[row]] = tensor[0].numpy()
    found = onnxruntime.InferenceSession(tmp_path / "model.onnx").run(["claim"], fed)[0]
    assert np.abs(found - said).max() < 0.1 * np.std(said) + 0.05
    weights = read_weights(tmp_path / "model.onnx")
    assert weights["words.packed"].shape == (60, 384)
    encoder, heads = cross_encoder(weights, "cpu", torch.float32, tmp_path)
    ids, kinds, there = (torch.from_numpy(fed[name]) for name in names)
    again = heads(encoder.hidden(ids.int(), kinds.int(), there.bool(), True), kinds, there.bool())[:, 0]
    assert np.abs(again.detach().numpy() - said).max() < 0.1 * np.std(said) + 0.05


def test_sets_are_left_out_one_after_the_other_and_no_step_outlasts_the_lease(given, tmp_path):
    from training.groundedness import lease

    tiny = {**TINY, "layers": 1, "epochs": 0.2, "small_epochs": 0.2}
    plan = lease.Plan(**tiny, seeds=1, leave_out="frank_+begin_,wice")
    done = lease.run(given, tmp_path / "out", plan)
    assert done[3:] == [
        "large-without-frank_+begin_", "small-without-frank_+begin_", "large-without-wice", "small-without-wice"
    ]  # fmt: skip
    assert '"wice"' in (tmp_path / "out/large-without-wice/report.json").read_text()
    assert lease.run(given, tmp_path / "short", replace(plan, seconds=0.0)) == []


def test_the_plan_says_what_does_not_fit():
    from training.groundedness import lease

    plan = lease.Plan(seconds=600.0)
    lines = lease.table(plan, {"epoch": 2000, "all": 1800, "measured": 150}).splitlines()
    assert lines[1].startswith("large-1")
    assert "not begun" not in lines[4]
    assert lines[4].startswith("small ")
    assert "not begun" in lines[-1]


def test_what_is_left_out_is_in_no_batch_nor_is_what_was_made_of_it(built):
    from training.groundedness.train import Data, Recipe

    data = Data(built, Recipe(leave_out="frank_,begin_"), "cpu")
    data.arrays["kind"] = np.char.replace(data.arrays["kind"].astype("U40"), ":own", ":frank_own")
    trained = set(data.arrays["kind"][data.training_groups(np.random.default_rng(1))].tolist())
    assert {"frank_own", "made:frank_own"} <= set(data.arrays["kind"].tolist())
    assert not {kind for kind in trained if "frank_" in kind}
    assert "wice" in trained


def test_answers_to_one_document_stand_in_one_batch_and_are_ranked(built):
    from training.groundedness.train import Data, Recipe, document_loss

    data = Data(built, Recipe(tokens=4000), "cpu")
    rng = np.random.default_rng(1)
    batches = data.batches(data.training_groups(rng), rng)
    assert sorted(np.concatenate(batches)) == sorted(data.training_groups(np.random.default_rng(1)))
    label, document = torch.tensor([1.0, 0.0, 1.0, 0.0]), torch.tensor([7, 7, 8, -1])
    assert document_loss(torch.tensor([3.0, -3.0, -9.0, 9.0]), label, document) < 0.01
    assert document_loss(torch.tensor([-3.0, 3.0, 9.0, 9.0]), label, document) > 5


def test_a_share_of_made_claims_keeps_or_drops_a_text_and_its_double_together(built):
    from training.groundedness.train import Data, Recipe

    data = Data(built, Recipe(made_share=0.5), "cpu")
    data.arrays = {**data.arrays, "document": np.arange(len(data.arrays["document"]))}
    used = data._share_of_documents(np.random.default_rng(3))
    pairs = used[: len(used) // 2 * 2].reshape(-1, 2)
    assert (pairs[:, 0] == pairs[:, 1]).all()
    assert 0.2 < used.mean() < 0.8


def test_distances_fall_into_buckets_as_in_mpnet():
    """Checked by hand: half of the buckets for each direction, eight exact ones, then logarithmic up to 128."""
    from training.groundedness.model import distance_buckets

    buckets = distance_buckets(200, 32)
    assert buckets[5, 5] == 0
    assert buckets[5, 2] == 3
    assert buckets[2, 5] == 16 + 3
    assert buckets[199, 0] == 15
    assert buckets[0, 199] == 31


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::torch.jit.TracerWarning")
def test_what_was_written_is_trained_further(data, built, start, tmp_path):
    """Weights written as 8 bits are read back and trained on shortened data; lower layers stay as they are."""
    from training.groundedness import build, export, further, train

    plain = train.Recipe(layers=2, epochs=0.2, tokens=8000, measured=False)
    train.main(built, start, tmp_path / "first", plain)
    export.main(tmp_path / "first/model.pt", built, tmp_path / "model.onnx")
    before = torch.load(tmp_path / "first/model.pt", weights_only=True)
    read = train.shipped_state(tmp_path / "model.onnx")
    assert read.keys() == before.keys()
    off = {name: float((read[name][: len(tensor)] - tensor[: len(read[name])].float()).abs().mean())
           for name, tensor in before.items()}  # fmt: skip
    assert max(off.values()) < 0.01
    groups = build.groups_of(data, tmp_path / "lexicon.json.gz")
    further.write(groups, {"small": TOKENIZER}, tmp_path)
    recipe = replace(plain, top_layers=1, mixed=True, dropout=0.0, answer_repeats=1)
    train.main(tmp_path / "further-small.npz", tmp_path / "model.onnx", tmp_path / "second", recipe)
    after = torch.load(tmp_path / "second/model.pt", weights_only=True)
    assert torch.equal(after["layers.0.up.weight"], read["layers.0.up.weight"].half())
    assert not torch.equal(after["layers.1.up.weight"], read["layers.1.up.weight"].half())
