"""Trains the cross-encoder on built data: ``python -m training.groundedness.train BUILT WEIGHTS OUT [name=value …]``."""

from __future__ import annotations

import functools
import json
import math
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from training.groundedness.agreement import auroc, rank_correlation
from training.groundedness.groups import MADE
from training.groundedness.model import CrossEncoder, load_bert, load_deeper, load_mpnet, n_layers, shape_of

# How many answers to one document stand in a batch together, and how many batches are put together ahead.
_TOGETHER, _AHEAD = 8, 6


@dataclass
class Recipe:
    """What a training run may vary. ``fold`` is left out of training (-1: nothing is), and so are sets whose names begin
    with ``leave_out`` (several with commas). ``document_loss`` is what it counts when an unsupported claim or answer beats a
    supported one about the same document.

    ``teacher`` is a file with the logits that a larger model gave all pairs (``predict`` writes one); the student learns
    those beside the labels. Logits of several teachers are averaged and stretched by ``stretch``: the mean of several is
    fainter than each of them.

    Of weights that are trained further, only the last ``top_layers`` may learn (0: all do). ``mixed`` multiplies in 16 bits on a
    processor too and fuses the optimizer, which pays where it has instructions for that; without ``measured`` the model is
    written and not measured. A start that was written as ONNX keeps all its layers. ``save_every`` so many steps the weights are
    written, so that hours of a processor are not lost and can be looked at before they end.
    """

    name: str = "plain"
    fold: int = -1
    epochs: float = 2.0
    rate: float = 1.5e-4
    tokens: int = 48000
    token_loss: float = 0.3
    pair_share: float = 1.0
    made_share: float = 1.0
    answer_repeats: int = 3
    correctness: bool = True
    softness: float = 1.0
    seed: int = 1
    layers: int = 6
    teacher: str = ""
    teacher_share: float = 0.5
    predict: bool = False
    leave_out: str = ""
    document_loss: float = 0.5
    stretch: float = 1.0
    compile: bool = False
    top_layers: int = 0
    dropout: float = 0.1
    mixed: bool = False
    measured: bool = True
    save_every: int = 0


@functools.lru_cache(maxsize=1)
def _loaded(path: Path, device: str) -> tuple[dict[str, np.ndarray], dict[str, Tensor]]:
    """The built arrays, and those of tokens kept where the model is: padding a batch there costs the processor nothing."""
    with np.load(path) as built:
        arrays = {name: built[name] for name in built.files}
    kinds = {"ids": np.int32, "types": np.int8, "wrong": np.int8}
    return arrays, {name: torch.from_numpy(arrays[name].astype(kind)).to(device) for name, kind in kinds.items()}


