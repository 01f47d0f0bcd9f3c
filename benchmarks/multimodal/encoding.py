"""Encoding beside a bare torch loop over tensors that lie ready."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image
from tokenizers import Tokenizer
from transformers import CLIPConfig, CLIPModel

from agentunit.addons.media.clip.clip_settings import ClipSettings, TextTokens
from agentunit.addons.media.clip.encoder import CachedEncoder
from agentunit.addons.media.clip.runtime import Later, PictureBatch
from agentunit.addons.media.clip.torch_runtime import TorchRuntime, best_device, runtime_of
from benchmarks.multimodal.bare import decoding_pool, squares_of
from benchmarks.speed.answers import Answer, Column, decimals

_TOKENISER = Path(__file__).resolve().parents[2] / "tests" / "data" / "tiny_clip" / "tokenizer.json"
_LEAST_SHARE = 0.6
_JPEG_SIZES = ((256, 256), (640, 480))
_SMALL = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2}


class Size(NamedTuple):
    """How much is encoded, and how often."""

    n_pictures: int
    n_texts: int
    rounds: int
    tiny: bool


def measure(size: Size) -> list[Answer]:
    """A table for pictures and one for texts."""
    torch.manual_seed(0)
    tokeniser = Tokenizer.from_file(str(_TOKENISER))
    runtime, model = _runtime(tokeniser, size.tiny)
    return [_pictures(runtime, model, size), _texts(runtime, model, size)]


def _runtime(tokeniser: Tokenizer, tiny: bool) -> tuple[TorchRuntime, Any]:
    end = tokeniser.token_to_id("<|endoftext|>")
    text = {"vocab_size": 49408, "eos_token_id": end, "pad_token_id": end, **(_SMALL if tiny else {})}
    vision: dict[str, int] = {"image_size": 224, "patch_size": 32, **(_SMALL if tiny else {})}
    model = CLIPModel(CLIPConfig(text_config=text, vision_config=vision, projection_dim=512)).eval()
    settings = ClipSettings()
    return runtime_of(model, TextTokens(tokeniser, settings.context_tokens), settings, "ViT-B/32-shaped"), model


def _pictures(runtime: TorchRuntime, model: Any, size: Size) -> Answer:
    columns = (
        Column("what", "pictures"),
        Column("rate", "a second", decimals(0)),
        Column("share", "of the bare loop", lambda share: f"{share:.0%}"),
        Column("note", "target"),
    )
    answer = Answer("pictures", f"{size.n_pictures:,} pictures, ViT-B/32-shaped, {_device(runtime)}", columns)
    bare = _rate(lambda: _bare_pictures(runtime, model, size.n_pictures), size.n_pictures, size.rounds)
    answer.add(what=f"bare loop, tensors on the device, {runtime.batch_size} at a time", rate=bare)
    squares = [Image.fromarray(each) for each in _noise(size.n_pictures)]
    rate = _rate(lambda: _encoder(runtime).encode_images(squares), size.n_pictures, size.rounds)
    answer.add(what="decoded pictures of the right size", rate=rate, share=rate / bare, note=_note(rate / bare))
    for width, height in _JPEG_SIZES:
        files = _jpegs(size.n_pictures, width, height)
        encoder = _encoder(runtime)
        encoder.encode_images([each + b"started" for each in files[:64]])
        count = iter(range(1000))

        def encode(files: list[bytes] = files, encoder: CachedEncoder = encoder, count: Any = count) -> None:
            # Other bytes at the end make other pictures for the cache, not for the decoder.
            mark = b"%d" % next(count)
            encoder.encode_images([each + mark for each in files])

        rate = _rate(encode, size.n_pictures, size.rounds)
        decoding = _rate(lambda files=files: _decoded_only(runtime, files), size.n_pictures, size.rounds)
        words = f"JPEG {width} × {height} ({sum(map(len, files)) // len(files) / 1000:.0f} kB)"
        plain = _rate(lambda files=files: _bare_files(runtime, model, files), size.n_pictures, size.rounds)
        answer.add(what=f"bare loop that decodes, {words}", rate=plain)
        answer.add(what=words, rate=rate, share=rate / plain, note=_note(rate / plain))
        answer.add(what="the same, decoded and cut only", rate=decoding)
    answer.remarks.append(
        f"Medians of {size.rounds} runs, each of pictures that were not met before. {_encoder(runtime)._n_threads} "
        "threads, and as many processes, read, decode and cut. The bare loop that decodes is one over a plain pool of "
        "as many processes; what reads files is compared with it."
    )
    return answer


def _texts(runtime: TorchRuntime, model: Any, size: Size) -> Answer:
    columns = (
        Column("what", "texts"),
        Column("rate", "a second", decimals(0)),
        Column("share", "of the bare loop", lambda share: f"{share:.0%}"),
        Column("note", "target"),
    )
    answer = Answer("texts", f"{size.n_texts:,} texts, ViT-B/32-shaped, {_device(runtime)}", columns)
    chance = random.Random(0)
    words = ("a", "photo", "of", "the", "small", "red", "green", "blue", "circle", "square", "star", "picture", "left")
    texts = [" ".join(chance.choices(words, k=chance.randint(5, 40))) for _ in range(size.n_texts)]
    windows = sorted((each.windows[0] for each in runtime.tokens.windows(texts)), key=len)
    batches = [
        torch.from_numpy(runtime.tokens.padded(windows[at : at + runtime.batch_size])).to(runtime.device)
        for at in range(0, len(windows), runtime.batch_size)
    ]

    def bare_loop() -> None:
        with torch.inference_mode():
            for batch in batches:
                model.text_projection(model.text_model(input_ids=batch).pooler_output)
        _finish(runtime)

    bare = _rate(bare_loop, size.n_texts, size.rounds)
    answer.add(what="bare loop, tokens on the device in our batches", rate=bare)
    rate = _rate(lambda: _encoder(runtime).encode_texts(texts), size.n_texts, size.rounds)
    answer.add(what="texts of 5 to 40 words", rate=rate, share=rate / bare, note=_note(rate / bare))
    idle = _rate(lambda: CachedEncoder(_NoDevice(runtime), many=None).encode_texts(texts), size.n_texts, size.rounds)
    answer.add(what="the same without a device", rate=idle)
    cut = _rate(lambda: runtime.tokens.windows(texts), size.n_texts, 1)
    answer.add(what="cut into tokens only", rate=cut)
    answer.remarks.append(f"Medians of {size.rounds} runs.")
    return answer


def _bare_files(runtime: TorchRuntime, model: Any, files: list[bytes]) -> None:
    """Decode in a plain pool, and hand each batch to the model as it comes."""
    kind = next(model.parameters()).dtype
    scale, shift = runtime._scale, runtime._shift
    with torch.inference_mode():
        for squares in squares_of(decoding_pool(), files, runtime.batch_size, runtime.settings):
            pixels = torch.from_numpy(squares).to(runtime.device).permute(0, 3, 1, 2).float()
            model.visual_projection(model.vision_model(pixel_values=(pixels * scale + shift).to(kind)).pooler_output)
    _finish(runtime)


def _bare_pictures(runtime: TorchRuntime, model: Any, n_pictures: int) -> None:
    n = runtime.batch_size
    pixels = torch.zeros((n, 3, 224, 224), dtype=next(model.parameters()).dtype, device=runtime.device)
    with torch.inference_mode():
        for at in range(0, n_pictures, n):
            batch = pixels[: min(n, n_pictures - at)]
            model.visual_projection(model.vision_model(pixel_values=batch).pooler_output)
    _finish(runtime)


class _NoDevice:
    """A runtime that does nothing with its pictures."""

    def __init__(self, runtime: TorchRuntime) -> None:
        self.name, self.device, self.settings = "none", "none", runtime.settings
        self.tokens, self.batch_size, self.text_length = runtime.tokens, runtime.batch_size, None

    def empty_batch(self, n_pictures: int) -> PictureBatch:
        return PictureBatch(np.empty((n_pictures, self.settings.side, self.settings.side, 3), dtype=np.uint8))

    def encode_pictures(self, batch: PictureBatch) -> Later:
        return lambda: np.ones((len(batch.pixels), 8), dtype=np.float32)

    def encode_tokens(self, tokens: Any) -> Later:
        return lambda: np.ones((len(tokens), 8), dtype=np.float32)


_idle: list[CachedEncoder] = []


def _decoded_only(runtime: TorchRuntime, files: list[bytes]) -> None:
    if not _idle:
        _idle.append(CachedEncoder(_NoDevice(runtime), many=1))
    mark = b"%f" % time.perf_counter()
    _idle[0].encode_images([each + mark for each in files])


def _encoder(runtime: TorchRuntime) -> CachedEncoder:
    return CachedEncoder(runtime, many=1 if runtime.device != "cpu" else None)


def _rate(work: Callable[[], Any], n_things: int, rounds: int) -> float:
    work()
    took_s = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        took_s.append(time.perf_counter() - start)
    return n_things / median(took_s)


def _noise(n_pictures: int) -> list[Any]:
    random_ = np.random.default_rng(0)
    return [random_.integers(0, 256, (224, 224, 3), dtype=np.uint8) for _ in range(n_pictures)]


def _jpegs(n_pictures: int, width: int, height: int) -> list[bytes]:
    """Pictures with as much detail as photographs have: smooth noise of several sizes."""
    random_ = np.random.default_rng(1)
    files = []
    for _ in range(min(n_pictures, 64)):
        total = np.zeros((height, width, 3))
        for cell in (4, 16, 64):
            small = random_.integers(0, 256, (-(-height // cell), -(-width // cell), 3), dtype=np.uint8)
            total += np.asarray(Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC))
        buffer = BytesIO()
        Image.fromarray((total / 3).astype(np.uint8)).save(buffer, "JPEG", quality=85)
        files.append(buffer.getvalue())
    return [files[at % len(files)] + b"%d" % at for at in range(n_pictures)]


def _finish(runtime: TorchRuntime) -> None:
    if runtime.device.startswith("cuda"):
        torch.cuda.synchronize()


def _device(runtime: TorchRuntime) -> str:
    on_gpu = runtime.device.startswith("cuda")
    return f"{torch.cuda.get_device_name() if on_gpu else best_device()}, {'bfloat16' if on_gpu else 'float32'}"


def _note(share: float) -> str:
    return f"{'met' if share >= _LEAST_SHARE else 'MISSED'} (≥ {_LEAST_SHARE:.0%})"
