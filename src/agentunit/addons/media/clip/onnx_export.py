"""Turn a CLIP checkpoint into the pair of ONNX graphs that runs without torch.

``python -m agentunit.addons.media.clip.onnx_export CHECKPOINT FOLDER`` needs ``pip install torch transformers onnx
onnxscript`` once, where the export is made. ``CHECKPOINT`` is the folder of a ``CLIPModel``, or a name of the Hugging
Face hub, which is then fetched. The folder gets the two graphs and the small files that say how to feed them.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agentunit.addons.media.clip.runtime import TEXT_FILE, VISION_FILE

_SMALL_FILES = ("config.json", "preprocessor_config.json", "tokenizer.json")


def export_onnx(checkpoint: str, folder: Path) -> tuple[Path, Path]:
    """Write both graphs of a checkpoint, and its configuration and tokenizer, into a folder.

    Graphs take any number of pictures (``pixel_values``) or texts (``input_ids``) and give vectors that are not
    normalized (``image_embeds``, ``text_embeds``), in the names that exports of others use as well.
    """
    import torch
    from transformers import CLIPModel

    folder.mkdir(parents=True, exist_ok=True)
    model = CLIPModel.from_pretrained(checkpoint, attn_implementation="eager").float().eval()
    side = model.config.vision_config.image_size
    end = model.config.text_config.eos_token_id
    pixels = torch.zeros(2, 3, side, side)
    tokens = torch.full((2, 9), end, dtype=torch.int64)
    vision, text = folder / VISION_FILE, folder / TEXT_FILE
    _export(_half(model, "vision"), pixels, vision, "pixel_values", "image_embeds", {0: "pictures"})
    _export(_half(model, "text"), tokens, text, "input_ids", "text_embeds", {0: "texts", 1: "tokens"})
    _copy_small_files(checkpoint, folder)
    return vision, text


def _half(model: Any, which: str) -> Any:
    """One half of a CLIP as a module of its own, made late because torch is imported late."""
    import torch

    class Half(torch.nn.Module):  # type: ignore[misc]  # torch has no types here
        def __init__(self) -> None:
            super().__init__()
            self.body = model.vision_model if which == "vision" else model.text_model
            self.projection = model.visual_projection if which == "vision" else model.text_projection

        def forward(self, batch: Any) -> Any:
            return self.projection(self.body(batch).pooler_output)

    return Half().eval()


def _export(half: Any, example: Any, path: Path, input_name: str, made: str, free: dict[int, str]) -> None:
    import torch

    with torch.inference_mode(), warnings.catch_warnings():
        # Tracing warns of shapes that are fixed on purpose.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            half,
            (example,),
            str(path),
            input_names=[input_name],
            output_names=[made],
            dynamic_axes={input_name: free, made: {0: free[0]}},
            opset_version=17,
            dynamo=False,
        )


def _copy_small_files(checkpoint: str, folder: Path) -> None:
    from transformers import CLIPConfig, CLIPTokenizerFast

    source = Path(checkpoint)
    if source.is_dir():
        for name in _SMALL_FILES:
            if (source / name).is_file() and (source / name).resolve() != (folder / name).resolve():
                shutil.copy(source / name, folder / name)
    if not (folder / "tokenizer.json").is_file():
        CLIPTokenizerFast.from_pretrained(checkpoint).backend_tokenizer.save(str(folder / "tokenizer.json"))
    if not (folder / "config.json").is_file():
        CLIPConfig.from_pretrained(checkpoint).save_pretrained(folder)
    if not source.is_dir():
        from transformers.utils import cached_file

        found = cached_file(checkpoint, "preprocessor_config.json", _raise_exceptions_for_missing_entries=False)
        if found:
            shutil.copy(found, folder / "preprocessor_config.json")


def main(arguments: Sequence[str] | None = None) -> int:
    """Export as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m agentunit.addons.media.clip.onnx_export", description=__doc__)
    parser.add_argument("checkpoint", help="the folder of a CLIPModel, or its name on the Hugging Face hub")
    parser.add_argument("folder", type=Path, help="where the graphs go")
    options = parser.parse_args(arguments)
    for path in export_onnx(options.checkpoint, options.folder):
        print(path)
    print(f"now: export AGENTUNIT_CLIP={options.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
