"""Postal addresses: a street with its number, a flat or a box, and the city, state, country and code that follow."""

from __future__ import annotations

import re
from collections.abc import Iterator

import re2

from agentunit.addons.names._address_parts import (
    ABBREVIATED_TYPES_BEFORE_NAME,
    CUES,
    DIRECTIONS,
    LONE_UNITS,
    PARTICLES,
    TYPE_ENDINGS,
    TYPES_AFTER_NAME,
    TYPES_BEFORE_NAME,
    TYPES_BEFORE_NUMBER,
    UNITS,
    end_of_tail,
    find_unit,
)
from agentunit.addons.names._eastern_addresses import find_eastern_addresses
from agentunit.privacy.detection.gazetteer import Kind, kinds_of, word_set
from agentunit.privacy.findings import Finding

CUE_WORDS = 7
"""How many words before a street are searched for one that announces an address."""

_UNIT = rf"(?:{'|'.join(UNITS)})\.?[ ]#?\d{{1,5}}[a-z]?\b"
_NUMBER = r"\d{1,5}[a-zA-Z]?(?:[-/]\d{1,4})?"


_PIECE = r"(?:[ ][A-Za-z0-9\x80-\xff.'#/-]+)"
# As in India and Singapore: a house or plot, quarters of the town, and a code at the end.
_PLOT = (
    r"(?:flat|house|plot|door|villa|bungalow|block|blk)[ ](?:no\.?[ ]?)?#?\d{1,4}[a-z]?(?:[/-]\d{1,4})?,?"
    rf"{_PIECE}{{1,6}}(?:,{_PIECE}{{1,5}}){{1,4}}[ -]\d{{4,6}}\b"
)
# As in Japan: numbers of district, block and house, and a code at the end.
_BLOCK_NUMBERS = rf"\d{{1,2}}(?:-\d{{1,3}}){{1,2}},?{_PIECE}{{1,3}}(?:,{_PIECE}{{1,3}}){{1,3}}[ ]\d{{3}}-\d{{4}}\b"

_LETTER = r"[A-Za-z\x80-\xff'.-]"
"""A letter, as bytes: every byte of a letter outside ASCII is one."""


def _compile(pattern: str) -> re2._Regexp[bytes]:
    """A pattern over bytes. Bytes taken one by one keep the automaton small, which tables of all letters would not."""
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = 64 << 20
    return re2.compile(pattern.encode(), options)


def _core(capital: str) -> str:
    """What an address starts from, as a pattern for re2; ``capital`` is the first letter of a proper word."""
    word = rf"{capital}{_LETTER}*"
    particle = "|".join(PARTICLES)
    ordinal = r"\d{1,3}(?:st|nd|rd|th)"
    name = rf"(?:(?:{particle})[ ]){{0,3}}{word}[ ](?:(?:{word}|{particle}|{ordinal}|\d{{1,2}}\.?)[ ]){{0,4}}"
    before = "|".join([*TYPES_BEFORE_NAME, *ABBREVIATED_TYPES_BEFORE_NAME]).replace(".", r"\.")
    after = "|".join(TYPES_AFTER_NAME)
    endings = "|".join(TYPE_ENDINGS).replace(".", r"\.")
    before_number = "|".join(TYPES_BEFORE_NUMBER).replace(".", r"\.?")
    patterns = (
        r"(?:psc|cmr|unit)[ ]\d{1,5},?[ ]box[ ]\d{1,5}[,\s]+[afd]po[ ]a[aep][ ]\d{5}",
        rf"us(?:s|ns|cgc|nv)[ ]{word}(?:[ ]{word})?[,\s]+[afd]po[ ]a[aep][ ]\d{{5}}",
        rf"(?:{_NUMBER}[ ])?(?:p\.?[ ]?o\.?[ ]?box|postfach|casilla|apartado)[ ]\d{{1,6}}(?:-\d{{4,5}}\b)?",
        _PLOT,
        _BLOCK_NUMBERS,
        rf"(?:the[ ])?corner[ ]of[ ](?:(?:{_LETTER}|\d)+[ ]){{1,6}}and[ ]{word}(?:[ ](?:{word}|\d{{1,5}})){{0,4}}",
        rf"{_NUMBER},?[ ](?:{_NUMBER}[ ])?(?:{name}|{ordinal}[ ])(?:{after})\b\.?(?:[ ](?:{'|'.join(DIRECTIONS)})\b)?",
        rf"(?:{_NUMBER},?[ ])?(?:{before})[ ]{name}{_NUMBER}\b\.?",
        rf"(?:{before})[ ](?:(?:{particle})[ ]){{0,3}}{word}(?:[ ](?:{word}|{particle})){{0,4}},[ ](?:n\.?[ ]?)?"
        rf"{_NUMBER}\b",
        rf"{_NUMBER},?[ ](?:{_NUMBER}[ ])?(?:{before})[ ](?:(?:{particle})[ ]){{0,3}}{word}(?:[ ]{word}){{0,3}}",
        rf"(?:{_NUMBER}[ ])?(?:{word}[ ]){{0,3}}{capital}{_LETTER}+(?:{endings})[ ]{_NUMBER}\b\.?",
        rf"(?:{_NUMBER}[ ])?(?:{word}[ ]){{1,4}}(?:{before_number})[ ](?:no[.:]?[ ]?)?{_NUMBER}\b\.?",
        rf"{_NUMBER}[ ]{name}{_NUMBER}\b\.?",
        rf"(?:{word}[ ]){{1,4}}{_NUMBER}\b\.?",
        _UNIT,
    )
    return rf"(?i)\b(?:{'|'.join(patterns)})"


