"""Name lists by origin: from faker's locales, a public table of popular names, a list of Japanese names, and people.txt."""

from __future__ import annotations

import csv
import importlib
import itertools
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FRESH = HERE.parent.parent / "benchmarks" / "privacy" / "fresh" / "people.txt"
"""Names of the fresh measurement: left out of every list here."""

# Faker's locale to the origin that its names count as; one origin may have several spellings (scripts) of its own.
LOCALES = {
    "us": ("en_US",), "uk": ("en_GB", "en_IE", "en_NZ"), "german": ("de_DE", "de_AT", "de_CH"),
    "french": ("fr_FR", "fr_CA", "fr_BE", "fr_QC"), "spanish": ("es_ES", "es_MX", "es_AR", "es_CL", "es_CO"),
    "portuguese": ("pt_BR", "pt_PT"), "italian": ("it_IT",), "dutch": ("nl_NL", "nl_BE"), "polish": ("pl_PL",),
    "czech": ("cs_CZ", "sk_SK", "sl_SI", "hr_HR"), "nordic": ("sv_SE", "no_NO", "da_DK", "fi_FI", "is_IS"),
    "baltic": ("lt_LT", "lv_LV", "et_EE"), "hungarian": ("hu_HU",), "romanian": ("ro_RO",), "turkish": ("tr_TR", "az_AZ"),
    "indian": ("en_IN", "en_PK"), "kenyan": ("en_KE", "sw"), "nigerian": ("en_NG", "ig_NG", "yo_NG", "ha_NG"),
    "ghanaian": ("tw_GH",), "zulu": ("zu_ZA",), "thai_latin": ("en_TH",), "indonesian_faker": ("id_ID",),
    "russian": ("ru_RU",), "ukrainian": ("uk_UA",), "bulgarian": ("bg_BG", "mk_MK"), "greek": ("el_GR",),
    "arabic": ("ar_SA", "ar_PS", "ar_AA", "ar_DZ"), "persian": ("fa_IR",), "hebrew": ("he_IL",),
    "hindi": ("hi_IN", "mr_IN", "ne_NP"), "bengali": ("bn_BD",), "tamil": ("ta_IN",), "thai": ("th_TH",),
    "chinese": ("zh_CN", "zh_TW"), "japanese": ("ja_JP",), "korean": ("ko_KR",), "georgian": ("ka_GE",), "armenian": ("hy_AM",),
}  # fmt: skip
COUNTRIES = {
    "US": "us", "GB": "uk", "IE": "uk", "DE": "german", "AT": "german", "FR": "french", "BE": "french", "ES": "spanish",
    "MX": "spanish", "AR": "spanish", "CL": "spanish", "CO": "spanish", "PE": "spanish", "BR": "portuguese",
    "PT": "portuguese", "IT": "italian", "NL": "dutch", "PL": "polish", "CZ": "czech", "HR": "czech", "SE": "nordic",
    "NO": "nordic", "DK": "nordic", "FI": "nordic", "HU": "hungarian", "RO": "romanian", "TR": "turkish", "IN": "indian",
    "PK": "indian", "BD": "indian", "KE": "kenyan", "NG": "nigerian", "GH": "ghanaian", "ZA": "zulu", "ID": "indonesian",
    "VN": "vietnamese", "EG": "arabic_roman", "SA": "arabic_roman", "MA": "arabic_roman", "DZ": "arabic_roman",
    "IR": "persian_roman", "IL": "hebrew_roman", "JP": "japanese_roman", "KR": "korean_roman", "CN": "pinyin", "TW": "pinyin",
    "PH": "filipino", "RU": "russian_roman", "UA": "russian_roman",
}  # fmt: skip
HAN_GIVEN = "伟芳娜敏静丽强磊军洋勇艳杰娟涛明超霞平刚桂英华玉兰红梅辉建文波斌宇浩凯健俊帆鑫鹏飞雪琳佳慧颖婷倩楠晨阳思涵子轩梓萱怡宸博昊然诗语嘉懿煜祺智正豪雅芝淑惠宗翰怡君家豪志明俊傑"
HANGUL_GIVEN = "지우서현준예하은도윤수진영호성미경혜정민동재승태원주연희선상철순옥자숙기종광석훈빈찬규나라소유아린"
KANJI_FAMILY = "佐藤 鈴木 高橋 田中 伊藤 渡辺 山本 中村 小林 加藤 吉田 山田 佐々木 山口 松本 井上 木村 林 斎藤 山崎 森 池田 橋本 阿部 石川 山下 中島 石井 小川 前田 岡田 長谷川 藤田 後藤 近藤 村上 遠藤 青木 坂本 福田 太田 西村 藤井 金子 藤原 岡本 三浦 中野 原田 松田 竹田 小野 田村 中山 和田 石田 森田 上田 原 柴田 酒井 工藤 横山 宮崎 宮本 高木 安藤 谷口 大野 丸山 今井 河野 武田 藤村 村田 上野 杉山 増田 平野 大塚 千葉 久保 松井 小島 岩崎 桜井 野口 松尾 野村 木下 菊地 佐野 大西 杉本 新井 浜田 菅原 市川 水野 小松 島田 古川 高田 山内 西田 菊池 五十嵐 北村 西川"

