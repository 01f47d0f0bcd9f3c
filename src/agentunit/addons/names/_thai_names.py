"""Names in Thai script, which puts no spaces between words: after a title, or a given name that a list knows."""

from __future__ import annotations

import collections
import functools
import re
from collections.abc import Iterator

from agentunit.addons.names.script_tables import kind_of, names_in_runs
from agentunit.privacy.detection.gazetteer import words

_THAI = re.compile("[\u0e01-\u0e4e]+")
_TITLE = re.compile(
    "นางสาว|นาย|นาง|น\\.ส\\.|คุณ|ด\\.ช\\.|ด\\.ญ\\.|เด็กชาย|เด็กหญิง|ดร\\.|อาจารย์|คุณหมอ|หมอ|ผศ\\.|รศ\\.|ศ\\.|ทนาย|พี่|ลุง|ป้า|น้อง"
)
_CUE = re.compile(
    "(?:ชื่อว่า|ชื่อ-นามสกุล|ชื่อ-สกุล|ชื่อ|ลูกค้า|ผู้ป่วย|คนไข้|พนักงาน|ผู้โดยสาร|สมาชิก|ผู้รับ|ผู้ส่ง"
    "|เพื่อน|ติดต่อ|เรียน|สวัสดี|กับ|โดย|ของ|ถึง|ให้)[ :：]{0,2}\\Z"
)
# Words after which, and a space, nothing but a name can stand.
_NAMING = re.compile("(?:ชื่อว่า|ชื่อ-นามสกุล|ชื่อ-สกุล|(?<!ราย)ชื่อ|ผู้ป่วย|คนไข้|ผู้โดยสาร|ผู้รับ|ผู้ส่ง|ผู้ติดต่อ|เพื่อนชื่อ)[:：]?[ ]\\Z")
_GIVEN_ENDINGS = words(
    """
    ชัย พร รัตน์ ธิดา เดช วิทย์ ภรณ์ วรรณ นันท์ ศักดิ์ พงษ์ พงศ์ กร ภัทร วัฒน์ ชา ดา ตา ยา สา กา มา ณี นี รี ลี ธร พล ชน นุช มาศ ทิพย์ ฤดี
    ริน ติน วิน ปกรณ์ วุฒิ ยุทธ ชาติ ลักษณ์ พันธ์ สิทธิ์ ชนก นาถ ริกา วดี มณี จันทร์ เพ็ญ
    """
)
# What follows "you" and is no name: "you want", "you can".
_AFTER_YOU = words(
    """
    ต้อง สามารถ จะ ได้ มี ไม่ ควร อาจ คือ เป็น กำลัง เคย ยัง เลือก ใช้ อยู่ ก็ ที่ และ หรือ ครับ ค่ะ คะ กำลัง คิด
    รู้ เห็น พบ ทำ ไป มาถึง กรอก ส่ง ขอ
    อยาก เพิ่ง แล้ว สมบัติ ภาพ ค่า แม่ พ่อ ครู ลูกค้า เอง จึง ต่อ คลิก กด ลง เข้า ออก เปิด ปิด แก้ เพิ่ม ลบ บันทึก ติดตั้ง
    """
)
_LONGEST_GIVEN, _LONGEST_LAST = 14, 22
# "คุณ" is also "you", and the others begin plain words.
_WEAK_TITLES = frozenset(("คุณ", "หมอ", "พี่", "น้อง", "ป้า", "ลุง", "นาย", "นาง", "อาจารย์", "ทนาย"))


@functools.cache
def _words_by_length() -> tuple[frozenset[str], int]:
    known = kind_of("th", "word")
    return known, max(map(len, known))


@functools.cache
def _given_names() -> tuple[frozenset[str], int]:
    names = kind_of("th", "first")
    return names, max(map(len, names))


def find_thai_names(text: str) -> Iterator[tuple[int, int]]:
    """Where the names of a text in Thai script stand.

    >>> text = "กรุณาติดต่อคุณสมชาย ใจดี หรือ นางสาวพิมพ์ชนก แก้วมณี ค่ะ คุณต้องการอะไร"
    >>> [text[start:end] for start, end in find_thai_names(text)]
    ['สมชาย ใจดี', 'พิมพ์ชนก แก้วมณี']
    """
    return names_in_runs(text, _THAI, _name_at)