# re2's \b knows ASCII letters only; that is enough before a number, and words are checked again below.
_CORE = _compile(_core(r"(?-i:[A-Z\xc3-\xd4\xe1])"))
_CORE_IN_LOWER_CASE = _compile(_core(r"[a-z\x80-\xff]"))
_DIGIT = re.compile("[0-9]")
_BOX = re.compile(
    r"(?:psc|cmr|unit)[ ]\d+,?[ ]box[ ]|us(?:s|ns|cgc|nv)[ ]\w|(?:the[ ])?corner[ ]of[ ]|"
    r"(?:\d+[ ])?(?:p\.?[ ]?o\.?[ ]?box|postfach|casilla|apartado)[ ]\d",
    re.IGNORECASE,
)
_WHOLE = re.compile(
    r"(?:flat|house|plot|door|villa|bungalow|block|blk)[ ](?:no\.?[ ]?)?#?\d{1,4}[a-z]?(?:[/-]\d{1,4})?,?[ ]"
    r"[^\n]+[ -]\d{4,6}$"
    r"|\d{1,2}(?:-\d{1,3}){1,2},?[ ][^\n]+[ ]\d{3}-\d{4}$",
    re.IGNORECASE,
)
_HEAD = re.compile(
    r"(?:(?:flat|apt|apartment|unit|house|plot|block|blk|suite|room|villa|shop|door|no)\.?[ ](?:#?\w{1,5},[ ])?)$",
    re.IGNORECASE,
)
_HEAD_REACH = 24
_BEFORE_NUMBER = frozenset(("no", "no.", "no:", "n.", "n"))
_TYPES_AFTER_NAME = frozenset(TYPES_AFTER_NAME)
_TYPES_BEFORE_NAME = frozenset((*TYPES_BEFORE_NAME, *ABBREVIATED_TYPES_BEFORE_NAME))
_TYPES_BEFORE_NUMBER = frozenset(form for word in TYPES_BEFORE_NUMBER for form in (word, word.rstrip(".")))
_MONTH = re.compile(
    r"\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec|january|february|march|april|june|july|august|september|"
    r"october|november|december)\b",
    re.IGNORECASE,
)
_ABBREVIATIONS = frozenset(("blvd", "cres", "pkwy"))
_TRAILING_UNIT = re.compile(rf"[ ](?:{'|'.join(UNITS)})\.?$", re.IGNORECASE)
_UNIT_ON_NEXT_LINE = re.compile(rf"\n[^\w\n]{{1,6}}{_UNIT}", re.IGNORECASE)
_OPENERS = frozenset(("the", "corner", "box", "unit", *TYPES_BEFORE_NAME))
_WORD = re.compile(r"[^\W\d_]+")
_WORD_AND_SPACE = re.compile(r"[^\W_]+[ ]")
_NO_STREET = re.compile(r"[ ](?:1[89]|20)\d\d$|['’]s[ ]|^[A-Z]{2,}[ ]\d{1,2}$")
"""What makes words and a number something else than a street: a year, an owner, an acronym."""
_DECIMAL_FOLLOWS = re.compile(r"\.\d")
_SENTENCE_END = re.compile(r"[.!?][ ]+(?=[A-Z]|$)")
_LAST_NUMBER = re.compile(r"\d[\w/-]*\.?$")


