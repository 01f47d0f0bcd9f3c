"""The texts that people wrote for an image or a recording: what an answer is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from agentunit.metrics.base import MetricInfo
from agentunit.metrics.inputs import InputProblem, Item, acceptable_answers

multimodal_info = partial(MetricInfo, family="multimodal", direction="higher", range=(0.0, 1.0))


def references_of(item: Item, keys: Sequence[str]) -> list[str]:
    """The case's expected output (a text, or several), else the texts at the first of some keys of its metadata.

    >>> references_of(Item({"id": "q1", "metadata": {"captions": ["A dog.", "A puppy."]}}, None, None), ["captions"])
    ['A dog.', 'A puppy.']
    """
    expected = acceptable_answers(item.case.expected_output)
    if expected:
        return expected
    metadata = item.case_metadata
    key = next((key for key in keys if metadata.get(key) not in (None, "", [])), None)
    return [] if key is None else texts_at(f"case.metadata[{key!r}]", metadata[key])


def texts_at(place: str, value: Any) -> list[str]:
    """One text or a list of them, found at a place of the record."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, (list, tuple)) or not all(isinstance(text, str) for text in texts):
        raise InputProblem(f"{place} must be a text or a list of texts; received {value!r:.80}")
    return list(texts)


def check_length(place: str, text: str, longest: int) -> None:
    """Refuse a text that would take minutes and gigabytes."""
    if len(text) > longest:
        raise InputProblem(f"{place} must have at most {longest:,} characters; received {len(text):,}")