def _name_at(text: str, start: int, run_start: int, run_end: int) -> int:
    """Where the name that begins here ends; 0 where none does."""
    if "\u0e30" <= text[start] <= "\u0e3a" or "\u0e47" <= text[start] <= "\u0e4e":
        return 0  # a vowel or tone of the letter before
    opened = _TITLE.match(text, run_start)
    if _TITLE.match(text, start) or (opened and run_start < start < opened.end()):
        return 0
    title = next((found for found in _titles_before(text, start)), "")
    names, longest = _given_names()
    plain_words, _ = _words_by_length()
    given = next(
        (length for length in range(min(longest, run_end - start), 2, -1) if text[start : start + length] in names), 0
    )
    end = start + given
    is_open = start == run_start or bool(title) or _CUE.search(text, max(0, start - 12), start) is not None
    if given and is_open and _ends_word(text, end, run_end):
        if (surname := _surname_end(text, end, run_end)) > end:
            return surname
        if title or (text[start:end] not in plain_words and _CUE.search(text, max(0, start - 12), start)):
            return end
    # A given name that no list knows reaches to the next space, and a surname follows it.
    if not is_open or not 2 < run_end - start <= _LONGEST_GIVEN:
        return 0
    given_name = text[start:run_end]
    if title and text[start - 1] != " " and not given_name.startswith(_AFTER_YOU):
        surname = _surname_end(text, run_end, run_end)
        if surname > run_end or title not in _WEAK_TITLES:
            return surname
    if _NAMING.search(text, max(0, start - 16), start) and not given_name.startswith(_AFTER_YOU):
        following = _THAI.match(text, run_end + 1)
        is_pair = text[run_end : run_end + 1] == " "
        if (
            following is not None
            and is_pair
            and len(following.group()) <= _LONGEST_LAST
            and not following.group().startswith(_AFTER_YOU)
        ):
            return following.end()
    if _starts_plain(given_name):
        return 0
    surname = _surname_end(text, run_end, run_end)
    has_cue = _CUE.search(text, max(0, start - 12), start) is not None
    is_likely = bool(title) or _looks_given(given_name) or (has_cue and not _is_all_words(given_name))
    if surname > run_end and is_likely:
        return surname
    return run_end if title and title not in _WEAK_TITLES and not _is_all_words(given_name) else 0


def _starts_plain(chunk: str) -> bool:
    """Whether a stretch begins with a word that holds sentences together, and is made of plain words."""
    small = kind_of("th", "small")
    begins = any(chunk[:length] in small for length in range(2, min(len(chunk), 12) + 1))
    return chunk in _words_by_length()[0] or (begins and _is_all_words(chunk))


@functools.cache
def _given_ends() -> tuple[frozenset[str], frozenset[str]]:
    """How given names begin and end, in their first and last three letters."""
    names = [name for name in kind_of("th", "first") if len(name) > 4]
    begin = collections.Counter(name[:3] for name in names)
    finish = collections.Counter(name[-3:] for name in names)
    return frozenset(each for each in begin if begin[each] > 1), frozenset(each for each in finish)


def _looks_given(chunk: str) -> bool:
    begin, finish = _given_ends()
    if len(chunk) < 5 or _is_all_words(chunk):
        return False
    return chunk.endswith(_GIVEN_ENDINGS) or (chunk[:3] in begin and chunk[-3:] in finish)


def _titles_before(text: str, start: int) -> Iterator[str]:
    before = text[max(0, start - 8) : start].rstrip(" ")
    for length in range(min(8, len(before)), 1, -1):
        if _TITLE.fullmatch(before[-length:]):
            yield before[-length:]


def _ends_word(text: str, end: int, run_end: int) -> bool:
    """Whether a name can end here: at the run's end, or where a plain word begins."""
    return end == run_end or (text[end] not in "ะาิีึืุูั์่้๊๋็ำ" and _word_starts_at(text, end, run_end))


def _word_starts_at(text: str, start: int, run_end: int) -> bool:
    known, longest = _words_by_length()
    return any(text[start : start + length] in known for length in range(min(longest, run_end - start), 1, -1))


def _surname_end(text: str, end: int, run_end: int) -> int:
    """Where the surname ends that follows a given name after a space; the end of the given name where none does."""
    if end != run_end or text[end : end + 1] != " ":
        return end
    following = _THAI.match(text, end + 1)
    if following is None:
        return end
    surname = following.group()
    if surname in kind_of("th", "last") or surname.startswith("แซ่"):
        return following.end()
    names = kind_of("th", "last")
    for length in range(min(len(surname), _LONGEST_LAST), 3, -1):
        if surname[:length] in names and _ends_word(text, end + 1 + length, following.end()):
            return end + 1 + length
    is_plain = surname in _words_by_length()[0] or _starts_plain(surname)
    return following.end() if len(surname) <= _LONGEST_LAST and len(surname) > 3 and not is_plain else end


def _is_all_words(text: str) -> bool:
    """Whether a stretch is nothing but frequent words, so that it is no surname."""
    known, longest = _words_by_length()
    reached = {0}
    for at in range(len(text)):
        if at in reached:
            reached.update(
                at + size for size in range(2, min(longest, len(text) - at) + 1) if text[at : at + size] in known
            )
    return len(text) in reached
