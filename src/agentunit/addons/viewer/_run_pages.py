"""A run as its page shows it (``RunPage`` and ``RunLine`` of types.ts): everything but its cases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import fsum, inf, isfinite
from typing import Any

from agentunit.addons.viewer._case_columns import RecordColumns
from agentunit.addons.viewer._decided import CASES_NAMED, decision_data, findings_data, is_decided_now
from agentunit.core.results import MetricSummary
from agentunit.engine.deciding.gate_expressions import GateVerdict
from agentunit.engine.deciding.stored import headline_rows
from agentunit.engine.scoring.slices import SliceTable
from agentunit.metrics.base import MetricInfo
from agentunit.metrics.trust import describe_trust
from agentunit.reports.case_view import plain
from agentunit.reports.figures import (
    GATE_WORDS,
    counted_cases,
    describe_clusters,
    describe_spending,
    describe_spread,
    duration,
    errors_first,
    gates_of_row,
    informational_notes,
    metric_cells,
    quantity,
    spread_rows,
    threshold_notes,
)
from agentunit.reports.printable import printable_line
from agentunit.reports.raters import describe_labeled, describe_panel, label_notes, panel_rows
from agentunit.reports.reported_run import Mask, ReportedRun, how_to_resume
from agentunit.reports.run_facts import origin_facts
from agentunit.reports.slice_table import slices_note
from agentunit.store.runs import RunHeader

_BINS = 20
_COLUMNS_SHOWN = 6
_AMOUNT_NAMES = {"USD": "cost", "tokens": "tokens", "s": "time", "Wh": "energy", "kWh": "energy", "g": "carbon"}


def header_line(header: RunHeader, size: str = "") -> dict[str, Any]:
    """What a header alone, masked before, says of a run (``RunLine``); its figures are still to come.

    ``size`` says how many cases and repeats it has, where that is known.
    """
    git = header.settings.get("git")
    commit = git.get("commit") if isinstance(git, dict) else None
    version = header.settings.get("agent_version")
    return {
        "id": header.id,
        "name": header.name,
        "label": header.label,
        "created_at": header.created_at,
        "finished_at": header.finished_at,
        "status": header.status,
        "live": header.status == "running",
        "n_planned": header.n_planned,
        "n_done": header.n_done,
        "size": size,
        "n_failed": header.n_failed,
        "tags": header.tags,
        "commit": commit if isinstance(commit, str) else None,
        "commit_dirty": bool(isinstance(git, dict) and git.get("dirty")),
        "agent_version": version if isinstance(version, str) else None,
        "pending": True,
        "verdict": None,
        "headline": "",
        "decided_now": False,
        "metrics": [],
        "cost_usd": None,
    }


def pending_page(header: RunHeader, columns: RecordColumns, infos: dict[str, MetricInfo], mask: Mask) -> dict[str, Any]:
    """The page of a run whose figures are being added up."""
    header = mask.header(header)
    nothing: dict[str, list[Any]] = {
        name: []
        for name in (
            *("findings", "gates", "metrics", "unscored", "amounts", "slices", "slice_fields"),
            *("known_failures", "judge", "notes"),
        )
    }
    return {
        "line": header_line(header, counted_cases(columns.n_cases, columns.n_repeats, columns.n_rows)),
        "facts": _facts(header, mask),
        "n_cases": columns.n_cases,
        "n_records": columns.n_rows,
        "n_failed": header.n_failed,
        "n_repeats": columns.n_repeats,
        "resume": _resume(header, mask),
        "pending": True,
        "decision": None,
        "n_more_findings": 0,
        **nothing,
        "columns": [_column(infos[name], None, at < _COLUMNS_SHOWN) for at, name in enumerate(columns.metrics)],
    }


def run_page(reported: ReportedRun, columns: RecordColumns, slice_fields: Sequence[str]) -> dict[str, Any]:
    """The page of a run."""
    run, summary, decision = reported.run, reported.summary, reported.decision
    infos = reported.infos
    line = header_line(reported.header, counted_cases(run.n_cases, run.n_repeats, run.n_records))
    line.update(
        pending=False,
        verdict=None if line["live"] else decision.verdict,
        headline=_headline(reported),
        decided_now=is_decided_now(reported),
        metrics=[_key_metric(row, infos[row.metric]) for row in headline_rows(summary, infos)],
        cost_usd=_total(summary.metrics, "cost"),
    )
    return {
        "line": line,
        "facts": _facts(reported.header, reported.mask),
        "n_cases": run.n_cases,
        "n_records": run.n_records,
        "n_failed": run.n_failed,
        "n_repeats": run.n_repeats,
        "resume": _resume(run.header, reported.mask),
        "pending": False,
        "decision": decision_data(reported, line["headline"]),
        # Those of a run that is going on would be read anew with every case.
        **(findings_data(()) if line["live"] else findings_data(reported.findings)),
        "gates": [_gate(each) for each in decision.gates],
        "metrics": [
            _card(
                row,
                infos[row.metric],
                gates_of_row(decision.gates, row, summary.metrics),
                _values(row, reported, columns),
            )
            for row in summary.metrics
        ],
        "columns": _columns(columns.metrics, infos, summary.metrics),
        "unscored": plain(errors_first(summary.unscored)),
        "amounts": [_amount(row, infos[row.metric]) for row in summary.metrics if _is_amount(row, infos[row.metric])],
        "slices": [slice_data(table, infos) for table in reported.slices],
        "slice_fields": list(slice_fields),
        "known_failures": plain(decision.known_failures),
        "judge": _judge(reported),
        "notes": _notes(reported),
    }


def _headline(reported: ReportedRun) -> str:
    """What was decided; of a run that is going on what would be by now: a score that is missing is no fault yet."""
    if reported.run.header.status != "running":
        return reported.decision.headline
    if not any(row.n_scored for row in reported.summary.metrics):
        return "The run is still going; nothing is scored yet."
    return f"The run is still going; so far: {reported.decision.headline}"


def _resume(header: RunHeader, mask: Mask) -> str | None:
    command = how_to_resume(header)
    return None if command is None else mask.text(command)


def _facts(header: RunHeader, mask: Mask) -> list[tuple[str, str]]:
    settings = header.settings
    facts = [("run", header.id), *origin_facts(header)]
    places = {name: settings[name] for name in ("agent", "dataset", "suite") if isinstance(settings.get(name), str)}
    facts += mask.data(places).items()
    if header.finished_at is not None and header.finished_at >= header.created_at:
        facts.append(("took", duration(header.finished_at - header.created_at)))
    facts.append(("AgentUnit", header.agentunit_version))
    return [(name, printable_line(text, 300)) for name, text in facts]


def _key_metric(row: MetricSummary, info: MetricInfo) -> dict[str, Any]:
    return {
        "metric": row.metric,
        "backend": row.backend,
        "unit": info.unit,
        "direction": info.direction,
        **{name: getattr(row, name) for name in ("mean", "low", "high")},
        "history": [row.mean],
    }


def _gate(verdict: GateVerdict) -> dict[str, Any]:
    gate = verdict.gate
    return {
        "expression": str(gate),
        "verdict": verdict.verdict,
        "word": GATE_WORDS[verdict.verdict],
        "metric": gate.metric,
        "aggregate": gate.aggregate,
        "operator": gate.operator,
        "threshold": gate.threshold,
        "coverage": verdict.coverage,
        "cases": list(verdict.cases[:CASES_NAMED]),
        **{name: getattr(verdict, name) for name in ("reason", "value", "low", "high", "near", "note")},
    }


_CARD_FACTS = (
    *("metric", "backend", "version", "status", "n_scored", "mean", "low", "high", "interval", "mean_of", "minimum"),
    *("p50", "p95", "maximum", "total", "share_from_half", "pass_all", "pass_any", "n_repeats", "within_case_sd"),
    *("share_low", "cut", "between_cases_sd", "worst_cases", "n_below_best"),
)


def _values(row: MetricSummary, reported: ReportedRun, columns: RecordColumns) -> list[float]:
    """The values behind a row; where the metric has several, those of its own backend and status."""
    if row.metric not in columns.metrics:
        return []
    if sum(each.metric == row.metric for each in reported.summary.metrics) == 1:
        return [value for value in columns.numbers(row.metric) if isfinite(value)]
    scores = reported.run.metrics[row.metric]
    values = (each.value for each in scores if (each.backend, each.status) == (row.backend, row.status))
    return [value for value in values if value is not None and isfinite(value)]


def _card(
    row: MetricSummary, info: MetricInfo, gates: Sequence[GateVerdict], values: Sequence[float]
) -> dict[str, Any]:
    labeled = None
    if row.labeled is not None:
        names = ("rate", "low", "high", "n_labels", "n_cases", "raters", "n_disagreed", "alpha", "method", "reason")
        labeled = {name: getattr(row.labeled, name) for name in names}
        labeled["shown"] = describe_labeled(row.labeled)
    return {
        **{name: getattr(row, name) for name in _CARD_FACTS},
        "unit": info.unit,
        "direction": info.direction,
        "range": list(info.range),
        "family": info.family,
        "summary": info.summary,
        "n_records": row.n_cases,
        "shown": metric_cells(row, info).value,
        "amount": None if row.amount is None else plain(row.amount),
        "labeled": labeled,
        "thresholds": [
            {
                "operator": each.gate.operator,
                "threshold": each.gate.threshold,
                "aggregate": each.gate.aggregate,
                "word": GATE_WORDS[each.verdict],
            }
            for each in gates
        ],
        "distribution": distribution(values, info),
        "trust": row.trust or "–",
        "trust_at_length": describe_trust(
            info,
            row.backend,
            at_length=True,
            n_scored=row.n_scored,
            n_unmeasured=row.n_unmeasured,
            is_other_text=row.informational is not None,
        ),
    }


def distribution(known: Sequence[float], info: MetricInfo) -> dict[str, Any] | None:
    """How often values fall into each of 20 equal steps of the metric's range, or of what was seen."""
    if not known:
        return None
    low = info.range[0] if info.range[0] is not None else min(known)
    high = info.range[1] if info.range[1] is not None else max(known)
    # Twenty steps of a range as narrow as 1e-313, or wider than a number can tell, are none.
    if not low < high or not 0.0 < (scale := _BINS / (high - low)) < inf:
        return {"low": low, "high": high, "counts": [len(known)], "n": len(known)}
    counts = [0] * _BINS
    for value in known:
        counts[min(_BINS - 1, max(0, int((value - low) * scale)))] += 1
    return {"low": low, "high": high, "counts": counts, "n": len(known)}


