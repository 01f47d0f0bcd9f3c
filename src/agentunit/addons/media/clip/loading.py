"""From the name of a CLIP to an encoder, loaded once. Nothing is fetched unless the user asked for it by name."""

from __future__ import annotations

import os
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from threading import Lock

from agentunit.addons.media.clip.encoder import CachedEncoder
from agentunit.addons.media.clip.runtime import ClipRuntime, OnnxRuntime, find_graphs, onnx_unready
from agentunit.addons.media.clip.torch_runtime import best_device, torch_unready, transformers_runtime
from agentunit.backends.quality import BackendUnavailable

DEFAULT_NAME = "ViT-B/32"
HUB_NAMES = {
    "ViT-B/32": "openai/clip-vit-base-patch32",
    "ViT-B/16": "openai/clip-vit-base-patch16",
    "ViT-L/14": "openai/clip-vit-large-patch14",
    "ViT-L/14@336px": "openai/clip-vit-large-patch14-336",
}
"""The names of the catalog, and where the same weights are on the Hugging Face hub."""
PLACE_VARIABLE = "AGENTUNIT_CLIP"
DOWNLOAD_VARIABLE = "AGENTUNIT_CLIP_DOWNLOAD"
OPEN_CLIP = "open_clip:"
_CHECKPOINT_FILES = ("model.safetensors", "pytorch_model.bin", "model.safetensors.index.json")

_loaded: dict[tuple[str, str | None, str | None], CachedEncoder] = {}
_loading = Lock()


def load_clip(name: str = DEFAULT_NAME, *, runtime: str | None = None, device: str | None = None) -> CachedEncoder:
    """The encoder of a name, which all metrics of a process share.

    A name is one of the catalog (``ViT-B/32``), a folder with a checkpoint or an ONNX pair, a name of the Hugging Face
    hub, or ``open_clip:MODEL/PRETRAINED``. ``AGENTUNIT_CLIP`` takes the place of the default. Weights of a catalog
    name are fetched only with ``AGENTUNIT_CLIP_DOWNLOAD=1``; a name of the hub is itself the wish to fetch it.
    ``BackendUnavailable`` says what is missing, and the command that helps.
    """
    named = resolved_name(name)
    key = named, runtime, device
    with _loading:
        if key not in _loaded:
            made = _runtime(named, runtime, device)
            # On a processor the model takes longer than decoding, and would share the cores with its processes.
            _loaded[key] = CachedEncoder(made, many=None) if made.device == "cpu" else CachedEncoder(made)
        return _loaded[key]


def resolved_name(name: str) -> str:
    """The name or folder that a name stands for here."""
    return (os.environ.get(PLACE_VARIABLE) or name) if name == DEFAULT_NAME else name


def clip_unready() -> str | None:
    """Why the default CLIP cannot run here, with the way out, as far as that shows without loading it."""
    name = resolved_name(DEFAULT_NAME)
    folder = Path(name).expanduser()
    if folder.is_dir():
        reasons = [onnx_unready()] if find_graphs(folder) is not None else []
        reasons += [torch_unready("transformers")] if _has_checkpoint(folder) else []
        if not reasons:
            return _no_clip_in(folder)
        return None if None in reasons else reasons[0]
    if name.startswith(OPEN_CLIP):
        return torch_unready("open_clip", "tokenizers")
    if name in HUB_NAMES:
        can_load = torch_unready("transformers") is None and (_may_download() or _is_in_the_hubs_cache(HUB_NAMES[name]))
        return None if can_load else _no_weights(name, HUB_NAMES[name])
    return _unknown(name) if _is_no_hub_name(name) else torch_unready("transformers")


def clip_label(name: str) -> str:
    """What scores say they were made with: a name, or the last part of a folder's.

    >>> clip_label("ViT-L/14"), clip_label("openai/clip-vit-base-patch32"), clip_label("/models/our-clip/")
    ('ViT-L/14', 'openai/clip-vit-base-patch32', 'our-clip')
    """
    name = resolved_name(name)
    return Path(name).name if Path(name).is_absolute() or Path(name).is_dir() else name


