"""How often ``answer_language`` is wrong, and how often silent, on text that its word lists were not tuned on.

    python -m benchmarks.validity.answer_language [FOLDER]

Questions with their English answers come from ``AGENTUNIT_DATA``. FOLDER may hold, from github.com, ``xquad.*.json``
(google-deepmind/xquad: questions and passages in 12 languages) and ``MultiQ.csv`` (paul-rottger/multiq: 200 questions
in each of 137 languages), and ``locale`` (Debian's ``/usr/share/locale``: messages of programs). What is absent is
skipped, and named. Word lists and letters were chosen on Universal Dependencies, nothing of which is here.

A pair in one language that is called two is a false alarm. A pair in two languages, one of them English, that has no
value is missed; one that passes is wrong, too.
"""

from __future__ import annotations

import csv
import gettext
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice, pairwise
from pathlib import Path
from typing import NamedTuple

from agentunit.addons.language.answer_language import AnswerLanguageMetric
from agentunit.addons.language.languages import names_a_language
from benchmarks.validity.data import DataProblem, LabelledData, data_folder

ENGLISH = "en"
_SHORTEST_MESSAGE = 60
_MOST_MESSAGES = 400
_LABELED = ("answer_correctness", "faithfulness")
# One language under two codes, or so close that no answer would be called foreign.
_ALSO = {"iw": "he", "jw": "jv", "nb": "no", "zh-CN": "zh", "zh-TW": "zh", "zh_CN": "zh", "pt_BR": "pt", "fil": "tl"}


class Pair(NamedTuple):
    """A question and an answer, and the language of each."""

    question: str
    answer: str
    asked_in: str
    answered_in: str


class Counts(NamedTuple):
    """Of the pairs of a set: how many there are, and how many were called alike, called different, or left open."""

    n_pairs: int
    alike: int
    different: int
    excluded: int
    """The question names a language, or asks for a translation."""

    @property
    def unsure(self) -> int:
        """Pairs whose languages are not sure."""
        return self.n_pairs - self.alike - self.different - self.excluded


def count_pairs(pairs: Iterable[Pair]) -> Counts:
    """Ask the metric about all pairs.

    >>> count_pairs([Pair("Where is it?", "It is in the house.", "en", "en"), Pair("Who?", "Paris", "en", "en")])
    Counts(n_pairs=2, alike=1, different=0, excluded=0)
    """
    metric = AnswerLanguageMetric()
    verdicts: Counter[object] = Counter()
    for pair in pairs:
        value = metric.evaluate({"id": "q1", "query": pair.question}, None, pair.answer).value  # type: ignore[arg-type]
        verdicts["excluded" if value is None and names_a_language(pair.question) else value] += 1
    return Counts(verdicts.total(), verdicts[1.0], verdicts[0.0], verdicts["excluded"])


def english_pairs(data: LabelledData) -> Iterator[Pair]:
    """Questions and answers of models in English, each pair once."""
    for name in _LABELED:
        for row in data.rows(name):
            question, answer = row.get("question"), row.get("answer") or row.get("response")
            if question and answer:
                yield Pair(question, answer, ENGLISH, ENGLISH)


Texts = dict[str, list[tuple[str, str]]]
"""For each language texts that may be a question and its answer; the same positions say the same in all of them."""


def xquad(folder: Path) -> Texts:
    """Questions, and the passage that answers each."""
    texts: Texts = {}
    for path in sorted(folder.glob("xquad.*.json")):
        articles = json.loads(path.read_text(encoding="utf-8"))["data"]
        passages = [passage for article in articles for passage in article["paragraphs"]]
        texts[path.suffixes[0][1:]] = [(passage["qas"][0]["question"], passage["context"]) for passage in passages]
    return texts


def xquad_sentences(folder: Path) -> Texts:
    """Questions, and the first 15 words (or 30 characters without spaces) of the passage: as short as answers are."""
    texts: Texts = {}
    for language, pairs in xquad(folder).items():
        size = 30 if language in ("zh", "th") else 120
        texts[language] = [
            (question, passage[:size].rpartition(" ")[0] or passage[:size]) for question, passage in pairs
        ]
    return texts


