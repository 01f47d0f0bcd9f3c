"""What metrics say, and how a run keeps it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal

import msgspec
from msgspec import Struct

from agentunit.core.said import Said
from agentunit.public import publish

Status = Literal["ok", "informational", "not_applicable", "error"]
"""``ok`` may be gated; ``informational`` is shown but gated only when named; the other two carry no value."""
INFORMATIONAL_NOTE = "informational"
"""The key of a detail that says why this score alone is informational, and not all of its backend."""
NO_REASON = "the metric gave no reason"
EVIDENCE_NOTE = "evidence_note"
"""The key of a detail that says that the score rests on evidence with which its worth was not measured."""

RETURNED_BOOL = ("returned", "bool")
"""What the detail of a function's score has where it returned a bool, which makes it a check. It is not shown."""


CaseState = Literal["fine", "wrong", "flaky", "doubtful", "unknown"]
STATES: tuple[CaseState, ...] = ("fine", "wrong", "flaky", "doubtful", "unknown")


@dataclass(slots=True)
class MetricResult:
    """What a metric says about one case: a value, or ``None`` with ``detail["reason"]``."""

    name: str
    value: float | None
    detail: dict[str, Any] = field(default_factory=dict)


class Score(Struct, omit_defaults=True):
    """A metric's result in a run, with what produced it; ``elapsed`` is in seconds, 0 where it is not known.

    ``why`` is the proof of the value in one sentence, as the metric gives it; composites give none.
    """

    result: MetricResult
    status: Status
    backend: str
    version: str
    elapsed: float = 0.0
    why: str | None = None

    @property
    def value(self) -> float | None:
        """The result's value."""
        return self.result.value


class CaseScores(Struct):
    """All scores of one case. ``index`` is its position in the input, counted from 0."""

    index: int
    case_id: str
    scores: dict[str, Score]
    v: int = 1


class InputError(Struct, frozen=True):
    """A part of the input that could not be read: where, and why. ``line`` is counted from 1."""

    source: str
    line: int | None
    reason: Said

    def __str__(self) -> str:
        place = f"{self.source}, line {self.line}" if self.line else self.source
        return f"{place}: {self.reason}"


class AmountSummary(Struct):
    """The amount behind a metric's scores over a run, where tables show it in place of the score."""

    unit: str
    mean: float
    low: float | None
    high: float | None
    p95: float
    total: float
    exact_quantiles: bool


class JudgeSpread(Struct):
    """How scores that a judge gave ``n_repeats`` times vary, as standard deviations; unknown parts are ``None``.

    ``judge_sd``: the judge against itself. ``agent_sd``: runs of a case against each other, ``case_sd``: cases against
    each other, both without what the judge adds. ``judge_share``: the part of the squared standard error of the mean
    that is the judge's.
    """

    n_repeats: int
    judge_sd: float | None
    agent_sd: float | None
    case_sd: float | None
    judge_share: float | None


class JudgeSpend(Struct):
    """What a judge took over a run. ``n_cached`` replies needed no call (of the cache, or on their way already).

    ``prompt_tokens``, ``completion_tokens`` and ``cost_usd`` are those of the calls; ``None`` where none is known, and
    ``partial`` where they are not known of all calls. ``n_failed`` counts scores that the judge left without a value,
    ``n_unstated`` requests that the server may have billed without saying so: they are not in the cost. ``problems``
    are sentences about the run as a whole, such as a cache that cannot be written. ``n_suspected`` counts the scores
    of which a text seems to speak to the judge, ``n_quotes_found`` of ``n_quotes`` the quotes that stand in the texts.
    """

    models: list[str]
    n_scores: int
    n_failed: int
    n_calls: int
    n_cached: int
    prompt_tokens: int | None
    completion_tokens: int | None
    cost_usd: float | None
    partial: bool
    n_unstated: int = 0
    problems: list[Said] = msgspec.field(default_factory=list)
    n_suspected: int = 0
    n_quotes: int = 0
    n_quotes_found: int = 0


