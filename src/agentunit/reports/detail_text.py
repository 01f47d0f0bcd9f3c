"""Details of scores and data of records in words, for the terminal: JSON is for ``--json`` and ``--full``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentunit.reports.printable import printable_line

# What only explains how a model came to its value. ``--full`` shows it.
INTERNALS = frozenset(
    (
        "claim_tokens_left_out",
        "evidence_tokens_left_out",
        "features",
        "kind",
        "language",
        "matched",
        "model",
        "model_logit",
        "n_context_sentences",
        "threshold",
    )
)
_TEXT_LENGTH = 160
_ENTRIES = 8
_DEPTH = 2


def without_internals(detail: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a score's detail that helps somebody who reads the case."""
    return {key: value for key, value in detail.items() if key not in INTERNALS}


def claim_lines(claims: Any) -> list[str]:
    """The claims of an answer, the least supported first, each with the evidence it was held against.

    >>> claim_lines([{"text": "It is red.", "probability": 0.1, "source": "context[0]", "evidence": "It is blue."}])
    ['0.10 "It is red." against context[0]: "It is blue."']
    """
    if not isinstance(claims, list) or not all(isinstance(each, dict) and "probability" in each for each in claims):
        return []
    lines = []
    for claim in sorted(claims, key=lambda each: each["probability"])[:_ENTRIES]:
        held = f" against {claim['source']}" if claim.get("source") else ""
        evidence = f': "{_text(claim["evidence"])}"' if claim.get("evidence") else ""
        lines.append(f'{claim["probability"]:.2f} "{_text(claim.get("text", ""))}"{held}{evidence}')
    if len(claims) > _ENTRIES:
        lines.append(f"… and {len(claims) - _ENTRIES} more")
    return lines


def in_words(value: Any, depth: int = _DEPTH) -> str:
    """A value as a person would write it down.

    >>> in_words({"A-1": {"status": "open", "paid": True}, "n": [1, 2.5]})
    'A-1 (status open, paid yes), n (1, 2.5)'
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        return _joined(
            (f"{printable_line(str(key))} {_nested(each, depth)}" for key, each in value.items()), len(value)
        )
    if isinstance(value, Sequence) and not isinstance(value, str):
        return _joined((_nested(each, depth) for each in value), len(value))
    return "–" if value is None else _text(value)


def _nested(value: Any, depth: int) -> str:
    if not isinstance(value, (Mapping, list, tuple)):
        return in_words(value)
    return f"({in_words(value, depth - 1)})" if depth else "(…)"


def _joined(parts: Iterator[str], n_parts: int) -> str:
    shown = [part for part, _ in zip(parts, range(_ENTRIES), strict=False)]
    return ", ".join(shown) + (f" and {n_parts - _ENTRIES:,} more" if n_parts > _ENTRIES else "")


def _text(value: Any) -> str:
    return printable_line(str(value), _TEXT_LENGTH)
