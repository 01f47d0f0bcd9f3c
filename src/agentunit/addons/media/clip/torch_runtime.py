"""CLIP in torch, in half precision on a GPU: a ``CLIPModel`` of transformers, or a model of ``open_clip``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from agentunit.addons.media.clip.clip_settings import END, START, ClipSettings, TextTokens, settings_from, settings_of
from agentunit.addons.media.clip.runtime import ClipRuntime, Later, PictureBatch
from agentunit.backends.quality import BackendUnavailable, require_ready

TORCH_COMMAND = "pip install torch transformers Pillow"


def torch_unready(*packages: str) -> str | None:
    """Why torch or a package on top of it cannot be used, with the command that helps; ``None`` when they can."""
    missing = [name for name in ("torch", "numpy", "PIL", *packages) if find_spec(name) is None]
    return f"{missing[0]} is not installed; {TORCH_COMMAND} adds it" if missing else None


def best_device() -> str:
    """The fastest device that torch has here: cuda, mps or cpu."""
    import torch

    if torch.cuda.is_available():
        return "cuda"
    mps = getattr(torch.backends, "mps", None)
    return "mps" if mps is not None and mps.is_available() else "cpu"


class TorchRuntime:
    """Any pair of torch functions that make vectors of pixels and tokens, on one device."""

    text_length: int | None = None

    def __init__(
        self, name: str, images: Any, texts: Any, settings: ClipSettings, tokens: TextTokens, device: str
    ) -> None:
        import torch

        self.name, self.settings, self.tokens, self.device = name, settings, tokens, device
        self._images, self._texts = images, texts
        self._pinned = device.startswith("cuda")
        self.batch_size = 256 if self._pinned else 64 if device == "mps" else 16
        self._dtype = dtype_on(device)
        scale = [1 / (255 * each) for each in settings.std]
        shift = [-mean / std for mean, std in zip(settings.mean, settings.std, strict=True)]
        self._scale, self._shift = (torch.tensor(each, device=device).view(1, 3, 1, 1) for each in (scale, shift))

    def empty_batch(self, n_pictures: int) -> PictureBatch:
        """Room that a GPU can fetch from while the processor goes on."""
        import torch

        side = self.settings.side
        held = torch.empty((n_pictures, side, side, 3), dtype=torch.uint8, pin_memory=self._pinned)
        return PictureBatch(held.numpy(), held)

    def encode_pictures(self, batch: PictureBatch) -> Later:
        """Start encoding; colors are normalized on the device, in full precision."""
        import torch

        with torch.inference_mode():
            pixels = batch.held.to(self.device, non_blocking=True).permute(0, 3, 1, 2)
            # Turned while they are bytes: models are slow on colors that lie side by side.
            pixels = torch.addcmul(self._shift, pixels.contiguous().float(), self._scale)
            return self._fetched(self._images(pixels.to(self._dtype)).float())

    def encode_tokens(self, tokens: Any) -> Later:
        """Start encoding a batch of padded tokens."""
        import torch

        with torch.inference_mode():
            held = torch.from_numpy(tokens)
            held = held.pin_memory() if self._pinned else held
            return self._fetched(self._texts(held.to(self.device, non_blocking=True)).float())

    def _fetched(self, made: Any) -> Later:
        """Vectors on their way back: waiting for them does not wait for what the device was given after them."""
        import torch

        if not self._pinned:
            return lambda: made.cpu().numpy()
        here = torch.empty(made.shape, dtype=made.dtype, pin_memory=True)
        here.copy_(made, non_blocking=True)
        arrived = torch.cuda.Event()
        arrived.record()

        def wait() -> Any:
            arrived.synchronize()
            return here.numpy()

        return wait


def dtype_on(device: str) -> Any:
    """bfloat16 on a GPU, float32 elsewhere."""
    import torch

    return torch.bfloat16 if device.startswith("cuda") else torch.float32


def transformers_runtime(checkpoint: str, name: str, *, device: str | None = None, download: bool) -> TorchRuntime:
    """A ``CLIPModel`` from a folder, or from the hub's cache; the hub itself is asked only with ``download``."""
    require_ready(torch_unready("transformers"))
    from transformers import CLIPModel, CLIPTokenizerFast

    with _quietly():
        try:
            model = CLIPModel.from_pretrained(checkpoint, local_files_only=not download)
            tokeniser = CLIPTokenizerFast.from_pretrained(checkpoint, local_files_only=not download)
        except (OSError, ValueError, RuntimeError) as error:
            raise BackendUnavailable(f"{checkpoint} cannot be loaded: {' '.join(str(error).split())[:300]}") from None
    settings = _settings(checkpoint, model, download)
    return runtime_of(model, TextTokens(tokeniser.backend_tokenizer, settings.context_tokens), settings, name, device)