class Data:
    """The built arrays, and batches of whole groups of similar length."""

    def __init__(self, path: Path, recipe: Recipe, device: str) -> None:
        self.arrays, self.tokens = _loaded(path, device)
        self.starts = np.concatenate([[0], np.cumsum(self.arrays["lengths"])])
        group_of_pair = self.arrays["group_of_pair"]
        n_groups = len(self.arrays["label"])
        self.first_pair = np.searchsorted(group_of_pair, np.arange(n_groups + 1))
        self.longest = np.maximum.reduceat(self.arrays["lengths"], self.first_pair[:-1])
        self.recipe, self.device = recipe, device
        teachers = [np.load(name) for name in recipe.teacher.split(",") if name]
        self.teacher = (
            (recipe.stretch * np.mean([each.astype(np.float32) for each in teachers], axis=0)).astype(np.float32)
            if teachers
            else None
        )

    def training_groups(self, rng: np.random.Generator) -> np.ndarray:
        """The groups of one epoch."""
        kind, fold = self.arrays["kind"], self.arrays["fold"]
        groups = np.arange(len(kind))
        left_out = self.left_out()
        made = np.char.startswith(kind, MADE) & ~left_out
        correctness = kind == "correctness"
        answers = (fold >= 0) & ~correctness
        pairs = (fold == -1) & ~made & ~left_out
        chosen = [
            rng.permutation(groups[pairs])[: int(self.recipe.pair_share * pairs.sum())],
            groups[made & self._share_of_documents(rng)],
        ]
        trained = answers & (fold != self.recipe.fold)
        trained &= ~left_out
        chosen += [groups[trained]] * self.recipe.answer_repeats
        if self.recipe.correctness:
            chosen.append(groups[correctness & (fold != self.recipe.fold)])
        return np.concatenate(chosen)

    def _share_of_documents(self, rng: np.random.Generator) -> np.ndarray:
        """Which groups an epoch uses of those made: all about one document, or none, so that they can be ranked."""
        document = self.arrays["document"]
        draws = rng.random(1 << 16)
        alone = rng.random(len(document))
        # A text as it is and the same with a sentence changed have numbers one apart.
        return np.where(document >= 0, draws[(document >> 1) & 0xFFFF], alone) < self.recipe.made_share

    def left_out(self) -> np.ndarray:
        """Which groups are of sets that are left out, or made from their texts."""
        names = [name for name in self.recipe.leave_out.split(",") if name]
        found = np.zeros(len(self.arrays["kind"]), bool)
        for name in names:
            for beginning in (name, MADE + name):
                found |= np.char.startswith(self.arrays["kind"], beginning)
        return found

    def measured_groups(self) -> np.ndarray:
        """Everything with a key: labelled answers, correctness and relevance rows."""
        return np.flatnonzero(self.arrays["fold"] != -1)

    def batches(self, groups: np.ndarray, rng: np.random.Generator | None) -> list[np.ndarray]:
        """Groups of similar length together, about ``tokens`` padded tokens a batch.

        In training, answers to the same document stay together, so that they can be ranked.
        """
        units = self._units(groups, rng) if rng is not None else groups[:, None]
        joined = np.concatenate(units)
        starts = np.concatenate([[0], np.cumsum([len(unit) for unit in units])[:-1]])
        longest = np.maximum.reduceat(self.longest[joined], starts)
        sizes = np.add.reduceat(self.first_pair[joined + 1] - self.first_pair[joined], starts).tolist()
        noise = rng.uniform(0.9, 1.1, len(units)) if rng is not None else 1.0
        found: list[np.ndarray] = []
        batch: list[np.ndarray] = []
        widest, n_pairs = 0, 0
        for number in np.argsort(longest * noise, kind="stable"):
            size = sizes[number]
            if batch and max(widest, longest[number]) * (n_pairs + size) > self.recipe.tokens:
                found.append(np.concatenate(batch))
                batch, widest, n_pairs = [], 0, 0
            batch.append(units[number])
            widest, n_pairs = max(widest, int(longest[number])), n_pairs + size
        found.append(np.concatenate(batch))
        if rng is not None:
            rng.shuffle(found)
        return found

    def _units(self, groups: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
        """Groups that must stay in one batch: a few answers to the same document, else each by itself."""
        document = self.arrays["document"][groups]
        units = list(groups[document < 0][:, None])
        answers = groups[document >= 0]
        order = rng.permutation(len(answers))
        order = order[np.argsort(self.arrays["document"][answers[order]], kind="stable")]
        answers = answers[order]
        of = self.arrays["document"][answers]
        for start in np.concatenate([[0], np.flatnonzero(np.diff(of)) + 1]) if len(answers) else []:
            end = start + int(np.searchsorted(of[start:], of[start], side="right"))
            units += [answers[at : min(at + _TOGETHER, end)] for at in range(start, end, _TOGETHER)]
        return units

    def on_host(self, groups: np.ndarray) -> dict[str, Tensor]:
        """What a batch needs from here: places and labels, in memory that a device reads by itself."""
        sizes = self.first_pair[groups + 1] - self.first_pair[groups]
        owner = np.repeat(np.arange(len(groups)), sizes)
        pairs = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + self.first_pair[groups][owner]
        arrays = {
            "starts": self.starts[pairs], "lengths": self.arrays["lengths"][pairs], "owner": owner, "pairs": pairs,
            "document": self.arrays["document"][groups], "label": self.arrays["label"][groups],
            "weight": self.arrays["weight"][groups],
        }  # fmt: skip
        if self.teacher is not None:
            arrays["teacher"] = self.teacher[pairs]
        found = {name: torch.from_numpy(array) for name, array in arrays.items()}
        return {name: tensor.pin_memory() for name, tensor in found.items()} if self.device == "cuda" else found

    def batch(self, host: dict[str, Tensor]) -> dict[str, Tensor]:
        """The padded tensors of a batch, where the model is."""
        # A processor prepares its products again for each shape, so it gets fewer widths.
        step = 8 if self.device == "cuda" else 16
        width = int(math.ceil(int(host["lengths"].max()) / step) * step)
        found = {name: tensor.to(self.device, non_blocking=True) for name, tensor in host.items()}
        columns = torch.arange(width, device=self.device)
        attention = columns[None] < found["lengths"][:, None]
        places = torch.where(attention, found["starts"][:, None] + columns, 0)
        for name, padding in (("ids", 0), ("types", 0), ("wrong", -1)):
            found[name] = torch.where(attention, self.tokens[name][places].long(), padding)
        return {**found, "attention": attention}

    def ahead(self, batches: Sequence[np.ndarray]) -> Iterator[tuple[np.ndarray, dict[str, Tensor]]]:
        """Each batch, put together by a thread while the device still works on those before it."""
        waiting: deque[tuple[np.ndarray, Future[dict[str, Tensor]]]] = deque()
        with ThreadPoolExecutor(1) as thread:
            for groups in batches:
                waiting.append((groups, thread.submit(self.on_host, groups)))
                if len(waiting) > _AHEAD:
                    earlier, host = waiting.popleft()
                    yield earlier, self.batch(host.result())
            for earlier, host in waiting:
                yield earlier, self.batch(host.result())


def document_loss(logits: Tensor, label: Tensor, document: Tensor) -> Tensor:
    """How far unsupported answers beat supported ones to the same document, over all such pairs of a batch."""
    same = (document[:, None] == document[None, :]) & (document[:, None] >= 0)
    apart = same & (label[:, None] - label[None, :] > 0.5)
    return (functional.softplus(logits[None, :] - logits[:, None]) * apart).sum() / apart.sum().clamp(min=1)


def group_logits(claims: Tensor, owner: Tensor, n_groups: int, softness: float) -> Tensor:
    """A group is as supported as its least supported claim, softly: the one claim of a group of one counts as it is."""
    scaled = -claims.float() / softness
    top = torch.full((n_groups,), -1e9, device=claims.device).scatter_reduce(0, owner, scaled, "amax")
    total = torch.zeros(n_groups, device=claims.device).index_add(0, owner, torch.exp(scaled - top[owner]))
    return -softness * (top + torch.log(total))


def main(built: Path, weights: Path, out: Path, recipe: Recipe) -> None:
    """Train, measure, and write the weights and the measured scores."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    # Every batch has a shape of its own, for which cuDNN would prepare anew; the other fast kernel needs no preparation.
    torch.backends.cuda.enable_cudnn_sdp(False)
    rng = np.random.default_rng(recipe.seed)
    data = Data(built, recipe, device)
    # All seeds begin with the same heads, so that the weights of several may be averaged.
    torch.manual_seed(0)
    is_trained = weights.suffix in (".pt", ".onnx")
    start = torch.load(weights, weights_only=True) if weights.suffix == ".pt" else load_weights(weights)
    layers = n_layers(start) if weights.suffix == ".onnx" else recipe.layers
    model = CrossEncoder(shape_of(start, layers), recipe.dropout)
    load = load_deeper if is_trained else load_mpnet if model.shape.relative else load_bert
    load(model, start)
    model.to(device)
    if recipe.top_layers:
        below = [model.words, model.places, model.kinds, model.norm, *model.layers[: -recipe.top_layers]]
        for module in below:
            module.requires_grad_(False)
    torch.manual_seed(recipe.seed)
    batches: list[np.ndarray] = []
    for epoch in range(math.ceil(recipe.epochs)):
        some = data.batches(data.training_groups(rng), rng)
        batches += some[: max(1, int(len(some) * min(1.0, recipe.epochs - epoch)))]
    learning = [p for p in model.parameters() if p.requires_grad]
    decayed = [p for p in learning if p.ndim > 1]
    others = [p for p in learning if p.ndim <= 1]
    optimiser = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}],
        lr=recipe.rate,
        fused=device == "cuda" or recipe.mixed,
    )
    warm = max(1, len(batches) // 12)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min((step + 1) / warm, max(0.02, (len(batches) - step) / (len(batches) - warm + 1)))
    )
    started = time.monotonic()
    model.train()
    # Every batch has a shape of its own, so compiled code must not be made for one shape.
    forward = torch.compile(model, dynamic=True) if recipe.compile else model
    for step, (groups, batch) in enumerate(data.ahead(batches)):
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda" or recipe.mixed):
            claims, tokens = forward(batch["ids"], batch["types"], batch["attention"])
        logits = group_logits(claims, batch["owner"], len(groups), recipe.softness)
        label = batch["label"] * 0.96 + 0.02
        losses = functional.binary_cross_entropy_with_logits(logits, label, reduction="none")
        loss = (losses * batch["weight"]).sum() / batch["weight"].sum()
        loss = loss + recipe.document_loss * document_loss(logits, batch["label"], batch["document"])
        if data.teacher is not None:
            taught = functional.binary_cross_entropy_with_logits(claims.float(), torch.sigmoid(batch["teacher"]))
            loss = (1 - recipe.teacher_share) * loss + recipe.teacher_share * taught
        known = batch["wrong"] >= 0
        token_losses = functional.binary_cross_entropy_with_logits(
            tokens.float(), (batch["wrong"] == 1).float(), reduction="none"
        )
        total = loss + recipe.token_loss * (token_losses * known).sum() / known.sum().clamp(min=1)
        optimiser.zero_grad(set_to_none=True)
        total.backward()
        torch.nn.utils.clip_grad_norm_(learning, 1.0)
        optimiser.step()
        schedule.step()
        if step % 100 == 0:
            print(
                f"{recipe.name} {step}/{len(batches)} loss {float(loss.detach()):.3f} {time.monotonic() - started:.0f} s",
                flush=True,
            )
        if recipe.save_every and step % recipe.save_every == recipe.save_every - 1:
            _save(model, out)
    torch.cuda.synchronize() if device == "cuda" else None
    _finish(model, data, out, {"steps": len(batches), "seconds": time.monotonic() - started})


def attention_kernel(weights: Path, layers: int = 1) -> str:
    """Which kernel a device's attention uses for a start's shape: a slow one would cost half of a lease."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    if not torch.cuda.is_available():
        return "no accelerator"
    model = CrossEncoder(shape_of(load_weights(weights), layers)).cuda()
    ids = torch.ones(4, 200, dtype=torch.long, device="cuda")
    try:
        with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION), torch.autocast("cuda", torch.bfloat16):
            model(ids, ids - 1, ids.bool())[0].sum().backward()
    except RuntimeError as error:
        return f"SLOW, the fast one says {error}"
    return "fast"


