"""Write the tables of names in scripts without capital letters, one compressed file a language.

They are read only where a text has such letters. The lists come from packages with free licenses (see the README
beside the data files) and from ``scripts/gazetteer/scripts.txt``. Unpack the packages into a folder and name it; the
same versions give the same files, byte for byte::

    pip install --no-deps --target SOURCES faker==40.54.0 mimesis==22.2.0 jieba==0.42.1 janome==0.5.0 \
        pythainlp==5.4.0 opencc-python-reimplemented==0.1.7 pyspellchecker==0.9.1 stopwordsiso==0.7.1
    python -m scripts.build_script_tables SOURCES
"""

from __future__ import annotations

import argparse
import collections
import gzip
import json
import lzma
import math
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from agentunit.addons.names.script_tables import DATA_FOLDER, bare
from scripts.build_gazetteer import OWN_LISTS, names_by_language

Table = dict[str, set[str]]

CHINESE_WORDS = 24_000
SURE_WORD = 20
"""How often a word occurs that is taken because it begins with a surname."""
JAPANESE_WORDS = 9_000
JAPANESE_SURNAMES = 14_000
JAPANESE_NAMES = 9_000
THAI_WORDS = 6_000
ARABIC_WORDS = 3_000
SPACED = {"he": ("he",), "ar": ("ar", "fa"), "hi": ("hi", "mr"), "ko": ("ko",)}
_HAN = range(0x3400, 0xA000)


