"""What a score tells about the judge that gave it, as kept in its detail."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from msgspec import Struct


class Judged(Struct, frozen=True):
    """What one score took of its judge, and what the judge said each time it was asked about this answer.

    Replies of the cache are counted apart. Tokens and cost are those of the calls, ``None`` when not all of them tell.
    ``n_unstated`` counts requests that may have been billed without saying so. ``is_suspected``: a text that it judged
    seems to speak to the judge. ``n_quotes`` counts the quotes that were checked, ``n_quotes_found`` those that stand
    where the judge says. Of a panel, ``by_judge`` has each judge with its value, or the reason why it has none, and
    ``disagree`` whether they lie far apart.
    """

    models: tuple[str, ...]
    n_calls: int
    n_cached: int
    prompt_tokens: int | None
    completion_tokens: int | None
    cost_usd: float | None
    values: tuple[float, ...] = ()
    n_unstated: int = 0
    is_suspected: bool = False
    n_quotes: int = 0
    n_quotes_found: int = 0
    by_judge: tuple[tuple[str, float | None, str | None], ...] = ()
    disagree: bool = False


_CLAIMS = ("claims", "answer_facts", "reference_facts")


def judged_of(detail: Mapping[str, Any], *, nested: bool = False) -> Judged | None:
    """What a detail says about a judge; ``None`` when none was asked. With ``nested``, a composite's parts count too.

    >>> judged_of({"judge": {"model": "m", "calls": 2, "cached": 1, "cost_usd": None}, "judge_values": [1.0, 0.5]})
    Judged(models=('m',), n_calls=2, n_cached=1, prompt_tokens=None, completion_tokens=None, cost_usd=None,
    values=(1.0, 0.5), n_unstated=0, is_suspected=False, n_quotes=0, n_quotes_found=0, by_judge=(), disagree=False)
    """
    spent = detail.get("judge")
    if spent is None and not nested:
        return None
    if isinstance(spent, Mapping) and "calls" in spent:
        said = detail.get("judge_values")
        quotes = _quotes(detail)
        return Judged(
            models=_models(spent),
            n_calls=_count(spent["calls"]),
            n_cached=_count(spent.get("cached")),
            prompt_tokens=_whole(spent.get("prompt_tokens")),
            completion_tokens=_whole(spent.get("completion_tokens")),
            cost_usd=_number(spent.get("cost_usd")),
            values=tuple(n for each in said if (n := _number(each)) is not None) if isinstance(said, list) else (),
            n_unstated=_count(spent.get("unstated")),
            is_suspected=bool(detail.get("injection_suspected")),
            n_quotes=len(quotes),
            n_quotes_found=sum(quotes),
            by_judge=_by_judge(detail.get("judges")),
            disagree=detail.get("judges_disagree") is True,
        )
    if not nested:
        return None
    parts = [found for part in detail.values() if isinstance(part, Mapping) and (found := judged_of(part))]
    return _together(parts) if parts else None


def _together(parts: list[Judged]) -> Judged:
    """Several judged parts as one; what the judge said of each does not add up to what it said of the whole."""

    def added(name: str) -> Any:
        amounts = [getattr(part, name) for part in parts if part.n_calls]
        return None if any(amount is None for amount in amounts) else sum(amounts)

    return Judged(
        models=tuple(dict.fromkeys(model for part in parts for model in part.models)),
        n_calls=sum(part.n_calls for part in parts),
        n_cached=sum(part.n_cached for part in parts),
        prompt_tokens=added("prompt_tokens"),
        completion_tokens=added("completion_tokens"),
        cost_usd=added("cost_usd"),
        n_unstated=sum(part.n_unstated for part in parts),
        is_suspected=any(part.is_suspected for part in parts),
        n_quotes=sum(part.n_quotes for part in parts),
        n_quotes_found=sum(part.n_quotes_found for part in parts),
    )


def _models(spent: Mapping[str, Any]) -> tuple[str, ...]:
    named = spent.get("models") if isinstance(spent.get("models"), list) else [spent.get("model")]
    return tuple(dict.fromkeys(each for each in named or () if isinstance(each, str)))


def _by_judge(rows: Any) -> tuple[tuple[str, float | None, str | None], ...]:
    if not isinstance(rows, list):
        return ()
    known = (each for each in rows if isinstance(each, Mapping) and isinstance(each.get("judge"), str))
    return tuple(
        (each["judge"], _number(each.get("value")), str(each["reason"]) if each.get("reason") else None)
        for each in known
    )


def _quotes(detail: Mapping[str, Any]) -> list[bool]:
    """For every quote that a verdict rests on, whether it was found; support without any quote is one that was not."""
    listed = [each for name in _CLAIMS if isinstance(rows := detail.get(name), list) for each in rows]
    claims = [each for each in listed if isinstance(each, Mapping)]
    checked = [each.get(name) for each in claims for name in ("answer_quote_found", "quote_found")]
    without = [False for each in claims if each.get("verdict") == "unknown" and each.get("quote_found") is None]
    return [found for found in checked if isinstance(found, bool)] + without


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _whole(value: Any) -> int | None:
    number = _number(value)
    return None if number is None else int(number)


def _number(value: Any) -> float | None:
    usable = isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)
    return value if usable else None
