"""CLIP of the package ``open_clip``, by the names it gives to models and their weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agentunit.backends.clip.runtime import ClipRuntime
from agentunit.backends.clip.settings import END, START, ClipSettings, TextTokens
from agentunit.backends.clip.torch_runtime import TorchRuntime, best_device, dtype_on, torch_unready
from agentunit.backends.quality import BackendUnavailable

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
    settings = _settings(loaded)
    tokens = TextTokens(_tokeniser(open_clip.tokenizer.SimpleTokenizer()), settings.context_tokens)
    runtime = TorchRuntime(name, loaded.encode_image, loaded.encode_text, settings, tokens, where)
    runtime.text_length = settings.context_tokens
    return runtime


def _settings(loaded: Any) -> ClipSettings:
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


def _tokeniser(simple: Any) -> Any:
    """The tokeniser that the package carries, rebuilt from its tables so that it tells where words begin."""
    from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers
    from tokenizers.models import BPE

    merges = sorted(simple.bpe_ranks, key=simple.bpe_ranks.__getitem__)
    marks = {simple.sot_token_id: START, simple.eot_token_id: END}
    vocabulary = {marks.get(number, token): number for token, number in simple.encoder.items()}
    tokeniser = Tokenizer(BPE(vocab=vocabulary, merges=merges, end_of_word_suffix="</w>"))
    tokeniser.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]
    )
    pieces = pre_tokenizers.Split(Regex(_PIECES), behavior="removed", invert=True)
    bytes_ = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokeniser.pre_tokenizer = pre_tokenizers.Sequence([pieces, bytes_])
    return tokeniser