class JudgeStanding(Struct):
    """One judge of a panel over a run: how often it gave a value, their mean, and how it stands to people's labels.

    ``reason`` says why there was no value, the first time. ``bias`` is the mean of what it said less what people said,
    ``agreement`` the share of the ``n_labels`` labeled answers on which both are on the same side of 0.5.
    """

    judge: str
    n_scored: int
    n_without_value: int
    mean: float | None
    reason: Said | None = None
    n_labels: int = 0
    bias: float | None = None
    agreement: float | None = None


class PanelSummary(Struct):
    """The judges of a panel over a run; ``alpha`` is Krippendorff's, over the answers that several of them scored.

    On ``n_disagree`` answers their values lie far apart: ``disagree_cases`` are worth a person's label.
    """

    judges: list[JudgeStanding]
    alpha: float | None
    n_disagree: int
    disagree_cases: list[str]


class LabeledSummary(Struct):
    """The rate that people would give over all cases of a metric, from the labels of some and the scores of all.

    ``rate`` is on the metric's scale, with its 95 % interval; ``None`` where the labels cannot tell, and ``reason``
    says why. ``n_labels`` of ``n_cases`` records are labeled, ``n_skipped`` were left open by every rater who saw
    them, on ``n_disagreed`` raters disagree (their mean counts). ``alpha`` is Krippendorff's, where several raters
    labeled the same. ``method`` and ``weight`` say how far the scores were relied on. ``assumed_random``: the labels
    came without the chance that their cases had of being labeled, and are taken for a random sample. ``n_taught`` more
    labels taught a calibrated judge: they count for their own records, and say nothing about others.
    """

    rate: float | None
    low: float | None
    high: float | None
    n_labels: int
    n_cases: int
    method: str = ""
    weight: float = 0.0
    raters: list[Said] = msgspec.field(default_factory=list)
    n_skipped: int = 0
    n_disagreed: int = 0
    alpha: float | None = None
    assumed_random: bool = False
    reason: str | None = None
    n_taught: int = 0


class MetricSummary(Struct, omit_defaults=False):
    """One metric over a whole run, for one backend: scores of different backends are never averaged.

    ``n_cases`` and ``n_scored`` count records: every repeat of a case.
    ``low`` and ``high`` bound the mean (95 %) by the method named in ``interval``. ``exact_quantiles`` is false when
    the run was so long that quantiles come from a sample of it. ``worst_cases`` names a few of the ``n_below_best``
    that could be better, the worst first: what to look at; known failures are not among them. Where cases were
    repeated ``n_repeats`` times, ``within_case_sd`` says how much a case differs from run to run,
    ``between_cases_sd`` how much cases differ, ``pass_all`` (pass^k) in how many all repeats passed and
    ``pass_any`` (pass@k) in how many at least one did. ``judge`` is there when a judge was asked several times.
    Where ``aggregate`` is "last", ``mean`` is the last value in dataset order, and has no interval.
    ``mean_of`` says what a mean that is not a rate is of ("support"); ``share_from_half`` is the share of the
    ``n_scored`` scores at 0.5 or above, for scores from 0 to 1. Of degrees (``mean_of``), ``share_low`` is the share of
    the scores on the bad side of their threshold, ``n_low_cases`` how many cases have such a score, and ``cut`` the
    lowest and the highest of these thresholds: each score's own, 0.5 where it names none. ``labeled`` is there when
    people labeled cases of the run for this metric, ``panel`` when several judges were asked. ``n_unmeasured`` of the
    ``n_scored`` rest on evidence (results of tool calls) with which ``trust`` was not measured. ``informational`` says
    why these scores are, where it is not because of their backend.
    """

    metric: str
    backend: str
    version: str
    status: Status
    n_cases: int
    n_scored: int
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    interval: str | None = None
    minimum: float | None = None
    p50: float | None = None
    p95: float | None = None
    maximum: float | None = None
    total: float | None = None
    exact_quantiles: bool = True
    trust: str | None = None
    n_repeats: int = 1
    within_case_sd: float | None = None
    between_cases_sd: float | None = None
    pass_all: float | None = None
    pass_any: float | None = None
    worst_cases: list[str] = msgspec.field(default_factory=list)
    elapsed_s: float = 0.0
    amount: AmountSummary | None = None
    judge: JudgeSpread | None = None
    aggregate: str = "mean"
    n_below_best: int = 0
    mean_of: str = ""
    share_from_half: float | None = None
    labeled: LabeledSummary | None = None
    panel: PanelSummary | None = None
    n_unmeasured: int = 0
    share_low: float | None = None
    cut: tuple[float, float] | None = None
    informational: Said | None = None
    n_low_cases: int | None = None


