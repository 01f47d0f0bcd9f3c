"""A run as one HTML file: no request leaves it, no string in it becomes markup, and thousands of cases stay usable.

The cases are embedded as JSON, one a line; a case's body is read and drawn only when it is opened.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import IO, Any

from agentunit.core.results import encode_json
from agentunit.metrics.base import MetricInfo
from agentunit.multiagent.drawing.graph import draw_network
from agentunit.multiagent.drawing.shapes import STYLE as PICTURE_STYLE
from agentunit.multiagent.drawing.timeline import draw_lanes
from agentunit.reports.case_view import plain, view_case
from agentunit.reports.figures import DIRECTION_MARK, counted_cases
from agentunit.reports.html_overview import overview, title_of
from agentunit.reports.html_tables import html_text
from agentunit.reports.printable import printable_line
from agentunit.reports.reported_run import ReportedCase, ReportedRun
from agentunit.reports.reporters import whole_file

_TEXT_LENGTH = 20_000
_ENTRIES = 500
_MOST_DEPTH = 60
_QUESTION_LENGTH = 300
# A browser still opens a page of this size in seconds. Cases past it are listed without their body.
_MOST_BODY_BYTES = 150_000_000
# The list of cases has a column for each of so many metrics; the rest are in the opened case.
_MOST_COLUMNS = 5
_STATUS_LETTER = {"ok": "o", "informational": "i", "not_applicable": "n", "error": "e"}


def write_html(reported: ReportedRun, path: str | os.PathLike[str]) -> int:
    """Write a run as one self-contained HTML file; returns the number of records."""
    style, script = f"{_page_part('run.css')}{PICTURE_STYLE}\n", _page_part("run.js")
    with whole_file(path) as stream:
        _write(stream, _head(reported, style, script))
        _write(stream, overview(reported))
        _write(stream, _case_browser(reported))
        # The first line of the block is empty; each further line is the body of one case.
        _write(stream, '<script type="application/json" id="bodies">\n')
        index = _write_bodies(reported, stream)
        _write(stream, "</script>\n")
        _write(stream, f'<script type="application/json" id="index">{_embedded(index)}</script>\n')
        _write(stream, f"<script>{script}</script>\n</body>\n</html>\n")
    return len(index["cases"])


def _page_part(name: str) -> str:
    return files("agentunit.reports.page").joinpath(name).read_text(encoding="utf-8")


def _head(reported: ReportedRun, style: str, script: str) -> str:
    # Only this very style and script may act: anything that slipped into the page would be refused by the browser.
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_fingerprint(script)}'",
            f"style-src '{_fingerprint(style)}'",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{html_text(title_of(reported), 80)}: AgentUnit</title>\n"
        f"<style>{style}</style>\n</head>\n<body>\n"
    )


def _fingerprint(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode("utf-8")).digest()).decode()


def _case_browser(reported: ReportedRun) -> str:
    """The empty list of cases with its controls; the script fills it."""
    infos = _all_infos(reported)
    metrics = list(infos)
    orders = [("", "dataset order"), ("id", "id"), ("slow", "slowest first")]
    orders += [(f"m{at}", f"worst {name}") for at, name in enumerate(metrics) if _has_values(reported, name)]
    # The same case in several runs is looked at together.
    orders = [orders[1], orders[0], *orders[2:]] if reported.others else orders
    options = _options(orders)
    compared = any(run.decision.comparison is not None for run in reported.runs)
    filters = (
        ("all", "all cases"),
        *((("newly", "newly failing"),) if compared else ()),
        ("imperfect", "below perfect"),
        ("failed", "agent failed"),
        ("errors", "anything broken"),
    )
    kinds, which = _options(filters), ""
    if reported.others:
        runs = _options([("", "all runs"), *((str(at), run.label) for at, run in enumerate(reported.runs))])
        which = f'<label>Run<select id="which">{runs}</select></label>\n'
    shown = _columns(reported)
    headings = '<th scope="col" data-order="id"><button type="button">case</button></th><th scope="col">question</th>'
    for at, name in enumerate(metrics):
        if name in shown:
            mark = DIRECTION_MARK[infos[name].direction]
            title = f'<button type="button" title="worst first">{html_text(name, 60)}{mark}</button>'
            headings += f'<th scope="col" class="num" data-order="m{at}">{title}</th>'
    headings += '<th scope="col" class="num" data-order="slow"><button type="button">time</button></th>'
    return (
        '<h2 id="cases">Cases</h2>\n<noscript><p>The list of cases needs JavaScript; it is in this file and runs '
        "offline.</p></noscript>\n"
        '<div id="browser" hidden>\n<div class="tools" role="search" aria-label="Cases">\n'
        '<label class="grow">Search<input id="search" type="search" autocomplete="off" spellcheck="false"></label>\n'
        f'{which}<label>Show<select id="only">{kinds}</select></label>\n'
        f'<label>Order<select id="order">{options}</select></label>\n</div>\n'
        '<p id="count" class="soft" role="status" aria-live="polite"></p>\n'
        f'<div class="card"><table class="cases wide">\n<thead><tr>{headings}</tr></thead>\n'
        '<tbody id="rows"></tbody>\n</table></div>\n'
        '<button id="more" class="more" type="button" hidden>Show more</button>\n</div>\n</main>\n'
        "<footer>Made by AgentUnit. This file is complete: it asks nothing of any network.</footer>\n"
    )


def _options(named: Iterable[tuple[str, str]]) -> str:
    return "".join(f'<option value="{value}">{html_text(label, 80)}</option>' for value, label in named)


def _all_infos(reported: ReportedRun) -> dict[str, MetricInfo]:
    """The metrics of all runs of the report."""
    return {name: info for run in reversed(reported.runs) for name, info in run.infos.items()}


def _columns(reported: ReportedRun) -> list[str]:
    """The metrics that get a column: scores one may decide on first, then the other ones."""
    infos = _all_infos(reported)
    rows = {row.metric: row for run in reversed(reported.runs) for row in reversed(run.summary.metrics)}

    def rank(name: str) -> tuple[bool, bool]:
        row = rows.get(name)
        return row is None or row.status != "ok", infos[name].unit != "score"

    scored = [name for name in infos if _has_values(reported, name)]
    return sorted(scored, key=rank)[:_MOST_COLUMNS]


def _has_values(reported: ReportedRun, metric: str) -> bool:
    return any(row.metric == metric and row.n_scored for run in reported.runs for row in run.summary.metrics)


def _write_bodies(reported: ReportedRun, stream: IO[bytes]) -> dict[str, Any]:
    """Write the body of every case, and return what the list needs to know of them."""
    infos = _all_infos(reported)
    entries = []
    n_bytes = 0
    for place, run in enumerate(reported.runs):
        comparison = run.decision.comparison
        newly = frozenset(() if comparison is None else comparison.newly_failing)
        for case in run.cases():
            facts = {"run": place, **({"newly_failing": True} if case.case_id in newly else {})}
            entries.append({**_list_entry(case, list(infos)), **facts})
            if n_bytes < _MOST_BODY_BYTES:
                n_bytes += _write(stream, _embedded(_body(case)))
            _write(stream, "\n")
    shown = _columns(reported)
    size = counted_cases(reported.run.n_cases, reported.run.n_repeats, len(entries))
    return {
        "runs": [{"id": run.run.header.id, "label": run.label} for run in reported.runs],
        "repeated": any(run.run.n_repeats > 1 for run in reported.runs),
        "size": f"{len(entries):,} records of {len(reported.runs)} runs" if reported.others else size,
        "entries": _ENTRIES,
        "metrics": [_metric_entry(name, info, shown) for name, info in infos.items()],
        "cases": entries,
    }


def _body(case: ReportedCase) -> dict[str, Any]:
    """The view of a case as the page's script reads it; a team comes as drawings, not as the facts behind them."""
    view = view_case(case)
    pictures = []
    if view.network is not None and view.lanes is not None:
        pictures = [draw_network(view.network).data(), draw_lanes(view.lanes).data()]
        view.network = view.lanes = None
    body: dict[str, Any] = _shortened(plain(view))
    return {**body, "pictures": pictures} if pictures else body


