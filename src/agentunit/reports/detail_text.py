"""Details of scores and data of records in words, for the terminal: JSON is for ``--json`` and ``--full``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import exp
from typing import Any

from agentunit.reports.doubts import words_doubted_in
from agentunit.reports.printable import printable_line
from agentunit.store.score_blocks import number_in

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
    """The claims of an answer, the least supported first: what supports each, and which words of it are doubted.

    >>> claim = {"text": "It is red.", "probability": 0.1, "source": "context[0]", "evidence": "It is blue."}
    >>> claim_lines([{**claim, "start": 0, "end": 10, "doubtful": [{"start": 6, "end": 9}]}])
    ['support 0.10 "It is red." against context[0]: "It is blue." · doubted: "red"']
    """
    if not isinstance(claims, list) or not all(isinstance(each, dict) and "probability" in each for each in claims):
        return []
    lines = []
    for claim in sorted(claims, key=lambda each: each["probability"])[:_ENTRIES]:
        held = f" against {claim['source']}" if claim.get("source") else ""
        evidence = f': "{_text(claim["evidence"])}"' if claim.get("evidence") else ""
        # That all of a claim is doubted is what its support says.
        words = [f'"{_text(each)}"' for each in words_doubted_in(claim) if len(each) < 0.9 * len(claim["text"])]
        doubted = f" · doubted: {', '.join(words)}" if words else ""
        lines.append(f'support {claim["probability"]:.2f} "{_text(claim.get("text", ""))}"{held}{evidence}{doubted}')
    if len(claims) > _ENTRIES:
        lines.append(f"… and {len(claims) - _ENTRIES} more")
    return lines


def comparison_line(detail: Mapping[str, Any]) -> str | None:
    """How a local model came to ``answer_correctness``; ``None`` where its detail does not say.

    >>> comparison_line({"matched": 0.97, "model_logit": 2.2})
    'against the expected answer: words alike 0.97, same meaning 0.90 by the model'
    >>> comparison_line({"rule": "the answer repeats the question"})
    'against the expected answer: the answer repeats the question'
    """
    matched, logit = detail.get("matched"), number_in(detail, "model_logit")
    if not isinstance(matched, (str, float)) and "rule" not in detail:
        return None
    parts = [str(detail["rule"])] if isinstance(detail.get("rule"), str) else []
    if isinstance(matched, str):
        parts.append(matched)
    elif matched is not None:
        parts.append(f"words alike {matched:.2f}")
    if logit is not None:
        parts.append(f"same meaning {1 / (1 + exp(-max(-50.0, min(50.0, logit)))):.2f} by the model")
    return printable_line(f"against the expected answer: {', '.join(parts)}", _TEXT_LENGTH)


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