def find_addresses(text: str) -> list[Finding]:
    """The postal addresses in a text, in order: each from its number or street to its country or code.

    >>> text = "Please send it to 14 Crown Street, Suite 321, London, United Kingdom 75419. Thanks!"
    >>> [text[f.start:f.end] for f in find_addresses(text)]
    ['14 Crown Street, Suite 321, London, United Kingdom 75419']
    """
    # Without a number an address is only "corner of".
    if _DIGIT.search(text) is None and "orner" not in text and "ORNER" not in text:
        return []
    data = text.encode("utf-8", "replace")
    is_ascii = len(data) == len(text)
    is_lower = text.islower()
    search = (_CORE_IN_LOWER_CASE if is_lower else _CORE).search
    findings: list[Finding] = []
    position = n_bytes = n_characters = 0
    while (core := search(data, position)) is not None:
        first, last = core.span()
        if is_ascii:
            start, end = first, last
        else:
            start = n_characters + len(data[n_bytes:first].decode())
            end = start + len(data[first:last].decode())
            n_bytes, n_characters = first, start
        finding = _judge(text, start, end, is_lower)
        if finding is not None:
            findings.append(finding)
            position = finding.end if is_ascii else first + len(text[start : finding.end].encode("utf-8", "replace"))
        else:
            number = _LAST_NUMBER.search(text, start, end)
            skipped = number.start() if number and number.start() > start else end
            position = skipped if is_ascii else first + len(text[start:skipped].encode("utf-8", "replace"))
        position = max(position, first + 1)
    return findings


def find_addresses_in(texts: list[str]) -> list[list[Finding]]:
    """The postal addresses in each text, in whatever script."""
    return [_find_all(text) for text in texts]


def _find_all(text: str) -> list[Finding]:
    """The addresses that start from a street, from a British postcode, or in scripts without spaces."""
    more = [*find_postcodes(text), *(() if text.isascii() else find_eastern_addresses(text))]
    found = sorted([*find_addresses(text), *more], key=lambda each: each.start) if more else find_addresses(text)
    whole: list[Finding] = []
    for each in found:
        if whole and each.start < whole[-1].end:
            whole[-1] = whole[-1]._replace(end=max(whole[-1].end, each.end))
        else:
            whole.append(each)
    return whole


def _judge(text: str, start: int, end: int, is_lower: bool) -> Finding | None:
    """The address that has this core, or None where it is not one; what stands before its street belongs to it."""
    found = _judge_core(text, start, end, is_lower)
    if found is None or found.rule != "street":
        return found
    head = _HEAD.search(text, max(0, found.start - _HEAD_REACH), found.start)
    is_whole = head is not None and not text[head.start() - 1 : head.start()].isalnum()
    return found._replace(start=head.start()) if head is not None and is_whole else found


def _judge_core(text: str, start: int, end: int, is_lower: bool) -> Finding | None:
    if start and (text[start - 1] in "$€£#/@.:-_§" or text[start - 1].isalnum()):
        return None
    if is_lower:
        start = _start_without_plain_words(text, start, end)
    core = text[start:end]
    if _WHOLE.match(core):
        return Finding("address", start, end, 0.8, "plot or block")
    if _BOX.match(core):
        end -= core.endswith(".")
        return Finding("address", start, end_of_tail(text, end, is_lower)[0], 0.85, "box or corner")
    unit = find_unit(core)
    if unit:
        if not any(character.isdigit() for character in core[: unit.start()]):
            # What stands before a flat without a house number is the person who lives there.
            is_lone = unit.group(1).lower() in LONE_UNITS
            return Finding("address", start + unit.start(), start + unit.end(), 0.55, "flat") if is_lone else None
        core = core[: unit.start()]
    core = _TRAILING_UNIT.sub("", core).rstrip()
    if core.endswith(".") and not _keeps_full_stop(core):
        core = core[:-1]
    end = start + len(core)
    is_street = _has_street_type(core)
    if not is_street and (_MONTH.search(core) or not _has_proper_word(core, is_lower)):
        return None
    if _DECIMAL_FOLLOWS.match(text, end):
        return None
    tail_end, is_confirmed = end_of_tail(text, end, is_lower)
    if is_confirmed:
        return Finding("address", start, tail_end, 0.85 if is_street else 0.7, "street")
    if not is_street and _NO_STREET.search(core):
        return None
    if (is_street and not is_lower) or _is_announced(text, start) or _UNIT_ON_NEXT_LINE.match(text, end):
        return Finding("address", start, tail_end, 0.75 if is_street else 0.6, "street")
    return None


def _keeps_full_stop(core: str) -> bool:
    """Whether the full stop at the end is part of the address: after an abbreviation or a Hungarian house number."""
    words = core[:-1].lower().split(" ")
    if words[-1].isalpha():
        return len(words[-1]) < 4 or words[-1] in _ABBREVIATIONS
    return len(words) > 2 and words[-2] in _TYPES_BEFORE_NUMBER


