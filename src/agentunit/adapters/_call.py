"""One call of an agent in flight. At any moment it holds all that is known, so that a call cut short loses nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import msgspec

from agentunit.adapters.base import MAX_REPLY_BYTES, TOO_MUCH, AgentResult, FailureKind, opened, sealed
from agentunit.adapters.failures import describe_error, traceback_text
from agentunit.core.case import AskedCase, DatasetCase
from agentunit.core.codec import RecordError, as_outcome, as_trace, why_not_json
from agentunit.core.records import Outcome, as_mapping
from agentunit.core.results import encode_json
from agentunit.core.trace import TraceEvent, TraceLog
from agentunit.probes import probe_settings as probes
from agentunit.traces.live.capture import SpanCapture, case_capture
from agentunit.traces.spans import Span

if TYPE_CHECKING:
    from agentunit.probes.measuring import Measurement


_OUTCOME_KEYS = frozenset(Outcome.__struct_fields__) - {"extra"}


class WrongType(Exception):
    """What an agent gave is not an answer; the message says what it was."""


class AgentCall:
    """The trace and the answer of one call while they come about."""

    __slots__ = ("elapsed_s", "failure", "outcome", "pieces", "probe", "send_span", "spans", "started", "trace")

    def __init__(self, events: list[TraceEvent] | None = None, send_span: Callable[[Span], None] | None = None) -> None:
        self.trace = TraceLog() if events is None else TraceLog(events)
        self.pieces: list[str] = []
        self.outcome: Outcome | None = None
        self.failure: FailureKind | None = None
        self.elapsed_s: float | None = None
        self.spans: SpanCapture | None = None
        self.probe: Measurement | None = None
        self.send_span = send_span
        self.started = time.perf_counter()

    def begin_spans(self) -> None:
        """Capture the spans of this context, if somebody turned that on; they are in the trace when it is sealed."""
        self.spans = case_capture(self.send_span)

    def end_spans(self) -> None:
        """The agent's code has come to its end; in the context in which it began."""
        if self.spans is not None:
            self.spans.end()

    def starting(self) -> AbstractContextManager[None]:
        """Within it a program is started and ``begin_probe`` called, so that nothing it detaches is lost from sight."""
        if probes.wanted.get() is None:
            return nullcontext()
        from agentunit.probes.meter import meter

        return meter().adopting()

    def begin_probe(self, pid: int | None = None) -> None:
        """Measure from here on, if the run's metrics ask for it: this process, or a child of it."""
        wanted = probes.wanted.get()
        if wanted is None:
            return
        from agentunit.probes.measuring import measure

        self.probe = measure(self.trace, sample_interval=wanted.sample_interval_s, pid=pid).start()
        # The time it takes to find out what can be measured is not the agent's.
        self.started = time.perf_counter()

    def end_probe(self) -> None:
        """Write what was measured into the trace; the second time changes nothing."""
        if self.probe is not None:
            # A program may have sent a trace of its own.
            self.probe.trace = self.trace
            self.probe.stop()

    def take_piece(self, piece: object) -> None:
        """Keep what a generator yielded: text is part of the answer, a dict or an Outcome is all of it."""
        if not self.pieces and self.outcome is None:
            self.metadata["first_output_s"] = time.perf_counter() - self.started
        if isinstance(piece, str):
            self.pieces.append(piece)
        elif isinstance(piece, Outcome) or as_mapping(piece) is not None:
            self.outcome = outcome_of(piece)
        else:
            raise WrongType(f"the agent yielded {_describe_type(piece)}; a generator yields strings, or one dict")

    def finish_pieces(self, returned: object = None) -> None:
        """The generator came to its end, perhaps with a value of its own."""
        if self.outcome is None and returned is not None:
            self.outcome = outcome_of(returned)
        if self.outcome is None and not self.pieces:
            raise WrongType("the agent yielded nothing; a generator yields strings, or one dict")
        self._end(self.outcome or Outcome())

    def finish(self, returned: object) -> None:
        """The agent returned."""
        self._end(outcome_of(returned))

    def raised(self, error: BaseException) -> None:
        """The agent's code ended with an exception."""
        if isinstance(error, WrongType):
            self.fail("wrong_type", str(error))
        elif isinstance(error, SystemExit):
            self.fail("exit", f"the agent called sys.exit: {describe_error(error)}")
        else:
            self.fail("raised", describe_error(error))
            self.metadata["traceback"] = traceback_text(error)

    def timed_out(self, timeout_s: float, place: str | None = None, why: str = "") -> None:
        """The time is up. ``place`` is where the agent was."""
        was_at = f" (it was at {place})" if place else ""
        self.fail("timeout", f"timeout: no answer within {timeout_s:g} s{why}{was_at}")

    def fail(self, failure: FailureKind, sentence: str) -> None:
        """End the call as failed, with what was answered so far."""
        # A generator may have yielded its outcome before it failed: the answer stays, its verdict does not.
        outcome = self.outcome or Outcome()
        outcome.success, outcome.error = False, sentence
        self.failure = failure
        self.metadata["failure"] = failure
        self._end(outcome)

    @property
    def metadata(self) -> dict[str, Any]:
        """The trace's metadata, made anew if the agent put something else in its place."""
        if not isinstance(self.trace.metadata, dict):
            self.trace.metadata = {}
        return self.trace.metadata

    def sealed(self) -> bytes:
        """The finished call as bytes, cut loose from all that the agent may still hold and change."""
        if self.spans is not None:
            metadata = self.metadata
            try:
                self.spans.collect_into(self.trace)
            except Exception as error:  # noqa: BLE001 - an agent may have put anything into its trace
                metadata["capture_error"] = f"the spans cannot be joined to the trace: {describe_error(error)}"
        data = sealed(self.outcome or Outcome(), self.trace, self.elapsed_s or 0.0, self.failure)
        if len(data) > MAX_REPLY_BYTES:
            too_much = AgentCall()
            too_much.fail("raised", TOO_MUCH.format("the agent's answer and trace"))
            data = too_much.sealed()
        return data

    def result(self) -> AgentResult:
        """The finished call."""
        return opened(self.sealed())

    def _end(self, outcome: Outcome) -> None:
        self.elapsed_s = time.perf_counter() - self.started
        if outcome.output is None and self.pieces:
            outcome.output = "".join(self.pieces)
        self.outcome = outcome


