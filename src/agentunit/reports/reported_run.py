"""The view of a run that every report renders: its summary, its decision and its cases, with personal data masked.

A report goes to places that its records do not: a pull request, a CI log, a colleague's mailbox. So whatever a report
prints of a case comes through the mask here, once, before any of it is cut or compared. Names and postal addresses
stay: the rules that find them are wrong too often to mask words of every report.
"""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, structs

from agentunit.core.case import DatasetCase
from agentunit.core.codec import RecordError, decode_record, encode_record
from agentunit.core.records import Record
from agentunit.core.results import MetricSummary, RunSummary, Score, encode_json, json_fallback
from agentunit.engine.comparison import CaseAnswer, Comparison
from agentunit.engine.decision import Decision, decide_run, decide_together
from agentunit.engine.score_rows import scored_records
from agentunit.engine.scored_run import ScoredRun, run_from_file, run_from_store
from agentunit.engine.slices import SliceTable
from agentunit.engine.table_run import scores_of
from agentunit.metrics.base import MetricInfo
from agentunit.reports.case_causes import cause_of, low_metrics, slices_of
from agentunit.reports.failure_groups import Cause, FailureGroup, cause_groups, failure_groups
from agentunit.reports.figures import n_to_look_at
from agentunit.reports.printable import clipped, printable_line
from agentunit.store.labels import Place, StoredLabel, places_of
from agentunit.store.opening import DEFAULT_PATH, shown_address
from agentunit.store.parquet_table import rows_by_place
from agentunit.store.portable import read_portable
from agentunit.store.protocol import RunStore
from agentunit.store.runs import RunHeader, StoredRecord, StoredScore
from agentunit.store.schema import StoreError
from agentunit.store.table_reading import ScoreTable

if TYPE_CHECKING:
    from agentunit.privacy.redaction import Redactor


_ANSWER_LENGTH = 1_500
_MOST_READ, _MOST_NAMED = 2_000, 200
_NOT_MASKED = frozenset(("name", "address", "account"))
# A plane of Unicode that has no characters of its own.
_PRIVATE_USE, _MOST_IDS = 0xF0000, 0xFFFF
_SAID_OF_RUNS = ("tags", "agent_version", "earlier_agent_versions")


class ReportedCase(Struct):
    """One finished case of a run with its scores and labels. ``repeat`` counts from 0, as in the store.

    One of a score table is not ``recorded``: its record is empty but for the id of the case, and it may not be known
    how the agent ended (``agent_known``).
    """

    position: int
    repeat: int
    case_id: str
    failed: bool
    elapsed_s: float
    record: Record
    scores: dict[str, Score]
    labels: list[StoredLabel] = msgspec.field(default_factory=list)
    recorded: bool = True
    agent_known: bool = True

    @property
    def agent_failed(self) -> bool | None:
        """Whether the agent failed; ``None`` where that is not known."""
        return self.failed if self.agent_known else None

    @property
    def agent_elapsed_s(self) -> float | None:
        """How long the agent took; ``None`` where that is not known: traces of a file have no time of their own."""
        return (self.elapsed_s or None) if self.agent_known else None


