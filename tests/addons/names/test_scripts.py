"""Names in scripts without capital letters, with near misses: plain sentences in which nobody is named."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Callable
from types import FrameType
from urllib.parse import quote

import pytest

from agentunit.addons.names._script_names import find_script_names
from agentunit.privacy.detectors import PatternDetector
from agentunit.privacy.findings import PII_TYPES
from agentunit.privacy.pseudonyms import Pseudonyms
from agentunit.privacy.redaction import Redactor
from agentunit.privacy.spellings import KnownValues


def found(text: str) -> list[str]:
    return [text[each.start : each.end] for each in find_script_names(text)]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("请把这份文件交给陈思远，谢谢。", ["陈思远"]),
        ("昨天赵文博给客服打了电话。", ["赵文博"]),
        (
            "您好我想咨询一下我的订单什么时候可以送到因为我已经等了很多天了我叫陈思远"
            "手机号码已经登记请尽快帮我查询并且安排客服人员给我回电话非常感谢你们的帮助和支持",
            ["陈思远"],
        ),
        ("欧阳雪女士和馬先生在大厅等候。", ["欧阳雪", "馬"]),
        ("合同已由约翰·史密斯签字。", ["约翰·史密斯"]),
        ("預訂人：陳俊傑，兩位成人。", ["陳俊傑"]),
        ("黒田大輔さんから電話がありました。", ["黒田大輔"]),
        ("担当の佐藤さくらと申します。", ["佐藤さくら"]),
        ("返金先は西田 彩花の口座です。", ["西田 彩花"]),
        ("昨日宮崎千尋さんが来ました。", ["宮崎千尋"]),
        ("고객 박서연 님이 환불을 요청했습니다.", ["박서연"]),
        ("어제 강민호에게 전화가 왔습니다.", ["강민호"]),
        ("กรุณาติดต่อคุณสมชาย ใจดี", ["สมชาย ใจดี"]),
        ("ลูกค้าชื่อ กมลชนก ศรีประเสริฐ ขอคืนเงิน", ["กมลชนก ศรีประเสริฐ"]),
        ("अनुराग सक्सेना ने कल फोन किया था।", ["अनुराग सक्सेना"]),
        ("मेरा नाम देवेश पांडेय है।", ["देवेश पांडेय"]),
        ("दीक्षित जी हेमन्त त्यागी से मिले।", ["हेमन्त त्यागी"]),
        ("התקשר לדנה כהן לגבי ההזמנה.", ["דנה כהן"]),
        ('ד"ר מיכל רוזנברג תחזור אליך מחר.', ["מיכל רוזנברג"]),
        ("العميل يزن الخطيب طلب استرداد المبلغ.", ["يزن الخطيب"]),
        ("الحجز باسم فاطمة الزهراني لشخصين.", ["فاطمة الزهراني"]),
    ],
)
def test_names_are_found(text: str, names: list[str]) -> None:
    assert found(text) == names


@pytest.mark.parametrize(
    "text",
    [
        "我们的营业时间是周一到周五。",
        "请在索引中应用该块，金额和余额都正确。",
        "高兴地通知您，方案已经通过，程序运行正常。",
        "逢峰封楓風葺蕗伏副復幅服福腹複覆淵弗払沸仏物鮒分吻噴墳憤扮焚奮粉糞紛雰文聞丙併兵塀幣平弊柄並蔽閉陛米頁僻壁癖碧別瞥蔑箆偏変片篇編辺返遍",
        "このシステムでは設定を変更できます。",
        "新規行を編集し、両方の版を破棄する。",
        "이 사용자는 서버 프로세스의 소유주입니다.",
        "서비스 이용 시간을 확인하세요.",
        "คุณต้องการบันทึกไฟล์หรือไม่",
        "สินค้าหมดแล้ว กรุณารอสักครู่",
        "कृपया अपना पासवर्ड दर्ज करें।",
        "विकास और प्रकाश की आशा है।",
        "נא לשים לב כי שני השדות רגישים.",
        "האור והשיר יפים, שלום לכם.",
        "يرجى إدخال اسم المستخدم وكلمة المرور.",
        "على الطاولة كتاب جميل ونور في الغرفة.",
    ],
)
def test_plain_sentences_name_nobody(text: str) -> None:
    assert found(text) == []


def test_tables_are_read_only_where_their_script_occurs() -> None:
    code = (
        "from agentunit.privacy.detectors import PatternDetector\n"
        "from agentunit.addons.names import script_tables\n"
        "PatternDetector().find(['Ask Mia Lindqvist.', 'Zoë Müller und Łukasz'])\n"
        "assert script_tables.table.cache_info().currsize == 0\n"
        "PatternDetector().find(['우리는 김민준입니다'])\n"
        "assert script_tables.table.cache_info().currsize == 1\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


_ENCODED = [
    ("url", lambda name: quote(name)),
    ("json", lambda name: json.dumps(name)),
    ("html", lambda name: "".join(f"&#{ord(letter)};" for letter in name)),
    ("base64", lambda name: base64.b64encode(name.encode()).decode()),
    ("hexadecimal", lambda name: name.encode().hex()),
    ("alone", lambda name: name),
]


@pytest.mark.parametrize("encode", [each for _, each in _ENCODED], ids=[kind for kind, _ in _ENCODED])
@pytest.mark.parametrize(
    ("told", "name"),
    [
        ("我叫王小明。", "王小明"),
        ("担当の佐藤健太郎です。", "佐藤健太郎"),
        ("고객 박서연 님입니다.", "박서연"),
        ("คุณสมชาย ใจดี ค่ะ", "สมชาย ใจดี"),
        ("اسمي محمد الزهراني.", "محمد الزهراني"),
        ("שמי דנה כהן.", "דנה כהן"),
        ("मेरा नाम राहुल वर्मा है।", "राहुल वर्मा"),
    ],
)
def test_a_name_that_a_record_tells_is_masked_in_every_encoding(
    told: str, name: str, encode: Callable[[str], str]
) -> None:
    redactor = Redactor(PatternDetector(), PII_TYPES, Pseudonyms())
    record = {"case": {"id": "q1", "query": told}, "outcome": f"x: {encode(name)}"}
    redactor.redact_data([record])
    masked = json.dumps(record)
    assert record["outcome"].strip('x: "') == "<NAME_1>"
    assert redactor.survivors == []
    redactor.redact_data([record])
    assert json.dumps(record) == masked


def test_a_name_is_not_found_in_another_that_begins_like_it() -> None:
    known = KnownValues([("name", "김민주"), ("name", "高明")])
    text = f"김민준, 김민주, 高明度, 高明。{quote('高明')}"
    assert [place.value for place in known.places(text)] == ["김민주", "高明", "高明"]


@pytest.mark.parametrize("letters", ["王小明", "田中さくら", "김민준", "สมชาย", "การ", "محمد ", "דנה ", "राहुल "])
def test_calls_grow_with_the_length_of_a_text_and_no_faster(letters: str) -> None:
    def n_calls(length: int) -> int:
        calls = 0

        def count(frame: FrameType, event: str, arg: object) -> None:
            nonlocal calls
            calls += 1

        sys.setprofile(count)
        try:
            find_script_names((letters * length)[:length])
        finally:
            sys.setprofile(None)
        return calls

    find_script_names(letters)  # reads the tables
    assert n_calls(8_000) < 5 * n_calls(2_000)


@pytest.mark.parametrize("text", [
    "我住在阿尔巴尼亚。", "从克罗地亚到上海的航班", "下周去尼日利亚出差，请订酒店。",
    "地址：高青县", "尖扎县的天气怎么样？", "厄瓜多尔", "委内瑞拉的首都", "柏林的天气怎么样？",
    "파일 형식으로 변환하는 도구", "파일 이름 변경을 위한 명령", "石川県庁の地図",
])  # fmt: skip
def test_places_foreign_words_and_verbs_are_no_names(text):
    assert [each for each in PatternDetector().find([text])[0] if each.type == "name"] == []


@pytest.mark.parametrize(("text", "name"), [
    ("馬場涼真様、こんにちは。", "馬場涼真"), ("昨日田島凪沙が来ました。", "田島凪沙"), ("氏名：田口想那", "田口想那"),
    ("請求書は浅井佑季宛に送ってください。", "浅井佑季"), ("請聯絡林文雅女士。", "林文雅"), ("地址：王小明", "王小明"),
    ("이 패키지는 Thomas Sailer의 작품입니다.", "Thomas Sailer"),
])  # fmt: skip
def test_names_beside_them_are_found(text, name):
    assert name in [text[each.start : each.end] for each in PatternDetector().find([text])[0]]


@pytest.mark.parametrize("name", ["佐藤悠人", "佐藤陽人", "鈴木晴人", "高橋結人"])
def test_names_that_end_in_the_letter_for_people_are_names(name):
    for text in (f"{name}さんが来ました。", f"昨日{name}が来ました。"):
        assert [text[each.start : each.end] for each in PatternDetector().find([text])[0]] == [name]


@pytest.mark.parametrize(("text", "name"), [
    ("王海燕人很好。", "王海燕"), ("张志强人在北京。", "张志强"), ("我昨天去张志强家吃饭。", "张志强"),
    ("我明天去黄伟家。", "黄伟"), ("我叫温凯文。", "温凯文"), ("客户温文杰要求退款。", "温文杰"),
])  # fmt: skip
def test_names_before_words_that_also_follow_places_are_found(text, name):
    assert [text[each.start : each.end] for each in PatternDetector().find([text])[0]] == [name]


@pytest.mark.parametrize("name", ["김민하", "박서하", "김준형", "김도형", "이준형"])
def test_korean_names_that_end_like_words_are_found(name):
    for text in (f"{name}의 계좌를 확인했습니다.", f"{name}{'는' if name.endswith('하') else '은'} 오늘 옵니다."):
        assert [text[each.start : each.end] for each in PatternDetector().find([text])[0]] == [name]
    for text in ("이용하는 고객", "이동형은 비싸다", "신용한도의 조정"):
        assert PatternDetector().find([text])[0] == []
