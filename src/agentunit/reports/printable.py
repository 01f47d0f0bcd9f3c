"""Foreign text made safe for where it goes: a terminal, the log of a CI job, an XML file, one line of a report."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Any

from agentunit.core.results import encode_json

# Whatever a terminal could obey instead of showing: C0 and C1 controls, and the marks that turn the direction of text.
# Half surrogates are no characters at all and cannot be written.
_NOT_SHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")
_NOT_SHOWN_BEYOND_ASCII = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
_LINE_ENDS = re.compile("\r\n|[\r\u0085\u2028\u2029]")
# XML 1.0 knows no control characters but these three, no half surrogates and no U+FFFE or U+FFFF.
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_TAB = "    "
# The log of a CI job obeys lines as well: GitHub "::error …::" at the start of a line, and "##[error]" anywhere in one,
# as Azure ("##vso[") and TeamCity do. A console folds long texts, so any word may come to stand at the start of a line,
# and a long word may be cut anywhere: known commands are broken up wherever they are.
_IGNORED = "[\u00ad\u200b-\u200d\u2060\ufeff]*"
_COMMANDS = (
    "error|warning|notice|debug|group|endgroup|add-mask|set-output|save-state|set-env|add-path|stop-commands|echo|"
    "add-matcher|remove-matcher|internal-[a-z-]+"
)
# A run of signs is read as a whole, and once: whether a command follows is asked at its end.
_COLONS = re.compile(f":(?:{_IGNORED}:)+")
_HASHES = re.compile(f"#(?:{_IGNORED}#)+")
_COMMAND_OF_COLONS = re.compile(f"(?i:{_COMMANDS})(?:\\s|:)")
_BEGINS_A_WORD = re.compile(f"\\s?{_IGNORED}")
_COMMAND_OF_HASHES = re.compile(r"[A-Za-z]*\[")


def printable(text: str) -> str:
    """Text of several lines as a terminal and a CI log may show it: what would steer the terminal becomes a dot.

    >>> printable("one\\r\\ntwo\\x1b[2J"), printable("::error file=x::boo ##[group]")
    ('one\\ntwo·[2J', ': :error file=x::boo # #[group]')
    """
    return disarmed(_NOT_SHOWN.sub("·", _LINE_ENDS.sub("\n", text).replace("\t", _TAB)))


def disarmed(text: str) -> str:
    """Text in which the log of a CI job finds no command: a space stands between the two signs that start one.

    >>> disarmed("see std::vector and tests/test_a.py::test_b"), disarmed("x ::set-output name=a::b")
    ('see std::vector and tests/test_a.py::test_b', 'x : :set-output name=a::b')
    """
    if "::" not in text and "##" not in text and text.isascii():
        return text
    return _HASHES.sub(_disarmed_hashes, _COLONS.sub(_disarmed_colons, text))


def _disarmed_colons(found: re.Match[str]) -> str:
    before, signs = found.string[max(0, found.start() - 1) : found.start()], found[0]
    # Between words, as in std::vector, it is no command unless one follows.
    stands_in_a_word = _BEGINS_A_WORD.fullmatch(before) is None and not signs.strip(":")
    if stands_in_a_word and not _COMMAND_OF_COLONS.match(found.string, found.end()):
        return signs
    return " ".join(":" * signs.count(":"))


def _disarmed_hashes(found: re.Match[str]) -> str:
    return " ".join("#" * found[0].count("#")) if _COMMAND_OF_HASHES.match(found.string, found.end()) else found[0]


def printable_json(value: Any) -> str:
    """A value as JSON for standard output: the same data, with what a CI log or a terminal obeys escaped.

    >>> print(printable_json({"answer": "##[error]"}), printable_json("\\x9b2J\\u202e"))
    {"answer":"\\u0023#[error]"} "\\u009b2J\\u202e"
    """
    # JSON escapes plain controls and line ends already.
    text = encode_json(value).decode().replace("##", "\\u0023#")
    return text if text.isascii() else _NOT_SHOWN_BEYOND_ASCII.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def printable_line(text: str, most: int | None = None) -> str:
    """The same in one line, with the spacing evened out and cut to ``most`` characters.

    >>> printable_line("one\\n  two", 5)
    'one …'
    """
    line = " ".join(printable(text).split())
    if most is not None and len(line) > most:
        return line[: max(0, most - 1)] + "…"
    return line


def show_command(reference: str, case_id: str, *, repeat: int | None = None, more: Sequence[str] = ()) -> str:
    """The command that shows a case of a run or file. ``repeat`` counts from 0; without it the worst is shown.

    >>> show_command("a.jsonl", "desk-016", repeat=1), show_command("a.jsonl", "-7")
    ('agentunit show a.jsonl desk-016 --repeat 2', 'agentunit show -- a.jsonl -7')
    """
    options = [*(() if repeat is None else ("--repeat", str(repeat + 1))), *more]
    # The command finds an id by how it is printed, too.
    words = [reference, printable_line(case_id)]
    # What begins with a dash reads as an option.
    words = [*options, "--", *words] if any(word.startswith("-") for word in words) else [*words, *options]
    return shlex.join(["agentunit", "show", *words])


def xml_safe(text: str) -> str:
    """Text without the characters that no XML file may hold; each becomes a replacement character.

    >>> xml_safe("a\\x00b") == "a\\ufffdb"
    True
    """
    return _NOT_XML.sub("\ufffd", text)


def clipped(text: str, most: int) -> tuple[str, int]:
    """The beginning of a text and how many characters were left off.

    >>> clipped("abcdef", 4), clipped("abc", 4)
    (('abcd', 2), ('abc', 0))
    """
    return (text, 0) if len(text) <= most else (text[:most], len(text) - most)
