"""Outcomes of runs, as the examination wants them: who passed which case, and why not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from agentunit.addons.review.soundness._texts import plain
from agentunit.addons.review.soundness.material import RunOutcomes, Try, metadata_of
from agentunit.core.case import DatasetCase
from agentunit.core.records import Record, outcome_text
from agentunit.core.results import InputError
from agentunit.engine.scoring.records import Run
from agentunit.engine.scoring.scored_run import ScoredRun
from agentunit.metrics.registry import resolve_metrics
from agentunit.store.runs import is_again

MOST_CASES = 50_000
"""Cases of recorded traces that are held to be compared with each other."""
# Which metric says whether a case passed, where several could: the first that graded enough of them.
_DECIDING = (
    "task_success",
    "assertions",
    "exact_match",
    "json_schema",
    "contains",
    "regex",
    "tool_trajectory",
    "answer_correctness",
    "request_met",
    "rubric",
)
_TRIED_ON_RECORDS = _DECIDING[:7]
_DEGREES = ("answer_correctness", "rubric", "request_met")
_LONGEST_ANSWER = 200
_LEAST_EQUAL = 0.1


class Gathered:
    """Cases and runs that were read, with the notes that the reader should have."""

    def __init__(self) -> None:
        self.cases: dict[str, DatasetCase] = {}
        self.runs: list[RunOutcomes] = []
        self.metric_names: set[str] = set()
        self._named: dict[tuple[str, str | None], str] = {}
        self._n_named: Counter[str] = Counter()
        self.is_cut = False
        self.unread: dict[str, list[InputError]] = {}

    def add_records(self, name: str, records: Iterable[Record | InputError]) -> None:
        """A file of records as one run, or one for each model that its traces name, graded by what they say.

        What of it cannot be read is kept in ``unread``; a file without a record is no run.
        """
        kept: list[tuple[str, str | None, str | None]] = []
        models: list[str] = []
        values: dict[str, list[float | None]] = {metric: [] for metric in _TRIED_ON_RECORDS}

        def passing() -> Iterator[Record]:
            for record in records:
                if isinstance(record, Record):
                    if len(kept) >= MOST_CASES:
                        self.is_cut = True
                        return
                    kept.append((self._case_of(record, len(kept)), *_said(record)))
                    model = record.trace.metadata.get("model")
                    models.append(model if isinstance(model, str) else "")
                    yield record
                else:
                    self.unread.setdefault(name, []).append(record)

        for scored in Run(passing(), resolve_metrics(list(_TRIED_ON_RECORDS)), aggregated=False):
            for metric in _TRIED_ON_RECORDS:
                values[metric].append(scored.scores[metric].value)
        if not kept:
            return
        if not _are_comparable(values["exact_match"]):
            del values["exact_match"]
        decides = _deciding(values)
        runs = {
            model: RunOutcomes(f"{name} {model}".strip() if len(set(models)) > 1 else name, decides)
            for model in dict.fromkeys(models)
        }
        graded = values[decides] if decides is not None else [None] * len(kept)
        for (case_id, error, answer), model, value in zip(kept, models, graded, strict=False):
            passed = None if value is None else value >= _pass_mark(decides)
            runs[model].tries.setdefault(case_id, []).append(Try(passed, error, answer))
        self.runs += runs.values()

    def add_run(self, scored: ScoredRun) -> None:
        """A run of the store or of an exported file, graded by its own scores."""
        values = {name: [row.value for row in rows] for name, rows in scored.metrics.items()}
        metric = _deciding(values)
        self.metric_names |= set(scored.metrics)
        by_place = {row.place: row.value for row in scored.metrics[metric]} if metric else {}
        version = scored.header.settings.get("agent_version")
        # The same source under other tags, such as another model, is another agent.
        agent = f"{version} {sorted(scored.header.tags.items())}" if isinstance(version, str) else None
        run = RunOutcomes(scored.header.label, metric, agent=agent)
        for stored in scored.read_records() if scored.read_records is not None else ():
            if is_again(stored.repeat):
                # Only cases that newly fail are tried again: counted, they would make a run look worse than it is.
                continue
            case_id = self._case_of(stored.record, stored.position)
            error, answer = _said(stored.record)
            if stored.failed and error is None:
                error = "the agent failed"
            value = by_place.get(stored.place)
            passed = None if value is None else value >= _pass_mark(metric)
            run.tries.setdefault(case_id, []).append(Try(passed, error, answer))
        if not run.tries and metric is not None:
            for row in scored.metrics[metric]:
                passed = None if row.value is None else row.value >= _pass_mark(metric)
                run.tries.setdefault(row.case_id, []).append(Try(passed))
        self.runs.append(run)

    def _case_of(self, record: Record, position: int) -> str:
        """The id of a record's case; one without an id is known by its question."""
        case = record.case
        fields = metadata_of(case)
        case_id = case.id.removesuffix(f"/trial-{fields.get('trial')}") or case.query or f"case-{position + 1}"
        if fields.get("task_id") is not None:
            # A simulated user begins each time in other words.
            self.cases.setdefault(case_id, case)
            return case_id
        # Files of several tasks often number their samples from 1.
        known = self._named.get((case_id, case.query))
        if known is not None:
            return known
        wanted = case_id
        while self.cases.setdefault(case_id, case).query != case.query:
            self._n_named[wanted] += 1
            case_id = f"{wanted} ({self._n_named[wanted] + 1})"
        self._named[wanted, case.query] = case_id
        return case_id


def _said(record: Record) -> tuple[str | None, str | None]:
    """The error of an outcome, and its answer where it is short enough to be compared."""
    outcome = record.outcome
    error = getattr(outcome, "error", None)
    text = outcome_text(outcome)
    answer = plain(text) if text is not None and len(text) <= _LONGEST_ANSWER else None
    return (error if isinstance(error, str) and error else None), answer or None


def _deciding(values: Mapping[str, Sequence[float | None]]) -> str | None:
    """The metric that decides: the first of the known ones that graded most cases, or any other of verdicts."""
    counts = {name: sum(each is not None for each in scores) for name, scores in values.items()}
    most = max(counts.values(), default=0)
    known = [name for name in _DECIDING if counts.get(name, 0) > 0.5 * most and counts.get(name)]
    if known:
        return known[0]
    verdicts = [name for name, scores in values.items() if counts[name] and _are_verdicts(scores)]
    return max(verdicts, key=lambda name: counts[name]) if verdicts else None


def _are_comparable(equal: Sequence[float | None]) -> bool:
    """Whether expected answers are to be met to the letter, as far as answers show; a sentence hardly ever is."""
    known = [each for each in equal if each is not None]
    return sum(known) >= _LEAST_EQUAL * len(known)


def _are_verdicts(scores: Sequence[float | None]) -> bool:
    found = {each for each in scores if each is not None}
    return found <= {0.0, 1.0} and len(found) == 2


def _pass_mark(metric: str | None) -> float:
    return 0.5 if metric in _DEGREES else 0.999
