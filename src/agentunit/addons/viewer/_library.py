"""The runs that a viewer shows: opened once, kept while nothing about them changes, added up in the background."""

from __future__ import annotations

import hashlib
import os
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import msgspec

import agentunit
from agentunit.addons.viewer._case_columns import RecordColumns
from agentunit.addons.viewer._case_detail import CaseFacts, case_detail
from agentunit.addons.viewer._case_table import CaseTable
from agentunit.addons.viewer._decided import finding_data, words_of
from agentunit.addons.viewer._run_pages import pending_page, run_page, slice_data
from agentunit.addons.viewer._shown_case import ShownCase, key_of
from agentunit.addons.viewer._transcript import Transcript
from agentunit.addons.viewer._verdicts import CaseRules
from agentunit.core.results import Score, encode_json
from agentunit.core.score_block import Place
from agentunit.engine.deciding.decision import Decision
from agentunit.engine.deciding.stored import decoded
from agentunit.engine.scoring.case_fields import field_values
from agentunit.engine.scoring.scored_run import info_of, recorded_infos, run_from_store
from agentunit.engine.scoring.slices import slices_of_run
from agentunit.reports.reported_run import Mask, ReportedCase, ReportedRun
from agentunit.store.opening import open_store, shown_address, sqlite_file
from agentunit.store.run_store import RunStore
from agentunit.store.runs import RunHeader, StoredRecord, is_again

_PATIENCE_S = 0.4
_RUNS_KEPT, _CASES_KEPT, _CASE_BYTES_KEPT = 8, 16, 150_000_000
_LOOKED_AT, _MOST_SLICES, _MOST_FIELDS, _LONGEST_SLICE = 300, 24, 8, 60
# The page of a run of so many records takes so long that it is kept beside the store, and of a long one its columns
# are read ahead.
_KEPT_FROM, _LONG_FROM = 5_000, 50_000
# What is longer is a transcript, and tells nothing about fields.
_LONGEST_LINE = 1_000_000
_MOST_DIGITS = 12


class UnknownRun(LookupError):
    """A run, case or page that is not there."""


class SharedMask(Mask):
    """A mask that several threads use: what it has seen is one list of pseudonyms."""

    def __init__(self, *, show_all: bool = False) -> None:
        super().__init__(show_all=show_all)
        self._lock = threading.RLock()

    def case(self, case: ReportedCase) -> ReportedCase:
        """A case, masked."""
        with self._lock:
            return super().case(case)

    def data(self, value: Any) -> Any:
        """Plain data, masked."""
        with self._lock:
            return super().data(value)


class OpenRun:
    """One run as it was at one moment."""

    def __init__(self, library: Library, header: RunHeader, stamp: str) -> None:
        self.header = header
        self.stamp = stamp
        self.library = library
        with library.store() as store:
            infos = recorded_infos(header.settings)
            scored = store.metrics_scored(header.id)
            named = [name for name in header.settings.get("metrics") or () if name in scored]
            metrics = list(dict.fromkeys([*named, *scored]))
            self.infos = {name: replace(infos.get(name) or info_of(name), name=name) for name in metrics}
            self.rules = CaseRules(store, header, self.infos)
        degrees = [name for name, info in self.infos.items() if info.mean_of]
        self.columns = RecordColumns(
            library.store, header.id, metrics, self.rules, degrees, lambda: words_of(self.decision)
        )
        self.table = CaseTable(library.store, self.columns)

    @cached_property
    def decision(self) -> Decision | None:
        """What was decided when the run was made; ``None`` where that was not kept."""
        with self.library.store() as store:
            kept = [stored for stored in store.decisions(self.header.id) if stored.is_own]
        return decoded(kept[-1]) if kept else None

    @property
    def recorded(self) -> bool:
        """Whether the run has records, and not scores alone."""
        return not self.header.settings.get("score_table")

    def load_ahead(self) -> None:
        """Read the columns that sorting and filtering need."""
        for metric in self.columns.metrics:
            self.columns.numbers(metric)

    def place(self, key: str) -> Place:
        """Position and repeat that a key names."""
        position, _, repeat = key.partition("-")
        if not (position.isdecimal() and repeat.isdecimal() and position.isascii() and repeat.isascii()):
            raise UnknownRun(f"a case is named by its position and repeat, such as 12-0; received {key!r:.80}")
        place = (int(position[:_MOST_DIGITS]), int(repeat[:_MOST_DIGITS]))
        is_known = self.columns.number(place) is not None or is_again(place[1])
        if not is_known or max(len(position), len(repeat)) > _MOST_DIGITS:
            raise UnknownRun(f"run {self.header.label} has no record {key:.80}")
        return place


