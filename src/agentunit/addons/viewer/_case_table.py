"""The table of cases: one page of it, sorted, filtered, searched and with repeats folded, as the browser asks."""

from __future__ import annotations

import threading
from array import array
from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import compress
from math import fsum, isnan, nan
from typing import Any

from msgspec import Struct

from agentunit.addons.viewer._case_columns import NOTE, OpenStore, RecordColumns, texts_of
from agentunit.addons.viewer._verdicts import ASIDE, ERROR, FAIL, PASS, UNKNOWN, WORDS
from agentunit.addons.viewer.filters import Columns, parse_filter
from agentunit.engine.deciding.cut_offs import mean_threshold
from agentunit.reports.printable import printable_line
from agentunit.reports.reported_run import Mask

MOST_ROWS = 500
QUERY_LENGTH, ANSWER_LENGTH = 160, 120
_ORDERS_KEPT = 12
_SEARCHES_KEPT = 4
# What waits for a search takes what was found by then, and asks again.
_PATIENCE_S = 0.25
_VERDICT_ORDER = {ord(letter): at for at, letter in enumerate((ERROR, FAIL, UNKNOWN, ASIDE, PASS))}


class CasesQuery(Struct, frozen=True):
    """Which rows are wanted (``CasesQuery`` of types.ts)."""

    offset: int = 0
    limit: int = 100
    sort: str = "position"
    desc: bool = False
    filter: str = ""
    search: str = ""
    fold: bool = False


class FoldedColumns:
    """The repeats of each case as one row: values are means, and a case passes where all of its repeats do."""

    def __init__(self, records: RecordColumns) -> None:
        self.records = records
        starts = [at for at in range(records.n_rows) if at == 0 or records.place(at)[0] != records.place(at - 1)[0]]
        self.spans = list(zip(starts, [*starts[1:], records.n_rows], strict=True))
        self.n_rows = len(self.spans)
        self._kept: dict[str, array[float]] = {}
        self._verdicts: bytes | None = None

    def names(self) -> Sequence[str]:
        """The metrics."""
        return self.records.names()

    def numbers(self, name: str) -> array[float]:
        """The means of a column; of ``labels`` the sums."""
        if name not in self._kept:
            column = self.records.numbers(name)
            gather: Callable[[Sequence[float]], float] = fsum if name == "labels" else _mean
            self._kept[name] = array("d", [gather(column[start:end]) for start, end in self.spans])
        return self._kept[name]

    def texts(self, name: str) -> Sequence[str]:
        """The texts of the first repeat; of questions and answers those of all."""
        texts = self.records.texts(name)
        if not texts:
            return texts
        if name == "answer":
            return ["\n".join(texts[start:end]) for start, end in self.spans]
        return [texts[start] for start, _ in self.spans]

    def verdicts(self) -> bytes:
        """One letter a case."""
        if self._verdicts is None:
            letters = self.records.verdicts()
            self._verdicts = bytes(_folded(letters[start:end]) for start, end in self.spans)
        return self._verdicts


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if not isnan(value)]
    return fsum(known) / len(known) if known else nan


def _folded(letters: bytes) -> int:
    return next((ord(each) for each in (ERROR, FAIL, UNKNOWN, ASIDE) if ord(each) in letters), ord(PASS))


