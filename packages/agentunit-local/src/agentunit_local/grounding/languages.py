"""Which language a text is in: a cheap guess by its script and its function words."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

MEASURED = frozenset({"en"})
"""The languages whose scores were held against people's labels."""

_SCRIPTS = {
    "CYRILLIC": "ru", "GREEK": "el", "ARABIC": "ar", "HEBREW": "he", "DEVANAGARI": "hi", "BENGALI": "bn", "THAI": "th",
    "HANGUL": "ko", "HIRAGANA": "ja", "KATAKANA": "ja", "CJK": "zh", "TAMIL": "ta", "TELUGU": "te", "GEORGIAN": "ka",
    "ARMENIAN": "hy",
}  # fmt: skip
_FUNCTION_WORDS = {
    "en":
        "the of and to in is was are were for that with as on by it he she they this from at be has have had "
        "not his her their which an or but been will would can its who after when there what more about into "
        "than out if you your we i do does did no yes me my our us them him am so",
    "de":
        "der die das und ist von den dem des mit für auf ein eine einen einer im zu nicht sich auch wird "
        "wurde als bei nach aus sind war hat haben es er sie oder zum zur über ich wir mir mich habe kann keine kein "
        "keinen dass wenn aber dazu dies diese dieser",
    "fr":
        "le la les de des du et est un une dans pour que qui pas sur au aux par avec ce cette il elle ils ne "
        "se sont était été plus ou à en d l je nous vous ai mais aucune aucun cela",
    "es":
        "el la los las de del y que en un una es por con para no se al lo su como más fue era son pero o sus "
        "este esta hay yo mi tengo ha han sobre sin",
    "pt":
        "o a os as de do da dos das e que em um uma é por com para não se ao no na mais foi como são mas ou "
        "seu sua pelo pela eu há tenho sobre sem isso",
    "it":
        "il lo la i gli le di del della dei delle e che in un una è per con non si da al nel sono più anche "
        "come ma o alla era stato io mi ho ha questo questa",
    "nl":
        "de het een van en in is op dat te zijn met voor niet aan er om ook door bij werd was maar naar uit "
        "heeft hij zij ik wij geen dit deze kan heb",
    "sv": "och att det som en ett i på är av för med den till inte har de om var från han hon men vid",
    "da": "og at det som en et i på er af for med den til ikke har de om var fra han hun men ved blev",
    "pl": "i w na z do że się nie jest to o jak od po dla przez który która oraz był była są ale za",
    "cs": "a v se na je že s z do o k i za pro by jsou byl byla ale jako který která není",
    "tr": "ve bir bu da de için ile olarak çok daha olan gibi en kadar sonra ne var değil ya",
    "fi": "ja on ei että se oli hän joka ovat mutta kun myös sekä ole tai kuin",
    "ro": "și de la în cu pe un o că este nu din pentru care mai a fost sunt sau au",
    "hu": "a az és hogy nem egy is volt meg ez de csak már mint van vagy",
    "id": "yang dan di dari ini untuk dengan pada adalah tidak dalam itu ke akan oleh juga atau",
    "vi": "và của là có không được cho trong một các người với đã này những khi",
}  # fmt: skip
_WORDS = {name: frozenset(words.split()) for name, words in _FUNCTION_WORDS.items()}
# Whole words only: the "A" of order A-1058, the "com" of an address and the "e" of e-mail are words of no language.
_WORD = re.compile(r"(?<![\w@./\\&#+=-])[^\W\d_]+(?![\w@/\\&=+-]|[.:]\w)")
_MOST_WORDS = 400
_FEWEST_MET = 2
_FEWEST_KINDS = 2
_LEAST_SHARE = 0.08
"""Of the words of a text at least this share are function words of its language: English names may hold a few."""


def language_of(texts: Iterable[str]) -> str | None:
    """The language of some texts by its two-letter code; ``None`` when they are too short to tell.

    >>> [language_of([text]) for text in ("Das Haus ist nicht offen.", "The house is closed.", "42")]
    ['de', 'en', None]
    """
    words = [word for text in texts for word in _WORD.findall(text)[:_MOST_WORDS]]
    scripts = Counter(_script(word[0]) for word in words)
    other = {name: count for name, count in scripts.items() if name in _SCRIPTS}
    if sum(other.values()) * 2 > len(words):
        # Japanese is written with Han as well, so a little of its own script decides.
        kana = other.get("HIRAGANA", 0) + other.get("KATAKANA", 0)
        return "ja" if kana * 5 > sum(other.values()) else _SCRIPTS[max(other, key=lambda name: (other[name], name))]
    # Codes are no words: AUS and DEN are airports. A text in capitals alone is read all the same.
    words = [word for word in words if len(word) == 1 or not word.isupper()] or words
    folded = [word.lower() for word in words]
    met = {name: sum(word in known for word in folded) for name, known in _WORDS.items()}
    best = max(met, key=lambda name: (met[name], name == "en"))
    # Short words such as "a" and "i" belong to many languages: one of them more than English has decides nothing.
    # Names hold such words with a capital (Las Vegas, El Paso), codes and formulas hold single letters.
    telling = {word.lower() for at, word in enumerate(words) if len(word) > 1 and (at == 0 or not word.istitle())}
    kinds = len(_WORDS[best] & telling)
    if met[best] - met["en"] < _FEWEST_MET or kinds < _FEWEST_KINDS or met[best] < _LEAST_SHARE * len(folded):
        return "en" if met["en"] else None
    return best


def _script(letter: str) -> str:
    return unicodedata.name(letter, "").partition(" ")[0]