class Mask:
    """Replaces personal data by pseudonyms, as ``agentunit redact`` does: in one report a value always gets the same.

    >>> Mask().text("Write to ada@example.org or ADA@example.org."), Mask(show_all=True).text("ada@example.org")
    ('Write to <EMAIL_1> or <EMAIL_1>.', 'ada@example.org')
    """

    def __init__(self, *, show_all: bool = False) -> None:
        self.show_all = show_all
        self._names: dict[str, str] = {}

    @cached_property
    def _redactor(self) -> Redactor:
        from agentunit.privacy.detectors import StructuredDetector
        from agentunit.privacy.findings import PII_TYPES
        from agentunit.privacy.pseudonyms import Pseudonyms
        from agentunit.privacy.redaction import Redactor

        return Redactor(StructuredDetector(), set(PII_TYPES) - _NOT_MASKED, Pseudonyms(), audits=False)

    def case(self, case: ReportedCase) -> ReportedCase:
        """A case with its record and the details of its scores masked; its id stays, or it could not be found again."""
        if self.show_all:
            return case
        data = msgspec.json.decode(encode_record(case.record))
        data["scores"] = msgspec.to_builtins(case.scores, enc_hook=json_fallback, str_keys=True)
        if not self._redactor.redact_data([data]):
            return case
        scores = msgspec.convert(data.pop("scores"), dict[str, Score])
        return structs.replace(case, record=decode_record(encode_json(data)), scores=scores)

    def text(self, text: str) -> str:
        """One text, masked."""
        masked: str = self.data([text])[0]
        return masked

    def name(self, name: str) -> str:
        """A short text that comes again and again, such as a rater, masked once."""
        if name not in self._names:
            self._names[name] = self.text(name)
        return self._names[name]

    def data(self, value: Any) -> Any:
        """Plain data, masked."""
        if self.show_all:
            return value
        plain = {"data": msgspec.to_builtins(value, enc_hook=json_fallback, str_keys=True)}
        self._redactor.redact_data([plain])
        return plain["data"]

    def header(self, header: RunHeader) -> RunHeader:
        """A header whose name, tags and versions are masked: CI tags a run with who pushed. Its id and paths stay."""
        if self.show_all:
            return header
        said = {key: header.settings[key] for key in _SAID_OF_RUNS if key in header.settings}
        # An id that is a name as well must stay the same text.
        name = header.name if header.name == header.id else self.name(header.name)
        return structs.replace(header, name=name, settings={**header.settings, **(self.data(said) if said else {})})

    def summary(self, summary: RunSummary) -> RunSummary:
        """A summary whose reasons, which may quote a record, and names of raters are masked."""
        if self.show_all:
            return summary
        summary = structs.replace(summary, metrics=[self._metric_row(row) for row in summary.metrics])
        if not (summary.unscored or summary.input_errors):
            return summary
        unscored = self.data([each.reason for each in summary.unscored])
        errors = self.data([each.reason for each in summary.input_errors])
        return structs.replace(
            summary,
            unscored=[
                structs.replace(each, reason=reason) for each, reason in zip(summary.unscored, unscored, strict=True)
            ],
            input_errors=[
                structs.replace(each, reason=reason) for each, reason in zip(summary.input_errors, errors, strict=True)
            ],
        )

    def _metric_row(self, row: MetricSummary) -> MetricSummary:
        if row.informational is not None:
            row = structs.replace(row, informational=self.text(row.informational))
        if row.labeled is None:
            return row
        return structs.replace(row, labeled=structs.replace(row.labeled, raters=self.data(row.labeled.raters)))

    def comparison(self, comparison: Comparison) -> Comparison:
        """A comparison whose answers are masked, and cut afterwards: nobody reads a whole book in a list of cases."""

        def masked(answer: CaseAnswer | None) -> CaseAnswer | None:
            if answer is None:
                return None
            texts = self.data([answer.text, answer.error])
            return CaseAnswer(*(None if text is None else clipped(text, _ANSWER_LENGTH)[0] for text in texts))

        differences = (
            replace(each, baseline=masked(each.baseline), candidate=masked(each.candidate))
            for each in comparison.differences
        )
        pairwise = comparison.pairwise
        if pairwise is not None:
            why = self.data([list(each.why) for each in pairwise.pairs])
            pairs = (replace(each, why=tuple(text)) for each, text in zip(pairwise.pairs, why, strict=True))
            said = None if pairwise.failed_why is None else self.text(pairwise.failed_why)
            pairwise = replace(pairwise, pairs=tuple(pairs), failed_why=said)
        old, new, sentence = self.data([comparison.baseline_label, comparison.candidate_label, comparison.sentence])
        return replace(
            comparison,
            differences=tuple(differences),
            pairwise=pairwise,
            baseline_label=old,
            candidate_label=new,
            sentence=sentence,
        )

    def slices(self, table: SliceTable) -> SliceTable:
        """A table whose slices are named by no personal data: a value of a field may be an e-mail address."""
        names = list(dict.fromkeys(row.slice for row in table.rows))
        shown = dict(zip(names, self.data(names), strict=True))
        return replace(table, rows=[replace(row, slice=shown[row.slice]) for row in table.rows])

    def decision(self, decision: Decision) -> Decision:
        """A decision whose reasons, which may quote a record, and the answers of its comparison are masked."""
        if decision.comparison is not None:
            decision = replace(decision, comparison=self.comparison(decision.comparison))
        if self.show_all:
            return decision
        noted = (each if each.note is None else replace(each, note=self.text(each.note)) for each in decision.gates)
        decision = replace(decision, gates=tuple(noted))
        if not (decision.reasons or decision.known_failures):
            return decision
        why = self.data([each.reason for each in decision.known_failures])
        known = (replace(each, reason=text) for each, text in zip(decision.known_failures, why, strict=True))
        decision = replace(decision, known_failures=tuple(known))
        # Case ids stay, or nobody could look the cases up: characters without a meaning stand for them meanwhile.
        ids = sorted((case for case in decision.cases_to_see if case in decision.headline), key=len, reverse=True)
        signs = {case_id: chr(_PRIVATE_USE + place) for place, case_id in enumerate(ids[:_MOST_IDS])}
        whole_ids = re.compile(rf"(?<![\w.@-])(?:{'|'.join(map(re.escape, signs)) or '(?!)'})(?![\w@-])")
        headline = whole_ids.sub(lambda found: signs[found[0]], decision.headline)
        texts = [
            headline,
            *(each.text for each in decision.reasons),
            *(each.reason for each in decision.gates),
        ]
        headline, *others = self.data(texts)
        for case_id, sign in signs.items():
            headline = headline.replace(sign, case_id)
        n_reasons = len(decision.reasons)
        return replace(
            decision,
            headline=headline,
            reasons=tuple(
                replace(each, text=text) for each, text in zip(decision.reasons, others[:n_reasons], strict=True)
            ),
            gates=tuple(
                replace(each, reason=text) for each, text in zip(decision.gates, others[n_reasons:], strict=True)
            ),
        )


