"""What comes out: the figures shipped with the metrics, the page that explains them, and the page of all results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from agentunit.addons.review.labeling.scorer_agreement import NEGLIGIBLE_SKILL, STRONG_SKILL, USEFUL_SKILL
from benchmarks.validity.bias import bias_chapter, bias_summary, recorded_biases, with_bias
from benchmarks.validity.calibration import calibration_chapter, calibration_summary
from benchmarks.validity.family import Family, Published, published_figures
from benchmarks.validity.held_out import HeldOutFigure, held_out, newest_figures, newest_trust
from benchmarks.validity.lines import as_given, interval, lines_of, number
from benchmarks.validity.measure import NOT_TUNED, Figure, Scorer

_BOLD = {"weak", "useful", "strong", "better than one fixed answer"}
_ITALIC = {"backwards", "worse than one fixed answer"}

_HELD_OUT_HEADINGS = ["metric", "backend", "figure", "measured on", "beside it"]
_HELD_OUT_REMARKS = (
    "\nBeyond the lexical backend, hallucination rate is 1 minus faithfulness. Held against given context, the local "
    "models are useful, not strong; on the six further sets, counting shared words does as well. Held against tool "
    "results in JSON they are weak on the two sets measured, and the trust column calls such scores unmeasured.\n\n"
    "False alarms of `patterns` in 10,000 words of technical documentation (2026-11-18): English, French, Spanish, "
    "Japanese, Chinese and Hindi 3.5 or fewer, German 5.5, Italian 6.5, Polish 9.4, Russian 13.9, Korean 14.0, "
    "Portuguese 15.3, Indonesian 21.2, Vietnamese 61.5.\n"
)
_STRONG_AUROC, _USEFUL_AUROC = 0.5 + STRONG_SKILL / 2, 0.5 + USEFUL_SKILL / 2

_INTRODUCTION = """\
# What the scores are worth

<!-- Written by `python -m benchmarks.validity`; edit benchmarks/validity, not this file. -->

A score is worth as much as its agreement with people. Every figure below compares scores with labels of people on
public data. Every set, every earlier figure and how each was measured: `benchmarks/validity/RESULTS.md`.

**Your own data is the better test**: [label some answers](labeling.md), and AgentUnit measures the agreement on them.

| term | meaning |
| --- | --- |
| AUROC | the chance that a good case scores higher than a bad one: 1.00 is perfect, 0.50 a coin toss |
| Spearman | the same for graded labels: 1 is the same order, 0 is no relation |
| agreement | the share of cases on which the score, cut in two, says what people said |
| balanced accuracy | the same with good and bad cases counting alike: one fixed answer gets 0.50 |
| recall, precision, F1 | how much of what is labeled was found; how much of what was found is right; both in one |
| in brackets | the 95 % interval; cases that share a source are resampled together |
| plain baseline | a score that takes ten lines to write; a metric that does not beat it adds nothing |

**The trust column of tables** shows only figures from data that no rule or model was tuned on, and leads with one word.
For shares and AUROC, *strong* is 0.80 or more, *useful* 0.65 or more, otherwise *weak*; for correlations the bounds are
0.60 and 0.40. The lower end of the interval counts where it is known. A score without such a figure is *unmeasured*.
"""

_RESULTS_INTRODUCTION = f"""\
# What the scores are worth: everything that was measured

<!-- Written by `python -m benchmarks.validity`; edit benchmarks/validity, not this file. -->

docs/validity.md has the figures of now and says what each term means. The data is not part of the project;
`make validity` repeats the measurement where it is present. Except for the held-out figures, these are development
sets: rules and models were tuned on them, so their figures flatter. Rows that a shipped model was trained on are
marked. A backend that is slow was measured on fewer rows of large sets, drawn by a fixed rule; the cell then says how
many (*n*). Labels have faults of their own: on SummEdits, a person agrees with the label about nine times in ten.

