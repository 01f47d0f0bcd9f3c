"""Names in Japanese script: a surname and a given name that fill a run of kanji, or a surname with a title."""

from __future__ import annotations

import collections
import functools
import re
from collections.abc import Iterator
from typing import NamedTuple

from agentunit.addons.names.script_tables import kind_of, names_in_runs

_KANJI = "\u3400-\u9fff々ヶ"
_RUN = re.compile(rf"[{_KANJI}]+")
_TITLE = re.compile(
    "さん|さま|様|宛(?![\u3400-\u9fff])|殿|氏(?!名)|君(?![\u3400-\u9fff])|くん|ちゃん|先生|社長|部長|課長|係長|教授|医師|選手|監督|議員|大臣|店長|主任|専務|常務|会長|博士|弁護士|看護師"
    "|と申し|といい|と言い|という者"
)
_TITLE_KANJI = (
    "様",
    "宛",
    "両名",
    "本人",
    "殿",
    "氏",
    "君",
    "先生",
    "社長",
    "部長",
    "課長",
    "係長",
    "教授",
    "医師",
    "選手",
    "監督",
    "議員",
    "店長",
    "主任",
    "専務",
    "常務",
    "会長",
    "博士",
    "弁護士",
    "看護師",
)
_CUE = re.compile(
    "(?:私は|わたしは|僕は|俺は|名前は|お名前は|氏名|氏名は|名前|お名前|担当者|担当者は|担当は|担当の|担当|お客様|お客様の|宛名|宛名は|宛先|顧客|顧客名|会員|受取人|申込者|患者|社員|部下の|上司の"
    "|同僚の|友人の|夫の|妻の|息子の|娘の|弟の|兄の|姉の|妹の|こちらは|本日は|代表|店長の|部長の|課長の"
    "|乗客|契約者|名義人|名義|医師の|講師の)[ 　:：]?\\Z"
)
_AFTER = re.compile(r"[はがにをへとものでや、。,.!!??\n)）」』 　:;/]|から|より|です|でした|だ|宛|まで|$")
_SPACE = re.compile("[ 　]")
# Letters that end the names of places, offices, companies and groups.
_NEVER_LAST = frozenset(
    "県市区町村郡島駅線港橋庁署局省部課係室社店館院校寺社園場所家者語式法版号類側用型化的論学性力率数量費金税券証書"
)
_GIVEN_KANA = re.compile("[\u3041-\u309f]{2,4}|[\u30a1-\u30fa\u30fc]{2,6}")
_HIRAGANA = re.compile("[\u3041-\u309f]{2,12}")
_GRAMMAR = re.compile(
    "[はがをにでとのもへやかよねなだをっんー]|から|まで|など|さん|さま|くん|ちゃん|です|ます|まし|した|して|する|され|られ|くだ|いた|いて|いる|いい|ある|あり|あっ|なる|らし|より|だけ|しか|ほど"
    "|ごと|こと|もの|ため|よう|そう|こそ|さえ|すら|べき|せん|ない|たち|れる|れた|せる|せた|りま|きま|いま|しま|えま|けま|てい|たい|おり|おき|ください"
)
_LONGEST_LAST, _LONGEST_GIVEN = 4, 3
_LONGEST_WORD = 8


class _Tables(NamedTuple):
    last: frozenset[str]
    first: frozenset[str]
    words: frozenset[str]
    given_letters: frozenset[str]
    rare_given_letters: frozenset[str]


@functools.cache
def _tables() -> _Tables:
    first = kind_of("ja", "first")
    letters = [letter for name in first if len(name) == 2 for letter in name]
    counts = collections.Counter(letters)
    frequent = frozenset(letter for letter, count in counts.items() if count > 4 and letter >= "\u3400")
    rare = frozenset(letter for name in first for letter in name if letter >= "\u3400")
    return _Tables(kind_of("ja", "last"), first, kind_of("ja", "word"), frequent, rare)


def find_japanese_names(text: str) -> Iterator[tuple[int, int]]:
    """Where the names of a text in Japanese script stand.

    >>> text = "担当の佐藤さくらが、田中様と山本健太郎に連絡しました。"
    >>> [text[start:end] for start, end in find_japanese_names(text)]
    ['佐藤さくら', '田中', '山本健太郎']
    """
    return names_in_runs(text, _RUN, _name_at)


