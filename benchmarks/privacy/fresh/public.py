"""Text that nobody wrote for this benchmark and that names (almost) nobody: translations, code, JSON and logs.

It comes from packages of PyPI (``pip download --no-deps``, versions below), from the manuals of Debian
(``apt-get download``) and from the log samples of LogHub (``git clone https://github.com/logpai/loghub``), all in one
folder, and none of it is kept here. Rules were changed after a look at ``SEEN``; at ``UNSEEN`` nobody looked. Lines
that credit people are left out. What other names there are counts as an alarm too.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from benchmarks.privacy.fresh.generate import Row

LANGUAGES = {"de": ("de",), "fr": ("fr",), "es": ("es",), "pt": ("pt", "pt_BR", "pt_PT")}
WORDS_PER_SOURCE = 6_000
_CREDITS = re.compile(
    r"(?i)@|author|autor|auteur|copyright|\(c\)|©|maintain|translat|übersetz|traduc|tradu[çz]|thanks|danke|merci|gracias"
    r"|obrigad|contribut|credit|written by|geschrieben von|écrit par|escrit[oa] por|signed-off|reported by|betreu"
)


class Sources(NamedTuple):
    """Where texts come from: wheels with translations, Debian packages, wheels with code, with JSON, systems' logs."""

    translated: tuple[str, ...]
    manuals: tuple[str, ...]
    code: tuple[str, ...]
    data: tuple[str, ...]
    logs: tuple[str, ...]


SEEN = Sources(
    translated=("django-5.2.19", "django_oscar-4.2.1", "pretix-2026.8.0"),
    manuals=("manpages-de_4.18", "manpages-fr_4.18", "manpages-es_4.18", "manpages-pt-br_4.18"),
    code=("sqlalchemy-2.1.8", "sympy-1.14.0", "django-5.2.19"),
    data=("botocore-1.44.0", "kolibri-0.19.5"),
    logs=("Android", "Apache", "Hadoop", "Linux", "OpenStack", "Zookeeper", "HealthApp", "Windows"),
)
UNSEEN = Sources(
    translated=("wagtail-8.0.1", "weblate-5.14.3", "postorius-1.3.13", "django_allauth-65.21.1", "mezzanine-6.1.1"),
    manuals=(
        "debian-reference-de_2.100", "debian-reference-fr_2.100", "debian-reference-es_2.100",
        "debian-reference-pt_2.100",
    ),
    code=("scikit_learn-1.9.1", "plotly-7.1.0", "weblate-5.14.3"),
    data=("weblate-5.14.3", "nikola-8.3.3", "plotly-7.1.0", "wagtail-8.0.1", "pretix-2026.8.0"),
    logs=("BGL", "HDFS", "HPC", "Mac", "OpenSSH", "Proxifier", "Spark", "Thunderbird"),
)  # fmt: skip


def public_rows(folder: Path, sources: Sources, seed: int = 20261116) -> Iterator[Row]:
    """The texts of these sources, so many words of each, the same on every machine."""
    drawn = random.Random(seed)
    for language, names in LANGUAGES.items():
        for wheel in sources.translated:
            yield from _some(f"public:{language}", language, _messages(_package(folder, wheel), names), drawn)
        for manual in sources.manuals:
            if re.search(rf"-{language}[_-]", manual):
                yield from _some(f"public:{language}", language, _paragraphs(_package(folder, manual)), drawn)
    for wheel in sources.code:
        yield from _some("public:code", "en", _code(_package(folder, wheel)), drawn)
    for wheel in sources.data:
        yield from _some("public:json", "en", _data(_package(folder, wheel)), drawn)
    for system in sources.logs:
        yield from _some("public:log", "en", _log(folder / "loghub" / system / f"{system}_2k.log"), drawn)


def _package(folder: Path, name: str) -> Path:
    found = sorted(folder.glob(f"{name}*"))
    if not found:
        raise FileNotFoundError(f"{folder} holds no {name}*; `pip download --no-deps` or `apt-get download` brings it")
    return found[0]


def _some(group: str, language: str, texts: Iterator[str], drawn: random.Random) -> Iterator[Row]:
    """Texts in a random order until there are enough words."""
    every = sorted(set(texts))
    drawn.shuffle(every)
    n_words = 0
    for text in every:
        if n_words >= WORDS_PER_SOURCE:
            return
        n_words += len(text.split())
        yield Row(group, language, text, ())


