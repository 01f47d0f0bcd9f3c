"""One verdict of several judgements of the same question, with how far they differ."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev

from agentunit.backends.quality import Verdict


def over_repeats(verdicts: Sequence[Verdict]) -> Verdict:
    """The mean of the values there are. The detail is that of the first with a value, and of the first failure.

    ``judge_values`` has a place for each repeat, ``None`` where there is no value; ``judge_sd`` is their standard
    deviation (of a sample; ``None`` for fewer than two), ``n_failed`` counts the repeats that failed. Without any value
    the verdict is that of a repeat that did not fail, if there is one.

    >>> made = over_repeats([Verdict(0.5), Verdict(1.0)])
    >>> made.value, made.detail["judge_values"], round(made.detail["judge_sd"], 3)
    (0.75, [0.5, 1.0], 0.354)
    """
    values = [verdict.value for verdict in verdicts if verdict.value is not None]
    failures = [verdict for verdict in verdicts if "error" in verdict.detail]
    unfailed = [verdict for verdict in verdicts if "error" not in verdict.detail]
    scored = [verdict for verdict in unfailed if verdict.value is not None]
    shown = (scored or unfailed or failures)[0]
    detail = {
        **shown.detail,
        "judge_values": [verdict.value for verdict in verdicts],
        "judge_sd": stdev(values) if len(values) > 1 else None,
        "n_failed": len(failures),
    }
    if values and failures:
        detail["failed_repeat"] = {key: failures[0].detail.get(key) for key in ("reason", "raw")}
    return Verdict(fmean(values) if values else None, detail)