class ReportedRun:
    """A run as reports read it, with the decision that they all render.

    Personal data in its cases is masked, unless ``show_personal_data``. ``slices`` are its tables by slice. ``others``
    are further runs of the same report, compared with the same baseline; ``label`` is what tells this run from them,
    ``baseline_label`` what they call the baseline, and ``baseline`` that run itself.
    """

    def __init__(
        self,
        run: ScoredRun,
        *,
        store: RunStore | None = None,
        path: str | None = None,
        decision: Decision | None = None,
        show_personal_data: bool = False,
    ) -> None:
        self.run = run
        self.mask = Mask(show_all=show_personal_data)
        self.store = store
        self.path = path
        self._decision = None if decision is None else self.mask.decision(decision)
        self.slices: tuple[SliceTable, ...] = ()
        self.others: tuple[ReportedRun, ...] = ()
        self.label = run.header.label
        self.baseline_label = ""
        self.baseline: ScoredRun | None = None

    @property
    def runs(self) -> tuple[ReportedRun, ...]:
        """Every run of the report."""
        return (self, *self.others)

    @property
    def verdict(self) -> Decision:
        """What was decided about all runs of the report together."""
        return decide_together({run.label: run.decision for run in self.runs}) if self.others else self.decision

    @property
    def header(self) -> RunHeader:
        """The header of the run, masked: for what is shown of it."""
        return self.mask.header(self.run.header)

    def add_slices(self, table: SliceTable) -> None:
        """Report a table by slice, masked."""
        self.slices += (self.mask.slices(table),)

    def __enter__(self) -> ReportedRun:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the store, if the run is of one."""
        if self.store is not None:
            self.store.close()

    @cached_property
    def summary(self) -> RunSummary:
        """The aggregate of the run."""
        return self.mask.summary(self.run.summary())

    @property
    def decision(self) -> Decision:
        """What was decided about the run; by its own gates and error allowance unless another decision was set."""
        if self._decision is None:
            self._decision = self.mask.decision(decide_run(self.run))
        return self._decision

    @decision.setter
    def decision(self, decision: Decision) -> None:
        self._decision = self.mask.decision(decision)

    @cached_property
    def infos(self) -> dict[str, MetricInfo]:
        """The facts about each metric of the run."""
        return {name: self.run.info(name) for name in self.run.metrics}

    def unit(self, metric: str) -> str:
        """The unit of a metric's values."""
        return self.infos[metric].unit if metric in self.infos else "score"

    def worst_cases(self) -> dict[str, list[str]]:
        """The ids of the cases with low scores, the worst of every metric first, each with the metrics it is low in.

        Only where a low score is a fault: the dearest case of a cheap run is not one.
        """
        rows = [row for row in self.summary.metrics if row.status == "ok" and self.unit(row.metric) == "score"]
        worst: dict[str, list[str]] = {}
        low = [(row.metric, row.worst_cases[: n_to_look_at(row)]) for row in rows]
        for rank in range(max((len(cases) for _, cases in low), default=0)):
            for metric, cases in low:
                if rank < len(cases):
                    worst.setdefault(cases[rank], []).append(metric)
        return worst

    @cached_property
    def failures(self) -> list[FailureGroup]:
        """Why the agent failed: the failed cases by their cause, the most frequent first."""
        # A table says that the agent failed and not how.
        if not self.run.n_failed or self._is_table:
            return []
        failed: Iterable[StoredRecord | ReportedCase] = (case for case in self._cases() if case.failed)
        if self.store is not None:
            failed = self.store.records(self.run.header.id, failed=True)
        reference = self.path or self.run.header.id
        return failure_groups(((case.case_id, case.record) for case in failed), reference, self.mask.data)

    @cached_property
    def causes(self) -> list[FailureGroup]:
        """Why cases that the agent did answer scored low, the most frequent cause first.

        All cases of a run of at most 2,000 records; of a longer one those behind the decision and the worst.
        """
        if self._is_table:
            return []
        is_short = self.run.n_records <= _MOST_READ
        named = dict.fromkeys((*self.decision.failing_cases, *self.worst_cases()))
        cases = self._cases() if is_short else (case for each in list(named)[:_MOST_NAMED] for case in self._case(each))
        counts: Counter[str] = Counter()
        found: list[Cause] = []
        n_repeats: Counter[str] = Counter()
        n_seen = 0
        for case in cases:
            n_seen += 1
            n_repeats[case.case_id] += 1
            counts.update(slices_of(case.record.case.metadata))
            if not case.failed and (low := low_metrics(case.scores, self.infos)):
                found.append(cause_of(case, low))
        found = [each if n_repeats[each.case_id] > 1 else structs.replace(each, repeat=None) for each in found]
        reference = self.path or self.run.header.id
        # What is frequent elsewhere is not known of a long run, so that its groups have no slice.
        n_records = n_seen if is_short else 0
        return cause_groups(found, reference, self.mask.data, slice_counts=counts, n_records=n_records)

    def recorded_cases(self) -> Iterator[ReportedCase]:
        """Every finished case in dataset order, streamed and not masked: for what is kept, or masked afterwards."""
        return self._cases()

    def cases(self) -> Iterator[ReportedCase]:
        """Every finished case in dataset order, streamed."""
        return map(self._reported, self._cases())

    def _reported(self, case: ReportedCase) -> ReportedCase:
        labels = self._labels.get((case.position, case.repeat), ())
        shown = [structs.replace(label, note=self.mask.text(label.note) if label.note else "") for label in labels]
        return self.mask.case(structs.replace(case, labels=shown) if shown else case)

    @cached_property
    def _labels(self) -> Mapping[Place, list[StoredLabel]]:
        return places_of(self.run.labels)

    def _cases(self) -> Iterator[ReportedCase]:
        if self.store is not None:
            run_id = self.run.header.id
            yield from _joined(self.store.records(run_id), self.store.scores(run_id))
        elif self.path is not None:
            yield from _from_table(self.path) if self._is_table else _from_file(self.path)

    def case(self, case_id: str) -> list[ReportedCase]:
        """All repeats of one case."""
        return list(map(self._reported, self._case(case_id)))

    def _case(self, case_id: str) -> Iterator[ReportedCase]:
        if self.store is not None:
            run_id = self.run.header.id
            yield from _joined(self.store.case(run_id, case_id), self.store.scores(run_id, case_id=case_id))
        elif self.path is not None and self._is_table:
            yield from _from_table(self.path, case_id)
        else:
            yield from (case for case in self._cases() if case.case_id == case_id)

    def case_ids(self) -> list[str]:
        """The ids of the finished cases, in dataset order."""
        if self.store is not None:
            return self.store.case_ids(self.run.header.id)
        return list(dict.fromkeys(record.case_id for record in self.run.records))

    @property
    def _is_table(self) -> bool:
        return self.run.read_records is None


