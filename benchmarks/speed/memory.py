"""Question 6: does recording take more memory the more cases there are?"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from benchmarks.speed.answers import Answer, Column, decimals, times
from benchmarks.speed.processes import OUR_PYTHON, figures_of
from benchmarks.speed.recordings import recordings

_LONGER = 10


def measure_memory(rounds: int, n_cases: int) -> Answer:
    """Record a dataset and one ten times as long in fresh processes, and take off what the dataset itself takes."""
    answer = Answer(
        "recording_memory",
        "Peak memory of recording",
        (
            Column("n_cases", "cases", decimals(0)),
            Column("file_mb", "dataset file, MB", decimals(1)),
            Column("dataset_mb", "dataset, MB", decimals(1)),
            Column("peak_mb", "peak, MB", decimals(1)),
            Column("worst_mb", "worst, MB", decimals(1)),
            Column("rest_mb", "peak less dataset, MB", decimals(1)),
            Column("ratio", "to the shorter", times),
        ),
        remarks=[
            f"Resident size, the least and the most of {rounds} fresh processes each. A run holds its dataset; what "
            "that takes is the peak of a process that only reads it, less that of one that reads nothing. Cases with "
            "three passages of about sixty words, answered by an agent in threads that traces and quotes them."
        ],
    )
    with tempfile.TemporaryDirectory() as folder:
        nothing = Path(folder) / "nothing.jsonl"
        nothing.touch()
        empty_mb = min(_peaks_mb("load", nothing, rounds))
        for n in (n_cases, _LONGER * n_cases):
            path = Path(folder) / f"{n}.jsonl"
            with path.open("w", encoding="utf-8") as file:
                file.writelines(json.dumps(record["case"]) + "\n" for record in recordings(n))
            # A dataset of a few cases disappears in the noise.
            dataset_mb = max(0.0, min(_peaks_mb("load", path, rounds)) - empty_mb)
            peaks_mb = _peaks_mb("record", path, rounds)
            answer.add(
                name=f"{n} cases",
                n_cases=n,
                file_mb=path.stat().st_size / 1e6,
                dataset_mb=dataset_mb,
                peak_mb=min(peaks_mb),
                worst_mb=max(peaks_mb),
                rest_mb=min(peaks_mb) - dataset_mb,
            )
    answer.compare("rest_mb", f"{n_cases} cases")
    return answer


def _peaks_mb(action: str, dataset: Path, rounds: int) -> list[float]:
    return [
        figures_of(OUR_PYTHON, "-m", "benchmarks.speed.one_run", action, str(dataset))["peak_bytes"] / 1e6
        for _ in range(rounds)
    ]
