"""The records of a run column by column: read from the store when they are asked for, and kept as plain arrays.

A million records with ten metrics take 90 MB this way, and the first page of them needs none of it.
"""

from __future__ import annotations

import re
import threading
from array import array
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from math import nan

import msgspec
from msgspec import Struct

from agentunit.addons.viewer._verdicts import ASIDE, ERROR, PASS, CaseRules
from agentunit.core.records import Outcome, outcome_text
from agentunit.core.results import decode_json
from agentunit.core.score_block import Place, ScoreBlock
from agentunit.engine.deciding.cut_offs import THRESHOLD, usable_threshold
from agentunit.engine.scoring.stored_rows import planned_rows
from agentunit.store.labels import labels_of_run
from agentunit.store.run_store import RunStore

OpenStore = Callable[[], AbstractContextManager[RunStore]]
STATUS_LETTERS = {"ok": "o", "informational": "i", "not_applicable": "n", "error": "e"}
NOTE = "note"
"""The metric under which a note about no metric is kept: it is no label."""
# Tables show less of a text; it is masked before it is cut, so that no half of an address is left unmasked.
READ_LENGTH = 2_000
_TEXTS_KEPT = 5_000


_UNFINISHED = re.compile(r"(?:[\w@.+%()/:-]|(?<=[\d)]) )+\Z")
_LONGEST_WORD = 200


def beginning(text: str, most: int) -> str:
    """At most so many characters of a text, cut where no word, address or number is torn: half of one is not masked.

    >>> beginning("pay 4111 1111 1111 1111", 18), beginning("short", 18)
    ('pay ', 'short')
    """
    if len(text) <= most:
        return text
    kept = text[:most]
    torn = _UNFINISHED.search(kept, max(0, most - _LONGEST_WORD))
    return kept if torn is None else kept[: torn.start()]


class _QueryOnly(Struct):
    query: str | None = None


class _Said(Struct):
    """The parts of a record that a table shows; the rest is skipped, not decoded."""

    case: _QueryOnly
    outcome: msgspec.Raw = msgspec.Raw(b"null")


_said_decoder = msgspec.json.Decoder(_Said)


class RecordText(Struct):
    """What a table shows of a record beside its scores."""

    case_id: str
    query: str
    answer: str
    failed: bool
    elapsed_s: float | None


def texts_of(line: bytes) -> tuple[str, str]:
    """The question of a written record, and its answer or error, whole."""
    try:
        said = _said_decoder.decode(line)
        query, outcome = said.case.query or "", decode_json(bytes(said.outcome))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return "", ""
    if isinstance(outcome, dict):
        error = outcome.get("error")
        answer = outcome_text(Outcome(output=outcome["output"])) if outcome.get("output") is not None else None
        return query, answer or (error if isinstance(error, str) else "") or ""
    return query, "" if outcome is None else outcome_text(outcome) or str(outcome)


def state_of_row(word: str | None, letter: str) -> str:
    """What the case of a record is called in filters; empty where nothing was checked."""
    return word or ("fine" if letter == PASS else "")