class Library:
    """All runs of a store. Every method may be called from any thread.

    ``only`` limits it to these ids. ``files`` are what commands call runs that were read from files for this look, by
    their ids. Files that records name are shown where they lie in ``media_root``. ``reopen``
    opens the store in another way than by its address, which does not hold a password.
    """

    def __init__(
        self,
        address: str,
        *,
        only: Sequence[str] | None = None,
        files: Mapping[str, str] | None = None,
        media_root: Path | None = None,
        reopen: Callable[[], RunStore] | None = None,
    ) -> None:
        self.address = address
        self._reopen = reopen or partial(open_store, address, read_only=True)
        self.shown_address = shown_address(address)
        self.media_root = media_root
        self.only = None if only is None else list(only)
        self._files = files or {}
        self._lock = threading.RLock()
        self._masks = {False: SharedMask(), True: SharedMask(show_all=True)}
        # One at a time: what is added up in the background must not starve those who wait for a page.
        self._workers = ThreadPoolExecutor(1, thread_name_prefix="agentunit-viewer")
        self._open_runs: OrderedDict[str, OpenRun] = OrderedDict()
        self._headers: tuple[str, list[RunHeader]] | None = None
        self._pages: dict[tuple[Any, ...], tuple[str, Any]] = {}
        self._futures: dict[tuple[Any, ...], tuple[str, Future[Any]]] = {}
        self._cases: OrderedDict[tuple[str, str, Place], tuple[ReportedCase, Transcript]] = OrderedDict()
        self._case_bytes: dict[tuple[str, str, Place], int] = {}
        self._n_finished = 0

    def close(self) -> None:
        """Stop what is going on in the background."""
        self._workers.shutdown(wait=False, cancel_futures=True)

    @contextmanager
    def store(self) -> Iterator[RunStore]:
        """The store, to read."""
        with self._reopen() as opened:
            yield opened

    def mask(self, personal: bool = False) -> Mask:
        """The mask of this session: a value has the same pseudonym on every page."""
        return self._masks[personal]

    # What is there

    def stamp(self) -> str:
        """Changes when the store may have changed."""
        file = sqlite_file(self.address)
        if file is None:
            with self.store() as store:
                return _digest([_header_stamp(store, header) for header in self._read_headers(store)])
        found = []
        for name in (file, f"{file}-wal"):
            try:
                facts = os.stat(name)
                found.append((facts.st_mtime_ns, facts.st_size))
            except OSError:
                found.append((0, 0))
        return _digest(found)

    @property
    def pulse(self) -> str:
        """Changes when anything that a page shows may have changed, also by work in the background."""
        return f"{self.stamp()}.{self._n_finished}"

    def headers(self) -> list[RunHeader]:
        """The runs, the newest first."""
        stamp = self.stamp()
        with self._lock:
            if self._headers is not None and self._headers[0] == stamp and not self._has_running():
                return self._headers[1]
            with self.store() as store:
                headers = self._read_headers(store)
            self._headers = (stamp, headers)
            return headers

    def _has_running(self) -> bool:
        # A process that was killed leaves no trace in the file: only asking tells that its run goes on no more.
        return self._headers is not None and any(header.status == "running" for header in self._headers[1])

    def _read_headers(self, store: RunStore) -> list[RunHeader]:
        if self.only is None:
            return store.runs()
        found = [store.find_run(run_id) for run_id in self.only]
        return sorted(found, key=lambda header: header.created_at, reverse=True)

    def header(self, run_id: str) -> RunHeader:
        """The header of a run, by its id alone."""
        for header in self.headers():
            if header.id == run_id:
                return header
        raise UnknownRun(f"there is no run {run_id!r:.120}")

    def run(self, run_id: str) -> OpenRun:
        """A run, opened."""
        header = self.header(run_id)
        with self.store() as store:
            stamp = _header_stamp(store, header)
        with self._lock:
            opened = self._open_runs.get(run_id)
            if opened is None or opened.stamp != stamp:
                opened = OpenRun(self, header, stamp)
                self._open_runs[run_id] = opened
                while len(self._open_runs) > _RUNS_KEPT:
                    self._open_runs.popitem(last=False)
            self._open_runs.move_to_end(run_id)
            return opened

    # Pages

    def made(self, key: tuple[Any, ...], stamp: str, make: Callable[[], Any], *, wait: bool = False) -> Any:
        """What ``make`` makes, kept as long as the stamp stays the same; ``None`` while it is being made.

        While a newer one is made, the earlier one is given.
        """
        with self._lock:
            kept = self._pages.get(key)
            if kept is not None and kept[0] == stamp:
                return kept[1]
            # One at a time of each: a run that grows faster than it is added up must not make a queue.
            running = self._futures.get(key)
            if running is None:
                self._futures[key] = running = (stamp, self._workers.submit(make))
        try:
            page = running[1].result(None if wait else _PATIENCE_S)
        except NotYet:
            running[1].add_done_callback(self._finished)
            return None if kept is None else kept[1]
        finally:
            if running[1].done():
                with self._lock:
                    self._futures.pop(key, None)
        with self._lock:
            self._pages[key] = (running[0], page)
        if wait and running[0] != stamp:
            return self.made(key, stamp, make, wait=True)
        return page

    def _finished(self, future: Future[Any]) -> None:
        self._n_finished += 1

    def run_page(self, run_id: str, *, personal: bool = False, wait: bool = False) -> dict[str, Any]:
        """The page of a run; pending while it is being made."""
        opened = self.run(run_id)

        def make() -> dict[str, Any]:
            is_kept = opened.columns.n_rows >= _KEPT_FROM and not personal
            kept = PageFile(self.address, opened.header.id, opened.stamp) if is_kept else None
            if kept is not None and (earlier := kept.read()) is not None:
                return earlier
            if opened.columns.n_rows >= _LONG_FROM:
                opened.load_ahead()
            with self.reported(opened, personal) as reported:
                page = run_page(reported, opened.columns, self.slice_fields(opened))
            if kept is not None:
                kept.write(page)
            return page

        page: dict[str, Any] | None = self.made(("run", run_id, personal), opened.stamp, make, wait=wait)
        if page is None:
            return pending_page(opened.header, opened.columns, opened.infos, self.mask(personal))
        return page

    @contextmanager
    def reported(self, opened: OpenRun, personal: bool) -> Iterator[ReportedRun]:
        """A run as reports see it."""
        with self.store() as store:
            run_id = opened.header.id
            reported = ReportedRun(run_from_store(store, run_id), store=store, path=self._files.get(run_id))
            reported.mask = self.mask(personal)
            yield reported

    def slices(self, run_id: str, by: str, *, personal: bool = False, wait: bool = True) -> dict[str, Any]:
        """The scores of a run by a field of its cases."""
        opened = self.run(run_id)

        def make() -> dict[str, Any]:
            with self.reported(opened, personal) as reported:
                reported.add_slices(slices_of_run(reported.run, by))
                return slice_data(reported.slices[0], reported.infos)

        table: dict[str, Any] = self.made(("slices", run_id, by, personal), opened.stamp, make, wait=wait)
        return table

    def slice_fields(self, opened: OpenRun) -> list[str]:
        """Fields by which the first cases fall into a few groups."""
        values: dict[str, set[str]] = {}
        n_cases: Counter[str] = Counter()
        n = min(_LOOKED_AT, opened.columns.n_rows)
        with self.store() as store:
            for written in store.lines(opened.header.id, [opened.columns.place(at) for at in range(n)]):
                if len(written[6]) > _LONGEST_LINE:
                    continue
                metadata = store.record_of(written).case.metadata
                for name in metadata if isinstance(metadata, dict) else ():
                    field = f"metadata.{name}"
                    found = field_values(metadata, field)
                    values.setdefault(field, set()).update(found)
                    n_cases[field] += all(len(value) <= _LONGEST_SLICE for value in found)
        few = [
            field
            for field, found in values.items()
            if n_cases[field] > n / 2 and 2 <= len(found) <= min(_MOST_SLICES, max(2, n // 2))
        ]
        return few[:_MOST_FIELDS]

    # Cases

    def keys(self, run_id: str, case_id: str) -> list[str]:
        """The keys of all repeats of a case, tries again last."""
        self.header(run_id)
        with self.store() as store:
            found = store.case(run_id, case_id)
        return [key_of(stored.position, stored.repeat) for stored in found]

    def recorded_case(self, opened: OpenRun, key: str) -> tuple[ReportedCase, Transcript]:
        """A record with its scores as they are kept, and its transcript."""
        place = opened.place(key)
        kept_as = (opened.header.id, opened.stamp, place)
        with self._lock:
            if kept_as in self._cases:
                self._cases.move_to_end(kept_as)
                return self._cases[kept_as]
        with self.store() as store:
            found = next(iter(store.lines(opened.header.id, [place])), None)
            if found is None:
                raise UnknownRun(f"run {opened.header.label} has no record {key}")
            _, position, repeat, case_id, failed, elapsed_s, line = found
            record = store.record_of(found)
            scores = store.scores_at(opened.header.id, position, repeat)
        case = _reported(opened, StoredRecord(position, repeat, case_id, bool(failed), elapsed_s, record), scores)
        read = (case, Transcript(case.record.trace, self.media_root))
        with self._lock:
            self._cases[kept_as] = read
            self._case_bytes[kept_as] = len(line)
            while len(self._cases) > 1 and (
                len(self._cases) > _CASES_KEPT or sum(self._case_bytes.values()) > _CASE_BYTES_KEPT
            ):
                oldest, _ = self._cases.popitem(last=False)
                del self._case_bytes[oldest]
        return read

    def case(self, run_id: str, key: str, *, personal: bool = False) -> dict[str, Any]:
        """The page of a case."""
        opened, mask = self.run(run_id), self.mask(personal)
        case, transcript = self.recorded_case(opened, key)
        tries = [case]
        if opened.columns.n_repeats > 1 or opened.columns.has_tries_again:
            tries = self._tries(opened, case.case_id)
        shown = {each.place: ShownCase(each, mask, self.media_root) for each in tries}
        facts = CaseFacts(
            run_id,
            opened.infos,
            opened.rules,
            list(shown.values()),
            _finding(opened.decision, case.case_id, mask),
            opened.columns.labels,
            opened.recorded,
        )
        return case_detail(shown[case.position, case.repeat], facts, transcript)

    def _tries(self, opened: OpenRun, case_id: str) -> list[ReportedCase]:
        """All records of a case, those of tries again last."""
        with self.store() as store:
            scores = dict(store.scores(opened.header.id, case_id=case_id))
            return [
                _reported(opened, each, scores.get(each.place, {})) for each in store.case(opened.header.id, case_id)
            ]


def _reported(opened: OpenRun, stored: StoredRecord, scores: Mapping[str, Score]) -> ReportedCase:
    return ReportedCase(
        stored.position,
        stored.repeat,
        stored.case_id,
        bool(stored.failed),
        stored.elapsed_s,
        stored.record,
        {name: scores[name] for name in opened.columns.metrics if name in scores},
        recorded=opened.recorded,
        agent_known=opened.recorded,
    )


def _finding(decision: Decision | None, case_id: str, mask: Mask) -> dict[str, Any] | None:
    """What was found about a case, masked."""
    for finding in () if decision is None else decision.findings:
        if finding.case_id == case_id and decision is not None:
            return finding_data(replace(finding, why=mask.text(finding.why)), decision)
    return None


def _header_stamp(store: RunStore, header: RunHeader) -> str:
    labels = [(label.id, label.made_at) for label in store.labels()]
    facts = (header.id, header.status, header.n_done, header.n_failed, header.finished_at, header.settings)
    n_again = sum(1 for _ in store.record_rows(header.id, again=True))
    return _digest([facts, store.n_blocks(header.id), labels, n_again, store.n_decisions(header.id)])


def _digest(value: Any) -> str:
    return hashlib.sha256(encode_json(value)).hexdigest()[:16]


# Pages of long runs, kept beside their store: adding up a million cases once is enough.


_FOLDER = ".viewer"


class PageFile:
    """The masked page of a run as it was at one moment. It is a convenience: what cannot be kept is made again."""

    def __init__(self, address: str, run_id: str, stamp: str) -> None:
        file = sqlite_file(address)
        named = hashlib.sha256(f"{run_id} {agentunit.__version__}".encode()).hexdigest()[:16]
        self._path = None if file is None else Path(f"{os.path.abspath(file)}{_FOLDER}") / f"{named}.json"
        self._stamp = stamp

    def read(self) -> dict[str, Any] | None:
        """The page; ``None`` where none is kept, or the run has changed since."""
        if self._path is not None:
            with suppress(OSError, msgspec.DecodeError, KeyError, TypeError):
                kept = msgspec.json.decode(self._path.read_bytes())
                if kept["stamp"] == self._stamp:
                    page: dict[str, Any] = kept["page"]
                    return page
        return None

    def write(self, page: dict[str, Any]) -> None:
        """Keep a page in place of an earlier one."""
        if self._path is not None:
            with suppress(OSError):
                # As the store: for its owner alone.
                self._path.parent.mkdir(mode=0o700, exist_ok=True)
                unfinished = self._path.with_suffix(f".{os.getpid()}.part")
                try:
                    unfinished.write_bytes(encode_json({"stamp": self._stamp, "page": page}))
                    os.replace(unfinished, self._path)
                finally:
                    # A full disk would keep what was written of it.
                    unfinished.unlink(missing_ok=True)
