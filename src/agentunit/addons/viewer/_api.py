"""The viewer's API: what each route takes, does and gives. One table makes the routes and the OpenAPI document."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from msgspec import Struct, convert, json, structs

import agentunit
from agentunit.addons.viewer._case_table import CasesQuery
from agentunit.addons.viewer._comparing import compare_page
from agentunit.addons.viewer._label_desk import LabelDesk, labels_page
from agentunit.addons.viewer._library import Library, OpenRun, UnknownRun
from agentunit.addons.viewer._media import Media
from agentunit.addons.viewer._shown_case import ShownCase
from agentunit.addons.viewer._transcript import MOST_EVENTS, Transcript
from agentunit.addons.viewer._trends import runs_page, trends_page
from agentunit.engine.scoring.scored_run import run_from_store
from agentunit.metrics.base import MetricInfo
from agentunit.metrics.registry import parameter_defaults, registry
from agentunit.metrics.trust import describe_trust, known_backends
from agentunit.reports.case_view import plain
from agentunit.reports.reported_run import Mask

# The catalog of metrics with what each is worth (``Catalog`` of types.ts), made from the registry.

_FACTS = ("name", "family", "summary", "direction", "unit", "backend", "extra", "question", "version", "check")


@cache
def catalog() -> dict[str, Any]:
    """All metrics that are installed here; one that cannot be loaded is left out."""
    entries = []
    for name, info in registry.describe_all():
        if not isinstance(info, MetricInfo):
            continue
        entries.append(
            {
                **{fact: getattr(info, fact) for fact in _FACTS},
                "range": list(info.range),
                "inputs": list(info.inputs),
                "trust": {each: describe_trust(info, each, at_length=True) for each in known_backends(info)},
                "informational": sorted(info.informational),
                "parameters": plain(parameter_defaults(registry.create(name))),
            }
        )
    return {"metrics": entries}


API_VERSION = 1


class Request(Struct):
    """What a route is asked: names in its path, parameters, and the body of a write."""

    path: Mapping[str, str] = {}
    query: Mapping[str, str] = {}
    body: bytes = b""

    @property
    def personal(self) -> bool:
        """Whether personal data is to be shown."""
        return self.query.get("personal") == "1"

    def number(self, name: str, default: int) -> int:
        """A whole number among the parameters."""
        given = self.query.get(name, "")
        if not given:
            return default
        if not (given.isascii() and given.isdecimal() and len(given) <= 12):
            raise ValueError(f"{name} must be a whole number; received {given!r:.40}")
        return int(given)

    def flag(self, name: str) -> bool:
        """Whether a parameter is 1 or true."""
        return self.query.get(name, "") in ("1", "true")

    def needed(self, name: str) -> str:
        """A parameter that must be there."""
        if not self.query.get(name):
            raise ValueError(f"the parameter {name} is missing")
        return self.query[name]


class LabelAnswer(Struct, forbid_unknown_fields=True):
    """The body of a label."""

    metric: str
    rater: str
    key: str
    value: float | None
    note: str = ""


class TakenBack(Struct, forbid_unknown_fields=True):
    """The body that takes a label back."""

    metric: str
    rater: str


class Note(Struct, forbid_unknown_fields=True):
    """The body of a note."""

    key: str
    rater: str
    note: str


@dataclass(frozen=True)
class Route:
    """One route. ``gives`` names a type of types.ts; ``parameters`` are those of the query with what they mean."""

    path: str
    answer: Callable[[Request], Any]
    gives: str
    summary: str
    parameters: Mapping[str, str]
    method: str = "GET"
    takes: str | None = None


class Api:
    """Answers what pages ask, from a library."""

    def __init__(
        self,
        library: Library,
        *,
        run: str | None = None,
        compare: tuple[str, str] | None = None,
        rater: str = "",
        can_label: bool = True,
    ) -> None:
        self.library = library
        self._desk = LabelDesk(library)
        self._run = run
        self._compare = None if compare is None else {"baseline": compare[0], "candidate": compare[1]}
        self._rater = rater
        self._can_label = can_label

    def routes(self) -> list[Route]:
        """All routes, each described."""
        page = {"offset": "the first", "limit": "at most this many"}
        cases = {
            **page,
            "sort": "position, case, time, verdict or a column",
            "desc": "1: the greatest first",
            "filter": "an expression, such as faithfulness < 0.5 and tool_success == 1",
            "search": "words that id, question, answer or error hold",
            "fold": "1: repeats of a case as one row",
        }
        of_run, of_case = "/api/runs/{run}", "/api/runs/{run}/cases/{key}"
        asked = {"metric": "what is judged", "rater": "who labels"}
        table = [
            ("/api/index", self.index, "Index", "What can be seen here", {}),
            ("/api/runs", self.runs, "RunsPage", "The runs, the newest first", page),
            ("/api/trends", self.trends, "TrendsPage", "Metrics over the runs of a name", {"name": "of the runs"}),
            ("/api/catalog", self.catalog, "Catalog", "All metrics and what each is worth", {}),
            ("/api/pulse", self.pulse, "Pulse", "Whether anything changed", {"run": "an id"}),
            ("/api/compare", self.compare, "ComparePage", "Two runs", {"baseline": "an id", "candidate": "an id"}),
            (of_run, self.run, "RunPage", "A run, without its cases", {}),
            (f"{of_run}/slices", self.slices, "SliceTable", "Scores by slice", {"by": "a field: metadata.category"}),
            (f"{of_run}/cases", self.cases, "CasesPage", "A page of the table of cases", cases),
            (f"{of_run}/keys", self.keys, "CaseKey[]", "The records of a case", {"case": "its id"}),
            (of_case, self.case, "CaseDetail", "One record", {}),
            (f"{of_case}/events", self.events, "EventsPage", "A page of its transcript", page),
            (f"{of_case}/events/{{n}}", self.event, "TraceEvent", "One event, whole", {}),
            (f"{of_case}/find", self.find, "number[]", "The events that hold a text", {"text": "the text"}),
            (f"{of_case}/outline", self.outline, "Outline", "All events in columns", {}),
            (f"{of_case}/raw", self.raw, "unknown", "The record as it is kept", {}),
            (f"{of_case}/media/{{n}}", self.media, "bytes", "A picture, sound or video", {}),
            (f"{of_run}/labels", self.labels, "LabelsPage", "What people said", {}),
            (f"{of_run}/label", self.task, "LabelTask", "The question that is asked now", asked),
        ]
        writes = [
            (f"{of_run}/label", self.give, "LabelTask", "Keep a label", "LabelAnswer"),
            (f"{of_run}/label/undo", self.undo, "LabelTask", "Take the last label back", "LabelUndo"),
            (f"{of_run}/note", self.note, "Label", "Keep a note on a case", "CaseNote"),
        ]
        return [
            *(Route(path, answer, gives, summary, named) for path, answer, gives, summary, named in table),
            *(Route(path, answer, gives, summary, {}, "POST", takes) for path, answer, gives, summary, takes in writes),
        ]

    # The whole

    def index(self, request: Request) -> dict[str, Any]:
        """What can be seen here."""
        return {
            "api": API_VERSION,
            "agentunit_version": agentunit.__version__,
            "source": "live",
            "address": self.library.shown_address,
            "masked": not request.personal,
            "can_unmask": True,
            "can_label": self._can_label,
            "rater": self._rater,
            "run": self._run,
            "compare": self._compare,
            "comparisons": None,
        }

    def runs(self, request: Request) -> dict[str, Any]:
        """The list of runs."""
        return runs_page(
            self.library, request.number("offset", 0), request.number("limit", 50), personal=request.personal
        )

    def trends(self, request: Request) -> dict[str, Any]:
        """Metrics over time."""
        return trends_page(self.library, request.needed("name"), personal=request.personal)

    def catalog(self, request: Request) -> dict[str, Any]:
        """The catalog of metrics."""
        return catalog()

    def pulse(self, request: Request) -> dict[str, Any]:
        """What changes when a page should be asked for again."""
        headers = self.library.headers()
        if request.query.get("run"):
            headers = [self.library.header(request.query["run"])]
        return {
            "stamp": self.library.pulse,
            "live": any(header.status == "running" for header in headers),
            "n_done": sum(header.n_done for header in headers),
            "n_planned": headers[0].n_planned if len(headers) == 1 else None,
        }

    def compare(self, request: Request) -> dict[str, Any]:
        """Two runs."""
        baseline, candidate = request.needed("baseline"), request.needed("candidate")
        return compare_page(self.library, baseline, candidate, personal=request.personal)

    # A run

    def run(self, request: Request) -> dict[str, Any]:
        """A run, without its cases."""
        return self.library.run_page(request.path["run"], personal=request.personal)

    def slices(self, request: Request) -> dict[str, Any]:
        """Scores by slice."""
        return self.library.slices(request.path["run"], request.needed("by"), personal=request.personal)

    def cases(self, request: Request) -> dict[str, Any]:
        """A page of the table."""
        wanted = CasesQuery(
            request.number("offset", 0),
            request.number("limit", 100),
            request.query.get("sort", "position"),
            request.flag("desc"),
            request.query.get("filter", ""),
            request.query.get("search", ""),
            request.flag("fold"),
        )
        return self.library.run(request.path["run"]).table.page(wanted, self._mask(request))

    def keys(self, request: Request) -> list[str]:
        """The records of a case."""
        return self.library.keys(request.path["run"], request.needed("case"))

    # A case

    def case(self, request: Request) -> dict[str, Any]:
        """One record."""
        return self.library.case(request.path["run"], request.path["key"], personal=request.personal)

    def _transcript(self, request: Request) -> Transcript:
        opened = self.library.run(request.path["run"])
        return self.library.recorded_case(opened, request.path["key"])[1]

    def events(self, request: Request) -> dict[str, Any]:
        """A page of a transcript."""
        transcript = self._transcript(request)
        offset, limit = request.number("offset", 0), min(request.number("limit", 100), MOST_EVENTS)
        events = transcript.page(offset, limit, self._mask(request))
        return {"offset": offset, "n_events": len(transcript), "events": events}

    def event(self, request: Request) -> dict[str, Any]:
        """One event."""
        transcript, n = self._transcript(request), request.path["n"]
        if not (n.isdecimal() and n.isascii() and len(n) <= 12 and int(n) < len(transcript)):
            raise UnknownRun(f"the transcript has {len(transcript):,} events; received {n!r:.40}")
        return transcript.event(int(n), self._mask(request))

    def find(self, request: Request) -> list[int]:
        """The events that hold a text."""
        return self._transcript(request).find(request.needed("text"))

    def outline(self, request: Request) -> dict[str, Any]:
        """All events in columns."""
        return self._transcript(request).outline(self._mask(request))

    def raw(self, request: Request) -> Any:
        """The record itself."""
        opened = self.library.run(request.path["run"])
        case, _ = self.library.recorded_case(opened, request.path["key"])
        left_off = len(case.record.trace.events) - MOST_EVENTS
        if left_off > 0:
            # Masking and drawing all of it would take minutes; the transcript has the rest.
            trace = structs.replace(case.record.trace, events=case.record.trace.events[:MOST_EVENTS])
            case = structs.replace(case, record=structs.replace(case.record, trace=trace))
        masked = self._mask(request).case(case)
        return {"record": masked.record, "scores": masked.scores, "n_events_left_off": max(0, left_off)}

    def media(self, request: Request) -> Media:
        """A picture, sound or video."""
        opened = self.library.run(request.path["run"])
        case, transcript = self.library.recorded_case(opened, request.path["key"])
        n = request.path["n"]
        number = int(n) if n.isdecimal() and n.isascii() and len(n) <= 12 else -1
        of_case = ShownCase(case, self._mask(request), self.library.media_root).media
        found = of_case[number] if 0 <= number < len(of_case) else transcript.media(number)
        if found is None or found.refused is not None:
            raise UnknownRun(f"there is no such medium to show: {n!r:.40}")
        return found

    # Labels

    def labels(self, request: Request) -> dict[str, Any]:
        """What people said."""
        opened = self.library.run(request.path["run"])
        make = partial(self._labels_page, opened, self._mask(request))
        page: dict[str, Any] = self.library.made(
            ("labels", opened.header.id, request.personal), opened.stamp, make, wait=True
        )
        return page

    def _labels_page(self, opened: OpenRun, mask: Mask) -> dict[str, Any]:
        with self.library.store() as store:
            return labels_page(run_from_store(store, opened.header.id), mask)

    def task(self, request: Request) -> dict[str, Any]:
        """The question that is asked now."""
        return self._desk.task(
            request.path["run"], request.needed("metric"), request.needed("rater"), personal=request.personal
        )

    def give(self, request: Request) -> dict[str, Any]:
        """Keep a label."""
        said = self._body(request, LabelAnswer)
        return self._desk.give(request.path["run"], said.key, said.metric, said.rater, said.value, said.note)

    def undo(self, request: Request) -> dict[str, Any]:
        """Take a label back."""
        said = self._body(request, TakenBack)
        return self._desk.undo(request.path["run"], said.metric, said.rater)

    def note(self, request: Request) -> dict[str, Any]:
        """Keep a note."""
        said = self._body(request, Note)
        return self._desk.note(self.library.run(request.path["run"]), said.key, said.rater, said.note)

    def _body(self, request: Request, kind: type[Any]) -> Any:
        if not self._can_label:
            raise ValueError("this viewer only shows: its runs cannot be labeled here")
        try:
            return convert(json.decode(request.body), kind)
        except RecursionError:
            raise ValueError("the request has too many levels") from None

    def _mask(self, request: Request) -> Mask:
        return self.library.mask(request.personal)