SHORTEST_WORD = 5
"""Shorter words of a name with several (Al, Bin, Min) are part of many names and are not left out by themselves."""


def left_out() -> frozenset[str]:
    """Every name of the fresh measurement, in small letters, whole and by its words."""
    found: set[str] = set()
    for line in FRESH.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            for name in ",".join(line.split("|")[1:3]).split(","):
                words = name.lower().replace("-", " ").split()
                found.update((name.strip().lower(), *(word for word in words if len(word) >= SHORTEST_WORD)))
    return frozenset(found)


def lists(popular: Path | None) -> dict[str, dict[str, list[str]]]:
    """For each origin its given and family names, without those of the fresh measurement."""
    found: dict[str, dict[str, set[str]]] = {}
    for origin, locales in LOCALES.items():
        for locale in locales:
            _add(found, origin, *_of_locale(locale))
    _add(found, "japanese_roman", *_of_locale("ja_JP", "romanized_"))
    _add(found, "pinyin", *_of_locale("zh_CN", "romanized_"))
    _add(found, "japanese", _japanese_given(), KANJI_FAMILY.split())
    _add(found, "chinese", ["".join(pair) for pair in itertools.permutations(HAN_GIVEN, 2)][::7] + list(HAN_GIVEN), [])
    _add(found, "korean", ["".join(pair) for pair in itertools.permutations(HANGUL_GIVEN, 2)][::3], [])
    for line in (HERE / "people.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            origin, given, family = (part.strip() for part in line.split("|"))
            _add(found, origin, given.split(","), family.split(","))
    if popular is not None:
        _add_popular(found, popular)
    unwanted = left_out()
    return {
        origin: {kind: sorted(each for each in names if _is_kept(each, unwanted)) for kind, names in kinds.items()}
        for origin, kinds in sorted(found.items())
        if kinds["given"] and kinds["family"]
    }


def _is_kept(name: str, unwanted: frozenset[str]) -> bool:
    lowered = name.lower()
    words = [word for word in lowered.replace("-", " ").split() if len(word) >= SHORTEST_WORD]
    return lowered not in unwanted and not any(word in unwanted for word in words) and "(" not in lowered


def _add(found: dict[str, dict[str, set[str]]], origin: str, given: Any, family: Any) -> None:
    kinds = found.setdefault(origin, {"given": set(), "family": set()})
    kinds["given"].update(name.strip() for name in given if name.strip())
    kinds["family"].update(name.strip() for name in family if name.strip())


def _of_locale(locale: str, spelling: str = "") -> tuple[list[str], list[str]]:
    """Given and family names of a faker locale; a locale that has none under a name gives none."""
    provider = importlib.import_module(f"faker.providers.person.{locale}").Provider
    given: list[str] = []
    family: list[str] = []
    for attribute in dir(provider):
        values = getattr(provider, attribute)
        if not isinstance(values, (tuple, list, dict)) or attribute.startswith("_") or "pair" in attribute:
            continue
        if spelling not in attribute or (not spelling and ("romanized" in attribute or "kana" in attribute)):
            continue
        plain = [name for name in values if isinstance(name, str) and "{{" not in name]
        if attribute.startswith("first") and "name" in attribute:
            given.extend(plain)
        elif "last_name" in attribute or attribute.startswith("last_"):
            family.extend(plain)
    return given, family


def _japanese_given() -> list[str]:
    import japanese_personal_name_dataset as package

    found = []
    for table in sorted((Path(package.__file__).parent / "dataset").glob("*_opti.csv")):
        with table.open(encoding="utf-8", newline="") as lines:
            for row in csv.reader(lines):
                found.extend(
                    each for each in row if 2 <= len(each) <= 3 and all(ord(letter) > 0x3400 for letter in each)
                )
    return found[::7]


def _add_popular(found: dict[str, dict[str, set[str]]], popular: Path) -> None:
    for kind, name in (("given", "common-forenames-by-country.csv"), ("family", "common-surnames-by-country.csv")):
        with (popular / name).open(encoding="utf-8-sig", newline="") as lines:
            for row in csv.DictReader(lines):
                origin = COUNTRIES.get(row["Country"], "elsewhere")
                romanized = row["Romanized Name"].strip()
                if romanized and ord(romanized[0]) < 0x250:
                    kinds = found.setdefault(origin, {"given": set(), "family": set()})
                    kinds[kind].add(romanized.title() if romanized.isupper() else romanized)
