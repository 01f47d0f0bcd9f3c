"""Where scores become a score table: what ``agentunit score --out`` writes, and what ``agentunit export`` does."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import IO, Any

import msgspec

from agentunit.addons.scale._parquet_table import TableUnavailable, load_parquet, new_header
from agentunit.addons.scale.table_run import ScoreTableWriter
from agentunit.backends.services import judge_described
from agentunit.cli.options import InputFailure
from agentunit.cli.outputs import Output
from agentunit.core.results import CaseScores, InputError, MetricUse, decode_case_scores, decode_json, encode_json
from agentunit.engine.scoring.judging import judged_metrics
from agentunit.engine.scoring.records import RunTotals
from agentunit.engine.scoring.score_rows import record_rows
from agentunit.engine.scoring.scored_run import infos_as_data
from agentunit.metrics.base import describe
from agentunit.metrics.functions import note_checks
from agentunit.metrics.registry import parameters
from agentunit.reports.figures import counted
from agentunit.reports.reported_run import ReportedRun
from agentunit.reports.reporters import ReportError, RunReporter, whole_file
from agentunit.store.runs import StoredDecision
from agentunit.traces.native import STDIN
from agentunit.urls import shown_source


def check_table_output(out: str) -> None:
    """Refuse a table that cannot be written before anything is scored."""
    try:
        load_parquet()
    except TableUnavailable as error:
        raise InputFailure(f"--out {out}: {error}") from None


class TableSink:
    """A score table: the run is its metadata."""

    def __init__(self, out: str, metrics: Sequence[Any], files: Sequence[str], max_errors: int) -> None:
        name = os.path.basename(out.rstrip("/"))[: -len(".parquet")] or "scores"
        settings: dict[str, Any] = {
            "metrics": [metric.name for metric in metrics],
            "metric_infos": infos_as_data(metrics),
            "metric_uses": [MetricUse(each.name, describe(each).version, parameters(each)) for each in metrics],
            "sources": ["standard input" if each == STDIN else shown_source(each) for each in files],
            "max_errors": max_errors,
        }
        if judged_metrics(metrics):
            settings["judge"] = judge_described()
        self._infos = {metric.name: describe(metric) for metric in metrics}
        self._output = Output(out, keeps_unfinished=False)
        # As plain data at once: what cannot be written must not come to light at the end.
        self._writer = ScoreTableWriter(self._output.stream, new_header(name, decode_json(encode_json(settings))))

    def __enter__(self) -> TableSink:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._writer.__exit__(kind, error, trace)
        self._output.__exit__(kind, error, trace)

    def add(self, case: CaseScores) -> None:
        """Keep the rows of a case until there is a row group of them."""
        for name in note_checks(self._infos, case.scores):
            self._writer.header.settings["metric_infos"][name].update(msgspec.to_builtins(self._infos[name]))
        self._writer.add_case(case)

    def write(self, lines: Sequence[bytes]) -> None:
        """Keep the rows of cases that another process scored."""
        for line in lines:
            self.add(decode_case_scores(line))

    def append(self, lines: IO[bytes], n_bytes: int) -> None:
        """Keep the rows of cases that another process scored."""
        self.write(lines.read(n_bytes).splitlines())

    def finish(self, totals: RunTotals) -> None:
        """Write the metadata, and put the file in its place."""
        header = self._writer.header
        header.status, header.finished_at, header.n_done = "finished", time.time(), totals.n_cases
        if totals.judge_problems:
            header.settings["judge_problems"] = list(totals.judge_problems)
        errors = [InputError(shown_source(each.source), each.line, each.reason) for each in totals.input_errors]
        self._writer.finish(n_input_errors=totals.n_input_errors, input_errors=errors)
        self._output.finish(keep=totals.n_cases > 0)

    def remove_unfinished(self) -> None:
        """Remove the file that was begun."""
        self._writer.__exit__(None, None, None)
        self._output.remove_unfinished()


def write_parquet(reported: ReportedRun, path: str | os.PathLike[str]) -> int:
    """Write the run as a score table (extra ``parquet``), which can be read again; returns the number of rows."""
    run = reported.run
    try:
        load_parquet()
    except TableUnavailable as error:
        raise ReportError(str(error)) from None
    with whole_file(path) as stream, ScoreTableWriter(stream, run.header) as writer:
        for case in reported.scored_cases():
            place = (run.header.id, case.position, case.repeat, case.case_id)
            rows = record_rows(
                *place, case.scores, writer.infos, failed=case.agent_failed, elapsed_s=case.agent_elapsed_s
            )
            writer.add_rows(rows)
        summary = reported.summary
        writer.finish(
            n_input_errors=summary.n_input_errors,
            input_errors=summary.input_errors,
            decision=_own_decision(reported),
        )
    return writer.n_rows


def _own_decision(reported: ReportedRun) -> StoredDecision | None:
    """The newest decision of the run itself, masked as its rows are."""
    own = [decision for decision in reported.run.decisions if decision.is_own]
    if not own:
        return None
    decision = msgspec.Raw(encode_json(reported.mask.data(decode_json(bytes(own[-1].decision)))))
    return msgspec.structs.replace(own[-1], headline=reported.mask.text(own[-1].headline), decision=decision)


def _write(reported: ReportedRun, target: str) -> str:
    return counted(write_parquet(reported, target), "row")


PARQUET = RunReporter("the score table, which show and compare read again (extra parquet)", (".parquet",), _write)
