"""Names in scripts without capital letters, with near misses: plain sentences in which nobody is named."""

from __future__ import annotations

import subprocess
import sys

import pytest

from agentunit.privacy.detection.script_names import find_script_names


def found(text: str) -> list[str]:
    return [text[each.start : each.end] for each in find_script_names(text)]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("请把这份文件交给陈思远，谢谢。", ["陈思远"]),
        ("昨天赵文博给客服打了电话。", ["赵文博"]),
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
        "from agentunit.privacy.detection import script_tables\n"
        "PatternDetector().find(['Ask Mia Lindqvist.', 'Zoë Müller und Łukasz'])\n"
        "assert script_tables.table.cache_info().currsize == 0\n"
        "PatternDetector().find(['우리는 김민준입니다'])\n"
        "assert script_tables.table.cache_info().currsize == 1\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
