"""Runs as one HTML file: the whole viewer with its data inside. One that would be too large becomes a bundle."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from html import escape, unescape
from pathlib import Path

from agentunit.addons.viewer._bundle import MOST_FILE_BYTES, BundledRun, BundlePart, Folder, bundle_parts, one_file
from agentunit.addons.viewer._library import Library
from agentunit.addons.viewer._opened_runs import SCORE_TABLE
from agentunit.core.codec import encode_record
from agentunit.reports.figures import counted, counted_cases
from agentunit.reports.markdown import run_markdown
from agentunit.reports.printable import xml_safe
from agentunit.reports.reported_run import ReportedRun
from agentunit.reports.reporters import STDOUT, ReportError, RunReporter, whole_file
from agentunit.reports.several_runs import describe_several
from agentunit.store.run_store import RunStore
from agentunit.store.runs import WrittenRecord
from agentunit.store.score_blocks import ScoreBuffer
from agentunit.store.sqlite import Store
from agentunit.urls import is_remote

_AT_ONCE = 512


def write_html(reported: ReportedRun, path: str | os.PathLike[str], *, most_bytes: int = MOST_FILE_BYTES) -> str:
    """Write a report as one file, or as a folder beside it where that would be too large; returns how much it was."""
    target = os.fspath(path)
    with ExitStack() as opened:
        runs = [_bundled(run, number, opened) for number, run in enumerate(reported.runs)]
        parts: list[BundlePart] = []
        n_bytes = 0
        coming = bundle_parts(runs, personal=reported.mask.show_all, source="file")
        for part in coming:
            parts.append(part)
            # As base64.
            n_bytes += len(part[1]) * 4 // 3
            if n_bytes > most_bytes:
                return _as_bundle(target, parts, coming, len(runs), most_bytes)
        title = _title(reported)
        with whole_file(target) as stream:
            for text in one_file(parts, f"{title}: AgentUnit", _without_script(reported)):
                stream.write(text.encode("utf-8", "replace"))
    n_records = sum(run.opened.columns.n_rows for run in runs)
    if reported.others:
        return f"{counted(len(runs), 'run')}, {counted(n_records, 'record')}"
    return counted_cases(reported.run.n_cases, reported.run.n_repeats, n_records)


def _as_bundle(target: str, parts: list[BundlePart], coming: Iterator[BundlePart], n_runs: int, most_bytes: int) -> str:
    too_large = f"more than {most_bytes / 1e6:.0f} MB in one file"
    if target == STDOUT or is_remote(target):
        raise ReportError(f"the run takes {too_large}: 'agentunit view RUN --bundle DIR' writes it in parts")
    folder = Path(target).with_suffix("")
    folder = folder.with_name(f"{folder.name}-bundle")
    if folder.exists():
        raise ReportError(f"the run takes {too_large}, and {folder} exists already: remove it, or name another file")
    with Folder(folder) as written:
        for name, content in parts:
            written.add(name, content)
        parts.clear()
        for name, content in coming:
            written.add(name, content)
    return f"not written, it would be {too_large}; {folder}/ in its place: {written.described(n_runs)}"


def _bundled(reported: ReportedRun, number: int, opened: ExitStack) -> BundledRun:
    run_id = reported.run.header.id
    store: RunStore | None = reported.store
    if store is None:
        folder = opened.enter_context(tempfile.TemporaryDirectory(prefix="agentunit-html-"))
        store = opened.enter_context(Store(os.path.join(folder, "runs.db")))
        _take_in(store, reported)
    library = Library(store.address, only=[run_id], reopen=store.reopened)
    opened.callback(library.close)
    return BundledRun(library, library.run(run_id), reported, f"data/runs/{number}/")


def _take_in(store: RunStore, reported: ReportedRun) -> None:
    """A run that is in no store, as a store keeps it."""
    header = reported.run.header
    recorded = reported.run.read_records is not None or reported.path is None
    store.create_run(
        header.name,
        agentunit_version=header.agentunit_version,
        settings={**header.settings, **({} if recorded else {SCORE_TABLE: True})},
        n_planned=header.n_planned,
        run_id=header.id,
        created_at=header.created_at,
    )
    lines: list[WrittenRecord] = []
    scores = ScoreBuffer()

    def flush() -> None:
        with store.transaction():
            store.add_lines(lines)
            store.add_blocks(header.id, scores.take())
        lines.clear()

    for case in reported.recorded_cases():
        line = encode_record(case.record)
        lines.append((header.id, case.position, case.repeat, case.case_id, int(case.failed), case.elapsed_s, line))
        scores.add(case.position, case.repeat, case.scores)
        if len(lines) >= _AT_ONCE:
            flush()
    flush()
    # Labels of a file stand in the run; nobody labels in a page that is written.
    store.add_labels(reported.run.labels)
    for decision in reported.run.decisions:
        store.add_decision(header.id, decision)
    store.set_status(header.id, header.status, finished_at=header.finished_at)


def _title(reported: ReportedRun) -> str:
    if not reported.others:
        return reported.header.name
    return describe_several([run.label for run in reported.runs], reported.baseline_label)


def _without_script(reported: ReportedRun) -> str:
    """What a reader sees where no script runs, as in the preview of a mail: the report of a pull request."""
    # Markdown guards signs by entities, which plain text would show as they are.
    return f"<pre>{escape(xml_safe(unescape(run_markdown(reported))), quote=True)}</pre>"


HTML = RunReporter(
    "the viewer with the run inside, one self-contained page for people", (".html", ".htm"), write_html, several=True
)
