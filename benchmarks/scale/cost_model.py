"""What 10⁹ traces would take, from figures that were measured here."""

from __future__ import annotations

from typing import Any

from benchmarks.speed.answers import Answer, Column, decimals

N_TRACES = 10**9
_TB = 1e12


def cost_model(answers: dict[str, Answer]) -> Answer | None:
    """Core-hours, storage and network of 10⁹ traces by each way; ``None`` where nothing was measured to go by."""
    pace, otlp, model = (answers.get(key) for key in ("pace", "otlp", "model"))
    if pace is None:
        return None
    columns = (
        Column("name", "work"),
        Column("core_hours", "core-hours", decimals(0)),
        Column("days", "days on 64 cores", decimals(2)),
        Column("read_tb", "TB read", decimals(1)),
        Column("read_gb_s", "GB/s read by 64 cores", decimals(2)),
        Column("written_tb", "TB of score lines", decimals(1)),
    )
    answer = Answer("cost_model", "10⁹ traces", columns)
    row = _row(pace, "--jobs 2")
    _add(
        answer,
        "seven exact metrics, records",
        row["cpu_us"] / 1e6,
        row["n_bytes"] / row["n_records"],
        row.get("n_score_bytes", 0) / row["n_records"],
    )
    if otlp is not None:
        row = _row(otlp, "--jobs 2")
        _add(
            answer,
            "three exact metrics, OTLP/JSON",
            row["cpu_us"] / 1e6,
            row["n_bytes"] / row["n_records"],
            row.get("n_score_bytes", 0) / row["n_records"],
        )
    if model is not None:
        row = _row(model, "--jobs 2")
        _add(answer, "faithfulness by the local model, on CPUs", row["cpu_ms"] / 1e3, None, None)
    answer.remarks.append(
        "Assumptions: traces like those measured (the columns tell their size); a cost a record as with two workers, "
        "which is flat (see above); 64 cores that are free and as fast; storage and, between machines, a network that "
        "deliver what they read. Lines are not compressed, and blocks wait beside them until the job ends, so that as "
        "much again is needed on disk for so long. Adding up is done by one process and is part of the cost, a judge "
        "is not."
    )
    answer.remarks.append(
        "A model on GPUs takes 10⁹ × pairs a trace ÷ (3600 × pairs/s a GPU) GPU-hours, pairs being sentences of an "
        f"answer beside passages: {N_TRACES * 10 / (3600 * 10_000):,.0f} at 10 pairs a trace and 10,000 pairs/s."
    )
    foretold = _foretold(answers.get("growth"))
    if foretold:
        answer.remarks.append(foretold)
    return answer


def _foretold(growth: Answer | None) -> str | None:
    """How well the cost of a small input tells that of the largest, which is what the model rests on."""
    rows = [row for row in (growth.rows if growth else ()) if row["name"].startswith("one process")]
    if len(rows) < 3:
        return None
    small, large = rows[1], rows[-1]
    minutes = [row["cpu_us"] * large["n_records"] / 6e7 for row in (small, large)]
    return (
        f"Check: by the cost of {small['n_records']:,} records, {large['n_records']:,} take {minutes[0]:.2f} "
        f"core-minutes; measured were {minutes[1]:.2f} ({minutes[1] / minutes[0] - 1:+.0%})."
    )


def _row(answer: Answer, name: str) -> dict[str, Any]:
    """The row of a way, on disk where both were measured."""
    return [row for row in answer.rows if row["name"] == name][-1]


def _add(answer: Answer, name: str, cpu_s: float, n_bytes: float | None, n_score_bytes: float | None) -> None:
    hours = cpu_s * N_TRACES / 3600
    answer.add(
        name=name,
        core_hours=hours,
        days=hours / 64 / 24,
        read_tb=None if n_bytes is None else n_bytes * N_TRACES / _TB,
        read_gb_s=None if n_bytes is None else n_bytes * 64 / cpu_s / 1e9,
        written_tb=None if n_score_bytes is None else n_score_bytes * N_TRACES / _TB,
    )