class RecordColumns:
    """The finished records of a run in dataset order. Row numbers count from 0. Safe to use from several threads."""

    def __init__(
        self,
        open_store: OpenStore,
        run_id: str,
        metrics: Sequence[str],
        rules: CaseRules,
        degrees: Collection[str] = (),
        words: Callable[[], Mapping[str, str] | None] = lambda: None,
    ) -> None:
        self.run_id = run_id
        self.metrics = tuple(metrics)
        # The metrics whose scores may name thresholds of their own.
        self.degrees = frozenset(degrees)
        self.rules = rules
        # What the cases are called that are not fine; ``None`` where that was not kept.
        self._words = words
        self._open = open_store
        self._lock = threading.RLock()
        self._values: dict[str, array[float]] = {}
        self._statuses: dict[str, bytes] = {}
        self._cuts: dict[str, dict[Place, float]] = {}
        self._texts: dict[str, list[str]] = {}
        self._elapsed: array[float] | None = None
        self._verdicts: bytes | None = None
        with open_store() as store:
            size = store.size(run_id)
            self.n_cases, self.n_rows, self.n_repeats = size.n_cases, size.n_records, size.n_repeats
            self.labels = labels_of_run(store, run_id)
            self.has_tries_again = any(store.record_rows(run_id, again=True))
            self._dense = self._is_dense(store)
        self._places: list[Place] | None = None
        self._numbers: dict[Place, int] | None = None
        self._failed: bytes | None = None
        self._read: dict[Place, RecordText] = {}
        self._ids: list[str] | None = None

    def _is_dense(self, store: RunStore) -> bool:
        """Whether the n-th record is at position n, which spares reading the places of all."""
        if self.n_repeats > 1 or not self.n_rows:
            return False
        return store.bounds(self.run_id) == (0, self.n_rows - 1)

    # Places

    def place(self, number: int) -> Place:
        """Position and repeat of a row."""
        return (number, 0) if self._dense else self._rows()[0][number]

    def number(self, place: Place) -> int | None:
        """The row of a place; ``None`` where the run has none."""
        if self._dense:
            return place[0] if place[1] == 0 and 0 <= place[0] < self.n_rows else None
        with self._lock:
            if self._numbers is None:
                self._numbers = {each: at for at, each in enumerate(self._rows()[0])}
            return self._numbers.get(place)

    def _rows(self) -> tuple[list[Place], list[str], bytes]:
        with self._lock:
            if self._places is None or self._ids is None or self._failed is None:
                places: list[Place] = []
                ids, failed = [], bytearray()
                with self._open() as store:
                    for row in store.record_rows(self.run_id, again=False):
                        if len(places) == self.n_rows:
                            # Records that came since are for the next look.
                            break
                        places.append(row.place)
                        ids.append(row.case_id)
                        failed.append(row.failed)
                self.n_rows = len(places)
                self._places, self._ids, self._failed = places, ids, bytes(failed)
            return self._places, self._ids, self._failed

    def place_bounds(self, numbers: Sequence[int]) -> tuple[int, int]:
        """The first and the last position of these rows."""
        positions = [self.place(number)[0] for number in numbers]
        return min(positions), max(positions)

    # Columns of all rows

    def names(self) -> Sequence[str]:
        """The metrics."""
        return self.metrics

    def numbers(self, name: str) -> array[float]:
        """A metric's values, or ``time``, ``repeat`` or ``labels``; NaN where unknown."""
        if name in self.metrics:
            return self._column(name)[0]
        if name == "repeat":
            return array("d", [self.place(at)[1] + 1.0 for at in range(self.n_rows)])
        if name == "labels":
            return array("d", self.label_counts())
        return self._times()

    def label_counts(self) -> list[float]:
        """How many labels each record has."""
        counts = [0.0] * self.n_rows
        for label in self.labels:
            at = self.number(label.place)
            if at is not None and label.metric != NOTE:
                counts[at] += 1.0
        return counts

    def statuses(self, metric: str) -> bytes:
        """One letter a row."""
        return self._column(metric)[1]

    def is_loaded(self, metric: str) -> bool:
        """Whether a column is at hand."""
        return metric in self._values

    def _column(self, metric: str) -> tuple[array[float], bytes]:
        with self._lock:
            if metric not in self._values:
                values = array("d", bytes(0))
                values.extend([nan] * self.n_rows)
                statuses = bytearray(b"-" * self.n_rows)
                with self._open() as store:
                    for block in store.blocks(self.run_id, metric):
                        if planned := planned_rows(block):
                            self._fill(planned, values, statuses)
                self._values[metric], self._statuses[metric] = values, bytes(statuses)
            return self._values[metric], self._statuses[metric]

    def _fill(self, block: ScoreBlock, values: array[float], statuses: bytearray) -> None:
        letters = [ord(STATUS_LETTERS[status]) for status, _, _ in block.producers]
        known = array("d", [nan if value is None else value for value in block.values])
        of_row = bytes([letters[producer] for producer in block.producer_numbers()])
        first = block.positions[0]
        if self._dense and isinstance(block.positions, range) and first + len(known) <= self.n_rows:
            values[first : first + len(known)] = known
            statuses[first : first + len(known)] = of_row
            return
        for place, value, letter in zip(block.places(), known, of_row, strict=True):
            at = self.number(place)
            if at is not None:
                values[at], statuses[at] = value, letter

    def _times(self) -> array[float]:
        with self._lock:
            if self._elapsed is None:
                self._read_texts()
            assert self._elapsed is not None
            return self._elapsed

    def texts(self, name: str) -> Sequence[str]:
        """All ids, questions, answers or states of cases; no states where they are not known."""
        if name == "id":
            return self._rows()[1]
        if name == "state":
            return self._states()
        with self._lock:
            if name not in self._texts:
                self._read_texts()
            return self._texts[name]

    def _states(self) -> Sequence[str]:
        words = self._words()
        if words is None:
            return ()
        return [
            state_of_row(words.get(case_id), chr(letter))
            for case_id, letter in zip(self.texts("id"), self.verdicts(), strict=True)
        ]

    def _read_texts(self) -> None:
        queries, answers, elapsed = [""] * self.n_rows, [""] * self.n_rows, array("d", [nan] * self.n_rows)
        with self._open() as store:
            for _, position, repeat, _, _, elapsed_s, line in store.lines(self.run_id):
                at = self.number((position, repeat))
                if at is not None:
                    query, answer = texts_of(line)
                    queries[at], answers[at] = beginning(query, READ_LENGTH), beginning(answer, READ_LENGTH)
                    elapsed[at] = elapsed_s or nan
        self._texts, self._elapsed = {"question": queries, "answer": answers}, elapsed

    def verdicts(self) -> bytes:
        """One letter a row."""
        with self._lock:
            if self._verdicts is None:
                columns = [(self.rules.rules[metric], *self._column(metric)) for metric in self.rules.rules]
                letters = self.rules.letters(columns, self.n_rows)
                with self._open() as store:
                    failed = store.finished(self.run_id, failed=True)
                    aside = [
                        stored.place for case_id in self.rules.aside for stored in store.case(self.run_id, case_id)
                    ]
                for places, letter in ((failed, ERROR), (aside, ASIDE)):
                    for at in map(self.number, places):
                        if at is not None:
                            letters[at] = ord(letter)
                self._verdicts = bytes(letters)
            return self._verdicts

    # Some rows

    def scores_at(self, numbers: Sequence[int]) -> dict[str, list[tuple[float, str]]]:
        """Value and letter of status of some rows, by metric; of a long run without reading all the others."""
        found: dict[str, list[tuple[float, str]]] = {}
        few = self._dense and bool(numbers) and max(numbers) - min(numbers) < 4 * max(256, len(numbers))
        for metric in self.metrics:
            if few and not self.is_loaded(metric):
                found[metric] = self._scores_near(metric, numbers)
            else:
                values, statuses = self._column(metric)
                found[metric] = [(values[at], chr(statuses[at])) for at in numbers]
        return found

    def cuts_at(self, numbers: Sequence[int]) -> dict[str, list[float | None]]:
        """The thresholds that the scores of some rows name themselves, by metric; only of degrees."""
        found: dict[str, list[float | None]] = {}
        few = self._dense and bool(numbers) and max(numbers) - min(numbers) < 4 * max(256, len(numbers))
        for metric in self.degrees:
            with self._lock:
                known = self._cuts.get(metric)
                if known is None:
                    within = self.place_bounds(numbers) if few else None
                    with self._open() as store:
                        known = {
                            place: cut
                            for block in store.blocks(self.run_id, metric, THRESHOLD, within)
                            for place, number in zip(block.places(), block.amounts or (), strict=False)
                            if (cut := usable_threshold(number)) is not None
                        }
                    if not few:
                        self._cuts[metric] = known
            found[metric] = [known.get(self.place(at)) for at in numbers]
        return found

    def _scores_near(self, metric: str, numbers: Sequence[int]) -> list[tuple[float, str]]:
        near: dict[Place, tuple[float, str]] = {}
        with self._open() as store:
            for block in store.blocks(self.run_id, metric, within=self.place_bounds(numbers)):
                for place, value, producer in zip(block.places(), block.values, block.producer_numbers(), strict=True):
                    letter = STATUS_LETTERS[block.producers[producer][0]]
                    near[place] = (nan if value is None else value, letter)
        return [near.get(self.place(at), (nan, "-")) for at in numbers]

    def records_at(self, numbers: Sequence[int]) -> list[RecordText]:
        """Id, the beginnings of question and answer, and time of some rows."""
        missing = [place for place in map(self.place, numbers) if place not in self._read]
        with self._open() as store:
            for _, position, repeat, case_id, failed, elapsed_s, line in store.lines(self.run_id, missing):
                query, answer = (beginning(text, READ_LENGTH) for text in texts_of(line))
                self._read[position, repeat] = RecordText(case_id, query, answer, bool(failed), elapsed_s or None)
        nothing = RecordText("", "", "", False, None)
        found = [self._read.get(self.place(at), nothing) for at in numbers]
        if len(self._read) > _TEXTS_KEPT:
            self._read = {}
        return found
