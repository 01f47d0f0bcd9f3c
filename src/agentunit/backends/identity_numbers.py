"""Identity and telephone numbers of countries, checked by python-stdnum and phonenumbers (extra ``identity``)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from agentunit.installation import install_command

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
