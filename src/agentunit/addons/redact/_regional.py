"""Numbers that mean something in one country: found where the country is known, by an option or by the trace."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from agentunit.backends.quality import require_ready
from agentunit.installation import install_command
from agentunit.privacy.detection.engine import without_overlaps
from agentunit.privacy.detection.gazetteer import fold
from agentunit.privacy.detection.readable import find_as_read
from agentunit.privacy.findings import CATALOG_CONFIDENCE, Detector, Finding
from agentunit.privacy.personal_fields import Leaf

# Identity and telephone numbers of countries, checked by python-stdnum and phonenumbers (extra ``identity``).

IDENTITY_NUMBERS = {
    "AD": "ad.nrt", "AR": "ar.dni ar.cuit", "AT": "at.vnr at.tin", "AU": "au.tfn", "BE": "be.nn be.bis",
    "BG": "bg.egn bg.pnf", "BR": "br.cpf", "CA": "ca.sin ca.bc_phn", "CH": "ch.ssn", "CL": "cl.rut", "CN": "cn.ric",
    "CO": "co.nit", "CR": "cr.cpf", "CU": "cu.ni", "CZ": "cz.rc", "DE": "de.idnr", "DK": "dk.cpr", "DO": "do.cedula",
    "EC": "ec.ci", "EE": "ee.ik", "EG": "eg.tn", "ES": "es.dni es.nie", "FI": "fi.hetu", "FR": "fr.nir fr.nif",
    "GB": "gb.nhs gb.utr", "GR": "gr.amka", "GT": "gt.nit", "HR": "hr.oib", "ID": "id.nik", "IE": "ie.pps",
    "IL": "il.idnr", "IN": "in_.aadhaar in_.pan in_.epic", "IS": "is_.kennitala", "IT": "it.codicefiscale",
    "JP": "jp.in_", "KE": "ke.pin", "KR": "kr.rrn", "LT": "lt.asmens", "MU": "mu.nid", "MX": "mx.curp mx.rfc",
    "MY": "my.nric", "NL": "nl.bsn", "NO": "no.fodselsnummer", "NZ": "nz.ird", "PE": "pe.cui", "PK": "pk.cnic",
    "PL": "pl.pesel", "PT": "pt.cc pt.nif", "RO": "ro.cnp", "RU": "ru.inn", "SE": "se.personnummer", "SI": "si.emso",
    "SK": "sk.rc", "SV": "sv.nit", "TH": "th.pin", "TR": "tr.tckimlik", "UA": "ua.rntrc",
    "US": "us.ssn us.itin us.atin", "ZA": "za.idnr",
}  # fmt: skip
"""The modules of python-stdnum for the numbers that people of a country have."""


def identity_unready() -> str | None:
    """Why numbers of countries cannot be checked, with the command that helps; ``None`` when they can."""
    if find_spec("stdnum") is None or find_spec("phonenumbers") is None:
        return f"python-stdnum and phonenumbers are not installed; {install_command('identity')} adds them"
    return None


def is_identity_number(written: str, regions: Iterable[str]) -> bool:
    """Whether a number is one that people of these countries have, by its form, its date and its check digits."""
    return any(_is_valid(module, written) for region in regions for module in _modules(region))


def is_phone_number(written: str, regions: Iterable[str]) -> bool:
    """Whether a number can be dialed in one of these countries, by their numbering plans."""
    import phonenumbers

    for region in regions:
        try:
            number = phonenumbers.parse(written, region)
        except phonenumbers.NumberParseException:
            continue
        if phonenumbers.is_valid_number(number):
            return True
    return False


def known_regions() -> frozenset[str]:
    """The countries whose telephone numbers can be checked, by their two letters."""
    import phonenumbers

    return frozenset(phonenumbers.SUPPORTED_REGIONS)


def _is_valid(module: Any, written: str) -> bool:
    try:
        return bool(module.is_valid(written))
    except Exception:  # noqa: BLE001  # some modules raise what they did not foresee; such a number is none of theirs
        return False


@lru_cache(maxsize=256)
def _modules(region: str) -> tuple[Any, ...]:
    return tuple(import_module(f"stdnum.{name}") for name in IDENTITY_NUMBERS.get(region, "").split())


AUTO = "auto"
"""Stands for the countries that a record's own fields name."""

