"""Write the answers of a RAG pipeline as RAGAS and DeepEval save them, and as a spreadsheet in German does.

pip install ragas==0.4.3 "langchain-community<0.4" deepeval==4.3.1, then python make.py
"""

from __future__ import annotations

import csv
import os
from pathlib import Path

os.environ["DEEPEVAL_TELEMETRY_OPT_OUT"] = "1"

HERE = Path(__file__).resolve().parent
# Question, answer, what was retrieved, what is expected. The last was not answered.
ROWS = [
    ("How long do refunds take?", "A week.", ["Refunds take five working days.", "It's free."], "Five working days."),
    ("Where is order A-1042?", "It was sent.", ["A-1042 was sent on Monday."], "On its way."),
    ("Do you ship to Peru?", None, ["We ship everywhere."], "Yes."),
]


def write_ragas() -> None:
    """JSON Lines, and a table whose lists are written as Python writes them."""
    from ragas.dataset_schema import EvaluationDataset, SingleTurnSample

    samples = [
        SingleTurnSample(user_input=asked, response=answer, retrieved_contexts=found, reference=expected)
        for asked, answer, found, expected in ROWS
    ]
    EvaluationDataset(samples=samples).to_jsonl(HERE / "ragas.jsonl")
    EvaluationDataset(samples=samples).to_csv(HERE / "ragas_table.csv")


def write_deepeval() -> None:
    """A list in JSON, and a table whose lists are joined by a bar."""
    from deepeval.dataset import EvaluationDataset, Golden

    goldens = [
        Golden(input=asked, actual_output=answer, retrieval_context=found, expected_output=expected)
        for asked, answer, found, expected in ROWS
    ]
    for kind, name in (("json", "deepeval"), ("csv", "deepeval_table")):
        EvaluationDataset(goldens=goldens).save_as(file_type=kind, directory=str(HERE), file_name=name)


def write_spreadsheet() -> None:
    """Semicolons, a mark at the start, and names with spaces."""
    with open(HERE / "spreadsheet.csv", "w", newline="", encoding="utf-8-sig") as stream:
        writer = csv.writer(stream, delimiter=";")
        writer.writerow(["Question", "Answer", "Ground Truth", "Context"])
        writer.writerows([asked, answer, expected, found[0]] for asked, answer, found, expected in ROWS)


if __name__ == "__main__":
    write_ragas()
    write_deepeval()
    write_spreadsheet()
