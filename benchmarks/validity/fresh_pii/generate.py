"""Fill the templates with made-up values and record where each personal value stands.

A template is text with slots in double square brackets:

- ``[[person:first#2]]`` is a personal value and becomes a labeled span. The part after the colon is the
  spelling, the number after ``#`` tells apart several values of one kind in one row.
- ``[[~order]]`` is a value that is not personal, such as an order number. It gets no label.
- ``[[?hi|hello]]`` is a choice of plain words.
"""

from __future__ import annotations

import base64
import json
import random
import re
import string
import unicodedata
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROWS_PER_TEMPLATE = 5
SLOT = re.compile(r"\[\[([~?a-z].*?)\]\]")
SPAN_TYPES = {
    "person": "PERSON",
    "address": "STREET_ADDRESS",
    "phone": "PHONE_NUMBER",
    "email": "EMAIL_ADDRESS",
    "card": "CREDIT_CARD",
    "ssn": "US_SSN",
    "iban": "IBAN_CODE",
    "ip": "IP_ADDRESS",
    "dob": "DATE_OF_BIRTH",
    "passport": "PASSPORT",
    "dl": "DRIVER_LICENSE",
    "cred": "CREDENTIAL",
}
GROUPS = (
    "support_chat",
    "email",
    "agent_answer",
    "tool_result_json",
    "log_line",
    "form",
    "crm_note",
    "code_snippet",
    "prose",
)
SURNAME_FIRST = {"chinese": 0.5, "korean": 0.5, "vietnamese": 0.7, "japanese": 0.15}
ASCII_LETTERS = str.maketrans({"ø": "o", "Ø": "O", "ı": "i", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ß": "ss"})
ALPHANUMERIC = string.ascii_letters + string.digits


@dataclass(frozen=True)
class Template:
    """One text with slots, and the group and language it belongs to."""

    template_id: str
    group: str
    language: str
    text: str

    @property
    def decoy(self) -> bool:
        """Whether the template comes from the file of texts without personal data."""
        return self.template_id.startswith("decoy-")


@cache
def load_values() -> dict[str, Any]:
    """Read the names, streets, and other word lists."""
    loaded: dict[str, Any] = json.loads((HERE / "values.json").read_text(encoding="utf-8"))
    return loaded


@cache
def load_templates() -> tuple[Template, ...]:
    """Read the templates with personal data, then the decoys."""
    found = []
    for name in ("templates.txt", "decoys.txt"):
        for block in re.split(r"^@@ ", (HERE / name).read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            head, _, text = block.partition("\n")
            group, language, template_id = head.split()
            found.append(Template(template_id, group, language, text.strip("\n")))
    return tuple(found)


def rows(seed: int = 20261115) -> list[dict[str, Any]]:
    """Give the labeled rows: the same seed always gives the same rows."""
    origins = sorted(load_values()["names"])
    queue: list[str] = []
    shuffler = random.Random(seed)
    result: list[dict[str, Any]] = []
    for template in load_templates():
        seen: set[str] = set()
        attempt = 0
        while len(seen) < ROWS_PER_TEMPLATE:
            attempt += 1
            if attempt > 20 * ROWS_PER_TEMPLATE:
                raise ValueError(f"{template.template_id} has too few different fillings")
            if not queue:
                queue = shuffler.sample(origins, len(origins))
            filling = _Filling(random.Random(f"{seed}:{template.template_id}:{attempt}"), template.language, queue[-1])
            text, spans = filling.fill(template.text)
            if text in seen:
                continue
            seen.add(text)
            named = any(span["type"] == "PERSON" for span in spans)
            if named and filling.origin == queue[-1]:
                queue.pop()
            result.append(
                {
                    "id": f"fresh:{len(result) + 1}",
                    "text": text,
                    "spans": spans,
                    "template_id": template.template_id,
                    "group": template.group,
                    "origin": filling.origin if named else None,
                    "language": template.language,
                }
            )
    return result


def to_ascii(text: str) -> str:
    """Drop accents, so that a name can stand in an e-mail address."""
    plain = unicodedata.normalize("NFKD", text.translate(ASCII_LETTERS))
    return "".join(letter for letter in plain if letter.isascii())


def luhn_digit(digits: str) -> str:
    """Give the check digit that makes the number pass the Luhn test."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        doubled = int(digit) * (2 if place % 2 == 0 else 1)
        total += doubled - 9 if doubled > 9 else doubled
    return str(-total % 10)


def iban_digits(country: str, account: str) -> str:
    """Give the two check digits of an IBAN."""
    number = "".join(str(int(letter, 36)) for letter in f"{account}{country}00")
    return f"{98 - int(number) % 97:02d}"


@dataclass(frozen=True)
class _Person:
    given: str
    family: str
    full: str
    full_family: str


class _Filling:
    """The values of one row; a value asked for twice under one number is the same value."""

    def __init__(self, rng: random.Random, language: str, origin: str) -> None:
        self.rng = rng
        self.language = language
        self.values = load_values()
        local = self.values["language_origins"].get(language)
        self.origin = rng.choice(local) if local and rng.random() < 0.7 else origin
        self.country = self.values["countries"][rng.choice(self.values["language_countries"][language])]
        self.kept: dict[tuple[str, str], Any] = {}

    def fill(self, text: str) -> tuple[str, list[dict[str, Any]]]:
        """Give the filled text and its spans, in the order they stand."""
        parts: list[str] = []
        spans: list[dict[str, Any]] = []
        length = 0
        last = 0
        for match in SLOT.finditer(text):
            slot = match.group(1)
            kind = re.split(r"[:#]", slot)[0]
            value = self.value(slot)
            parts += [text[last : match.start()], value]
            length += match.start() - last
            if kind in SPAN_TYPES:
                spans.append({"start": length, "end": length + len(value), "type": SPAN_TYPES[kind]})
            length += len(value)
            last = match.end()
        return "".join([*parts, text[last:]]), spans

    def value(self, slot: str) -> str:
        if slot.startswith("?"):
            return self.rng.choice(slot[1:].split("|"))
        if slot.startswith("~"):
            return self.plain(slot[1:])
        head, _, number = slot.partition("#")
        kind, _, spelling = head.partition(":")
        made: str = getattr(self, f"make_{kind}")(spelling, number or "1")
        return made

    def keep(self, kind: str, number: str, make: Callable[[], Any]) -> Any:
        """Make a value unlike the earlier ones of its kind, or give the one made before."""
        if (kind, number) not in self.kept:
            taken = [value for (other, _), value in self.kept.items() if other == kind]
            made = make()
            while made in taken:
                made = make()
            self.kept[(kind, number)] = made
        return self.kept[(kind, number)]

    def pattern(self, text: str) -> str:
        """Fill digits for # and capital letters for @."""
        letters = {"#": string.digits, "@": string.ascii_uppercase}
        return "".join(self.rng.choice(letters[sign]) if sign in letters else sign for sign in text)

    def letters(self, alphabet: str, count: int) -> str:
        return "".join(self.rng.choice(alphabet) for _ in range(count))

    # Personal values

    def person(self, number: str) -> _Person:
        made: _Person = self.keep("person", number, self.new_person)
        return made

    def new_person(self) -> _Person:
        rng = self.rng
        names = self.values["names"][self.origin]
        earlier = [value for (kind, _), value in self.kept.items() if kind == "person"]
        given = rng.choice([name for name in names["given"] if name not in {person.given for person in earlier}])
        free = [name for name in names["family"] if name not in {person.family for person in earlier}]
        family, second = rng.sample(free, 2)
        full_family = family
        if self.origin == "hispanic" and rng.random() < 0.4:
            full_family = f"{family} {second}"
        elif self.origin == "brazilian_portuguese" and rng.random() < 0.3:
            full_family = f"{second} {family}"
        full = f"{given} {full_family}"
        if rng.random() < SURNAME_FIRST.get(self.origin, 0):
            full = f"{full_family} {given}"
        elif self.origin == "anglo_american" and rng.random() < 0.25:
            full = f"{given} {rng.choice('ABDJKLMRT')}. {full_family}"
        return _Person(given, family, full, full_family)

    def make_person(self, spelling: str, number: str) -> str:
        person = self.person(number)
        spellings = {
            "": person.full,
            "first": person.given,
            "last": person.family,
            "lower": person.full.lower(),
            "firstlower": person.given.lower(),
            "upper": person.full.upper(),
            "ascii": to_ascii(person.full).replace("'", ""),
            "initial": f"{person.given[0]}. {person.family}",
            "lastfirst": f"{person.full_family}, {person.given}",
            "lastslash": to_ascii(f"{person.full_family}/{person.given}").upper().replace("'", ""),
        }
        return spellings[spelling]

    def make_email(self, spelling: str, number: str) -> str:
        def make() -> str:
            person = self.person(number)
            given, family = (
                re.sub(r"[^a-z]", "", to_ascii(part).lower())
                for part in (re.split(r"[ -]", person.given)[0], person.family)
            )
            local = self.rng.choice(
                [
                    f"{given}.{family}",
                    f"{given[0]}{family}",
                    f"{given}_{family}",
                    f"{given}{self.rng.randint(10, 99)}",
                    f"{family}.{given}",
                    f"{given}.{family}+{self.rng.choice(['shop', 'travel', 'news'])}",
                    f"{given}-{family}{self.rng.randint(1, 9)}",
                ]
            )
            return f"{local}@{self.rng.choice(self.values['email_domains'])}"

        made: str = self.keep("email", number, make)
        return made

    def make_address(self, spelling: str, number: str) -> str:
        def make() -> tuple[str, str]:
            rng = self.rng
            first, second = rng.choice(self.country["lines"])
            parts = {
                "n": rng.randint(11, 4980),
                "s": rng.randint(2, 148),
                "u": rng.randint(1, 9),
                "unit": f"{rng.randint(1, 19)}{rng.choice('ABCD')}" if rng.random() < 0.5 else rng.randint(101, 940),
                "abc": rng.choice("abc"),
                "abcu": rng.choice("ABC"),
                "street": rng.choice(self.country["streets"]),
                "place": rng.choice(self.country["places"]),
            }
            return first.format(**parts), second.format(**parts)

        street, place = self.keep("address", number, make)
        return {"": f"{street}, {place}", "lines": f"{street}\n{place}", "street": street}[spelling]

    def make_phone(self, spelling: str, number: str) -> str:
        def make() -> str:
            form = self.country["e164"] if spelling == "e164" else self.rng.choice(self.country["phones"])
            return self.pattern(form.replace("{area}", self.rng.choice(self.country.get("areas", [""]))))

        made: str = self.keep("phone", number, make)
        return made

    def make_card(self, spelling: str, number: str) -> str:
        starts = [("4", 16), ("4", 16), ("51", 16), ("54", 16), ("2231", 16), ("34", 15), ("37", 15), ("6011", 16)]
        start, length = self.rng.choice(starts)
        digits = start + self.letters(string.digits, length - 1 - len(start))
        digits += luhn_digit(digits)
        separator = "" if spelling == "plain" else self.rng.choice([" ", " ", "-", ""])
        cuts = [0, 4, 10, 15] if length == 15 else [0, 4, 8, 12, 16]
        return separator.join(digits[a:b] for a, b in pairwise(cuts))

    def make_ssn(self, spelling: str, number: str) -> str:
        area = self.rng.choice([n for n in range(1, 773) if n != 666])
        separator = "-" if spelling == "dash" else self.rng.choice(["-", "-", "-", "-", " ", ""])
        return separator.join([f"{area:03d}", f"{self.rng.randint(1, 99):02d}", f"{self.rng.randint(1, 9999):04d}"])

    def make_iban(self, spelling: str, number: str) -> str:
        formats = self.values["iban_formats"]
        country = self.rng.choice(self.values["language_ibans"].get(self.language, sorted(formats)))
        alphabets = {"n": string.digits, "a": string.ascii_uppercase, "c": string.digits + string.ascii_uppercase}
        account = "".join(self.rng.choice(alphabets[sign]) for sign in formats[country])
        iban = country + iban_digits(country, account) + account
        if spelling == "plain" or self.rng.random() < 0.4:
            return iban
        return " ".join(iban[start : start + 4] for start in range(0, len(iban), 4))

    def make_ip(self, spelling: str, number: str) -> str:
        rng = self.rng
        if spelling == "6" or (not spelling and rng.random() < 0.25):
            groups = [f"{rng.randint(1, 65535):x}" for _ in range(8)]
            full = ":".join(["2001", "db8", *groups[2:]])
            return rng.choice([full, f"2001:db8:{groups[2]}::{groups[3]}", f"2001:db8::{groups[2]}:{groups[3]}"])
        start = rng.choice(
            ["203.0.113", "198.51.100", "192.0.2", "10.#.#", "192.168.#", "81.#.#", "172.20.#", "186.#.#"]
        )
        return re.sub("#", lambda _: str(rng.randint(1, 254)), f"{start}.#")

    def make_dob(self, spelling: str, number: str) -> str:
        rng = self.rng
        year, month, day = rng.randint(1938, 2012), rng.randint(1, 12), rng.randint(1, 28)
        name = self.values["months"][self.language][month - 1]
        iso = f"{year}-{month:02d}-{day:02d}"
        if spelling == "iso":
            return iso
        if self.language == "de":
            return rng.choice([f"{day:02d}.{month:02d}.{year}", f"{day}. {name} {year}", f"{day}.{month}.{year}"])
        if self.language != "en":
            word = f"{day} {name} {year}" if self.language == "fr" else f"{day} de {name} de {year}"
            return rng.choice([f"{day:02d}/{month:02d}/{year}", word])
        long = [
            f"{name} {day}, {year}",
            f"{day} {name} {year}",
            f"{name[:3]} {day}, {year}",
            f"{day} {name[:3]} {year}",
        ]
        if spelling == "long":
            return rng.choice(long[:2])
        short = [
            f"{month:02d}/{day:02d}/{year}",
            f"{month}/{day}/{year % 100:02d}",
            f"{day:02d}-{month:02d}-{year}",
            iso,
        ]
        return rng.choice([*long, *short])

    def make_passport(self, spelling: str, number: str) -> str:
        return self.pattern(self.rng.choice(self.values["passports"]))

    def make_dl(self, spelling: str, number: str) -> str:
        return self.pattern(self.rng.choice(self.values["licenses"]))

    def make_cred(self, spelling: str, number: str) -> str:
        rng = self.rng
        kind = spelling or rng.choice(["openai", "github", "aws", "slack", "token"])
        if kind == "password":
            first, second = rng.sample(self.values["password_words"], 2)
            return rng.choice(
                [
                    f"{first}-{second}-{rng.randint(10, 99)}",
                    f"{first}!{rng.randint(1000, 9999)}x",
                    f"{first}{second}#7q",
                ]
            )
        if kind == "jwt":
            parts = [{"alg": "HS256", "typ": "JWT"}, {"sub": str(rng.randint(1000, 9999)), "fake": True}]
            coded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
            return ".".join([*coded, self.letters(ALPHANUMERIC, 43)])
        if kind == "token":
            return rng.choice(["tok_fake_" + self.letters(ALPHANUMERIC, 24), self.letters("0123456789abcdef", 40)])
        starts = {
            "openai": ("sk-" + "proj-FAKE", 36),
            "github": ("ghp_" + "FAKE", 32),
            "slack": ("xoxb-" + "0000000000-FAKE", 20),
            "stripe": ("sk_" + "test_FAKE", 20),
        }
        if kind == "aws":
            return "AKIA" + "FAKE" + self.letters(string.ascii_uppercase + "234567", 12)
        start, count = starts[kind]
        return start + self.letters(ALPHANUMERIC, count)

    # Values that are not personal

    def plain(self, kind: str) -> str:
        rng = self.rng
        if re.fullmatch(r"n\d", kind):
            return str(rng.randint(10 ** (int(kind[1]) - 1), 10 ** int(kind[1]) - 1))
        if kind.startswith("hex"):
            return self.letters("0123456789abcdef", int(kind[3:]))
        lists = {
            "company": "companies",
            "product": "products",
            "city": "cities",
            "title": "titles",
            "software": "software",
        }
        if kind in lists:
            made: str = self.keep(kind, str(len(self.kept)), lambda: rng.choice(self.values[lists[kind]]))
            return made
        if kind in {"job", "weekday"}:
            word: str = rng.choice(self.values[f"{kind}s"][self.language])
            return word
        patterns = {
            "order": ["112-#######-#######", "A-######", "ORD-2025-#####", "#8#####"],
            "version": ["3.##.#", "1.#.##", "0.##.#", "12.#"],
            "version4": ["4.#.#.#", "1.2.#.1#", "6.0.1#.2#", "10.4.#.1##"],
            "winbuild": ["10.0.19045.####", "10.0.22631.####"],
            "sku": ["@@-####-@", "@@@##-####", "##@@###", "SN@#######"],
            "invoice": ["INV-2025-#####", "R-1####", "2025/0####"],
            "phonelike": ["###-####-###", "2025-555-####", "#######-##", "4##-55##-####"],
            "tracking": ["1Z###@@#0#########", "94001###############", "RR#########DE", "JD0146##########"],
            "flight": ["LH 4##", "UA22##", "BA 1##", "QF9##", "TP 1##"],
            "ticket": ["INC00#####", "HD-####", "CASE-2####"],
            "gate": ["A1#", "B2#", "C#"],
            "room": ["1##", "2##", "3.#1", "B4#"],
            "last4": ["####"],
            "conf": ["@#@@#@", "@@@#@@"],
            "epoch": ["17########000"],
        }
        if kind in patterns:
            return self.pattern(rng.choice(patterns[kind]))
        other: str = getattr(self, f"plain_{kind}")()
        return other

    def moment(self) -> datetime:
        return datetime(2024, 1, 3) + timedelta(seconds=self.rng.randrange(2 * 365 * 86400))

    def plain_uuid(self) -> str:
        return str(uuid.UUID(int=self.rng.getrandbits(128), version=4))

    def plain_sha(self) -> str:
        return self.letters("0123456789abcdef", 40)

    def plain_sha7(self) -> str:
        return self.letters("0123456789abcdef", 7)

    def plain_year(self) -> str:
        return str(self.rng.randint(1860, 2009))

    def plain_y2(self) -> str:
        return str(self.rng.randint(10, 24))

    def plain_cardexp(self) -> str:
        return f"{self.rng.randint(1, 12):02d}/{self.rng.randint(26, 31)}"

    def plain_seat(self) -> str:
        return f"{self.rng.randint(3, 38)}{self.rng.choice('ABCDEF')}"

    def plain_ts(self) -> str:
        return self.moment().strftime("%Y-%m-%dT%H:%M:%SZ")

    def plain_isodate(self) -> str:
        return self.moment().strftime("%Y-%m-%d")

    def plain_clf(self) -> str:
        return self.moment().strftime("%d/%b/%Y:%H:%M:%S +0000")

    def plain_syslog(self) -> str:
        return self.moment().strftime("%b %d %H:%M:%S")

    def plain_gitdate(self) -> str:
        return self.moment().strftime("%a %b %d %H:%M:%S %Y +0100")

    def plain_time(self) -> str:
        hour, minute = self.rng.randint(7, 20), self.rng.choice(["00", "15", "30", "45"])
        if self.language == "en" and self.rng.random() < 0.5:
            return f"{(hour - 1) % 12 + 1}:{minute} {'am' if hour < 12 else 'pm'}"
        return f"{hour}h{minute}" if self.language == "fr" else f"{hour}:{minute}"

    def plain_date(self) -> str:
        moment = self.moment()
        name = self.values["months"][self.language][moment.month - 1]
        forms = {
            "en": [f"{name} {moment.day}, {moment.year}", f"{name} {moment.day}", moment.strftime("%m/%d/%Y")],
            "de": [f"{moment.day}. {name} {moment.year}", moment.strftime("%d.%m.%Y")],
            "fr": [f"{moment.day} {name} {moment.year}", moment.strftime("%d/%m/%Y")],
        }
        return self.rng.choice(forms.get(self.language, [f"{moment.day} de {name}", moment.strftime("%d/%m/%Y")]))

    def plain_amount(self) -> str:
        whole, cents = self.rng.randint(9, 4999), self.rng.choice(["00", "50", "90", "95"])
        if self.language == "en":
            return f"{self.rng.choice(['$', '$', '$', '£', 'USD '])}{whole:,}.{cents}"
        amount = f"{whole:,}".replace(",", " " if self.language == "fr" else ".") + f",{cents}"
        return f"R$ {amount}" if self.language == "pt" else f"{amount} €"

    def plain_isbn(self) -> str:
        digits = self.rng.choice(["9780", "9781"]) + self.letters(string.digits, 8)
        check = -sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(digits)) % 10
        return self.rng.choice([f"{digits[:3]}-{digits[3]}-{digits[4:8]}-{digits[8:]}-{check}", f"{digits}{check}"])

    def plain_long16(self) -> str:
        digits = "7" + self.letters(string.digits, 14)
        return digits + str((int(luhn_digit(digits)) + self.rng.randint(1, 9)) % 10)
