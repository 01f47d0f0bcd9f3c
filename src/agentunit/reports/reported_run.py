"""The view of a run that every report renders: its summary, its decision and its cases, with personal data masked.

A report goes to places that its records do not: a pull request, a CI log, a colleague's mailbox. So whatever a report
prints of a case comes through the mask here, once, before any of it is cut or compared. Names and postal addresses
stay: the rules that find them are wrong too often to mask words of every report.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import islice, starmap
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Struct, structs

from agentunit.core.case import DatasetCase
from agentunit.core.codec import decode_record, encode_record
from agentunit.core.records import Record
from agentunit.core.results import InputError, MetricResult, RunFinding, RunSummary, Score, encode_json, json_fallback
from agentunit.core.said import with_texts
from agentunit.core.score_block import Place
from agentunit.engine.deciding.checks import CheckRule, rules_of
from agentunit.engine.deciding.decision import Decision, decide_together
from agentunit.engine.deciding.stored import decision_of, decisions_beside
from agentunit.engine.scoring.score_rows import TableRow, rows_by_place, scores_of
from agentunit.engine.scoring.scored_run import ScoredRun, run_from_file, run_from_store
from agentunit.metrics.base import MetricInfo
from agentunit.reports.figures import n_to_look_at
from agentunit.reports.printable import clipped, printable_line
from agentunit.store.labels import StoredLabel, places_of
from agentunit.store.opening import DEFAULT_PATH, shown_address
from agentunit.store.run_store import RunStore
from agentunit.store.runs import RunHeader, StoredDecision, StoredRecord, is_again, scored_records

if TYPE_CHECKING:
    from agentunit.engine.scoring.slices import SliceTable
    from agentunit.privacy.redaction import Redactor


_ANSWER_LENGTH = 1_500
_Viewed = TypeVar("_Viewed")
# So many records, or such long ones, are masked together.
_MASKED_AT_ONCE, _BYTES_MASKED_AT_ONCE = 32, 1 << 18
# What is said of scores is remembered with its masked form: so many texts that are as short as this.
_MOST_SAID, _LONGEST_SAID, _SCORED_AT_ONCE = 5_000, 2_000, 512
_NOT_MASKED = frozenset(("name", "address", "account"))
# A plane of Unicode that has no characters of its own.
_PRIVATE_USE, _MOST_IDS = 0xF0000, 0xFFFF
# Cut off, an e-mail address or a long number is not known for what it is.
_CUT_VALUE = re.compile(r"(?<![\w.+-])[\w.+-]+@[\w.-]*…|(?<![\d -])([ -]*)\d[\d -]{5,}…")
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
    def place(self) -> Place:
        """Position and repeat."""
        return self.position, self.repeat

    @property
    def agent_failed(self) -> bool | None:
        """Whether the agent failed; ``None`` where that is not known."""
        return self.failed if self.agent_known else None

    @property
    def agent_elapsed_s(self) -> float | None:
        """How long the agent took; ``None`` where that is not known: traces of a file have no time of their own."""
        return (self.elapsed_s or None) if self.agent_known else None


@cache
def printing_mask() -> Mask:
    """The mask of what a command prints of data beside its report: notes about reading, and what could not be read."""
    return Mask()


def masked_error(error: InputError) -> InputError:
    """An input error as it is printed or listed: its reason may quote what could not be read."""
    return structs.replace(error, reason=printing_mask().name(error.reason))


class Mask:
    """Replaces personal data by pseudonyms, as ``agentunit convert --mask`` does, in one report always the same.

    >>> Mask().text("Write to ada@example.org or ADA@example.org."), Mask(show_all=True).text("ada@example.org")
    ('Write to <EMAIL_1> or <EMAIL_1>.', 'ada@example.org')
    """

    def __init__(self, *, show_all: bool = False) -> None:
        self.show_all = show_all
        self._names: dict[str, str] = {}
        self._said: dict[bytes, dict[str, Score] | None] = {}

    @cached_property
    def _redactor(self) -> Redactor:
        from agentunit.privacy.detectors import StructuredDetector
        from agentunit.privacy.findings import PII_TYPES
        from agentunit.privacy.pseudonyms import Pseudonyms
        from agentunit.privacy.redaction import Redactor

        return Redactor(StructuredDetector(), set(PII_TYPES) - _NOT_MASKED, Pseudonyms(), audits=False)

    def case(self, case: ReportedCase) -> ReportedCase:
        """A case with its record and the details of its scores masked; its id stays, or it could not be found again."""
        return next(self.cases([case]))

    def cases(self, cases: Iterable[ReportedCase]) -> Iterator[ReportedCase]:
        """Cases as ``case`` gives each: many at once are masked faster than one by one."""
        if self.show_all:
            yield from cases
            return
        held: list[tuple[ReportedCase, Any]] = []
        n_bytes = 0
        for case in cases:
            line = encode_record(case.record)
            data = msgspec.json.decode(line)
            data["scores"] = _all_said(case)
            held.append((case, data))
            n_bytes += len(line)
            if len(held) >= _MASKED_AT_ONCE or n_bytes >= _BYTES_MASKED_AT_ONCE:
                yield from self._masked(held)
                held, n_bytes = [], 0
        yield from self._masked(held)

    def scored(self, cases: Iterable[ReportedCase]) -> Iterator[ReportedCase]:
        """Cases of which the scores alone are shown, masked. Their records, which stay, tell what is personal in them.

        What was said of another case word for word is not masked again: the same report holds it already, as it is.
        """
        if self.show_all:
            yield from cases
            return
        waiting = iter(cases)
        while some := list(islice(waiting, _SCORED_AT_ONCE)):
            said = [encode_json(_all_said(case)) for case in some]
            first = {text: case for text, case in zip(said, some, strict=True) if text not in self._said}
            found = dict.fromkeys(first)
            for text, masked in zip(first, self.cases(list(first.values())), strict=True):
                found[text] = None if encode_json(_all_said(masked)) == text else masked.scores
            for text, case in zip(said, some, strict=True):
                scores = found[text] if text in found else self._said[text]
                yield case if scores is None else structs.replace(case, scores=_with_words_of(case.scores, scores))
            if len(self._said) < _MOST_SAID:
                self._said |= {text: scores for text, scores in found.items() if len(text) <= _LONGEST_SAID}

    def _masked(self, held: list[tuple[ReportedCase, Any]]) -> Iterator[ReportedCase]:
        if not self._redactor.redact_data([data for _, data in held]):
            yield from (case for case, _ in held)
            return
        for case, data in held:
            said = data.pop("scores").values()
            scores = {
                metric: structs.replace(
                    score,
                    result=MetricResult(score.result.name, score.value, masked.pop("detail")),
                    **masked,
                )
                for (metric, score), masked in zip(case.scores.items(), said, strict=True)
            }
            yield structs.replace(case, record=decode_record(encode_json(data)), scores=scores)

    def text(self, text: str) -> str:
        """One text, masked."""
        return self._texts([text])[0]

    def _texts(self, texts: Iterable[str]) -> list[str]:
        if self.show_all:
            return list(texts)
        masked: list[str] = self.data([_CUT_VALUE.sub(r"\1…", text) for text in texts])
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

    def view(self, value: _Viewed, keep: Iterable[str] = ()) -> _Viewed:
        """A value of which everything that was said is masked, and cut afterwards: nobody reads a book in a list.

        Ids of cases that are to ``keep`` stay, or nobody could look the cases up.
        """
        return with_texts(value, lambda texts: self._shown(texts, keep))

    def decision(self, decision: Decision) -> Decision:
        """A decision with its comparison, masked; the ids of its cases stay."""
        if _says_only_how_many(decision):
            return decision
        cases = {*decision.cases_to_see, *(() if decision.comparison is None else decision.comparison.cases)}
        told = f"{decision.headline}\n{decision.line}"
        return self.view(decision, [case_id for case_id in cases if case_id in told])

    def _shown(self, texts: list[str], keep: Iterable[str]) -> list[str]:
        if not self.show_all:
            # Characters without a meaning stand for the ids meanwhile.
            ids = sorted(keep, key=len)
            signs = {case_id: chr(_PRIVATE_USE + place) for place, case_id in enumerate(ids[: -_MOST_IDS - 1 : -1])}
            if signs:
                whole_ids = re.compile(rf"(?<![\w.@-])(?:{'|'.join(map(re.escape, signs))})(?![\w@-])")
                texts = [whole_ids.sub(lambda found: signs[found[0]], text) for text in texts]
            texts = self._texts(texts)
            for case_id, sign in signs.items():
                texts = [text.replace(sign, case_id) for text in texts]
        return [clipped(text, _ANSWER_LENGTH)[0] for text in texts]


def _says_only_how_many(decision: Decision) -> bool:
    """Whether a decision quotes nothing: it counts cases in our own words, as that of most runs that pass."""
    names_something = decision.findings or decision.reasons or decision.gates or decision.known_failures
    if names_something or decision.comparison is not None or decision.line:
        return False
    return decision.said == str(decision.counts)


def _all_said(case: ReportedCase) -> dict[str, Any]:
    return {metric: _said_by(score) for metric, score in case.scores.items()}


def _with_words_of(scores: dict[str, Score], masked: dict[str, Score]) -> dict[str, Score]:
    """The scores of a case with the masked words of another one of which the same was said."""
    return {
        metric: structs.replace(
            masked[metric],
            result=MetricResult(score.result.name, score.value, masked[metric].result.detail),
            status=score.status,
            elapsed=score.elapsed,
        )
        for metric, score in scores.items()
    }


def _said_by(score: Score) -> dict[str, Any]:
    """What a score says in words, as plain data."""
    detail = msgspec.to_builtins(score.result.detail, enc_hook=json_fallback, str_keys=True)
    return {"detail": detail, "why": score.why, "backend": score.backend, "version": score.version}


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
        self.shown_as: str | None = None
        """What the commands of its findings call the run on this machine, such as ``last``."""
        self.slices: tuple[SliceTable, ...] = ()
        self.others: tuple[ReportedRun, ...] = ()
        self.label = run.header.label
        self.baseline_label = ""
        self.baseline: ScoredRun | None = None

    @property
    def reference(self) -> str:
        """What other commands find the run by: its file, or its id; empty where they cannot."""
        return self.path or self.run.header.id

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
        self.slices += (self.mask.view(table),)

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
        return self.mask.view(self.run.summary())

    @property
    def decision(self) -> Decision:
        """What was decided about the run: when it was made, or else now; unless another decision was set."""
        if self._decision is None:
            self._decision = self.mask.decision(decision_of(self.run))
        return self._decision

    @decision.setter
    def decision(self, decision: Decision) -> None:
        self._decision = self.mask.decision(decision)

    @cached_property
    def beside(self) -> list[tuple[StoredDecision, Decision]]:
        """What other commands decided about the run, the newest first."""
        return [(stored, self.mask.decision(decision)) for stored, decision in decisions_beside(self.run)]

    @cached_property
    def infos(self) -> dict[str, MetricInfo]:
        """The facts about each metric of the run."""
        return {name: self.run.info(name) for name in self.run.metrics}

    @cached_property
    def rules(self) -> dict[str, CheckRule]:
        """The checks of the run, by the gates of its decision."""
        return rules_of(self.run, [verdict.gate for verdict in self.decision.gates])

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
    def findings(self) -> list[RunFinding]:
        """What is wrong with the run, the gravest first: cases with the same cause are one finding."""
        from agentunit.reports.finding_causes import findings_of

        return self.mask.view(findings_of(self))

    @cached_property
    def failures(self) -> list[RunFinding]:
        """Why the agent failed: the failed cases by their cause, the most frequent first."""
        # A table says that the agent failed and not how.
        if not self.run.n_failed or self.is_table:
            return []
        from agentunit.engine.deciding.causes import cause_of_failure
        from agentunit.engine.deciding.run_findings import CauseGroups
        from agentunit.reports.finding_text import with_commands

        failed: Iterable[StoredRecord | ReportedCase] = (case for case in self._cases() if case.failed)
        if self.store is not None:
            failed = self.store.records(self.run.header.id, failed=True)
        groups = CauseGroups()
        for case in failed:
            if not is_again(case.repeat):
                groups.add(cause_of_failure(case.case_id, None, case.record, ""))
        return self.mask.view(with_commands(groups.findings(self.run.n_cases), self.reference))

    @property
    def causes(self) -> list[RunFinding]:
        """What is wrong with cases that the agent did answer."""
        return [finding for finding in self.findings if finding.kind != "exception"]

    def recorded_cases_of(self, case_ids: Sequence[str]) -> Iterator[ReportedCase]:
        """The finished cases with these ids, in dataset order, streamed and not masked."""
        cases = sorted(self._some(case_ids), key=lambda case: case.place)
        return iter(cases)

    def recorded_cases(self) -> Iterator[ReportedCase]:
        """Every finished case in dataset order with its tries again, streamed and not masked: for what is kept, or
        masked afterwards."""
        return self._cases()

    def cases(self) -> Iterator[ReportedCase]:
        """Every finished case in dataset order with its tries again, streamed."""
        return self.mask.cases(map(self._labeled, self._cases()))

    def scored_cases(self) -> Iterator[ReportedCase]:
        """As ``cases``, for whoever shows the scores and nothing of the records, which are not masked."""
        return self.mask.scored(self._cases())

    def _labeled(self, case: ReportedCase) -> ReportedCase:
        labels = self._labels.get(case.place, ())
        shown = [structs.replace(label, note=self.mask.text(label.note) if label.note else "") for label in labels]
        return structs.replace(case, labels=shown) if shown else case

    @cached_property
    def _labels(self) -> Mapping[Place, list[StoredLabel]]:
        return places_of(self.run.labels)

    def _cases(self) -> Iterator[ReportedCase]:
        if self.store is not None:
            run_id = self.run.header.id
            yield from _joined(self.store.records(run_id), self.store.scores(run_id))
        elif self.run.read_rows is not None and self.is_table:
            yield from _from_rows(self.run.read_rows())
        elif self.path is not None:
            yield from _from_file(self.path)
        elif self.run.read_cases is not None:
            case_ids = list(dict.fromkeys(record.case_id for record in self.run.records))
            yield from starmap(_reported_case, self.run.read_cases(case_ids))

    def case(self, case_id: str) -> list[ReportedCase]:
        """All repeats of one case."""
        return self.cases_of([case_id]).get(case_id, [])

    def cases_of(self, case_ids: Sequence[str]) -> dict[str, list[ReportedCase]]:
        """All repeats of some cases by their ids; a file is read once for all of them."""
        cases: dict[str, list[ReportedCase]] = {}
        for case in self.mask.cases(map(self._labeled, self._some(case_ids))):
            cases.setdefault(case.case_id, []).append(case)
        return cases

    def _some(self, case_ids: Sequence[str]) -> Iterator[ReportedCase]:
        if self.store is not None:
            run_id = self.run.header.id
            # Half a character, as a command line may hold, is in no store.
            stored = [each for each in case_ids if each.encode("utf-8", "ignore").decode() == each]
            for case_id in stored:
                yield from _joined(self.store.case(run_id, case_id), self.store.scores(run_id, case_id=case_id))
        elif self.run.read_rows is not None and self.is_table:
            yield from _from_rows(self.run.read_rows(case_ids=case_ids))
        elif self.path is None and self.run.read_cases is not None:
            yield from starmap(_reported_case, self.run.read_cases(case_ids))
        else:
            yield from (case for case in self._cases() if case.case_id in case_ids)

    def case_ids(self) -> list[str]:
        """The ids of the finished cases, in dataset order."""
        if self.store is not None:
            return self.store.case_ids(self.run.header.id)
        return list(dict.fromkeys(record.case_id for record in self.run.records))

    @property
    def is_table(self) -> bool:
        """Whether it is a table of scores, without records."""
        return self.run.read_records is None


def open_run(reference: str, store: RunStore, *, show_personal_data: bool = False, held: bool = True) -> ReportedRun:
    """A run of a store, by any of its names; not ``held`` for whoever looks at single cases."""
    run = run_from_store(store, reference, held=held)
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
        # A path that came with a file is not offered to be run, and a run whose gates name modules would be refused.
        if any(":" in str(gate) for gate in header.settings.get("gates") or ()):
            return None
        return printable_line(resume_command(header.id, "SUITE", store_path))
    below = os.path.join(os.getcwd(), "")
    return printable_line(resume_command(header.id, suite_path.removeprefix(below), store_path))


def _joined(
    records: Iterable[StoredRecord], scores: Iterable[tuple[Place, dict[str, Score]]]
) -> Iterator[ReportedCase]:
    return starmap(_reported_case, scored_records(records, scores))


def _reported_case(stored: StoredRecord, scores: dict[str, Score]) -> ReportedCase:
    facts = (stored.position, stored.repeat, stored.case_id, stored.failed, stored.elapsed_s)
    return ReportedCase(*facts, stored.record, scores)


def _from_rows(table: Iterable[TableRow]) -> Iterator[ReportedCase]:
    for rows in rows_by_place(table):
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
    from agentunit.store.portable import read_portable, stored_in

    for case in read_portable(path)[1]:
        yield _reported_case(stored_in(path, case), case.scores)