def _metric_entry(name: str, info: MetricInfo, shown: Sequence[str]) -> dict[str, Any]:
    low, high = info.range
    facts = {"name": name, "unit": info.unit, "direction": info.direction, "low": low, "high": high}
    return {**facts, "summary": info.summary, "shown": name in shown}


def _list_entry(case: ReportedCase, metrics: Sequence[str]) -> dict[str, Any]:
    scores = [case.scores.get(metric) for metric in metrics]
    return {
        "id": case.case_id,
        "repeat": case.repeat + 1,
        "failed": case.failed,
        "elapsed_s": round(case.elapsed_s, 4),
        "query": printable_line(case.record.case.query or "", _QUESTION_LENGTH),
        "values": [None if score is None else score.result.value for score in scores],
        "statuses": "".join("n" if score is None else _STATUS_LETTER.get(score.status, "n") for score in scores),
    }


def _shortened(value: Any, depth: int = 0) -> Any:
    """Data with overlong texts and lists cut, each text with a word about what is missing."""
    if isinstance(value, str):
        left_off = len(value) - _TEXT_LENGTH
        return value if left_off <= 0 else f"{value[:_TEXT_LENGTH]}… ({left_off:,} more characters)"
    if isinstance(value, (dict, list)) and depth > _MOST_DEPTH:
        return "… (nested deeper)"
    if isinstance(value, dict):
        return {key: _shortened(each, depth + 1) for key, each in value.items()}
    if isinstance(value, list):
        kept = [_shortened(each, depth + 1) for each in value[:_ENTRIES]]
        # The lists of the view itself hold entries, not texts: there the page says what is missing.
        return kept if depth == 1 or len(value) <= _ENTRIES else [*kept, f"… ({len(value) - _ENTRIES:,} more)"]
    return value


def _embedded(value: Any) -> str:
    r"""JSON that may stand inside a script element: no ``</script>``, no ``<!--``, one line.

    >>> _embedded({"answer": "</script><!--"})
    '{"answer":"\\u003c/script\\u003e\\u003c!--"}'
    """
    text = encode_json(value).decode("utf-8")
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _write(stream: IO[bytes], text: str) -> int:
    return stream.write(text.encode("utf-8", "replace"))
