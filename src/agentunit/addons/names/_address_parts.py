"""The words that addresses are made of in several languages, and what follows the street: flat, city, state, code."""

from __future__ import annotations

import re

from agentunit.privacy.detection.gazetteer import Kind, entries, fold, kinds_of, word_set, words

TYPES_AFTER_NAME = words(
    """
    street st str road rd avenue ave av lane ln drive dr boulevard blvd court ct square sq way place pl terrace
    ter tce highway hwy close crescent cres parkway pkwy circle cir trail trl alley row walk grove gardens mews
    quay esplanade parade plaza hill ridge path pike loop bypass causeway gateway
    """
)
"""Follow the name of a street that starts with its house number: ``12 High Street``."""

TYPES_BEFORE_NAME = words(
    """
    rue avenue avda avenida boulevard boulevarden bulevar chemin allée allee impasse quai route via viale vicolo
    piazza corso strada largo calle carrer carretera paseo plaza camino rua travessa praça estrada alameda
    rodovia ulica aleja bulevardul calea jalan ulitsa prospekt náměstí třída trg cesta obala cité rruga οδός
    λεωφόρος улица проспект
    """
)
"""Precede the name of a street: ``rue de Pologne 36``."""

ABBREVIATED_TYPES_BEFORE_NAME = words("ul. al. os. av. avda. bd. jl. nám. str. c/ pl. pza. bulv. ул. пр.")
"""The same, abbreviated: ``ul. Jesionowa 127``."""

TYPE_ENDINGS = words(
    """
    straße strasse str. gasse weg allee platz ring damm ufer chaussee steig graben brücke vej vænget gade allé
    stræde torv plads gata gaten gatan vägen vagen veien vegen stien bakken stigen gränd backen torget plassen
    katu tie kuja polku raitti straat laan plein kade dijk gracht singel steeg straeti stræti vegur braut götu
    krogen parken toften lunden svinget
    """
)
"""End the name of a street that is one word: ``Sludevej 13``."""

TYPES_BEFORE_NUMBER = words(
    """
    utca út útja u. tér tere krt. körút köz sor rkp. rakpart sétány fasor kapu ulice põik tänav tn mnt maantee
    puiestee pst iela gatvė sokak sok. caddesi cad. bulvarı str. straat weg gata
    """
)
"""Stand between the name of a street and the house number: ``Rákóczi út 66.`` A full stop at the end may be missing."""

DIRECTIONS = words("northeast northwest southeast southwest north south east west ne nw se sw n s e w")
"""May follow a street: ``740 Water Street Southwest``."""

UNITS = words("apt apartment suite ste unit flat apto depto appartement wohnung lgh lejl")
"""Stand before the number of a flat or an office."""

LONE_UNITS = word_set("apartment apt ste suite")
"""Units that mean an address even where no street stands beside them."""

PARTICLES = words(
    """
    de del della delle dei degli di da do dos das du des la le les las los el van der den ten von zu am an im
    auf of the and i z na nad pod u
    """
)
"""Lower-case words inside the names of streets and cities."""

CUES = word_set(
    """
    address arrive billing cab corner deliver delivered delivery destination enter headquarters home house live
    lived lives living located mail mailed move moved office offices pickup reside resided residence resides
    residing send sent ship shipped shipping side stay staying stop taxi
    """
)
"""Words that announce an address."""


LONGEST_TAIL = 8
"""How many parts follow a street at most."""

_GAP = re.compile(r"[ ]{0,2}(,?)[ ]{0,2}(\r?\n)?[ ]{0,4}(,?)[ ]?")
_UNIT = re.compile(rf"\b({'|'.join(UNITS)})\.?[ ]#?\d{{1,5}}[a-z]?\b", re.IGNORECASE)
_FLOOR = re.compile(
    r"#[ ]?\d{1,5}(?:-\d{1,4})?[a-z]?\b|\d{1,2}[ºª°](?:[ ]?[A-Z]\b|[ ](?:izq|dcha|dto|esq|planta|piso)\b)?"
    r"|\d{1,2}(?:st|nd|rd|th)[ ]floor\b|floor[ ]\d{1,3}\b",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"(?:\d{4,6}(?:-\d{3,4})?|\d{3}[ ]\d{2}|[A-Z]{1,2}\d[A-Z\d]?[ ]\d[A-Z]{2}|[A-Z]\d[A-Z][ ]\d[A-Z]\d)(?![\w@:/-])"
)
_STATE = re.compile(r"(?:[A-Z]{2,3})(?=[ ]\d|[ ][A-Z]\d[A-Z][ ]\d|[ ]?\n|[ ]?$|[.?!,;)])")
_STATE_ON_ITS_OWN_LINE = re.compile(r"[A-Za-z0-9]{1,4}(?=[ ]?(?:\n|$))")
_CITY_END = re.compile(
    rf"[ ]?(?:\n|,|$)|[ ](?:\d{{4,6}}|[A-Z]{{1,2}}\d[A-Z\d]?[ ]\d[A-Z]{{2}}\b|(?:{'|'.join(UNITS)})\b)", re.IGNORECASE
)
"""What follows a city that nothing separates from its street."""
_PARTICLES = "|".join(PARTICLES)
_PROPER = r"(?!\d)\w[\w'’./-]*|\([^()\n]{1,30}\)"
_CAPITAL_WORDS = re.compile(
    rf"(?=[^\W\d_])(?:{_PROPER})(?:[ ](?:(?:{_PARTICLES})[ ])?(?:(?=[^\W\d_]|\()(?:{_PROPER}))){{0,5}}(?![\w@])"
)
_HALF_CODE = re.compile(r"[A-Z]{1,2}\d[A-Z\d]?")
"""The first half of a British code, which is no part of the city before it."""
_REMARK = re.compile(r"[ ]\([^()\n]{1,20}\)")
# Words that open the names of countries, and of cities: "New Zealand" is one, "New York" is not.
_OPENERS_OF_COUNTRIES = frozenset(
    words("new south saint san sao são el de den det man isle island sri st sierra kap ny")
)
_COUNTRY_ABBREVIATIONS = frozenset(("usa", "uk", "us", "u.s.a", "u.k", "uae"))


