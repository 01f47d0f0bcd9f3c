"""The words that decide what is a name: what stands inside names, what only looks like one, and what it counts for."""

from __future__ import annotations

import functools
import re

from agentunit.addons.names._eastern_names import is_given_in_syllables, is_vietnamese
from agentunit.privacy.detection.gazetteer import AMBIGUOUS, PLAIN_WORDS, Kind, entries, fold, kinds_of, word_set, words

PARTICLES = word_set(
    """
    van der den de la las los del della dello di da das dos do du le von zu zur zum ten ter te bin ibn binti al
    el ben abu af av vom auf dem y
    """
)
"""Lower-case words that stand inside names."""

SUFFIXES = word_set("jr sr ii iii iv phd md")
"""Words that follow a name."""

_LABELS_IN_CAPITALS = frozenset(("IBAN", "CVV", "CVC", "SSN"))
"""Labels of numbers; Iban is also a name."""

OPENERS = word_set(
    """
    San Santa Saint St Santo Sao São Los Las El La New Mount Mt Lake Fort Port Cape Upper Lower Great Grand
    North South East West The USS USNS HMS Amazon Google Microsoft Apple Apache AWS Azure Oracle IBM Adobe Sony Samsung
    Nokia Dell HP Lenovo Nvidia Intel Toyota Honda Ford BMW Audi Volkswagen Renault Nike Adidas Puma Bose Canon Nikon
    Philips Bosch Siemens Debian Ubuntu Fedora Hotel Restaurant Café Cafe Villa Casa Chateau Château Port Project
    Operation Hurricane Storm Typhoon Tropical Model Plan Team Radio Studio Palazzo Piazza Plaza
    """
)
"""Words that open the names of places and things: what follows them is no person."""

THINGS = word_set(
    """
    inc ltd llc plc corp corporation company co gmbh ag sa group holdings bank university college school
    institute hospital clinic church club museum library hotel airport station stadium park bridge tower center
    centre mall store shop restaurant cafe theater theatre foundation association society committee council
    agency department ministry office court services solutions systems technologies technology software labs
    partners associates capital media studios records entertainment magazine times post news weekly journal
    press cup league championship award awards prize festival street st road rd avenue ave lane ln drive dr
    boulevard blvd square way place terrace highway county city village town island islands river valley beach
    bay mountain mountains hills ocean sea desert airlines airways motors foods pharmaceuticals industries
    international insurance act law theorem syndrome disease box str bypass causeway circle corner corners
    courts crescent crossing crossroad estate estates expressway extension falls flat flats fork forks freeway
    gardens gateway greens harbor harbors heights hollow inlet junction junctions knolls landing loop manor
    meadows mews motorway oval parkway parkways pass passage path pike pines plain plains plaza points ports
    ranch rapids ridge ridges row rue run shoals shore shores skyway spring springs spur squares stravenue
    summit throughway trace track trafficway trail tunnel turnpike underpass union unions viaduct views ville
    walks well
    """
)
"""A candidate that runs into one of these is the name of a thing, not of a person."""

SURNAME_ENDINGS = words(
    """
    sson dottir ssen nsen rsen lsen ksen dsen tsen nson rson lson dson tson kson ova eva ov ev eff off ovic evic
    ovich evich sky ski ska skaya skiy skij wicz vich enko chuk czyk dze shvili oglu nen mann stein meier meyer
    maier escu poulos poulou akis idis iadis quist qvist strom lund gren berger baum ez etti elli ucci ini arov
    eyev ullah uddin zadeh yan datter ssohn huber bauer hoff dijk stra sma inga aite iene aitis auskas
    oglu kaya demir soylu turk pour nejad nia zadeh abadi vand feld witz vitz vich thwaite bottom akul akorn aporn
    iporn chai sak pong wong siri suk thong wattana swamy murthy nathan araman appa amma wati
    """
)
"""Endings that surnames have in many languages, folded."""

LAST_OF_LATIN = "\u0590"
"""Letters from here on have no capitals that could tell a name."""

