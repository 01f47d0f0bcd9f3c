"""What a score is worth: how well each metric and backend agrees with people, as measured by ``make validity``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from msgspec import Struct, json

from agentunit.metrics.base import MetricInfo

FIGURES_FILE = "validity.json"
# From which figure on a score is strong, and useful: for shares and AUROC, where 0.5 may be chance, and correlations.
_SHARE_BOUNDS, _CORRELATION_BOUNDS = (0.8, 0.65), (0.6, 0.4)
# A mean that is off by less may be read as a rate.
_WORTH_A_WARNING = 0.1
_CORRELATIONS = frozenset({"Spearman", "Pearson", "Kendall"})
_MEASURED_HERE = ("strong, ", "useful, ", "weak, ")
_OWN_WORDS = {
    "exact": "exact",
    "recorded": "exact, as recorded",
    "measured": "exact, as measured",
    "not measured": "unmeasured",
}


class TrustFigure(Struct, frozen=True, omit_defaults=True):
    """One measured figure: the mean of a statistic over labeled sets, with its 95 % interval over cases where known.

    Only figures from data that no rule or model was tuned on are shipped. ``held_out`` is the date of a measurement
    on rows that are kept away from development; such a figure holds for the version of that date. ``version`` is
    the version of the metric that was measured. ``language`` is that of all cases, if one.
    ``evidence`` is what the answers were held against, where a run may hold them against something else as well.
    ``mean_off`` is how far the mean score was from the true rate at worst, over sets at their natural base rate.
    """

    metric: str
    backend: str
    statistic: str
    value: float
    low: float | None = None
    high: float | None = None
    n_sets: int = 1
    n_cases: int | None = None
    held_out: str | None = None
    version: str | None = None
    language: str | None = None
    evidence: str | None = None
    mean_off: float | None = None

    def __str__(self) -> str:
        evidence = f" on {self.evidence}" if self.evidence else ""
        return f"{self.word}, {self.statistic} {self.value:.2f}{evidence}{self.calibration}"

    @property
    def calibration(self) -> str:
        """A warning that the mean is not a rate, where it was measured to be off."""
        off = 0.0 if self.mean_off is None else self.mean_off
        return f"; mean off by up to {off:.1f}" if off >= _WORTH_A_WARNING else ""

    @property
    def word(self) -> str:
        """What the figure means for a decision: strong, useful or weak, by the lower end of its interval if known."""
        strong, useful = _CORRELATION_BOUNDS if self.statistic in _CORRELATIONS else _SHARE_BOUNDS
        surely = self.value if self.low is None else self.low
        return "strong" if surely >= strong else "useful" if surely >= useful else "weak"

    def at_length(self) -> str:
        """The figure with what it was measured on."""
        interval = "" if self.low is None or self.high is None else f" [{self.low:.2f}, {self.high:.2f}]"
        kind = "held-out" if self.held_out else "labeled"
        sets = f"1 {kind} set" if self.n_sets == 1 else f"{self.n_sets} {kind} sets"
        notes = [f"{self.n_cases:,} cases"] if self.n_cases else []
        notes += [self.language] if self.language else []
        notes += [self.evidence] if self.evidence else []
        notes += [f"measured {self.held_out}"] if self.held_out else []
        notes += [f"version {self.version} of the metric"] if self.version else []
        described = f" ({', '.join(notes)})" if notes else ""
        return f"{self.word}, {self.statistic} {self.value:.2f}{interval} on {sets}{described}{self.calibration}"


@lru_cache(maxsize=1)
def measured_figures() -> dict[tuple[str, str], TrustFigure]:
    """The figures shipped with this version, by metric and backend."""
    try:
        shipped = Path(__file__).with_name(FIGURES_FILE).read_bytes()
    except FileNotFoundError:
        return {}
    figures = json.decode(shipped, type=list[TrustFigure])
    return {(figure.metric, figure.backend): figure for figure in figures}


def known_backends(info: MetricInfo) -> list[str]:
    """The backends that a metric states facts about, its default first, or of which its worth was measured."""
    measured = sorted(backend for metric, backend in measured_figures() if metric == info.name)
    return list(dict.fromkeys([info.backend, *info.trust, *sorted(info.informational), *measured]))


def describe_trust(
    info: MetricInfo,
    backend: str,
    *,
    at_length: bool = False,
    n_scored: int = 0,
    n_unmeasured: int = 0,
    is_other_text: bool = False,
) -> str:
    """What to print beside a score: one word (exact, strong, useful, weak, unmeasured), then what it rests on.

    ``n_unmeasured`` of the ``n_scored`` scores rest on results of tool calls. A figure that was measured with other
    evidence says nothing about these. ``is_other_text``: the scores are informational for a reason of their own
    (``why_informational``), such as a language that no figure was measured in.

    >>> describe_trust(MetricInfo("mine", "custom", ""), "custom")
    'unmeasured'
    >>> describe_trust(MetricInfo("shape", "custom", "", trust={"trace": "descriptive"}), "trace")
    'unmeasured, descriptive'
    """
    own = info.trust.get(backend, "not measured")
    if own.startswith(_MEASURED_HERE):
        # By the user's own labels, which say more about the user's cases than ours do.
        return own
    figure = measured_figures().get((info.name, backend))
    if figure is not None and is_other_text:
        return _OWN_WORDS["not measured"]
    if figure is not None:
        note = unmeasured_note(info, backend, n_scored, n_unmeasured)
        if note is not None and n_unmeasured >= n_scored:
            return note
        described = figure.at_length() if at_length else str(figure)
        return described if note is None else f"{described}; {note}"
    return _OWN_WORDS.get(own, own if own.startswith("exact") else f"unmeasured, {own}")


def why_informational(info: MetricInfo, backend: str, reasons: Mapping[str, int]) -> str | None:
    """Why some scores are informational, by how often their details say so; ``None`` where all of the backend are.

    >>> why_informational(MetricInfo("faithfulness", "quality", ""), "local", {"the text is in 'de'": 2, "no": 1})
    "the text is in 'de', and 1 other reason"
    """
    if backend in info.informational:
        return None
    if not reasons:
        return "a part of it is" if info.family == "composite" else f"text that {backend} was not measured on"
    first, *others = sorted(reasons, key=lambda each: -reasons[each])
    more = f", and {len(others)} other {'reason' if len(others) == 1 else 'reasons'}" if others else ""
    return f"{first}{more}"


def unmeasured_note(info: MetricInfo, backend: str, n_scored: int, n_unmeasured: int) -> str | None:
    """That some scores, or all, rest on evidence with which their worth was not measured; ``None`` where it was.

    >>> unmeasured_note(MetricInfo("faithfulness", "quality", ""), "local", 62, 41)
    '41 of 62 unmeasured (evidence: tool results)'
    """
    figure = measured_figures().get((info.name, backend))
    if figure is None or not figure.evidence or not n_unmeasured:
        return None
    of_all = "" if n_unmeasured >= n_scored else f"{n_unmeasured:,} of {n_scored:,} "
    return f"{of_all}unmeasured (evidence: tool results)"
