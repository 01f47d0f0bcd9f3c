"""Runs as files that a browser reads without a server of ours: a folder of small parts, or one page with all inside.

Parts are gzipped JSON of at most 1 MB; how they are called and what is in them is at the end of types.ts.
"""

from __future__ import annotations

import base64
import gzip
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import Any

from msgspec import Struct, field

import agentunit
from agentunit.addons.viewer._api import API_VERSION, catalog
from agentunit.addons.viewer._case_columns import NOTE, STATUS_LETTERS, state_of_row
from agentunit.addons.viewer._case_detail import CaseFacts, case_detail
from agentunit.addons.viewer._case_table import masked_lines
from agentunit.addons.viewer._comparing import comparison_data, comparison_page
from agentunit.addons.viewer._decided import finding_data, words_of
from agentunit.addons.viewer._label_desk import label_queues, labels_page
from agentunit.addons.viewer._library import Library, OpenRun
from agentunit.addons.viewer._page import page_foot, page_head
from agentunit.addons.viewer._run_pages import run_page
from agentunit.addons.viewer._shown_case import ShownCase
from agentunit.addons.viewer._transcript import FIRST_EVENTS, MOST_EVENTS, Transcript
from agentunit.addons.viewer._trends import runs_of_lines, trend_of
from agentunit.addons.viewer._verdicts import LETTERS
from agentunit.core.codec import encode_record
from agentunit.core.results import encode_json
from agentunit.engine.deciding.cut_offs import own_threshold
from agentunit.engine.deciding.stored import is_made_now
from agentunit.engine.scoring.scored_run import run_from_store
from agentunit.engine.scoring.slices import slices_of_run
from agentunit.reports.figures import counted
from agentunit.reports.reported_run import Mask, ReportedCase, ReportedRun
from agentunit.store.runs import is_again

MOST_FILE_BYTES = 20 * 10**6
_SHARD_BYTES = 900_000
_ROWS_A_SHARD = 5_000
_MASKED_AT_ONCE, _BYTES_MASKED_AT_ONCE = 32, 1 << 18
_MOST_FIELDS = 4
_MOST_MEDIA_BYTES = 8 * 10**6
# Of so few runs every pair is compared; of more each with the one before it of the same name.
_ALL_PAIRS_UP_TO = 4
_LEVEL = 9
# The table has room for more, but the beginnings of texts cannot be told from those in the cases by a compressor.
_QUERY_LENGTH, _ANSWER_LENGTH = 100, 60

BundlePart = tuple[str, bytes]


