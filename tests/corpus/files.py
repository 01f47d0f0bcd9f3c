"""What makers and counters of the corpus share: writing JSON so that it can be read and compared."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


def write_expectations(folder: Path, count: Callable[[Path], list[dict[str, Any]]], **more: Any) -> None:
    """Write ``NAME.expected.json`` beside each file of a folder: the cases that ``count`` found in it."""
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.suffix != ".py" and not path.name.endswith(".expected.json"):
            stem = path.name.split(".")[0]
            write_json(folder / f"{stem}.expected.json", {**more, "cases": count(path)})


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON of many lines."""
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