def average(built: Path, models: Sequence[Path], out: Path, recipe: Recipe) -> None:
    """One model with the mean weights of several that began alike, measured as if it had been trained."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    started = time.monotonic()
    states = [torch.load(path, weights_only=True) for path in models]
    mean = {name: torch.stack([state[name].float() for state in states]).mean(0) for name in states[0]}
    model = CrossEncoder(shape_of(mean, recipe.layers))
    model.load_state_dict(mean)
    _finish(
        model.to(device), Data(built, recipe, device), out, {"of": len(models), "seconds": time.monotonic() - started}
    )


def _finish(model: CrossEncoder, data: Data, out: Path, facts: dict[str, float]) -> None:
    """Measure a model and write it."""
    out.mkdir(parents=True, exist_ok=True)
    scores = measure(model, data, out) if data.recipe.measured else {}
    report = {"recipe": asdict(data.recipe), **facts, "auroc": scores}
    (out / "report.json").write_text(json.dumps(report, indent=1))
    _save(model, out)
    if data.recipe.predict:
        np.save(out / "logits.npy", predictions(model, data).astype(np.float16))
    print(data.recipe.name, json.dumps(scores), json.dumps(facts), flush=True)


@torch.no_grad()
def predictions(model: CrossEncoder, data: Data) -> np.ndarray:
    """The logit of every pair."""
    model.eval()
    logits = np.zeros(len(data.arrays["lengths"]), np.float32)
    for _, batch in data.ahead(data.batches(np.arange(len(data.arrays["label"])), None)):
        with torch.autocast(data.device, torch.bfloat16, enabled=data.device == "cuda"):
            claims, _ = model(batch["ids"], batch["types"], batch["attention"])
        logits[batch["pairs"].cpu().numpy()] = claims.float().cpu().numpy()
    return logits


def _save(model: CrossEncoder, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    torch.save({name: tensor.half().cpu() for name, tensor in model.state_dict().items()}, out / "model.pt")


@torch.no_grad()
def measure(model: CrossEncoder, data: Data, out: Path) -> dict[str, float]:
    """Scores of all measured rows, and the AUROC a set (of the rows left out of training, where there are such)."""
    model.eval()
    groups = data.measured_groups()
    found: dict[int, tuple[list[float], list[float], list[float]]] = {}
    for some, batch in data.ahead(data.batches(groups, None)):
        with torch.autocast(data.device, torch.bfloat16, enabled=data.device == "cuda"):
            claims, tokens = model(batch["ids"], batch["types"], batch["attention"])
        said = (batch["types"] > 0) & batch["attention"]
        risks = torch.sigmoid(tokens.float()) * said
        worst, logits = risks.amax(1).tolist(), claims.float().tolist()
        mean = (risks.sum(1) / said.sum(1).clamp(min=1)).tolist()
        for row, owner in enumerate(batch["owner"].tolist()):
            lists = found.setdefault(int(some[owner]), ([], [], []))
            for values, value in zip(lists, (logits[row], worst[row], mean[row]), strict=True):
                values.append(value)
    arrays = data.arrays
    rows = [
        {"key": str(arrays["key"][g]), "kind": str(arrays["kind"][g]), "label": float(arrays["label"][g]),
         "fold": int(arrays["fold"][g]), "claims": [round(v, 4) for v in found[int(g)][0]],
         "worst": [round(v, 4) for v in found[int(g)][1]], "mean": [round(v, 4) for v in found[int(g)][2]]}
        for g in groups
    ]  # fmt: skip
    (out / "scores.jsonl").write_text("\n".join(map(json.dumps, rows)))
    without = data.left_out()[groups] & np.array([row["fold"] >= 0 for row in rows])
    left_out = [row for row, out in zip(rows, without, strict=True) if out or row["fold"] in (-2, data.recipe.fold)]
    scores = {}
    for kind in sorted({row["kind"] for row in left_out}):
        some_rows = [row for row in left_out if row["kind"] == kind]
        labels = np.array([row["label"] for row in some_rows])
        mean = np.array([np.mean(1 / (1 + np.exp(-np.array(row["claims"])))) for row in some_rows])
        least = np.array([min(row["claims"]) for row in some_rows])
        if len(set(labels)) > 2:
            scores[kind] = round(rank_correlation(labels, mean), 3)
        elif len(set(labels)) == 2:
            scores[kind] = round(max(auroc(labels, least), 0.0), 3)
            scores[kind + "~mean"] = round(auroc(labels, mean), 3)
            scores[kind + "~token"] = round(auroc(labels, -np.array([max(row["worst"]) for row in some_rows])), 3)
    return scores


def load_weights(path: Path) -> dict[str, Tensor]:
    """Weights of a starting model: safetensors, rows of int8 with a scale each, a folder of parts of these, or what ships."""
    if path.suffix == ".onnx":
        return shipped_state(path)
    if path.is_dir():
        return {name: tensor for part in sorted(path.glob("*.npz")) for name, tensor in load_weights(part).items()}
    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        return load_file(path)
    weights: dict[str, Tensor] = {}
    with np.load(path) as arrays:
        for name in arrays.files:
            if name.endswith(":scale"):
                continue
            array = arrays[name].astype(np.float32)
            if name + ":scale" in arrays.files:
                array = array * arrays[name + ":scale"].astype(np.float32)[:, None]
            weights[name] = torch.from_numpy(array)
    return weights


def shipped_state(path: Path) -> dict[str, Tensor]:
    """The state of a model that was written as ONNX, as it was before its weights became 8 bits."""
    from agentunit_local.onnx_weights import read_weights
    from agentunit_local.torch_encoder import EncoderWeights

    weights = read_weights(path)
    take = EncoderWeights(weights, path)
    state = {"words.weight": take.words(), "token_head.weight": take.token_head()}
    plain = ("places.weight", "kinds.weight", "norm.weight", "norm.bias", "token_head.bias", "distances.weight")
    state |= {name: take[name] for name in plain if name != "distances.weight" or name in weights}
    for head in ("claim_head.0", "claim_head.3"):
        state |= {f"{head}.weight": take.linear(head), f"{head}.bias": take[f"{head}.bias"]}
    for number in range(take.n_layers("layers.")):
        for name in ("qkv", "out", "up", "down"):
            at = f"layers.{number}.{name}"
            state |= {f"{at}.weight": take.evened(at), f"{at}.bias": take[f"{at}.bias"]}
        for name in ("norm", "last_norm"):
            at = f"layers.{number}.{name}"
            state |= {f"{at}.weight": take[f"{at}.weight"], f"{at}.bias": take[f"{at}.bias"]}
    return {name: torch.from_numpy(np.array(array, np.float32)) for name, array in state.items()}


if __name__ == "__main__":
    options = Recipe()
    for option in sys.argv[4:]:
        key, _, value = option.partition("=")
        kind = type(getattr(options, key))
        setattr(options, key, value == "1" if kind is bool else kind(value))
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), options)