def main() -> None:
    """Read the packages of the folder and write the data files."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("sources", type=Path, help="the folder with the unpacked packages")
    sources = parser.parse_args().sources
    names = collections.defaultdict(lambda: collections.defaultdict(set))
    for language, is_first, name in names_by_language(sources):
        names[language]["first" if is_first else "last"].add(name)
    own = _own_lists()
    tables = {
        "zh": _chinese(sources, names["zh"]),
        "ja": _japanese(sources, names["ja"], own["ja"]),
        "th": _thai(sources, names["th"], own["th"]),
        **{
            code: _spaced(sources, code, [names[each] for each in languages], own[code])
            for code, languages in SPACED.items()
        },
    }
    for language, table in tables.items():
        lines = [f"{kind}\t" + "\t".join(sorted(words)) for kind, words in sorted(table.items()) if words]
        packed = lzma.compress("\n".join(lines).encode(), format=lzma.FORMAT_XZ, preset=9 | lzma.PRESET_EXTREME)
        path = DATA_FOLDER / f"names_{language}.xz"
        path.write_bytes(packed)
        print(f"{path.name}: {sum(map(len, table.values()))} entries, {len(packed)} bytes")


def _own_lists() -> dict[str, Table]:
    own: dict[str, Table] = collections.defaultdict(lambda: collections.defaultdict(set))
    for line in (OWN_LISTS / "scripts.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            kind, _, words = line.partition(":")
            language, _, kind = kind.partition(" ")
            own[language][kind].update(words.split())
    return own


def _is_han(word: str) -> bool:
    return bool(word) and all(ord(letter) in _HAN or letter == "々" for letter in word)


def _chinese(sources: Path, names: Table) -> Table:
    """Words and the letters of given names by what they cost (twice the negative logarithm of their share)."""
    counts: dict[str, int] = {}
    places: set[str] = set()
    given: collections.Counter[str] = collections.Counter()
    surnames = {name for name in names["last"] if _is_han(name) and len(name) < 3}
    simplified = dict(_simplified(sources))
    surnames = {"".join(simplified.get(letter, letter) for letter in name) for name in surnames}
    for line in (sources / "jieba/dict.txt").read_text(encoding="utf-8").splitlines():
        word, count, tag = line.split()
        if tag.startswith("nr"):
            if len(word) in (2, 3) and word[0] in surnames and _is_han(word):
                given.update(word[1:])
        elif _is_han(word) and len(word) < 5:
            counts[word] = int(count)
            if tag == "ns" and len(word) > 1:
                places.add(word)
    for name in names["first"]:
        if _is_han(name) and len(name) < 3:
            given.update({simplified.get(letter, letter): 3 for letter in name})
    table: Table = collections.defaultdict(set)
    total = sum(counts.values())
    kept = sorted(counts, key=lambda word: (-counts[word], word))[:CHINESE_WORDS]
    # Words that begin like a name and are none: they are needed even where they are rare.
    frequent = set(kept)
    kept += [word for word in counts if word[0] in surnames and word not in frequent and counts[word] >= SURE_WORD]
    kept += sorted(places.difference(kept))
    for word in kept:
        table[f"w{_cost(counts[word], total)}"].add(word)
    n_given = sum(given.values())
    for letter, count in given.items():
        if count > 1:
            table[f"g{_cost(count, n_given)}"].add(letter)
    table["last"] = surnames
    table["simplified"] = {traditional + simple for traditional, simple in simplified.items()}
    return table


def _cost(count: int, total: int) -> int:
    return round(-2 * math.log(count / total))


def _simplified(sources: Path) -> Iterator[tuple[str, str]]:
    """Traditional letters with the simplified ones that mean the same."""
    path = sources / "opencc/dictionary/TSCharacters.txt"
    for line in path.read_text(encoding="utf-8").splitlines():
        traditional, _, simple = line.partition("\t")
        simple = simple.split()[0]
        if len(traditional) == len(simple) == 1 and traditional != simple and 0x4E00 <= ord(traditional) < 0xA000:
            yield traditional, simple


def _japanese(sources: Path, names: Table, own: Table) -> Table:
    sys.path.insert(0, str(sources))
    from janome.sysdic import entries  # type: ignore[import-not-found]  # a dictionary that is data in modules

    ranked: dict[str, dict[str, int]] = collections.defaultdict(dict)
    for written, _, _, cost, kinds, *_ in entries().values():
        parts = kinds.split(",")
        if parts[:3] == ["名詞", "固有名詞", "人名"] and parts[3] in ("姓", "名"):
            kind = "last" if parts[3] == "姓" else "first"
        elif (parts[0] == "名詞" and parts[1] in ("一般", "サ変接続", "形容動詞語幹", "副詞可能", "接尾")) or parts[
            2:3
        ] == ["地域"]:
            kind = "word"
        else:
            continue
        if _is_kana_name(written) if kind == "first" else _is_han(written):
            ranked[kind][written] = min(cost, ranked[kind].get(written, cost))
    limits = {"last": JAPANESE_SURNAMES, "first": JAPANESE_NAMES, "word": JAPANESE_WORDS}
    table: Table = {
        kind: {word for word in words if kind == "first" and len(word) == 1}
        | set(sorted(words, key=lambda word: (words[word], word))[: limits[kind]])
        for kind, words in ranked.items()
    }
    table["last"] |= {name for name in names["last"] if _is_han(name) and 1 < len(name) < 5}
    table["first"] |= {name for name in names["first"] if _is_kana_name(name) and len(name) > 1}
    for kind in ("last", "first"):
        table[kind] |= own[kind]
    table["word"] = {word for word in table["word"] if 1 < len(word) < 5}
    return table


def _is_kana_name(name: str) -> bool:
    is_hiragana = len(name) > 1 and all("\u3041" <= letter <= "\u309f" for letter in name)
    return 0 < len(name) < 5 and (_is_han(name) or is_hiragana)


def _thai(sources: Path, names: Table, own: Table) -> Table:
    corpus = sources / "pythainlp/corpus"
    known = set((corpus / "words_th.txt").read_text(encoding="utf-8").split())
    counts = (line.split("\t") for line in (corpus / "tnc_freq.txt").read_text(encoding="utf-8").splitlines())
    words = [word for word, *_ in counts if word in known and len(word) > 1][:THAI_WORDS]
    small = set((corpus / "stopwords_th.txt").read_text(encoding="utf-8").split())
    return {
        "first": names["first"] | own["first"],
        "last": names["last"] | own["last"],
        "word": {*words, *small},
        "small": small,
    }


def _spaced(sources: Path, language: str, found: Iterable[Table], own: Table) -> Table:
    """Names of a script that parts words by spaces, word by word, and plain words of its languages."""
    table: Table = {kind: set() for kind in ("first", "last", "word")}
    for names in (*found, {kind: own[kind] for kind in ("first", "last")}):
        for kind in ("first", "last"):
            for name in names[kind]:
                table[kind].update(bare(part) for part in name.strip("()").split() if _is_native(part, language))
    stop_words = json.loads((sources / "stopwordsiso/stopwords-iso.json").read_text(encoding="utf-8"))
    plain = set(stop_words.get(language, ()))
    for code in ("ar", "fa") if language == "ar" else ():
        counts = json.loads(gzip.decompress((sources / f"spellchecker/resources/{code}.json.gz").read_bytes()))
        plain.update(sorted(counts, key=lambda word: (-counts[word], word))[:ARABIC_WORDS])
    surely = {bare(name) for kind in ("first", "last") for name in own[kind]} - {bare(word) for word in own["word"]}
    table["word"] = ({bare(word) for word in plain if _is_native(word, language)} - surely) | {
        bare(word) for word in own["word"]
    }
    # Somebody looked at these: by themselves, each is a first name and nothing else.
    table["sure"] = {bare(name) for name in own["first"]} - table["word"]
    return table


def _is_native(word: str, language: str) -> bool:
    ranges = {"he": (0x5D0, 0x5F4), "ar": (0x621, 0x6D3), "hi": (0x900, 0x97F), "ko": (0xAC00, 0xD7A3)}
    first, last = ranges[language]
    return len(word) > 1 and first <= ord(word[0]) <= last


if __name__ == "__main__":
    main()