**The verdict** follows the interval, not the figure in its middle. *Strong*: AUROC surely above {_STRONG_AUROC:.2f}.
*Useful*: surely above {_USEFUL_AUROC:.2f}. *Weak*: surely above chance, no more. *No better than chance*: the interval
holds 0.50 or stays within {NEGLIGIBLE_SKILL / 2:.2f} of it. *Too few labels to tell*: the interval reaches from chance
to useful. *Backwards*: surely below chance. "Surely" is by the 95 % interval. For agreement the bar is *one fixed
answer*: the share of cases that the commoner label has.
"""


def trust_file(families: Iterable[Family]) -> bytes:
    """The figures as they are shipped, sorted, one per line.

    Beside held-out figures of a metric, those of other detectors on easier text would mislead whoever chooses one.
    """
    kept_away = newest_trust()
    measured = {each.metric for each in kept_away}
    others = [each for family in families for each in family.trust]
    shown = {
        (each.metric, each.backend): each for each in others if each.backend in NOT_TUNED or each.metric not in measured
    }
    shown |= {(each.metric, each.backend): each for each in kept_away}
    figures = with_bias([shown[place] for place in sorted(shown)], recorded_biases())
    lines = [msgspec.json.encode(figure).decode() for figure in figures]
    return ("[\n  " + ",\n  ".join(lines) + "\n]\n").encode() if lines else b"[]\n"


def page(families: Sequence[Family]) -> str:
    """What a user needs: the figures of now, and what each score can be trusted for."""
    chapters = [_INTRODUCTION, _held_out_chapter(), _overview(families), bias_summary(recorded_biases())]
    chapters += [calibration_summary(), *(_advice(family) for family in families)]
    return _joined(chapters)


def results_page(families: Sequence[Family]) -> str:
    """Every figure, set by set, and the held-out figures that newer ones replaced."""
    chapters = [_RESULTS_INTRODUCTION, _earlier_chapters(), bias_chapter(recorded_biases()), calibration_chapter()]
    return _joined([*chapters, *(_chapter(family) for family in families)])


def _joined(chapters: Iterable[str]) -> str:
    return "\n".join(chapter.rstrip("\n") + "\n" for chapter in chapters if chapter)


def _held_out_chapter() -> str:
    parts = [
        "## Held-out figures\n\nMeasured on rows that are kept away from development. A later change of a rule or a "
        "model is not in them until they are measured again. *Shown* marks the figure of the trust column.\n"
    ]
    newest = newest_figures()
    for measured in held_out():
        rows = [_held_out_cells(each) for day, each in newest if day.date == measured.date]
        if rows:
            parts += [
                f"Measured on {measured.date}, commit `{measured.commit}`:\n",
                _markdown_table([*_HELD_OUT_HEADINGS, "shown"], rows),
            ]
    return "\n".join(parts) + _HELD_OUT_REMARKS


def _earlier_chapters() -> str:
    now = [each for _, each in newest_figures()]
    chapters = []
    for measured in held_out():
        rows = [_held_out_cells(each) for each in measured.figures if each not in now]
        if rows:
            title = (
                f"## Held-out figures of {measured.date} that newer ones replaced\n\nCommit `{measured.commit}`.\n\n"
            )
            chapters.append(title + _markdown_table([*_HELD_OUT_HEADINGS, "was shown"], rows))
    return "\n".join(chapters)


def _held_out_cells(each: HeldOutFigure) -> list[str]:
    measured = ", ".join(f"`{name}`" for name in each.metrics) + (f" v{each.version}" if each.version else "")
    between = "" if each.low is None or each.high is None else f" ({as_given(each.low)} to {as_given(each.high)})"
    rows = f"; {each.n_cases:,} rows" if each.n_cases else ""
    return [
        measured,
        each.backend,
        f"{each.statistic} {as_given(each.value)}{between}",
        each.data + rows,
        each.beside or "–",
        "yes" if each.trust else "",
    ]


def _advice(family: Family) -> str:
    """What one family can and cannot be trusted for, without its figures."""
    return f"## {family.title}\n\n**Can be trusted for.** {family.can}\n\n**Cannot be trusted for.** {family.cannot}\n"


def _overview(families: Sequence[Family]) -> str:
    """One figure of what has no held-out one. Hallucination rate mirrors faithfulness, and counts are all exact."""
    held_out_places = {place for _, each in newest_figures() for place in each.places}
    rows: dict[tuple[str, str], list[str]] = {}
    for family in families:
        for line in lines_of(family, family.headline):
            figure = line.figure
            if figure.scorer.name == "hallucination_rate" or figure.statistic == "exactly right":
                continue
            if (figure.scorer.name, figure.scorer.backend.partition(",")[0]) in held_out_places:
                continue
            measured_on = f"{figure.dataset}, {figure.n:,} {line.unit}"
            cells = [f"`{figure.scorer.name}`", figure.scorer.backend, f"{figure.statistic} {line.shown}"]
            rows.setdefault((figure.scorer.name, figure.scorer.backend), [*cells, measured_on, line.best_plain])
    headings = ["metric", "backend", "figure (95 %)", "measured on", "best plain baseline"]
    return (
        "## Development figures\n\nOne figure of each score that has no held-out one. Nothing was tuned on these data. "
        "All other development figures flatter: they are in `benchmarks/validity/RESULTS.md` alone.\n\n"
        + _markdown_table(headings, list(rows.values()))
    )


def _chapter(family: Family) -> str:
    parts = [f"## {family.title}\n", family.measured + "\n"]
    parts += [f"**Can be trusted for.** {family.can}\n", f"**Cannot be trusted for.** {family.cannot}\n"]
    if family.baselines:
        parts.append("Baselines: " + "; ".join(f"*{each.name}*, {each.meaning}" for each in family.baselines) + ".\n")
    places = {figure.dataset for figure in family.figures}
    means = [figure for figure in family.headline if figure.dataset not in places]
    for statistic in dict.fromkeys(figure.statistic for figure in family.figures):
        figures = [figure for figure in family.figures if figure.statistic == statistic]
        averaged = [figure for figure in means if figure.statistic == statistic]
        parts.append(f"### {_headline(statistic)}\n\n" + _set_table(figures, averaged, family))
    parts += [f"- {remark}" for remark in _remarks(family)]
    if family.released:
        parts.append(
            "\n### Other systems on the same rows\n\nWhat the sets ship as the output of other systems, measured here "
            "the same way.\n\n" + _released_table(family.released).rstrip("\n")
        )
    published = published_figures(family.key)
    if published:
        parts.append(
            "\n### What others report\n\nFigures that others report on data of the same names, "
            "not on the very rows above: good for the order of magnitude, not for the third digit.\n\n"
            + _published_table(published)
        )
    return "\n".join(parts)


def _set_table(figures: Sequence[Figure], means: Sequence[Figure], family: Family) -> str:
    """One line a set, and one a mean; one column a scorer."""
    scorers = list(dict.fromkeys(figure.scorer for figure in [*figures, *means]))
    by_place = {(figure.dataset, figure.scorer): figure for figure in [*figures, *means]}
    rows = []
    for dataset in dict.fromkeys(figure.dataset for figure in [*figures, *means]):
        here = [by_place.get((dataset, scorer)) for scorer in scorers]
        n = max(figure.n for figure in here if figure)
        name = f"{dataset} †" if dataset in family.outside_mean and len(figures) > len(scorers) else dataset
        if dataset in {figure.dataset for figure in means}:
            name = f"**{dataset}**"
        rows.append([name, f"{n:,}", *(_marked(figure, n, family) for figure in here)])
    return _markdown_table(["set", family.unit, *(_heading(scorer) for scorer in scorers)], rows)


def _remarks(family: Family) -> list[str]:
    remarks = ["Bold: better than chance by the verdict's rule; italics: worse."]
    if any(figure.statistic == "agreement" for figure in family.figures):
        remarks = ["Bold: better than chance by the verdict's rule (agreement: than one fixed answer); italics: worse."]
    shown = {figure.dataset for figure in family.figures}
    excluded = {name: reason for name, reason in family.outside_mean.items() if name in shown}
    remarks += [f"† `{name}` is not in the mean: {reason}." for name, reason in excluded.items()]
    if not any(figure.verdict for figure in family.figures):
        remarks = remarks[1:]
    return [*remarks, *family.remarks]


def _released_table(figures: Sequence[Figure]) -> str:
    rows = [
        [each.scorer.name, each.dataset, f"{each.n:,}", number(each.value) + interval(each), each.verdict]
        for each in figures
    ]
    return _markdown_table(["system", "set", "cases", "AUROC (95 %)", "verdict"], rows)


def _published_table(published: Sequence[Published]) -> str:
    rows = [
        [each.system, each.data, each.statistic,
         as_given(each.value) + (f" to {as_given(each.high)}" if each.high is not None else ""),
         each.source + (f" ({each.note})" if each.note else "")]
        for each in published
    ]  # fmt: skip
    return _markdown_table(["system", "data", "statistic", "figure", "source"], rows)


def _marked(figure: Figure | None, n: int, family: Family) -> str:
    """A cell: the figure by its verdict, its sign, its interval, and its number of rows where others have more."""
    if figure is None:
        return "–"
    stress = "**" if figure.verdict in _BOLD else "*" if figure.verdict in _ITALIC else ""
    sign = family.marks.get((figure.scorer, figure.dataset, figure.statistic), "")
    fewer = f", n {figure.n:,}" if figure.n < n else ""
    return f"{stress}{number(figure.value)}{stress}{f' {sign}' if sign else ''}{interval(figure)}{fewer}"


def _heading(scorer: Scorer) -> str:
    return f"`{scorer.name}` ({scorer.backend})" if scorer.kind == "metric" else scorer.name


def _headline(statistic: str) -> str:
    named = statistic[0].upper() + statistic[1:]
    return "Agreement with the labels" if statistic == "agreement" else f"{named} by set"


def _markdown_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(cells) + " |" for cells in (headings, ["---"] * len(headings), *rows)]
    return "\n".join(lines) + "\n"