class BundledRun(Struct):
    """A run to be bundled, and what of it lies where."""

    library: Library
    opened: OpenRun
    reported: ReportedRun
    folder: str
    page: dict[str, Any] = field(default_factory=dict)
    columns: list[int] = field(default_factory=list)
    cases: list[int] = field(default_factory=list)
    events: dict[str, list[int]] = field(default_factory=dict)
    media: dict[str, list[int]] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The id of the run."""
        return self.opened.header.id

    def layout(self) -> dict[str, Any]:
        """Where its parts are (``BundledRun`` of types.ts)."""
        return {
            "id": self.id,
            "folder": self.folder,
            "n_records": self.opened.columns.n_rows,
            "columns": self.columns,
            "cases": self.cases,
            "events": self.events,
            "media": self.media,
        }


def write_bundle(library: Library, folder: Path, *, pair: tuple[str, str] | None = None, personal: bool = False) -> str:
    """Write runs of a library to a folder; returns how much was written.

    ``pair`` are the ids of two runs that are to be compared, the baseline first.
    """
    with ExitStack() as opened:
        runs = []
        for number, header in enumerate(library.headers()):
            run = library.run(header.id)
            reported = opened.enter_context(library.reported(run, personal))
            runs.append(BundledRun(library, run, reported, f"data/runs/{number}/"))
        with Folder(folder) as written:
            for path, content in bundle_parts(runs, pair=pair, personal=personal):
                written.add(path, content)
    return written.described(len(runs))


def bundle_parts(
    runs: Sequence[BundledRun], *, personal: bool, source: str = "bundle", pair: tuple[str, str] | None = None
) -> Iterator[BundlePart]:
    """All parts; the index comes last."""
    for run in runs:
        yield from _run_parts(run)
    lines = [run.page["line"] for run in runs]
    yield _part("data/runs.json.gz", runs_of_lines(lines))
    names = dict.fromkeys(line["name"] for line in lines)
    yield _part("data/trends.json.gz", [trend_of(name, [run.page for run in runs]) for name in names])
    yield _part("data/catalog.json.gz", catalog())
    pairs = []
    for page in _comparisons(runs, pair):
        old, new = page["baseline"]["id"], page["candidate"]["id"]
        pairs.append({"baseline": old, "candidate": new})
        ids = [run.id for run in runs]
        # A baseline that is not among the runs has the number -1.
        yield _part(f"data/compare-{ids.index(old) if old in ids else -1}-{ids.index(new)}.json.gz", page)
    first = pairs[0] if pairs and (len(runs) <= 2 or runs[0].reported.others) else None
    index = {
        "api": API_VERSION,
        "agentunit_version": agentunit.__version__,
        "source": source,
        "address": "",
        "masked": not personal,
        "can_unmask": False,
        "can_label": False,
        "rater": "",
        "run": runs[0].id if len(runs) == 1 and first is None else None,
        "compare": first,
        "comparisons": pairs,
        "layout": {"runs": [run.layout() for run in runs]},
    }
    yield _part("data/index.json.gz", index)


def _part(path: str, value: Any) -> BundlePart:
    return path, _compressed(encode_json(value))


def _compressed(content: bytes) -> bytes:
    # The time of writing would make two bundles of one run differ.
    return gzip.compress(content, _LEVEL, mtime=0)


# One run


def _run_parts(run: BundledRun) -> Iterator[BundlePart]:
    opened, reported = run.opened, run.reported
    fields = run.library.slice_fields(opened) if opened.recorded else []
    asked = {table.by for table in reported.slices if not table.differences}
    for by in fields[:_MOST_FIELDS] if not asked else ():
        reported.add_slices(slices_of_run(reported.run, by))
    run.page = run_page(reported, opened.columns, fields)
    yield _part(f"{run.folder}run.json.gz", run.page)
    with run.library.store() as store:
        scored = run_from_store(store, run.id)
        yield _part(f"{run.folder}labels.json.gz", labels_page(scored, reported.mask))
        numbers = {opened.columns.place(at): at for at in range(opened.columns.n_rows)}
        yield _part(f"{run.folder}queues.json.gz", label_queues(store, scored, numbers))
    yield from _case_parts(run)


class _Shard:
    """Data that becomes one part when enough of it is there."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.items: list[Any] = []
        self.n_bytes = 0

    def add(self, item: Any, n_bytes: int) -> None:
        self.items.append(item)
        self.n_bytes += n_bytes

    def is_full_with(self, n_bytes: int) -> bool:
        return bool(self.items) and self.n_bytes + n_bytes > _SHARD_BYTES


def _case_parts(run: BundledRun) -> Iterator[BundlePart]:
    """The cases with their rows of the table, and what of them lies apart: long transcripts and media."""
    shard = _Shard(0)
    rows = _Rows(run, 0)
    decision = run.reported.decision
    # As the server does it: what was not decided when the run was made is said of the run alone.
    known = () if is_made_now(decision) else decision.findings
    findings = {finding.case_id: finding_data(finding, decision) for finding in known}
    words = words_of(decision)
    for number, (shown, tries) in enumerate(_records(run)):
        case = shown.case
        transcript = Transcript(case.record.trace, run.library.media_root)
        facts = CaseFacts(
            run.id,
            run.opened.infos,
            run.opened.rules,
            tries,
            findings.get(case.case_id),
            [label for label in run.opened.columns.labels if label.place == case.place],
            run.opened.recorded,
            has_pages_again=False,
        )
        detail = case_detail(shown, facts, transcript)
        letter = LETTERS[detail["verdict"]]
        rows.add(case, detail, [] if words is None else [state_of_row(words.get(case.case_id), letter)])
        n_bytes = len(encode_json(detail))
        if shard.is_full_with(n_bytes):
            yield from _flushed(run, shard)
            shard = _Shard(number)
        shard.add(detail, n_bytes)
        if len(rows) == _ROWS_A_SHARD:
            yield rows.part()
            rows = _Rows(run, number + 1)
        yield from _apart(run, shown, transcript)
    if shard.items:
        yield from _flushed(run, shard)
    if len(rows):
        yield rows.part()


def _flushed(run: BundledRun, shard: _Shard) -> Iterator[BundlePart]:
    yield f"{run.folder}cases-{len(run.cases)}.json.gz", _compressed(packed_cases(shard.items))
    run.cases.append(shard.first)