class Unscored(Struct):
    """Why a metric gave no value, on how many cases and records (repeats of cases). ``first_cases`` names a few."""

    metric: str
    status: Status
    reason: Said
    n_cases: int
    first_cases: list[str]
    n_records: int = 0


@dataclass(frozen=True)
class CaseCounts:
    """How many cases of a run are fine, wrong, flaky, doubtful, or without anything that says so."""

    fine: int = 0
    wrong: int = 0
    flaky: int = 0
    doubtful: int = 0
    unknown: int = 0

    @property
    def n_cases(self) -> int:
        """All cases."""
        return self.fine + self.wrong + self.flaky + self.doubtful + self.unknown

    def __str__(self) -> str:
        named = [(state, getattr(self, state)) for state in STATES]
        shown = [f"{n:,} {'without a check' if state == 'unknown' else state}" for state, n in named if n]
        return f"{self.n_cases:,} {'case' if self.n_cases == 1 else 'cases'}: {', '.join(shown)}"


class RunFinding(Struct, frozen=True):
    """One thing that is wrong with a run: ``n_cases`` of ``n_of`` stand as ``word`` says, for the same cause.

    ``name`` says what is wrong, ``error`` is the evidence of the first case, ``next`` the command that shows it.
    ``kind`` is the kind of cause. What an agent raised has a ``place`` in the user's code, the ``line`` itself, and in
    ``failure`` how the agent failed. ``slice`` says where most of the cases are, when that is somewhere special, and
    then ``n_of`` counts the cases there. ``cases`` are the first ids in dataset order; ``n_records`` counts repeats.
    The example is the first case, in its ``repeat`` where there are several, of the run or file ``reference`` where
    that is not the one of all.
    """

    failure: Said
    error: Said
    place: Said | None
    line: Said | None
    n_records: int
    cases: tuple[str, ...]
    next: str
    kind: str = "exception"
    name: Said = ""
    slice: Said | None = None
    n_cases: int = 0
    n_of: int = 0
    word: str = ""
    repeat: int | None = None
    reference: str = ""


class RunSummary(Struct, dict=True):
    """The aggregate of a run: one row a metric and backend, what was not scored, and what could not be read.

    ``n_cases`` were recorded up to ``n_repeats`` times each, ``n_records`` in all, of which ``n_without_content`` hold
    neither an answer nor an event; in ``n_user_failed`` the simulated user failed, so that they are not scored.
    ``judge`` is what a judge took for scores, where one was asked, and ``simulated_user`` what it took to play users
    (``n_scores`` conversations). Where intervals are over
    clusters of cases, ``clustered_by`` is the field that makes them, and ``n_clusters`` how many there are. ``counts``
    and ``findings`` say how the cases of files stand; those of a stored run are in its decision.
    """

    # Beside its fields, ``vars(summary)["infos"]`` is what its metrics say about themselves: to print, never stored.

    n_cases: int
    metrics: list[MetricSummary]
    unscored: list[Unscored]
    n_input_errors: int
    input_errors: list[InputError]
    n_score_errors: int
    elapsed_s: float
    judge: JudgeSpend | None = None
    n_records: int = 0
    n_repeats: int = 1
    n_without_content: int = 0
    clustered_by: str | None = None
    n_clusters: int | None = None
    n_user_failed: int = 0
    simulated_user: JudgeSpend | None = None
    counts: CaseCounts | None = None
    findings: list[RunFinding] = []

    def __repr__(self) -> str:
        return str(import_module("agentunit.reports.printed").summary_text(self, vars(self).get("infos")))

    def _repr_html_(self) -> str:
        # A notebook asks the object itself; how it looks is known by the reports, which stand above and load only then.
        return str(import_module("agentunit.reports.notebook").summary_html(self, vars(self).get("infos")))


