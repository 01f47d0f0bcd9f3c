"""Names of people in scripts without capital letters: Chinese, Japanese, Korean, Arabic, Hebrew, Devanagari, Thai.

Nothing about a word's form says that it is a name there. Surnames, titles, words that announce a name and lists of
names do; each script has its own rules, and where only one sign speaks for a name, there is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentunit.privacy.detection.gazetteer import Kind, entries, fold, word_set
from agentunit.privacy.findings import CATALOG_CONFIDENCE, Finding

_CONFIDENCE = CATALOG_CONFIDENCE["name"]
_HAS_SCRIPT = re.compile("[\u0590-\u06ff\u0900-\u097f\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")

_CHINESE_LAST = (
    "王李张劉刘陈陳杨楊黄黃赵趙吴吳周徐孙孫马馬朱胡郭何高林罗羅郑鄭梁谢謝宋唐许許韩韓冯馮邓鄧曹彭曾肖蕭田董袁潘于蒋蔣蔡余杜叶葉程苏蘇魏"
    "吕呂丁任沈姚卢盧姜崔钟鍾谭譚陆陸汪范金石廖贾賈夏韦韋付方白邹鄒孟熊秦邱江尹薛闫段雷侯龙龍史陶黎贺賀顾顧毛郝龚邵万萬钱錢严嚴武戴莫孔向汤湯"
)
_CHINESE_DOUBLE_LAST = "欧阳|歐陽|司马|司馬|上官|诸葛|諸葛|夏侯|东方|皇甫|尉迟|公孙|慕容|令狐|宇文|司徒"
_CHINESE_GIVEN = frozenset(
    "伟芳娜敏静丽强磊军洋勇艳杰娟涛明超秀霞平刚桂英华玉兰建国志文斌宇浩轩梓涵欣怡子睿博雨晨思佳琪梦瑶俊凯鑫鹏飞辉红梅燕玲莉萍雪琳颖"
    "慧婷婉淑珍凤云春兵峰山波宏海龙亮毅诚信仁义德福禄寿喜成立新民东南西北天一豪昊然泽航嘉诺妍可心语彤诗若曦晓小大少冬秋月星阳光辰逸"
    "翔瑞祥庆永恒安康宁乐健康龄彬彦伦哲维良友才学进利荣昌旭晶洁倩岚菲茜蕾薇莹璐珊瑾瑜璇蓉芬芸荷莲菊竹松柏森林树家业美雅美惠君"
    "偉麗強軍艷傑濤華蘭國誠義龍鳳雲樂寧學進榮潔薇瑩業樹東陽慶豐恩俐珮綺儀庭郁宗翰冠廷柏宥品妤筱雯怡君宜蓁淳宸"
)
_CHINESE_TITLE = (
    "先生|女士|小姐|太太|夫人|老师|老師|经理|經理|医生|醫生|教授"
    "|博士|主任|律师|律師|同学|同學|总监|总|董事长|师傅|護士|护士"
)
_CHINESE_CUE = (
    "我叫|我是|他叫|她叫|名叫|叫做|姓名(?:是|为|為)?|名字(?:是|叫)?|联系人|聯絡人|收件人|收货人|寄件人|客户|客戶|乘客|患者|病人|员工|員工"
    "|用户|同事|尊敬的|亲爱的|親愛的|请找|找|联系|聯絡|致电给|感谢|感謝|由|跟|与|和|给"
)
_HAN = "\u3400-\u9fff"
_CHINESE = re.compile(
    rf"(?P<cue>(?:{_CHINESE_CUE})[::是为為]?[ 　]?)?(?P<name>"
    rf"(?:{_CHINESE_DOUBLE_LAST}|[{_CHINESE_LAST}])[{_HAN}]{{0,2}}?)"
    rf"(?P<title>{_CHINESE_TITLE})|"
    rf"(?P<cue2>(?:{_CHINESE_CUE})[::]?[ 　]?)?(?P<name2>(?:{_CHINESE_DOUBLE_LAST}|[{_CHINESE_LAST}])[{_HAN}]{{1,2}})"
)
_AFTER_CHINESE = re.compile(
    rf"(?![{_HAN}])|(?:说|說|表示|称|在|的|是|已|要求|申请|申請|负责|負責|先生|女士|您好|你好|今天|昨天|明天|和|与|與|来|去|将|將|会|會|有|于|於|打|给|給|为|為|对|向|签|簽|买|買)"
)
_NO_CHINESE_NAME = word_set(
    """
    高兴 高興 方便 方法 方面 方式 方向 方案 明天 白天 金额 金額
    余额 余額 马上 馬上 任何 任务 任務 安全 安排 黄金 黃金 石油
    何时 何時 何处 如何 向您 向你 和你 和您 白色 黄色 黃色 高级
    高級 高度 江苏 江蘇 金融 钱包 錢包 万一 史上 严重 嚴重 成功
    毛病 龙头 江西 高铁 武汉 武漢 石家 任意 程序 程度 范围 沈阳
    高中 林业 金属 周末 周年 周一 周二 周三 周四 周五 周六 周日
    """
)

_JAPANESE_LAST = re.compile(
    "佐藤|鈴木|高橋|田中|伊藤|渡辺|渡邊|山本|中村|小林|加藤|吉田|山田|佐々木|山口|松本|井上|木村|林|斎藤|斉藤|清水|山崎|森|池田|橋本|阿部"
    "|石川|山下|中島|石井|小川|前田|岡田|長谷川|藤田|後藤|近藤|村上|遠藤|青木|坂本|福田|太田|西村|藤井|金子|岡本|藤原|三浦|中野|中川|原田"
    "|松田|竹内|小野|田村|中山|和田|石田|森田|上田|原|内田|柴田|酒井|宮崎|横山|高木|安藤|宮本|大野|小島|工藤|谷口|今井|高田|増田|丸山|杉山"
    "|村田|大塚|新井|小山|平野|藤本|河野|上野|野口|武田|松井|千葉|菅原|岩崎|久保|木下|佐野|野村|松尾|菊地|市川|杉本|古川|大西|島田|水野|桜井"
    "|高野|渡部|吉川|山内|西田|飯田|菊池|西川|小松|北村|安田|五十嵐|川口|平田|関|中田|久保田|服部|東|岩田|土屋|川崎|福島|本田|辻|樋口|秋山|永井"
)
_JAPANESE = re.compile(
    rf"(?P<cue>(?:私は|わたしは|僕は|名前は|氏名[は::]?|担当(?:者)?[のは::]?|お客様[のは::]?|宛名[は::]?)[ 　]?)?"
    rf"(?P<last>{_JAPANESE_LAST.pattern})(?P<given>[ 　]?[\u3400-\u9fff々]{{1,3}}?|[ 　]?(?!さん|さま"
    rf"|くん|ちゃん|です|から|まで|では|には)[\u3040-\u309f]{{2,4}}?|[ 　]?[\u30a0-\u30ff]{{2,5}}?)?"
    r"(?P<after>さん|様|さま|氏|君|くん|ちゃん|先生|社長|部長|課長|係長|と申します|と言います|といいます|です|[はがにをへと][^\u3040-\u309f]|$|[、。,.!!??\n)）」])"
)

_KOREAN_LAST = (
    "김이박최정강조윤장임한오서신권황안송류전홍고문양손배백허유남심노하곽성차주우"
    "구민진지엄채원천방공현함변염여추도소석선설마길연위표명기반왕금옥육인맹제모탁국"
)
_KOREAN_GIVEN = frozenset(
    "민준서연지우현수영은혜진호성윤하예재석태경미희정숙자옥순철상훈기원동승아나라빈솔찬규형근환욱섭식용광종병창길주인유소도윤건시율채린"
    "다온슬별봄이안가람새결한봉복춘명덕선화란향분임례남애림열택권학균관웅혁"
)
_KOREAN = re.compile(
    rf"(?<![가-힣])(?P<cue>(?:저는|제 이름은|이름은|이름|성함은|성함|성명"
    rf"|고객명|고객|담당자는|담당자|수령인|받는 분|환자|직원)[ ::]{{1,2}})?"
    rf"(?P<name>[{_KOREAN_LAST}][가-힣]{{2}})(?P<after>[ ]?(?:씨"
    rf"|님|선생님|과장|대리|부장|교수|의사|사장|팀장|고객님|군|양)"
    r"|(?:입니다|이에요|예요|이라고|라고|이고|은|는|이|가|을|를|의|에게|께서|와|과|도|한테)(?![가-힣]{2})|(?![가-힣]))"
)

_ARABIC_TITLE = "السيد|السيدة|الآنسة|الدكتور|الدكتورة|د\\.|الأستاذ|الأستاذة|الشيخ|المهندس|المهندسة|الأخ|الأخت|الحاج"
_ARABIC_CUE = (
    "العميل|العميلة|المريض|المريضة|اسمي|اسمه|اسمها|الاسم|اسم العميل"
    "|يدعى|تدعى|المدعو|أنا|مع|إلى|عزيزي|عزيزتي|مرحبا|مرحباً|أهلا"
)
_ARABIC_WORD = "[\u0621-\u064a\u064b-\u0652]{2,}"
_HEBREW_TITLE = "מר|גב'|גברת|ד\"ר|ד״ר|פרופ'|פרופסור|עו\"ד|הרב|אדון"
_HEBREW_CUE = "הלקוח|הלקוחה|המטופל|המטופלת|שמי|שמו|שמה|קוראים לי|השם שלי(?: הוא)?|שם|לכבוד|אני|שלום|היי|עם|אל"
_HEBREW_WORD = "[\u05d0-\u05ea][\u05d0-\u05ea'׳\"״-]+"
_HINDI_TITLE = "श्री|श्रीमती|सुश्री|कुमारी|डॉ\\.?|डॉक्टर|प्रो\\.?|पंडित"
_HINDI_CUE = "ग्राहक|मरीज|मेरा नाम|मेरे नाम|नाम|उसका नाम|उनका नाम|प्रिय|नमस्ते"
_HINDI_WORD = "[\u0900-\u0963\u0970-\u097f]{2,}"
_THAI = re.compile(
    "(?<![\u0e00-\u0e7f])(?:(?:นางสาว|นาย|นาง|คุณ|ด\\.ช\\.|ด\\.ญ\\.|เด็กชาย|เด็กหญิง"
    "|ดร\\.|อาจารย์|หมอ)[ ]?|(?:ชื่อ|ผมชื่อ|ดิฉันชื่อ|ชื่อ-นามสกุล)[ ::]{0,2})"
    "(?P<name>[\u0e01-\u0e4e]{2,14}(?:[ ][\u0e01-\u0e4e]{3,18})?)"
)
_THAI_PLAIN = word_set("ลูกค้า ครับ ค่ะ ต้องการ สามารถ ได้รับ จะ มี ไม่ ภาพ ค่า สมบัติ แม่ พ่อ ครู ผู้ชาย อะไร สินค้า ไฟล์")
_PLAIN_AFTER_CUE = word_set(
    """
    هنا من في على إلى هذا هذه أن لا ما هو هي كل العميل المنتج الشركة الطلب المستخدم الملف أريد سعيد آسف لست
    כאן רוצה לא צריך מבקש את של זה הזה הלקוח המוצר החברה הקובץ המשתמש שמח עליכם לכם לך לקוח יקר
    है हैं का की के में से को क्या यह वह नहीं और ग्राहक आप हम मैं बताएं दर्ज लिखें बदलें जी
    """
)


def find_script_names(text: str) -> list[Finding]:
    """The names in these scripts, in order.

    >>> texts = ["请联系王小明先生。", "田中太郎様、こんにちは。", "저는 김민준입니다."]
    >>> [[text[f.start:f.end] for f in find_script_names(text)] for text in texts]
    [['王小明'], ['田中太郎'], ['김민준']]
    """
    if text.isascii() or not _HAS_SCRIPT.search(text):
        return []
    is_japanese = re.search("[\u3040-\u30ff]", text) is not None
    spans = [*(_japanese(text) if is_japanese else _chinese(text)), *_korean(text), *_thai(text)]
    spans += _spaced(text, _ARABIC_TITLE, _ARABIC_CUE, _ARABIC_WORD)
    spans += _spaced(text, _HEBREW_TITLE, _HEBREW_CUE, _HEBREW_WORD)
    spans += _spaced(text, _HINDI_TITLE, _HINDI_CUE, _HINDI_WORD)
    return [Finding("name", start, end, _CONFIDENCE, "name in script") for start, end in sorted(set(spans))]


def _chinese(text: str) -> Iterator[tuple[int, int]]:
    at = 0
    while (found := _CHINESE.search(text, at)) is not None:
        at = found.start() + 1
        group = "name" if found["name"] else "name2"
        start, end = found.span(group)
        has_cue = bool(found["cue"] or found["cue2"])
        if group == "name" and end - start == 1:
            if has_cue or not "\u3400" <= text[start - 1 : start] <= "\u9fff":
                yield start, end
            continue
        for length in (end - start, end - start - 1):
            name = text[start : start + length]
            if length < 2 or name in _NO_CHINESE_NAME or name[:2] in _NO_CHINESE_NAME:
                continue
            given = name[1:] if length < 4 else name[2:]
            n_typical = sum(letter in _CHINESE_GIVEN for letter in given)
            closing = _AFTER_CHINESE.match(text, start + length)
            is_open = start == 0 or not "\u3400" <= text[start - 1] <= "\u9fff" or has_cue
            is_announced = has_cue or group == "name"
            points = n_typical + 2 * (group == "name") + has_cue + is_open + bool(closing and closing.group())
            is_typical = n_typical == len(given)
            if points >= 3 and (closing or group == "name") and (is_announced or (is_open and is_typical)):
                yield start, start + length
                at = start + length
                break


def _japanese(text: str) -> Iterator[tuple[int, int]]:
    for found in _JAPANESE.finditer(text):
        start, given, after = found.start("last"), found["given"] or "", found["after"]
        is_titled = after not in ("", "です") and after[0] in "さ様氏君くち先社部課係と"
        before = text[start - 1 : start]
        is_inside = "\u3400" <= before <= "\u9fff" and not found["cue"]
        is_full = len(found["last"]) > 1 and len(given.strip()) == 2
        is_person = is_titled or found["cue"] or is_full
        if is_person and not is_inside:
            yield start, found.end("given") if given else found.end("last")


def _korean(text: str) -> Iterator[tuple[int, int]]:
    for found in _KOREAN.finditer(text):
        given, after = found["name"][1:], found["after"].strip()
        n_typical = sum(letter in _KOREAN_GIVEN for letter in given)
        is_titled = after[:1] in ("씨", "님", "선", "대", "부", "교", "사", "팀", "군", "양") and not after.startswith(
            "사람"
        )
        is_known = fold(given) in entries()
        if found["cue"] or (is_titled and n_typical) or (is_known and n_typical == 2):
            yield found.span("name")


def _thai(text: str) -> Iterator[tuple[int, int]]:
    for found in _THAI.finditer(text) if re.search("[\u0e00-\u0e7f]", text) else ():
        start, end = found.span("name")
        words = found["name"].split(" ")
        if any(words[0].startswith(plain) for plain in _THAI_PLAIN):
            continue
        if len(words) > 1 and any(words[1].startswith(plain) for plain in _THAI_PLAIN):
            end = start + len(words[0])
        yield start, end


def _spaced(text: str, title: str, cue: str, word: str) -> Iterator[tuple[int, int]]:
    """Names in a script that puts spaces between words: after a title or a cue, or of words that lists know."""
    runs = re.compile(rf"{word}(?:[ ]{word}){{0,11}}")
    is_title = re.compile(title).fullmatch
    titled = re.compile(rf"(?:^|[^\w])(?:ו|و)?(?P<title>{title})[ ]+$")
    announced = re.compile(rf"(?:^|[^\w])(?:{cue})(?:[ ]?[::])?[ ]+$")
    for run in runs.finditer(text):
        words = [
            (found.start(), found.end(), found.group()) for found in re.finditer(word, text[: run.end()][run.start() :])
        ]
        at = 0
        while at < len(words):
            start = run.start() + words[at][0]
            before = text[max(0, start - 24) : start]
            kinds = [_kind(each) for _, _, each in words[at : at + 4]]
            n_known = next((n for n, kind in enumerate(kinds) if not kind), len(kinds))
            is_titled, is_announced = titled.search(before), announced.search(before)
            first = words[at][2]
            is_plain = first in _PLAIN_AFTER_CUE or is_title(first) or (first.startswith("ال") and not kinds[0])
            is_short = len(words) > at + 1 and words[at + 1][2] in _PLAIN_AFTER_CUE
            length = 0 if is_plain else _length(kinds, n_known, bool(is_titled), bool(is_announced), is_short)
            if length:
                yield start, run.start() + words[min(at + length, len(words)) - 1][1]
            at += max(length, 1)


def _length(kinds: list[int], n_known: int, is_titled: bool, is_announced: bool, is_short: bool) -> int:
    """How many words of a run are a name that begins it; ``is_short`` where the second word is a plain one."""
    if is_titled:
        is_surname = kinds[0] == Kind.LAST or is_short
        return max(n_known, 1 if is_surname else min(2, len(kinds)))
    if is_announced and n_known:
        return n_known
    return n_known if n_known > 1 and kinds[0] & Kind.FIRST else 0


def _kind(word: str) -> int:
    known = entries()
    bare = fold(word)
    for prefix in ("", "ال"):
        kind = known.get(bare.removeprefix(prefix), 0)
        if kind:
            return kind & (Kind.FIRST | Kind.LAST)
    return Kind.LAST if word in ("بن", "ابن", "بنت", "أبو", "ابو", "آل", "בן", "בר", "सिंह", "कुमार", "देवी") else 0
