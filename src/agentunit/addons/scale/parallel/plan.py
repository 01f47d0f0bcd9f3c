"""What a long job would take, told from a sample of its input."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from math import sqrt
from typing import Any

from msgspec import Struct

from agentunit.addons.scale.parallel.units import FileUnit, file_units
from agentunit.core.records import Record
from agentunit.engine.scoring.judging import Sending, judged_metrics, plan_sending
from agentunit.engine.scoring.records import Run
from agentunit.formulas.running import RunningStatistics
from agentunit.traces.compressed import BROKEN_STREAM, ZstandardMissing, decompressed
from agentunit.traces.grouping import GroupBy
from agentunit.traces.line_ranges import LineRange
from agentunit.traces.reading import TraceFiles
from agentunit.urls import open_binary

SHARES = (0.01, 0.1, 1.0)
"""The shares of the records of which a plan says how well they would tell each mean."""

_PLACES = 16
_PLACE_BYTES = 1 << 18
_OPENING_BYTES = 4 << 20
_MOST_RECORDS = 2000
_MOST_CPU_S = 10.0
_MOST_WARM_UP_S = 2.0
_FEWEST_VALUES = 30
_Z_95 = 1.96


class MetricPlan(Struct):
    """One metric and backend in the sample. ``half_widths`` bound its mean (95 %) by each of the ``SHARES``.

    ``cpu_share`` is its part of the time; a half width is ``None`` where too few values would be there to tell.
    """

    metric: str
    backend: str
    n_scored: int
    mean: float
    cpu_share: float
    half_widths: list[float | None]


class JobPlan(Struct):
    """What scoring an input would take. Everything but ``n_files`` and ``n_bytes`` is estimated, from ``n_sampled``.

    ``exact`` says that the sample was everything.
    """

    n_files: int
    n_bytes: int
    n_records: int
    exact: bool
    n_sampled: int
    cpu_s_a_record: float
    cpu_hours: float
    memory_bytes: int | None
    metrics: list[MetricPlan]
    judge: Sending | None = None


def plan_job(source: TraceFiles, metrics: Sequence[Any], format_name: str | None, group_by: GroupBy) -> JobPlan:
    """Sample the files of a source, and score the sample with all metrics that ask no judge."""
    judged = judged_metrics(metrics)
    scored_here = [metric for metric in metrics if metric not in judged]
    # What is loaded once is not what a record takes: each part is done once before it is timed.
    _Sample(source, format_name, group_by).records(most=1)
    begun = time.process_time()
    sample = _Sample(source, format_name, group_by)
    records = sample.records()
    read_s = (time.process_time() - begun) / max(1, len(records))
    begun = time.process_time()
    for _ in Run(_spread(records), scored_here, aggregated=False):
        if time.process_time() - begun > _MOST_WARM_UP_S:
            break
    values: dict[tuple[str, str], RunningStatistics] = {}
    elapsed_s: dict[tuple[str, str], float] = {}
    begun, n_scored = time.process_time(), 0
    run = Run(_spread(records), scored_here)
    for case in run:
        n_scored += 1
        for name, score in case.scores.items():
            key = (name, score.backend)
            elapsed_s[key] = elapsed_s.get(key, 0.0) + score.elapsed
            if score.value is not None:
                values.setdefault(key, RunningStatistics()).add(score.value)
        if time.process_time() - begun > _MOST_CPU_S:
            break
    score_s = (time.process_time() - begun) / max(1, n_scored)
    n_records = sample.n_records(len(records))
    all_s = sum(elapsed_s.values()) or 1.0
    cpu_s = read_s + score_s
    return JobPlan(
        n_files=len(source.files),
        n_bytes=sample.n_bytes,
        n_records=n_records,
        exact=sample.is_whole,
        n_sampled=n_scored,
        cpu_s_a_record=cpu_s,
        cpu_hours=cpu_s * n_records / 3600,
        memory_bytes=_memory_bytes(),
        metrics=[
            MetricPlan(
                name,
                backend,
                each.n,
                each.mean or 0.0,
                elapsed_s[name, backend] / all_s * score_s / cpu_s,
                [half_width(each, n_records * each.n / n_scored, share) for share in SHARES],
            )
            for (name, backend), each in values.items()
        ],
        judge=plan_sending(judged, records, n_cases=n_records, exact=sample.is_whole) if judged else None,
    )


def half_width(values: RunningStatistics, n_values: float, share: float) -> float | None:
    """How far the mean of a share of ``n_values`` may be from that of all that could have been recorded, 95 %.

    z · sd / √(share · n); ``None`` for fewer than 30 values, or where the sample has no spread to tell from.
    """
    variance = values.sample_variance
    n = share * n_values
    if not variance or n < _FEWEST_VALUES or values.n < _FEWEST_VALUES:
        return None
    return _Z_95 * sqrt(variance / n)


class _Sample:
    """Records from places that are spread over the files, and what they say about how many there are."""

    def __init__(self, source: TraceFiles, format_name: str | None, group_by: GroupBy) -> None:
        self._source = source
        self._format = format_name
        self._group_by = group_by
        self._units = file_units(source.files, format_name)
        self.n_bytes = sum(unit.n_bytes for unit in self._units)
        self._n_sampled_bytes = 0.0
        self.is_whole = False

    def n_records(self, n_sampled: int) -> int:
        """How many records all files hold."""
        if self.is_whole or not self._n_sampled_bytes:
            return n_sampled
        return round(n_sampled * self.n_bytes / self._n_sampled_bytes)

    def records(self, most: int = _PLACES) -> list[Record]:
        """The records of at most this many places, or a few more."""
        step = max(1, len(self._units) // most)
        chosen = self._units[step // 2 :: step]
        found: list[Record] = []
        for unit in chosen:
            found.extend(each for each in self._read(unit) if isinstance(each, Record))
        self.is_whole = self._n_sampled_bytes >= self.n_bytes
        return found

    def _read(self, unit: FileUnit) -> Iterator[Any]:
        if unit.lines is not None:
            end = min(unit.lines.end, unit.lines.start + _PLACE_BYTES)
            with open_binary(unit.path) as raw:
                data = LineRange(unit.lines.start, end).stream(raw).read()
            self._n_sampled_bytes += len(data)
        else:
            data, share = _opening(unit.path, unit.n_bytes)
            self._n_sampled_bytes += unit.n_bytes * share
        with tempfile.TemporaryDirectory(prefix="agentunit-plan-") as folder:
            # Under its own name: formats look at the ending too.
            path = os.path.join(folder, os.path.basename(unit.path).removesuffix(".gz").removesuffix(".zst"))
            with open(path, "wb") as file:
                file.write(data)
            yield from TraceFiles([path], format=self._format, group_by=self._group_by, expected=self._source.expected)


def _opening(path: str, n_bytes: int) -> tuple[bytes, float]:
    """The first bytes of a file, decompressed, and which share of the file they are."""
    try:
        with open_binary(path) as raw:
            data = decompressed(raw).read(_OPENING_BYTES)
            return data, 1.0 if len(data) < _OPENING_BYTES or not n_bytes else min(1.0, raw.tell() / n_bytes)
    except (OSError, ZstandardMissing, *BROKEN_STREAM):
        return b"", 0.0


def _spread(records: Sequence[Record]) -> Sequence[Record]:
    """At most so many of the records, from all places."""
    return records[:: max(1, -(-len(records) // _MOST_RECORDS))]


def _memory_bytes() -> int | None:
    """The most memory that this process has had."""
    try:
        import resource
    except ImportError:  # pragma: no cover  # not on Windows
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