def runtime_of(
    model: Any, tokens: TextTokens, settings: ClipSettings, name: str, device: str | None = None
) -> TorchRuntime:
    """A ``CLIPModel`` that is in memory already."""
    where = device or best_device()
    model = model.to(device=where, dtype=dtype_on(where)).eval()

    def images(pixels: Any) -> Any:
        return model.visual_projection(model.vision_model(pixel_values=pixels).pooler_output)

    def texts(tokens: Any) -> Any:
        return model.text_projection(model.text_model(input_ids=tokens).pooler_output)

    return TorchRuntime(name, images, texts, settings, tokens, where)


def _settings(checkpoint: str, model: Any, download: bool) -> ClipSettings:
    if Path(checkpoint).is_dir():
        return settings_of(Path(checkpoint))
    from transformers import CLIPImageProcessor

    pictures = CLIPImageProcessor.get_image_processor_dict(checkpoint, local_files_only=not download)[0]
    return settings_from(model.config.to_dict(), pictures, checkpoint)


@contextmanager
def _quietly() -> Iterator[None]:
    """Loading weights draws progress bars, which have no place in a report."""
    from transformers.utils import logging

    drawn = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if drawn:
            logging.enable_progress_bar()


_PIECES = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
_COMMAND = "pip install open_clip_torch tokenizers"


def open_clip_runtime(model: str, name: str, *, device: str | None, download: bool) -> ClipRuntime:
    """The model of ``MODEL/PRETRAINED``. ``PRETRAINED`` is a file of weights, or a tag, fetched with ``download``."""
    architecture, slash, pretrained = model.partition("/")
    if not slash or not pretrained:
        raise BackendUnavailable(f"an open_clip model is written open_clip:MODEL/PRETRAINED; received {name!r}")
    unready = torch_unready("open_clip", "tokenizers")
    if unready:
        raise BackendUnavailable(f"{unready.split(';')[0]}; {_COMMAND} adds it")
    if not download and not Path(pretrained).is_file():
        raise BackendUnavailable(
            f"the weights {pretrained!r} of open_clip are fetched only when asked: 'export AGENTUNIT_CLIP_DOWNLOAD=1', "
            f"or name a file of weights, open_clip:{architecture}/FILE"
        )
    import open_clip

    where = device or best_device()
    try:
        loaded = open_clip.create_model(architecture, pretrained=pretrained, device=where, precision="fp32")
    except (RuntimeError, OSError, ValueError) as error:
        raise BackendUnavailable(f"{name} cannot be loaded: {' '.join(str(error).split())[:300]}") from None
    loaded = loaded.to(dtype=dtype_on(where)).eval()
    settings = _open_clip_settings(loaded)
    tokens = TextTokens(_open_clip_tokenizer(open_clip.tokenizer.SimpleTokenizer()), settings.context_tokens)
    runtime = TorchRuntime(name, loaded.encode_image, loaded.encode_text, settings, tokens, where)
    runtime.text_length = settings.context_tokens
    return runtime


def _open_clip_settings(loaded: Any) -> ClipSettings:
    visual = loaded.visual
    size = visual.image_size
    side = int(size[0] if isinstance(size, (tuple, list)) else size)
    return ClipSettings(
        resize_to=side,
        side=side,
        mean=tuple(visual.image_mean),
        std=tuple(visual.image_std),
        context_tokens=int(loaded.context_length),
    )


def _open_clip_tokenizer(simple: Any) -> Any:
    """The tokenizer that the package carries, rebuilt from its tables so that it tells where words begin."""
    from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers
    from tokenizers.models import BPE

    merges = sorted(simple.bpe_ranks, key=simple.bpe_ranks.__getitem__)
    marks = {simple.sot_token_id: START, simple.eot_token_id: END}
    vocabulary = {marks.get(number, token): number for token, number in simple.encoder.items()}
    tokenizer = Tokenizer(BPE(vocab=vocabulary, merges=merges, end_of_word_suffix="</w>"))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]
    )
    pieces = pre_tokenizers.Split(Regex(_PIECES), behavior="removed", invert=True)
    bytes_ = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pieces, bytes_])
    return tokenizer
