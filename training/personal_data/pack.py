"""Gathers all that training needs into one file: ``python -m training.personal_data.pack OUT [name=folder …]``.

``sentences`` is a folder of plain sentences, one file a language (``de.txt``); ``texts`` the plain texts of English
(``texts.jsonl.gz``); ``popular`` a folder with tables of popular names by country. Each may be absent. A sentence is
kept where we can tell what stands in it: as plain, when nothing in it may be a name; or as a template, when each name
and place in it is on a list, so that other names can stand there.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from training.personal_data.names import lists
from training.personal_data.places import addresses, places

PLAIN_PER_LANGUAGE = 9000
TEMPLATES_PER_LANGUAGE = 12000
WITHOUT_CASE = frozenset("ar fa he hi mr ur ja ko zh-CN zh-TW zh-HK th ta bn ka pa-IN".split())
_WORD = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_CAPITALIZED_ANYWAY = frozenset(
    "I I'm I'll I've I'd Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May June"
    " July August September October November December English French German Spanish Italian Chinese Japanese Russian"
    " American British European Indian African Asian Christian Jewish Muslim Catholic Internet TV OK Mr Mrs Ms Dr User"
    " System God Christmas Easter Bible Europe".split()
)
_BEFORE_A_SENTENCE = frozenset((".", "!", "?", ":", '"', "…", "-", "–", '."', ': "', '?"', "“", ". “"))
_GERMAN_ARTICLES = frozenset(
    "der die das den dem des ein eine einen einem einer eines im am zum zur vom ins ans kein keine keinen keiner"
    " mein meine meinen meinem meiner sein seine seinen seiner ihr ihre ihren ihrer unser unsere dieser diese dieses"
    " diesen diesem jeder jede jedes viel viele mehr aller alle".split()
)


def pack(out: Path, sentences: Path | None, texts: Path | None, popular: Path | None) -> dict[str, Any]:
    """Everything that the generator draws from, written to ``out`` and returned."""
    people = lists(popular)
    where = places()
    given = {name for kinds in people.values() for name in kinds["given"] if name[0].isupper() or not name[0].isascii()}
    family = {name for kinds in people.values() for name in kinds["family"]}
    towns = {name for names in where.values() for name in names}
    plain: dict[str, list[str]] = {}
    templates: dict[str, list[str]] = {}
    for language, lines in _sources(sentences, texts):
        kept = _sorted_out(language, lines, given, family, towns)
        plain[language], templates[language] = kept
        print(f"{language}: {len(kept[0])} plain, {len(kept[1])} templates", flush=True)
    code = _code_lines(given)
    packed = {
        "people": people, "places": where, "addresses": addresses(), "plain": plain, "templates": templates, "code": code
    }  # fmt: skip
    out.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(out, "wt", encoding="utf-8") as stream:
        json.dump(packed, stream, ensure_ascii=False)
    return packed


def _sources(sentences: Path | None, texts: Path | None) -> Iterator[tuple[str, list[str]]]:
    english: list[str] = []
    if texts is not None:
        with gzip.open(texts, "rt", encoding="utf-8") as lines:
            for line in lines:
                english.extend(_SENTENCE_END.split(json.loads(line)["text"]))
    for path in sorted(sentences.glob("*.txt")) if sentences is not None else ():
        read = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
        if path.stem == "en":
            english.extend(read)
        else:
            yield path.stem, read
    if english:
        yield "en", english


def _sorted_out(
    language: str, lines: Iterable[str], given: set[str], family: set[str], towns: set[str]
) -> tuple[list[str], list[str]]:
    random.seed(5)
    usable = sorted({line.strip() for line in lines if 12 <= len(line) <= 240 and "{" not in line})
    random.shuffle(usable)
    if language in WITHOUT_CASE:
        known = {name for name in given | family | towns if len(name) > 1 and not name.isascii()}
        return [line for line in usable[:40000] if not _holds(line, known)][:PLAIN_PER_LANGUAGE], []
    small = Counter(word for line in usable for word in _WORD.findall(line) if word.islower())
    large = Counter(word for line in usable for word in _WORD.findall(line)[1:] if word[0].isupper())
    others = family | towns
    plain: list[str] = []
    templates: list[str] = []
    for line in usable:
        if len(plain) >= PLAIN_PER_LANGUAGE and len(templates) >= TEMPLATES_PER_LANGUAGE:
            break
        if language == "de":
            if len(plain) < PLAIN_PER_LANGUAGE and not _may_name_in_german(line, given, others):
                plain.append(line)
            continue
        template = _as_template(line, small, large, given, family, towns)
        if template == line and len(plain) < PLAIN_PER_LANGUAGE:
            plain.append(line)
        elif template is not None and template != line and len(templates) < TEMPLATES_PER_LANGUAGE:
            templates.append(template)
    return plain, templates


def _may_name_in_german(line: str, given: set[str], others: set[str]) -> bool:
    """Whether a German sentence may hold a name: nouns have capitals too, but after an article a word is a noun."""
    words = _WORD.findall(line)
    return any(
        word in given or (word in others and (place == 0 or words[place - 1].lower() not in _GERMAN_ARTICLES))
        for place, word in enumerate(words)
        if word[0].isupper() and (place or word in given)
    )


def _holds(line: str, known: set[str]) -> bool:
    """Whether a name of two letters or more stands in a line of a script without capitals."""
    words = set(re.split(r"[\s.,،。、!?؟।:;]+", line))
    if words & known:
        return True
    if any("\u0e00" <= letter <= "\u0eff" or letter >= "\u3040" for letter in line):
        return any(line[at : at + size] in known for size in (3, 4, 5, 6) for at in range(len(line) - size + 1))
    return False


def _as_template(
    line: str, small: Counter[str], large: Counter[str], given: set[str], family: set[str], towns: set[str]
) -> str | None:
    """The line with slots for its names; the line itself when it has none; ``None`` when we cannot tell."""
    runs: list[list[re.Match[str]]] = []
    previous = -2
    for place, match in enumerate(matches := list(_WORD.finditer(line))):
        word = match.group()
        if not word[0].isupper() or word in _CAPITALIZED_ANYWAY:
            continue
        between = line[matches[place - 1].end() : match.start()] if place else ""
        if (place == 0 or between.strip() in _BEFORE_A_SENTENCE) and _is_ordinary(word, small, large):
            continue
        if previous == place - 1 and between in (" ", ". "):
            runs[-1].append(match)
        else:
            runs.append([match])
        previous = place
    pieces: list[str] = []
    at = 0
    for run in runs:
        slot = _slot(line[run[0].start() : run[-1].end()], given, family, towns)
        if slot is None and not all(_is_ordinary(each.group(), small, large) for each in run):
            return None
        if slot is not None and len(run) == 1 and small[run[0].group().lower()] >= 3:
            return None  # a word and a name: Mark, Will, Can
        if slot is not None:
            pieces += [line[at : run[0].start()], slot]
            at = run[-1].end()
    return "".join((*pieces, line[at:]))


def _is_ordinary(word: str, small: Counter[str], large: Counter[str]) -> bool:
    """Whether a word with a capital is mostly written without one."""
    return small[word.lower()] >= 3 and small[word.lower()] > large[word]


def _slot(text: str, given: set[str], family: set[str], towns: set[str]) -> str | None:
    ending = next((each for each in ("'s", "’s") if text.endswith(each)), "")
    text = text.removesuffix(ending)
    words = text.replace(".", "").split()
    if text in towns and words[0] not in given:
        return "{place}" + ending
    if len(words) == 1:
        return "{given}" + ending if text in given and text not in towns and len(text) > 2 else None
    if len(words) <= 3 and words[0] in given and (words[-1] in family or words[-1] not in given):
        return "{person}" + ending if words[-1] not in ("Street", "River", "County", "University", "Park") else None
    return None


def _code_lines(given: set[str]) -> list[str]:
    """Lines of Python's own library without a name in them."""
    lines: list[str] = []
    for path in sorted(Path(json.__file__).parents[1].glob("*.py")):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            words = _WORD.findall(line)
            if 12 <= len(line) <= 160 and "{" not in line and not any(word in given for word in words):
                lines.append(line.rstrip())
    random.seed(6)
    random.shuffle(lines)
    return lines[:8000]


def main(arguments: list[str]) -> None:
    """Read ``OUT`` and ``name=folder`` and pack."""
    folders = dict(each.split("=", 1) for each in arguments[1:])
    chosen = {name: Path(folders[name]) if name in folders else None for name in ("sentences", "texts", "popular")}
    packed = pack(Path(arguments[0]), **chosen)
    print({name: len(value) for name, value in packed.items()}, Path(arguments[0]).stat().st_size)


if __name__ == "__main__":
    main(sys.argv[1:])
