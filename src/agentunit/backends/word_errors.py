"""Word and character error rates by jiwer, where it is installed; the formulas give the same numbers without it."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from typing import NamedTuple

from agentunit.formulas.edit_distance import character_error_rate, spoken_words, word_error_rate


class ErrorRates(NamedTuple):
    """Word and character error rate of one transcript."""

    wer: float
    cer: float


def error_rates(reference: str, hypothesis: str) -> ErrorRates:
    """Both rates of a transcript against its reference."""
    # How empty references count has changed between versions of jiwer.
    if engine_name() == "jiwer" and spoken_words(reference):
        import jiwer

        return ErrorRates(float(jiwer.wer(reference, hypothesis)), float(jiwer.cer(reference, hypothesis)))
    return ErrorRates(word_error_rate(reference, hypothesis), character_error_rate(reference, hypothesis))


@lru_cache(maxsize=1)
def engine_name() -> str:
    """What computes the rates here."""
    return "jiwer" if find_spec("jiwer") else "agentunit"
