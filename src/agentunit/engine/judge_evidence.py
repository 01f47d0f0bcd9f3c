"""What judged scores tell besides their values: quotes that were found, texts that speak to the judge, disagreement.

They can be gated like metrics: ``injection_suspected all == 0``, ``quote_found >= 0.95``, ``judges_disagree <= 0.1``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentunit.metrics.base import MetricInfo
from agentunit.store.runs import ScoreRow

EVIDENCE = {
    "injection_suspected": MetricInfo(
        "injection_suspected",
        "quality",
        "1 where a text of the case seems to address the judge, by signs that are not proof.",
        direction="lower",
        range=(0.0, 1.0),
        backend="judge",
        trust={"judge": "signs, not proof"},
    ),
    "quote_found": MetricInfo(
        "quote_found",
        "quality",
        "The share of the judge's quotes that are really in the texts they name.",
        direction="higher",
        range=(0.0, 1.0),
        backend="judge",
        trust={"judge": "exact"},
    ),
    "judges_disagree": MetricInfo(
        "judges_disagree",
        "quality",
        "1 where the judges of a panel are at least half of the scale apart.",
        direction="lower",
        range=(0.0, 1.0),
        backend="judge",
        trust={"judge": "exact"},
    ),
}
_WITHOUT_VALUE = {"quote_found": "the judge quoted nothing", "judges_disagree": "one judge was asked"}


def evidence_rows(name: str, metrics: Mapping[str, Sequence[ScoreRow]]) -> list[ScoreRow] | None:
    """A row for each record that a judge has judged; ``None`` where there is none, or the name is another one's.

    A record that several metrics judged is suspected when one of them says so; its quotes are those of all.
    """
    info = EVIDENCE.get(name)
    judged: dict[tuple[int, int], list[ScoreRow]] = {}
    for rows in metrics.values() if info is not None else ():
        for row in rows:
            if row.judged is not None:
                judged.setdefault((row.position, row.repeat), []).append(row)
    if info is None or not judged:
        return None
    return [_row(info, rows) for _, rows in sorted(judged.items())]


def _row(info: MetricInfo, rows: Sequence[ScoreRow]) -> ScoreRow:
    told = [row.judged for row in rows if row.judged is not None]
    n_quotes = sum(each.n_quotes for each in told)
    value: float | None = float(any(each.is_suspected for each in told))
    if info.name == "quote_found":
        value = sum(each.n_quotes_found for each in told) / n_quotes if n_quotes else None
    if info.name == "judges_disagree":
        value = float(any(each.disagree for each in told)) if any(each.by_judge for each in told) else None
    first = rows[0]
    return ScoreRow(
        first.position,
        first.repeat,
        first.case_id,
        value,
        "ok" if value is not None else "not_applicable",
        info.backend,
        info.version,
        None if value is not None else _WITHOUT_VALUE[info.name],
    )


def keep_models_apart(rows: Sequence[ScoreRow]) -> None:
    """Name the model in the backend of each judged score where several models judged: they are never averaged.

    A run that was resumed with another judge has such scores.
    """
    models = {(row.backend, row.judged.models) for row in rows if row.judged is not None and row.judged.models}
    several = {backend for backend, _ in models if sum(backend == each for each, _ in models) > 1}
    for row in rows:
        if row.judged is not None and row.judged.models and row.backend in several:
            row.backend = f"{row.backend}:{'+'.join(row.judged.models)}"