def _columns(
    metrics: Sequence[str], infos: dict[str, MetricInfo], rows: Iterable[MetricSummary]
) -> list[dict[str, Any]]:
    # A metric is shown by the scores that decide; of several rows the first.
    of_metric: dict[str, MetricSummary] = {}
    for each in sorted(rows, key=lambda row: row.status != "ok"):
        of_metric.setdefault(each.metric, each)

    def rank(name: str) -> tuple[bool, bool]:
        row = of_metric.get(name)
        return row is None or row.status != "ok" or not row.n_scored, infos[name].unit != "score"

    shown = set(sorted(metrics, key=rank)[:_COLUMNS_SHOWN])
    return [_column(infos[name], of_metric.get(name), name in shown) for name in metrics]


def _column(info: MetricInfo, row: MetricSummary | None, shown: bool) -> dict[str, Any]:
    return {
        "name": info.name,
        "metric": info.name,
        "unit": info.unit,
        "direction": info.direction,
        "mean_of": info.mean_of,
        "low": info.range[0],
        "high": info.range[1],
        "status": "ok" if row is None else row.status,
        "summary": info.summary,
        "shown": shown,
    }


def _is_amount(row: MetricSummary, info: MetricInfo) -> bool:
    return row.n_scored > 0 and (row.amount is not None or info.unit != "score")


