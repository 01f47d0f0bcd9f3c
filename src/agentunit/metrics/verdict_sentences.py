"""Why a model or a judge scored as it did: the fact in the detail of its verdict that decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentunit.backends.quality import Verdict
from agentunit.metrics.sentences import counted, listed, quoted, sentence

Entry = Mapping[str, Any]
_SUPPORTED = "supported"
_SHORT_QUOTE = 32
_BASES = {"equal text": "equals the expected answer", "blank answer": "the answer is blank"}


def why_of_verdict(verdict: Verdict, context: Sequence[str], backend: str) -> str:
    """The sentence on a verdict with a value: the backend's own, else one of the claims, facts or passages it lists.

    >>> claims = [{"claim": "It is in France.", "verdict": "supported"}, {"claim": "It is old.", "verdict": "unknown"}]
    >>> why_of_verdict(Verdict(0.5, {"claims": claims}), [], "judge")
    '1 of 2 claims not supported: "It is old."'
    """
    detail = verdict.detail
    own = detail.get("why")
    why = own if isinstance(own, str) and own.strip() else _of_detail(verdict.value or 0.0, detail, context)
    why = why or f"backend {quoted(backend)} says {verdict.value:.2g}"
    return sentence(f"the judges disagree; one says: {why}" if detail.get("judges_disagree") else why)


def _of_detail(value: float, detail: Entry, context: Sequence[str]) -> str | None:
    if isinstance(detail.get("rule"), str):
        return str(detail["rule"])
    if detail.get("basis") in _BASES:
        return _BASES[detail["basis"]]
    claims = _entries(detail.get("claims"))
    if claims:
        return _of_claims(value, claims, detail.get("threshold"))
    passages = _entries(detail.get("passages"))
    return _of_passages(passages, context) if passages else _of_facts(detail)


def _of_claims(value: float, claims: Sequence[Entry], threshold: Any) -> str | None:
    """The claim that is not supported, or of claims with probabilities the one that is least likely so."""
    if all("verdict" in claim for claim in claims):
        doubted = [claim for claim in claims if claim["verdict"] != _SUPPORTED]
        if not doubted:
            return f"all {len(claims)} claims are supported" if len(claims) > 1 else "its one claim is supported"
        how = "contradicted" if doubted[0]["verdict"] == "contradicted" else "not supported"
        of_all = f"{len(doubted)} of {len(claims)} claims " if len(claims) > 1 else ""
        return f"{of_all}{how}: {quoted(_text(doubted[0]))}"
    likely = [claim for claim in claims if isinstance(claim.get("probability"), (int, float))]
    if not likely:
        return None
    lowest = min(likely, key=lambda claim: claim["probability"])
    shown = f"({lowest['probability']:.2f}): {quoted(_text(lowest))}"
    if value < (threshold if isinstance(threshold, float) else 0.5):
        return f"not supported {shown}"
    return f"least supported of {counted(len(likely), 'claim')} {shown}" if len(likely) > 1 else f"supported {shown}"


def _of_passages(passages: Sequence[Entry], context: Sequence[str]) -> str | None:
    """The context that did not help, or of contexts with relevances the least relevant one."""
    rated = [passage for passage in passages if isinstance(passage.get("relevance"), (int, float))]
    if rated:
        lowest = min(rated, key=lambda passage: passage["relevance"])
        shown = f"({lowest['relevance']:.2f}): {_shown(passages.index(lowest), context)}"
        return f"least relevant of {len(rated)} contexts {shown}" if len(rated) > 1 else f"relevance {shown}"
    useless = [passage for passage in passages if passage.get("useful") is False]
    if not useless:
        return f"all {len(passages)} contexts help" if len(passages) > 1 else "the context helps"
    reason = useless[0].get("reason")
    said = f": {reason}" if isinstance(reason, str) and reason else ""
    n_useful = len(passages) - len(useless)
    helps = f"{n_useful} of {len(passages)} contexts help; not" if n_useful else "no context helps; not"
    return f"{helps} {_shown(passages.index(useless[0]), context)}{said}"


def _shown(place: int, context: Sequence[str]) -> str:
    return quoted(context[place], _SHORT_QUOTE) if place < len(context) else f"context {place + 1}"


def _of_facts(detail: Entry) -> str | None:
    """The fact that the answer lacks, or states otherwise than the expected answer."""
    statements = detail.get("statements")
    if isinstance(statements, Mapping):
        missing, wrong = _entries(statements.get("fn")), _entries(statements.get("fp"))
    else:
        missing, wrong = _unsupported(detail.get("reference_facts")), _unsupported(detail.get("answer_facts"))
    if missing:
        return f"missing: {listed([_text(fact) for fact in missing])}"
    if wrong:
        is_contrary = wrong[0].get("verdict") == "contradicted"
        how = "contradicts the expected answer" if is_contrary else "not in the expected answer"
        return f"{how}: {quoted(_text(wrong[0]))}"
    counts = detail.get("counts")
    return "all facts agree with the expected answer" if isinstance(counts, Mapping) and counts.get("tp") else None


def _unsupported(facts: Any) -> list[Entry]:
    return [fact for fact in _entries(facts) if fact.get("verdict") != _SUPPORTED]


def why_of_scores(value: float, detail: Entry) -> str:
    """The judge's own reason for the score of a criterion, of several the one with the lowest value.

    >>> row = {"criterion": "It is polite.", "score": 2, "value": 0.25, "reason": "It mocks the customer."}
    >>> why_of_scores(0.25, {"scores": [row]}), why_of_scores(0.5, {"scores": [row, {**row, "value": 0.75}]})
    ('It mocks the customer.', '"It is polite.": It mocks the customer.')
    """
    rows = [row for row in _entries(detail.get("scores")) if isinstance(row.get("value"), (int, float))]
    if not rows:
        return f"the judge says {value:.2f}"
    lowest = min(rows, key=lambda row: row["value"])
    criterion, reason = quoted(str(lowest.get("criterion"))), lowest.get("reason")
    if not isinstance(reason, str) or not reason.strip():
        return sentence(f"scored {lowest.get('score')}, without a reason: {criterion}")
    why = reason if len(rows) == 1 else f"{criterion}: {reason}"
    return sentence(f"the judges disagree; one says: {why}" if detail.get("judges_disagree") else why)


def _entries(value: Any) -> list[Entry]:
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, (list, tuple)) else []


def _text(entry: Entry) -> str:
    texts = (entry.get(key) for key in ("claim", "text", "statement"))
    return next((text for text in texts if isinstance(text, str)), "")
