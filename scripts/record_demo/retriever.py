"""A small lexical retriever: BM25 over the help pages, with a crude stemmer and no idea of synonyms."""

from __future__ import annotations

import math
import re

from .pages import PAGES, page_text

_STOPWORD_LIST = """
a about after all also am an and any are as at be been but by can could did do does for from get got
had has have hello hi how i if im in is it its just me much my need normally not of on or our please
should so some something still take tell than thanks that the their them then there they this to u
up us usually want was we what when where whether which who will with would you your
"""
STOPWORDS = frozenset(_STOPWORD_LIST.split())
SATURATION = 1.2
LENGTH_WEIGHT = 0.75


def stems(text: str) -> list[str]:
    """Lower-case content words without their commonest endings.

    >>> stems("Are the boots running small?")
    ['boot', 'runn', 'small']
    """
    words = [word for word in re.findall(r"[a-z0-9$]+", text.lower().replace("'", "")) if word not in STOPWORDS]
    return [_strip_ending(word) for word in words]


def _strip_ending(word: str) -> str:
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            return word[: -len(ending)]
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


_STEMS_OF_PAGE = {title: stems(page_text(title)) for title in PAGES}
_MEAN_LENGTH = sum(map(len, _STEMS_OF_PAGE.values())) / len(_STEMS_OF_PAGE)


def rarity(stem: str) -> float:
    """BM25's inverse document frequency: rare words weigh more."""
    holding = sum(stem in page for page in _STEMS_OF_PAGE.values())
    return math.log(1 + (len(_STEMS_OF_PAGE) - holding + 0.5) / (holding + 0.5))


def search(query: str, limit: int = 3) -> list[tuple[str, float]]:
    """The best pages for a query as (title, score), best first; pages that share no word are left out."""
    wanted = list(dict.fromkeys(stems(query)))
    scored = [(title, _score(wanted, page)) for title, page in _STEMS_OF_PAGE.items()]
    found = [(title, score) for title, score in scored if score > 0]
    return sorted(found, key=lambda pair: (-round(pair[1], 6), pair[0]))[:limit]


def _score(wanted: list[str], page: list[str]) -> float:
    damping = SATURATION * (1 - LENGTH_WEIGHT + LENGTH_WEIGHT * len(page) / _MEAN_LENGTH)
    total = 0.0
    for stem in wanted:
        times = page.count(stem)
        total += rarity(stem) * times * (SATURATION + 1) / (times + damping)
    return total


def best_sentences(query: str, title: str) -> str:
    """The sentence of a page that shares most with the query, and a second one if it comes close."""
    wanted = set(stems(query)) - set(stems(title))
    sentences = PAGES[title]
    scores = [round(sum(rarity(stem) for stem in sorted(wanted & set(stems(line)))), 6) for line in sentences]
    best = max(scores)
    kept = [line for line, score in zip(sentences, scores, strict=True) if score >= 0.6 * best]
    return " ".join(kept[:2])
