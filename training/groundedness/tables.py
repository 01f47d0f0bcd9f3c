"""Claims about data (InfoTabs): people wrote for each info box of Wikipedia claims that it supports, contradicts or leaves open.

``published`` is the folder ``data`` of InfoTabs as published (Apache-2.0). Its boxes are JSON objects; they become text as results of
tools do, because that is what the model will read.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentunit.metrics.evidence import readable_text
from training.groundedness.groups import Group, Pair, number_of

MAKER = "table"


def table_groups(published: Path, part: str = "train") -> Iterator[Group]:
    """Every claim of a part of InfoTabs. Those about one box are ranked against each other by their labels."""
    boxes: dict[str, str] = {}
    with (published / "maindata" / f"infotabs_{part}.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            name, label = row["table_id"], float(row["label"] == "E")
            if name not in boxes:
                boxes[name] = box_text(json.loads((published / f"tables/json/{name}.json").read_text(encoding="utf-8")))
            pair = Pair(boxes[name], row["hypothesis"], [] if label else None)
            yield Group([pair], label, 1.0, "infotabs", document=number_of(f"infotabs {name}"), maker=MAKER)


def box_text(box: dict[str, Any]) -> str:
    """A box as text; fields of one value are no lists, and stand in one line.

    >>> print(box_text({"title": ["In Rainbows"], "Genre": ["art rock", "art pop"]}))
    title: In Rainbows
    Genre: art rock, art pop
    """
    plain = {
        name: values[0] if isinstance(values, list) and len(values) == 1 else values for name, values in box.items()
    }
    return readable_text(plain)
