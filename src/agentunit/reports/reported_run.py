"""What every report is made from: a run's scores, and its cases one by one, from a store or a portable file."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import groupby
from types import TracebackType

from agentunit.core.codec import RecordError, decode_record
from agentunit.core.results import RunSummary, Score
from agentunit.engine.decision import Decision, decide_run
from agentunit.engine.scored_run import ScoredRun, run_from_file, run_from_store
from agentunit.metrics.base import MetricInfo
from agentunit.reports.masked import Mask, ReportedCase
from agentunit.reports.printable import printable_line
from agentunit.store.portable import read_portable
from agentunit.store.schema import StoreError
from agentunit.store.sqlite import DEFAULT_PATH, RunHeader, Store, StoredRecord, StoredScore


class ReportedRun:
    """A run as reports read it, with the decision that they all render.

    Personal data in its cases is masked, unless ``show_personal_data``.
    """

    def __init__(
        self,
        run: ScoredRun,
        *,
        store: Store | None = None,
        path: str | None = None,
        decision: Decision | None = None,
        show_personal_data: bool = False,
    ) -> None:
        self.run = run
        self.mask = Mask(show_all=show_personal_data)
        self._store = store
        self._path = path
        self._decision = None if decision is None else self.mask.decision(decision)

    def __enter__(self) -> ReportedRun:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the store, if the run is of one."""
        if self._store is not None:
            self._store.close()

    @cached_property
    def summary(self) -> RunSummary:
        """The aggregate of the run."""
        return self.mask.summary(self.run.summary())

    @property
    def decision(self) -> Decision:
        """What was decided about the run; by its own gates and error allowance unless somebody decided otherwise."""
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

    def cases(self) -> Iterator[ReportedCase]:
        """Every finished case in dataset order, streamed."""
        return map(self.mask.case, self._cases())

    def _cases(self) -> Iterator[ReportedCase]:
        if self._store is not None:
            run_id = self.run.header.id
            yield from _joined(self._store.records(run_id), self._store.scores(run_id))
        elif self._path is not None:
            yield from _from_file(self._path)

    def case(self, case_id: str) -> list[ReportedCase]:
        """All repeats of one case."""
        if self._store is not None:
            run_id = self.run.header.id
            found = _joined(self._store.case(run_id, case_id), self._store.scores(run_id, case_id=case_id))
        else:
            found = (case for case in self._cases() if case.case_id == case_id)
        return list(map(self.mask.case, found))

    def case_ids(self) -> list[str]:
        """The ids of the finished cases, in dataset order."""
        if self._store is not None:
            return self._store.case_ids(self.run.header.id)
        return list(dict.fromkeys(case.case_id for case in self._cases()))


def open_run(reference: str, store: Store, *, show_personal_data: bool = False) -> ReportedRun:
    """A run of a store, by any of its names."""
    return ReportedRun(run_from_store(store, reference), store=store, show_personal_data=show_personal_data)


def open_run_file(path: str | os.PathLike[str], *, show_personal_data: bool = False) -> ReportedRun:
    """A run of a portable file, without taking it into a store."""
    return ReportedRun(run_from_file(path), path=os.fspath(path), show_personal_data=show_personal_data)


def resume_command(run_id: str, suite_path: str, store_path: str = DEFAULT_PATH) -> str:
    """The command that goes on with a run."""
    command = ["agentunit", "run", suite_path, "--resume", run_id]
    if store_path not in (DEFAULT_PATH, os.environ.get("AGENTUNIT_STORE")):
        command += ["--store", store_path]
    return shlex.join(command)


def how_to_resume(header: RunHeader, store_path: str = DEFAULT_PATH) -> str | None:
    """The command that goes on with an unfinished run; ``None`` when nothing is left, or the suite is not known."""
    suite_path = header.settings.get("suite")
    if header.status not in ("interrupted", "stopped") or not isinstance(suite_path, str):
        return None
    below = os.path.join(os.getcwd(), "")
    return printable_line(resume_command(header.id, suite_path.removeprefix(below), store_path))


def _joined(records: Iterable[StoredRecord], scores: Iterable[StoredScore]) -> Iterator[ReportedCase]:
    # Both come by position and repeat, so one pass over each is enough.
    grouped = groupby(scores, key=lambda each: (each.position, each.repeat))
    place, of_place = next(grouped, (None, iter(())))
    for stored in records:
        found: dict[str, Score] = {}
        # A run that is still being written may show a score whose record this reading does not see.
        while place is not None and place < (stored.position, stored.repeat):
            place, of_place = next(grouped, (None, iter(())))
        if place == (stored.position, stored.repeat):
            found = {each.metric: each.score for each in of_place}
            place, of_place = next(grouped, (None, iter(())))
        yield ReportedCase(
            stored.position, stored.repeat, stored.case_id, stored.failed, stored.elapsed_s, stored.record, found
        )


def _from_file(path: str) -> Iterator[ReportedCase]:
    _, cases = read_portable(path)
    for case in cases:
        try:
            record = decode_record(bytes(case.record))
        except RecordError as error:
            raise StoreError(f"{path}: case {case.case_id!r}: {error}") from None
        yield ReportedCase(case.position, case.repeat, case.case_id, case.failed, case.elapsed_s, record, case.scores)
