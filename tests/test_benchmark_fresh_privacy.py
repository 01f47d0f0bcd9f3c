"""The fresh text of benchmarks/privacy: labels stand where they say, and none of its names is trained on."""

from __future__ import annotations

from pathlib import Path

from benchmarks.privacy.fresh.generate import rows
from training.personal_data.names import FRESH, left_out

_OWN_LISTS = Path(__file__).parents[1] / "training" / "personal_data" / "people.txt"


def test_labels_stand_in_their_texts_and_rows_are_the_same_every_time() -> None:
    made = list(rows())
    assert made == list(rows())
    for row in made:
        assert all(0 <= start < end <= len(row.text) for start, end, _ in row.spans)
        assert all(first[1] <= second[0] for first, second in zip(row.spans, row.spans[1:], strict=False))
    assert not any(row.spans for row in made if row.group.startswith(("prose:", "technical:")))


def test_every_name_of_it_is_left_out_of_training() -> None:
    unwanted = left_out()
    lines = [line for line in FRESH.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    names = {name.strip().lower() for line in lines for part in line.split("|")[1:3] for name in part.split(",")}
    assert names <= unwanted
    own = [line for line in _OWN_LISTS.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert own  # our own list may name them: names.lists() takes them out