class MetricUse(Struct):
    """A metric as it was used in a run."""

    name: str
    version: str
    parameters: dict[str, Any]


class RunRecord(Struct):
    """The header of a run: what was scored, when, by which version, with which metrics, and the summary."""

    agentunit_version: str
    created_at: str
    sources: list[str]
    metrics: list[MetricUse]
    summary: RunSummary
    v: int = 1


def explained(score: Score) -> str | None:
    """Why a score is what it is, where anything says so: scores of earlier versions have no ``why``."""
    if score.value is None:
        return reason_of(score.result.detail)
    if score.why:
        return score.why
    for key in (INFORMATIONAL_NOTE, "reason", "why", "explanation", EVIDENCE_NOTE):
        said = score.result.detail.get(key)
        if isinstance(said, str) and said:
            return said
    return None


def reason_of(detail: Mapping[str, Any]) -> str | None:
    """Why a result has no value: its own reason, or those of a composite's parts."""
    if detail.get("reason"):
        return str(detail["reason"])
    parts = [
        f"{name}: {part['reason']}" for name, part in detail.items() if isinstance(part, dict) and part.get("reason")
    ]
    return "; ".join(parts) or None


def json_fallback(value: object) -> Any:
    """How a value that JSON does not know is written: numbers of other libraries as numbers, Pydantic's models as data.

    The rest is text. The objects of MCP's SDK are such models.
    """
    if isinstance(value, type) or callable(value):
        return getattr(value, "__qualname__", type(value).__name__)
    if hasattr(value, "tolist"):
        return value.tolist()
    data = model_data(value)
    return str(value) if data is None else data


def model_data(value: object) -> dict[str, Any] | None:
    """The fields of a Pydantic model under the names that its JSON has; ``None`` for anything else."""
    dump = getattr(value, "model_dump", None)
    if isinstance(value, type) or not callable(dump):
        return None
    try:
        data = dump(mode="json", by_alias=True)
    except Exception:  # noqa: BLE001  # a foreign object that cannot be dumped is written as text
        return None
    return data if isinstance(data, dict) else None


_plain_decoder = msgspec.json.Decoder()
_LONE_SURROGATE_MARK = b"\\ud"
_encoder = msgspec.json.Encoder(enc_hook=json_fallback)


def encode_json(value: Any) -> bytes:
    """JSON bytes of any type of the data model; NaN becomes null, unknown objects become text."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return _encoder.encode(without_lone_surrogates(msgspec.to_builtins(value, enc_hook=json_fallback)))


def decode_json(data: bytes | str) -> Any:
    """JSON as plain data. A lone surrogate, which Python's ``json`` writes and UTF-8 cannot hold, becomes "?".

    >>> decode_json(b'{"id": "a\\\\ud800"}')
    {'id': 'a?'}
    """
    try:
        return _plain_decoder.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        if isinstance(error, RecursionError) or _LONE_SURROGATE_MARK not in (
            data.lower() if isinstance(data, bytes) else data.encode("utf-8", "replace").lower()
        ):
            raise
        try:
            return without_lone_surrogates(json.loads(data, parse_constant=_refuse_constant))
        except (ValueError, RecursionError):
            raise error from None


def json_within(value: Any) -> Any:
    """What several providers record as JSON text, as data; any other value as it is.

    >>> json_within('{"to": "Rome"}'), json_within("Rome"), json_within("7")
    ({'to': 'Rome'}, 'Rome', '7')
    """
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return _plain_decoder.decode(value)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return value
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def without_lone_surrogates(value: Any) -> Any:
    """Plain data with "?" in place of each lone surrogate: it is not a valid character, and cannot be written."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {without_lone_surrogates(key): without_lone_surrogates(each) for key, each in value.items()}
    if isinstance(value, list):
        return [without_lone_surrogates(each) for each in value]
    return value