def open_run(reference: str, store: RunStore, *, show_personal_data: bool = False, labels: bool = True) -> ReportedRun:
    """A run of a store, by any of its names."""
    run = run_from_store(store, reference, labels=labels)
    return ReportedRun(run, store=store, show_personal_data=show_personal_data)


def open_run_file(path: str | os.PathLike[str], *, show_personal_data: bool = False) -> ReportedRun:
    """A run of a portable file or of a score table, without taking it into a store."""
    return ReportedRun(run_from_file(path), path=os.fspath(path), show_personal_data=show_personal_data)


def resume_command(run_id: str, suite_path: str, store_path: str = DEFAULT_PATH) -> str:
    """The command that goes on with a run."""
    return shlex.join(["agentunit", "run", suite_path, "--resume", run_id, *store_arguments(store_path)])


def store_arguments(store_path: str) -> list[str]:
    """What a command needs so that it finds a store, without a password; nothing where it would find it anyway."""
    known = (DEFAULT_PATH, shown_address(os.environ.get("AGENTUNIT_STORE", "")))
    return [] if shown_address(store_path) in known else ["--store", shown_address(store_path)]


def how_to_resume(header: RunHeader, store_path: str = DEFAULT_PATH) -> str | None:
    """The command that goes on with an unfinished run; ``None`` when nothing is left, or the suite is not known."""
    suite_path = header.settings.get("suite")
    if header.status not in ("interrupted", "stopped") or not isinstance(suite_path, str):
        return None
    if header.is_foreign:
        # A path that came with a file is not offered to be run.
        return printable_line(resume_command(header.id, "SUITE", store_path))
    below = os.path.join(os.getcwd(), "")
    return printable_line(resume_command(header.id, suite_path.removeprefix(below), store_path))


def _joined(records: Iterable[StoredRecord], scores: Iterable[StoredScore]) -> Iterator[ReportedCase]:
    for stored, found in scored_records(records, scores):
        yield ReportedCase(
            stored.position, stored.repeat, stored.case_id, stored.failed, stored.elapsed_s, stored.record, found
        )


def _from_table(path: str, case_id: str | None = None) -> Iterator[ReportedCase]:
    for rows in rows_by_place(ScoreTable(path).rows(case_id=case_id)):
        first = rows[0]
        yield ReportedCase(
            first.position,
            first.repeat - 1,
            first.case_id,
            bool(first.agent_failed),
            first.agent_elapsed_s or 0.0,
            Record(DatasetCase(first.case_id)),
            scores_of(rows),
            recorded=False,
            agent_known=first.agent_failed is not None,
        )


def _from_file(path: str) -> Iterator[ReportedCase]:
    _, cases = read_portable(path)
    for case in cases:
        try:
            record = decode_record(bytes(case.record))
        except RecordError as error:
            raise StoreError(f"{path}: case {case.case_id!r}: {error}") from None
        yield ReportedCase(case.position, case.repeat, case.case_id, case.failed, case.elapsed_s, record, case.scores)
