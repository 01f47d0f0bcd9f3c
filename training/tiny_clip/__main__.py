"""Train the small CLIP, measure it on scenes it has not seen, and write both forms of its weights."""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import CLIPConfig, CLIPModel

import training.tiny_clip
from agentunit.addons.media.clip.onnx_export import export_onnx
from training.tiny_clip.scenes import SIDE, Scene, caption, labels, random_scene, render
from training.tiny_clip.tokens import END, START, save_tokeniser, train_tokeniser

_FOLDER = Path(__file__).resolve().parents[2] / "tests" / "data" / "tiny_clip"
_MEAN = (0.48145466, 0.4578275, 0.40821073)
_STD = (0.26862954, 0.26130258, 0.27577711)
_CONTEXT_TOKENS = 77
_SEED = 20261115


def main(arguments: Sequence[str] | None = None) -> int:
    """Train and write; the exit code is 1 when the result is too weak to test anything with."""
    options = _parser().parse_args(arguments)
    torch.manual_seed(_SEED)
    torch.set_num_threads(options.threads)
    tokeniser = train_tokeniser(_SEED)
    model = _new_model(tokeniser)
    _train(model, tokeniser, options)
    # The checkpoint holds half precision; what is measured and exported are those same rounded weights.
    model = model.half().float().eval()
    accuracy = zero_shot_accuracy(model, tokeniser, n_scenes=2000, seed=_SEED + 2)
    size = sum(each.numel() for each in model.parameters())
    print(f"{size:,} parameters; {accuracy:.1%} zero-shot over {len(labels())} kinds, 2,000 unseen scenes")
    _write(model, tokeniser, options.folder)
    return 0 if accuracy >= 0.95 else 1


def zero_shot_accuracy(model: Any, tokeniser: Tokenizer, n_scenes: int, seed: int) -> float:
    """The share of unseen scenes whose label is the nearest of all labels."""
    chance = random.Random(seed)
    scenes = [random_scene(chance) for _ in range(n_scenes)]
    with torch.inference_mode():
        texts = _text_features(model, _token_batch(tokeniser, [f"a photo of a {label}" for label in labels()]))
        right = 0
        for start in range(0, n_scenes, 250):
            some = scenes[start : start + 250]
            nearest = (_image_features(model, _pixels(_pictures(some))) @ texts.T).argmax(dim=1)
            right += sum(labels()[int(best)] == scene.label for best, scene in zip(nearest, some, strict=True))
    return right / n_scenes


def _train(model: Any, tokeniser: Tokenizer, options: argparse.Namespace) -> None:
    chance = random.Random(_SEED + 1)
    scenes = [random_scene(chance) for _ in range(options.scenes)]
    pictures = _pictures(scenes)
    optimiser = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=2e-3, total_steps=options.steps, pct_start=0.1)
    model.train()
    for step in range(options.steps):
        chosen = [chance.randrange(len(scenes)) for _ in range(options.batch_size)]
        kinds = [labels().index(scenes[each].label) for each in chosen]
        texts = [caption(scenes[each], chance) for each in chosen]
        images = _image_features(model, _pixels(pictures[chosen]))
        words = _text_features(model, _token_batch(tokeniser, texts))
        scores = model.logit_scale.exp().clamp(max=100.0) * images @ words.T
        loss = _loss(scores, torch.tensor(kinds))
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        if step % 100 == 0:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)
    model.eval()


def _loss(scores: torch.Tensor, kinds: torch.Tensor) -> torch.Tensor:
    """CLIP's loss in both directions; with 40 kinds a batch holds many captions that are true of a picture."""
    same = (kinds[:, None] == kinds[None, :]).float()
    wanted = same / same.sum(dim=1, keepdim=True)
    both = torch.nn.functional.cross_entropy(scores, wanted) + torch.nn.functional.cross_entropy(scores.T, wanted)
    return both / 2


def _new_model(tokeniser: Tokenizer) -> Any:
    start, end = (tokeniser.token_to_id(mark) for mark in (START, END))
    text = {
        "vocab_size": tokeniser.get_vocab_size(),
        "hidden_size": 64,
        "intermediate_size": 256,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "max_position_embeddings": _CONTEXT_TOKENS,
        "bos_token_id": start,
        "eos_token_id": end,
        "pad_token_id": end,
    }
    vision = {
        "hidden_size": 96,
        "intermediate_size": 384,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "image_size": SIDE,
        "patch_size": 16,
    }
    return CLIPModel(CLIPConfig(text_config=text, vision_config=vision, projection_dim=64))


def _image_features(model: Any, pixels: torch.Tensor) -> torch.Tensor:
    pooled = model.vision_model(pixel_values=pixels).pooler_output
    return torch.nn.functional.normalize(model.visual_projection(pooled), dim=-1)


def _text_features(model: Any, tokens: torch.Tensor) -> torch.Tensor:
    pooled = model.text_model(input_ids=tokens).pooler_output
    return torch.nn.functional.normalize(model.text_projection(pooled), dim=-1)


def _pictures(scenes: Sequence[Scene]) -> np.ndarray:
    return np.stack([np.asarray(render(scene)) for scene in scenes])


def _pixels(pictures: np.ndarray) -> torch.Tensor:
    scaled = torch.from_numpy(pictures).float() / 255
    return ((scaled - torch.tensor(_MEAN)) / torch.tensor(_STD)).permute(0, 3, 1, 2).contiguous()


def _token_batch(tokeniser: Tokenizer, texts: Sequence[str]) -> torch.Tensor:
    end = tokeniser.token_to_id(END)
    rows = [each.ids[: _CONTEXT_TOKENS - 1] for each in tokeniser.encode_batch(list(texts))]
    longest = max(map(len, rows)) + 1
    return torch.tensor([[*row, *[end] * (longest - len(row))] for row in rows])


def _write(model: Any, tokeniser: Tokenizer, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    model.half().save_pretrained(folder)
    save_tokeniser(tokeniser, folder)
    preprocessing = {
        "image_processor_type": "CLIPImageProcessor",
        "do_convert_rgb": True,
        "do_resize": True,
        "size": {"shortest_edge": SIDE},
        "resample": 3,
        "do_center_crop": True,
        "crop_size": {"height": SIDE, "width": SIDE},
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": _MEAN,
        "image_std": _STD,
    }
    tokens = {"tokenizer_class": "CLIPTokenizer", "bos_token": START, "eos_token": END, "pad_token": END}
    tokens |= {"unk_token": END, "model_max_length": _CONTEXT_TOKENS}
    for name, content in (("preprocessor_config.json", preprocessing), ("tokenizer_config.json", tokens)):
        (folder / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    export_onnx(str(folder), folder)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m training.tiny_clip",
        description=training.tiny_clip.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--folder", type=Path, default=_FOLDER, help="where the weights go (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=2500, help="training steps (default: %(default)s)")
    parser.add_argument("--scenes", type=int, default=30_000, help="scenes to train on (default: %(default)s)")
    parser.add_argument("--batch-size", type=int, default=128, help="scenes a step (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="threads; more may change digits (default: 1)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