def _amount(row: MetricSummary, info: MetricInfo) -> dict[str, Any]:
    unit, mean, p95, total = info.unit, row.mean, row.p95, row.total
    if row.amount is not None:
        unit, mean, p95, total = row.amount.unit, row.amount.mean, row.amount.p95, row.amount.total
    shown = [f"{quantity(total, unit)} in all"] if total is not None and row.aggregate != "last" else []
    shown += [f"{quantity(mean, unit)} a case"] if mean is not None else []
    return {
        "name": _AMOUNT_NAMES.get(unit, row.metric),
        "metric": row.metric,
        "unit": unit,
        "total": total,
        "mean": mean,
        "p95": p95,
        "n_scored": row.n_scored,
        "n_records": row.n_cases,
        "shown": ", ".join(shown),
    }


def _total(rows: Iterable[MetricSummary], metric: str) -> float | None:
    totals = [row.total for row in rows if row.metric == metric and row.total is not None and row.n_scored]
    return fsum(totals) if totals else None


_SLICE_FACTS = (
    *("metric", "backend", "status", "slice", "n_cases", "n_scored", "mean", "low", "high", "rest_mean"),
    *("difference", "too_small"),
)


def slice_data(table: SliceTable, infos: dict[str, MetricInfo]) -> dict[str, Any]:
    """A table by slice (``SliceTable`` of types.ts)."""
    rows = []
    for row in table.rows:
        info = infos.get(row.metric) or MetricInfo(row.metric, "custom", "")
        facts = {name: getattr(row, name) for name in _SLICE_FACTS}
        rows.append({**facts, "unit": info.unit, "direction": info.direction})
    note = f"new run − baseline; {slices_note(table)}" if table.differences else slices_note(table)
    return {"by": table.by, "note": note, "rows": rows}


def _judge(reported: ReportedRun) -> list[str]:
    summary = reported.summary
    lines = [
        f"{row.metric}: {describe_spread(spread, reported.unit(row.metric))}"
        for row, spread in spread_rows(summary.metrics)
    ]
    for metric, panel in panel_rows(summary.metrics):
        lines += [f"panel of {metric}: {line}" for line in describe_panel(panel)]
    return lines + [f"spent by the {who}: {words}" for who, words in describe_spending(summary)]


def _notes(reported: ReportedRun) -> list[str]:
    rows = reported.summary.metrics
    notes = [*label_notes(rows), *threshold_notes(rows), *informational_notes(rows)]
    clusters = describe_clusters(reported.summary)
    return [clusters, *notes] if clusters else notes