def _records(run: BundledRun) -> Iterator[tuple[ShownCase, list[ShownCase]]]:
    """The planned records in dataset order, each with all tries of its case.

    Tries again are no records of their own here: rows of the table are counted, and cases are found by their rows.
    """
    metrics, mask = run.opened.columns.metrics, run.reported.mask
    waiting: list[tuple[ShownCase, list[ShownCase]]] = []
    n_bytes = 0
    for _, records in groupby(run.reported.recorded_cases(), key=lambda case: case.position):
        tries: list[ShownCase] = []
        for case in records:
            case.scores = {name: case.scores[name] for name in metrics if name in case.scores}
            tries.append(ShownCase(case, mask, run.library.media_root))
            n_bytes += len(encode_record(case.record))
        waiting += [(shown, tries) for shown in tries if not is_again(shown.case.repeat)]
        if len(waiting) >= _MASKED_AT_ONCE or n_bytes >= _BYTES_MASKED_AT_ONCE:
            yield from _masked_together(waiting, mask)
            waiting, n_bytes = [], 0
    yield from _masked_together(waiting, mask)


def _masked_together(
    waiting: list[tuple[ShownCase, list[ShownCase]]], mask: Mask
) -> Iterator[tuple[ShownCase, list[ShownCase]]]:
    """The same records, masked: many at once take half as long as one by one."""
    for (shown, _), masked in zip(waiting, mask.cases([shown.recorded for shown, _ in waiting]), strict=True):
        shown.masked = masked
    yield from waiting


def _apart(run: BundledRun, shown: ShownCase, transcript: Transcript) -> Iterator[BundlePart]:
    key, mask = shown.key, run.reported.mask
    if len(transcript) > FIRST_EVENTS:
        yield _part(f"{run.folder}outline-{key}.json.gz", transcript.outline(mask))
        starts = run.events[key] = []
        shard = _Shard(0)
        for offset in range(0, len(transcript), MOST_EVENTS):
            for at, event in enumerate(transcript.page(offset, MOST_EVENTS, mask), offset):
                n_bytes = len(encode_json(event))
                if shard.is_full_with(n_bytes):
                    yield _part(f"{run.folder}events-{key}-{len(starts)}.json.gz", shard.items)
                    starts.append(shard.first)
                    shard = _Shard(at)
                shard.add(event, n_bytes)
        yield _part(f"{run.folder}events-{key}-{len(starts)}.json.gz", shard.items)
        starts.append(shard.first)
    for media in (*shown.media, *transcript.all_media()):
        if media.refused is None and media.n_bytes <= _MOST_MEDIA_BYTES:
            run.media.setdefault(key, []).append(media.n)
            yield f"{run.folder}media-{key}-{media.n}.bin", media.content


class _Rows:
    """Rows of the table of cases, column by column (``CaseColumns`` of types.ts)."""

    def __init__(self, run: BundledRun, first: int) -> None:
        self._run = run
        self._first = first
        self._queries: list[str] = []
        self._answers: list[str] = []
        self._states: list[str] = []
        metrics = run.opened.columns.metrics
        self._columns: dict[str, list[Any]] = {
            name: [] for name in ("position", "repeat", "case_id", "verdict", "failed", "elapsed_s", "n_labels")
        }
        self._values: dict[str, list[float | None]] = {name: [] for name in metrics}
        self._statuses: dict[str, list[str]] = {name: [] for name in metrics}
        self._cuts: dict[str, list[float | None]] = {name: [] for name in metrics}

    def __len__(self) -> int:
        return len(self._queries)

    def add(self, case: ReportedCase, detail: dict[str, Any], states: Sequence[str]) -> None:
        facts = {
            "verdict": LETTERS[detail["verdict"]],
            "failed": int(case.failed),
            "n_labels": sum(label["metric"] != NOTE for label in detail["labels"]),
            **{name: detail[name] for name in ("position", "repeat", "case_id", "elapsed_s")},
        }
        for name, value in facts.items():
            self._columns[name].append(value)
        self._states += states
        self._queries.append(detail["query"] or "")
        self._answers.append(detail["answer"] or detail["error"] or "")
        for name in self._values:
            score = case.scores.get(name)
            self._values[name].append(None if score is None else score.value)
            self._statuses[name].append("-" if score is None else STATUS_LETTERS[score.status])
            info = self._run.opened.infos[name]
            self._cuts[name].append(None if score is None else own_threshold(info, score.result.detail))

    def part(self) -> BundlePart:
        # They were masked with the case.
        shown = Mask(show_all=True)
        columns = {
            "first": self._first,
            **self._columns,
            "verdict": "".join(self._columns["verdict"]),
            "query": masked_lines(self._queries, _QUERY_LENGTH, shown),
            "answer": masked_lines(self._answers, _ANSWER_LENGTH, shown),
            "state": self._states,
            "values": list(self._values.values()),
            "statuses": ["".join(each) for each in self._statuses.values()],
            "cuts": [[] if not any(each) else each for each in self._cuts.values()],
        }
        path = f"{self._run.folder}columns-{len(self._run.columns)}.json.gz"
        self._run.columns.append(self._first)
        return _part(path, columns)