class _WrittenResult(Struct):
    """A result as a line has it, which is written faster than the class that users see."""

    name: str
    value: float | None
    detail: dict[str, Any]


class _WrittenScore(Struct, omit_defaults=True):
    """A score as a line has it: without its time, so that the same scores make the same line wherever they are made."""

    result: _WrittenResult
    status: Status
    backend: str
    version: str
    why: str | None = None


class _WrittenCase(Struct):
    index: int
    case_id: str
    scores: dict[str, _WrittenScore]
    v: int


def describe_own_file(names: Iterable[str], path: str) -> str | None:
    """What a file is whose first object has these names, where AgentUnit wrote it and it is no traces; else ``None``.

    >>> describe_own_file(["agentunit_run", "header"], "run.json")
    "an exported run: 'agentunit show run.json' shows it, 'agentunit runs --import run.json' takes it in"
    """
    found = set(names)
    quoted = shlex.quote(path)
    if "agentunit_run" in found:
        return f"an exported run: 'agentunit show {quoted}' shows it, 'agentunit runs --import {quoted}' takes it in"
    if found >= {"agentunit_version", "n_evaluations"}:
        return (
            "a report of pytest for programs, which no command reads: 'pytest --agentunit-report FILE.html' writes "
            "one in which every case can be read"
        )
    # A record may keep its scores in fields of its own.
    if not found >= {"index", "case_id", "scores"} or found & {"case", "outcome"}:
        return None
    return (
        "holds scores ('agentunit score --out' wrote it) and no records: name the traces that they were made of, or "
        "write '--out scores.parquet', which show, compare and export read"
    )


def append_scores(case: CaseScores, lines: bytearray) -> None:
    """Append a case's scores as one more line, with its end."""
    written = _WrittenCase(case.index, case.case_id, {}, case.v)
    for name, score in case.scores.items():
        result = score.result
        shown = _WrittenResult(result.name, result.value, result.detail)
        written.scores[name] = _WrittenScore(shown, score.status, score.backend, score.version, score.why)
    n_before = len(lines)
    try:
        _encoder.encode_into(written, lines, n_before)
    except Exception:  # noqa: BLE001  # a detail is a user's own object and may fail in any way when it is written
        del lines[n_before:]
        lines += _encoded_in_parts(written)
    lines += b"\n"


def _encoded_in_parts(case: _WrittenCase) -> bytes:
    try:
        return encode_json(case)
    except Exception:  # noqa: BLE001  # see above
        for score in case.scores.values():
            score.result.detail = _writable_detail(score.result.detail)
        return encode_json(case)


def _writable_detail(detail: dict[str, Any]) -> dict[str, Any]:
    try:
        encode_json(detail)
    except Exception as error:  # noqa: BLE001  # see above
        return {"reason": detail.get("reason"), "unwritable": type(error).__name__}
    return detail


def written_detail(detail: dict[str, Any]) -> bytes:
    """A detail as JSON, whatever it holds: what cannot be written is named."""
    try:
        return encode_json(detail)
    except Exception:  # noqa: BLE001  # see above
        return encode_json(_writable_detail(detail))


_case_scores_decoder = msgspec.json.Decoder(CaseScores)


def decode_case_scores(line: bytes) -> CaseScores:
    """Read back one line of a scores file; earlier versions also wrote the time that each score took.

    >>> line = encode_json(CaseScores(0, "q1", {}))
    >>> decode_case_scores(line).case_id
    'q1'
    """
    return _case_scores_decoder.decode(line)


publish("agentunit", CaseScores, MetricResult, RunSummary, Score)
