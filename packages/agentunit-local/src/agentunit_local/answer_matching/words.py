"""A text as the words that matching compares: folded spelling, numbers as digits, sentences told apart."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field

from agentunit_local.answer_matching.aliases import SPELLED_OUT, word_set
from agentunit_local.answer_matching.number_words import ROMAN_AFTER, merge_numbers, number_of, roman_value

# Scripts written without spaces (and Korean, whose particles stick to the noun): every character is a word.
_LONE = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_LETTER = r"(?:[^\W_" + _LONE + r"]|[\u0900-\u0963\u0966-\u0dff\u0300-\u036f])"
_TOKEN = re.compile(
    r"(?P<stop>[.!?](?=[\s\"')\]]|$)|[。！？।]|\n)"
    r"|(?P<date>\d{4}-\d\d?-\d\d?(?!\d)|\d\d?/\d\d?/\d{4}(?!\d)|\d\d?:\d\d(?!\d))"
    r"|(?P<number>(?:(?<![\w)])-)?\d{1,3}(?:,\d{3})+(?![\d])(?:\.\d+)?|(?:(?<![\w)])-)?\d{1,15}\.\d+(?![\w.])"
    r"|(?:(?<![\w)])-)?\d{1,15},\d{1,2}(?![\w,])|(?<![\w)])-\d{1,15}(?![\w]))"
    r"|(?P<sign>US\$|[%$€£¥₹&°*+×])"
    r"|(?P<word>" + _LETTER + r"+(?:'" + _LETTER + r"+)*)"
    r"|(?P<lone>[" + _LONE + r"])"
)
_INITIALS = re.compile(r"\b[^\W\d_]\.(?: ?[^\W\d_]\.)+")
_GLUED_CAPITAL = re.compile(r"(?<=[a-z][a-z])(?=[A-Z])")
_DIGITS_AND_LETTERS = re.compile(r"(-?\d+)([^\W\d_]+)")
_LETTERS_AND_DIGITS = re.compile(r"([^\W\d_]{4,})(\d+)|([^\W\d_]+)(\d{4,})")
_DECADE = re.compile(r"\d+'?s")
_MARKS = re.compile("[\u0300-\u036f]")
_SPECIAL_LETTERS = str.maketrans(
    {
        **dict.fromkeys("‘’ʼ`´′", "'"), **dict.fromkeys("“”„«»″", '"'), **dict.fromkeys("‐‑‒–—−", "-"),
        **dict.fromkeys("\u00a0\u202f\u2007\u2009", " "), "\u00ad": "", "\u200b": "",
        "ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ð": "d", "þ": "th", "æ": "ae", "Æ": "Ae",
        "œ": "oe", "Œ": "Oe", "ı": "i", "ħ": "h",
    }
)  # fmt: skip
_THIN_GROUPS = re.compile(r"(?<=\d)[\u00a0\u202f\u2009](?=\d{3}(?!\d))")
_NOT_AN_END = word_set("st mr mrs ms dr prof vs jr sr no mt ft gen col lt sgt rev hon inc ltd co")
_SIGNS = {"&": "and", "US$": "$"}
_ARTICLES = frozenset(("a", "an", "the"))


@dataclass(slots=True)
class Words:
    """The words of a text in order, with what each one is.

    ``forms`` are compared; ``values`` holds the number that a form stands for; ``capitals`` tells words that began
    with a capital; ``sentences`` numbers the sentence of each word; ``ordinals`` are the places of "third" or "21st".
    """

    forms: list[str] = field(default_factory=list)
    values: list[float | None] = field(default_factory=list)
    capitals: list[bool] = field(default_factory=list)
    sentences: list[int] = field(default_factory=list)
    ordinals: set[int] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self.forms)

    def add(self, form: str, value: float | None, capital: bool, sentence: int) -> None:
        """Append one word."""
        self.forms.append(form)
        self.values.append(value)
        self.capitals.append(capital)
        self.sentences.append(sentence)


def folded(text: str) -> str:
    """A text without accents, typographic quotes, wide characters and foreign digits; its case is kept.

    >>> folded("Café “Zoë” – ½ ٣")
    'Cafe "Zoe" - 1/2 3'
    """
    if text.isascii():
        return text
    text = _THIN_GROUPS.sub("", text).translate(_SPECIAL_LETTERS)
    text = unicodedata.normalize("NFKD", text).replace("\u2044", "/")
    text = unicodedata.normalize("NFC", _MARKS.sub("", text))
    if text.isascii():
        return text
    return "".join(str(unicodedata.decimal(sign)) if sign.isdecimal() else sign for sign in text)


def read_words(text: str) -> Words:
    """The words of a text, ready to be compared.

    Articles are dropped (unless nothing else is there), number words and Roman numerals become digits, dotted
    initials are joined, and words that lost their space before a capital are split.

    >>> read_words("The U.S. paid twenty-one million dollars in World War II.").forms
    ['united', 'states', 'paid', '21000000', 'dollars', 'in', 'world', 'war', '2']
    """
    found = Words()
    sentence = 0
    for match in _TOKEN.finditer(_INITIALS.sub(_joined_initials, folded(text))):
        kind, token = match.lastgroup, match.group()
        if kind == "stop":
            if found.forms and found.sentences[-1] == sentence and not _unfinished(found.forms[-1], token):
                sentence += 1
        elif kind == "word":
            if token.isalpha() and (token.islower() or token[1:].islower()):
                _add_word(found, token, sentence)
            else:
                for part in _parts(token):
                    _add_word(found, part, sentence)
        else:
            form = _SIGNS.get(token, token)
            found.add(form, number_of(token) if kind == "number" else None, False, sentence)
    return _without_articles(merge_numbers(found))


def _joined_initials(match: re.Match[str]) -> str:
    return match.group().replace(".", "").replace(" ", "")


def _unfinished(form: str, stop: str) -> bool:
    return stop == "." and (form in _NOT_AN_END or (len(form) == 1 and form.isalpha() and form.isascii()))


def _parts(token: str) -> list[str]:
    """A run of letters and digits as words: "5km", "byRufus" and "Tremblay12" are two each."""
    if _DECADE.fullmatch(token):
        return [token.replace("'", "")]
    token = token.replace("'s", "").replace("'S", "").replace("'", "")
    parts: list[str] = []
    for piece in _GLUED_CAPITAL.split(token) if token.isascii() and not token.isupper() else [token]:
        pair = _DIGITS_AND_LETTERS.fullmatch(piece) or _LETTERS_AND_DIGITS.fullmatch(piece)
        parts.extend(pair.groups() if pair and number_of(piece) is None else (piece,))
    return [part for part in parts if part]


def _add_word(found: Words, token: str, sentence: int) -> None:
    form = token.casefold()
    capital = token[0].isupper()
    if form in SPELLED_OUT and (form != "us" or token == "US"):
        for word in SPELLED_OUT[form]:
            found.add(word, number_of(word), capital, sentence)
        return
    value = number_of(form)
    if value is None and capital and token.isupper() and len(token) <= 6:
        numbered = len(token) > 1 or (bool(found.forms) and found.forms[-1] in ROMAN_AFTER)
        value = roman_value(token) if numbered else None
    if value is not None and form[-1] in "htds" and form[0].isdigit() and not form.endswith("s"):
        found.ordinals.add(len(found.forms))
    found.add(form, value, capital, sentence)


def _without_articles(found: Words) -> Words:
    kept = [place for place, form in enumerate(found.forms) if form not in _ARTICLES]
    if not kept or len(kept) == len(found.forms):
        return found
    new_place = {old: new for new, old in enumerate(kept)}
    return Words(
        [found.forms[place] for place in kept],
        [found.values[place] for place in kept],
        [found.capitals[place] for place in kept],
        [found.sentences[place] for place in kept],
        {new_place[place] for place in found.ordinals if place in new_place},
    )