# Comparisons


def _comparisons(runs: Sequence[BundledRun], pair: tuple[str, str] | None) -> Iterator[dict[str, Any]]:
    """The comparisons that were made for the report; where there were none, those of runs with each other."""
    made = False
    ids = {run.id for run in runs}
    for run in runs:
        decision, baseline = run.reported.decision, run.reported.baseline
        if decision.comparison is not None and baseline is not None:
            made = True
            page = comparison_page(run.reported, baseline)
            if baseline.header.id not in ids:
                page["cases"] = [{**case, "baseline_key": None} for case in page["cases"]]
            yield page
    for old, new in () if made else _pairs(runs, pair):
        with new.library.reported(new.opened, new.reported.mask.show_all) as reported:
            yield comparison_data(reported, old.id)


def _pairs(runs: Sequence[BundledRun], pair: tuple[str, str] | None) -> Iterator[tuple[BundledRun, BundledRun]]:
    """Older and newer runs; of two that were named the first is the baseline, whichever is older."""
    if pair is not None and len(runs) == 2:
        yield (runs[0], runs[1]) if runs[0].id == pair[0] else (runs[1], runs[0])
        return
    for at, new in enumerate(runs):
        earlier = runs[at + 1 :]
        if len(runs) > _ALL_PAIRS_UP_TO:
            earlier = [run for run in earlier if run.opened.header.name == new.opened.header.name][:1]
        for old in earlier:
            if old.library is new.library:
                yield old, new


# Where parts go


class Folder:
    """A folder that has its name only when all is written."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._unfinished = folder.with_name(f"{folder.name}.{os.getpid()}.part")
        shutil.rmtree(self._unfinished, ignore_errors=True)
        self._unfinished.mkdir(parents=True)
        self._n_files = self._n_bytes = 0

    def add(self, path: str, content: bytes) -> None:
        """Write one file."""
        target = self._unfinished / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        self._n_files += 1
        self._n_bytes += len(content)

    def __enter__(self) -> Folder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._finish()
        finally:
            shutil.rmtree(self._unfinished, ignore_errors=True)

    def _finish(self) -> None:
        """Write the page itself, and give the folder its name."""
        self.add("index.html", (page_head("bundle") + page_foot()).encode())
        if self._folder.exists():
            self._folder.rmdir()
        os.replace(self._unfinished, self._folder)

    def described(self, n_runs: int) -> str:
        """How much was written."""
        return f"{counted(n_runs, 'run')}, {counted(self._n_files, 'file')}, {self._n_bytes / 1e6:.1f} MB"


def one_file(parts: Sequence[BundlePart], title: str, without_script: str = "") -> Iterator[str]:
    """The page with all parts inside; ``without_script`` is markup for readers in which no script runs."""
    yield page_head("file", title, without_script)
    for path, content in parts:
        inside = base64.b64encode(content).decode()
        yield f'<script type="application/octet-stream" data-path="{path}">{inside}</script>\n'
    yield page_foot()


# Cases of a bundle, packed: what most cases of a shard share stands once (``PackedCases`` of types.ts).


def packed_cases(details: Sequence[dict[str, Any]]) -> bytes:
    """Cases as their pages show them, as one part of a bundle."""
    by_metric: dict[str, list[dict[str, Any]]] = {}
    for detail in details:
        for score in detail["scores"]:
            by_metric.setdefault(score["metric"], []).append(score)
    shared = {metric: _shared(scores) for metric, scores in by_metric.items()}
    rows = []
    for detail in details:
        row = {key: value for key, value in detail.items() if key not in ("scores", "subject")}
        if row["repeats"] == [row["key"]]:
            del row["repeats"]
        rows.append(row)
    common = _shared(rows)
    packed = [
        {
            **_own(row, common),
            "scores": [[score["metric"], _own(score, shared[score["metric"]])] for score in detail["scores"]],
        }
        for row, detail in zip(rows, details, strict=True)
    ]
    return encode_json({"common": common, "scores": shared, "rows": packed})


def _shared(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Of each field that all rows have, the value that most of them have, where that is more than one."""
    found = {}
    for key in rows[0] if rows else ():
        if all(key in row for row in rows):
            written = [encode_json(row[key]) for row in rows]
            [(value, n)] = Counter(written).most_common(1)
            if n > 1:
                found[key] = rows[written.index(value)][key]
    return found


def _own(row: dict[str, Any], shared: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in shared or shared[key] != value}
