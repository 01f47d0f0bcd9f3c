"""Count what the samples of the log state, without AgentUnit."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def count(path: Path) -> list[dict[str, Any]]:
    return [case_of(sample) for sample in json.loads(path.read_text("utf-8"))["samples"]]


if __name__ == "__main__":
    folder = Path(__file__).resolve().parent
    sys.path.append(str(folder.parent))
    from count_inspect import case_of
    from files import write_expectations

    write_expectations(folder, count)