_IDENTITY = re.compile(r"(?<![\w@.#/-])[A-Z0-9](?:[ ./-]?[A-Z0-9]){6,20}(?![\w@-])")
_PHONE = re.compile(r"(?<![\w.,#$€£/-])[+(]{0,2}\d(?:[ ()./-]{0,2}\d){6,14}(?![\w-]|[.,]\d)")
_OTHER_NUMBER = re.compile(
    r"(?i)\b(?:order|ref(?:erence)?|ticket|invoice|case|flight|booking|confirmation|sku|tracking|serial|isbn|ean|gtin|version"
    r"|timestamp|ts|offset|size|bytes|line|build|port|pid|amount|total|price)\W{0,3}(?:no|number|nr|id)?\W{0,3}$"
)
_PHONE_WORD = re.compile(
    r"(?i)\b(?:tel|phone|mobile|cell|call|fax|handy|ring|dial|reach|contact|whatsapp|sms|text)\w*\W"
)
_COUNTRY_FIELD = re.compile(r"(?:country|region|nationality)(?:_?(?:code|name))?|locale|lang(?:uage)?(?:_?code)?", re.I)
_LOCALE = re.compile(r"(?:[a-z]{2,3}[-_])?([A-Z]{2})(?:\.\S+)?")
_COUNTRIES = {
    "argentina": "AR", "australia": "AU", "austria": "AT", "osterreich": "AT", "belgium": "BE", "brazil": "BR",
    "brasil": "BR", "bulgaria": "BG", "canada": "CA", "chile": "CL", "china": "CN", "colombia": "CO", "croatia": "HR",
    "czechia": "CZ", "czech republic": "CZ", "denmark": "DK", "danmark": "DK", "ecuador": "EC", "egypt": "EG",
    "estonia": "EE", "finland": "FI", "france": "FR", "germany": "DE", "deutschland": "DE", "greece": "GR",
    "hungary": "HU", "iceland": "IS", "india": "IN", "indonesia": "ID", "ireland": "IE", "israel": "IL",
    "italy": "IT", "italia": "IT", "japan": "JP", "kenya": "KE", "lithuania": "LT", "malaysia": "MY", "mexico": "MX",
    "netherlands": "NL", "nederland": "NL", "new zealand": "NZ", "nigeria": "NG", "norway": "NO", "norge": "NO",
    "pakistan": "PK", "peru": "PE", "philippines": "PH", "poland": "PL", "polska": "PL", "portugal": "PT",
    "romania": "RO", "russia": "RU", "singapore": "SG", "slovakia": "SK", "slovenia": "SI", "south africa": "ZA",
    "south korea": "KR", "korea": "KR", "spain": "ES", "espana": "ES", "sweden": "SE", "sverige": "SE",
    "switzerland": "CH", "schweiz": "CH", "taiwan": "TW", "thailand": "TH", "turkey": "TR", "ukraine": "UA",
    "united kingdom": "GB", "uk": "GB", "great britain": "GB", "united states": "US", "usa": "US", "vietnam": "VN",
}  # fmt: skip


class RegionalDetector:
    """What another detector finds, and the identity and telephone numbers of some countries.

    ``regions`` are countries by their two letters; ``auto`` among them adds those that a record names.
    """

    def __init__(self, detector: Detector, regions: Iterable[str]) -> None:
        require_ready(identity_unready())
        self._detector = detector
        self.name = detector.name
        wanted = [each.strip().upper() for each in regions if each.strip()]
        self.is_auto = AUTO.upper() in wanted
        self._regions = tuple(dict.fromkeys(each for each in wanted if each != AUTO.upper()))
        unknown = [each for each in self._regions if each not in known_regions()]
        if unknown:
            raise ValueError(f"region must be two letters such as DE, or auto; received {unknown[0]!r}")
        self.allows = getattr(detector, "allows", None)

    def find(self, texts: list[str]) -> list[list[Finding]]:
        """The findings of each text."""
        return self.find_in(texts, self._regions)

    def for_record(self, leaves: Iterable[Leaf]) -> RegionalDetector:
        """The same detector for a record whose fields may name more countries."""
        more = regions_of(leaves) if self.is_auto else ()
        return self if not set(more) - set(self._regions) else RegionalDetector(self._detector, (*self._regions, *more))

    def find_in(self, texts: list[str], regions: tuple[str, ...]) -> list[list[Finding]]:
        """The findings of each text, with the numbers of these countries."""
        return (
            find_as_read(lambda texts: self._find_in(texts, regions), texts) if regions else self._detector.find(texts)
        )

    def _find_in(self, texts: list[str], regions: tuple[str, ...]) -> list[list[Finding]]:
        found = self._detector.find(texts)
        return [without_overlaps([*each, *_numbers(text, regions)]) for text, each in zip(texts, found, strict=True)]


def regions_of(leaves: Iterable[Leaf]) -> tuple[str, ...]:
    """The countries that fields of a record name, by their two letters.

    >>> regions_of([Leaf("country", "Germany"), Leaf("locale", "fr-FR"), Leaf("note", "US")])
    ('DE', 'FR')
    """
    found: dict[str, None] = {}
    for field, text in leaves:
        if len(text) <= 40 and _COUNTRY_FIELD.fullmatch(field):
            code = _COUNTRIES.get(fold(text.strip()))
            locale = _LOCALE.fullmatch(text.strip())
            code = code or (locale[1] if locale and locale[1] in {*IDENTITY_NUMBERS, *_COUNTRIES.values()} else None)
            if code:
                found[code] = None
    return tuple(found)


def _numbers(text: str, regions: tuple[str, ...]) -> Iterator[Finding]:
    for found in _IDENTITY.finditer(text):
        written = found.group()
        n_digits = sum(letter.isdigit() for letter in written)
        if n_digits >= 4 and not _OTHER_NUMBER.search(text[max(0, found.start() - 24) : found.start()]):
            for start, end in _parts(found):
                if is_identity_number(text[start:end], regions):
                    yield Finding("national_id", start, end, 0.92, "national_id_of_region")
                    break
    for found in _PHONE.finditer(text):
        written = found.group()
        before = text[max(0, found.start() - 32) : found.start()]
        is_bare = written.isdigit() and not written.startswith("0")
        if (is_bare and not _PHONE_WORD.search(before)) or _OTHER_NUMBER.search(before):
            continue
        if is_phone_number(written, regions):
            yield Finding("phone", found.start(), found.end(), CATALOG_CONFIDENCE["phone"], "phone_of_region")


def _parts(found: re.Match[str]) -> Iterator[tuple[int, int]]:
    """The whole match, then the match without the groups that may be the next words or those before."""
    start, end = found.span()
    yield start, end
    edges = [start, *(start + each.end() for each in re.finditer(" ", found.group()))]
    ends = [*(start + each.start() for each in re.finditer(" ", found.group())), end]
    for last in reversed(ends[:-1]):
        if last - start >= 7:
            yield start, last
    for first in edges[1:]:
        if end - first >= 7:
            yield first, end
