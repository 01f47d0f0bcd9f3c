"""Draws labeled sentences from the pack: templates filled with names of every origin, plain sentences, decoys, code."""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LABELED = frozenset(("person", "place", "address"))
# The origin of names, the script of places and the locales of addresses that a language without Latin letters has.
SCRIPTS = {
    "zh": ("chinese", "han", ("zh_CN", "zh_TW")), "ja": ("japanese", "han", ("ja_JP",)), "ko": ("korean", "hangul", ("ko_KR",)),
    "ar": ("arabic", "arabic", ()), "fa": ("persian", "arabic", ("fa_IR",)), "he": ("hebrew", "hebrew", ("he_IL",)),
    "hi": ("hindi", "devanagari", ("hi_IN",)), "th": ("thai", "thai", ("th_TH",)), "ru": ("russian", "cyrillic", ("ru_RU",)),
    "uk": ("ukrainian", "cyrillic", ("uk_UA",)), "el": ("greek", "greek", ("el_GR",)), "bn": ("bengali", "bengali", ()),
    "ta": ("tamil", "tamil", ()), "mr": ("hindi", "devanagari", ("hi_IN",)), "ur": ("arabic", "arabic", ()),
}  # fmt: skip
PUT_INTO = "ar fa he hi mr ja ko zh-CN zh-HK zh-TW uk el ta vi tr id de".split()
FAMILY_FIRST = frozenset(("pinyin", "vietnamese", "vietnamese_plain", "korean_roman", "hungarian"))
TOGETHER = frozenset(("chinese", "japanese", "korean"))
NATIVE = frozenset(
    (*(each[0] for each in SCRIPTS.values()), "bulgarian", "georgian", "armenian")
)  # fmt: skip
STREETS = "Oak Maple Cedar Pine Elm Main High Church Park Washington Lincoln Jefferson Lake Hill River Spring Sunset Mill Station Victoria King Queen Market Bridge Garden Forest Meadow Highland Broadway First Second Third Fourth Fifth Ocean Valley Walnut Chestnut Willow Birch Center Union Franklin Jackson Madison School North South West East Prospect Cherry Dogwood Hickory".split()
SUFFIXES = "Street St St. Avenue Ave Ave. Road Rd Rd. Lane Ln Drive Dr Dr. Court Ct Boulevard Blvd Way Place Pl Terrace Circle Square Parkway Highway Close Crescent Trail".split()
STATES = "AL AK AZ AR CA CO CT DE FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM NY NC ND OH OK OR PA RI SC SD TN TX UT VT VA WA WV WI WY".split()
ORGANIZATIONS = (
    "{f} Inc.", "{f} & Sons", "{f} GmbH", "{f} LLC", "the {f} Foundation", "{g}'s Pizza", "{f} Street Station", "Bank of {p}",
    "University of {p}", "{p} Airport", "{f} and {f} Law Firm", "St. {g}'s Hospital", "{p} General Hospital", "{f} Prize",
    "{f}'s law", "{p} Times", "Hotel {p}", "{f} Corporation", "{f} University", "{f} Algorithm",
)  # fmt: skip
_SLOT = re.compile(r"\{([a-z_]+)\}")


def read_kinds(path: Path) -> dict[str, list[str]]:
    """``kind | values`` lines of a file."""
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            kind, _, values = line.partition("|")
            found[kind.strip()] = [value.strip() for value in values.split(",")]
    return found