def outcome_of(returned: object) -> Outcome:
    """The outcome that an agent's return value stands for; anything that is none raises ``WrongType``.

    A dict with a key of ``Outcome`` is one, and what else it holds goes to ``extra``; any other dict is the output
    itself.

    >>> outcome_of({"output": "Paris", "mood": "good"}).extra
    {'mood': 'good'}
    >>> outcome_of({"city": "Paris"}).output
    {'city': 'Paris'}
    """
    if isinstance(returned, str):
        return Outcome(output=str(returned))
    plain = as_mapping(returned)
    if plain is not None:
        try:
            outcome = as_outcome(plain) if _OUTCOME_KEYS & plain.keys() else Outcome(output=plain)
        except RecordError as error:
            raise WrongType(f"the agent's answer does not fit an outcome: {error}") from None
    elif isinstance(returned, Outcome):
        # A copy: the agent may hand out the same object every time, and we write into it.
        outcome = msgspec.structs.replace(returned)
    else:
        raise WrongType(
            f"the agent returned {_describe_type(returned)}; an answer is a string, a dict with 'output', or an Outcome"
        )
    _check_is_data(outcome.output)
    return outcome


def _check_is_data(output: Any) -> None:
    """An output that only a Python repr could stand for is not an answer."""
    if output is None or isinstance(output, (str, bool, int, float)):
        return
    try:
        _data_encoder.encode(output)
    except WrongType:
        raise
    except UnicodeEncodeError:
        pass
    except Exception as error:  # noqa: BLE001 - cyclic data, and whatever a foreign object raises
        why = why_not_json(error) if isinstance(error, RecursionError) else describe_error(error)
        raise WrongType(f"the agent's output cannot be written as JSON: {why}") from None


def _only_data(value: object) -> Any:
    if hasattr(value, "tolist") and not isinstance(value, type):
        return value.tolist()
    raise WrongType(f"the agent's output holds {_describe_type(value)}; an output is text or JSON data")


_data_encoder = msgspec.json.Encoder(enc_hook=_only_data)


def _describe_type(value: object) -> str:
    return "None" if value is None else f"an object of type {type(value).__qualname__}"


MAX_ANSWER_BYTES = 16 * 1024 * 1024
"""The longest answer that is read."""


def request_json(case: DatasetCase, seed: int | None) -> bytes:
    """The question as JSON: ``id``, ``query``, ``context``, ``tools``, ``metadata`` and ``seed``, always all of them.

    The expected output is not among them: it is what the answer is compared with. In a conversation there is also
    ``messages``, what was said up to and with the query.

    >>> request_json(DatasetCase("q1", "Capital of France?", expected_output="Paris"), seed=7)
    b'{"id":"q1","query":"Capital of France?","context":null,"tools":null,"metadata":{},"seed":7}'
    """
    shown = {name: getattr(case, name) for name in ("id", "query", "context", "tools", "metadata")}
    said = {"messages": case.messages} if isinstance(case, AskedCase) else {}
    return encode_json({**shown, **said, "seed": seed})


def take_reply(call: AgentCall, text: str, *, may_be_text: bool) -> None:
    """Finish a call with the text that came back.

    A JSON object is an outcome, with the trace under ``trace`` (an object, or a list of events); a JSON string is the
    output. Anything else is the answer itself where plain text is allowed.
    """
    try:
        value: Any = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
        # Half an object, or one with log lines before it, was meant as JSON: taken as text it could pass a check.
        if not may_be_text or text.lstrip().startswith("{") or text.rstrip().endswith("}"):
            raise WrongType(
                f"the answer is not valid JSON: {error} (one JSON object and nothing else; logs belong on stderr)"
            ) from None
        value = text.strip()
    if isinstance(value, dict):
        _take_object(call, value)
    elif isinstance(value, str):
        if not value:
            raise WrongType("the answer is empty")
        call.finish(value)
    elif may_be_text:
        call.finish(text.strip())
    else:
        raise WrongType(f"the answer is JSON, but {_JSON_NAMES[type(value)]}; it must be an object or a string")


_JSON_NAMES = {type(None): "null", bool: "a boolean", int: "a number", float: "a number", list: "an array"}


def _take_object(call: AgentCall, answer: dict[str, Any]) -> None:
    trace = answer.pop("trace", None)
    if trace is not None:
        metadata = call.metadata
        try:
            call.trace = as_trace(trace) if isinstance(trace, (dict, list)) else call.trace
        except RecordError as error:
            call.metadata["trace_error"] = f"the trace of the answer was left out: {error}"
        call.metadata.update(metadata)
    call.finish(outcome_of(answer))
