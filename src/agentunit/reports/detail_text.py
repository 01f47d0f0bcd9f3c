"""Details of scores and data of records in words, for the terminal: JSON is for ``--json`` and ``--full``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from math import exp
from typing import Any, NamedTuple

from agentunit.core.score_block import number_in
from agentunit.engine.deciding.cut_offs import claim_threshold
from agentunit.formulas.similarity import UNSPACED
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
    """The claims of an answer, the least supported first: what supports each, and which words of it are doubted.

    >>> claim = {"text": "It is red.", "probability": 0.1, "source": "context[0]", "evidence": "It is blue."}
    >>> claim_lines([{**claim, "start": 0, "end": 10, "doubtful": [{"start": 6, "end": 9}]}])
    ['support 0.10 "It is red." against context[0]: "It is blue." · doubted: "red"']
    """
    if not isinstance(claims, list) or not all(isinstance(each, dict) and "probability" in each for each in claims):
        return []
    # Most scores hold no claims.

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


# What a scorer doubts in an answer: the claims that nothing supports, and the words in them.

_SUPPORTED = "supported"
_TEXTS = ("text", "answer_quote", "claim")
# A word with what may be inside of one: don't, 3.5, 10:30, well-known. Scripts without spaces have no such ends.
_WORD = re.compile(f"[^\\W{UNSPACED}]+(?:['’.,:/-][^\\W{UNSPACED}]+)*")


class DoubtedWords(NamedTuple):
    """Words of an answer that a model doubts: their place, and how much."""

    start: int
    end: int
    doubt: float | None


class DoubtedClaim(NamedTuple):
    """A claim that counts as unsupported, as its detail has it, its place in the answer, and the doubted words."""

    claim: dict[str, Any]
    start: int
    end: int
    words: list[DoubtedWords]


def doubted_claims(
    answer: str, detail: Mapping[str, Any], direction: str = "higher", scored: str | None = None
) -> Iterator[DoubtedClaim]:
    """The claims of an answer that its score doubts; ``direction`` is that of the metric.

    ``scored`` is the answer before personal data was masked, whose places the detail names: they are found again by
    their words.

    >>> claim = {"text": "It costs 9 €.", "probability": 0.2, "doubtful": [{"start": 14, "end": 17}]}
    >>> [found] = doubted_claims("Yes. It costs 9 €.", {"claims": [claim]})
    >>> found.start, found.end, found.words
    (5, 18, [DoubtedWords(start=14, end=17, doubt=None)])
    """
    line = claim_threshold(direction, detail)
    claims = detail.get("claims")
    for claim in claims if isinstance(claims, list) else ():
        if not isinstance(claim, dict):
            continue
        texts = (claim[key] for key in _TEXTS if isinstance(claim.get(key), str) and claim[key])
        text = next((each for each in texts if each in answer), None)
        probability, verdict = number_in(claim, "probability"), claim.get("verdict")
        is_doubted = verdict not in (None, _SUPPORTED) if probability is None else probability < line
        if text is not None and is_doubted:
            start = _place_of(text, claim, answer)
            whole = doubted_words(answer if scored is None else scored, claim)
            yield DoubtedClaim(claim, start, start + len(text), list(_within(whole, answer, scored, start, text)))


def words_doubted_in(claim: Mapping[str, Any]) -> list[str]:
    """The words of a claim that a model doubts; none where masking has changed its text.

    >>> words_doubted_in({"text": "It is red.", "start": 5, "end": 15, "doubtful": [{"start": 12, "end": 14}]})
    ['red']
    """
    text, start, end = (claim.get(key) for key in ("text", "start", "end"))
    if not isinstance(text, str) or not isinstance(start, int) or not isinstance(end, int) or len(text) != end - start:
        return []
    found = doubted_words(text, claim, start)
    return list(dict.fromkeys(text[each.start : each.end] for each in found))


def doubted_words(scored: str, claim: Mapping[str, Any], first: int = 0) -> list[DoubtedWords]:
    """The places of a claim that a model doubts, widened to whole words; marks alone are left out.

    A model reads parts of words, and its doubts begin and end with them. ``first`` is where ``scored`` begins.

    >>> parts = [{"start": 4, "end": 9, "probability": 0.6}, {"start": 9, "end": 12, "probability": 0.9}]
    >>> doubted_words("the emptying tank.", {"doubtful": [*parts, {"start": 17, "end": 18}]})
    [DoubtedWords(start=4, end=12, doubt=0.9)]
    """
    found: list[DoubtedWords] = []
    listed = claim.get("doubtful")
    for each in listed if isinstance(listed, (list, tuple)) else ():
        if not isinstance(each, dict) or not all(isinstance(each.get(end), int) for end in ("start", "end")):
            continue
        start, end = _whole_words(scored, each["start"] - first, each["end"] - first)
        if any(sign.isalnum() for sign in scored[start:end]):
            found.append(DoubtedWords(start, end, number_in(each, "probability")))
    merged: list[DoubtedWords] = []
    for words in sorted(found, key=lambda each: each[:2]):
        if merged and words.start < merged[-1].end:
            last = merged.pop()
            doubts = [each for each in (last.doubt, words.doubt) if each is not None]
            words = DoubtedWords(last.start, max(last.end, words.end), max(doubts, default=None))
        merged.append(words)
    return merged


def _whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    start, end = max(0, min(start, len(text))), max(0, min(end, len(text)))
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    first, last = start, end
    # A word is short, but a text may be one long run of letters: only what is near can be the same word.
    for word in _WORD.finditer(text, max(0, start - 100), min(len(text), end + 100)):
        if word.start() < end and word.end() > start:
            first, last = min(first, word.start()), max(last, word.end())
    return first, last


def _place_of(text: str, claim: Mapping[str, Any], answer: str) -> int:
    start = claim.get("start")
    is_there = isinstance(start, int) and start >= 0 and answer.startswith(text, start)
    return start if isinstance(start, int) and is_there else answer.find(text)


def _within(
    words: list[DoubtedWords], answer: str, scored: str | None, start: int, text: str
) -> Iterator[DoubtedWords]:
    """The words of a claim at their places in the answer; where that was masked, at the first place that has them."""
    end = start + len(text)
    for each in words:
        if scored is None or scored == answer:
            at = each.start if start <= each.start and each.end <= end else -1
        else:
            at = answer.find(scored[each.start : each.end], start, end)
        if at >= 0:
            yield DoubtedWords(at, at + each.end - each.start, each.doubt)
