"""The command line of the benchmark."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import benchmarks.gpu

_PARTS = ("pairs", "differences", "evidence", "sentences", "clip", "cases")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure each part, print its table, and write all after each one: a run that is cut short loses only its last."""
    options = _parser().parse_args(arguments)
    begun = time.perf_counter()
    texts, figures = [_heading()], []
    for name, measure in _measurements(options):
        if name not in options.parts:
            continue
        started = time.perf_counter()
        try:
            answers = measure()
        except Exception:  # noqa: BLE001  # one part that fails must not take the others along
            texts.append(f"\n## {name}: failed\n\n```text\n{traceback.format_exc()[-2000:]}\n```\n")
            print(texts[-1], flush=True)
            continue
        for answer in answers:
            texts.append(f"\n{answer.table()}\n")
            figures.append({"key": answer.key, "question": answer.question, "rows": answer.rows})
            print(texts[-1], flush=True)
        print(
            f"({name}: {time.perf_counter() - started:.0f} s, {time.perf_counter() - begun:.0f} s in all)", flush=True
        )
        if options.out:
            options.out.mkdir(parents=True, exist_ok=True)
            (options.out / "gpu.md").write_text("".join(texts), encoding="utf-8")
            (options.out / "gpu.json").write_text(json.dumps(figures, indent=1), encoding="utf-8")
    return 0 if figures else 2


def _measurements(options: argparse.Namespace) -> Iterator[tuple[str, Callable[[], list[Any]]]]:
    from benchmarks.gpu import encoders, groundedness

    small = options.tiny
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        models: dict[str, str | None] = {"small": None}

        def large() -> dict[str, str | None]:
            if "large" not in models:
                models["large"] = str(options.large or _random_large(folder / "large"))
            return models

        n_pairs = {"small": 16 if small else 24_576, "large": 4 if small else 8_192}
        yield "pairs", lambda: [groundedness.rates(large(), options.device, n_pairs, 1 if small else 3)]
        n_cases = {"small": 4 if small else 150, "large": 2 if small else 24}
        yield "differences", lambda: [groundedness.differences(large(), options.device, n_cases)]
        yield "evidence", lambda: [groundedness.evidence(20 if small else 1_000)]
        n_texts = 128 if small else 65_536
        yield "sentences", lambda: [encoders.sentences(options.device, n_texts, 1 if small else 3)]
        yield "clip", lambda: _clip(small)
        jobs = [0, 2] if small else [0, 16]
        yield "cases", lambda: [groundedness.cases(options.device, folder, 40 if small else 2_000, jobs)]


def _random_large(folder: Path) -> Path:
    from agentunit_local.sentences import WEIGHTS

    from benchmarks.gpu.large_model import write_large

    return write_large(folder, WEIGHTS / "tokenizer.json")


def _clip(small: bool) -> list[Any]:
    from benchmarks.multimodal import encoding

    return encoding.measure(encoding.Size(32, 64, 1, True) if small else encoding.Size(3_072, 16_384, 2, False))


def _heading() -> str:
    import torch

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    machine = f"{cores} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    return f"# Local models on a GPU: the last measured tables\n\n{machine}, torch {torch.__version__}, {gpu}.\n"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu",
        description=benchmarks.gpu.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("parts", nargs="*", default=_PARTS, help=f"{', '.join(_PARTS)} (default: all)", metavar="PART")
    parser.add_argument("--device", default="cuda", help="a device of torch (default: cuda)")
    parser.add_argument("--large", type=Path, help="folder of a large model (default: random weights)")
    parser.add_argument("--out", type=Path, help="folder for gpu.md and gpu.json")
    parser.add_argument("--tiny", action="store_true", help="little of everything, to try the benchmark itself")
    return parser


if __name__ == "__main__":
    sys.exit(main())