def find_unit(text: str) -> re.Match[str] | None:
    """The first flat or suite with its number."""
    return _UNIT.search(text)


def end_of_tail(text: str, end: int, is_lower: bool) -> tuple[int, bool]:
    """Where the address ends whose street ends here, and whether a flat, state, country or code confirms it.

    A city alone confirms nothing, and is left out where nothing follows it: it could be any word.
    """
    accepted = position = end
    is_confirmed = is_after_unit = False
    n_pending = 0
    for _ in range(LONGEST_TAIL):
        gap = _GAP.match(text, position)
        if gap is None or (gap.end() == position and position != end):
            break
        here = gap.end()
        has_break = gap.group(2) is not None
        if unit := _UNIT.match(text, here) or _FLOOR.match(text, here):
            accepted = position = unit.end()
            is_confirmed = is_after_unit = True
            continue
        if code := _CODE.match(text, here):
            return _end_of_city_after_code(text, code.end(), is_lower, n_pending), True
        state = _STATE_ON_ITS_OWN_LINE if has_break and gap.group(3) else _STATE
        if (n_pending or is_after_unit) and (found := state.match(text, here)):
            accepted = position = found.end()
            is_confirmed = True
            continue
        if country_end := _end_of_country(text, here):
            gap = _GAP.match(text, country_end)
            code = _CODE.match(text, gap.end()) if gap else None
            return (code.end() if code else country_end), True
        if n_pending >= 3 or not (words_end := _end_of_city(text, here, is_lower)):
            break
        if not (has_break or is_after_unit or gap.group(1) or _CITY_END.match(text, words_end)):
            break
        position = words_end
        n_pending += 1
        if is_after_unit and not has_break:
            accepted = words_end
    return accepted, is_confirmed


def _end_of_city_after_code(text: str, end: int, is_lower: bool, n_pending: int) -> int:
    """Where the city ends that follows its code (``10115 Berlin``), if no city stood before the code."""
    if n_pending or is_lower or text[end : end + 1] != " ":
        return end
    city_end = _end_of_city(text, end + 1, is_lower)
    if not city_end:
        return end
    gap = _GAP.match(text, city_end)
    return (gap and _end_of_country(text, gap.end())) or city_end


def _end_of_city(text: str, start: int, is_lower: bool) -> int:
    """Where words end that can be a city, 0 where none stand here. A sentence that starts here is no city."""
    words = _CAPITAL_WORDS.match(text, start)
    if words is None:
        return 0
    end = start
    for word in words.group().split(" "):
        is_proper = word[0].isupper() or word[0] == "(" or is_lower or word in PARTICLES
        if not is_proper or (end > start and _HALF_CODE.fullmatch(word)):
            break
        if end == start and not is_lower and kinds_of(word) & Kind.WORD and not kinds_of(word) & Kind.PLACE:
            following = text[start + len(word) : start + len(word) + 2]
            if following[:1] == " " and following[1:].islower():
                return 0
        end += len(word) + (1 if end > start else 0)
    while end > start and text[end - 1] in "./'’-":
        end -= 1
    if text[start:end] in PARTICLES:
        return 0
    return 0 if text[end : end + 1] in (":", "@") else end if end > start else 0


def _end_of_country(text: str, start: int) -> int:
    """Where a country ends that stands here, 0 where none does."""
    words = _CAPITAL_WORDS.match(text, start)
    if words is None:
        return 0
    parts = words.group().split(" ")[:4]
    known = entries()
    for n_parts in range(len(parts), 0, -1):
        name = " ".join(parts[:n_parts])
        folded = fold(name.rstrip("."))
        is_country = known.get(folded, 0) & Kind.COUNTRY and folded not in _OPENERS_OF_COUNTRIES
        if is_country or folded in _COUNTRY_ABBREVIATIONS:
            end = start + len(name.rstrip("."))
            remark = _REMARK.match(text, end)
            return remark.end() if remark else end
    return 0