ENOUGH = 3.0
MOST_AROUND = 5.5
"""The most points that the words around a candidate can give."""

# Beginnings that no English word has and many African names do: Ngozi, Mbeki, Nkosi, Mwangi.
_AFRICAN = re.compile("(?:n[dgjkstwyz]|m[bdkptwz]|gb|kw|hl|oluw|chukw|onye)[aeiou][a-z]{2,}")

_LANGUAGE_SAMPLE = 500

_CONTRACTIONS = ("n't", "'m", "'d", "'ll", "'ve", "'re", "'s")


_MIXED = re.compile(r"[^\W\d_]*[a-zß-ÿ][A-ZÀ-Þ]")
_MIXED_NAME = re.compile(r"(?:Mc|Mac|De|Di|Da|Del|Della|Du|La|Le|Van|Von|Fitz|Ben|Al|El|O['’]?|St)[A-ZÀ-Þ][a-zß-ÿ]+")


def is_identifier(word: str) -> bool:
    """Whether a word is written as things are: ``TextNode``, ``NaN``, ``T-Shirt``, ``scikit-learn``.

    >>> [is_identifier(word) for word in ("LookupError", "NaN", "T-Shirt", "McDonald", "LaToya", "O'Neil")]
    [True, True, True, False, False, False]
    """
    parts = word.split("-")
    if len(parts) > 1 and (len(parts[0]) == 1 or any(_is_plain_part(part) for part in parts)):
        return True
    for part in re.split("[-'’]", word) if _MIXED.match(word) else ():
        tail = len(part) - len(part.rstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
        is_name = _MIXED_NAME.fullmatch(part) or (kinds_of(part) & (Kind.FIRST | Kind.LAST) and not tail)
        if _MIXED.match(part) and not is_name:
            return True
    return False


def _is_plain_part(part: str) -> bool:
    kind = kinds_of(part)
    return bool(kind & Kind.WORD) and not kind & (Kind.FIRST | Kind.LAST) and part.lower() not in PARTICLES


class Word:
    """What is known about one word, worked out once.

    ``as_first`` are its points as the first word of a name, ``inside`` those further inside (None where it ends the
    name), ``alone`` those of the word by itself.
    """

    __slots__ = (
        "alone",
        "as_first",
        "can_start",
        "can_start_eastern",
        "inside",
        "is_first_only",
        "is_frequent_last",
        "is_initial",
        "is_place",
        "is_plain",
        "is_surely_name",
        "is_thing",
        "is_word_or_country",
    )

    def __init__(self, word: str, in_foreign_text: bool = False) -> None:
        folded = fold(word)
        kind = kinds_of(word)
        if folded in PLAIN_WORDS or word in _LABELS_IN_CAPITALS or folded.endswith(_CONTRACTIONS):
            kind |= Kind.WORD
        elif in_foreign_text and folded in _SMALL_WORDS:
            # Alone it is a word; before a surname it may be a name: "Ela Kaya", "Dia Mirza".
            kind |= Kind.RARE_WORD if kind & Kind.FIRST and not kind & Kind.FOREIGN_WORD else Kind.WORD
        elif kind & Kind.FREQUENT_FIRST and folded not in AMBIGUOUS:
            kind &= ~(Kind.WORD | Kind.RARE_WORD)
        elif in_foreign_text and kind & Kind.FOREIGN_WORD:
            # The builder leaves names out unless the word is one of the most frequent, as "Sie" is.
            kind |= Kind.WORD if kind & (Kind.FIRST | Kind.LAST) else Kind.RARE_WORD
        in_syllables = is_given_in_syllables(word)
        self.is_initial = len(word) == 1
        self.is_thing = folded in THINGS or (is_identifier(word) and not in_syllables)
        self.is_first_only = bool(kind & Kind.FIRST) and not kind & Kind.PLACE
        self.is_frequent_last = bool(kind & Kind.FREQUENT_LAST)
        self.is_place = bool(kind & Kind.PLACE) and not kind & Kind.FREQUENT_FIRST
        self.is_plain = bool(kind & (Kind.WORD | Kind.RARE_WORD))
        self.is_surely_name = not self.is_plain and bool(kind & (Kind.FIRST | Kind.LAST) or _has_surname_ending(folded))
        is_name = kind & (Kind.FIRST | Kind.LAST)
        self.is_word_or_country = bool(kind & Kind.COUNTRY or (kind & Kind.FOREIGN_WORD and not is_name))
        self.as_first = 0.0 if self.is_initial else _points_as_first(kind)
        if not kind and not in_foreign_text and not word.isascii():
            self.as_first += 0.5  # letters that English has not, in an English text
        self.inside = None if self.is_thing else _points_inside(kind, folded, word)
        self.alone = _points_alone(kind, folded)
        if kind & Kind.FOREIGN_WORD and not kind & Kind.FREQUENT_FIRST:
            self.alone = min(self.alone, 1.5)  # "Uso", "Esta", "Wahl": a short text may be in any language
        self.can_start = not self.is_thing and _can_start(kind, folded, word, self.as_first)
        is_foreign_form = in_syllables or is_vietnamese(word) or _AFRICAN.fullmatch(folded)
        if is_foreign_form and not self.is_plain and not kind & Kind.PLACE:
            self.as_first, self.inside = max(self.as_first, 2.0), max(self.inside or 0.0, 2.0)
            self.alone = max(self.alone, 2.0)
        elif kind & Kind.EASTERN_LAST and not self.is_plain:
            self.as_first = max(self.as_first, 2.0)
        self.can_start_eastern = bool(kind & Kind.EASTERN_LAST) or in_syllables


def _can_start(kind: int, folded: str, word: str, as_first: float) -> bool:
    """Whether it is worth looking at a word as the first of a name: frequent plain words and short acronyms are not."""
    if len(word) == 1:
        return word not in "IA"
    if folded in PARTICLES or folded in SUFFIXES or (word.isupper() and len(word) < 4):
        return False
    if folded in PLAIN_WORDS or folded.endswith(_CONTRACTIONS):
        return folded in AMBIGUOUS
    if kind & Kind.WORD:
        return folded in AMBIGUOUS or bool(kind & Kind.FREQUENT_LAST)
    if kind & Kind.PLACE and kind & Kind.COUNTRY:
        return bool(kind & Kind.FIRST)
    return as_first >= 0 or bool(kind & Kind.LAST)


def _points_as_first(kind: int) -> float:
    if not kind & Kind.FIRST:
        return -1.0 if kind & (Kind.WORD | Kind.RARE_WORD | Kind.PLACE) else 1.0
    widespread = bool(kind & Kind.WIDESPREAD)
    if kind & Kind.WORD:
        return 1.0 if widespread else 0.0
    if kind & Kind.RARE_WORD:
        return 2.0 if widespread else 0.5
    if kind & Kind.PLACE:
        return 2.5 if kind & Kind.FREQUENT_FIRST else 2.0 if widespread else 1.0
    return 3.0 if widespread else 2.5


def _points_inside(kind: int, folded: str, word: str) -> float | None:
    is_plain = kind & (Kind.WORD | Kind.RARE_WORD)
    if kind & Kind.FREQUENT_LAST:
        return 2.0
    if kind & Kind.LAST:
        return 1.0 if is_plain else 2.0
    if is_plain:
        return None
    if _has_surname_ending(folded):
        return 2.0
    if kind & Kind.FIRST:
        return 1.5
    if kind & Kind.PLACE:
        return 0.0
    return 1.0 if word.isascii() else 1.5


def _has_surname_ending(folded: str) -> bool:
    return len(folded) > 4 and folded.endswith(SURNAME_ENDINGS)


def _points_alone(kind: int, folded: str) -> float:
    """A first name can stand alone; a surname or an unknown word needs a title or the like."""
    if kind & (Kind.WORD | Kind.RARE_WORD):
        if kind & Kind.WIDESPREAD:
            return 1.0
        if kind & Kind.FREQUENT_LAST and not kind & Kind.WORD:
            return 0.5
        return 0.0 if kind & (Kind.FIRST | Kind.LAST) else -1.0
    if kind & Kind.PLACE:
        if kind & Kind.COUNTRY:
            return -1.0
        return (
            2.5 if kind & Kind.FREQUENT_FIRST else 1.5 if kind & Kind.WIDESPREAD else 0.5 if kind & Kind.LAST else 0.0
        )
    if kind & Kind.FREQUENT_LAST and not kind & Kind.FREQUENT_FIRST:
        return 1.0
    if kind & Kind.FIRST:
        return 3.0 if kind & (Kind.WIDESPREAD | Kind.FREQUENT_FIRST) else 2.5
    if kind & Kind.LAST or _has_surname_ending(folded):
        return 1.0
    return 0.5


def _has_foreign_form(word: str, folded: str) -> bool:
    return bool(_AFRICAN.fullmatch(folded)) or is_given_in_syllables(word)


_SPECIAL = PLAIN_WORDS | THINGS | PARTICLES | SUFFIXES
_UNKNOWN = functools.cache(Word)


def about(word: str, in_foreign_text: bool = False) -> Word:
    """What is known about a word; words about which nothing is known share their answer.

    >>> about("Qwxyzt") is about("Zyxwqt"), about("Mary").as_first > about("Qwxyzt").as_first
    (True, True)
    """
    folded = word.lower()
    is_unknown = len(word) > 3 and folded.isascii() and folded.isalpha() and folded not in entries()
    if is_unknown and folded not in _SPECIAL and not _MIXED.match(word) and not _has_foreign_form(word, folded):
        return _UNKNOWN("Qwxyzsson" if _has_surname_ending(folded) else "Qwxyzt")
    return Word(word, in_foreign_text)


_ENGLISH = word_set("the and of to is that it for you with this be are was have not your will our we they what there")
_OTHERS = word_set(
    """
    der das und ist nicht sie wir für mit auf von zu den dem ein eine einen im bitte ich haben sind wird werden ihre
    ihr ihren uns bei nach wenn auch oder zum zur vom unsere le la les des et est une pour dans vous nous que qui sur
    avec votre notre ce cette pas plus sont été el los las una por para con su es del al se ha más muy como pero sus
    os um uma não com seu sua da do em ao na ou são foi pela pelo sobre il lo gli di che una sono della nel questo suo
    het een van niet voor uw wij zijn deze naar ook heute noch bis kann aus über sich als wurde mehr nur sehr durch
    sowie
    können müssen gegen ohne seit wegen zwischen unser unserer diese dieser dieses jede jeder keine kein seine schon
    wieder gibt später bereits hier dort beim aux ces mais ont leur très fait être sans entre depuis vos nos está este
    esta estos hasta también puede desde cuando todo nuestro nuestra também já até pode você isso nosso nossa mais dei
    delle alla nella più anche stato sono questa wordt worden kunt hebben door maar
    """
)


# Small words that open sentences of these languages and that somebody somewhere has for a name.
_SMALL_WORDS = frozenset(map(fold, _OTHERS)) | word_set(
    "en ela ele dia alem segun lo se si sem nem ese esa eso han hay"
)


def is_foreign(text: str) -> bool:
    """Whether a text is in one of the languages whose plain words are known beside those of English.

    >>> is_foreign("Bitte legen Sie dem Paket den Lieferschein bei."), is_foreign("Please sign the form.")
    (True, False)
    """
    words = text[:_LANGUAGE_SAMPLE].lower().split()
    n_foreign = sum(map(_OTHERS.__contains__, words))
    if n_foreign == 1 and len(words) < 9:
        return _ENGLISH.isdisjoint(words)
    return n_foreign > 1 and n_foreign > sum(map(_ENGLISH.__contains__, words))