def _has_street_type(core: str) -> bool:
    """Whether a word that only streets have stands where it belongs: before or after the name, or at its end."""
    words = [word for word in core.lower().split(" ") if word not in _BEFORE_NUMBER]
    last = words[-1]
    if not last[0].isdigit():
        return words[0][0].isdigit() and (
            last.rstrip(".") in _TYPES_AFTER_NAME
            or last in DIRECTIONS
            or any(word in _TYPES_BEFORE_NAME for word in words[1:-1])
        )
    if len(words) < 2:
        return False
    return (
        (words[-2].endswith(TYPE_ENDINGS) and not kinds_of(words[-2]) & Kind.WORD)
        or (len(words) > 2 and words[-2] in _TYPES_BEFORE_NUMBER)
        or any(word in _TYPES_BEFORE_NAME for word in words[:-2])
    )


def _start_without_plain_words(text: str, start: int, end: int) -> int:
    """Where the address starts in a text without capitals: after the everyday words of the sentence before it."""
    for word in _WORD_AND_SPACE.finditer(text, start, end):
        folded = word.group()[:-1]
        plain = Kind.WORD | Kind.RARE_WORD | Kind.FOREIGN_WORD
        if folded[0].isdigit() or not kinds_of(folded) & plain or folded in _OPENERS:
            return word.start()
    return start


def _has_proper_word(core: str, is_lower: bool) -> bool:
    """Whether a word is none of every day: in English or, where nothing has a capital letter, in other languages."""
    plain = Kind.WORD | Kind.RARE_WORD | (Kind.FOREIGN_WORD if is_lower else 0)
    return any(not kinds_of(word) & plain for word in _WORD.findall(core) if len(word) > 2)


def _is_announced(text: str, start: int) -> bool:
    """Whether a word such as "address" or "lives" stands shortly before."""
    words = _WORD.findall(_SENTENCE_END.split(text[max(0, start - 64) : start])[-1].lower())
    return not CUES.isdisjoint(words[-CUE_WORDS:])


# British postcodes with the town before them, in any case: ``london nw1 6xe``.


# The digits are looked for first: letters are everywhere.
_CODE = re.compile(r"[0-9][A-Za-z0-9]?[ ][0-9][ABD-HJLNP-UW-Zabd-hjlnp-uw-z]{2}(?![\w@/-])")
_AREA = re.compile(r"(?<![\w@/.-])[A-Za-z]{1,2}\Z")
_AREAS = word_set(
    """
    ab al b ba bb bd bh bl bn br bs bt ca cb cf ch cm co cr ct cv cw da dd de dg dh dl dn dt dy e ec eh en ex fk fy g
    gl gu gy ha hd hg hp hr hs hu hx ig im ip iv je ka kt kw ky l la ld le ll ln ls lu m me mk ml n ne ng nn np nr nw
    ol ox pa pe ph pl po pr rg rh rm s sa se sg sk sl sm sn so sp sr ss st sw sy ta td tf tn tq tr ts tw ub w wa wc wd
    wf wn wr ws wv yo ze
    """
)
_TOWN = re.compile(r"(?P<word>[^\W\d_]{3,}),?[ \n]\Z")
_LABEL = re.compile(r"(?i)\b(?:post ?code|postal code)[\"'*]{0,2}(?: is)?[ :=]{1,3}[\"'*]{0,2}\Z")
_STREET = re.compile(
    rf"(?i)(?<!\w)[0-9]{{1,4}}[a-z]?,?[ ](?:[a-z'.-]{{2,20}}[ ]){{1,4}}(?:{'|'.join(TYPES_AFTER_NAME)})\b\.?,?[ \n]"
    r"{0,2}(?:[a-z]{3,20},?[ \n])?\Z"
)
_REACH = 110


def find_postcodes(text: str) -> Iterator[Finding]:
    """The postcodes that a town or a label announces, with the town and the street before them.

    >>> text = "I live at 221b baker street, london nw1 6xe. Postcode: sw1a 1aa"
    >>> [text[found.start : found.end] for found in find_postcodes(text)]
    ['221b baker street, london nw1 6xe', 'sw1a 1aa']
    """
    for code in _CODE.finditer(text):
        area = _AREA.search(text, max(0, code.start() - 3), code.start())
        if area is None or area.group().lower() not in _AREAS:
            continue
        start = area.start()
        before = max(0, start - _REACH)
        town = _TOWN.search(text, before, start)
        if town is not None and kinds_of(town["word"]) & Kind.PLACE:
            start = town.start()
        elif _LABEL.search(text, before, start) is None:
            continue
        street = _STREET.search(text, before, start)
        yield Finding("address", street.start() if street is not None else start, code.end(), 0.8, "postcode")
