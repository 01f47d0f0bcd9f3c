"""The two files that come out: the figures shipped with the metrics, and the page that explains them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from agentunit.addons.review.labeling.scorer_agreement import NEGLIGIBLE_SKILL, STRONG_SKILL, USEFUL_SKILL
from benchmarks.validity.bias import bias_chapter, recorded_biases, with_bias
from benchmarks.validity.calibration import calibration_chapter
from benchmarks.validity.family import Family, Published, published_figures
from benchmarks.validity.held_out import held_out
from benchmarks.validity.lines import as_given, interval, lines_of, number
from benchmarks.validity.measure import Figure, Scorer

_BOLD = {"weak", "useful", "strong", "better than one fixed answer"}
_ITALIC = {"backwards", "worse than one fixed answer"}

_STRONG_AUROC, _USEFUL_AUROC = 0.5 + STRONG_SKILL / 2, 0.5 + USEFUL_SKILL / 2

_INTRODUCTION = f"""\
# What the scores are worth

<!-- Written by `python -m benchmarks.validity`; edit benchmarks/validity, not this file. -->

A score is only as good as its agreement with people. This page measures that agreement on public data that people
labeled: every metric below was run through `agentunit.score`, as you would run it, on cases where the right verdict
is known. The data itself is not part of the project; `make validity` repeats the measurement where it is present.

**How to read a figure.** *AUROC* is the chance that a case people called good scores better than one they called bad:
1.00 is perfect, 0.50 is a coin toss. *Spearman* is the same idea for graded labels: 1 is the same order, 0 is no
relation. *Agreement* is the share of cases on which the score, cut in two, says what people said; *balanced accuracy*
is the same with good and bad cases counting alike, so that one fixed answer gets 0.50. *Recall*, *precision* and *F1*
say how much of what is labeled was found, how much of what was found is right, and both in one. After each figure
comes its 95 % interval, made by resampling; cases that share a source are resampled together. A backend that is slow
was measured on fewer rows of large sets, drawn by a fixed rule; the cell then says how many (*n*).

**The verdict** follows the interval, not the figure in its middle. *Strong*: AUROC surely above {_STRONG_AUROC:.2f}.
*Useful*: surely above {_USEFUL_AUROC:.2f}. *Weak*: surely above chance, no more. *No better than chance*: the interval
holds 0.50 or stays within {NEGLIGIBLE_SKILL / 2:.2f} of it. *Too few labels to tell*: the interval reaches from chance
to useful. *Backwards*: surely below chance. "Surely" is by the 95 % interval. For agreement the bar is *one fixed
answer*: the share of cases that the commoner label has.

**Plain baselines** are listed with each metric: scores that take ten lines to write. A metric that does not beat them
is not worth using. **Your own data is the better test**: `agentunit validity --labels mine.csv` does the same.

**The trust column of tables** shows only figures from data that no rule or model was tuned on: the held-out figures
below, figures on text that was written for the purpose by someone who had not read the rules, and, for formulas of
which nothing was tuned, figures on the development sets. Everything else on this page was measured on development
sets: rules and models were tuned on them, so their figures flatter. Rows that a shipped model was trained on are
marked. Labels have faults of their own: where it was measured (SummEdits), a person agrees with the label about nine
times in ten.
The column leads with one word: for shares and AUROC *strong* from 0.80, *useful* from 0.65, otherwise *weak*; for
correlations from 0.60 and 0.40; by the lower end of the interval where it is known. The figures of `faithfulness` and
`hallucination_rate` were measured with given context: with tool results as evidence nobody has measured them.
"""


def trust_file(families: Iterable[Family]) -> bytes:
    """The figures as they are shipped, sorted, one per line."""
    shown = {(each.metric, each.backend): each for family in families for each in family.trust}
    shown |= {(each.metric, each.backend): each for each in held_out().trust()}
    figures = with_bias([shown[place] for place in sorted(shown)], recorded_biases())
    lines = [msgspec.json.encode(figure).decode() for figure in figures]
    return ("[\n  " + ",\n  ".join(lines) + "\n]\n").encode() if lines else b"[]\n"


def page(families: Sequence[Family]) -> str:
    """The whole page in Markdown."""
    chapters = [_INTRODUCTION, _held_out(), bias_chapter(recorded_biases()), calibration_chapter()]
    chapters += [_overview(families)]
    chapters += [_chapter(family) for family in families]
    return "\n".join(chapter.rstrip("\n") + "\n" for chapter in chapters if chapter)


def _held_out() -> str:
    found = held_out()
    rows = [
        [", ".join(f"`{name}`" for name in each.metrics), each.backend, f"{each.statistic} {as_given(each.value)}",
         each.data + (f", version {each.version} of the metric" if each.version else ""), each.beside,
         "yes" if each.trust else ""]
        for each in found.figures
    ]  # fmt: skip
    headings = ["metric", "backend", "figure", "measured on", "beside it", "in the trust column"]
    return (
        f"## Held-out figures of {found.date}\n\nMeasured on rows that are kept away from development, with version "
        f"`{found.commit}`. A later change of a rule or a model is not in them until they are measured again.\n\n"
        + _markdown_table(headings, rows)
    )


def _overview(families: Sequence[Family]) -> str:
    rows = [
        [f"`{line.figure.scorer.name}`", line.figure.scorer.backend, f"{line.figure.statistic} {line.shown}",
         f"{line.figure.dataset}, {line.figure.n:,} {line.unit}", line.figure.verdict or "–", line.best_plain,
         line.others]
        for family in families
        for line in lines_of(family, family.headline)
    ]  # fmt: skip
    headings = ["metric", "backend", "figure (95 %)", "measured on", "verdict", "best plain baseline", "others report"]
    return "## Development figures at a glance\n\n" + _markdown_table(headings, rows)


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
