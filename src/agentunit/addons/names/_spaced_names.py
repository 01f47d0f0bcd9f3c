"""Names in Arabic, Hebrew and Devanagari script, which part words by spaces but have no capital letters."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import NamedTuple

from agentunit.addons.names.script_tables import bare, kind_of
from agentunit.privacy.detection.gazetteer import word_set
from agentunit.privacy.detection.gazetteer import words as words_of


class _Script(NamedTuple):
    language: str
    word: str
    titles: frozenset[str]
    cues: str
    prefixes: tuple[str, ...]
    """Small words that are written together with the next one: "and", "to", "in"."""
    inside: frozenset[str]
    """Words that stand between the parts of a name: "ibn"."""
    after: frozenset[str]
    """Words after which speak for a name: Hindi's postpositions, verbs of saying."""


_ARABIC = _Script(
    "ar",
    "[\u0621-\u064a\u064b-\u0652\u067e\u0686\u0698\u06a9\u06af\u06cc]{2,}",
    word_set(
        "السيد السيدة الآنسة الدكتور الدكتورة د دكتور دكتورة الأستاذ الأستاذة أستاذ الشيخ المهندس المهندسة"
        " الأخ الأخت الحاج الحاجة"
        " سيد سيدة النقيب القاضي المحامي المحامية الطبيب الطبيبة الممرضة الوزير الرئيس الأمير الأميرة الملك"
        " آقای خانم دکتر مهندس"
    ),
    "العميل|العميلة|المريض|المريضة|اسمي|اسمه|اسمها|الاسم|الاسم الكامل|اسم العميل|يدعى|تدعى|المدعو|المدعوة"
    "|أنا|مع|إلى|من|عزيزي|عزيزتي|مرحبا|مرحباً|أهلا"
    "|الموظف|الموظفة|المستخدم|الزبون|الراكب|المسافر|صديقي|صديقتي|زميلي|زميلتي|ابني|ابنتي|زوجتي|زوجي|أخي|أختي|قال|قالت|يقول|اتصل|اتصلت|طلب|طلبت|باسم|السائق|المدير|المديرة|مدير|نام|اسم",
    ("و", "ل", "ب", "ف", "لل"),
    word_set("بن ابن بنت بنتا أبو ابو أبي آل أم عبد ابي"),
    word_set("قال قالت طلب طلبت اتصل اتصلت يعمل تعمل يسكن تسكن كتب كتبت أرسل أرسلت وصل وصلت يريد تريد رحمه"),
)
_HEBREW = _Script(
    "he",
    "[\u05d0-\u05ea][\u05d0-\u05ea'׳\"״-]+",
    word_set(
        "מר גב' גברת ד\"ר ד״ר פרופ' פרופסור עו\"ד עו״ד הרב אדון דוקטור גב׳ הגברת האדון רב השופט השופטת הדוקטור סגן סרן"
    ),
    "הלקוח|הלקוחה|המטופל|המטופלת|שמי|שמו|שמה|קוראים לי|קוראים לו|קוראים לה|השם שלי|השם שלי הוא|שם|השם"
    "|שם מלא|לכבוד|אני|שלום|היי|עם|אל|של|את|הנוסע|הנוסעת|העובד|העובדת|חברי|חברתי|בעלי"
    "|אשתי|אחי|אחותי|בני|בתי|אמר|אמרה|המנהל|המנהלת|הרופא|הרופאה|הנהג|ידידי|תודה|מאת|על ידי|היקר|היקרה|יקר|יקרה",
    ("ו", "ל", "ב", "מ", "ש", "כ", "ה", "ול", "של", "וש", "שמ"),
    word_set("בן בר בת אבן אבו"),
    word_set(
        "אמר אמרה ביקש ביקשה כתב כתבה התקשר התקשרה גר גרה עובד עובדת הזמין הזמינה רוצה שלח שלחה קנה קנתה"
        " טען טענה פנה פנתה"
    ),
)
_HINDI = _Script(
    "hi",
    "[\u0900-\u0963\u0970-\u097f]{2,}",
    word_set(
        "श्री श्रीमती सुश्री कुमारी डॉ डॉ. डॉक्टर प्रो प्रो. पंडित प्रोफेसर श्रीमान मिस्टर मिस मिसेज़ वकील"
        " न्यायाधीश इंजीनियर मौलाना स्वामी बाबा"
    ),
    "ग्राहक|मरीज|मरीज़|मेरा नाम|मेरे नाम|नाम|उसका नाम|उनका नाम|पूरा नाम|प्रिय|नमस्ते|कर्मचारी|यात्री|सदस्य"
    "|दोस्त|मित्र|भाई|बहन|पति|पत्नी|बेटा|बेटी|बेटे|पिता|माता|सहकर्मी|मैनेजर|प्रबंधक|ड्राइवर|छात्र|छात्रा"
    "|मैं|हैलो|आवेदक|खाताधारक|रोगी|नर्स|शिक्षक",
    (),
    word_set("कुमार कुमारी सिंह देवी लाल प्रसाद चंद्र चन्द्र राम नाथ बाई बेन"),
    word_set("ने जी को से का की के और द्वारा हूँ हूं है हैं नाम साहब साहिब कहा"),
)
SCRIPTS = (("\u0590", "\u05ff", _HEBREW), ("\u0600", "\u06ff", _ARABIC), ("\u0900", "\u097f", _HINDI))
# Words after which nothing but a name can stand.
_NAMING = re.compile(
    "(?:नाम|ग्राहक|यात्री|मरीज|रोगी|नमस्ते|שמי|קוראים ל[יוה]|שם מלא|הלקוחה?|המטופלת?|הנוסעת?|اسمي|اسمه"
    "|اسمها|باسم|العميلة?|المريضة?|يدعى|تدعى)[ ]?[:：]?[ ]+\\Z"
)
_FIRST, _LAST, _PLAIN = 1, 2, 4
_MOST_WORDS = 5
_FIRST_ENDINGS = {
    "hi": words_of(
        """
        ेश ेंद्र राज कांत जीत पाल देव नाथ दीप प्रीत शंकर चंद लाल राम कुमार िता िका ाली ेश्वरी
        लता मती प्रिया श्री ांशु नील ुद्दीन ुल्ला ंदर िंदर ोत्तमा नायक वंत मोहन प्रसाद
        """
    )
}
_SURNAME_ENDINGS = {
    "he": (
        "צוויג",
        "הולץ",
        "בלט",
        "ביץ",
        "ברג",
        "שטיין",
        "מן",
        "סקי",
        "צקי",
        "אני",
        "שווילי",
        "ויץ",
        "בלום",
        "פלד",
        "באום",
        "אוב",
        "ייב",
    ),
    "ar": ("اني", "اوي", "زاده", "پور", "نژاد", "يان"),
    "hi": (
        "नका",
        "ुले",
        "ियार",
        "हनी",
        "वाणी",
        "ोत्रा",
        "र्जी",
        "टकर",
        "णकर",
        "लावत",
        "ग्गल",
        "वालिया",
        "वाल",
        "कर",
        "वाला",
        "राव",
        "अप्पा",
        "स्वामी",
        "मूर्ति",
        "नाथन",
        "रेड्डी",
        "जी",
        "गर",
        "याल",
        "ोटिया",
    ),
}