def read_templates() -> dict[str, list[str]]:
    """Our own templates by language."""
    found: dict[str, list[str]] = {}
    for line in (HERE / "templates.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            language, _, text = line.partition("|")
            found.setdefault(language.strip(), []).append(text.strip().replace("\\n", "\n"))
    return found


class Generator:
    """An endless source of ``(text, spans)``; ``spans`` are ``(start, end, kind)``.

    ``put_in`` is the weight of names put into plain sentences; all other sources together have 100.
    """

    def __init__(self, pack: dict[str, Any], seed: int, put_in: float = 18.0) -> None:
        self.random = random.Random(seed)
        self.people: dict[str, dict[str, list[str]]] = pack["people"]
        self.latin = sorted(origin for origin in self.people if origin not in NATIVE)
        self.places: dict[str, list[str]] = pack["places"]
        self.addresses: dict[str, list[str]] = pack["addresses"]
        self.latin_addresses = sorted(
            locale
            for locale in self.addresses
            if not any(locale in each[2] for each in SCRIPTS.values()) and locale != "tr_TR"
        )
        self.plain: dict[str, list[str]] = {key: value for key, value in pack["plain"].items() if value}
        self.found = {key: value for key, value in pack["templates"].items() if value}
        self.code: list[str] = pack["code"]
        self.words = read_kinds(HERE / "words.txt")
        self.own = read_templates()
        lines = (HERE / "decoys.txt").read_text(encoding="utf-8").splitlines()
        self.decoys = [line.replace("\\n", "\n") for line in lines if line and not line.startswith("#")]
        self.languages = sorted(self.plain)
        self._sources: list[tuple[float, Callable[[], tuple[str, list[tuple[int, int, str]]]]]] = [
            (26, lambda: self.fill(self.pick(self.own["en"]), "en")),
            (22, self._own_of_some_language),
            (14, self._found_template),
            (20, self._plain),
            (put_in, self._put_in),
            (5, lambda: (self.pick(self.code), [])),
            (13, lambda: self.fill(self.pick(self.decoys), "en", labeled=False)),
        ]

    def pick(self, values: Any) -> Any:
        """One of the values."""
        return values[int(self.random.random() * len(values))]

    def example(self) -> tuple[str, list[tuple[int, int, str]]]:
        """One to three sentences, written as people write: sometimes all small, all large or without accents."""
        text, spans = self._sentence()
        while self.random.random() < 0.28:
            more, further = self._sentence()
            text += self.pick((" ", " ", "\n"))
            spans = spans + [(start + len(text), end + len(text), kind) for start, end, kind in further]
            text += more
        return self._rewritten(text), spans

    def _sentence(self) -> tuple[str, list[tuple[int, int, str]]]:
        at = self.random.random() * sum(weight for weight, _ in self._sources)
        for weight, source in self._sources:
            at -= weight
            if at < 0:
                return source()
        return self._plain()

    def _rewritten(self, text: str) -> str:
        chance = self.random.random()
        if chance < 0.08:
            changed = text.lower()
        elif chance < 0.10:
            changed = text.upper()
        elif chance < 0.22:
            changed = "".join(_plain_letter(letter) for letter in text)
        else:
            return text
        return changed if len(changed) == len(text) else text

    def _own_of_some_language(self) -> tuple[str, list[tuple[int, int, str]]]:
        language = self.pick(sorted(self.own))
        return self.fill(self.pick(self.own[language]), language)

    def _found_template(self) -> tuple[str, list[tuple[int, int, str]]]:
        language = "en" if self.random.random() < 0.6 else self.pick(sorted(self.found))
        return self.fill(self.pick(self.found[language]), language)

    def _plain(self) -> tuple[str, list[tuple[int, int, str]]]:
        chance = self.random.random()
        language = "en" if chance < 0.2 else "de" if chance < 0.32 else self.pick(self.languages)
        text = self.pick(self.plain[language])
        return (text.title() if self.random.random() < 0.05 else text), []

    def _put_in(self) -> tuple[str, list[tuple[int, int, str]]]:
        """A plain sentence with a name, place or address put in somewhere, so that not only what stands around tells."""
        language = self.pick(PUT_INTO) if self.random.random() < 0.75 else self.pick(self.languages)
        text = self.pick(self.plain.get(language) or self.plain["en"])
        own = language.partition("-")[0]
        slot = "{place}" if (chance := self.random.random()) < 0.15 else "{given}" if chance < 0.3 else "{person}"
        if own in ("zh", "ja", "th"):
            places = [at for at, letter in enumerate(text) if letter in "，、。 はがをにとのも"] or [0]
            at = self.pick(places)
            after = {
                "ja": ("は", "が", "さんは", "様の", "氏と", "に"),
                "zh": ("", "的", "和", "说", "先生"),
                "th": ("", " "),
            }[own]
            joined = text[: at + 1] + slot + self.pick(after) + text[at + 1 :]
        else:
            words = text.split(" ")
            at = int(self.random.random() * (len(words) + 1))
            particle = self.pick(("은", "는", "이", "가", "의", "에게", " 씨는", "")) if own == "ko" else ""
            kept = words[at + 1 :] if self.random.random() < 0.5 else words[at:]
            joined = " ".join([*words[:at], slot + particle, *kept])
        return self.fill(joined, {"zh": "zh"}.get(own, own)) if "{" not in text else (text, [])

    def fill(self, template: str, language: str, labeled: bool = True) -> tuple[str, list[tuple[int, int, str]]]:
        """A template with its slots filled, and where the labeled ones stand."""
        origin = self._origin(language)
        pieces: list[str] = []
        spans: list[tuple[int, int, str]] = []
        length = at = 0
        for match in _SLOT.finditer(template):
            pieces.append(template[at : match.start()])
            length += len(pieces[-1])
            value, kind = self._value(match.group(1), language, origin)
            if value is None:
                value = match.group()
            if kind in LABELED and labeled:
                joins = (
                    bool(spans)
                    and kind == spans[-1][2] == "person"
                    and pieces[-1] == " "
                    and spans[-1][1] == length - 1
                )
                start = spans.pop()[0] if joins else length
                spans.append((start, length + len(value), kind))
            pieces.append(value)
            length += len(value)
            at = match.end()
        return "".join((*pieces, template[at:])), spans

    def _origin(self, language: str) -> str:
        native = SCRIPTS.get(language)
        if native is not None and self.random.random() < 0.88:
            return native[0]
        if native is None and language != "en" and self.random.random() < 0.01:
            return str(self.pick(sorted(NATIVE & set(self.people))))
        return str(self.pick(self.latin))

    def _value(self, slot: str, language: str, origin: str) -> tuple[str | None, str]:
        drawn = self.random
        if slot in ("person", "given", "family"):
            other = self._origin(language) if drawn.random() < 0.3 else origin
            return self.person(other, slot), "person"
        if slot in ("place", "country"):
            return self.place(language), "place"
        if slot == "address":
            return self.address(language), "address"
        if slot == "company" and drawn.random() < 0.3:
            return self._organization(), slot
        if slot in self.words:
            return self.pick(self.words[slot]), slot
        made = _MADE.get(slot)
        return (made(drawn) if made is not None else None), slot

    def person(self, origin: str, slot: str = "person") -> str:
        """A name of an origin, written in one of the ways in which names are written."""
        kinds, drawn = self.people[origin], self.random
        given, family = self.pick(kinds["given"]), self.pick(kinds["family"])
        if slot == "given":
            return str(given)
        if slot == "family":
            return str(family)
        if origin in TOGETHER:
            return f"{family} {given}" if origin == "japanese" and drawn.random() < 0.2 else f"{family}{given}"
        chance = drawn.random()
        if origin in FAMILY_FIRST and chance < 0.55:
            return f"{family} {given}"
        if chance < 0.72:
            return f"{given} {family}"
        if chance < 0.78:
            return (
                f"{given} {self.pick('ABCDEFGHJKLMNPRSTVW')}. {family}" if given[0].isascii() else f"{given} {family}"
            )
        if chance < 0.82:
            return f"{given[0]}. {family}" if given[0].isupper() else f"{given} {family}"
        if chance < 0.86:
            return f"{family}, {given}"
        if chance < 0.92:
            return f"{given} {self.pick(kinds['given'])} {family}"
        if chance < 0.96:
            return f"{given} {family}{self.pick((' ', '-'))}{self.pick(kinds['family'])}"
        return str(self.pick((given, family)))

    def place(self, language: str) -> str:
        """A town, region or country in the script of a language."""
        native = SCRIPTS.get(language)
        if native is None or self.random.random() < 0.05:
            return str(self.pick(self.places["latin"]))
        script = "katakana" if language == "ja" and self.random.random() < 0.4 else native[1]
        return str(self.pick(self.places[script]))

    def address(self, language: str) -> str:
        """A postal address, whole or only its street, on one line or several."""
        native = SCRIPTS.get(language)
        if native is not None and native[2]:
            made = self.pick(self.addresses[self.pick(native[2])])
        elif language == "en" and self.random.random() < 0.5:
            made = self._english_address()
        else:
            made = self.pick(self.addresses[self.pick(self.latin_addresses)])
        if "\n" in made and self.random.random() < 0.25:
            made = made.partition("\n")[0]
        return str(made.replace("\n", self.pick((", ", ", ", ", ", "\n", " "))).strip(" ,"))

    def _english_address(self) -> str:
        drawn = self.random
        if drawn.random() < 0.06:
            street = f"{self.pick(('P.O. Box', 'PO Box'))} {drawn.randint(1, 9999)}"
        else:
            named = (
                self.pick(STREETS)
                if drawn.random() < 0.6
                else self.pick(self.people[self.pick(("us", "uk"))]["family"])
            )
            ordinal = drawn.randint(1, 130)
            if drawn.random() < 0.15:
                named = f"{ordinal}{'st' if ordinal % 10 == 1 else 'th'}"
            direction = self.pick(("", "", "", "N ", "E. ", "West "))
            street = f"{drawn.randint(1, 9999)} {direction}{named} {self.pick(SUFFIXES)}"
        if drawn.random() < 0.25:
            street += self.pick((" Apt {}", ", Apt. {}", " Suite {}", ", Unit {}", " #{}", ", Floor {}")).format(
                drawn.randint(1, 900)
            )
        if drawn.random() < 0.25:
            return street
        town = self.pick(self.places["latin"])
        ending = self.pick((
            f"{self.pick(STATES)} {drawn.randint(10000, 99999)}", self.pick(STATES), str(drawn.randint(10000, 99999)),
            f"{self.pick('ENSWBL')}{drawn.randint(1, 20)} {drawn.randint(1, 9)}{self.pick('ABDEFGH')}{self.pick('JLNPQRST')}",
            self.pick(self.places["latin"]), "",
        ))  # fmt: skip
        return f"{street}\n{town}" + (f"{self.pick((', ', ' ', chr(10)))}{ending}" if ending else "")

    def _organization(self) -> str:
        origin = self.pick(self.latin)
        kinds = self.people[origin]
        return str(
            self.pick(ORGANIZATIONS).format(
                f=self.pick(kinds["family"]), g=self.pick(kinds["given"]), p=self.pick(self.places["latin"])
            )
        )


def _plain_letter(letter: str) -> str:
    """A Latin letter without its accent; others as they are."""
    if ord(letter) < 0xC0 or ord(letter) > 0x1EFF or 0x250 <= ord(letter) < 0x1E00:
        return letter
    plain = unicodedata.normalize("NFD", letter)[0]
    return {"đ": "d", "Đ": "D", "ł": "l", "Ł": "L", "ı": "i", "ø": "o", "Ø": "O"}.get(plain, plain)


_MADE: dict[str, Callable[[random.Random], str]] = {
    "number": lambda drawn: str(drawn.randint(1, 10 ** drawn.randint(1, 5))),
    "id": lambda drawn: drawn.choice(("#W{}", "{}", "ORD-{}", "A{}", "INV-{}-X")).format(drawn.randint(1000, 9999999)),
    "version": lambda drawn: ".".join(str(drawn.randint(0, 30)) for _ in range(drawn.randint(2, 4))),
    "amount": lambda drawn: drawn.choice(("${}", "{} €", "USD {}", "{} dollars")).format(drawn.randint(5, 9000)),
    "time": lambda drawn: f"{drawn.randint(0, 23)}:{drawn.randint(0, 59):02}",
    "date": lambda drawn: f"{drawn.randint(1950, 2026)}-{drawn.randint(1, 12):02}-{drawn.randint(1, 28):02}",
    "phone": lambda drawn: (
        f"+{drawn.randint(1, 99)} {drawn.randint(100, 999)} {drawn.randint(100, 999)} {drawn.randint(1000, 9999)}"
    ),
    "email": lambda drawn: (
        f"{drawn.choice('abcdefghjkmnprst')}{drawn.randint(1, 999)}@example.{drawn.choice(('com', 'org', 'de'))}"
    ),
}