class _RecordSearch:
    """Looks through all records for a text; what was found can be read at any time."""

    def __init__(self, columns: RecordColumns, open_store: OpenStore, words: Sequence[str]) -> None:
        self.n_searched = 0
        self.error: Exception | None = None
        self._is_done = False
        self._found = bytearray(columns.n_rows)
        self._columns = columns
        self._open = open_store
        self._words = words
        self._ended = threading.Event()

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will be found: all was looked at, or nobody asks any more."""
        return self._ended.is_set()

    def run(self) -> None:
        """Look at all records, unless it is stopped."""
        try:
            with self._open() as store:
                for _, position, repeat, case_id, _, _, line in store.lines(self._columns.run_id):
                    if self._ended.is_set():
                        return
                    at = self._columns.number((position, repeat))
                    if at is not None:
                        text = "\n".join((case_id, *texts_of(line))).casefold()
                        self._found[at] = all(word in text for word in self._words)
                        self.n_searched += 1
            self._is_done = True
        except Exception as error:  # noqa: BLE001  # it is raised where somebody waits for it
            self.error = error
        finally:
            self._ended.set()

    def stop(self) -> None:
        """Let it end, and whoever waits for it."""
        self._ended.set()

    def look(self) -> tuple[bytes, bool]:
        """One byte a record, and whether all were looked at."""
        self._ended.wait(_PATIENCE_S)
        if self.error is not None:
            raise self.error
        return bytes(self._found), self._is_done


class CaseTable:
    """The cases of one run as the table shows them. Texts are masked here, page by page."""

    def __init__(self, open_store: OpenStore, records: RecordColumns) -> None:
        self.records = records
        self._open = open_store
        self._lock = threading.RLock()
        self._folded: FoldedColumns | None = None
        self._orders: OrderedDict[tuple[Any, ...], list[int]] = OrderedDict()
        self._searches: OrderedDict[tuple[str, ...], _RecordSearch] = OrderedDict()
        self._is_searching = False

    def page(self, query: CasesQuery, mask: Mask) -> dict[str, Any]:
        """One page (``CasesPage`` of types.ts). What is wrong with the filter is a ``FilterError``."""
        records = self.records
        fold = query.fold and records.n_repeats > 1
        columns: Columns = self._fold() if fold else records
        limit = max(0, min(query.limit, MOST_ROWS))
        rows, searched = self._wanted(query, columns, fold)
        offset = max(0, query.offset)
        shown = rows[offset : offset + limit]
        return {
            "offset": offset,
            "total": len(rows),
            "n_all": columns.n_rows,
            "searched": searched,
            "n_records": records.n_rows,
            "rows": self._folded_rows(shown, mask) if fold else self._rows(shown, mask),
        }

    def _fold(self) -> FoldedColumns:
        with self._lock:
            if self._folded is None:
                self._folded = FoldedColumns(self.records)
            return self._folded

    def _wanted(self, query: CasesQuery, columns: Columns, fold: bool) -> tuple[Sequence[int], int]:
        """The numbers of the rows in the order that is asked for, and how many records a search has looked at."""
        every = self.records.n_rows
        words = tuple(query.search.casefold().split())
        key = (query.sort, query.desc, query.filter.strip(), words, fold)
        with self._lock:
            if key in self._orders:
                self._orders.move_to_end(key)
                return self._orders[key], every
        if not words and not key[2] and query.sort in ("", "position"):
            plain = range(columns.n_rows)
            return (plain[::-1] if query.desc else plain), every
        keep = parse_filter(query.filter, columns.names())(columns) if key[2] else None
        searched = every
        if words:
            search = self._search(words)
            found, done = search.look()
            searched = every if done else min(search.n_searched, every - 1)
            if fold:
                found = bytes(any(found[start:end]) for start, end in self._fold().spans)
            keep = found if keep is None else bytes(map(int.__and__, keep, found))
        rows = list(range(columns.n_rows) if keep is None else compress(range(columns.n_rows), keep))
        rows = _sorted(rows, query.sort, query.desc, columns)
        if searched == every:
            with self._lock:
                self._orders[key] = rows
                while len(self._orders) > _ORDERS_KEPT:
                    self._orders.popitem(last=False)
        return rows, searched

    def _search(self, words: tuple[str, ...]) -> _RecordSearch:
        """The search for these words; earlier ones that nobody waits for any more are given up."""
        with self._lock:
            kept = self._searches.get(words)
            if kept is None or kept.error is not None:
                self._searches[words] = _RecordSearch(self.records, self._open, words)
                while len(self._searches) > _SEARCHES_KEPT:
                    self._searches.popitem(last=False)[1].stop()
                if not self._is_searching:
                    self._is_searching = True
                    threading.Thread(target=self._run_searches, daemon=True, name="agentunit-search").start()
            self._searches.move_to_end(words)
            return self._searches[words]

    def _run_searches(self) -> None:
        """One search at a time, the latest first: many at once would starve all that others ask."""
        while True:
            with self._lock:
                waiting = [search for search in self._searches.values() if not search.has_ended]
                if not waiting:
                    self._is_searching = False
                    return
            waiting[-1].run()

    def _rows(self, numbers: Sequence[int], mask: Mask) -> list[dict[str, Any]]:
        records = self.records
        read, scores = records.records_at(numbers), records.scores_at(numbers)
        queries = masked_lines([each.query for each in read], QUERY_LENGTH, mask)
        answers = masked_lines([each.answer for each in read], ANSWER_LENGTH, mask)
        counts, cuts = _counts(self.records), records.cuts_at(numbers)
        rows = []
        for at, number in enumerate(numbers):
            position, repeat = records.place(number)
            each = read[at]
            of_row = [(metric, *scores[metric][at]) for metric in records.metrics]
            rows.append(
                {
                    "key": f"{position}-{repeat}",
                    "case_id": each.case_id,
                    "repeat": repeat,
                    "query": queries[at],
                    "answer": answers[at],
                    "verdict": WORDS[records.rules.letter(each.case_id, each.failed, of_row)],
                    "failed": each.failed,
                    "elapsed_s": each.elapsed_s,
                    "values": [None if isnan(value) else value for _, value, _ in of_row],
                    "statuses": "".join(status for _, _, status in of_row),
                    "cuts": [cuts[metric][at] if metric in cuts else None for metric in records.metrics],
                    "n_labels": counts.get((position, repeat), 0),
                    "repeats": None,
                }
            )
        return rows

    def _folded_rows(self, numbers: Sequence[int], mask: Mask) -> list[dict[str, Any]]:
        folded = self._fold()
        firsts = [folded.spans[number][0] for number in numbers]
        rows = self._rows(firsts, mask)
        letters, verdicts, times = self.records.verdicts(), folded.verdicts(), folded.numbers("time")
        for row, number in zip(rows, numbers, strict=True):
            start, end = folded.spans[number]
            values = [folded.numbers(metric)[number] for metric in self.records.metrics]
            said = letters[start:end]
            is_known = all(chr(each) in (PASS, FAIL, ERROR) for each in said)
            row["values"] = [None if isnan(value) else value for value in values]
            cuts = self.records.cuts_at(range(start, end))
            row["cuts"] = [mean_threshold(cuts.get(metric, ())) for metric in self.records.metrics]
            row["verdict"] = WORDS[chr(verdicts[number])]
            row["elapsed_s"] = None if isnan(times[number]) else times[number]
            row["n_labels"] = int(folded.numbers("labels")[number])
            row["failed"] = ord(ERROR) in said
            row["repeats"] = {"n": end - start, "n_passed": said.count(ord(PASS)) if is_known else None}
        return rows


def masked_lines(texts: Sequence[str], most: int, mask: Mask) -> list[str]:
    """Texts for the cells of a table: masked, then cut to one line."""
    return [printable_line(text, most) for text in mask.data(list(texts))]


def _counts(records: RecordColumns) -> dict[tuple[int, int], int]:
    counts: dict[tuple[int, int], int] = {}
    for label in records.labels:
        counts[label.place] = counts.get(label.place, 0) + (label.metric != NOTE)
    return counts


def _sorted(rows: list[int], sort: str, desc: bool, columns: Columns) -> list[int]:
    """Rows in the order that is asked for; those without a value last, whichever way."""
    if sort in ("", "position"):
        return rows[::-1] if desc else rows
    if sort == "case":
        ids = columns.texts("id")
        return sorted(rows, key=ids.__getitem__, reverse=desc)
    if sort == "verdict":
        verdicts = columns.verdicts()
        return sorted(rows, key=lambda at: _VERDICT_ORDER[verdicts[at]], reverse=desc)
    if sort not in (*columns.names(), "time", "repeat", "labels"):
        raise ValueError(f"there is no column {sort!r} to sort by")
    values = columns.numbers(sort).tolist()
    known = [at for at in rows if values[at] == values[at]]
    known.sort(key=values.__getitem__, reverse=desc)
    if len(known) == len(rows):
        return known
    return known + [at for at in rows if values[at] != values[at]]