@functools.cache
def _kinds(language: str) -> dict[str, int]:
    kinds: dict[str, int] = {}
    for kind, bit in (("first", _FIRST), ("last", _LAST), ("word", _PLAIN)):
        for word in kind_of(language, kind):
            kinds[word] = kinds.get(word, 0) | bit
    return kinds


@functools.cache
def _patterns(language: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    script = next(each for *_, each in SCRIPTS if each.language == language)
    words = re.compile(script.word)
    cue = re.compile(rf"(?:^|[^\w])(?:[ולב]|و)?(?:{script.cues})[ ]?[:：,،-]?[ ]+\Z")
    return words, cue


def find_spaced_names(text: str, script: _Script) -> Iterator[tuple[int, int]]:
    """Where the names of a text in one of these scripts stand.

    >>> texts = [("התקשר לדנה כהן.", _HEBREW), ("اتصلت فاطمة الزهراني", _ARABIC), ("राहुल वर्मा ने कहा", _HINDI)]
    >>> [[text[start:end] for start, end in find_spaced_names(text, script)] for text, script in texts]
    [['דנה כהן'], ['فاطمة الزهراني'], ['राहुल वर्मा']]
    """
    word_pattern, cue_pattern = _patterns(script.language)
    words = [(found.start(), found.end(), found.group()) for found in word_pattern.finditer(text)]
    at = 0
    while at < len(words):
        length, skipped = _name_at(text, words, at, script, cue_pattern)
        if length:
            yield words[at][0] + skipped, words[at + length - 1][1]
        at += max(length, 1)


def _name_at(
    text: str, words: list[tuple[int, int, str]], at: int, script: _Script, cue: re.Pattern[str]
) -> tuple[int, int]:
    """How many words from here are a name, and how many letters of the first belong to a word before it."""
    start, _, first = words[at]
    is_titled = at > 0 and _is_title(words[at - 1][2], script) and text[words[at - 1][1] : start].strip(" .'\"") == ""
    has_cue = cue.search(text, max(0, start - 24), start) is not None
    is_strong = has_cue and _NAMING.search(text, max(0, start - 16), start) is not None
    kind, skipped = _kind(first, script, strips=True)
    is_cue = f"|{first}|" in f"|{script.cues}|" and len(words) > at + 1
    if is_cue and _kind(words[at + 1][2], script, strips=False)[0] & _FIRST:
        return 0, 0
    if first in script.titles or (bare(first) in script.inside and not kind & _FIRST):
        return 0, 0
    kinds = [kind]
    for number in range(at + 1, min(len(words), at + _MOST_WORDS)):
        if text[words[number - 1][1] : words[number][0]] not in (" ", "-", " - "):
            break
        kinds.append(_kind(words[number][2], script, strips=False)[0])
    length = _length([word for _, _, word in words[at : at + len(kinds)]], kinds, script, is_titled, has_cue, is_strong)
    if length == 1 and not is_titled and (kind & _PLAIN or not kind & _FIRST):
        return 0, 0
    if length == 1 and not (is_titled or has_cue):
        follows = words[at + 1][2] if at + 1 < len(words) else ""
        is_certain = not skipped and len(first) > 3 and bare(first) in kind_of(script.language, "sure")
        is_said = is_certain or bare(follows) in {bare(each) for each in script.after} or follows in script.after
        if not is_said or skipped:
            return 0, 0
    return length, skipped


def _length(
    words: list[str], kinds: list[int], script: _Script, is_titled: bool, has_cue: bool, is_strong: bool
) -> int:
    """How many of these words are a name that begins with the first of them."""
    kind = kinds[0]
    is_name = bool(kind & (_FIRST | _LAST))
    is_open = is_titled or has_cue
    if not is_name:
        # Nobody is known by it: a title must announce it, or a surname that is known follow.
        if kind & _PLAIN or words[0] in script.after or words[0].startswith("ال"):
            return 0
        follows = kinds[1] if len(kinds) > 1 else _PLAIN
        is_last = bool(follows & _LAST) and (not follows & _PLAIN or (has_cue and is_strong))
        is_last = is_last or (not follows and _has_surname_ending(words[1], script.language))
        looks_first = words[0].endswith(_FIRST_ENDINGS.get(script.language, ("-",)))
        is_said = len(words) > 2 and words[2] in script.after
        if not follows and looks_first and is_said and len(words[1]) > 2 and words[1] not in script.after:
            return 2
        if is_last and (is_open or (script.language == "hi" and not follows & _FIRST and (follows or is_said))):
            return 3 if len(kinds) > 2 and kinds[2] & _LAST and not kinds[2] & _PLAIN else 2
        if not (is_titled or (has_cue and is_strong)):
            return 0
        goes_on = len(kinds) > 1 and not follows & _PLAIN and words[1] not in script.after
        return 2 if goes_on else int(is_titled)
    if kind & _PLAIN and not is_titled and not kind & _FIRST:
        return 0
    length, n_sure = 1, int(not kind & _PLAIN)
    has_last = False
    for number in range(1, len(words)):
        word, each = words[number], kinds[number]
        if bare(word) in script.inside and number + 1 < len(words) and not each & _PLAIN:
            continue
        is_part = bool(each & (_FIRST | _LAST)) or _has_surname_ending(word, script.language)
        if not is_part or (word in script.after and not each & _LAST):
            # An unknown word after a name that is certain is its surname, where a word after it speaks for one.
            is_unknown = not each and len(bare(word)) > 2 and length == 1 and kind & _FIRST and word not in script.after
            next_word = words[number + 1] if number + 1 < len(words) else ""
            if is_unknown and (
                (is_open and (n_sure or is_strong or is_titled)) or (n_sure and next_word in script.after)
            ):
                length = number + 1
            break
        if each & _PLAIN and not each & _LAST and not n_sure:
            break
        length = number + 1
        n_sure += not each & _PLAIN
        has_last = has_last or bool(each & _LAST)
    if length > 1:
        return (
            length
            if n_sure or is_open or (has_last and kind & _FIRST and length == 2 and script.language == "he")
            else 0
        )
    return 1 if is_titled or not kind & _PLAIN else 0


def _is_title(word: str, script: _Script) -> bool:
    return word in script.titles or (bool(script.prefixes) and word[1:] in script.titles)


def _kind(word: str, script: _Script, *, strips: bool) -> tuple[int, int]:
    """What a word can be, and how many letters of it belong to a word before it."""
    known = _kinds(script.language)
    plain = bare(word)
    kind = known.get(plain, 0)
    if plain.startswith("ال") and known.get(plain[2:], 0) & _PLAIN and not plain.endswith("ي"):
        kind |= _PLAIN
    elif not kind and plain.startswith("ال") and known.get(plain[2:], 0) & _LAST and plain.endswith("ي"):
        kind = _LAST
    if not kind and script.language == "he" and "-" in plain:
        parts = [known.get(part, 0) for part in plain.split("-") if part]
        kind = functools.reduce(lambda one, other: one & other, parts) if parts else 0
        kind = kind or (_LAST if plain.startswith(("בן-", "בר-", "אבו-")) else 0)
    if kind or not strips:
        return kind, 0
    for prefix in script.prefixes:
        rest = known.get(bare(word[len(prefix) :]), 0) if word.startswith(prefix) and len(word) > len(prefix) + 2 else 0
        if rest & _FIRST and not rest & _PLAIN:
            return rest, len(prefix)
    return 0, 0


def _has_surname_ending(word: str, language: str) -> bool:
    plain = bare(word)
    is_unknown = not _kinds(language).get(plain, 0)
    if language == "ar" and plain.startswith("ال"):
        return is_unknown and len(plain) > 5 and plain.endswith("ي") and not _kinds(language).get(plain[2:], 0)
    return is_unknown and len(plain) > 4 and plain.endswith(_SURNAME_ENDINGS[language])
