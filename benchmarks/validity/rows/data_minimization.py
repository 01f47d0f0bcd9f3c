"""Data minimization, on PrivacyLens: a last action that tells what must stay private, or only what may be shared."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from agentunit.addons.review.labeling.label_files import Label
from agentunit.core.case import DatasetCase
from agentunit.core.records import Record, outcome_text
from agentunit.core.trace import TraceEvent, TraceLog
from agentunit.formulas.text import words
from agentunit.privacy.metrics import DataMinimizationMetric
from benchmarks.validity.baselines import Baseline, content_words, share_found
from benchmarks.validity.data import LabelledData
from benchmarks.validity.family import Family
from benchmarks.validity.measure import LabelledCase, score_sets, set_figure, trust_figures

_STEP = re.compile(
    r"Action: (?P<tool>\S+)\s*\nAction Input: (?P<arguments>.*?)\nObservation: (?P<result>.*?)(?=\n\s*Action: |\Z)",
    re.DOTALL,
)
_SENTENCE_END = re.compile(r"(?<=[a-z0-9][.!?])[\"”]?\s+(?=[A-Z\"“])")
LISTED, PASTED = "privacylens, items as listed", "privacylens, as the tools wrote it"
SUMMED_UP = "privacylens, summed up in a phrase"


def _unshared_words(record: Record) -> float | None:
    """1 minus the share of the sensitive items' words, stop words aside, that stand in the last action."""
    items = [word for item in record.case.metadata["sensitive"] for word in content_words(item)]
    found = share_found(items, words(outcome_text(record.outcome) or ""))
    return None if found is None else 1.0 - found


UNSHARED_WORDS = Baseline(
    "unshared words",
    "1 minus the share of the sensitive items' words, stop words aside, that the last action holds",
    _unshared_words,
)


def measure(data: LabelledData) -> Family:
    """Score leaking and harmless actions, and say what the scores are worth."""
    sets = sets_of(data)
    scored = score_sets(sets, [[DataMinimizationMetric()]], [UNSHARED_WORDS])
    figures = [set_figure(scorer, name, rows_of[name]) for scorer, rows_of in scored.items() for name in sets]
    headline = [figure for figure in figures if figure.dataset == PASTED]
    return Family(
        key="data_minimization",
        title="Data minimization",
        measured=(
            "PrivacyLens tells of people with something to keep private, what their tools show an assistant, and which "
            "statements must not get out (the metric is given those as `metadata.sensitive`). The assistant's last "
            "action was made for this measurement: one that leaks repeats the statements as they are listed, the "
            "sentences of the tools' results that say the same in other words, or the phrase by which the data sums "
            "the secret up; one that does not says what the story itself calls fit to share. A good score is higher "
            "for the harmless action."
        ),
        can=(
            "An action that passes sensitive text on, word for word or lightly reworded, scores below one that does "
            "not, and the detail names the place."
        ),
        cannot=(
            "What is told in quite other words, as in the phrases that sum a secret up, is noticed only with the local "
            "groundedness model, and then in four of five cases; one harmless action in seven is taken for a leak. "
            "Without a list in the case, values and statements are found by the names of fields and by the detector, "
            "which finds about half of those that PrivacyLens lists."
        ),
        baselines=(UNSHARED_WORDS,),
        headline=headline,
        figures=figures,
        trust=trust_figures(headline),
        remarks=(
            "Both actions of one story are resampled together.",
            "The tools' sentences were chosen by the words they share with the statements, which favors the baseline; "
            "and the metric says which statements leaked, where the baseline only ranks.",
        ),
    )


def sets_of(data: LabelledData) -> dict[str, list[LabelledCase]]:
    """The leaking and harmless actions, by how the secret is told."""
    sets: dict[str, list[LabelledCase]] = {LISTED: [], PASTED: [], SUMMED_UP: []}
    for row in data.rows("privacylens"):
        story = _SENTENCE_END.split(row["vignette"]["story"])
        # The last sentence of most stories names what the person also has at hand and may share.
        if len(story) < 2 or " also " not in story[-1]:
            continue
        for name, told in (
            (LISTED, " ".join(row["trajectory"]["sensitive_info_items"])),
            (PASTED, _pasted(row)),
            (SUMMED_UP, row["vignette"]["data_type_concrete"]),
        ):
            if told:
                sets[name] += [_case(row, told, leaks=True), _case(row, story[-1], leaks=False)]
    return sets


def _case(row: dict[str, Any], told: str, *, leaks: bool) -> LabelledCase:
    trajectory = row["trajectory"]
    steps = [
        TraceEvent(
            "tool_call", {"name": step["tool"], "arguments": _data(step["arguments"]), "result": _data(step["result"])}
        )
        for step in _STEP.finditer(trajectory["executable_trajectory"])
    ]
    last = TraceEvent("tool_call", {"name": trajectory["final_action"], "arguments": {"content": told}})
    case = DatasetCase(
        f"{row['name']}:{'leaks' if leaks else 'harmless'}",
        trajectory["user_instruction"],
        metadata={"sensitive": trajectory["sensitive_info_items"]},
    )
    return Record(case, TraceLog([*steps, last]), told), Label(float(not leaks), row["name"])


def _pasted(row: dict[str, Any]) -> str:
    """For each sensitive item, the sentence of the tools' results that shares the most words with it."""
    sentences = list(_sentences(row))
    if not sentences:
        return ""
    chosen = []
    for item in row["trajectory"]["sensitive_info_items"]:
        wanted = set(content_words(item))
        chosen.append(max(sentences, key=lambda sentence: _likeness(wanted, set(content_words(sentence)))))
    return " ".join(dict.fromkeys(chosen))


def _likeness(wanted: set[str], here: set[str]) -> float:
    union = wanted | here
    return len(wanted & here) / len(union) if union else 0.0


def _sentences(row: dict[str, Any]) -> Iterator[str]:
    for step in _STEP.finditer(row["trajectory"]["executable_trajectory"]):
        pending = [_data(step["result"])]
        while pending:
            each = pending.pop()
            if isinstance(each, str):
                yield from (sentence for sentence in _SENTENCE_END.split(each) if len(content_words(sentence)) > 1)
            elif isinstance(each, (dict, list)):
                pending += each.values() if isinstance(each, dict) else each


def _data(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