def _runtime(name: str, runtime: str | None, device: str | None) -> ClipRuntime:
    if runtime not in (None, "onnx", "torch"):
        raise ValueError(f"load_clip: runtime must be onnx or torch; received {runtime!r}")
    folder = Path(name).expanduser()
    if folder.is_dir():
        return _of_folder(folder, runtime, device)
    if name.startswith(OPEN_CLIP):
        from agentunit.addons.media.clip.torch_runtime import open_clip_runtime

        return open_clip_runtime(name.removeprefix(OPEN_CLIP), name, device=device, download=_may_download())
    if name in HUB_NAMES:
        return _of_catalog(name, device)
    if _is_no_hub_name(name):
        raise BackendUnavailable(_unknown(name))
    return transformers_runtime(name, name, device=device, download=True)


def _is_no_hub_name(name: str) -> bool:
    return name.count("/") != 1 or Path(name).is_absolute() or name.startswith((".", "~"))


def _has_checkpoint(folder: Path) -> bool:
    return any((folder / each).is_file() for each in _CHECKPOINT_FILES)


def _is_in_the_hubs_cache(hub: str) -> bool:
    if find_spec("huggingface_hub") is None:
        return False
    from huggingface_hub import try_to_load_from_cache

    return isinstance(try_to_load_from_cache(hub, "config.json"), str)


def _of_folder(folder: Path, runtime: str | None, device: str | None) -> ClipRuntime:
    label = folder.resolve().name
    checkpoint = _has_checkpoint(folder)
    if not checkpoint and find_graphs(folder) is None:
        raise BackendUnavailable(_no_clip_in(folder))
    if runtime is None:
        runtime = "onnx"
        if checkpoint and torch_unready("transformers") is None:
            usable = find_graphs(folder) is not None and onnx_unready() is None
            runtime = "torch" if not usable or best_device() != "cpu" else "onnx"
        elif find_graphs(folder) is None:
            runtime = "torch"
    if runtime == "onnx":
        return OnnxRuntime(folder, label, device)
    return transformers_runtime(str(folder), label, device=device, download=False)


def _of_catalog(name: str, device: str | None) -> ClipRuntime:
    hub = HUB_NAMES[name]
    if find_spec("torch") is None or find_spec("transformers") is None:
        raise BackendUnavailable(_no_weights(name, hub))
    download = _may_download()
    try:
        return transformers_runtime(hub, name, device=device, download=download)
    except BackendUnavailable as error:
        raise BackendUnavailable(str(error) if download else _no_weights(name, hub)) from None


def _may_download() -> bool:
    return os.environ.get(DOWNLOAD_VARIABLE, "").lower() in ("1", "true", "yes")


def _no_weights(name: str, hub: str) -> str:
    return (
        f"no weights for CLIP {name!r} here; 'pip install torch transformers Pillow && export {DOWNLOAD_VARIABLE}=1' "
        f"lets the next run fetch {hub} (where no hub can be reached, 'export {PLACE_VARIABLE}=FOLDER' names a "
        "checkpoint or an ONNX pair)"
    )


def _no_clip_in(folder: Path) -> str:
    return (
        f"{folder} holds no CLIP: neither a checkpoint (config.json and model.safetensors) nor an ONNX pair "
        f"(vision_model.onnx and text_model.onnx)"
    )


def _unknown(name: str) -> str:
    nearest = get_close_matches(name, HUB_NAMES, n=1)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
    return (
        f"a CLIP must be one of {', '.join(HUB_NAMES)}, an existing folder, a name of the Hugging Face hub "
        f"(organization/model) or open_clip:MODEL/PRETRAINED; received {name!r}{hint}"
    )