def _messages(wheel: Path, languages: tuple[str, ...]) -> Iterator[str]:
    """The translated messages of the .po files of a wheel."""
    with zipfile.ZipFile(wheel) as opened:
        for name in opened.namelist():
            parts = name.split("/")
            if not name.endswith(".po") or parts[-2] != "LC_MESSAGES" or parts[-3] not in languages:
                continue
            for block in opened.read(name).decode("utf-8", "replace").split("\n\n"):
                found = re.search(r'^msgstr(?:\[0\])? ((?:".*"\s*)+)', block, re.MULTILINE)
                if found is None or re.search(r'^msgid ""\s*^msgstr', block, re.MULTILINE) or "#, fuzzy" in block:
                    continue
                text = "".join(json.loads(line) for line in re.findall(r'"(?:\\.|[^"\\])*"', found[1]))
                if len(text.split()) > 2 and not _CREDITS.search(text):
                    yield text


def _paragraphs(package: Path) -> Iterator[str]:
    """The paragraphs of the manual pages or of the book of a Debian package."""
    unpacked = subprocess.run(["dpkg-deb", "--fsys-tarfile", str(package)], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=BytesIO(unpacked)) as opened:
        for member in opened.getmembers():
            if not member.isfile() or not re.search(
                r"/man[1-8]/.*\.gz$|/debian-reference\.[\w-]+\.txt\.gz$", member.name
            ):
                continue
            stream = opened.extractfile(member)
            text = gzip.decompress(stream.read()).decode("utf-8", "replace") if stream is not None else ""
            yield from _of_manual(text) if "/man" in member.name else _of_book(text)


def _of_manual(text: str) -> Iterator[str]:
    for section in re.split(r"(?m)^\.SH ", text)[1:]:
        if _CREDITS.search(section[:60]):
            continue
        for paragraph in re.split(
            r"(?m)^\.(?:PP|TP|IP|P|LP|RE|RS|SS|nf|fi|EX|EE|HP|sp)\b.*\n", section.partition("\n")[2]
        ):
            plain = re.sub(r"(?m)^\.(?:\\\".*|[A-Z]{1,2} ?)", "", paragraph)
            plain = re.sub(r"\\f(?:\[[A-Z]*\]|.)|\\[&/|,^]", "", plain).replace("\\-", "-").replace("\\(aq", "'")
            plain = re.sub(r"\\\*?(?:\(..|\[[^\]]*\])", '"', plain)
            if len(plain.split()) > 7 and not _CREDITS.search(plain):
                yield plain.strip()


def _of_book(text: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n", text):
        plain = " ".join(paragraph.split())
        if len(plain.split()) > 7 and not _CREDITS.search(plain):
            yield plain


def _code(wheel: Path) -> Iterator[str]:
    with zipfile.ZipFile(wheel) as opened:
        for name in sorted(name for name in opened.namelist() if name.endswith((".py", ".js")))[::7]:
            lines = opened.read(name).decode("utf-8", "replace").splitlines()
            kept = [line for line in lines if len(line) < 500 and not _CREDITS.search(line)]
            for at in range(0, len(kept), 60):
                yield "\n".join(kept[at : at + 60])


def _data(wheel: Path) -> Iterator[str]:
    with zipfile.ZipFile(wheel) as opened:
        for name in sorted(name for name in opened.namelist() if name.endswith(".json"))[:200]:
            try:
                yield from _objects(json.loads(opened.read(name)))
            except ValueError:
                continue


def _objects(data: object) -> Iterator[str]:
    """Parts of a JSON document that are not too long, as JSON."""
    text = json.dumps(data, ensure_ascii=False, indent=1)
    if len(text) < 4_000:
        if len(text.split()) > 5 and not _CREDITS.search(text):
            yield text
    elif isinstance(data, dict | list):
        for each in data.values() if isinstance(data, dict) else data:
            yield from _objects(each)


def _log(path: Path) -> Iterator[str]:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    for at in range(0, len(lines), 10):
        yield "\n".join(lines[at : at + 10])
