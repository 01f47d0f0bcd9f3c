"""Names of East Asia in Latin letters: no list holds them all, but they are made of few syllables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from agentunit.privacy.detection.gazetteer import Kind, fold, kinds_of, word_set

_FINALS = {
    "b p": "a ai an ang ao ei en eng i ian iao ie in ing o u",
    "m": "a ai an ang ao e ei en eng i ian iao ie in ing iu o ou u",
    "f": "a an ang ei en eng o ou u",
    "d t": "a ai an ang ao e en eng i ian iao ie ing iu ong ou u uan ui un uo",
    "n": "a ai an ang ao e ei en eng i ian iang iao ie in ing iu ong ou u uan uo v ve",
    "l": "a ai an ang ao e ei eng i ia ian iang iao ie in ing iu ong ou u uan un uo v ve",
    "g k h": "a ai an ang ao e ei en eng ong ou u ua uai uan uang ui un uo",
    "j q x": "i ia ian iang iao ie in ing iong iu u uan ue un",
    "zh ch sh": "a ai an ang ao e ei en eng i ong ou u ua uai uan uang ui un uo",
    "r": "an ang ao e en eng i ong ou u uan ui un uo",
    "z c s": "a ai an ang ao e ei en eng i ong ou u uan ui un uo",
    "y": "a an ang ao e i in ing ong ou u uan ue un",
    "w": "a ai an ang ei en eng o u",
}
_PINYIN = sorted(
    {a + b for initials, finals in _FINALS.items() for a in initials.split() for b in finals.split()}
    | {"an", "ang", "ai", "ao", "en", "er", "ou", "e"},
    key=len,
    reverse=True,
)
# Of Taiwan and Hong Kong, which spell the same sounds otherwise.
_OTHER_CHINESE = word_set(
    """
    chih hsien hsin hsuan chieh chien chiu chun ching chuan chung hsiang hsiao hsueh hui hung jen jui jung kai kuan
    kuang kuo liang lun mei ming pei pin po shan shih shu tien ting tsung tung tze wei wen yen yi ying yu yuan yun
    tai man ka wai siu kit yan wing yin kwan hei pui lok sze tsz yee hoi fai fung ho kei keung kin kwok lai lam lap mei
    on pak po sau shing shuk suet sum tak tin tung wah yat yiu yuk kwong chi hin him hang hoi lun
    """
)
_KOREAN = word_set(
    """
    min jun seo yeon ji hoon eun hyun woo soo ah tae yang ha na young hee jin ho sung seung hye kyung sun jae won mi ran
    kyu dong chul sang hwan seok joon hyuk in a hwa rim ri bin yoon yun do kwang ki wook sook myung nam geun gyu bo ra
    ram sol ye chan ju joo si su hyo jeong jung ok nari byung chang chae da hyeon kyeong yeong hun dae gyeong il jong
    rae seol so song tak u uk yu
    """
)
_VIETNAMESE = word_set(
    """
    an anh bao bich binh chau chi cuc cuong dat diem diep dinh duc dung duong giang ha hai han hang hanh hau hien hieu
    hoa hoai hoan hoang hong hue hung huong huu huy huyen khai khang khanh khoa khoi khue kien kiet kim ky lam lan le
    lien linh loan loc loi long luan luong ly mai man manh minh my nam nga ngan nghia ngoc nguyen nguyet nha nhan nhat
    nhi nhu nhung nga oanh phat phi phong phu phuc phung phuoc phuong quan quang que quoc quy quyen quynh sang son suong
    tai tam tan thach thai thanh thang thao the thi thien thinh tho thoa thu thuan thuc thuy thuong tien tin toan trang
    tri trieu trinh trong truc trung truong tu tuan tue tung tuong tuyen tuyet uyen van vi viet vinh vu vuong xuan y yen
    """
)
_VIETNAMESE_LAST = word_set(
    """
    nguyen tran le pham huynh hoang phan vu vo dang bui do ho ngo duong ly trinh dinh truong luong mai dao doan lam cao
    chau thai quach tong to ta
    """
)
_VIETNAMESE_LETTER = re.compile("[ăđơưĂĐƠƯ\u1ea0-\u1ef9]")
_PLAIN = Kind.WORD | Kind.RARE_WORD | Kind.FOREIGN_WORD
_MOST_GIVEN = 3


def is_vietnamese(word: str) -> bool:
    """Whether a word has letters that only Vietnamese has."""
    return _VIETNAMESE_LETTER.search(word) is not None


@cache
def _pinyin_syllables(folded: str) -> int:
    """How many syllables of pinyin a word is made of, 0 where it is not; at most three are counted."""
    pending = [(folded, 0)]
    while pending:
        rest, n = pending.pop()
        if not rest:
            return n
        if n < 3:
            pending += [(rest[len(each) :], n + 1) for each in reversed(_PINYIN) if rest.startswith(each)]
    return 0


def is_given_in_syllables(word: str) -> bool:
    """Whether a word that is nothing else is a given name of two Chinese or Korean syllables.

    >>> [is_given_in_syllables(word) for word in ("Xiaoming", "Seo-yeon", "Yi-Chun", "Table", "Dubai", "T-Shirt")]
    [True, True, True, False, False, False]
    """
    folded = fold(word)
    if "-" in folded:
        parts = folded.split("-")
        is_korean = all(part in _KOREAN for part in parts)
        return len(parts) == 2 and (is_korean or all(_is_chinese_syllable(part) for part in parts))
    kind = kinds_of(word)
    is_free = not kind & (_PLAIN | Kind.PLACE)
    if not is_free or len(folded) < 4 or not folded.isascii():
        return False
    return _pinyin_syllables(folded) == 2 or (len(folded) > 4 and _is_korean_pair(folded))


def _is_korean_pair(folded: str) -> bool:
    """Whether a word is two Korean syllables, of three letters or more at least one: ``Jihoon``, ``Minseo``."""
    return any(folded[:at] in _KOREAN and folded[at:] in _KOREAN for at in range(2, len(folded) - 1))


def _is_chinese_syllable(folded: str) -> bool:
    return folded in _OTHER_CHINESE or (folded.isascii() and _pinyin_syllables(folded) == 1)


def eastern_length(words: Sequence[str]) -> int:
    """How many of these words are a Chinese, Korean or Vietnamese name, 0 where they do not begin with one.

    >>> [eastern_length(text.split()) for text in ("Wang Xiaoming", "Do Van Hung", "Park Seo-yeon", "Ruoxi Tang")]
    [2, 3, 2, 2]
    >>> [eastern_length(text.split()) for text in ("Chan Tai Man", "Long Beach", "Sun Rises", "He Said", "An Order")]
    [3, 0, 0, 0, 0]
    """
    if len(words) < 2:
        return 0
    first, second = fold(words[0]), words[1]
    is_last = bool(kinds_of(words[0]) & Kind.EASTERN_LAST)
    if first in _VIETNAMESE_LAST:
        length = _vietnamese_length(words)
        if length:
            return length
    if is_last and is_given_in_syllables(second):
        return 2
    if is_last and len(words) > 2 and not kinds_of(words[0]) & Kind.WORD:
        given = [fold(word) for word in words[1:3]]
        if all(word in _OTHER_CHINESE for word in given):
            return 3
    is_given = is_given_in_syllables(words[0]) or (kinds_of(words[0]) & Kind.FIRST and not kinds_of(second) & _PLAIN)
    return 2 if is_given and kinds_of(second) & Kind.EASTERN_LAST else 0


def _vietnamese_length(words: Sequence[str]) -> int:
    n_given = 0
    for word in words[1 : 1 + _MOST_GIVEN]:
        if fold(word) not in _VIETNAMESE and not is_vietnamese(word):
            break
        n_given += 1
    is_clear = is_vietnamese("".join(words[: 1 + n_given])) or not kinds_of(words[0]) & _PLAIN
    return 1 + n_given if n_given > 1 or (n_given and is_clear) else 0