def _name_at(text: str, start: int, run_start: int, run_end: int) -> int:
    """Where the name that begins here ends; 0 where none does."""
    known = _tables()
    # No word is longer. To look at all that stands before each letter of a run would take quadratic time.
    before = text[max(run_start, start - _LONGEST_WORD) : start]
    has_cue = _CUE.search(text, max(0, start - 6), start) is not None
    if len(before) == 1 and not has_cue:
        return 0
    is_free = not before or before in known.words or before[-2:] in known.words or has_cue
    for n_last in range(min(_LONGEST_LAST, run_end - start), 0, -1):
        last = text[start : start + n_last]
        if last not in known.last:
            continue
        if n_last == 1 and text[start : start + 2] in known.words and not has_cue:
            continue
        at = start + n_last
        spaced = at + 1 if _SPACE.match(text, at) else at
        end = _given_end(text, spaced, known, is_spaced=spaced > at, is_short_last=n_last == 1, has_cue=has_cue)
        if (
            end
            and text[start:end] not in known.words
            and (is_free or (n_last > 1 and end - spaced > 1))
            and (n_last > 1 or not before or has_cue)
        ):
            return end
        if (
            is_free
            and _TITLE.match(text, at)
            and (last not in known.words or has_cue or not before)
            and not _is_word_with(text, start, at, known)
        ):
            return at
        if has_cue and n_last > 1 and last not in known.words and _AFTER.match(text, at):
            return at
    return 0


def _is_formed(name: str, known: _Tables, *, is_announced: bool) -> bool:
    """Whether letters that are no word can be a given name that no list has: most of today's are in none.

    Of letters that given names have, one must be frequent in them. A title, a cue or a space before leaves less doubt.
    """
    if name in known.words or name[-1] in _NEVER_LAST or (len(name) > 1 and name[-2:] in known.words):
        return False
    if name[-1] == "人" and (len(name) != 2 or name[0] not in known.given_letters):
        return False  # many names end so, 悠人 and 陽人 among them, and more words: 県人
    n_frequent = sum(letter in known.given_letters for letter in name)
    n_known = sum(letter in known.rare_given_letters for letter in name)
    if is_announced:
        return n_known > 0
    return len(name) > 1 and n_frequent > 0 and n_known == len(name)


def _is_word_with(text: str, start: int, end: int, known: _Tables) -> bool:
    """Whether a title only looks like one, as in a longer plain word."""
    return any(text[start : end + more] in known.words for more in (1, 2))


def _kana_end(text: str, at: int) -> int:
    """Where two or three hiragana end that a title or a particle follows and that begin no word of grammar."""
    run = _HIRAGANA.match(text, at)
    if run is None or _GRAMMAR.match(text, at):
        return 0
    for length in (3, 2):
        title = _TITLE.match(text, at + length)
        is_whole = run.end() == at + length + 1 and text[at + length] in "はがをにのもと"
        if (title or is_whole) and run.end() >= at + length:
            return at + length
    return 0


def _given_end(text: str, at: int, known: _Tables, *, is_spaced: bool, is_short_last: bool, has_cue: bool) -> int:
    """Where the given name ends that begins here; 0 where none does."""
    kana = _GIVEN_KANA.match(text, at)
    if kana:
        for length in range(len(kana.group()), 1, -1):
            name = text[at : at + length]
            if name in known.first and (_TITLE.match(text, at + length) or _AFTER.match(text, at + length)):
                return at + length
        if not is_short_last and (end := _kana_end(text, at)):
            return end
        return kana.end() if is_spaced and text[at] >= "\u30a1" and _TITLE.match(text, kana.end()) else 0
    run = _RUN.match(text, at, at + _LONGEST_GIVEN + 1)
    if run is None:
        return 0
    for length in range(min(_LONGEST_GIVEN, run.end() - at), 0, -1):
        name, end = text[at : at + length], at + length
        is_end = end == run.end() or text.startswith(_TITLE_KANJI, end) or (has_cue and _AFTER.match(text, end))
        is_titled = _TITLE.match(text, end)
        is_given = name in known.first or _is_formed(name, known, is_announced=bool(is_titled or is_spaced or has_cue))
        is_likely = length > 1 or is_spaced or has_cue or is_titled or (not is_short_last and _AFTER.match(text, end))
        if (
            is_end
            and is_given
            and is_likely
            and (name not in known.words or name in known.first)
            and not (is_short_last and not (is_spaced or has_cue or _TITLE.match(text, end) or name in known.first))
        ):
            return end
    return 0
