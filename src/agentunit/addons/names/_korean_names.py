"""Names in Korean script: a surname of one syllable and a given name of two, with a title, a cue or a particle."""

from __future__ import annotations

import collections
import functools
import re
from collections.abc import Iterator

from agentunit.addons.names.script_tables import kind_of

_LAST = (
    "김이박최정강조윤장임한오서신권황안송류전홍고문양손배백허유남심노하곽성차주우"
    "구민진지엄채원천방공현함변염여추도소석선설마길연위표명기반왕금옥육인맹제모탁국"
)
_FREQUENT_LAST = "김이박최정강조윤장임한오서신권황안송류홍배백남문손양허변염천엄길구진노주여심곽차추성공탁"
_DOUBLE_LAST = "남궁|황보|제갈|사공|선우|독고|서문"
_GIVEN = frozenset(
    "민준서연지우현수영은혜진호성윤하예재석태경미희정숙자옥순철상훈기원동승아나라빈솔찬규형근환욱섭식용광종병창길주인유소도윤건시율채린"
    "다온슬별봄이안가람새결한봉복춘명덕선화란향분임례남애림열택권학균관웅혁담겸해루리보송산세엽범늘비울샘찬별솔휘"
)
# Syllables that end plain words rather than given names: "user", "condition", "settings".
_NO_ENDS = "자주식화시기용부사장도물과적법품구료지"
# Stems of verbs end so ("조회하는"), and given names: 김민하. Hardly a plain word begins with these surnames.
_VERB_ENDS, _NO_WORDS = "하되한", "김박최"
_SHAPES = frozenset(f"{each}형" for each in "소대중기모체정유원변동신구성인균지도")
_CUE = (
    "저는|제 이름은|이름은|이름|성함은|성함|성명|고객명|고객|담당자는|담당자|수령인|받는 분|받는 사람"
    "|보내는 사람|환자|직원|회원|예약자|신청자|승객|예금주|대표|사원|친구|동료|남편|아내|아들|딸|동생|의뢰인"
)
_TITLE = (
    "씨|님|선생님|선생|과장|대리|부장|교수|의사|사장|팀장|고객님|군|양|대표|원장|변호사|박사|이사|차장|실장"
    "|간호사|기자|선수|감독|회원|환자|고객|사원|주임"
)
_NAME = re.compile(
    rf"(?<![가-힣])(?P<cue>(?:{_CUE})[ :：]{{1,2}})?(?P<name>(?:{_DOUBLE_LAST})[가-힣]{{1,2}}"
    rf"|[{_LAST}][가-힣]{{2}}|[{_LAST}][가-힣](?=[ ]?(?:{_TITLE})))"
    rf"(?P<after>[ ]?(?:{_TITLE})(?![가-힣]{{3}})"
    r"|(?:입니다|이에요|예요|이라고|라고|이고|이며|은|는|이|가|을|를|의|에게|께서|께|와|과|도|한테|랑|이랑|으로|로|에)(?![가-힣]{2})|(?![가-힣]))"
)


@functools.cache
def _syllables() -> tuple[frozenset[str], frozenset[str]]:
    """The syllables that begin given names, and those that end them."""
    names = [name for name in kind_of("ko", "first") if len(name) == 2]
    ends = [collections.Counter(name[at] for name in names) for at in (0, 1)]
    begin, finish = (frozenset(letter for letter, count in each.items() if count > 3) for each in ends)
    return begin, finish


def _is_stem(given: str, after: str) -> bool:
    """Whether what looks like a given name and a particle can be a verb: "이용하는"."""
    return given[-1] in _VERB_ENDS and after.startswith(("는", "도"))


def find_korean_names(text: str) -> Iterator[tuple[int, int]]:
    """Where the names of a text in Korean script stand.

    >>> text = "고객 박서연 님이 김민준에게 서비스 가입을 요청했습니다."
    >>> [text[start:end] for start, end in find_korean_names(text)]
    ['박서연', '김민준']
    """
    given_names, words = kind_of("ko", "first"), kind_of("ko", "word")
    at = 0
    while (found := _NAME.search(text, at)) is not None:
        at = max(found.start() + 1, found.end("name"))
        name, after = found["name"], found["after"].strip()
        given = name[2:] if re.match(_DOUBLE_LAST, name) else name[1:]
        begin, finish = _syllables()
        n_typical = sum(letter in _GIVEN or letter in begin or letter in finish for letter in given)
        is_titled = re.match(_TITLE, after) is not None and not after.startswith("사람")
        is_known = given in given_names
        if name in words:
            continue
        is_formed = len(given) == 2 and given[0] in begin and given[1] in finish and name[0] in _FREQUENT_LAST
        is_person = after.startswith(("에게", "께", "한테", "랑", "이랑")) or (
            after.startswith(("은", "는", "의", "도", "입니다", "이에요", "예요"))
            and given[-1] not in _NO_ENDS
            and (name[0] in _NO_WORDS or not (given in _SHAPES or _is_stem(given, after)))
        )
        # "이름 변경" renames something: a word with no colon or particle after it announces little.
        is_cued = found["cue"] and (n_typical == len(given) or is_known or found["cue"].rstrip()[-1] in ":：는은")
        if (
            (is_cued and n_typical)
            or (is_titled and n_typical == len(given))
            or (is_known and n_typical == 2 and name[0] in _FREQUENT_LAST)
            or (is_formed and is_person)
        ):
            yield found.span("name")