def multiq(folder: Path) -> Texts:
    """Each question, with the next one as what is said to it."""
    path = folder / "MultiQ.csv"
    if not path.is_file():
        return {}
    prompts: dict[str, list[str]] = defaultdict(list)
    with path.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            prompts[row["language"]].append(row["prompt"])
    return {language: list(pairwise(texts)) for language, texts in prompts.items()}


def messages(folder: Path) -> Texts:
    """Long messages of programs, each with the next one; the same programs in each language, but not the same texts."""
    texts: Texts = {}
    for language_folder in sorted(folder.glob("locale/*/LC_MESSAGES")):
        language = language_folder.parent.name
        found: list[str] = []
        for path in sorted(language_folder.glob("*.mo")):
            with path.open("rb") as stream, suppress(ValueError, IndexError):
                catalog = gettext.GNUTranslations(stream)._catalog  # type: ignore[attr-defined]
                translated = (text for message, text in catalog.items() if message not in ("", text))
                found += islice((text for text in translated if len(text) >= _SHORTEST_MESSAGE and "%" not in text), 25)
        if len(found) > 50 and "@" not in language:
            texts[language] = list(pairwise(found[:_MOST_MESSAGES]))
    return texts


def alike(texts: Texts) -> Iterator[Pair]:
    """Pairs in one language."""
    for language, pairs in texts.items():
        for question, answer in pairs:
            yield Pair(question, answer, language, language)


def english_instead(texts: Texts) -> Iterator[Pair]:
    """A question in any other language that is answered in English, and one in English that is not."""
    english = texts.get(ENGLISH, [])
    for language, pairs in texts.items():
        if language == ENGLISH:
            continue
        for other, own in zip(pairs, english, strict=False):
            yield Pair(other[0], own[1], language, ENGLISH)
            yield Pair(own[0], other[1], ENGLISH, language)


def by_language(pairs: Iterable[Pair]) -> dict[str, Counts]:
    """The counts of each language (English stands for itself alone)."""
    grouped: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        language = pair.answered_in if pair.asked_in == ENGLISH else pair.asked_in
        grouped[_ALSO.get(language, language)].append(pair)
    return {language: count_pairs(found) for language, found in sorted(grouped.items())}


def _shares(name: str, counts: Counts) -> str:
    whole = max(counts.n_pairs - counts.excluded, 1)
    shares = (100 * part / whole for part in (counts.alike, counts.different, counts.unsure))
    return "{:<34} {:>7,} {:>8.2f} {:>10.3f} {:>7.2f} {:>9,}".format(name, counts.n_pairs, *shares, counts.excluded)


def _total(counts: Iterable[Counts]) -> Counts:
    return Counts(*map(sum, zip(*counts, strict=True)))


def main(arguments: list[str]) -> None:
    """Print the shares of all sets that are there."""
    print(f"{'':<34} {'pairs':>7} {'alike %':>8} {'different %':>10} {'unsure %':>7} {'named':>8}")
    data = data_folder(Path.cwd())
    if data is None:
        print("English questions and answers: skipped, AGENTUNIT_DATA has no folder dev")
    else:
        try:
            print(_shares("English, questions and answers", count_pairs(english_pairs(LabelledData(data)))))
        except DataProblem as problem:
            print(f"English questions and answers: skipped, {problem}")
    folder = Path(arguments[0]) if arguments else Path("languages")
    for read in (xquad, xquad_sentences, multiq, messages):
        texts = read(folder)
        if not texts:
            print(f"{read.__name__}: skipped, not in {folder}")
            continue
        same = by_language(alike(texts))
        other = by_language(english_instead(texts))
        print(_shares(f"{read.__name__}: one language", _total(same.values())))
        print(_shares(f"{read.__name__}: English instead", _total(other.values())) if other else "")
        if "-v" in arguments:
            for language, counts in same.items():
                print(_shares(f"  {language}", counts))
            for language, counts in other.items():
                print(_shares(f"  {language} or English", counts))


if __name__ == "__main__":
    main(sys.argv[1:])
