"""Fits how the signals are put together: ``python -m training.groundedness.calibrate DATA SCORES OUT MEASURED [SETS=SCORES …]``.

``SCORES`` is what the model that ships gave the development rows (``scores.jsonl.gz`` of its training); ``SETS=SCORES`` what
one that was trained without some sets gave them (``frank_,wice=PATH``: by how their names begin). Rows that a model was
trained on say nothing and are not read. ``SCORES`` may also be a ``.sqlite`` file in which the words of the shipped weights
are kept (it is made where it is absent; 25 minutes of one core): those have seen the rows of sets that may train them, so
only probabilities and thresholds of faithfulness are fitted anew then, with the slope corrected for that. ``OUT`` gets the
fitted numbers (those of the other measures stay), ``MEASURED`` what every set says when it is left out of the fit.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from agentunit_local.grounding.calibration import shipped_calibration

from training.groundedness.fit import fit_probabilities, fit_thresholds, left_out, scaled_mix
from training.groundedness.scored import scored_by_shipped, scored_by_training

SEEN_ROWS_SLOPE = 0.47
"""How sure the shipped weights may be, by how sure they are of rows that trained them.

Fitted on rows left out of training, the slope was 0.412; by the same fit it is 0.878 on rows that were not left out.
"""


def fit_faithfulness(
    data: Path, scores_file: Path, without: Mapping[str, Path]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The numbers of faithfulness, and what every set says when it is left out."""
    if scores_file.suffix == ".sqlite":
        rows = list(scored_by_shipped(data, scores_file))
        mix, memory = replace(shipped_calibration().faithfulness, slope=1.0, intercept=0.0), SEEN_ROWS_SLOPE
    else:
        rows = list(scored_by_training(data, scores_file, without))
        mix, memory = scaled_mix(rows), 1.0
    fitted = fit_probabilities([row for row in rows if not row.graded], mix, memory)
    fitted = replace(fitted, thresholds=fit_thresholds(rows, fitted))
    return asdict(fitted), left_out(rows, mix, memory)


def main(data: Path, scores_file: Path, out: Path, report: Path, without: Mapping[str, Path]) -> None:
    """Fit, write the numbers and what was measured."""
    known = json.loads(out.read_text(encoding="utf-8"))
    mix, measured = fit_faithfulness(data, scores_file, without)
    # Every row of answer correctness trains the model, so that its share cannot be fitted on them: it stays.
    fitted = {**known, "faithfulness": mix}
    out.write_text(json.dumps(fitted, indent=1) + "\n", encoding="utf-8")
    report.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({**fitted, **measured}, indent=1))


def _left_out(arguments: Iterable[str]) -> dict[str, Path]:
    parted = [argument.partition("=") for argument in arguments]
    return {name: Path(path) for names, _, path in parted for name in names.split(",")}


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:5]), _left_out(sys.argv[5:]))
