"""Postal addresses of China, Japan, Korea and Taiwan in their own scripts: from the region to the house and flat.

They have no spaces to go by. A house number is looked for, and what stands before it is read backwards.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentunit.privacy.findings import Finding

_HAN, _KANA = "々〇㐀-䶿一-鿿", "ぁ-んァ-ヶー"
_DASH = "[-‐-―−－]"
_JAPANESE = (
    rf"[0-9一二三四五六七八九十]{{1,4}}(?:丁目|番地|番町)(?:[0-9]{{1,4}}(?:番地?|号|{_DASH}|の)?){{0,3}}"
    rf"|[0-9]{{1,4}}番地?[0-9]{{1,4}}号?|[0-9]{{1,4}}(?:{_DASH}[0-9]{{1,4}}){{1,3}}"
)
_CHINESE = rf"[0-9]{{1,5}}(?:(?:{_DASH}|之)[0-9]{{1,4}})?[号號](?!线|線|出口|店|门|門|机|機|车|車|文件|令)"
_HOUSE = re.compile(rf"(?<=[{_HAN}{_KANA}])[ \u3000]?(?:(?P<japanese>{_JAPANESE})|(?P<chinese>{_CHINESE}))")
_COUNTED = re.compile(
    r"[0-9]*[ \u3000]?(?:万|億|亿|人|年|月|日|円|元|時|时|歳|岁|件|回|点|分|個|个|％|%|対|对|勝|比|度|倍)"
)
# The floor, the flat, the building.
_TAIL = re.compile(
    rf"(?:院|楼|室)?(?:[ \u3000]?[{_HAN}{_KANA}A-Za-z]{{0,12}}?[0-9A-Z]{{1,4}}"
    r"(?:号楼|号院|号室|號樓|栋|棟|幢|座|单元|單元|室|楼|樓|层|層|階|房|户|F)){0,4}"
    rf"(?:[ \u3000]?[{_HAN}{_KANA}A-Za-z]{{1,12}}(?:ビル|マンション|ハイツ|タワー|アパート|コーポ|大厦|大廈|小区))?"
)
_BEFORE = re.compile(rf"[{_HAN}{_KANA} \u3000]*\Z")
_REACH = 40
_POSTAL_CODE = re.compile(
    rf"(?:〒[ \u3000]?)?[0-9]{{3}}{_DASH}[0-9]{{4}}[ \u3000]{{0,2}}\Z|〒[ ]?[0-9]{{7}}[ \u3000]{{0,2}}\Z"
)
_PREFECTURES = re.compile(
    "東京都|北海道|(?:京都|大阪)府|(?:青森|岩手|宮城|秋田|山形|福島|茨城|栃木|群馬|埼玉|千葉|神奈川|新潟|富山|石川|福井|山梨|長野|岐阜|静岡|愛知|三重|滋賀"
    "|兵庫|奈良|和歌山|鳥取|島根|岡山|広島|山口|徳島|香川|愛媛|高知|福岡|佐賀|長崎|熊本|大分|宮崎|鹿児島|沖縄)県"
)
_TOWN = re.compile(rf"(?:[{_HAN}]{{1,4}}|[ぁ-ん]{{2,4}}|[ァ-ヶー]{{2,6}})(?:市|区|郡)")
# What a sentence says of a town: "大阪市の2-3", "…の試合で3-1".
_PARTICLE = re.compile("[はがを]|[でともに]$")
_REGIONS = re.compile(
    "(?:北京|上海|天津|重庆|重慶|香港|澳门|澳門|河北|山西|辽宁|吉林|黑龙江|江苏|浙江|安徽|福建|江西|山东|河南|湖北|湖南|广东|海南|四川|贵州|云南|陕西|甘肃|青海"
    "|台湾|臺灣|台灣|内蒙古|广西|西藏|宁夏|新疆|台北|臺北|新北|桃園|台中|臺中|台南|臺南|高雄)[省市]?"
)
_DISTRICT = re.compile("[省市区县區縣州盟]")
_LEAD = re.compile(".*(?:在|到|是|为|為|於|于|至|往|址|我|去|从|從|给|給|住)")
_STREET = re.compile(r"(?:路|街|大道|巷|弄|胡同|[路街][一二三四五六七八九十]段)[ \u3000]?\Z")
_WEAK_STREET = re.compile(r"(?:道|村|里|园|園|苑|庄|莊|坊|条|条|期|段|屯|寨|镇|鎮|乡|鄉)[ \u3000]?\Z")
_LONGEST_STREET = 8
_LONGEST_DISTRICT = 6

_KOREAN = re.compile(
    r"(?:(?:(?<![가-힣])[가-힣]{2,4}(?:특별시|광역시|특별자치시|특별자치도|도|시)|서울|부산|대구|인천|광주|대전|울산|세종|경기|강원|충북|충남"
    r"|전북|전남|경북|경남|제주) )?(?:(?<![가-힣])[가-힣]{1,5}[시군구] ){1,2}"
    r"[가-힣]{1,8}[0-9]{0,4}(?:(?:로|길|가길)[0-9]{0,3}길? ?|[동리읍면] )[0-9]{1,4}(?:-[0-9]{1,4})?"
    r"(?![0-9]|[년월일명개만시분원%층])(?:번지)?(?:,? [0-9]{1,4}(?:동|호|층)){0,3}"
)


def find_eastern_addresses(text: str) -> Iterator[Finding]:
    """The postal addresses in these scripts, in order.

    >>> text = "住所は東京都千代田区丸の内1-1-1です。我住在北京市朝阳区建国路88号。"
    >>> [text[found.start : found.end] for found in find_eastern_addresses(text)]
    ['東京都千代田区丸の内1-1-1', '北京市朝阳区建国路88号']
    """
    past = 0
    for house in _HOUSE.finditer(text):
        if house.start() < past or _COUNTED.match(text, house.end()):
            continue
        before = _BEFORE.search(text, max(past, house.start() - _REACH), house.start())
        if before is None:
            continue
        start = (_japanese_start if house["japanese"] else _chinese_start)(before[0])
        if start is None:
            continue
        first = before.start() + start
        code = _POSTAL_CODE.search(text, max(past, first - 16), first)
        tail = _TAIL.match(text, house.end())
        past = tail.end() if tail is not None else house.end()
        yield Finding("address", code.start() if code is not None else first, past, 0.75, "eastern street")
    for found in _KOREAN.finditer(text):
        yield Finding("address", found.start(), found.end(), 0.75, "eastern street")


def _japanese_start(before: str) -> int | None:
    """Where the address starts that goes on with blocks: at its prefecture, or at its town."""
    found = next(iter([*_PREFECTURES.finditer(before)][-1:]), None) or _TOWN.search(before)
    if found is None or before[found.end() : found.end() + 1] == "の" or _PARTICLE.search(before, found.end()):
        return None
    return found.start()


def _chinese_start(before: str) -> int | None:
    """Where the address starts that goes on with the number of a house: at its region, its district or its street."""
    is_street, has_district = _STREET.search(before), _DISTRICT.search(before)
    if is_street is None and (has_district is None or _WEAK_STREET.search(before) is None):
        return None
    regions = [*_REGIONS.finditer(before)]
    if regions:
        return regions[0].start()
    end = has_district.start() if has_district is not None else len(before)
    lead = _LEAD.match(before, 0, max(0, end - 1))
    longest = _LONGEST_DISTRICT if has_district is not None else _LONGEST_STREET
    return max(lead.end() if lead is not None else 0, end - longest)
